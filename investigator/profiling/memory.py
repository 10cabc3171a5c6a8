"""The address space of a process that is gone: which file, on this machine, lay where."""

import bisect
import functools
import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from investigator.elf import SymbolTable, read_symbols
from investigator.engine.interface import Mount

KERNEL_FROM = 1 << 63
"""Addresses from here on are the kernel's, on x86-64 and arm64."""
Region = Literal["node", "addon", "library", "generated", "unknown"]
_NO_FILE = ("//anon", "/dev/zero", "/memfd:")


class Mapping(NamedTuple):
    """Executable memory of the process."""

    start: int
    end: int
    file_offset: int
    path: str
    """As the process saw it; ``//anon`` and the like for memory without a file."""


class Place(NamedTuple):
    """What lies at an address."""

    region: Region
    """``generated`` is code that V8 has made; ``library`` any file that is not ours, and the vDSO."""
    name: str
    """File name; empty where there is none."""
    source: Path | None = None
    """The file on this machine."""
    offset: int = 0
    """Position in the file."""


class Memory:
    """Looks up addresses."""

    def __init__(self, mappings: Iterable[Mapping], mounts: Sequence[Mount]) -> None:
        """Take mappings in the order they were made, and where the task's files lie on this machine."""
        self._starts: list[int] = []
        self._mappings: list[Mapping] = []
        self._mounts = mounts
        self._files: dict[str, tuple[Region, Path | None]] = {}
        for mapping in mappings:
            self._add(mapping)

    def place(self, address: int) -> Place:
        """What lies at `address` of the process, which is not the kernel's."""
        index = bisect.bisect_right(self._starts, address) - 1
        mapping = self._mappings[index] if index >= 0 else None
        if mapping is None or address >= mapping.end:
            return Place("unknown", "")
        path = mapping.path
        if path.startswith("[v"):
            return Place("library", path)
        if not path.startswith("/") or path.startswith(_NO_FILE):
            return Place("generated", "")
        region, source = self._file(path)
        offset = address - mapping.start + mapping.file_offset
        return Place(region, PurePosixPath(path).name, source, offset)

    def _file(self, path: str) -> tuple[Region, Path | None]:
        if path not in self._files:
            pure = PurePosixPath(path)
            source = self._on_this_machine(pure)
            region: Region = "library" if source is None else "addon" if pure.suffix == ".node" else "node"
            self._files[path] = (region, source)
        return self._files[path]

    def _on_this_machine(self, path: PurePosixPath) -> Path | None:
        """The file behind a path of the task, if the task had it from us."""
        for mount in self._mounts:
            for root in (mount.target, PurePosixPath(mount.source)):
                if path == root or root in path.parents:
                    return mount.source / path.relative_to(root)
        return None

    def _add(self, mapping: Mapping) -> None:
        """Put a mapping in, cutting those that it overlaps: V8 changes the protection of parts."""
        first = bisect.bisect_left(self._starts, mapping.start)
        if first > 0 and self._mappings[first - 1].end > mapping.start:
            first -= 1
        last = bisect.bisect_left(self._starts, mapping.end)
        kept = [mapping]
        for old in self._mappings[first:last]:
            if old.start < mapping.start:
                kept.insert(0, old._replace(end=mapping.start))
            if old.end > mapping.end:
                beyond = mapping.end - old.start
                kept.append(old._replace(start=mapping.end, file_offset=old.file_offset + beyond))
        self._starts[first:last] = [each.start for each in kept]
        self._mappings[first:last] = kept


def symbols_of(path: Path) -> SymbolTable:
    """The functions of a binary, read once for each state of the file."""
    try:
        info = os.stat(path)  # noqa: PTH116 - one call for what the key needs
    except OSError:
        return read_symbols(path)
    return _symbols(path, info.st_ino, info.st_size, info.st_mtime_ns)


@functools.lru_cache(maxsize=16)
def _symbols(path: Path, _inode: int, _size: int, _mtime_ns: int) -> SymbolTable:
    return read_symbols(path)


def read_maps(text: str) -> tuple[Mapping, ...]:
    """Executable mappings in the text of /proc/PID/maps; lines of another form are left out."""
    found = []
    for line in text.splitlines():
        fields = line.split(None, 5)
        if len(fields) < 5 or "x" not in fields[1]:
            continue
        start, _, end = fields[0].partition("-")
        try:
            begin, stop, offset = int(start, 16), int(end, 16), int(fields[2], 16)
        except ValueError:
            continue
        found.append(Mapping(begin, stop, offset, fields[5] if len(fields) > 5 else "//anon"))
    return tuple(found)
