"""Shares, V8's flags, and an ablation from plan to ranking with simulated workers."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from investigator import ablate as glue
from investigator.ablate import ablate
from investigator.causes import flags
from investigator.causes.ablation import FIRST_ROUNDS, LAST_ROUNDS, AblationReport, kept_after, share_of
from investigator.causes.flags import Ablation, Flag, NodeFlags, ablations, changed_defaults, parse_options
from investigator.causes.shares import Share, closed_share
from investigator.engine.interface import Outcome
from investigator.errors import UsageError
from investigator.invoke import Surroundings
from investigator.measure import Bench, read_rounds
from investigator.nodes.interface import NodeBuild
from investigator.observer import NullObserver
from investigator.operations import Operation
from investigator.plan import Environment, Plan
from investigator.spec import Spec
from investigator.store import RunFolder, create_run
from tests.fakes.engine import FakeEngine
from tests.fakes.worker_engine import WorkerEngine

# -- shares -------------------------------------------------------------------------------------------------


def share(plain: list[float], changed: list[float]) -> Share:
    found = closed_share(np.array(plain), np.array(changed))
    assert found is not None
    return found


def test_what_closes_everything_nothing_and_half() -> None:
    plain = [0.50, 0.51, 0.49, 0.52, 0.48, 0.50]
    assert share(plain, [0.0] * 6).estimate == pytest.approx(1.0)
    assert share(plain, plain).estimate == pytest.approx(0.0)
    assert share(plain, [value / 2 for value in plain]).estimate == pytest.approx(0.5)
    assert share(plain, [2 * value for value in plain]).estimate == pytest.approx(-1.0)


def test_the_interval_is_exact_at_six_rounds_and_missing_below_five() -> None:
    six = share([0.5, 0.6, 0.4, 0.5, 0.5, 0.5], [0.1, 0.1, 0.2, 0.1, 0.0, 0.1])
    assert six.confidence == pytest.approx(1 - 2 / 64)
    assert six.low is not None
    assert six.high is not None
    assert six.low <= six.estimate <= six.high
    assert six.at_least(six.low)
    four = share([0.5] * 4, [0.1] * 4)
    assert (four.low, four.high, four.rounds) == (None, None, 4)
    assert not four.at_least(-9.0)
    assert "[" not in four.text


def test_a_gap_that_is_not_clear_of_zero_has_no_interval() -> None:
    unclear = share([0.5, -0.2, 0.4, 0.5, -0.1, 0.5], [0.0] * 6)
    assert unclear.low is None


def test_rounds_without_both_effects_do_not_count() -> None:
    nan = float("nan")
    assert share([0.5, nan, 0.5, 0.5, 0.5, 0.5], [0.1, 0.1, nan, 0.1, 0.1, 0.1]).rounds == 4
    assert closed_share(np.array([nan, 0.5]), np.array([0.5, nan])) is None
    assert closed_share(np.array([]), np.array([])) is None


@given(
    st.lists(st.tuples(st.floats(0.05, 2.0), st.floats(-2.0, 2.0)), min_size=5, max_size=12),
    st.sampled_from([-1.0, 1.0]),
)
def test_a_share_does_not_depend_on_the_side_that_is_slower(
    rounds: list[tuple[float, float]], sign: float
) -> None:
    plain = np.array([e for e, _ in rounds])
    changed = np.array([f for _, f in rounds])
    one, other = closed_share(plain, changed), closed_share(sign * plain, sign * changed)
    assert one is not None
    assert other is not None
    assert one.estimate == pytest.approx(other.estimate)
    assert one.low is not None
    assert one.low <= one.estimate


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        plain = 0.3 + rng.normal(0, 0.04, 6)
        changed = 0.4 * 0.3 + rng.normal(0, 0.04, 6)
        found = closed_share(plain, changed)
        assert found is not None
        covered += found.low is not None and found.high is not None and found.low <= 0.6 <= found.high
    assert covered / 400 > 0.94


def test_slowing_both_sides_closes_nothing() -> None:
    baseline, candidate = np.full(6, 1000.0), np.full(6, 1500.0)
    drowned = share_of(baseline, candidate, baseline + 20_000.0, candidate + 20_000.0)
    assert drowned is not None
    assert drowned.estimate == pytest.approx(0.0, abs=0.01)  # by the ratio alone it would be 0.95
    real = share_of(baseline, candidate, baseline, baseline * 1.05)
    assert real is not None
    assert real.estimate == pytest.approx(0.88, abs=0.03)


# -- flags --------------------------------------------------------------------------------------------------

OPTIONS = """\
SSE3=1
Options:
  --maglev (enable the maglev optimizing compiler)
        type: bool  default: --no-maglev
  --bytecode-old-age (number of gcs before we flush code)
        type: int  default: --bytecode-old-age=5
  --min-maglev-inlining-frequency (minimum frequency for inlining)
        type: float  default: --min-maglev-inlining-frequency=0.95
  --lite-mode (unset (by default))
        type: maybe_bool  default: unset
  --trace-file (a file \x1b[31m)
        type: string  default: --trace-file=x
  --Bad (upper case)
        type: bool  default: --Bad
  --orphan (no second line)
  --lying (default of another flag)
        type: bool  default: --no-other
  --odd (a number that is none)
        type: int  default: --odd=$(reboot)
        type: int  default: --nothing=1
"""


def test_the_list_of_flags_is_read_strictly() -> None:
    found = parse_options(OPTIONS)
    assert {name: flag.default for name, flag in found.items()} == {
        "maglev": "false",
        "bytecode-old-age": "5",
        "min-maglev-inlining-frequency": "0.95",
        "lite-mode": "",
        "trace-file": "x",
    }
    assert found["maglev"].about == "enable the maglev optimizing compiler"
    assert "\x1b" not in found["trace-file"].about


@given(st.text(max_size=300))
def test_no_text_breaks_the_list_of_flags(text: str) -> None:
    assert parse_options(text) == {}


def known(**defaults: str) -> NodeFlags:
    def kind(value: str) -> str:
        return "bool" if value in {"true", "false"} else "int"

    return NodeFlags(
        flags={
            name.replace("_", "-"): Flag(type=kind(value), default=value, about=f"about {name}")
            for name, value in defaults.items()
        }
    )


OLD = known(
    single_threaded_gc="false",
    parallel_scavenge="true",
    max_semi_space_size="0",
    scavenger_max_new_space_capacity_mb="8",
    maglev="false",
    maglev_inlining="false",
    sparkplug="true",
    opt="true",
    separate_gc_phases="false",
    trace_gc="false",
    json_fast_path="true",
)
NEW = known(
    single_threaded_gc="false",
    parallel_scavenge="true",
    max_semi_space_size="0",
    scavenger_max_new_space_capacity_mb="32",
    maglev="true",
    maglev_inlining="true",
    sparkplug="true",
    opt="true",
    separate_gc_phases="true",
    trace_gc="true",
    concurrent_marking="true",
    wasm_heap="true",
)


def by_name(kind: flags.FlagKind, one: NodeFlags, other: NodeFlags) -> dict[str, Ablation]:
    return {ablation.name: ablation for ablation in ablations(kind, one, other)}


def test_a_default_that_changed_is_given_back_to_the_candidate_alone() -> None:
    found = by_name("gc", OLD, NEW)["--scavenger-max-new-space-capacity-mb=8"]
    assert found.baseline_flags == ()
    assert found.candidate_flags == ("--scavenger-max-new-space-capacity-mb=8",)
    assert (found.origin, found.one_sided) == ("default", False)
    assert "8 on the baseline, 32 on the candidate" in found.note
    assert by_name("gc", OLD, NEW)["--no-separate-gc-phases"].baseline_flags == ()


def test_a_switch_goes_on_every_side_that_has_it_the_other_way() -> None:
    gc = by_name("gc", OLD, NEW)
    both = gc["--single-threaded-gc"]
    assert both.baseline_flags == both.candidate_flags == ("--single-threaded-gc",)
    assert gc["--no-concurrent-marking"].baseline_flags == ()
    assert gc["--no-concurrent-marking"].one_sided
    assert by_name("engine", OLD, NEW)["--no-maglev"].baseline_flags == ()  # off there already


def test_a_size_that_one_side_does_not_know_is_marked() -> None:
    without = NodeFlags(
        flags={k: v for k, v in NEW.flags.items() if k != "scavenger-max-new-space-capacity-mb"}
    )
    forward = by_name("gc", OLD, without)["--scavenger-max-new-space-capacity-mb=32"]
    assert (forward.baseline_flags, forward.candidate_flags) == (
        ("--scavenger-max-new-space-capacity-mb=32",),
        (),
    )
    assert forward.one_sided
    back = by_name("gc", without, NEW)["--scavenger-max-new-space-capacity-mb=8"]
    assert back.candidate_flags
    assert back.one_sided


def test_flags_that_print_or_belong_elsewhere_are_left_alone() -> None:
    names = {*by_name("gc", OLD, NEW), *by_name("engine", OLD, NEW)}
    assert not [name for name in names if "trace" in name or "wasm" in name]
    assert "--no-json-fast-path" in names  # only the baseline has it


def test_flags_that_tune_what_is_off_are_left_alone() -> None:
    off = msgspec.structs.replace(
        NEW, flags={**NEW.flags, "maglev": Flag(type="bool", default="false", about="")}
    )
    assert "--no-maglev-inlining" in by_name("engine", OLD, NEW)
    assert "--no-maglev-inlining" not in by_name("engine", OLD, off)


def test_the_join_of_defaults_knows_every_kind() -> None:
    assert set(changed_defaults(None, OLD, NEW)) == {
        "scavenger-max-new-space-capacity-mb",
        "maglev",
        "maglev-inlining",
        "separate-gc-phases",
        "trace-gc",
    }
    assert changed_defaults("gc", OLD, OLD) == {}


def test_a_node_is_asked_once_and_a_silent_one_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    node = node_of(tmp_path, "24.0.0")
    engine = FakeEngine(default=Outcome(exit_code=1))
    assert flags.read_flags(engine, node).flags == {}

    def answer(task: object) -> Outcome:
        mounts = task.mounts  # type: ignore[attr-defined]
        (mounts[1].source / "options.txt").write_text(OPTIONS)
        return Outcome(exit_code=0)

    speaking = FakeEngine(default=answer)
    first = flags.read_flags(speaking, node)
    assert flags.read_flags(speaking, node) == first
    assert len(first.flags) == 5
    assert len(speaking.tasks) == 1


# -- the whole thing ----------------------------------------------------------------------------------------

BASE, OTHER = "node22.0.0", "node24.0.0"
CULPRIT = "--scavenger-max-new-space-capacity-mb=8"


def node_of(tmp_path: Path, version: str) -> NodeBuild:
    directory = tmp_path / "nodes" / version
    (directory / "bin").mkdir(parents=True, exist_ok=True)
    (directory / "bin/node").touch()
    return NodeBuild(
        version=version,
        source="npm",
        directory=directory,
        node_sha256=version.replace(".", "") * 4,
        versions={"node": version},
        config_sha256="1" * 64,
    )


def bench_of(tmp_path: Path, engine: WorkerEngine) -> Bench:
    environments = tuple(
        Environment(id=f"node{version}", label=None, node=node_of(tmp_path, version), addon=None)
        for version in ("22.0.0", "24.0.0")
    )
    plan = Plan(
        spec=Spec(command="js", versions=("22", "24")),
        run_id="r",
        environments=environments,
        baseline=BASE,
        operations=(
            Operation(name="map_fill", family="js", module="m.mjs", group="js"),
            Operation(name="json_parse", family="js", module="m.mjs", group="js"),
        ),
    )
    run = tmp_path / "run"
    return Bench(
        engine=engine,
        around=Surroundings(plan=plan, builds={}, fixtures=tmp_path, workloads=tmp_path, mailbox=None),
        folder=create_run(run) if not run.exists() else RunFolder(run),
        observer=NullObserver(),
        host_control=lambda: None,
    )


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[WorkerEngine], Bench]:
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(glue, "read_flags", lambda _engine, node: OLD if node.version == "22.0.0" else NEW)
    return lambda engine: bench_of(tmp_path, engine)


def cost(environment: str, _op: str) -> float:
    if environment.endswith("capacity-mb=8"):
        return 1_050.0
    slow = 2_500.0 if environment.startswith(OTHER) else 1_000.0
    return slow + (9_000.0 if "single-threaded" in environment else 0.0)


def names_of(report: AblationReport) -> list[str]:
    return [result.ablation.name for result in report.results]


def test_the_flag_that_closes_the_gap_comes_first_and_alone_closes_it(
    bench: Callable[[WorkerEngine], Bench],
) -> None:
    engine = WorkerEngine(cost)
    report = ablate(bench(engine), "map_fill", OTHER, kinds=("gc",))
    assert [result.ablation.name for result in report.closing] == [CULPRIT]
    assert names_of(report)[0] == CULPRIT
    best = report.results[0]
    assert best.final
    assert best.closed is not None
    assert best.closed.at_least(0.8)
    assert best.ablation.subsystem == "the capacity of the young generation"
    drowned = next(r for r in report.results if r.ablation.name == "--single-threaded-gc")
    assert drowned.closed is not None
    assert drowned.closed.estimate < 0.3
    control = next(r for r in report.results if r.ablation.origin == "control")
    assert not control.closes
    assert report.rounds == FIRST_ROUNDS + LAST_ROUNDS


def test_every_round_keeps_the_better_half(bench: Callable[[WorkerEngine], Bench]) -> None:
    engine = WorkerEngine(cost)
    plain = bench(engine)
    ablate(plain, "map_fill", OTHER, kinds=("gc", "engine"))
    folder = RunFolder(next((plain.folder.path / "ablation").iterdir()))
    arms = [len({m.invocation.environment for m in record.invocations}) for record in read_rounds(folder)]
    assert arms[0] > arms[1] >= arms[2] >= arms[3]
    assert len(set(arms[FIRST_ROUNDS:])) == 1
    assert kept_after(1, 20) == 10
    assert kept_after(1, 5) == 4
    assert kept_after(FIRST_ROUNDS, 20) == 4


def test_an_interrupted_ablation_goes_on_as_it_would_have(bench: Callable[[WorkerEngine], Bench]) -> None:
    whole = WorkerEngine(cost)
    first = bench(whole)
    expected = ablate(first, "map_fill", OTHER, kinds=("gc",))
    folder = RunFolder(first.folder.path / expected.folder)
    calls = len(whole.jobs)
    assert ablate(first, "map_fill", OTHER, kinds=("gc",)) == expected
    assert len(whole.jobs) == calls  # nothing is measured twice
    for path in folder.finished_rounds()[5:]:
        (path / "round.json").unlink()
    (folder.path / "ablation-result.json").unlink()
    again = ablate(first, "map_fill", OTHER, kinds=("gc",))
    assert again.rounds == expected.rounds
    assert [r.ablation.name for r in again.results if r.final][:1] == [CULPRIT]
    assert {r.ablation.name for r in again.results if r.final} == {
        r.ablation.name for r in expected.results if r.final
    }


def test_an_arm_that_does_not_start_costs_itself_only(bench: Callable[[WorkerEngine], Bench]) -> None:
    arm = f"{OTHER}~no-parallel-scavenge"
    engine = WorkerEngine(cost, crash_ops={(arm, "map_fill"): Outcome(exit_code=139)})
    report = ablate(bench(engine), "map_fill", OTHER, kinds=("gc",))
    failed = next(r for r in report.results if r.ablation.name == "--no-parallel-scavenge")
    assert failed.closed is None
    assert "signal 11" in str(failed.failure)
    assert [r.ablation.name for r in report.closing] == [CULPRIT]


def test_a_pair_that_fails_is_a_report_without_results(bench: Callable[[WorkerEngine], Bench]) -> None:
    engine = WorkerEngine(cost, crash_ops={(OTHER, "map_fill"): Outcome(exit_code=139)})
    report = ablate(bench(engine), "map_fill", OTHER, kinds=("gc",))
    assert report.results == ()
    assert "signal 11" in str(report.failure)


@pytest.mark.parametrize(
    ("op", "candidate", "said"),
    [("nothing", OTHER, "no operation"), ("map_fill", "node99", "no environment"), ("map_fill", BASE, "two")],
)
def test_what_the_run_does_not_have_is_refused(
    bench: Callable[[WorkerEngine], Bench], op: str, candidate: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        ablate(bench(WorkerEngine(cost)), op, candidate)
