"""Addresses of a process that is gone to frames: its mappings, the binaries behind them, V8's code map."""

import bisect
import functools
import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from investigator.engine.interface import Mount
from investigator.profiling.demangle import demangle
from investigator.profiling.elf import SymbolTable, read_symbols
from investigator.profiling.stacks import Frame, Origin, Stack, Thread, clean_symbol
from investigator.profiling.v8log import CodeMap

KERNEL_FROM = 1 << 63
"""Addresses from here on are the kernel's, on x86-64 and arm64."""
_MANGLED = frozenset({"node", "addon", "core"})
STRIPPED_ADDON = Frame("unknown", "[stripped addon]")


class Mapping(NamedTuple):
    """Executable memory of the process."""

    start: int
    end: int
    file_offset: int
    path: str
    """As the process saw it; ``//anon`` and the like for memory without a file."""


class RawStack(NamedTuple):
    """A sample before its addresses have names."""

    thread: Thread
    addresses: tuple[int, ...]
    """Innermost first: where it was, then the return addresses."""


class _Place(NamedTuple):
    origin: Origin
    name: str
    """Mangled, for what lies in a binary."""


class Symbolizer:
    """Names the addresses of one process."""

    def __init__(
        self,
        *,
        mappings: Iterable[Mapping],
        mounts: Sequence[Mount],
        codes: CodeMap,
        core: Collection[str],
        kernel: "KernelSymbols | None" = None,
    ) -> None:
        """Take what is known of the process.

        Args:
            mappings: in the order they were made; a later one replaces what it overlaps.
            mounts: where files of the task lie on this machine.
            codes: generated code.
            core: names of the functions of the amalgamation.
            kernel: names of the kernel's functions.
        """
        self._starts: list[int] = []
        self._mappings: list[Mapping] = []
        for mapping in mappings:
            self._add(mapping)
        self._mounts = mounts
        self._codes = codes
        self._core = frozenset(core)
        self._kernel = kernel
        self._places: dict[int, _Place] = {}

    def stacks(self, samples: dict[RawStack, int]) -> dict[Stack, int]:
        """Named stacks with their counts."""
        rows = [
            (raw.thread, tuple(self._place(a, leaf=n == 0) for n, a in enumerate(raw.addresses)), count)
            for raw, count in samples.items()
        ]
        readable = demangle({p.name for _, places, _ in rows for p in places if p.origin in _MANGLED})
        named: dict[Stack, int] = {}
        for thread, places, count in rows:
            frames = (
                Frame(p.origin, readable[p.name] if p.origin in _MANGLED else p.name)
                for p in reversed(places)
            )
            stack = Stack(thread, tuple(frames))
            named[stack] = named.get(stack, 0) + count
        return named

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

    def _place(self, address: int, *, leaf: bool) -> _Place:
        # A return address may be the first one behind a function that never returns.
        wanted = address if leaf else address - 1
        place = self._places.get(wanted)
        if place is None:
            place = self._places[wanted] = self._find(wanted)
        return place

    def _find(self, address: int) -> _Place:
        if address >= KERNEL_FROM:
            return _Place("kernel", (self._kernel.find(address) if self._kernel else None) or "[kernel]")
        index = bisect.bisect_right(self._starts, address) - 1
        mapping = self._mappings[index] if index >= 0 else None
        if mapping is None or address >= mapping.end:
            name = self._codes.find(address)
            return _Place("js", name) if name else _Place("unknown", "[unknown]")
        if mapping.path.startswith("/") and not mapping.path.startswith(("//anon", "/dev/zero", "/memfd:")):
            return self._in_file(mapping, address)
        if mapping.path.startswith("[v"):
            return _Place("libc", clean_symbol(mapping.path))
        name = self._codes.find(address)
        return _Place("js", name or "[generated code]")

    def _in_file(self, mapping: Mapping, address: int) -> _Place:
        path = PurePosixPath(mapping.path)
        source = self._on_this_machine(path)
        nameless = f"[{clean_symbol(path.name)}]"
        if source is None:
            return _Place("libc", nameless)
        table = symbols_of(source)
        origin: Origin = "addon" if path.suffix == ".node" else "node"
        found = table.find(table.address_of(address - mapping.start + mapping.file_offset))
        if found is None:
            if origin == "addon" and not table.complete:
                return _Place(*STRIPPED_ADDON)
            return _Place("libc", nameless)
        name, of_core = found
        if of_core or (origin == "addon" and (name in self._core or name.partition(".")[0] in self._core)):
            origin = "core"
        return _Place(origin, name)

    def _on_this_machine(self, path: PurePosixPath) -> Path | None:
        """The file behind a path of the task, if the task had it from us."""
        for mount in self._mounts:
            for root in (mount.target, PurePosixPath(mount.source)):
                if path == root or root in path.parents:
                    return mount.source / path.relative_to(root)
        return None


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


class KernelSymbols:
    """Functions of the running kernel, where the system tells their addresses."""

    def __init__(self, lines: Iterable[str]) -> None:
        """Read /proc/kallsyms: address, type, name."""
        pairs: list[tuple[int, str]] = []
        for line in lines:
            fields = line.split(None, 3)
            if len(fields) >= 3 and fields[1] in "tTwW" and (address := int(fields[0], 16)):
                pairs.append((address, fields[2]))
        pairs.sort()
        self._starts = [address for address, _ in pairs]
        self._names = [name for _, name in pairs]

    def find(self, address: int) -> str | None:
        """Name of the function at `address`."""
        index = bisect.bisect_right(self._starts, address) - 1
        return self._names[index] if index >= 0 else None


@functools.cache
def kernel_symbols() -> KernelSymbols:
    """Those of this machine; empty where it does not tell."""
    try:
        with Path("/proc/kallsyms").open(encoding="ascii", errors="replace") as lines:
            return KernelSymbols(lines)
    except (OSError, ValueError):
        return KernelSymbols(())
