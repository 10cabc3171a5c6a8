"""A Node build on disk: ``bin/node`` and ``include/node``, and what its headers say without running it."""

import mmap
import re
import struct
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from investigator import cache
from investigator.errors import UsageError

CACHE_KIND: Final = "nodes"
KEY_FILES: Final = ("bin/node", "include/node/**/*", "origin.json")

_NODE_HEADER: Final = "include/node/node_version.h"
_V8_HEADER: Final = "include/node/v8-version.h"
_OWN_ADDRESS: Final = re.compile(rb"/node-v([0-9]{1,4}\.[0-9]{1,5}\.[0-9]{1,5})[0-9A-Za-z.-]*\.tar\.gz")
_ELF_MACHINES: Final = {62: "x64", 183: "arm64", 21: "ppc64le", 22: "s390x", 40: "armv7l"}
_MACH_MACHINES: Final = {0x01000007: "x64", 0x0100000C: "arm64"}


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a cached build came from; stored beside it as ``origin.json``."""

    version: str
    integrity: str


class HeaderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the headers of a build say."""

    version: str
    """``24.11.1``; without the tag of a nightly or a build of one's own."""
    v8: str
    """``13.6``."""
    abi: str
    """NODE_MODULE_VERSION, the ABI number: ``137``."""
    napi: str
    """Highest Node-API version that is offered: ``10``."""


def place(path: PurePosixPath) -> PurePosixPath | None:
    """Place a member of a release archive: the binary, the headers and the licence, below the top folder."""
    parts = path.parts[1:]
    wanted = parts in (("bin", "node"), ("LICENSE",)) or parts[:2] == ("include", "node")
    return PurePosixPath(*parts) if wanted else None


def finish(directory: Path, origin: Origin, platform: str, shown: str, *, needs_headers: bool = True) -> None:
    """Check a build that was just put together and store its origin.

    Raises:
        UsageError: no binary, no headers, or a binary for another platform.
    """
    if needs_headers:
        read_headers(directory, shown)
    binary = directory / "bin/node"
    if not binary.is_file() or binary.stat().st_size == 0:
        raise UsageError(f"{shown} has no bin/node; it is not a Node build")
    built_for = binary_platform(binary)
    if built_for is not None and built_for != platform:
        raise UsageError(f"{shown} is built for {built_for}, but {platform} is needed here")
    binary.chmod(0o755)
    (directory / "origin.json").write_bytes(msgspec.json.encode(origin))


def cached_origin(key: str) -> tuple[Path, Origin] | None:
    """Directory and origin of a cached build, or None where it is missing or damaged."""
    directory = cache.entry(CACHE_KIND, key)
    if not (cache.hold(directory) and cache.is_sound(directory)):
        return None
    try:
        return directory, msgspec.json.decode((directory / "origin.json").read_bytes(), type=Origin)
    except (OSError, msgspec.MsgspecError):
        return None


def read_headers(directory: Path, shown: str) -> HeaderFacts:
    """Read versions out of ``include/node``.

    Raises:
        UsageError: the headers are missing, or are not Node's.
    """
    try:
        node = (directory / _NODE_HEADER).read_text("utf-8", errors="replace")
        v8 = (directory / _V8_HEADER).read_text("utf-8", errors="replace")
    except OSError as error:
        raise UsageError(
            f"{shown} has no headers (include/node), without which no addon can be built"
        ) from error
    try:
        return HeaderFacts(
            version=".".join(_number(node, f"NODE_{part}_VERSION") for part in ("MAJOR", "MINOR", "PATCH")),
            v8=".".join(_number(v8, f"V8_{part}_VERSION") for part in ("MAJOR", "MINOR")),
            abi=_number(node, "NODE_MODULE_VERSION"),
            napi=_number(node, "NODE_API_SUPPORTED_VERSION_MAX", "NAPI_VERSION"),
        )
    except KeyError as error:
        raise UsageError(f"the headers of {shown} do not say {error}; they are not those of Node") from error


def has_headers(directory: Path) -> bool:
    """Whether an addon can be compiled for this build."""
    return (directory / _NODE_HEADER).is_file()


def version_in(binary: Path) -> str | None:
    """Read the release out of a binary without running it: it holds the address of its own sources."""
    if binary.stat().st_size == 0:
        return None  # nothing that could be mapped
    with binary.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        # While it is mapped: a match refers to its text.
        found = _OWN_ADDRESS.search(content)
        return None if found is None else found.group(1).decode()


def binary_platform(path: Path) -> str | None:
    """Read ``linux-x64`` and the like from the first bytes of a program; None for what is not known."""
    with path.open("rb") as file:
        head = file.read(20)
    if head[:4] == b"\x7fELF" and len(head) == 20:
        order = "<" if head[5] == 1 else ">"
        return f"linux-{_ELF_MACHINES.get(struct.unpack(order + 'H', head[18:20])[0], 'other')}"
    if head[:4] == b"\xcf\xfa\xed\xfe":
        return f"darwin-{_MACH_MACHINES.get(struct.unpack('<I', head[4:8])[0], 'other')}"
    return "win-x64" if head[:2] == b"MZ" else None


def _number(text: str, *names: str) -> str:
    for name in names:
        # Node before 12 has NAPI_VERSION with spaces behind it; the plain number is always on the line.
        if found := re.search(rf"^#\s*define\s+{name}\s+(\d{{1,6}})\s*$", text, re.MULTILINE):
            return found.group(1)
    raise KeyError(names[0])
