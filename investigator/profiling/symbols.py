"""Addresses of a process that is gone to named frames: the binaries, V8's code map, the kernel's list."""

import bisect
import functools
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from investigator.profiling.demangle import demangle
from investigator.profiling.memory import KERNEL_FROM, Memory, Place, symbols_of
from investigator.profiling.stacks import Frame, Origin, Stack, Thread, clean_symbol
from investigator.profiling.v8log import CodeMap

_MANGLED = frozenset({"node", "addon", "core"})
STRIPPED_ADDON = Frame("unknown", "[stripped addon]")


class RawStack(NamedTuple):
    """A sample before its addresses have names."""

    thread: Thread
    addresses: tuple[int, ...]
    """Innermost first: where it was, then the return addresses."""


class Symbolizer:
    """Names the addresses of one process."""

    def __init__(
        self,
        memory: Memory,
        codes: CodeMap,
        *,
        core: Collection[str],
        kernel: "KernelSymbols | None" = None,
    ) -> None:
        """Take the address space, generated code, the names of SQLite's functions, and the kernel's."""
        self._memory = memory
        self._codes = codes
        self._core = frozenset(core)
        self._kernel = kernel
        self._frames: dict[int, Frame] = {}

    def stacks(self, samples: Mapping[RawStack, int]) -> dict[Stack, int]:
        """Named stacks with their counts."""
        rows = [
            (raw.thread, tuple(self._frame(a, leaf=n == 0) for n, a in enumerate(raw.addresses)), count)
            for raw, count in samples.items()
        ]
        readable = demangle({f.symbol for _, frames, _ in rows for f in frames if f.origin in _MANGLED})
        named: dict[Stack, int] = {}
        for thread, frames, count in rows:
            outward = (f._replace(symbol=readable.get(f.symbol, f.symbol)) for f in reversed(frames))
            stack = Stack(thread, tuple(outward))
            named[stack] = named.get(stack, 0) + count
        return named

    def _frame(self, address: int, *, leaf: bool) -> Frame:
        """The frame at an address, its symbol still mangled."""
        # A return address may be the first one behind a function that never returns.
        wanted = address if leaf else address - 1
        frame = self._frames.get(wanted)
        if frame is None:
            frame = self._find(wanted)
            if (
                not leaf
                and frame.symbol.startswith("[")
                and (start := self._find(address)).origin in _MANGLED
            ):
                # V8 gives the C++ function that JS has called by its first address.
                frame = start
            self._frames[wanted] = frame
        return frame

    def _find(self, address: int) -> Frame:
        if address >= KERNEL_FROM:
            return Frame("kernel", (self._kernel.find(address) if self._kernel else None) or "[kernel]")
        place = self._memory.place(address)
        if place.region in {"unknown", "generated"}:
            name = self._codes.find(address)
            if name is not None:
                return Frame("js", name)
            return Frame("unknown", "[unknown]") if place.region == "unknown" else _GENERATED
        if place.source is None:
            return Frame("libc", f"[{clean_symbol(place.name).strip('[]')}]")
        return self._in_binary(place, place.source)

    def _in_binary(self, place: Place, source: Path) -> Frame:
        table = symbols_of(source)
        found = table.find(table.address_of(place.offset))
        if found is None:
            if place.region == "addon" and not table.complete:
                return STRIPPED_ADDON
            return Frame("libc", f"[{clean_symbol(place.name)}]")
        name, of_core = found
        is_addon = place.region == "addon"
        if of_core or (is_addon and (name in self._core or name.partition(".")[0] in self._core)):
            return Frame("core", name)
        origin: Origin = "addon" if is_addon else "node"
        return Frame(origin, name)


_GENERATED = Frame("js", "[generated code]")


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
