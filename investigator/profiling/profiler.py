"""The two ways to sample a worker: perf events of the kernel, from outside, or V8's own profiler, inside.

A session belongs to one invocation: it gives Node its flags, attaches, takes what was left, and names stacks.
"""

import contextlib
import platform
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal, Protocol

import msgspec

from investigator.engine.interface import Engine, Mount, Task
from investigator.exchange import UnreadableError, take
from investigator.profiling import events
from investigator.profiling.memory import Mapping, Memory, read_maps
from investigator.profiling.repair import Mender
from investigator.profiling.samples import Sample, UnusableError, Window, in_windows, lost
from investigator.profiling.stacks import Frame, Stack, Stacks
from investigator.profiling.symbols import RawStack, Symbolizer, kernel_symbols
from investigator.profiling.v8log import MAX_LOG_BYTES, Log, Tick, read_log

ProfilerKind = Literal["perf", "v8", "none"]

V8_INTERVAL_US = 401
"""Of V8's profiler: odd, and rare enough for signals not to slow the worker down."""
_SCRIPT = "node_fixtures/profiling/anchor.cjs"
_LOG, _ANCHOR_FILE, _MAPS = "v8.log", "anchor.txt", "maps.txt"
_MAX_MAPS_BYTES = 4 << 20
_MIN_TRIAL_SAMPLES = 20
_TRIAL = ("dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=1500000")
"""Busy for about half a second, most of it in the kernel."""
_ROOT = Frame("node", "node::Start")
_COLLECTOR = Frame("node", "v8::internal::Heap::CollectGarbage")
_API = Frame("node", "Builtins_CallApiCallback")
_IN_API = re.compile(r"v8::(?!internal::|base::|bigint::|platform::)")
_UNDER_JS = Frame("unknown", "[libc under JS]")


class Profiler(msgspec.Struct, frozen=True, kw_only=True):
    """How profiles are taken on this machine."""

    kind: ProfilerKind
    reason: str
    """One sentence: what was found, and why nothing better."""
    event: str = ""
    """What perf counts: ``cycles``, ``cpu-clock``."""
    sees_kernel: bool = False
    """Whether time in the kernel is sampled; else the layer ``os`` is missing from profiles."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What a session brought home."""

    stacks: Stacks
    lost: int
    event: str


class Session(Protocol):
    """One invocation under a profiler."""

    def node_flags(self, out: PurePosixPath) -> tuple[str, ...]:
        """Flags for Node, given the folder that the worker may write into."""

    def started(self, pid: int, task: Task) -> None:
        """The worker runs."""

    def ended(self, out: Path) -> None:
        """It has ended; `out` is that folder, on this machine."""

    def taken(self, windows: Sequence[Window], core: Collection[str]) -> Taken:
        """The samples inside `windows`; `core` names the functions of SQLite.

        Raises:
            UnusableError: there are none, and why.
        """

    def close(self) -> None:
        """Remove what is left."""


# -- choosing ---------------------------------------------------------------------------------------------


def choose_profiler(engine: Engine) -> Profiler:
    """Try perf on a task of half a second; V8's profiler where that does not work, none outside of Linux."""
    why_not, choice = _try_perf(engine)
    if choice is not None:
        blind = "" if choice.sees_kernel else "; not in the kernel (perf_event_paranoid), so without os"
        return Profiler(
            kind="perf",
            reason=f"perf samples {choice.event} of all threads{blind}.",
            event=choice.event,
            sees_kernel=choice.sees_kernel,
        )
    if engine.name == "docker" or _on_linux():
        return Profiler(
            kind="v8",
            reason=f"V8's own profiler, main thread only, because {why_not}.",
            event="SIGPROF",
            sees_kernel=False,
        )
    return Profiler(
        kind="none",
        reason=f"profiles cannot be taken: they need Linux, and {why_not}; try --engine docker.",
    )


def _on_linux() -> bool:
    return sys.platform == "linux"


