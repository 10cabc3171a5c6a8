"""Raw events to the table of samples: one row a pass, units in the column names."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from investigator.errors import StoredFileError
from investigator.plan import Invocation
from investigator.protocol import Event, Pass

WALL_OVER_CPU_LIMIT = 1.02
"""Wall over CPU time beyond the usual ratio of the operation from which a pass counts as disturbed."""
WAIT_LIMIT_NS = 200_000
"""Waiting shorter than this disturbs nothing, whatever its share: cold passes can be very short."""
STEAL_LIMIT_PCT = 2.0
SWITCHES_PER_S_LIMIT = 100.0
SWITCHES_LIMIT = 3
"""A pass with fewer involuntary switches is not disturbed by them, whatever their rate."""

UNKNOWN_NS = -1
"""Stands in a column of times that a run did not measure."""
LATER_COLUMNS = {
    "main_user_ns": UNKNOWN_NS,
    "main_system_ns": UNKNOWN_NS,
    "main_gc_cpu_ns": UNKNOWN_NS,
    "lap": 0,
}
"""Columns that tables of older runs do not have, with what stands for them."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One timed lap of one cell: a row of measurements.csv."""

    round: int
    """Number of the round, from 1: the block of the statistics."""
    position: int
    """Place of the process in its round, from 0."""
    environment: str
    """Identifier of the environment, e.g. ``node24.11.1+bsm12.11.1``."""
    twin: bool
    """Whether the process is its environment's second one in the round; the baseline's is the A/A twin."""
    family: str
    """``sqlite`` or ``js``."""
    op: str
    """Name of the operation."""
    phase: str
    """``cold`` for the very first calls in the process, ``pass`` for a warm pass."""
    index: int
    """Number of the pass in its process, from 0; 0 for the cold one."""
    calls: int
    """Calls of the operation in this lap: divide times by it."""
    start_ns: int
    """Start of the lap by the monotonic clock of the process (``process.hrtime``)."""
    wall_ns: int
    """Wall time of all calls together."""
    cpu_user_ns: int
    """CPU time in user mode of all threads of the process."""
    cpu_system_ns: int
    """CPU time in the kernel of all threads of the process."""
    gc_pause_ns: int
    """Time that the collector held up the main thread; part of `wall_ns`."""
    gc_count: int
    """Collections of all kinds on the main thread."""
    gc_scavenge_count: int
    """Collections of the young generation among them."""
    gc_mark_sweep_count: int
    """Full collections among them."""
    involuntary_switches: int
    """Times the kernel took the processor from a thread of the process."""
    voluntary_switches: int
    """Times a thread of the process waited for something."""
    steal_pct: float
    """Share of CPU time stolen by the hypervisor during the invocation, in percent."""
    rss_bytes: int
    """Resident memory of the process after the pass."""
    heap_used_bytes: int
    """Used part of the JavaScript heap after the pass."""
    external_bytes: int
    """Memory outside the heap that JavaScript objects hold after the pass."""
    disturbed: bool
    """Wall over CPU, steal or involuntary switches beyond their limits: kept, and marked."""
    main_user_ns: int = UNKNOWN_NS
    """CPU time in user mode of the main thread alone; -1 where no probe read it."""
    main_system_ns: int = UNKNOWN_NS
    """CPU time in the kernel of the main thread alone; -1 where no probe read it."""
    main_gc_cpu_ns: int = UNKNOWN_NS
    """CPU time of the main thread inside collections; -1 where no probe read it."""
    lap: int = 0
    """Number of the lap in its pass, from 0: the clock is read several times in a pass."""


Columns = dict[str, NDArray[Any]]
"""Passes by column of `Sample`."""

_MARKED_BY = (
    "op",
    "phase",
    "wall_ns",
    "cpu_user_ns",
    "cpu_system_ns",
    "involuntary_switches",
    "steal_pct",
)

