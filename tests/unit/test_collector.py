"""What the collector had to work with, and what accounting for it cost, from the events of a run."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pandas as pd
import pytest

from investigator.collector import Collections, CollectorFacts, Seen, accounting_share, collector_facts
from investigator.measure import calibrate, cells_left, measure_round, read_rounds
from investigator.protocol import Event, Gc, Pass
from investigator.records import read_table
from investigator.samples import joined
from tests.fakes.worker_engine import WorkerEngine
from tests.unit.test_measure import BASE, OTHER, bench_of, cost


def test_facts_come_from_the_processes_of_each_environment(tmp_path: Path) -> None:
    told = {"heap_limit_bytes": 4 << 30, "semi_space_bytes": 1 << 20, "gc_accounting_ns": 900}
    bench = bench_of(tmp_path, WorkerEngine(cost, hello=told))
    calibration = calibrate(bench, ())
    assert calibration.gc_accounting_ns == {BASE: 900.0, OTHER: 900.0}
    measure_round(bench, calibration, 1, (), cells_left(bench.plan, ()))
    records = read_rounds(bench.folder)
    found = collector_facts(bench.folder, calibration, records)
    for facts in (found[BASE], found[OTHER]):
        assert (facts.heap_limit_bytes, facts.semi_space_bytes) == (4 << 30, 1 << 20)
        assert facts.gc_accounting_ns == 900.0
    table = read_table(bench.folder, bench.plan, records)
    collected = table.assign(gc_count=[10 if name == OTHER else 0 for name in table["environment"]])
    assert accounting_share(found, collected) == pytest.approx(largest_share(collected))


def largest_share(table: pd.DataFrame) -> float:
    own = table[(table["environment"] == OTHER) & (table["phase"] == "pass")]
    return max(9_000 * len(rows) / float(rows["wall_ns"].sum()) for _, rows in own.groupby("op"))


def test_what_was_collected_is_told_for_one_pass_of_every_operation() -> None:
    """Whatever the number of processes: the baseline has two, and a median would hide rare collections."""
    number = 0

    def events(first: int) -> Iterator[Pass]:
        nonlocal number
        for k in range(4):
            number += 1
            yield warm_pass(
                "select" if k < 2 else "parse",
                gc=[Gc(kind="scavenge", count=3, pause_ns=3000)] if k == first else [],
                cpu_user_us=1500,
                main_cpu_us=1000,
                external_bytes=number << 20,
            )

    found = facts_of([*events(first=0), *events(first=3)])
    assert found.operations == 2
    assert found.warm_ns == pytest.approx(2 * 2_000_000)
    # One of four passes of each operation collected three times.
    assert found.collections == (Collections(kind="scavenge", count=1.5, pause_ns=1500.0),)
    assert found.helper_cpu_ns == pytest.approx(2 * 500_000)
    assert found.external_largest_bytes == 8 << 20


def test_cold_passes_have_no_part_in_it() -> None:
    cold = warm_pass("select", phase="cold", gc=[Gc(kind="scavenge", count=9, pause_ns=9)])
    assert facts_of([cold]).collections == ()
    assert facts_of([cold]).operations == 0


def test_where_a_pass_of_an_operation_does_not_know_its_main_thread_nobody_adds_up_the_others() -> None:
    told, silent = warm_pass("select", main_cpu_us=900), warm_pass("parse", main_cpu_us=None)
    assert facts_of([told, silent]).helper_cpu_ns is None


def test_the_clocks_of_process_and_thread_may_differ_by_microseconds() -> None:
    assert facts_of([warm_pass("select", cpu_user_us=1000, main_cpu_us=1003)]).helper_cpu_ns == 0.0


def warm_pass(op: str, **changes: object) -> Pass:
    plain = Pass(
        op=op,
        phase="pass",
        index=0,
        calls=10,
        start_ns=0,
        wall_ns=2_000_000,
        cpu_user_us=1000,
        cpu_system_us=0,
        gc=[],
        involuntary_switches=0,
        voluntary_switches=0,
        rss_bytes=0,
        heap_used_bytes=0,
        external_bytes=0,
        fold=0,
        main_cpu_us=1000,
    )
    return msgspec.structs.replace(plain, **changes)


def facts_of(events: Sequence[Event]) -> CollectorFacts:
    seen = Seen()
    for event in events:
        seen.add(event)
    return seen.facts(None)


def test_an_older_run_says_nothing(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, WorkerEngine(cost))
    calibration = calibrate(bench, ())
    assert collector_facts(bench.folder, calibration, ()) == {}
    assert accounting_share({BASE: CollectorFacts()}, joined([])) is None
