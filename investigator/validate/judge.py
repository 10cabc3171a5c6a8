"""From the rounds of a run to the answer: how much of the loss came back, and what else got slower.

Pure functions, the same for a finished run, for the looks between its rounds, and for one that is read again.

The recovered share of a round is (log regressed - log fix) / (log regressed - log baseline); over rounds it
has Fieller's interval (`causes.shares`), in which the noise of the loss counts. Each look has the confidence
that the plan gives it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from investigator import units
from investigator.analysis import Analysis, Comparison, processes
from investigator.arms import Arms, arms_of
from investigator.causes.effects import log_effects, wall_by_round
from investigator.causes.shares import Share, closed_share
from investigator.plan import Failure, Plan
from investigator.spec import ARMS, Fix
from investigator.stats.intervals import confidence_per_look
from investigator.stats.process import FloatArray
from investigator.stats.verdict import MAX_ROUNDS, Judgement, Margins, judge
from investigator.text import clean_text
from investigator.validate.shapes import Other, OtherOutcome, Outcome, Recovery, Validation
from investigator.validate.wording import (
    NOTHING,
    addon_of,
    change,
    criterion,
    fix_name,
    headline,
    log_change,
    log_interval,
    op_name,
    part,
    percent,
    side_name,
    some,
)


class _Case(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a judgement looks at."""

    plan: Plan
    fix: Fix
    table: Arms
    analysis: Analysis
    sides: Mapping[str, str]
    """Label to identifier."""

    @property
    def margins(self) -> Margins:
        return Margins(margin_pct=self.plan.spec.margin_pct, equivalence_pct=self.plan.spec.equivalence_pct)

    @property
    def confidence(self) -> float:
        return confidence_per_look(len(self.plan.spec.looks))

    def pair(self, op: str, baseline: str, candidate: str) -> Comparison | None:
        """The warm comparison of two sides, named by their labels."""
        low, high = self.sides[baseline], self.sides[candidate]
        return next(
            (
                c
                for c in self.analysis.comparisons
                if c.phase == "warm"
                and (c.op, c.baseline, c.candidate) == (op, low, high)
                and c.kind != "twin"
            ),
            None,
        )

    def failure(self, label: str, op: str, *, checksum: bool = False) -> Failure | None:
        """Why an operation could not be measured on a side, or, with `checksum`, that it does other work."""
        return next(
            (
                f
                for f in self.analysis.failures
                if f.environment == self.sides[label]
                and f.op in {None, op}
                and (f.stage == "checksum") == checksum
            ),
            None,
        )


def judge_fix(plan: Plan, table: Arms, analysis: Analysis) -> Validation | None:
    """The answer of `investigate validate` from the rounds so far; None for a run that is none.

    Args:
        plan: with the three environments of `ARMS`.
        table: process values by arm.
        analysis: verdicts on the same rounds.
    """
    if plan.spec.fix is None:
        return None
    case = _Case(
        plan=plan,
        fix=plan.spec.fix,
        table=table,
        analysis=analysis,
        sides={environment.label or "": environment.id for environment in plan.environments},
    )
    wanted = tuple(_wanted(case))
    targets = tuple(_recovery(case, op) for op in wanted)
    others = tuple(
        _other(case, o.name) for o in plan.operations if o.name not in wanted and o.family != "host"
    )
    problems = tuple(_problems(case, targets, others))
    outcome = _outcome(case, targets, others)
    return Validation(
        outcome=outcome,
        headline=headline(plan, outcome, targets, others, problems),
        criterion=criterion(plan.spec),
        fix_kind=case.fix.kind,
        fix=fix_name(plan),
        baseline=side_name(plan, "baseline"),
        regressed=side_name(plan, "regressed"),
        v8={e.label or "": clean_text(e.node.versions.get("v8", ""), 80) for e in plan.environments},
        addon=addon_of(plan),
        environments={label: case.sides[label] for label in ARMS},
        problems=problems,
        targets=targets,
        others=others,
    )


def is_final(plan: Plan, table: Arms, analysis: Analysis) -> bool:
    """Whether rounds would tell nothing: the fix does other work, does not run, or fails in what it repairs.

    Where it only crashes in another operation it has failed as well, but whether the loss came back is what
    its author asks next.
    """
    answer = judge_fix(plan, table, analysis)
    if answer is None or answer.outcome not in {"fail", "invalid"}:
        return False
    runs = all(f.environment != answer.environments["fix"] or f.op is not None for f in analysis.failures)
    return answer.outcome == "invalid" or not runs or any(t.outcome == "fail" for t in answer.targets)