COLUMN_TYPES: dict[str, str] = {
    field.name: {int: "int64", float: "float64", bool: "bool", str: "str"}[field.type]
    for field in msgspec.structs.fields(Sample)
}
"""Column of measurements.csv -> pandas type, in the order of the file."""


def columns_from_events(
    invocation: Invocation, family_of: Mapping[str, str], events: Sequence[Event], steal_pct: float
) -> Columns:
    """The passes of one invocation by column of `Sample`, in its order; ``disturbed`` is left out.

    Arrays, because a million passes take a fifth of the memory of lists of numbers.
    """
    passes = [event for event in events if isinstance(event, Pass)]
    count = len(passes)
    names = {name: name for name in family_of}
    ops = [names[event.op] for event in passes]  # one text for all passes, instead of one for each
    collected = _collections(passes)

    def integers(name: str) -> NDArray[np.int64]:
        return np.fromiter(map(attrgetter(name), passes), np.int64, count)

    def nanoseconds(name: str) -> NDArray[np.int64]:
        read_us = map(attrgetter(name), passes)
        values = (UNKNOWN_NS if value_us is None else value_us * 1000 for value_us in read_us)
        return np.fromiter(values, np.int64, count)

    return {
        "round": np.full(count, invocation.round, np.int64),
        "position": np.full(count, invocation.position, np.int64),
        "environment": np.full(count, invocation.environment, object),
        "twin": np.full(count, invocation.twin, np.bool_),
        "family": np.array([family_of[op] for op in ops], object),
        "op": np.array(ops, object),
        "phase": np.array([event.phase for event in passes], object),
        "index": integers("index"),
        "calls": integers("calls"),
        "start_ns": integers("start_ns"),
        "wall_ns": integers("wall_ns"),
        "cpu_user_ns": integers("cpu_user_us") * 1000,
        "cpu_system_ns": integers("cpu_system_us") * 1000,
        "gc_pause_ns": collected[:, 0],
        "gc_count": collected[:, 1],
        "gc_scavenge_count": collected[:, 2],
        "gc_mark_sweep_count": collected[:, 3],
        "involuntary_switches": integers("involuntary_switches"),
        "voluntary_switches": integers("voluntary_switches"),
        "steal_pct": np.full(count, steal_pct, np.float64),
        "rss_bytes": integers("rss_bytes"),
        "heap_used_bytes": integers("heap_used_bytes"),
        "external_bytes": integers("external_bytes"),
        "main_user_ns": nanoseconds("main_user_us"),
        "main_system_ns": nanoseconds("main_system_us"),
        "main_gc_cpu_ns": nanoseconds("main_gc_cpu_us"),
        "lap": integers("lap"),
    }


def _collections(passes: Sequence[Pass]) -> NDArray[np.int64]:
    """One row a pass: pause, collections of all kinds, of the young generation, full ones."""
    rows = np.zeros((len(passes), 4), np.int64)
    for place, event in enumerate(passes):
        if event.gc:
            rows[place] = (
                sum(gc.pause_ns for gc in event.gc),
                sum(gc.count for gc in event.gc),
                sum(gc.count for gc in event.gc if gc.kind in {"scavenge", "minor_mark_sweep"}),
                sum(gc.count for gc in event.gc if gc.kind == "mark_sweep_compact"),
            )
    return rows


