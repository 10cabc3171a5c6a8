"""What the collector of each environment had to work with, and what keeping its accounts cost."""

from collections.abc import Iterator, Sequence

import msgspec

from investigator.invoke import read_events
from investigator.measure import Calibration, RoundRecord
from investigator.protocol import Event, Hello, Pass
from investigator.samples import Sample
from investigator.store import RunFolder


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


def collector_facts(
    folder: RunFolder, calibration: Calibration, records: Sequence[RoundRecord]
) -> dict[str, CollectorFacts]:
    """Read them from the finished rounds and the calibration; by environment identifier."""
    events: dict[str, list[Event]] = {}
    for identifier, found in _by_environment(folder, records):
        events.setdefault(identifier, []).extend(found)
    names = dict.fromkeys([*events, *calibration.gc_accounting_ns])
    return {name: _facts(events.get(name, []), calibration.gc_accounting_ns.get(name)) for name in names}


def accounting_share(facts: dict[str, CollectorFacts], rows: Sequence[Sample]) -> float | None:
    """Largest share of the warm time of an operation that its accounting took; None where nobody knows."""
    shares = []
    for identifier, found in facts.items():
        if found.gc_accounting_ns is None:
            continue
        own = [row for row in rows if row.environment == identifier and row.phase == "pass"]
        for op in {row.op for row in own}:
            passes = [row for row in own if row.op == op]
            collections = sum(row.gc_count for row in passes)
            shares.append(collections * found.gc_accounting_ns / sum(row.wall_ns for row in passes))
    return max(shares, default=None)


def _by_environment(
    folder: RunFolder, records: Sequence[RoundRecord]
) -> Iterator[tuple[str, tuple[Event, ...]]]:
    for record in records:
        for measured in record.invocations:
            events, _ = read_events(folder.round_path(record.number) / measured.events)
            yield measured.invocation.environment, events


def _facts(events: Sequence[Event], accounting: float | None) -> CollectorFacts:
    hello = next((event for event in events if isinstance(event, Hello)), None)
    sizes = [event.semi_space_bytes for event in events if isinstance(event, Pass)]
    return CollectorFacts(
        heap_limit_bytes=hello.heap_limit_bytes if hello else None,
        semi_space_bytes=hello.semi_space_bytes if hello else None,
        semi_space_largest_bytes=max((size for size in sizes if size is not None), default=None),
        gc_accounting_ns=accounting,
    )
