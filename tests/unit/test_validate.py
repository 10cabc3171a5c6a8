"""The judgement of a fix: on tables whose truth is known, and how often it errs on recorded noise."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from investigator.analysis import analyse
from investigator.arms import Arms, arms
from investigator.causes.shares import closed_share
from investigator.operations import Family
from investigator.plan import Failure, Plan
from investigator.spec import Fix, Spec
from investigator.validate.judge import is_final, judge_fix, open_operations
from investigator.validate.shapes import Other, Recovery, Validation
from investigator.validate.simulate import main as simulate_main
from investigator.validate.simulate import rates
from tests.unit.test_analysis import plan, table

BASE, BAD, FIX = (
    "baseline:node22.21.1+bsm12.11.1",
    "regressed:node24.11.1+bsm12.11.1",
    "fix:node24.19.0+bsm12.11.1",
)
OPS: dict[str, Family] = {"bind": "sqlite", "select": "sqlite", "json": "js"}
Truth = Mapping[tuple[str, str], float]
"""Operation and side to the factor on its time; 1 where it is not named."""


def plan_of(fix: Fix | None = None, ops: Mapping[str, Family] | None = None) -> Plan:
    spec = Spec(
        versions=("baseline=22.21.1", "regressed=24.11.1", "fix=24.19.0"),
        baseline="regressed",
        fix=fix or Fix(kind="node", ops=("bind",)),
    )
    return plan(BASE, BAD, FIX, ops=ops or OPS, baseline=BAD, spec=spec)


def judged(
    truth: Truth,
    fix: Fix | None = None,
    *,
    failures: Sequence[Failure] = (),
    rounds: int = 8,
    sd: float = 0.004,
    without: Sequence[tuple[str, str]] = (),
) -> tuple[Validation, Plan, Arms, pd.DataFrame]:
    of = plan_of(fix)
    frame = table(of, lambda op, where, _: truth.get((op, where), 1.0), rounds=rounds, sd=sd)
    for op, where in without:
        frame = frame[(frame["op"] != op) | (frame["environment"] != where)]
    analysis = analyse(of, frame, failures=failures)
    answer = judge_fix(of, arms(frame), analysis)
    assert answer is not None
    return answer, of, arms(frame), frame


def answer_of(truth: Truth, fix: Fix | None = None, **how: object) -> Validation:
    return judged(truth, fix, **how)[0]  # type: ignore[arg-type]


def target(answer: Validation, op: str = "bind") -> Recovery:
    return next(t for t in answer.targets if t.op == op)


def other(answer: Validation, op: str) -> Other:
    return next(o for o in answer.others if o.op == op)


def failure(where: str, op: str | None, stage: str) -> Failure:
    return Failure(environment=where, op=op, stage=stage, reason="the compiler says no.")


LOSS = {("bind", BAD): 2.15}
REPAIRED = {**LOSS, ("bind", FIX): 1.03}


def test_a_fix_that_brings_it_back_passes_and_says_how_much() -> None:
    answer = answer_of(REPAIRED)
    found = target(answer)
    assert (answer.outcome, found.outcome) == ("pass", "pass")
    assert found.recovered_pct == pytest.approx(100 * (1 - np.log(1.03) / np.log(2.15)), abs=1.5)
    assert found.recovered_low_pct is not None
    assert found.recovered_high_pct is not None
    assert found.recovered_pct is not None
    assert 80 < found.recovered_low_pct < found.recovered_pct < found.recovered_high_pct < 100
    assert found.loss.change_pct == pytest.approx(115, abs=3)
    assert found.remaining.change_pct == pytest.approx(3, abs=1)
    assert found.against_regressed.change_pct == pytest.approx(100 * (1.03 / 2.15 - 1), abs=1)
    assert {o.op: o.outcome for o in answer.others} == {"select": "ok", "json": "ok"}
    assert answer.headline.startswith("Pass: Node 24.19.0. bind: 96 % [")
    assert "none of 2 other operations is slower than on the regressed side." in answer.headline
    assert answer.environments == {"baseline": BASE, "regressed": BAD, "fix": FIX}


def test_a_fix_that_brings_nothing_back_fails() -> None:
    answer = answer_of({**LOSS, ("bind", FIX): 2.15})
    assert (answer.outcome, target(answer).outcome) == ("fail", "fail")
    assert abs(target(answer).recovered_pct or 99) < 3
    assert "80 % is wanted" in answer.headline


@pytest.mark.parametrize(
    ("restore_pct", "outcome"), [(60.0, "pass"), (80.0, "fail"), (100.0, "fail"), (1.0, "pass")]
)
def test_the_wanted_share_decides(restore_pct: float, outcome: str) -> None:
    seventy = float(np.exp(0.3 * np.log(2.15)))
    answer = answer_of(
        {**LOSS, ("bind", FIX): seventy}, Fix(kind="node", ops=("bind",), restore_pct=restore_pct)
    )
    assert target(answer).recovered_pct == pytest.approx(70, abs=2)
    assert answer.outcome == outcome


@pytest.mark.parametrize(
    ("left", "outcome"),
    [(1.0, "pass"), (0.8, "pass"), (1.06, "fail"), (1.025, "cannot_tell"), (2.15, "fail")],
)
def test_equal_means_no_slower_than_the_baseline(left: float, outcome: str) -> None:
    answer = answer_of({**LOSS, ("bind", FIX): left}, Fix(kind="node", ops=("bind",), equal=True), sd=0.008)
    assert answer.outcome == outcome


def test_without_a_loss_there_is_nothing_to_recover() -> None:
    answer = answer_of({("bind", FIX): 0.5})
    assert answer.outcome == "cannot_tell"
    assert "nothing to recover" in answer.headline
    assert "no change" in target(answer).reason
    faster = answer_of({("bind", BAD): 0.5, ("bind", FIX): 0.5})
    assert "faster" in target(faster).reason
    assert faster.outcome == "cannot_tell"


def test_a_loss_that_noise_hides_is_not_judged() -> None:
    answer, of, found, frame = judged({("bind", BAD): 1.04, ("bind", FIX): 1.0}, sd=0.03)
    assert target(answer).loss_verdict == "undecided"
    assert answer.outcome == "cannot_tell"
    assert "not decided" in target(answer).reason
    assert "bind" in open_operations(of, found, analyse(of, frame))


def test_another_operation_that_got_slower_fails_the_fix_and_is_named() -> None:
    answer = answer_of({**REPAIRED, ("select", FIX): 1.25})
    assert (answer.outcome, target(answer).outcome) == ("fail", "pass")
    assert other(answer, "select").outcome == "slower"
    assert "select: slower: +2" in answer.headline


def test_it_is_the_regressed_side_that_others_are_compared_with() -> None:
    both = {("select", BAD): 1.25, ("select", FIX): 1.25}
    assert answer_of({**REPAIRED, **both}).outcome == "pass"
    assert other(answer_of({**REPAIRED, **both}), "select").outcome == "ok"


def test_a_small_cost_is_listed_but_does_not_fail() -> None:
    answer = answer_of({**REPAIRED, ("select", FIX): 1.035})
    assert answer.outcome == "pass"
    assert other(answer, "select").outcome == "below_floor"
    assert "of 2 other operations 1 not slower than on the regressed side, 1 too little" in answer.headline
    assert [o.op for o in answer.listed] == ["select"]


def test_what_cannot_be_told_of_others_is_listed_and_measured_again() -> None:
    answer, of, found, frame = judged({**REPAIRED, ("select", FIX): 1.03}, sd=0.012)
    assert answer.outcome == "pass"
    assert other(answer, "select").outcome == "undecided"
    assert "1 undecided" in answer.headline
    assert "select" in open_operations(of, found, analyse(of, frame))
    assert "bind" not in open_operations(of, found, analyse(of, frame))


def test_without_op_the_findings_are_the_targets() -> None:
    answer = answer_of({**REPAIRED, ("json", BAD): 1.3, ("json", FIX): 1.3}, Fix(kind="node"))
    assert [(t.op, t.outcome) for t in answer.targets] == [("bind", "pass"), ("json", "fail")]
    assert answer.outcome == "fail"
    nothing = answer_of({("bind", BAD): 1.03}, Fix(kind="node"))
    assert (nothing.outcome, nothing.targets) == ("cannot_tell", ())
    assert "nothing to recover" in nothing.headline


def test_a_large_loss_that_cannot_be_decided_is_no_pass() -> None:
    """The regressed side differs from itself there: no verdict, but what it shows is no small thing."""
    of = plan_of(Fix(kind="node"))
    truth = {**REPAIRED, ("json", BAD): 2.0, ("json", FIX): 2.0}
    frame = table(of, lambda op, where, _: truth.get((op, where), 1.0))
    drifting = (frame["op"] == "json") & frame["twin"]
    frame.loc[drifting, "wall_ns"] = (frame.loc[drifting, "wall_ns"] * 1.2).astype("int64")
    analysis = analyse(of, frame)
    answer = judge_fix(of, arms(frame), analysis)
    assert answer is not None
    assert answer.outcome == "cannot_tell"
    assert [(t.op, t.outcome) for t in answer.targets] == [("bind", "pass"), ("json", "cannot_tell")]
    assert "json: whether there is a loss is not decided (+1" in answer.headline
    assert "bind: 96 % [" in answer.headline
    assert "json" in open_operations(of, arms(frame), analysis)


def test_losses_that_may_be_findings_are_measured_again() -> None:
    _, of, found, frame = judged({("bind", BAD): 1.06}, Fix(kind="node"), sd=0.03)
    assert "bind" in open_operations(of, found, analyse(of, frame))


def test_other_work_is_invalid_whichever_operation_does_it() -> None:
    mine = answer_of(REPAIRED, failures=[failure(FIX, "bind", "checksum")])
    assert (mine.outcome, target(mine).outcome) == ("invalid", "invalid")
    theirs = answer_of(REPAIRED, failures=[failure(FIX, "select", "checksum")])
    assert (theirs.outcome, other(theirs, "select").outcome) == ("invalid", "invalid")
    assert "select: it computes something else with the fix" in theirs.headline


def test_sides_that_differ_by_themselves_are_no_fault_of_the_fix() -> None:
    failures = [failure(side, "bind", "checksum") for side in (BASE, FIX)]
    answer = answer_of(REPAIRED, failures=failures)
    assert answer.outcome == "cannot_tell"
    assert "different work" in target(answer).reason
    unstable = answer_of(REPAIRED, failures=[failure(side, "bind", "checksum") for side in (BASE, BAD, FIX)])
    assert unstable.outcome == "cannot_tell"
    assert "in every process" in target(unstable).reason


def test_an_operation_that_only_the_fix_breaks_fails_it() -> None:
    gone = [("select", FIX)]
    crash = failure(FIX, "select", "measure")
    answer, of, found, frame = judged(REPAIRED, failures=[crash], without=gone)
    assert (answer.outcome, other(answer, "select").outcome) == ("fail", "failed")
    assert "select: it fails with the fix: the compiler says no. bind: 96 % [" in answer.headline
    assert open_operations(of, found, analyse(of, frame, failures=[crash])) == ()
    both = [failure(side, "select", "measure") for side in (BAD, FIX)]
    lost = answer_of(REPAIRED, failures=both, without=[*gone, ("select", BAD)])
    assert (lost.outcome, other(lost, "select").outcome) == ("pass", "not_measured")
    assert "1 not measured" in lost.headline


def test_whether_the_loss_came_back_is_measured_also_where_another_operation_crashes() -> None:
    of = plan_of()
    nothing = table(of, lambda *_: 1.0, rounds=1).iloc[:0]
    found = arms(nothing)
    for lost, known in (("select", False), ("bind", True), (None, True)):
        analysis = analyse(of, nothing, failures=[failure(FIX, lost, "setup")])
        answer = judge_fix(of, found, analysis)
        assert answer is not None
        assert answer.outcome == "fail"
        assert is_final(of, found, analysis) == known


def test_a_target_that_another_side_breaks_cannot_be_told() -> None:
    answer = answer_of(REPAIRED, failures=[failure(BASE, "bind", "setup")], without=[("bind", BASE)])
    assert answer.outcome == "cannot_tell"
    assert "fails on the baseline side" in target(answer).reason


def test_a_fix_that_does_not_build_fails_before_any_round() -> None:
    of = plan_of()
    frame = table(of, lambda *_: 1.0, rounds=1).iloc[:0]
    analysis = analyse(of, frame, failures=[failure(FIX, None, "build")])
    answer = judge_fix(of, arms(frame), analysis)
    assert answer is not None
    assert answer.outcome == "fail"
    assert answer.problems == ("the fix does not work (build): the compiler says no",)
    assert is_final(of, arms(frame), analysis)
    assert open_operations(of, arms(frame), analysis) == ()


def test_a_baseline_that_differs_from_itself_cannot_be_told() -> None:
    of = plan_of()
    frame = table(of, lambda op, where, _: REPAIRED.get((op, where), 1.0))
    drifting = (frame["op"] == "bind") & frame["twin"]
    frame.loc[drifting, "wall_ns"] = (frame.loc[drifting, "wall_ns"] * 1.2).astype("int64")
    answer = judge_fix(of, arms(frame), analyse(of, frame))
    assert answer is not None
    assert answer.outcome == "cannot_tell"
    assert any("differs from itself" in text for text in target(answer).warnings)


def test_few_rounds_decide_nothing() -> None:
    answer = answer_of(REPAIRED, rounds=3)
    assert answer.outcome == "cannot_tell"
    assert target(answer).recovered_low_pct is None


def test_a_finished_answer_asks_for_no_more_rounds() -> None:
    for truth in (REPAIRED, LOSS | {("bind", FIX): 2.15}, {}):
        answer, of, found, frame = judged(truth)
        assert open_operations(of, found, analyse(of, frame)) == ()
        assert is_final(of, found, analyse(of, frame)) == (answer.outcome == "fail")


def test_more_cpu_time_than_on_the_baseline_is_told() -> None:
    of = plan_of()
    frame = table(of, lambda op, where, _: REPAIRED.get((op, where), 1.0))
    helpers = (frame["op"] == "bind") & (frame["environment"] == FIX)
    frame.loc[helpers, "cpu_user_ns"] = (frame.loc[helpers, "cpu_user_ns"] * 1.5).astype("int64")
    answer = judge_fix(of, arms(frame), analyse(of, frame))
    assert answer is not None
    assert any("more CPU time than on the baseline" in text for text in target(answer).warnings)


def test_a_run_without_a_fix_has_no_answer() -> None:
    of = plan(BASE, BAD, baseline=BASE)
    frame = table(of, lambda *_: 1.0)
    assert judge_fix(of, arms(frame), analyse(of, frame)) is None


# -- the interval -------------------------------------------------------------------------------------------


def test_the_interval_of_a_small_noisy_loss_counts_the_noise_of_the_loss() -> None:
    rng = np.random.default_rng(3)
    loss = 0.1 + rng.normal(0.0, 0.03, 16)
    left = 0.02 + rng.normal(0.0, 0.0001, 16)
    share = closed_share(loss, left, 0.975)
    assert share is not None
    assert share.low is not None
    assert share.high is not None
    # A fixed denominator would give an interval of almost no width.
    assert share.high - share.low > 0.05
    assert share.low < 0.8 < share.high


def test_a_loss_within_its_noise_has_no_interval_and_one_beyond_has() -> None:
    rng = np.random.default_rng(4)
    noise = rng.normal(0.0, 0.03, 12)
    hidden = closed_share(noise, noise * 0, 0.975)
    assert hidden is not None
    assert hidden.low is None
    mixed = np.array([0.05] * 11 + [-0.03])  # one round of twelve the other way round
    seen = closed_share(mixed, np.linspace(0.008, 0.012, 12), 0.975)
    assert seen is not None
    assert seen.low is not None
    assert seen.high is not None
    assert seen.low < 0.8 < seen.high + 0.01


@pytest.mark.parametrize("loss", [0.04, 0.1, 0.7])
def test_the_interval_covers_as_often_as_it_says(loss: float) -> None:
    rng = np.random.default_rng(11)
    truth, covered, bounded = 0.8, 0, 0
    for _ in range(600):
        base, low, high, fix = rng.normal(0.0, 0.0225, (4, 12))
        bad = loss + (low + high) / 2
        share = closed_share(bad - base, loss * (1 - truth) + fix - base, 0.975)
        assert share is not None
        if share.low is not None and share.high is not None:
            bounded += 1
            covered += share.low <= truth <= share.high
    # Where it has no ends it covers everything.
    assert (covered + 600 - bounded) / 600 > 0.962
    assert bounded > 300 if loss > 0.04 else bounded > 100


# -- how often it errs --------------------------------------------------------------------------------------


def test_a_fix_just_below_the_wanted_share_hardly_ever_passes() -> None:
    for loss in (0.1, 1.0):
        assert rates(80, loss=loss, share=0.79).get("pass", 0.0) <= 0.05


def test_a_whole_repair_passes_and_none_fails() -> None:
    repaired, none = rates(80, loss=1.0, share=1.0), rates(80, loss=1.0, share=0.0)
    assert repaired.get("pass", 0.0) > 0.97
    assert none.get("fail", 0.0) > 0.97
    small = rates(80, loss=0.1, share=1.0)
    assert small.get("fail", 0.0) == 0.0


def test_the_table_of_the_readme_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    simulate_main(["--cells", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "| loss | really came back | pass | fail | cannot tell |"
    assert all(line.count("|") == 6 for line in lines[2:])
