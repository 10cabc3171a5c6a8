"""The self-test on simulated workers whose speed follows the planted variables: pilots, trials, going on."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from investigator.addons import AddonPackage
from investigator.analysis import Comparison
from investigator.attribution.layers import Attribution
from investigator.build import AddonBuild
from investigator.engine.interface import Outcome as TaskOutcome
from investigator.engine.interface import Started, Task
from investigator.errors import HostUnfitError, StoredFileError, UsageError
from investigator.host import host_facts
from investigator.invoke import Surroundings
from investigator.measure import Bench
from investigator.nodes.interface import NodeBuild
from investigator.observer import NullObserver
from investigator.prepare import StoredPlan
from investigator.results import RUN_SCHEMA, Finished, RunRecord
from investigator.selftest import bench as bench_module
from investigator.selftest import run as run_module
from investigator.selftest.places import VARIABLE
from investigator.selftest.report import SelftestReport
from investigator.selftest.run import run_selftest
from investigator.selftest.trials import Options
from investigator.store import RunFolder
from tests.fakes.worker_engine import WorkerEngine
from tests.unit.test_selftest import attribution

OPTIONS = Options(
    places=("core_step", "os_read", "nothing"), ops=("select_range",), sizes=(10.0, 25.0), seeds=1
)
BASE_NS = 20_000.0
UNIT_NS = {"STEP": 700.0, "READ": 110_000.0}
"""What a unit for each event costs in a call."""


class PlantedEngine(WorkerEngine):
    """Simulated workers that are as slow as their variables tell."""

    def __init__(self, units: dict[str, float]) -> None:
        super().__init__(lambda _environment, _op: self.call_ns, noise=0.004)
        self.units = units
        self.call_ns = BASE_NS

    def run(self, task: Task, started: Started | None = None) -> TaskOutcome:
        planted = {name: int(task.environment[f"{VARIABLE}{name}"]) / 1e6 for name in self.units}
        self.call_ns = BASE_NS + sum(amount * self.units[name] for name, amount in planted.items())
        return super().run(task, started)


Start = Callable[..., SelftestReport]


@pytest.fixture
def engine() -> PlantedEngine:
    return PlantedEngine(UNIT_NS)


@pytest.fixture
def start(tmp_path: Path, engine: PlantedEngine, monkeypatch: pytest.MonkeyPatch) -> Start:
    """`run_selftest` with a Node and an addon that are empty files, and no host control."""
    directory = tmp_path / "24.11.1"
    (directory / "bin").mkdir(parents=True)
    (directory / "bin/node").touch()
    (directory / "x.node").touch()
    node = NodeBuild(
        version="24.11.1",
        source="npm",
        directory=directory,
        node_sha256="0" * 64,
        versions={"node": "24.11.1"},
        config_sha256="1" * 64,
    )
    package = AddonPackage(name="better-sqlite3-multiple-ciphers", version="12.11.1")
    build = AddonBuild(
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

    def set_up(
        stored: StoredPlan, folder: RunFolder, engine: PlantedEngine, observer: NullObserver
    ) -> tuple[Bench, RunRecord]:
        around = Surroundings(
            plan=stored.plan, builds=stored.builds, fixtures=tmp_path, workloads=tmp_path, mailbox=None
        )
        record = RunRecord(
            run_id=folder.name,
            started_at="",
            host=host_facts(),
            engine={"engine": "fake"},
            fixtures_sha256="",
            mailbox_sha256=None,
            host_program_sha256=None,
            workloads_sha256={},
        )
        folder.write_json("run.json", "run", RUN_SCHEMA, record)
        bench = Bench(
            engine=engine, around=around, folder=folder, observer=observer, host_control=lambda: None
        )
        return bench, record

    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(bench_module, "set_up", set_up)
    monkeypatch.setattr(bench_module.Workshop, "package", lambda _self, _patch: package)
    monkeypatch.setattr(bench_module.Workshop, "build", lambda _self, _patch: build)
    monkeypatch.setattr(run_module, "choose_engine", lambda *_: engine)
    monkeypatch.setattr(run_module, "node_of", lambda *_: node)
    return lambda options=OPTIONS, **more: run_selftest(options, tmp_path / "out", NullObserver(), **more)


def test_what_is_planted_is_found_in_its_size(start: Start, tmp_path: Path) -> None:
    report = start()
    assert [(o.trial.label, o.detected, o.size_right) for o in report.outcomes] == [
        ("core_step-10", True, True),
        ("core_step-25", True, True),
        ("os_read-10", True, True),
        ("os_read-25", True, True),
        ("nothing", False, None),
    ]
    assert report.planned == 5
    assert {o.layer_outcome for o in report.outcomes} == {"not_explained"}
    assert (tmp_path / "out/selftest.md").read_text().startswith("# Self-test\n")
    assert (tmp_path / "out/screen-001-select_range/report.md").is_file()


def test_a_pilot_that_planted_far_too_little_is_repeated(start: Start, engine: PlantedEngine) -> None:
    engine.units = {"STEP": 20.0, "READ": 110_000.0}  # 2 % at first
    report = start()
    (step, _) = report.rates
    assert step.millionths > 20_000_000
    assert step.millionths_for(25.0) == pytest.approx(0.25 * BASE_NS / 20.0 * 1e6, rel=0.1)
    assert all(o.size_right for o in report.outcomes if o.trial.size_pct is not None)


def test_a_plant_without_any_effect_stops_the_self_test(start: Start, engine: PlantedEngine) -> None:
    engine.units = {"STEP": 0.0, "READ": 110_000.0}
    with pytest.raises(HostUnfitError, match="core_step shows no effect on select_range"):
        start()


def test_finished_trials_are_kept(start: Start, engine: PlantedEngine) -> None:
    first = start()
    jobs = len(engine.jobs)
    assert start().outcomes == first.outcomes
    assert len(engine.jobs) == jobs


def test_an_interrupted_one_goes_on_where_it_was(start: Start, engine: PlantedEngine, tmp_path: Path) -> None:
    def interrupt(job: dict[str, object], number: int) -> None:
        if number == 60:
            raise KeyboardInterrupt

    engine.before = interrupt
    with pytest.raises(Exception, match="go on with `investigate selftest --out"):
        start()
    kept = len(list((tmp_path / "out").glob("*/raw/round-*/round.json")))
    assert kept > 0
    engine.before = None
    assert len(start().outcomes) == 5


def test_findings_are_explained_and_only_they(start: Start) -> None:
    asked: list[str] = []

    def attribute(bench: Bench, finished: Finished, wanted: Sequence[Comparison]) -> Sequence[Attribution]:
        (comparison,) = wanted
        asked.append(comparison.candidate.partition(":")[0])
        layer = "native_core" if comparison.candidate.startswith("core_step") else "unknown"
        told = attribution(layer, comparison.wall.change_pct)  # type: ignore[arg-type]
        return (msgspec.structs.replace(told, op=comparison.op, candidate=comparison.candidate),)

    report = start(attribute=attribute)
    assert sorted(asked) == ["core_step-10", "core_step-25", "os_read-10", "os_read-25"]
    assert {o.trial.place: o.layer_outcome for o in report.outcomes} == {
        "core_step": "right",
        "os_read": "unknown",
        "nothing": "not_explained",
    }


def test_explanations_end_with_the_time_and_are_made_up_later(start: Start) -> None:
    asked: list[str] = []

    def attribute(bench: Bench, finished: Finished, wanted: Sequence[Comparison]) -> Sequence[Attribution]:
        asked.extend(c.candidate for c in wanted)
        return [msgspec.structs.replace(attribution("os"), op=c.op, candidate=c.candidate) for c in wanted]

    rushed = msgspec.structs.replace(OPTIONS, minutes=0.0)
    assert {o.layer_outcome for o in start(rushed, attribute=attribute).outcomes} == {"not_explained"}
    assert asked == []
    start(attribute=attribute)
    assert len(asked) == 4


def test_a_folder_is_for_one_set_of_trials(start: Start, tmp_path: Path) -> None:
    start()
    with pytest.raises(UsageError, match="other options"):
        start(Options(subset="ci"))
    (tmp_path / "out/selftest.json").unlink()
    with pytest.raises(StoredFileError, match="holds something"):
        start()
