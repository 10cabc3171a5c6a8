"""One profiled invocation: an ordinary one, run longer and sampled; its file; reading that again offline.

The file is gzipped text: one line ``# {...}`` with what `Header` says, then collapsed stacks. Everything but
the header's totals is computed from the stacks, so it can be computed again by a later version.
"""

import gzip
import io
import itertools
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated

import msgspec

from investigator import protocol
from investigator.attribution.layers import LAYERS, Layer
from investigator.engine.interface import Engine, Mount
from investigator.errors import StoredFileError
from investigator.invoke import Instruments, Result, Surroundings, invoke
from investigator.plan import Invocation, Pace
from investigator.profiling.classify import is_collector, layers_of
from investigator.profiling.memory import symbols_of
from investigator.profiling.profiler import Profiler, ProfilerKind, Taken, new_session
from investigator.profiling.samples import UnusableError, Window
from investigator.profiling.stacks import Stacks, from_lines, to_lines
from investigator.profiling.symbols import STRIPPED_ADDON
from investigator.store import TOOL, read_stored, write_atomic
from investigator.text import clean_text

PROFILE_SCHEMA = 1
SUFFIX = ".collapsed.gz"
MAX_BROKEN_SHARE = 0.05
"""Above it the rest says nothing about the whole (design.md section 8)."""
MIN_SAMPLES = 150
"""Of the main thread: the share of a layer is then known to 4 percentage points (one sigma), 1.5 over eight
rounds. An operation whose pace was learnt while the machine was busy has short passes."""
PROFILE_TIMEOUT_S = 120.0
_MAX_STORED_BYTES = 256 << 20

_Count = Annotated[int, msgspec.Meta(ge=0)]


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """First line of a stored profile."""

    schema: int = PROFILE_SCHEMA
    kind: str = "profile"
    tool: str = TOOL
    environment: str
    op: str
    """Operations of the process, joined by commas: one in the explain phase."""
    round: int
    profiler: ProfilerKind
    event: str
    lost: _Count
    calls: _Count
    """Calls of the operation in the timed passes that were sampled."""
    wall_ns: _Count
    """Their wall time."""


class ProfileReading(msgspec.Struct, frozen=True, kw_only=True):
    """A profile of one process."""

    header: Header
    stacks: Stacks
    layers: dict[Layer, int]
    """Samples of the main thread by layer; all five are there."""
    samples: int
    """Of the main thread, those with broken stacks included."""
    broken: int
    """Samples of the main thread whose layer cannot be told."""
    helper: int
    """Samples of other threads."""
    helper_gc: int
    """Those of them that worked for the collector."""
    unavailable: str | None
    """Why this profile may not be used; one sentence."""
    result: Result | None = None
    """The invocation: events and failures. None where the profile was read from its file."""
    file: Path | None = None

    @property
    def shares(self) -> dict[Layer, float]:
        """Share of each layer in the samples of the main thread that have one."""
        total = sum(self.layers.values())
        return {layer: count / total if total else 0.0 for layer, count in self.layers.items()}

    @property
    def ns_per_call(self) -> float:
        """Mean wall time of a call under the profiler, over all passes; NaN where there was none."""
        return self.header.wall_ns / self.header.calls if self.header.calls else float("nan")


def profile_invocation(
    engine: Engine,
    around: Surroundings,
    invocation: Invocation,
    *,
    paces: Mapping[str, Pace],
    passes: int,
    profiler: Profiler,
    keep: Path,
    timeout_s: float = PROFILE_TIMEOUT_S,
) -> ProfileReading:
    """Run one invocation under `profiler` and name what was sampled inside its timed passes.

    Args:
        engine: where it runs.
        around: plan, builds and data of the run.
        invocation: environment and operations; shares mean something for one operation in its process.
        paces: calls per warm-up and pass, as in the unprofiled invocations.
        passes: timed passes: of 41 ms each, 30 give some 1,200 samples.
        profiler: from `choose_profiler`.
        keep: path without ending; ``.jsonl`` gets the events, ``.collapsed.gz`` the stacks.
        timeout_s: after which the worker counts as hanging.

    Returns:
        The reading. Whatever goes wrong is in `ProfileReading.unavailable`, not an exception.

    Raises:
        EngineMissingError: the engine does not answer any more.
        HostUnfitError: the disk is full.
    """
    if profiler.kind == "none":
        return _reading(_header(invocation, profiler, (), None), {}, profiler.reason, None, None)
    fixtures = engine.inside(Mount(source=around.fixtures, target=PurePosixPath("/fixtures")))
    session = new_session(profiler, fixtures)
    try:
        result = invoke(
            engine,
            around,
            invocation,
            mode="measure",
            paces=paces,
            timeout_s=timeout_s,
            keep=keep.with_name(keep.name + ".jsonl"),
            instruments=Instruments(
                node_flags=session.node_flags,
                started=session.started,
                ended=session.ended,
                passes=passes,
            ),
        )
        timed = _timed(result)
        taken, trouble = None, _failed(result)
        if trouble is None:
            try:
                taken = session.taken(_windows(timed), _core_functions(around, invocation))
            except UnusableError as error:
                trouble = f"the profile of {invocation.environment} failed: {error}."
    finally:
        session.close()
    header = _header(invocation, profiler, timed, taken)
    stacks = taken.stacks if taken is not None else {}
    file = keep.with_name(keep.name + SUFFIX)
    if taken is not None:
        write_atomic(file, _encoded(header, stacks))
    return _reading(header, stacks, trouble, result, file if taken is not None else None)


