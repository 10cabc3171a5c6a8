"""The explain phase on simulated workers: new rounds in a nested folder, withdrawn flags, resumption."""

from pathlib import Path

import msgspec
import pytest

from investigator import explain as phase
from investigator.analysis import Analysis
from investigator.attributed import Target, attributions, folder_of, targets
from investigator.attribution.findings import published
from investigator.build import BuildFailure
from investigator.errors import StoredFileError
from investigator.explain import ROUNDS, explain
from investigator.measure import Bench, calibrate, cells_left, measure_round, read_rounds
from investigator.profiling.profiler import Profiler
from investigator.records import analyse_records
from investigator.spec import Spec
from tests.fakes.worker_engine import WorkerEngine
from tests.unit.test_measure import OTHER, bench_of, cost

NO_PROFILER = Profiler(kind="none", reason="profiles cannot be taken here.")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither probes nor profiler nor experiments: what is left is the new rounds."""
    monkeypatch.setattr(phase, "choose_profiler", lambda _engine: NO_PROFILER)
    monkeypatch.setattr(
        phase,
        "build_probes",
        lambda _engine, pair, _builds, _observer: {e.id: BuildFailure(reason="no compiler") for e in pair},
    )
    monkeypatch.setattr(phase, "find_causes", lambda *_: None)


def screened(bench: Bench) -> Analysis:
    calibration = calibrate(bench, ())
    for number in range(1, 9):
        measure_round(bench, calibration, number, (), cells_left(bench.plan, ()))
    return analyse_records(bench.folder, bench.plan, calibration, read_rounds(bench.folder))


@pytest.mark.usefixtures("alone")
def test_a_finding_is_measured_again_in_a_folder_of_its_own(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, WorkerEngine(cost))
    screen = screened(bench)
    wanted = targets(screen, "3")
    assert wanted == (Target(op="select_range", candidate=OTHER),)
    explain(bench, screen, wanted)
    nested = folder_of(bench.folder, wanted[0])
    assert [record.number for record in read_rounds(nested)] == list(range(1, ROUNDS + 1))
    assert {op for r in read_rounds(nested) for m in r.invocations for op in m.invocation.operations} == {
        "select_range"
    }
    (found,) = attributions(bench.folder, screen)
    assert found.recurred
    assert found.rounds == ROUNDS
    assert found.change_pct == pytest.approx(50.0, abs=5.0)
    assert found.layer == "unknown"
    assert "profiles cannot be taken here" in found.reason
    assert any("no compiler" in note for method in found.methods for note in method.notes)


@pytest.mark.usefixtures("alone")
def test_what_was_explained_is_not_measured_again(tmp_path: Path) -> None:
    engine = WorkerEngine(cost)
    bench = bench_of(tmp_path, engine)
    screen = screened(bench)
    explain(bench, screen, targets(screen, "all"))
    before = len(engine.jobs)
    explain(bench, screen, targets(screen, "all"))
    assert len(engine.jobs) == before


@pytest.mark.usefixtures("alone")
def test_an_interrupted_explanation_goes_on(tmp_path: Path) -> None:
    engine = WorkerEngine(cost)
    bench = bench_of(tmp_path, engine)
    screen = screened(bench)
    started = len(engine.jobs)

    def kill(_job: dict[str, object], n: int) -> None:
        if n == started + 20:
            raise KeyboardInterrupt

    engine.before = kill
    with pytest.raises(KeyboardInterrupt):
        explain(bench, screen, targets(screen, "all"))
    engine.before = None
    nested = folder_of(bench.folder, targets(screen, "all")[0])
    kept = len(read_rounds(nested))
    assert 0 < kept < ROUNDS
    explain(bench, screen, targets(screen, "all"))
    assert len(read_rounds(nested)) == ROUNDS


@pytest.mark.usefixtures("alone")
def test_a_flag_that_does_not_show_again_is_withdrawn(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, WorkerEngine(cost))
    screen = screened(bench)
    again = msgspec.structs.replace(bench, engine=WorkerEngine(lambda _environment, _op: 50_000.0))
    explain(again, screen, targets(screen, "all"))
    (found,) = attributions(bench.folder, screen)
    assert not found.recurred
    shown = published(bench.plan, screen, [found])
    (pair,) = [
        c for c in shown.comparisons if c.op == "select_range" and c.kind == "baseline" and c.phase == "warm"
    ]
    assert (pair.verdict, pair.finding) == ("undecided", False)
    assert "withdrawn" in pair.warnings[0]
    assert "No finding" in shown.headline


@pytest.mark.usefixtures("alone")
def test_a_layer_does_not_vanish_because_a_file_was_lost(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, WorkerEngine(cost))
    screen = screened(bench)
    wanted = targets(screen, "all")
    explain(bench, screen, wanted)
    (folder_of(bench.folder, wanted[0]).path / "explained.json").unlink()
    with pytest.raises(StoredFileError, match=r"explained\.json is missing"):
        attributions(bench.folder, screen)


@pytest.mark.usefixtures("alone")
def test_published_is_what_the_new_rounds_say(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, WorkerEngine(cost))
    screen = screened(bench)
    explain(bench, screen, targets(screen, "all"))
    found = attributions(bench.folder, screen)
    shown = published(bench.plan, screen, found)
    (pair,) = [c for c in shown.comparisons if c.finding]
    assert pair.wall.change_pct == found[0].change_pct
    assert pair.rounds == ROUNDS
    assert "the screen said" in pair.warnings[-1]


def test_how_many_are_explained() -> None:
    assert Spec(versions=("20",)).explain == "3"
    empty = Analysis(
        run_id="r",
        headline="",
        baseline="a",
        environments=("a",),
        cells=(),
        comparisons=(),
        controls=(),
        failures=(),
        undecided_ops=(),
    )
    assert targets(empty, "all") == targets(empty, "none") == targets(empty, "2") == ()