def _try_perf(engine: Engine) -> tuple[str, events.Choice | None]:
    """Why perf events cannot be had, or what they count."""
    if (missing := events.available()) is not None:
        return missing, None
    session = PerfSession(PurePosixPath("/fixtures"))
    task = Task(command=_TRIAL, purpose="a look whether perf works", timeout_s=20.0)
    pids: list[int] = []

    def started(pid: int) -> None:
        pids.append(pid)
        session.started(pid, task)

    with contextlib.closing(session):
        engine.run(task, started)
        if not pids:
            return "the processes of the engine are not processes of this machine", None
        try:
            seen = sum(1 for _ in session.samples([Window(0, 1 << 62)]))
        except UnusableError as error:
            return str(error), None
    if seen < _MIN_TRIAL_SAMPLES:
        return "perf attaches but takes no samples", None
    return "", session.choice


def new_session(profiler: Profiler, fixtures: PurePosixPath) -> Session:
    """A session of the chosen kind (not ``none``); the task sees the packaged folders at `fixtures`."""
    return PerfSession(fixtures) if profiler.kind == "perf" else V8Session(fixtures)


# -- perf -------------------------------------------------------------------------------------------------


class PerfSession:
    """perf events from outside, and V8's log of generated code from inside."""

    def __init__(self, fixtures: PurePosixPath) -> None:
        """Preload a script from the packaged folders, which the task sees at `fixtures`."""
        self._script = fixtures / _SCRIPT
        self._sampler: events.Sampler | None = None
        self._records: dict[int, bytes] = {}
        self._pid = 0
        self._mounts: tuple[Mount, ...] = ()
        self._maps: tuple[Mapping, ...] = ()
        self._log: Log | None = None
        self._trouble = "the process ended before perf could attach, or the engine does not show it"
        self.choice: events.Choice | None = None

    def node_flags(self, out: PurePosixPath) -> tuple[str, ...]:
        """Not ``--perf-basic-prof``: before V8 12 its map lands in the container's own /tmp."""
        return (
            "--log-code",
            "--no-logfile-per-isolate",
            f"--logfile={out / _LOG}",
            f"--require={self._script}",
        )

    def started(self, pid: int, task: Task) -> None:
        """Attach while the worker sets up."""
        self.close()
        self._pid, self._mounts = pid, task.mounts
        try:
            self._sampler = events.Sampler(pid)
            self.choice = self._sampler.choice
        except UnusableError as error:
            self._trouble = str(error)

    def ended(self, out: Path) -> None:
        """Take V8's log, and the mappings."""
        self._log = _take_log(out)
        self._maps = _take_maps(out)

    def samples(self, windows: Sequence[Window]) -> Iterator[Sample]:
        """Samples without names.

        Raises:
            UnusableError: the kernel did not let us attach.
        """
        if self._sampler is not None:
            sampler, self._sampler = self._sampler, None
            self._records = sampler.finish()
        if not self._records:
            raise UnusableError(self._trouble)
        return in_windows(self._records, self._pid, windows)

    def taken(self, windows: Sequence[Window], core: Collection[str]) -> Taken:
        """Samples with names."""
        samples = self.samples(windows)
        if self._log is None or not self._maps:
            raise UnusableError("the worker left no readable log of its generated code, or of its mappings")
        memory = Memory(self._maps, self._mounts)
        mender = Mender(memory, machine=platform.machine())
        raw = Counter(RawStack("main" if s.main else "helper", mender.chain(s)) for s in samples)
        symbolizer = Symbolizer(memory, self._log.codes, core=core, kernel=kernel_symbols())
        return Taken(
            stacks=symbolizer.stacks(raw),
            lost=lost(self._records),
            event=self.choice.event if self.choice is not None else "",
        )

    def close(self) -> None:
        """Detach."""
        if self._sampler is not None:
            self._sampler.close()
            self._sampler = None


# -- V8's own profiler ------------------------------------------------------------------------------------


