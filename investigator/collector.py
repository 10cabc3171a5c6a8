"""What the collector of each environment did, with what means, and what keeping its accounts cost.

Environments make the same calls in a pass, but not equally many passes (the baseline runs twice): what they
did is told for one warm lap of every operation, the mean over all laps of each.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import pandas as pd

from investigator.invoke import read_events
from investigator.measure import Calibration, RoundRecord
from investigator.protocol import Event, Hello, Pass
from investigator.store import RunFolder

MOST_KINDS = 16
"""V8 knows five."""


class Collections(msgspec.Struct, frozen=True, kw_only=True):
    """Collections of one kind on the main thread, in one warm lap of every operation."""

    kind: str
    """``scavenge``, ``minor_mark_sweep``, ``mark_sweep_compact``, ``incremental``, ``weak``."""
    count: float
    pause_ns: float


class CollectorFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Of one environment; None where no process of it told."""

    heap_limit_bytes: int | None = None
    """Size that V8 lets the heap grow to."""
    semi_space_bytes: int | None = None
    """Half of the young generation as a process begins with it."""
    semi_space_largest_bytes: int | None = None
    """The largest it was after any pass: it grows with what survives."""
    gc_accounting_ns: float | None = None
    """What observing adds to one collection: median over the processes of the calibration."""
    operations: int = 0
    """Operations with a warm pass, of which the sums below are made."""
    warm_ns: float | None = None
    """Wall time of one warm lap of every operation."""
    collections: tuple[Collections, ...] = ()
    """By kind, in alphabetical order; kinds that never came are left out."""
    helper_cpu_ns: float | None = None
    """CPU time of all threads but the main one in those passes: collector and compiler threads."""
    external_largest_bytes: int | None = None
    """Most memory outside of the heap that JavaScript objects held after any pass."""


def collector_facts(
    folder: RunFolder, calibration: Calibration, records: Sequence[RoundRecord]
) -> dict[str, CollectorFacts]:
    """Read them from the finished rounds and the calibration; by environment identifier."""
    seen: dict[str, Seen] = {}
    for identifier, events in _by_environment(folder, records):
        own = seen.setdefault(identifier, Seen())
        for event in events:
            own.add(event)
    names = dict.fromkeys([*seen, *calibration.gc_accounting_ns])
    return {name: seen.get(name, Seen()).facts(calibration.gc_accounting_ns.get(name)) for name in names}


def accounting_share(facts: Mapping[str, CollectorFacts], table: pd.DataFrame) -> float | None:
    """Largest share of the warm time of an operation that its accounting took; None where nobody knows."""
    shares = []
    for identifier, found in facts.items():
        if found.gc_accounting_ns is not None:
            own = table[(table["environment"] == identifier) & (table["phase"] == "pass")]
            sums = own.groupby("op")[["gc_count", "wall_ns"]].sum()
            shares += (sums["gc_count"] * found.gc_accounting_ns / sums["wall_ns"]).tolist()
    return max(shares, default=None)


def _by_environment(
    folder: RunFolder, records: Sequence[RoundRecord]
) -> Iterator[tuple[str, tuple[Event, ...]]]:
    for record in records:
        for measured in record.invocations:
            events, _ = read_events(folder.round_path(record.number) / measured.events)
            yield measured.invocation.environment, events


class _Passes:
    """Sums over the warm passes of one operation."""

    def __init__(self) -> None:
        self.passes = 0
        self.wall_ns = 0
        self.kinds: dict[str, tuple[int, int]] = {}
        self.told = 0
        """Passes that know the main thread's CPU time."""
        self.helper_us = 0

    def add(self, event: Pass) -> None:
        self.passes += 1
        self.wall_ns += event.wall_ns
        for gc in event.gc:
            count, pause_ns = self.kinds.get(gc.kind, (0, 0))
            self.kinds[gc.kind] = (count + gc.count, pause_ns + gc.pause_ns)
        if event.main_cpu_us is not None:
            self.told += 1
            # Differences of two clocks: below zero by microseconds where no other thread ran.
            self.helper_us += event.cpu_user_us + event.cpu_system_us - event.main_cpu_us


class Seen:
    """What the processes of one environment told."""

    def __init__(self) -> None:
        self.hello: Hello | None = None
        self.semi_space_bytes: int | None = None
        self.external_bytes: int | None = None
        self.warm: dict[str, _Passes] = {}

    def add(self, event: Event) -> None:
        """Take in one event of one process."""
        if isinstance(event, Hello) and self.hello is None:
            self.hello = event
        if isinstance(event, Pass):
            self.semi_space_bytes = _larger(self.semi_space_bytes, event.semi_space_bytes)
            self.external_bytes = _larger(self.external_bytes, event.external_bytes)
            if event.phase == "pass":
                self.warm.setdefault(event.op, _Passes()).add(event)

    def facts(self, accounting_ns: float | None) -> CollectorFacts:
        """All of it; `accounting_ns` is what observing adds to one collection."""
        warm = list(self.warm.values())
        told = warm and all(own.told for own in warm)
        return CollectorFacts(
            heap_limit_bytes=self.hello.heap_limit_bytes if self.hello else None,
            semi_space_bytes=self.hello.semi_space_bytes if self.hello else None,
            semi_space_largest_bytes=self.semi_space_bytes,
            gc_accounting_ns=accounting_ns,
            operations=len(warm),
            warm_ns=sum(own.wall_ns / own.passes for own in warm) if warm else None,
            collections=tuple(_collections(warm)),
            helper_cpu_ns=max(0.0, sum(own.helper_us / own.told for own in warm) * 1000) if told else None,
            external_largest_bytes=self.external_bytes,
        )


def _larger(one: int | None, other: int | None) -> int | None:
    return max((size for size in (one, other) if size is not None), default=None)


def _collections(warm: Sequence[_Passes]) -> Iterator[Collections]:
    for kind in sorted({kind for own in warm for kind in own.kinds})[:MOST_KINDS]:
        parts = [(own.kinds.get(kind, (0, 0)), own.passes) for own in warm]
        yield Collections(
            kind=kind,
            count=sum(count / passes for (count, _), passes in parts),
            pause_ns=sum(pause_ns / passes for (_, pause_ns), passes in parts),
        )
