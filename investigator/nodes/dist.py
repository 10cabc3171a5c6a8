"""A mirror with the layout of the official download site: releases, nightlies, candidates, v8-canary.

::

    <URL>/index.json                                       all releases, newest first
    <URL>/v24.11.1/SHASUMS256.txt                          digests of the files beside it
    <URL>/v24.11.1/node-v24.11.1-linux-x64.tar.xz (.tar.gz)

The digests come from the same place as the files: they tell of damage, not of a mirror that lies. Who needs
more gives an address that is trusted (https).
"""

import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

import msgspec
import requests

from investigator import archives, cache
from investigator.cache import Notify
from investigator.errors import HostUnfitError, UsageError
from investigator.nodes import layout
from investigator.nodes.history import Release
from investigator.nodes.interface import NodeRequest, ResolvedNode
from investigator.nodes.parse import EXACT
from investigator.nodes.select import select
from investigator.text import clean_text

_INDEX_BYTES: Final = 16 << 20
"""The list of all nightlies since 2011 has 2 MB."""
_SUMS_BYTES: Final = 1 << 20
_TARBALL_BYTES: Final = 1 << 30
_TIMEOUTS_S: Final = (15.0, 60.0)
"""To connect, and between two pieces of an answer."""
_DOWNLOAD_S: Final = 1800.0
_MAX_REDIRECTS: Final = 5
_TROUBLES: Final = (
    (requests.exceptions.ProxyError, "the proxy refuses"),
    (requests.exceptions.SSLError, "no secure connection"),
    (requests.exceptions.ConnectTimeout, "no connection in time"),
    (requests.exceptions.Timeout, "nothing came in time"),
    (requests.exceptions.ChunkedEncodingError, "the connection was closed too early"),
    (requests.exceptions.ConnectionError, "no connection"),
    (ValueError, "not a usable address"),
)
"""Words for errors, the narrower ones first."""
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SUM_LINE: Final = re.compile(r"([0-9a-f]{64}) [ *](?:\./)?([A-Za-z0-9][A-Za-z0-9._/-]{0,120})")


class _Release(msgspec.Struct, frozen=True):
    """One element of index.json; the other fields are not used."""

    version: str
    lts: bool | str | None = None
    """Null, or not there, where the site could not find out."""
    date: str = ""


class DistNodes(msgspec.Struct, frozen=True, kw_only=True):
    """A `NodeSource`: a download site by http(s)."""

    platform: str
    """``linux-x64`` and the like."""
    notify: Notify | None = None

    def resolve(self, request: NodeRequest) -> ResolvedNode:
        """See `NodeSource.resolve`."""
        url = request.location or ""
        releases = _index(url)
        version = select(
            request.selector,
            releases,
            is_lts=lambda version: bool(releases[version]),
            where=f"dist:{clean_text(url, 120)}",
        )
        _name, digest = self._tarball(url, version)
        return ResolvedNode(request=request, version=version, integrity=f"sha256-{digest}")

    def fetch(self, resolved: ResolvedNode) -> Path:
        """See `NodeSource.fetch`."""
        promised = (resolved.integrity or "").removeprefix("sha256-")
        key = f"dist-{resolved.version}-{self.platform}-{promised[:32]}"
        url, version = resolved.request.location or "", resolved.version

        def fill(work: Path) -> None:
            name, digest = self._tarball(url, version)
            with tempfile.TemporaryDirectory(dir=work.parent, prefix=".tmp-") as folder:
                path = Path(folder, name)
                _download(f"{url}/v{version}/{name}", path, _TARBALL_BYTES)
                if not cache.sha256_of(path) == digest == promised:
                    raise UsageError(
                        f"{name} from {clean_text(url, 120)} does not have the checksum that SHASUMS256.txt "
                        "promises there; do not use it, and tell the owner of that mirror"
                    )
                archives.unpack(path, work, place=layout.place)
            origin = layout.Origin(version=version, integrity=f"sha256-{digest}")
            layout.finish(work, origin, self.platform, name)

        return cache.filled(layout.CACHE_KIND, key, fill, key_files=layout.KEY_FILES, notify=self.notify)

    def releases(self, request: NodeRequest) -> tuple[Release, ...]:
        """See `NodeSource.releases`; the dates are those of the site's index."""
        return tuple(
            Release(version=version, published=release.date if _DATE.fullmatch(release.date) else "")
            for version, release in _releases(request.location or "").items()
        )

    def _tarball(self, url: str, version: str) -> tuple[str, str]:
        """Name and sha256 of the release's archive for this platform."""
        sums = _sums(url, version)
        stem = f"node-v{version}-{self.platform}"
        # The smaller one first.
        for name in (f"{stem}.tar.xz", f"{stem}.tar.gz"):
            if name in sums:
                return name, sums[name]
        raise UsageError(f"dist:{clean_text(url, 120)} has no build of Node {version} for {self.platform}")


