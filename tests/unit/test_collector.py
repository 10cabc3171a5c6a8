"""What the collector had to work with, and what accounting for it cost, from the events of a run."""

from pathlib import Path

import msgspec
import pytest

from investigator.collector import CollectorFacts, accounting_share, collector_facts
from investigator.measure import calibrate, cells_left, measure_round, read_rounds
from investigator.records import read_samples
from investigator.samples import Sample
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
    expected = CollectorFacts(heap_limit_bytes=4 << 30, semi_space_bytes=1 << 20, gc_accounting_ns=900.0)
    assert found == {BASE: expected, OTHER: expected}
    rows = [
        msgspec.structs.replace(row, gc_count=10 if row.environment == OTHER else 0)
        for row in read_samples(bench.folder, bench.plan, records)
    ]
    warm = [r for r in rows if r.phase == "pass" and r.environment == OTHER]
    largest = max(_share(warm, op) for op in {row.op for row in warm})
    assert accounting_share(found, rows) == pytest.approx(largest)


def _share(rows: list[Sample], op: str) -> float:
    own = [row for row in rows if row.op == op]
    return 9_000 * len(own) / sum(row.wall_ns for row in own)


def test_an_older_run_says_nothing(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, WorkerEngine(cost))
    calibration = calibrate(bench, ())
    assert collector_facts(bench.folder, calibration, ()) == {}
    assert accounting_share({BASE: CollectorFacts()}, ()) is None
