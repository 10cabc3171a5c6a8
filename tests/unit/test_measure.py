"""Calibration and rounds with simulated workers: paces, failed cells, checksums, resume."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from investigator.addons import AddonPackage
from investigator.build import AddonBuild
from investigator.engine.interface import Outcome
from investigator.invoke import Result, Surroundings
from investigator.measure import (
    Bench,
    RoundRecord,
    calibrate,
    cells_left,
    measure_round,
    read_rounds,
    repetitions,
)
from investigator.nodes.interface import NodeBuild
from investigator.observer import NullObserver
from investigator.operations import Operation
from investigator.plan import Environment, Failure, Invocation, Plan, environment_id
from investigator.protocol import Pass
from investigator.rounds import ahead
from investigator.spec import Spec
from investigator.store import create_run
from tests.fakes.worker_engine import WorkerEngine

OPS = ("select_range", "insert_row")
BASE, OTHER = "node20.19.5+bsm12.11.1", "node24.11.1+bsm12.11.1"


def cost(environment: str, op: str) -> float:
    slow = environment == OTHER and op == "select_range"
    return 50_000.0 * (1.5 if slow else 1.0)


def bench_of(tmp_path: Path, engine: WorkerEngine, workloads: tuple[str, ...] = ()) -> Bench:
    environments, builds = [], {}
    for version in ("20.19.5", "24.11.1"):
        directory = tmp_path / "nodes" / version
        (directory / "bin").mkdir(parents=True, exist_ok=True)
        (directory / "bin/node").touch()
        (directory / "x.node").touch()
        node = NodeBuild(
            version=version,
            source="npm",
            directory=directory,
            node_sha256="0" * 64,
            versions={"node": version},
            config_sha256="1" * 64,
        )
        addon = AddonPackage(name="better-sqlite3-multiple-ciphers", version="12.11.1")
        environment = Environment(
            id=environment_id(node, addon, "source"), label=None, node=node, addon=addon
        )
        environments.append(environment)
        builds[environment.id] = AddonBuild(
            key="k",
            directory=directory,
            entry="package/lib/index.js",
            binding="x.node",
            binding_sha256="",
            sqlite3_object_sha256=None,
            compiler="",
            flags={},
            elapsed_s=0.0,
        )
    operations = [Operation(name=op, family="sqlite", module="m.mjs", group="sqlite") for op in OPS]
    operations += [
        Operation(name=name, family="sqlite", module=f"{name}.mjs", group=f"workload:{name}")
        for name in workloads
    ]
    plan = Plan(
        spec=Spec(versions=("20", "24"), passes=4),
        run_id="r",
        environments=tuple(environments),
        baseline=BASE,
        operations=tuple(operations),
    )
    around = Surroundings(plan=plan, builds=builds, fixtures=tmp_path, workloads=tmp_path, mailbox=None)
    path = tmp_path / "run"
    return Bench(
        engine=engine,
        around=around,
        folder=create_run(path),
        observer=NullObserver(),
        host_control=lambda: None,
    )


def run_rounds(bench: Bench, count: int) -> list[Failure]:
    calibration = calibrate(bench, ())
    failures = list(calibration.failures)
    for number in range(1, count + 1):
        record = measure_round(bench, calibration, number, failures, cells_left(bench.plan, failures))
        failures += record.failures
    return failures


def test_pace_comes_from_the_fastest_environment_and_is_equal_for_all(tmp_path: Path) -> None:
    engine = WorkerEngine(cost)
    bench = bench_of(tmp_path, engine)
    assert run_rounds(bench, 2) == []
    measured = [job for job in engine.jobs if job["mode"] == "measure"]
    assert len(measured) == 2 * 4
    loops = {(o["name"], o["loops"], o["warmup_calls"]) for job in measured for o in job["operations"]}  # type: ignore[attr-defined]
    assert len(loops) == 2
    assert all(o_loops * 3 * 50_000 >= 40e6 for _, o_loops, _ in loops)


@pytest.mark.parametrize(
    ("call_ms", "loops", "laps"),
    [(0.1, 137, 3), (4.5, 4, 3), (5.0, 3, 3), (8.5, 1, 5), (12.0, 1, 4), (25.0, 1, 2), (400.0, 1, 1)],
)
def test_a_lap_has_one_call_at_least(tmp_path: Path, call_ms: float, loops: int, laps: int) -> None:
    calibration = calibrate(bench_of(tmp_path, WorkerEngine(lambda environment, op: call_ms * 1e6)), ())
    assert {(pace.loops, pace.laps) for pace in calibration.paces} == {(loops, laps)}


def test_records_read_back_equal(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, WorkerEngine(cost))
    run_rounds(bench, 2)
    records = read_rounds(bench.folder)
    assert [r.number for r in records] == [1, 2]
    assert all(len(r.invocations) == 4 for r in records)
    for record, path in zip(records, bench.folder.finished_rounds(), strict=True):
        assert all((path / m.events).stat().st_size > 0 for m in record.invocations)


def test_an_operation_that_throws_costs_its_own_cell(tmp_path: Path) -> None:
    engine = WorkerEngine(cost, fail_ops={(OTHER, "insert_row"): "SQLITE_FULL"})
    bench = bench_of(tmp_path, engine)
    failures = run_rounds(bench, 1)
    assert [(f.environment, f.op, f.stage) for f in failures] == [(OTHER, "insert_row", "setup")]
    assert "SQLITE_FULL" in failures[0].reason
    ops = {
        (m.invocation.environment, op)
        for m in read_rounds(bench.folder)[0].invocations
        for op in m.invocation.operations
    }
    assert ops == {(BASE, "select_range"), (BASE, "insert_row"), (OTHER, "select_range")}


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome(exit_code=139, elapsed_s=1.0), "signal 11"),
        (Outcome(exit_code=None, timed_out=True, elapsed_s=40.0), "did not end within 40 s"),
        (Outcome(exit_code=137, out_of_memory=True), "more memory"),
        (Outcome(exit_code=7, stderr="noise\nFatal: boom"), "boom"),
    ],
)
def test_an_operation_that_takes_the_process_down_costs_its_own_cell(
    tmp_path: Path, outcome: Outcome, words: str
) -> None:
    engine = WorkerEngine(cost, crash_ops={(OTHER, "select_range"): outcome})
    bench = bench_of(tmp_path, engine)
    failures = run_rounds(bench, 2)
    assert [(f.environment, f.op) for f in failures] == [(OTHER, "select_range")]
    assert words in failures[0].reason
    jobs = [m.invocation for r in read_rounds(bench.folder) for m in r.invocations]
    assert {j.operations for j in jobs if j.environment == OTHER} == {("insert_row",)}
    assert all(set(j.operations) == set(OPS) for j in jobs if j.environment == BASE)


def test_a_workload_that_crashes_does_not_touch_the_built_in_operations(tmp_path: Path) -> None:
    crash = Outcome(exit_code=134)
    engine = WorkerEngine(cost, crash_ops={(BASE, "mine"): crash, (OTHER, "mine"): crash})
    bench = bench_of(tmp_path, engine, workloads=("mine",))
    failures = run_rounds(bench, 1)
    assert {(f.environment, f.op) for f in failures} == {(BASE, "mine"), (OTHER, "mine")}
    assert len(read_rounds(bench.folder)[0].invocations) == 4


def checksum_other(environment: str, op: str, _n: int) -> str:
    return f"{op}{environment}" if op == "select_range" else op


def checksum_random(_environment: str, op: str, n: int) -> str:
    return f"{op}{n}" if op == "select_range" else op


@pytest.mark.parametrize(
    ("checksum", "cells", "words"),
    [
        (checksum_other, {(OTHER, "select_range")}, "something else here than"),
        (checksum_random, {(BASE, "select_range"), (OTHER, "select_range")}, "in every process"),
    ],
)
def test_different_results_are_a_failed_cell(
    tmp_path: Path, checksum: Callable[[str, str, int], str], cells: set[tuple[str, str]], words: str
) -> None:
    bench = bench_of(tmp_path, WorkerEngine(cost, checksum=checksum))
    failures = run_rounds(bench, 1)
    assert {(f.environment, f.op) for f in failures} == cells
    assert all(f.stage == "checksum" and words in f.reason for f in failures)


def test_an_impostor_is_refused(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, WorkerEngine(cost, hello={"versions": {"node": "24.0.0"}}))
    failures = run_rounds(bench, 0)
    assert {(f.environment, f.op, f.stage) for f in failures} == {(BASE, None, "load"), (OTHER, None, "load")}
    assert cells_left(bench.plan, failures) == {}


def test_a_killed_round_is_measured_again_whole(tmp_path: Path) -> None:
    def kill(job: dict[str, object], n: int) -> None:
        if job["mode"] == "measure" and n == 2 + 4 + 2:
            raise KeyboardInterrupt

    engine = WorkerEngine(cost, before=kill)
    bench = bench_of(tmp_path, engine)
    with pytest.raises(KeyboardInterrupt):
        run_rounds(bench, 3)
    assert [r.number for r in read_rounds(bench.folder)] == [1]
    engine.before = None
    calibration = calibrate(bench, ())
    measure_round(bench, calibration, 2, (), cells_left(bench.plan, ()))
    assert [(r.number, len(r.invocations)) for r in read_rounds(bench.folder)] == [(1, 4), (2, 4)]


def disturbed_result(environment: str, ops: tuple[str, ...], hit: tuple[str, ...]) -> Result:
    engine = WorkerEngine(cost)
    events = []
    for op in ops:
        for index in range(6):
            row = engine._pass(environment, {"name": op}, "pass", index, 1000)
            waits = 1.5 if op in hit and index < 4 else 1.0
            row["wall_ns"] = int(int(str(row["cpu_user_us"])) * 1000 * waits)
            events.append(msgspec.convert(row, Pass))
    job = Invocation(round=1, position=0, environment=environment, twin=False, group="sqlite", operations=ops)
    return Result(
        invocation=job, events=tuple(events), failures=(), culprit=None, steal_pct=0.0, elapsed_s=1.0
    )


def test_a_burst_is_measured_again_and_a_busy_host_is_not(tmp_path: Path) -> None:
    plan = bench_of(tmp_path, WorkerEngine(cost), workloads=("mine", "yours")).plan
    ops = ("select_range", "insert_row", "mine", "yours")
    clean = disturbed_result(BASE, ops, ())
    burst = disturbed_result(OTHER, ops, ("insert_row",))
    busy = disturbed_result(OTHER, ops, ops)
    again = repetitions(plan, (clean, burst))
    assert [(j.environment, j.operations, j.position) for j in again] == [(OTHER, ("insert_row",), 2)]
    assert repetitions(plan, (clean, clean)) == ()
    assert repetitions(plan, (clean, busy)) == ()


def test_a_first_look_that_runs_late_repeats_nothing() -> None:
    spec = Spec(versions=("20", "24"), budget_min=4.0, rounds=8)
    record = RoundRecord(
        number=1, started_at_s=0.0, elapsed_s=29.0, invocations=(), failures=(), host=(None, None)
    )
    late = msgspec.structs.replace(record, number=2, elapsed_s=32.0)
    assert ahead(spec, [])
    assert ahead(spec, [record])  # 30 s are a round's part of four minutes
    assert not ahead(spec, [record, late])
