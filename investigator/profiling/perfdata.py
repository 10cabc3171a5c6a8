"""The file that ``perf record`` writes, read directly: samples, mappings, losses.

Not through ``perf script``, which prints addresses or file offsets depending on its version. Format:
tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h of the kernel sources.
"""

import bisect
import mmap
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from investigator.profiling.symbols import Mapping, RawStack

MAX_SAMPLES = 2_000_000
_MAGIC = b"PERFILE2"
_MMAP, _LOST, _SAMPLE, _MMAP2, _LOST_SAMPLES = 1, 2, 9, 10, 13
_COMPRESSED = 81
_EXECUTABLE = 0x4
_MMAP_DATA = 1 << 13
_CONTEXT_FROM = (1 << 64) - 4095
"""Callchain entries from here on are marks: what follows is of the kernel, or of the user."""
_IP, _TID, _TIME, _ADDR, _READ, _CALLCHAIN, _ID, _CPU, _PERIOD, _STREAM_ID, _IDENTIFIER = (
    1 << bit for bit in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16)
)
_ORDER = (_IDENTIFIER, _IP, _TID, _TIME, _ADDR, _ID, _STREAM_ID, _CPU, _PERIOD)
"""Fields of 8 bytes before the callchain, in the order of the record."""
_EVENTS = {(0, 0): "cycles", (1, 0): "cpu-clock", (1, 1): "task-clock"}


class Window(msgspec.Struct, frozen=True, order=True):
    """A time in which samples count, on the clock of ``process.hrtime``."""

    start_ns: int
    end_ns: int


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """What was sampled inside the windows."""

    samples: dict[RawStack, int]
    mappings: tuple[Mapping, ...]
    lost: int
    """Samples that were lost, in the whole recording."""
    event: str
    """``cpu-clock``, ``cycles``, ..."""


class UnusableError(Exception):
    """A recording that cannot be made or read; the text is a clause."""


def read(data: Path, main: int, windows: Sequence[Window]) -> Recorded:
    """Samples of the process `main` inside `windows`, which are sorted and do not overlap.

    Raises:
        UnusableError: it is no recording, or one that was made otherwise than by `perf.Recording`.
    """
    try:
        with data.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as image:
            return _read(image, main, windows)
    except (OSError, ValueError, struct.error) as error:
        raise UnusableError(f"perf's data cannot be read ({error})") from error


def _read(image: mmap.mmap, main: int, windows: Sequence[Window]) -> Recorded:
    if image[:8] != _MAGIC:
        raise UnusableError("perf's data have an unknown form")
    _size, attribute_size, attributes, attributes_size, start, size = struct.unpack_from("<6Q", image, 8)
    sample_type, event = _attributes(image, attributes, attributes_size, attribute_size)
    callchain = 8 * sum(bool(sample_type & bit) for bit in _ORDER)
    if sample_type & _READ or not (sample_type & _TID and sample_type & _TIME and sample_type & _CALLCHAIN):
        raise UnusableError("perf's data lack threads, times or callchains")
    tid_at = 8 * sum(bool(sample_type & bit) for bit in (_IDENTIFIER, _IP))
    starts = [window.start_ns for window in windows]
    samples: Counter[RawStack] = Counter()
    mappings: list[Mapping] = []
    lost = taken = 0
    for kind, misc, at, end in _records(image, start, start + size):
        if kind == _SAMPLE and taken < MAX_SAMPLES:
            process, thread, time_ns = struct.unpack_from("<IIQ", image, at + tid_at)
            index = bisect.bisect_right(starts, time_ns) - 1
            if process == main and index >= 0 and time_ns <= windows[index].end_ns:
                samples[
                    RawStack("main" if thread == main else "helper", _chain(image, at + callchain, end))
                ] += 1
                taken += 1
        elif kind in {_MMAP, _MMAP2}:
            mapping = _mapping(image, kind, misc, at, end, main)
            if mapping is not None:
                mappings.append(mapping)
        elif kind in {_LOST, _LOST_SAMPLES}:
            lost += struct.unpack_from("<Q", image, at + (8 if kind == _LOST else 0))[0]
        elif kind == _COMPRESSED:
            raise UnusableError("perf's data are compressed")
    return Recorded(samples=dict(samples), mappings=tuple(mappings), lost=lost, event=event)


def _attributes(image: mmap.mmap, offset: int, size: int, attribute_size: int) -> tuple[int, str]:
    """Layout of the samples, and the event; on processors with two kinds of cores there are two, alike."""
    if attribute_size < 64 or size < attribute_size:
        raise UnusableError("perf's data name no event")
    found = [
        struct.unpack_from("<IIQQQ", image, offset + n * attribute_size)
        for n in range(size // attribute_size)
    ]
    if len({sample_type for *_, sample_type in found}) != 1:
        raise UnusableError("perf's data mix several forms of samples")
    kind, _size, config, _frequency, sample_type = found[0]
    # The upper half of a hardware event's config tells the kind of core.
    return sample_type, _EVENTS.get((kind, config & 0xFFFFFFFF), f"event {kind}:{config:#x}")


def _records(image: mmap.mmap, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Type, misc, start and end of the body of each record."""
    end = min(end, len(image))
    while at + 8 <= end:
        kind, misc, size = struct.unpack_from("<IHH", image, at)
        if size < 8 or at + size > end:
            raise UnusableError("perf's data are damaged")
        yield kind, misc, at + 8, at + size
        at += size


def _chain(image: mmap.mmap, at: int, end: int) -> tuple[int, ...]:
    (count,) = struct.unpack_from("<Q", image, at)
    if at + 8 + 8 * count > end:
        raise UnusableError("perf's data are damaged")
    return tuple(a for a in struct.unpack_from(f"<{count}Q", image, at + 8) if a < _CONTEXT_FROM)


def _mapping(image: mmap.mmap, kind: int, misc: int, at: int, end: int, main: int) -> Mapping | None:
    """The mapping of a record if it is executable and of the process `main`."""
    process, _thread, start, size, offset = struct.unpack_from("<IIQQQ", image, at)
    if kind == _MMAP2:
        (protection,) = struct.unpack_from("<I", image, at + 56)
        executable, name_at = bool(protection & _EXECUTABLE), at + 64
    else:
        executable, name_at = not misc & _MMAP_DATA, at + 32
    if process != main or not executable:
        return None
    path = image[name_at:end].partition(b"\0")[0].decode("utf-8", "replace")
    return Mapping(start=start, end=start + size, file_offset=offset, path=path)
