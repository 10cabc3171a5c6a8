"""Records of the kernel's perf events: bytes to samples. Layout: perf_event_open(2), PERF_RECORD_SAMPLE."""

import bisect
import struct
from collections.abc import Iterator, Mapping, Sequence

import msgspec

STACK_BYTES = 2048
"""Of the top of the stack, kept with each sample: the frames of an allocation and of its caller."""
MAX_SAMPLES = 2_000_000
_IP, _TID, _TIME, _CALLCHAIN, _REGS_USER, _STACK_USER = 1 << 0, 1 << 1, 1 << 2, 1 << 5, 1 << 12, 1 << 13
LAYOUT_FLAGS = _IP | _TID | _TIME | _CALLCHAIN | _REGS_USER | _STACK_USER
_LOST, _SAMPLE, _LOST_SAMPLES = 2, 9, 13
_CONTEXT_FROM = (1 << 64) - 4095
"""Callchain entries from here on are marks: what follows is of the kernel, or of the user."""
_STACK_POINTER = {"x86_64": 7, "aarch64": 31}


class UnusableError(Exception):
    """A profile that cannot be taken or read; the text is a clause."""


class Window(msgspec.Struct, frozen=True, order=True):
    """A time in which samples count, on the clock of ``process.hrtime``."""

    start_ns: int
    end_ns: int


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """What of a sample depends on the processor."""

    machine: str

    @property
    def register_mask(self) -> int:
        """Only the stack pointer: it tells where the copy of the stack lay."""
        return 1 << _STACK_POINTER[self.machine]


class Sample(msgspec.Struct, frozen=True):
    """One sample of one thread."""

    main: bool
    chain: tuple[int, ...]
    """Innermost first, by frame pointers; the kernel's part before the user's."""
    stack_at: int
    """Address of `stack`; 0 where there is none."""
    stack: bytes


def in_windows(records: Mapping[int, bytes], main: int, windows: Sequence[Window]) -> Iterator[Sample]:
    """Samples inside `windows` (sorted, not overlapping) from the records of the threads of process `main`.

    Raises:
        UnusableError: the records do not hold together.
    """
    starts = [window.start_ns for window in windows]
    taken = 0
    for thread, data in records.items():
        for kind, at, end in _records(data):
            if kind != _SAMPLE or taken >= MAX_SAMPLES:
                continue
            (time_ns,) = struct.unpack_from("<Q", data, at + 16)
            index = bisect.bisect_right(starts, time_ns) - 1
            if index >= 0 and time_ns <= windows[index].end_ns:
                taken += 1
                yield _sample(data, at + 24, end, main=thread == main)


def lost(records: Mapping[int, bytes]) -> int:
    """Samples that the kernel could not write."""
    total = 0
    for data in records.values():
        for kind, at, _ in _records(data):
            if kind in {_LOST, _LOST_SAMPLES}:
                total += struct.unpack_from("<Q", data, at + (8 if kind == _LOST else 0))[0]
    return total


def _records(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Type, start and end of the body of each record."""
    at = 0
    while at + 8 <= len(data):
        kind, _misc, size = struct.unpack_from("<IHH", data, at)
        if size < 8 or at + size > len(data):
            raise UnusableError("perf's records are damaged")
        yield kind, at + 8, at + size
        at += size


def _sample(data: bytes, at: int, end: int, *, main: bool) -> Sample:
    try:
        (count,) = struct.unpack_from("<Q", data, at)
        if at + 8 + 8 * count > end:
            raise UnusableError("perf's records are damaged")
        chain = struct.unpack_from(f"<{count}Q", data, at + 8)
        at += 8 + 8 * count
        (abi,) = struct.unpack_from("<Q", data, at)
        stack_at = 0
        if abi:
            (stack_at,) = struct.unpack_from("<Q", data, at + 8)
            at += 8
        (size,) = struct.unpack_from("<Q", data, at + 8)
        at += 16
        (used,) = struct.unpack_from("<Q", data, at + size) if size else (0,)
    except struct.error as error:
        raise UnusableError("perf's records are damaged") from error
    return Sample(
        main=main,
        chain=tuple(address for address in chain if address < _CONTEXT_FROM),
        stack_at=stack_at if used else 0,
        stack=data[at : at + min(used, size, end - at)],
    )