class V8Session:
    """``--prof``: the main thread only, and of C++ only the innermost function.

    Who called that is known from V8's own state: JS (then it is the engine's), or C++ through the API (then
    it is the boundary). libc under JS could be either, so such stacks are broken.
    """

    def __init__(self, fixtures: PurePosixPath) -> None:
        """Preload a script from the packaged folders, which the task sees at `fixtures`."""
        self._script = fixtures / _SCRIPT
        self._mounts: tuple[Mount, ...] = ()
        self._log: Log | None = None
        self._origin_ns: int | None = None
        self._maps: tuple[Mapping, ...] = ()

    def node_flags(self, out: PurePosixPath) -> tuple[str, ...]:
        """Flags of V8, and the script that makes the clocks comparable."""
        return (
            "--prof",
            f"--prof-sampling-interval={V8_INTERVAL_US}",
            "--no-logfile-per-isolate",
            f"--logfile={out / _LOG}",
            f"--require={self._script}",
        )

    def started(self, pid: int, task: Task) -> None:  # noqa: ARG002 - nothing attaches
        """Remember where its files lie."""
        self._mounts = task.mounts

    def ended(self, out: Path) -> None:
        """Take log, clock and mappings."""
        self._log = _take_log(out)
        with contextlib.suppress(UnreadableError, ValueError):
            anchor_ns = int(take(out / _ANCHOR_FILE, 40))
            if self._log is not None and self._log.anchor_us is not None:
                self._origin_ns = anchor_ns - self._log.anchor_us * 1000
        self._maps = _take_maps(out)

    def taken(self, windows: Sequence[Window], core: Collection[str]) -> Taken:
        """Samples with names."""
        if self._log is None or not self._log.ticks:
            raise UnusableError("V8 left no readable log of its samples")
        if self._origin_ns is None:
            raise UnusableError("V8's clock cannot be compared with that of the passes")
        mappings = self._maps or tuple(
            Mapping(start=lib.start, end=lib.end, file_offset=0, path=lib.path) for lib in self._log.libraries
        )
        symbolizer = Symbolizer(Memory(mappings, self._mounts), self._log.codes, core=core)
        counts: dict[str, Counter[RawStack]] = {}
        for tick in self._log.ticks:
            at_ns = self._origin_ns + tick.time_us * 1000
            if any(window.start_ns <= at_ns <= window.end_ns for window in windows):
                raw = _raw(tick)
                counts.setdefault("callback" if tick.callback else tick.state, Counter())[raw] += 1
        stacks: Counter[Stack] = Counter()
        for state, samples in counts.items():
            for stack, count in symbolizer.stacks(samples).items():
                stacks[_completed(stack, state)] += count
        return Taken(stacks=stacks, lost=0, event="SIGPROF")

    def close(self) -> None:
        """Nothing is left."""


def _raw(tick: Tick) -> RawStack:
    """The innermost function, the C++ function that JS had called, the JS frames."""
    # Frames outside of the innermost are looked up one byte below, as return addresses are.
    called = (tick.callback + 1,) if tick.callback else ()
    return RawStack("main", (tick.pc, *called, *tick.frames))


def _completed(stack: Stack, state: str) -> Stack:
    """With a root, for V8 walks all of the JS; without what is no code; and with what the state tells."""
    *outer, leaf = stack.frames
    known = [frame for frame in outer if frame.origin != "unknown"]
    if state == "collector":
        known.append(_COLLECTOR)
    elif known and (state == "api" or (state == "js" and _IN_API.match(leaf.symbol))):
        known.append(_API)
    elif state == "js" and leaf.origin == "libc":
        known.append(_UNDER_JS)
    return Stack("main", (_ROOT, *known, leaf))


def _take_log(out: Path) -> Log | None:
    try:
        text = take(out / _LOG, MAX_LOG_BYTES).decode("utf-8", "replace")
    except UnreadableError:
        return None
    return read_log(text.splitlines())


def _take_maps(out: Path) -> tuple[Mapping, ...]:
    """Executable mappings that the worker had at its end."""
    try:
        return read_maps(take(out / _MAPS, _MAX_MAPS_BYTES).decode("utf-8", "replace"))
    except UnreadableError:
        return ()