def read_profile(path: Path) -> ProfileReading:
    """Read a stored profile.

    Raises:
        StoredFileError: it is damaged, or was written by a newer version.
    """
    try:
        # Bounded: a small file may hold endless zeros.
        with gzip.open(io.BytesIO(read_stored(path)), "rb") as file:
            data = file.read(_MAX_STORED_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise StoredFileError(f"{path} cannot be read ({error}); measure the run again.") from error
    if len(data) > _MAX_STORED_BYTES:
        raise StoredFileError(f"{path} is larger than any profile.")
    first, _, rest = data.decode("utf-8", "replace").partition("\n")
    try:
        schema = msgspec.json.decode(first.removeprefix("# "), type=_Schema).schema
        if schema > PROFILE_SCHEMA:
            raise StoredFileError(
                f"{path} has schema {schema}, this version knows {PROFILE_SCHEMA}; update investigate."
            )
        header = msgspec.json.decode(first.removeprefix("# "), type=Header)
        stacks = from_lines(rest.splitlines())
    except (msgspec.MsgspecError, ValueError) as error:
        raise StoredFileError(f"{path} is damaged ({clean_text(str(error), 200)}).") from error
    return _reading(header, stacks, None, None, path)


class _Schema(msgspec.Struct, frozen=True):
    schema: int


def _reading(
    header: Header, stacks: Stacks, trouble: str | None, result: Result | None, file: Path | None
) -> ProfileReading:
    counted, broken = layers_of(stacks)
    layers = {layer: counted.get(layer, 0) for layer in LAYERS}
    samples = sum(layers.values()) + broken
    helpers = {stack: count for stack, count in stacks.items() if stack.thread == "helper"}
    return ProfileReading(
        header=header,
        stacks=stacks,
        layers=layers,
        samples=samples,
        broken=broken,
        helper=sum(helpers.values()),
        helper_gc=sum(count for stack, count in helpers.items() if is_collector(stack)),
        unavailable=trouble or _unusable(header, stacks, samples, broken),
        result=result,
        file=file,
    )


def _unusable(header: Header, stacks: Stacks, samples: int, broken: int) -> str | None:
    what = f"the profile of {header.op} on {header.environment}"
    if samples < MIN_SAMPLES:
        return f"{what} has only {samples} samples of its main thread."
    if broken <= MAX_BROKEN_SHARE * samples:
        return None
    stripped = sum(count for stack, count in stacks.items() if STRIPPED_ADDON in stack.frames)
    if stripped > broken / 2:
        return f"{what} cannot name the addon's functions: its binary is stripped; build from source."
    return f"{what} has {100 * broken / samples:.0f} % broken stacks, more than 5 %."


def _header(
    invocation: Invocation, profiler: Profiler, timed: Sequence[protocol.Pass], taken: Taken | None
) -> Header:
    return Header(
        environment=invocation.environment,
        op=",".join(invocation.operations),
        round=invocation.round,
        profiler=profiler.kind,
        event=taken.event if taken is not None else profiler.event,
        lost=taken.lost if taken is not None else 0,
        calls=sum(each.calls for each in timed),
        wall_ns=sum(each.wall_ns for each in timed),
    )


def _timed(result: Result) -> tuple[protocol.Pass, ...]:
    return tuple(e for e in result.events if isinstance(e, protocol.Pass) and e.phase == "pass")


def _windows(timed: Sequence[protocol.Pass]) -> list[Window]:
    """Passes as windows, sorted; a worker that claims overlapping ones loses the later."""
    windows: list[Window] = []
    for window in sorted(Window(each.start_ns, each.start_ns + each.wall_ns) for each in timed):
        if not windows or window.start_ns > windows[-1].end_ns:
            windows.append(window)
    return windows


def _failed(result: Result) -> str | None:
    return f"the profiled process failed: {result.failures[0].reason}" if result.failures else None


def _core_functions(around: Surroundings, invocation: Invocation) -> frozenset[str]:
    """Functions of the amalgamation that the environment's addon was linked with."""
    build = around.builds.get(invocation.environment)
    if build is None or build.sqlite3_object_sha256 is None:
        return frozenset()
    return symbols_of(build.directory / "sqlite3.o").function_names()


def _encoded(header: Header, stacks: Stacks) -> bytes:
    """The file's bytes; equal profiles give equal files."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        head = f"# {msgspec.json.encode(header).decode()}"
        for line in itertools.chain((head,), to_lines(stacks)):
            file.write(line.encode() + b"\n")
    return buffer.getvalue()