def disturbed(
    *,
    op: NDArray[np.str_],
    cold: NDArray[np.bool_],
    wall_ns: NDArray[np.float64],
    cpu_ns: NDArray[np.float64],
    involuntary_switches: NDArray[np.float64],
    steal_pct: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Which passes something from outside has disturbed; all arrays have one entry a pass.

    A pass waits when its wall time exceeds its CPU time (of all threads, so that collector threads make room)
    by more than 2 % of the usual ratio of its operation. That is 1 for work on the processor. An operation
    that waits in every pass, as writes that reach the disk do, is no disturbance: where even its least
    waiting pass lies beyond the limit, the median ratio of its passes counts as usual. Cold passes, which
    also read files and compile, are compared among themselves.
    """
    cell = pd.factorize(pd.Series(op).astype("str"))[0] * 2 + cold
    ratio = np.divide(wall_ns, cpu_ns, out=np.full(len(wall_ns), np.inf), where=cpu_ns > 0)
    by_cell = pd.Series(ratio).groupby(cell)
    waits_always = by_cell.transform("min").to_numpy() > WALL_OVER_CPU_LIMIT
    usual = np.where(waits_always, by_cell.transform("median").to_numpy(), 1.0)
    usual[~np.isfinite(usual)] = 1.0
    waited_ns = wall_ns - usual * cpu_ns
    waits = (waited_ns > WAIT_LIMIT_NS) & (waited_ns > (WALL_OVER_CPU_LIMIT - 1.0) * usual * cpu_ns)
    switched = (involuntary_switches >= SWITCHES_LIMIT) & (
        involuntary_switches * 1e9 > SWITCHES_PER_S_LIMIT * wall_ns
    )
    return np.asarray(waits | switched | (steal_pct > STEAL_LIMIT_PCT), dtype=np.bool_)


def _marks(columns: Columns) -> NDArray[np.bool_]:
    return disturbed(
        op=columns["op"],
        cold=columns["phase"] == "cold",
        wall_ns=columns["wall_ns"].astype(np.float64),
        cpu_ns=(columns["cpu_user_ns"] + columns["cpu_system_ns"]).astype(np.float64),
        involuntary_switches=columns["involuntary_switches"].astype(np.float64),
        steal_pct=columns["steal_pct"].astype(np.float64),
    )


def clean_passes(columns: Columns) -> dict[str, int]:
    """Undisturbed warm passes of each operation of one process: one with fewer than three is measured again.

    Marks are made with what this process alone shows; `joined` makes them with all that are known.
    """
    warm, clean = columns["phase"] == "pass", ~_marks(columns)
    return {str(op): int(clean[warm & (columns["op"] == op)].sum()) for op in np.unique(columns["op"][warm])}


def joined(parts: Sequence[Columns]) -> pd.DataFrame:
    """The table of many invocations, from their columns, with ``disturbed`` marked over all of them.

    Goes column by column and empties `parts`: a million passes never exist twice, nor as objects.
    """
    columns = {}
    for name, kind in COLUMN_TYPES.items():
        if name != "disturbed":
            none = np.empty(0, object if kind == "str" else kind)
            columns[name] = pd.Series(np.concatenate([none, *(part.pop(name) for part in parts)]), dtype=kind)
    frame = pd.DataFrame(columns, copy=False)
    marked = frame.assign(disturbed=_marks({name: frame[name].to_numpy() for name in _MARKED_BY}))
    return marked[list(COLUMN_TYPES)]


def to_csv(frame: pd.DataFrame, target: Path | IO[str]) -> None:
    """Write measurements.csv; ``pandas.read_csv(path)`` loads it again."""
    frame.to_csv(target, index=False, columns=list(COLUMN_TYPES), lineterminator="\n")


def from_csv(source: Path | IO[str]) -> pd.DataFrame:
    """Read measurements.csv with its types.

    Raises:
        StoredFileError: a column is missing, or a value cannot be read.
    """
    try:
        # The C parser would read an operation called "null" as a missing value.
        frame = pd.read_csv(source, dtype=COLUMN_TYPES, keep_default_na=False)
    except (ValueError, TypeError, OSError) as error:
        raise StoredFileError(
            f"{source}: the table of measurements cannot be read ({_first_line(error)}); "
            "it can be made again from the raw events of the run"
        ) from error
    frame = frame.assign(
        **{name: value for name, value in LATER_COLUMNS.items() if name not in frame.columns}
    )
    missing = [name for name in COLUMN_TYPES if name not in frame.columns]
    if missing:
        raise StoredFileError(
            f"{source}: the table of measurements has no column {missing[0]}; "
            "it can be made again from the raw events of the run"
        )
    return frame[list(COLUMN_TYPES)]


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