def open_operations(plan: Plan, table: Arms, analysis: Analysis) -> tuple[str, ...]:
    """Operations of which more rounds could still change the answer; none where it is final."""
    answer = judge_fix(plan, table, analysis)
    if answer is None or answer.outcome in {"fail", "invalid"}:
        return ()
    stuck = [t for t in answer.targets if t.outcome == "cannot_tell" and not _is_open(t)]
    if stuck:
        return ()  # it cannot become a pass any more
    return tuple(
        dict.fromkeys(
            (
                *(t.op for t in answer.targets if _is_open(t)),
                *(o.op for o in answer.others if o.outcome == "undecided"),
                *(() if plan.spec.fix is None or plan.spec.fix.ops else _possible_losses(plan, analysis)),
            )
        )
    )


def _is_open(target: Recovery) -> bool:
    return target.outcome == "cannot_tell" and target.loss_verdict in {"slower", "undecided"}


def _possible_losses(plan: Plan, analysis: Analysis) -> Iterator[str]:
    """Operations that may turn out to be slower by a finding."""
    for c in analysis.comparisons:
        is_loss = (c.kind, c.phase, c.candidate) == ("predecessor", "warm", plan.baseline)
        if is_loss and c.verdict == "undecided" and not c.wall.ci_high_pct < plan.spec.finding_pct:
            yield c.op


# -- the operations whose loss must come back ---------------------------------------------------------------


def _wanted(case: _Case) -> Iterator[str]:
    """Operations named with ``--op``, else those that are slower by a finding.

    So are those that would be, but for what forbids a verdict (noise between equal sides, processes in two
    states): a pass that says nothing of a loss of half the time would not be one.
    """
    spec = case.plan.spec
    for operation in case.plan.operations:
        if case.fix.ops:
            if operation.name in case.fix.ops:
                yield operation.name
            continue
        loss = case.pair(operation.name, "baseline", "regressed")
        if (
            loss is not None
            and loss.verdict in {"slower", "undecided"}
            and loss.wall.change_pct >= spec.finding_pct
            and loss.wall.ci_low_pct > spec.layout_pct
        ):
            yield operation.name


def _recovery(case: _Case, op: str) -> Recovery:
    loss = case.pair(op, "baseline", "regressed")
    side = case.pair(op, "regressed", "fix")
    base_ns, regressed_ns, fix_ns = (wall_by_round(case.table, op, case.sides[label]) for label in ARMS)
    lost, left = log_effects(regressed_ns, base_ns), log_effects(fix_ns, base_ns)
    share = closed_share(lost, left, case.confidence)
    remaining = _judged(case, op, "fix", "baseline")
    verdict = _target_verdict(case, op, loss, share, remaining)
    needed = None
    if verdict.outcome == "cannot_tell" and loss is not None:
        needed = loss.rounds_needed
        if loss.verdict == "slower" and not case.fix.equal:
            needed = _rounds_needed(case, lost, left)
    return Recovery(
        op=op,
        family=case.plan.operation(op).family,
        outcome=verdict.outcome,
        reason=verdict.reason,
        loss=change(loss),
        loss_verdict=None if loss is None else loss.verdict,
        recovered_pct=None if share is None else units.finite(share.estimate * 100),
        recovered_low_pct=None if share is None or share.low is None else share.low * 100,
        recovered_high_pct=None if share is None or share.high is None else share.high * 100,
        confidence=None if share is None or share.low is None else share.confidence,
        remaining=NOTHING if remaining is None else log_change(remaining.wall),
        against_regressed=change(side),
        baseline_ns_per_op=_median(base_ns),
        regressed_ns_per_op=_median(regressed_ns),
        fix_ns_per_op=_median(fix_ns),
        rounds=0 if share is None else share.rounds,
        rounds_needed=needed,
        warnings=tuple(_warnings(case, loss, remaining)),
    )


class _Verdict(msgspec.Struct, frozen=True, kw_only=True):
    outcome: Outcome
    reason: str