def _index(url: str) -> dict[str, bool | str]:
    """Usable versions of a mirror, with what it says about long-term support."""
    return {version: release.lts or False for version, release in _releases(url).items()}


@lru_cache(maxsize=16)
def _releases(url: str) -> dict[str, _Release]:
    try:
        releases = msgspec.json.decode(_get(f"{url}/index.json", _INDEX_BYTES), type=list[_Release])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        shown = clean_text(url, 120)
        raise UsageError(f"{shown}/index.json is not a list of Node releases; check the address") from error
    plain = {release.version.removeprefix("v"): release for release in releases}
    return {version: release for version, release in plain.items() if EXACT.fullmatch(version)}


@lru_cache(maxsize=256)
def _sums(url: str, version: str) -> dict[str, str]:
    text = _get(f"{url}/v{version}/SHASUMS256.txt", _SUMS_BYTES).decode("utf-8", errors="replace")
    found = (_SUM_LINE.fullmatch(line.strip()) for line in text.splitlines())
    return {match.group(2): match.group(1) for match in found if match}


def _get(url: str, limit: int) -> bytes:
    with _answer(url) as response:
        return b"".join(_pieces(response, url, limit))


def _download(url: str, path: Path, limit: int) -> None:
    with _answer(url) as response, path.open("xb") as file:
        for piece in _pieces(response, url, limit):
            file.write(piece)


@contextmanager
def _answer(url: str) -> Iterator[requests.Response]:
    """Open an address, following redirects within http(s) but never down from https."""
    shown = clean_text(url, 200)
    with requests.Session() as session:
        address = url
        for _ in range(_MAX_REDIRECTS):
            try:
                response = session.get(
                    address,
                    stream=True,
                    timeout=_TIMEOUTS_S,
                    allow_redirects=False,
                    headers={"Accept-Encoding": "identity"},
                )
            except (requests.RequestException, ValueError) as error:
                raise HostUnfitError(
                    f"{shown} does not answer ({_short(error)}); check the address, the network and the proxy"
                ) from error
            target = response.headers.get("Location")
            if not response.is_redirect or target is None:
                break
            response.close()
            address = _redirected(address, target, shown)
        else:
            raise UsageError(f"{shown} redirects more than {_MAX_REDIRECTS} times; give the final address")
        with response:
            if response.status_code in (404, 410):
                raise UsageError(f"{shown} does not exist; check the address and the version")
            if response.status_code in (401, 403, 407):
                raise UsageError(
                    f"{shown} is not given to you (status {response.status_code}); check the address, "
                    "the proxy, and the name and password for it in ~/.netrc"
                )
            if response.status_code != 200:
                raise HostUnfitError(f"{shown} answers with status {response.status_code}; try again later")
            yield response


def _redirected(address: str, target: str, shown: str) -> str:
    joined = urljoin(address, target)
    before, after = urlsplit(address).scheme, urlsplit(joined).scheme
    if after != before and (before, after) != ("http", "https"):
        raise UsageError(f"{shown} redirects to another scheme ({clean_text(after, 20)}); it is not followed")
    return joined


def _pieces(response: requests.Response, url: str, limit: int) -> Iterator[bytes]:
    shown, total, end = clean_text(url, 200), 0, time.monotonic() + _DOWNLOAD_S
    try:
        for piece in response.iter_content(1 << 16):
            total += len(piece)
            if total > limit:
                raise UsageError(f"{shown} is larger than {limit:,} bytes; it is not what it should be")
            if time.monotonic() > end:
                raise HostUnfitError(
                    f"{shown} took longer than {_DOWNLOAD_S / 60:.0f} minutes; try again later"
                )
            yield piece
    except requests.RequestException as error:
        raise HostUnfitError(f"{shown} broke off ({_short(error)}); try again") from error
    promised = response.headers.get("Content-Length", "")
    if promised.isdecimal() and int(promised) != total:
        raise HostUnfitError(f"{shown} broke off after {total:,} of {int(promised):,} bytes; try again")


def _short(error: Exception) -> str:
    told = next((text for kind, text in _TROUBLES if isinstance(error, kind)), type(error).__name__)
    return clean_text(told, 60)
