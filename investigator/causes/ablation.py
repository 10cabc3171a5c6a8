"""The pair again under V8 flags: the flag that closes the gap names the subsystem.

An ablation run is a run like any other: a plan whose environments are the pair and its flagged arms, measured
in interleaved rounds. Two stages keep it short. First all arms, of which every round keeps the better half;
then the finalists in rounds of their own, from which alone their intervals are taken: what was picked for its
luck is not believed for it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from investigator.arms import Arms
from investigator.build import AddonBuild
from investigator.causes.effects import log_effects, wall_by_round
from investigator.causes.flags import CONTROL, Ablation
from investigator.causes.shares import Share, closed_share
from investigator.plan import Environment, Failure, Plan
from investigator.stats.process import FloatArray

ABLATION_SCHEMA: Final = 1
FIRST_ROUNDS: Final = 3
"""Rounds that choose the finalists: all arms, half of them, a quarter."""
LAST_ROUNDS: Final = 6
"""Rounds of the finalists; 96.9 % confidence with all of them."""
FINALISTS: Final = 4
PASSES: Final = 3
"""Timed passes of an arm: most of the noise lies between processes, and there are many arms."""
CLOSES: Final = 0.5
"""Part of the gap from which a flag names the cause (design.md section 8)."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._=-]+")


class AblationResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one experiment did to the gap."""

    ablation: Ablation
    closed: Share | None
    """Part of the gap that is gone, the smaller of two views: ratio of the sides, and difference in ns per
    call. (With the optimising compiler off both sides take ten times as long: the ratio shrinks although
    nothing was closed.) None where an arm failed."""
    baseline_ns: float | None
    """Wall time per call of the baseline under its flags, median over rounds; None where it failed."""
    candidate_ns: float | None
    final: bool
    """Whether it was among the finalists; others have an estimate from the first rounds only."""
    closes: bool
    """The lower bound of the share is at least one half and above what the control arm closes."""
    failure: str | None = None
    """Why an arm has no time."""


class AblationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """ablation.json: the experiments of one nested run, beside its plan."""

    op: str
    baseline: str
    candidate: str
    ablations: tuple[Ablation, ...]
    left_out: int = 0
    """Experiments beyond the limit."""


class AblationReport(msgspec.Struct, frozen=True, kw_only=True):
    """ablation-result.json of a nested run; made again from its raw records at any time."""

    op: str
    baseline: str
    candidate: str
    folder: str
    """The nested run relative to the run: ``ablation/select_blob_30k-node24.11.1-bsm12.11.1-gc``."""
    results: tuple[AblationResult, ...]
    """Finalists first, the largest closed share first; the control arm among them."""
    rounds: int
    elapsed_s: float
    """Length of its rounds."""
    left_out: int = 0
    """Experiments beyond the limit that were not tried."""
    failure: str | None = None
    """Why there is no result: a side of the pair failed."""

    @property
    def closing(self) -> tuple[AblationResult, ...]:
        """Experiments that close at least half of the gap: their flags name the subsystem."""
        return tuple(result for result in self.results if result.closes)


def plan_ablation(
    parent: Plan, op: str, baseline: str, candidate: str, ablations: Sequence[Ablation]
) -> Plan:
    """The plan of the nested run: the pair, and one environment for every flagged side.

    Args:
        parent: the run that has the finding.
        op: the operation, alone in its process.
        baseline: environment identifier.
        candidate: environment identifier.
        ablations: the experiments; `flags.CONTROL` is added.
    """
    pair = (parent.environment(baseline), parent.environment(candidate))
    arms: dict[str, Environment] = {environment.id: environment for environment in pair}
    for ablation in (*ablations, CONTROL):
        for environment in _arms(ablation, *pair):
            arms.setdefault(environment.id, environment)
    return msgspec.structs.replace(
        parent,
        spec=msgspec.structs.replace(parent.spec, passes=PASSES),
        environments=tuple(arms.values()),
        baseline=baseline,
        operations=(parent.operation(op),),
    )


def _arms(
    ablation: Ablation, baseline: Environment, candidate: Environment
) -> tuple[Environment, Environment]:
    """The two sides of an experiment; a side without flags is the plain one, except for the control."""
    if ablation.origin == "control":
        again = msgspec.structs.replace(candidate, id=f"{candidate.id}~again")
        return baseline, again
    return _flagged(baseline, ablation.baseline_flags), _flagged(candidate, ablation.candidate_flags)


def _flagged(environment: Environment, flags: Sequence[str]) -> Environment:
    if not flags:
        return environment
    suffix = "~".join(_UNSAFE.sub("-", flag.lstrip("-")) for flag in flags)
    return msgspec.structs.replace(
        environment, id=f"{environment.id}~{suffix}", node_flags=(*environment.node_flags, *flags)
    )


def builds_for(plan: Plan, builds: Mapping[str, AddonBuild]) -> dict[str, AddonBuild]:
    """Builds of the nested run: flags change nothing at a build."""
    return {
        e.id: build for e in plan.environments if (build := builds.get(e.id.partition("~")[0])) is not None
    }


def arm_ids(plan: Plan, experiment: AblationPlan, ablation: Ablation) -> tuple[str, str]:
    """Identifiers of the two sides of one experiment."""
    sides = _arms(ablation, plan.environment(experiment.baseline), plan.environment(experiment.candidate))
    return sides[0].id, sides[1].id


def best(
    plan: Plan, experiment: AblationPlan, arms: Arms, among: Sequence[Ablation], number: int
) -> tuple[Ablation, ...]:
    """The `number` experiments `among` some that close most in the rounds so far; failed ones are out."""
    ranked = rank(plan, msgspec.structs.replace(experiment, ablations=tuple(among)), arms)
    alive = [r.ablation for r in ranked if r.closed is not None and r.ablation.origin != "control"]
    return tuple(alive[:number])


def kept_after(rounds: int, among: int) -> int:
    """How many of `among` experiments go on after so many rounds."""
    return FINALISTS if rounds >= FIRST_ROUNDS else max(FINALISTS, math.ceil(among / 2))


def rank(
    plan: Plan,
    experiment: AblationPlan,
    arms: Arms,
    failures: Sequence[Failure] = (),
    *,
    final_arms: Arms | None = None,
    chosen: Sequence[Ablation] = (),
) -> tuple[AblationResult, ...]:
    """Order the experiments by the part of the gap that they close.

    Args:
        plan: of the nested run.
        experiment: what was tried.
        arms: process values of the first rounds (all rounds where there is no second stage).
        failures: of the nested run.
        final_arms: process values of the finalists' own rounds.
        chosen: the finalists.

    Returns:
        Finalists first, then the others; in each part the largest share first, failed ones last.
    """
    picked = {ablation.name for ablation in chosen} if final_arms is not None else set()
    results = []
    control: Share | None = None
    for ablation in (CONTROL, *experiment.ablations):
        final = ablation.name in picked
        table = final_arms if final and final_arms is not None else arms
        result = _result(plan, experiment, ablation, table, failures, final=final, control=control)
        if ablation.origin == "control":
            control = result.closed
        results.append(result)
    return tuple(sorted(results, key=lambda r: (not r.final, -_size(r.closed))))


def _size(share: Share | None) -> float:
    return -math.inf if share is None else share.estimate


def _result(
    plan: Plan,
    experiment: AblationPlan,
    ablation: Ablation,
    arms: Arms,
    failures: Sequence[Failure],
    *,
    final: bool,
    control: Share | None,
) -> AblationResult:
    sides = arm_ids(plan, experiment, ablation)
    plain = [wall_by_round(arms, experiment.op, side) for side in (experiment.baseline, experiment.candidate)]
    changed = [wall_by_round(arms, experiment.op, side) for side in sides]
    closed = share_of(plain[0], plain[1], changed[0], changed[1])
    reason = next((f.reason for f in failures if f.environment in sides), None)
    above = control is None or (closed is not None and closed.at_least(control.estimate))
    return AblationResult(
        ablation=ablation,
        closed=closed,
        baseline_ns=_median(changed[0]),
        candidate_ns=_median(changed[1]),
        final=final,
        closes=closed is not None and ablation.origin != "control" and closed.at_least(CLOSES) and above,
        failure=reason if closed is None else None,
    )


def share_of(
    baseline_ns: FloatArray,
    candidate_ns: FloatArray,
    baseline_changed_ns: FloatArray,
    candidate_changed_ns: FloatArray,
) -> Share | None:
    """Closed share from the times of each round: by ratio and by difference, and of the two the smaller."""
    views = (
        closed_share(
            log_effects(candidate_ns, baseline_ns), log_effects(candidate_changed_ns, baseline_changed_ns)
        ),
        closed_share(candidate_ns - baseline_ns, candidate_changed_ns - baseline_changed_ns),
    )
    known = [view for view in views if view is not None]
    return min(known, key=lambda share: share.estimate) if len(known) == len(views) else None


def _median(values: FloatArray) -> float | None:
    usable = values[np.isfinite(values)]
    return float(np.median(usable)) if len(usable) else None