def _target_verdict(
    case: _Case, op: str, loss: Comparison | None, share: Share | None, remaining: Judgement | None
) -> _Verdict:
    broken = _broken(case, op)
    if broken is not None:
        return broken
    if loss is None or share is None:
        return _Verdict(outcome="cannot_tell", reason="no round has all three sides")
    if loss.verdict != "slower":
        return _Verdict(outcome="cannot_tell", reason=_no_loss(loss))
    return _equal(case, remaining) if case.fix.equal else _by_share(share, case.fix.restore_pct)


def _by_share(share: Share, wanted_pct: float) -> _Verdict:
    if share.low is None or share.high is None:
        return _Verdict(outcome="cannot_tell", reason="too few rounds for an interval of what came back")
    back = f"{share.text} of the loss came back"
    if share.low * 100 >= wanted_pct:
        return _Verdict(outcome="pass", reason=back)
    if share.high * 100 < wanted_pct:
        return _Verdict(outcome="fail", reason=f"{back}, {wanted_pct:g} % is wanted")
    return _Verdict(outcome="cannot_tell", reason=f"{back}: the interval holds the wanted {wanted_pct:g} %")


def _broken(case: _Case, op: str) -> _Verdict | None:
    """Where the fix, or another side, does not run the operation or does other work in it."""
    own = _own_fault(case, op)
    if own is not None:
        outcome: Outcome = "invalid" if own[0] == "invalid" else "fail"
        return _Verdict(outcome=outcome, reason=own[1])
    for label in ("regressed", "baseline"):
        if case.failure(label, op, checksum=True) is not None:
            what = (
                "it computes something else in every process"
                if label == "regressed"
                else "baseline and regressed do different work, so there is no loss to speak of"
            )
            return _Verdict(outcome="cannot_tell", reason=what)
        failure = case.failure(label, op)
        if failure is not None:
            return _Verdict(
                outcome="cannot_tell", reason=f"it fails on the {label} side: {part(failure.reason)}"
            )
    return None


def _own_fault(case: _Case, op: str) -> tuple[OtherOutcome, str] | None:
    """What the fix, and only the fix, does wrong in an operation."""
    if case.failure("regressed", op) is not None or case.failure("regressed", op, checksum=True) is not None:
        return None
    other_work = case.failure("fix", op, checksum=True)
    # Where the baseline differs from the regressed side as well, the fix may be the one that is right.
    if other_work is not None and case.failure("baseline", op, checksum=True) is None:
        return "invalid", "it computes something else with the fix than on the regressed side"
    failure = case.failure("fix", op)
    if failure is not None:
        return "failed", f"it fails with the fix: {part(failure.reason)}"
    return None


def _no_loss(loss: Comparison) -> str:
    text = f"{percent(loss.wall)} on the regressed side"
    if loss.verdict == "undecided":
        return f"whether there is a loss is not decided ({text})"
    return f"nothing to recover: {text}, which is {loss.verdict.replace('_', ' ')}"


def _equal(case: _Case, remaining: Judgement | None) -> _Verdict:
    """No slower than the baseline: as `decide` does for ``no_change``, but faster is as good."""
    if remaining is None or not remaining.wall.bounded:
        return _Verdict(outcome="cannot_tell", reason="too few rounds to compare the fix with the baseline")
    text = f"{percent(log_interval(remaining.wall))} against the baseline"
    if remaining.verdict == "slower":
        return _Verdict(outcome="fail", reason=f"{text}, equal to it is wanted")
    limit = case.margins.equivalence
    if remaining.verdict in {"no_change", "faster"} or (
        remaining.wall.high < limit and remaining.cpu.high < limit
    ):
        return _Verdict(outcome="pass", reason=text)
    return _Verdict(
        outcome="cannot_tell", reason=f"{text}: not surely within {case.plan.spec.equivalence_pct:g} %"
    )


