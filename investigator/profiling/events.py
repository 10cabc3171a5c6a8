"""The kernel's perf events on one process: samples of every thread, taken through perf_event_open(2) itself.

Not through the perf program, for three reasons. It need not be there. It has no way to take a callchain by
frame pointers *and* the top of the stack in one sample, and without the second the chains that pass through
libc, which has no frame pointers, are lost (`repair`). And its text differs between versions.

Numbers from include/uapi/linux/perf_event.h; layouts of records in the manual page.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import platform
import select
import struct
import threading
import time
from pathlib import Path
from typing import NamedTuple

from investigator.profiling.samples import LAYOUT_FLAGS, STACK_BYTES, Layout, UnusableError

FREQUENCY_HZ = 997
"""Prime: no common divisor with timers. 1.2 s of passes give 1,200 samples: the share of a layer within 1.4
percentage points (one sigma), 0.5 over eight rounds. On a virtual machine, where each interrupt of the timer
is an exit, operations took 7 to 17 % longer at 4,999 Hz, 0 to 9 % at 1,999 Hz and 0 to 4 % at 997 Hz."""
MAX_BYTES = 512 << 20
MAX_THREADS = 128
_MAIN_PAGES, _HELPER_PAGES = 512, 64
_LOOK_S = 0.1
"""How often new threads are looked for and buffers emptied."""
_END_S = 10.0
_SYSCALL = {"x86_64": 298, "aarch64": 241}
_HARDWARE, _SOFTWARE = 0, 1
_CPU_CYCLES, _CPU_CLOCK = 0, 0
_FREQ, _WATERMARK, _CLOCKID, _EXCLUDE_KERNEL, _EXCLUDE_HV = 1 << 10, 1 << 14, 1 << 25, 1 << 5, 1 << 6
_CLOEXEC = 8
_ATTRIBUTE_BYTES = 112
_HEAD, _TAIL = 1024, 1032


class Choice(NamedTuple):
    """What is counted."""

    event: str
    sees_kernel: bool


_CHOICES = (
    Choice("cycles", True),
    Choice("cpu-clock", True),
    Choice("cycles", False),
    Choice("cpu-clock", False),
)
"""Best first. A processor's counters are missing in many virtual machines, the kernel is often forbidden."""


class _Buffer(NamedTuple):
    descriptor: int
    memory: mmap.mmap
    bytes: int


