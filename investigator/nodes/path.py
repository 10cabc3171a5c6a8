"""A build of one's own: an unpacked release, a Node checkout that was built, or a release tarball."""

import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from investigator import archives, cache
from investigator.cache import Notify
from investigator.errors import UsageError
from investigator.nodes import layout
from investigator.nodes.interface import NodeRequest, ResolvedNode
from investigator.text import clean_text

_TARBALL: Final = re.compile(r".+\.(?:tgz|tar|tar\.gz|tar\.xz|tar\.bz2)")
# What `make install` copies out of a checkout (tools/install.py of Node), in its order: later files win.
_CHECKOUT_HEADERS: Final = (
    ("common.gypi", ""),
    ("config.gypi", ""),
    ("src/node.h", ""),
    ("src/node_*.h", ""),
    ("src/js_native_api*.h", ""),
    ("deps/v8/include", ""),
    ("deps/uv/include", ""),
    ("deps/openssl/openssl/include/openssl", "openssl"),
    ("deps/openssl/config/archs", "openssl/archs"),
    ("deps/openssl/config/*.h", "openssl"),
    ("deps/zlib/zconf.h", ""),
    ("deps/zlib/zlib.h", ""),
)
_HEADER_NAMES: Final = ("*.h", "*.gypi")


class PathNodes(msgspec.Struct, frozen=True, kw_only=True):
    """A `NodeSource`: directories and tarballs of this machine, copied into the cache by their content.

    The copy is what is measured: a build that is made again meanwhile does not change a run.
    """

    platform: str
    """``linux-x64`` and the like."""
    notify: Notify | None = None

    def resolve(self, request: NodeRequest) -> ResolvedNode:
        """See `NodeSource.resolve`; the content is copied here already, for its version is in its headers."""
        path = Path(request.selector).expanduser().absolute()
        shown = clean_text(request.selector, 120)
        if path.is_dir():
            digest, directory = self._keep_directory(path, shown)
        elif path.is_file() and _TARBALL.fullmatch(path.name):
            digest, directory = self._keep_tarball(path, shown)
        elif path.exists():
            raise UsageError(
                f"path:{shown} is neither a directory nor a .tar.gz, .tar.xz or .tgz file; "
                "give the directory that has bin/node and include/node"
            )
        else:
            raise UsageError(
                f"path:{shown} does not exist ({path}); give the directory or tarball of a Node build"
            )
        version = layout.read_headers(directory, shown).version
        return ResolvedNode(request=request, version=version, integrity=f"sha256-{digest}")

    def fetch(self, resolved: ResolvedNode) -> Path:
        """See `NodeSource.fetch`."""
        digest = (resolved.integrity or "").removeprefix("sha256-")
        cached = layout.cached_origin(_key(digest))
        if cached is None:
            if self.resolve(resolved.request).integrity != resolved.integrity:
                shown = clean_text(resolved.request.selector, 120)
                raise UsageError(f"path:{shown} was changed during this run; start again")
            return cache.entry(layout.CACHE_KIND, _key(digest))
        return cached[0]

    def _keep_tarball(self, path: Path, shown: str) -> tuple[str, Path]:
        digest = cache.sha256_of(path)
        return digest, self._keep(digest, shown, lambda work: archives.unpack(path, work, place=layout.place))

    def _keep_directory(self, path: Path, shown: str) -> tuple[str, Path]:
        binary, headers = _parts_of(path, shown)
        # Collected first and then hashed, so that the key is the content that was copied.
        with tempfile.TemporaryDirectory(prefix="investigate-node-") as folder:
            include = Path(folder, "include/node")
            _copy_headers(headers, include, shown)
            content = f"{cache.sha256_of(binary)} {cache.tree_sha256(include)}"
            digest = hashlib.sha256(content.encode()).hexdigest()

            def fill(work: Path) -> None:
                archives.copy_tree(include, work / "include/node")
                (work / "bin").mkdir()
                shutil.copyfile(binary, work / "bin/node")

            return digest, self._keep(digest, shown, fill)

    def _keep(self, digest: str, shown: str, fill: Callable[[Path], object]) -> Path:
        def complete(work: Path) -> None:
            fill(work)
            version = layout.read_headers(work, shown).version
            layout.finish(
                work, layout.Origin(version=version, integrity=f"sha256-{digest}"), self.platform, shown
            )

        return cache.filled(
            layout.CACHE_KIND, _key(digest), complete, key_files=layout.KEY_FILES, notify=self.notify
        )


def _key(digest: str) -> str:
    return f"path-{digest}"


def _parts_of(path: Path, shown: str) -> tuple[Path, Path]:
    """Find the binary, and the folder with the headers: ``include/node`` or the checkout itself."""
    if (path / "bin/node").is_file():
        return path / "bin/node", path / "include/node"
    # A checkout, or its output folder (`path:./out`, `path:./out/Release`).
    for checkout in (path, path.parent, path.parent.parent):
        binary = checkout / "out/Release/node"
        if binary.is_file() and (checkout / "src/node_version.h").is_file():
            return binary, checkout
    raise UsageError(
        f"path:{shown} is no Node build: there is neither bin/node nor out/Release/node in a checkout"
    )


def _copy_headers(source: Path, target: Path, shown: str) -> None:
    if not (source / "src/node_version.h").is_file():
        if not source.is_dir():
            raise UsageError(
                f"path:{shown} has no headers (include/node), without which no addon can be built; "
                "use `make install` with a PREFIX, or give the checkout"
            )
        archives.copy_tree(source, target)
        return
    if not (source / "config.gypi").is_file():
        raise UsageError(f"path:{shown} has no config.gypi; run ./configure and make in that checkout first")
    for pattern, below in _CHECKOUT_HEADERS:
        for found in sorted(source.glob(pattern)):
            place = target / below
            place.mkdir(parents=True, exist_ok=True)
            if found.is_dir():
                archives.copy_tree(found, place, ignore=_only_headers)
            else:
                shutil.copyfile(found, place / found.name)


def _only_headers(folder: str, names: list[str]) -> set[str]:
    wanted = {name for name in names for pattern in _HEADER_NAMES if Path(name).match(pattern)}
    return {name for name in names if name not in wanted and not Path(folder, name).is_dir()}