def _rounds_needed(case: _Case, lost: FloatArray, left: FloatArray) -> int | None:
    """Further rounds of the same kind after which the interval would leave the wanted share."""
    usable = np.isfinite(lost) & np.isfinite(left)
    rounds = int(usable.sum())
    for times in range(2, MAX_ROUNDS // max(rounds, 1) + 1):
        share = closed_share(np.tile(lost[usable], times), np.tile(left[usable], times), case.confidence)
        if share is not None and _by_share(share, case.fix.restore_pct).outcome != "cannot_tell":
            return rounds * (times - 1)
    return None


def _judged(case: _Case, op: str, candidate: str, baseline: str) -> Judgement | None:
    """The rule on two sides that the run itself does not compare."""
    high = arms_of(case.table, op, "warm", case.sides[candidate])
    low = arms_of(case.table, op, "warm", case.sides[baseline])
    if not high or not low:
        return None
    judgement = judge(processes(high, low), margins=case.margins, confidence=case.confidence)
    return judgement if judgement.wall.rounds else None


def _warnings(case: _Case, loss: Comparison | None, remaining: Judgement | None) -> Iterator[str]:
    if loss is not None:
        yield from loss.warnings
    if remaining is not None and remaining.cpu.low > max(case.margins.difference, remaining.wall.high):
        more = math.expm1(remaining.cpu.estimate) * 100
        yield f"with the fix it uses {more:.0f} % more CPU time than on the baseline"


# -- the other operations -----------------------------------------------------------------------------------


def _other(case: _Case, op: str) -> Other:
    side = case.pair(op, "regressed", "fix")
    outcome, reason = _other_outcome(case, op, side)
    return Other(
        op=op,
        family=case.plan.operation(op).family,
        outcome=outcome,
        reason=reason,
        change=NOTHING if side is None or side.verdict == "invalid" else change(side),
        verdict=None if side is None else side.verdict,
        rounds=0 if side is None else side.rounds,
    )


def _other_outcome(case: _Case, op: str, side: Comparison | None) -> tuple[OtherOutcome, str]:
    own = _own_fault(case, op)
    if own is not None:
        return own
    failure = case.failure("regressed", op) or case.failure("regressed", op, checksum=True)
    if failure is not None:
        return "not_measured", f"not measured: {part(failure.reason)}"
    if side is None:
        return "not_measured", "not measured"
    return _compared(side)


def _compared(side: Comparison) -> tuple[OtherOutcome, str]:
    text = f"{percent(side.wall)} against the regressed side"
    found: dict[str, tuple[OtherOutcome, str]] = {
        "invalid": ("undecided", "the regressed side does other work than baseline and fix"),
        "slower": ("below_floor", f"slower, but code placement alone can do that: {text}"),
        "undecided": ("undecided", f"cannot tell: {text}"),
    }
    return (
        ("slower", f"slower: {text}")
        if side.finding and side.verdict == "slower"
        else found.get(side.verdict, ("ok", ""))
    )


# -- the answer ---------------------------------------------------------------------------------------------


def _outcome(case: _Case, targets: Sequence[Recovery], others: Sequence[Other]) -> Outcome:
    found = {*(t.outcome for t in targets), *(o.outcome for o in others)}
    if "invalid" in found:
        return "invalid"
    if found & {"fail", "slower", "failed"} or _lost_fix(case) is not None:
        return "fail"
    return "cannot_tell" if not targets or "cannot_tell" in found else "pass"


def _lost_fix(case: _Case) -> Failure | None:
    return next(
        (f for f in case.analysis.failures if f.environment == case.sides["fix"] and f.op is None), None
    )


def _problems(case: _Case, targets: Sequence[Recovery], others: Sequence[Other]) -> Iterator[str]:
    lost = _lost_fix(case)
    if lost is not None:
        yield f"the fix does not work ({lost.stage}): {part(lost.reason)}"
        return
    for outcome in ("invalid", "fail"):
        yield from (f"{op_name(t.op)}: {t.reason}" for t in targets if t.outcome == outcome)
        kinds = {"invalid"} if outcome == "invalid" else {"slower", "failed"}
        yield from (f"{op_name(o.op)}: {o.reason}" for o in others if o.outcome in kinds)
    if not targets:
        yield _nothing(case)
    # Of a fix that has failed before the first round, no target says anything.
    failed = _outcome(case, targets, others) in {"fail", "invalid"}
    untold = [t for t in targets if t.outcome == "cannot_tell" and (t.rounds or not failed)]
    yield from (f"{op_name(t.op)}: {t.reason}" for t in untold)


def _nothing(case: _Case) -> str:
    """Why there is no operation whose loss could come back."""
    open_ones = list(_possible_losses(case.plan, case.analysis))
    if not any(c.phase == "warm" for c in case.analysis.comparisons):
        return "nothing was measured"
    if open_ones:
        return f"no loss was found, but {some(open_ones)} could not be decided"
    return (
        "nothing to recover: no operation is slower by a finding on the regressed side than on the baseline"
    )


def _median(values: FloatArray) -> float | None:
    usable = values[np.isfinite(values)]
    return float(np.median(usable)) if len(usable) else None