class Sampler:
    """Samples one process from now until it ends, in a thread of its own."""

    def __init__(self, pid: int) -> None:
        """Attach to the process and its threads; those to come are found within `_LOOK_S`.

        Raises:
            UnusableError: this system does not have it, or does not allow it.
        """
        self._pid = pid
        self._buffers: dict[int, _Buffer] = {}
        self._ended: set[int] = set()
        self._chunks: dict[int, list[bytes]] = {}
        self._taken = 0
        self._stop = threading.Event()
        self.choice = self._attach()
        self._thread = threading.Thread(target=self._follow, name="profile", daemon=True)
        self._thread.start()

    def finish(self) -> dict[int, bytes]:
        """Wait until the process is gone; its records by thread.

        Raises:
            UnusableError: it does not end.
        """
        self._thread.join(_END_S)
        ended = not self._thread.is_alive()
        self.close()
        if not ended:
            raise UnusableError("the profiled process did not end")
        return {thread: b"".join(chunks) for thread, chunks in self._chunks.items()}

    def close(self) -> None:
        """Detach. Safe to call twice."""
        self._stop.set()
        self._thread.join(_END_S)
        for buffer in self._buffers.values():
            buffer.memory.close()
            os.close(buffer.descriptor)
        self._buffers.clear()

    def _attach(self) -> Choice:
        refused = ""
        for choice in _CHOICES:
            try:
                self._open(self._pid, choice)
            except OSError as error:
                refused = error.strerror or str(error)
                if error.errno == errno.ESRCH:
                    break
            else:
                return choice
        hint = f"perf_event_paranoid is {_paranoid()}" if refused == os.strerror(errno.EACCES) else refused
        raise UnusableError(f"the kernel allows no perf events ({hint})")

    def _open(self, thread: int, choice: Choice) -> None:
        descriptor = _perf_event_open(_attribute(choice), thread)
        pages = _MAIN_PAGES if thread == self._pid else _HELPER_PAGES
        while True:
            try:
                memory = mmap.mmap(descriptor, (1 + pages) * mmap.PAGESIZE)
                break
            except OSError:
                # A user may lock only so much memory for this.
                if pages <= 8:
                    os.close(descriptor)
                    raise
                pages //= 2
        self._buffers[thread] = _Buffer(descriptor, memory, pages * mmap.PAGESIZE)

    def _follow(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while not self._stop.is_set():
                ended = self._wait()
                self._drain()
                if ended:
                    return
                self._attach_new()

    def _wait(self) -> bool:
        """Sleep until a buffer is half full or it is time to look; whether the process has ended."""
        poller = select.poll()
        for thread, buffer in self._buffers.items():
            if thread not in self._ended:
                poller.register(buffer.descriptor, select.POLLIN)
        signs = dict(poller.poll(_LOOK_S * 1000))
        self._ended |= {t for t, b in self._buffers.items() if signs.get(b.descriptor, 0) & ~select.POLLIN}
        return self._pid in self._ended

    def _drain(self) -> None:
        for thread, buffer in self._buffers.items():
            (head,) = struct.unpack_from("<Q", buffer.memory, _HEAD)
            (tail,) = struct.unpack_from("<Q", buffer.memory, _TAIL)
            if head != tail and self._taken < MAX_BYTES:
                start, size = tail % buffer.bytes, head - tail
                first = min(size, buffer.bytes - start)
                base = mmap.PAGESIZE
                data = buffer.memory[base + start : base + start + first]
                data += buffer.memory[base : base + size - first]
                self._chunks.setdefault(thread, []).append(data)
                self._taken += len(data)
            struct.pack_into("<Q", buffer.memory, _TAIL, head)

    def _attach_new(self) -> None:
        for entry in Path(f"/proc/{self._pid}/task").glob("[0-9]*"):
            thread = int(entry.name)
            if thread not in self._buffers and len(self._buffers) < MAX_THREADS:
                # It may be gone already.
                with contextlib.suppress(OSError):
                    self._open(thread, self.choice)


def available() -> str | None:
    """Why this system cannot have perf events at all; None where it may."""
    if platform.system() != "Linux":
        return "perf events need Linux"
    if platform.machine() not in _SYSCALL:
        return f"perf events are not known on {platform.machine()}"
    return None


def layout() -> Layout:
    """How samples of this machine are laid out."""
    return Layout(machine=platform.machine())


def _attribute(choice: Choice) -> bytes:
    """``struct perf_event_attr``."""
    kind, config = (_HARDWARE, _CPU_CYCLES) if choice.event == "cycles" else (_SOFTWARE, _CPU_CLOCK)
    flags = _FREQ | _WATERMARK | _CLOCKID | _EXCLUDE_HV
    flags |= 0 if choice.sees_kernel else _EXCLUDE_KERNEL
    sizes = layout()
    return struct.pack(
        "<IIQQQQQIIQQQQIiQIHH",
        kind,
        _ATTRIBUTE_BYTES,
        config,
        _frequency_hz(),
        LAYOUT_FLAGS,
        0,
        flags,
        _HELPER_PAGES * mmap.PAGESIZE // 2,
        0,
        0,
        0,
        0,
        sizes.register_mask,
        STACK_BYTES,
        time.CLOCK_MONOTONIC,
        0,
        0,
        0,
        0,
    )


def _perf_event_open(attribute: bytes, thread: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attribute, len(attribute))
    number = ctypes.c_long(_SYSCALL.get(platform.machine(), -1))
    descriptor: int = libc.syscall(number, buffer, thread, -1, -1, ctypes.c_ulong(_CLOEXEC))
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor


def _frequency_hz() -> int:
    try:
        limit = int(Path("/proc/sys/kernel/perf_event_max_sample_rate").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return FREQUENCY_HZ
    # Odd as well.
    return FREQUENCY_HZ if limit > FREQUENCY_HZ else max((limit - 1) | 1, 99)


def _paranoid() -> str:
    try:
        return Path("/proc/sys/kernel/perf_event_paranoid").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"
