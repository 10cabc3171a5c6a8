"""A claim against this tool's own measurement of it: five rulings, each defined by intervals.

On the log scale, in the claimed direction, with a claim of size L and a measured interval [lo, hi] (widened
by the baseline's difference to itself where something but noise forbade a verdict):

* ``confirmed``: the verdict has the claimed sign, [lo, hi] reaches within a third of L, lo is L / 3 or more;
* ``other_cause``: as ``confirmed``, but an experiment puts at least half of it down to the addon's own source
  or build; or as ``not_reproduced``, and the published rows differ in addon release or machine;
* ``reversed``: [lo, hi] lies on the other side, beyond what code placement does;
* ``not_reproduced``: [lo, hi] ends below 2/3 L, or begins above 4/3 L: what is there is not that change;
* ``cannot_tell``: everything else.

A claim below the margin is a claim of no change.
"""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from investigator import units
from investigator.analysis import Analysis, Comparison
from investigator.arms import Phase
from investigator.attribution.layers import Attribution
from investigator.audit.claims import Claim
from investigator.audit.weigh import ALIKE, SAME
from investigator.errors import UsageError
from investigator.plan import Environment, Plan
from investigator.text import clean_text, short_text

Ruling = Literal["confirmed", "not_reproduced", "reversed", "other_cause", "cannot_tell"]
RULING_WORDS: dict[Ruling, str] = {
    "confirmed": "confirmed",
    "not_reproduced": "not reproduced",
    "reversed": "reversed",
    "other_cause": "other cause",
    "cannot_tell": "cannot tell",
}
ClaimPhase = Literal["cold", "warm", "unknown"]
LAYOUT = math.log(1.04)
_UNSOUND = frozenset({"twin", "states", "passes", "contradiction"})
"""Obstacles that put the interval itself in doubt, where noise only makes it wide."""
_OWN_CAUSES = frozenset({"addon_source", "build"})


class PhaseRuling(msgspec.Struct, frozen=True, kw_only=True):
    """The claim against the warm passes, or against the cold one. Percentages are of time per operation."""

    phase: Phase
    ruling: Ruling
    reason: str
    """One sentence."""
    change_pct: float
    ci_low_pct: float
    ci_high_pct: float
    confidence: float
    verdict: str
    """The tool's own verdict on the comparison."""
    rounds: int


class Adjudication(msgspec.Struct, frozen=True, kw_only=True):
    """One claim, adjudicated."""

    claim: str
    """As it was written."""
    op: str
    baseline: str
    candidate: str
    """Identifiers of the environments that were measured."""
    claimed_time_pct: float
    """The claim as a change in time per operation, percent."""
    claimed_phase: ClaimPhase
    ruling: Ruling
    text: str
    """One sentence."""
    phases: tuple[PhaseRuling, ...]
    evidence: tuple[str, ...]
    """Files of the run folder."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be adjudicated."""

    claim: Claim
    baseline: str
    """Node version."""
    op: str
    """Operation of this tool."""
    phase: ClaimPhase
    other: str | None = None
    """What else differs between the published rows: recorded addon releases or machines."""


def adjudicate(
    question: Question, plan: Plan, analysis: Analysis, attributions: Sequence[Attribution]
) -> Adjudication:
    """Compare a claim with a run.

    Raises:
        UsageError: the run has no such version or operation, or does not compare the two.
    """
    base, candidate = _environments(question, plan)
    if all(operation.name != question.op for operation in plan.operations):
        raise UsageError(f"the run did not measure {question.op}; measure the claim with --rerun.")
    attribution = next(
        (a for a in attributions if (a.op, a.baseline, a.candidate) == (question.op, base.id, candidate.id)),
        None,
    )
    phases = tuple(
        _phase(question, pair, attribution)
        for phase in ("warm", "cold")
        if (pair := _pair(analysis, question.op, base.id, candidate.id, phase)) is not None
    )
    ruling, phase = _combined(question.phase, phases)
    failed = [
        f.reason
        for f in analysis.failures
        if f.environment in {base.id, candidate.id} and f.op in {None, question.op}
    ]
    return Adjudication(
        claim=question.claim.text,
        op=question.op,
        baseline=base.id,
        candidate=candidate.id,
        claimed_time_pct=question.claim.change_pct("time"),
        claimed_phase=question.phase,
        ruling=ruling,
        text=_sentence(question, base, candidate, phases, ruling, phase, failed),
        phases=phases,
        evidence=("summary.json", *(attribution.evidence if attribution is not None else ())),
    )


def rule(
    claimed: float, pair: Comparison, attribution: Attribution | None, other: str | None
) -> tuple[Ruling, str]:
    """Rule on one comparison.

    Args:
        claimed: ln of the claimed ratio of times.
        pair: what was measured.
        attribution: what the explain phase found of it, if it looked.
        other: what else differs between the published rows, if anything is recorded.
    """
    low, high = _log(pair.wall.ci_low_pct), _log(pair.wall.ci_high_pct)
    if pair.verdict == "invalid":
        return "cannot_tell", "the two versions computed different results"
    if low is None or high is None:
        return "cannot_tell", "too few rounds were measured for an interval"
    if pair.obstacle in _UNSOUND:
        floor = _log(pair.noise_floor_pct) or 0.0
        low, high = low - floor, high + floor
    if abs(claimed) < SAME:
        return _ruled_no_change(pair)
    near, far = (low, high) if claimed > 0 else (-high, -low)
    flagged = pair.verdict == ("slower" if claimed > 0 else "faster")
    ruling, reason = _by_interval(abs(claimed), near, far, flagged=flagged)
    if ruling == "confirmed":
        return _despite_causes(pair, attribution, reason)
    if ruling == "not_reproduced" and not flagged and other is not None:
        return "other_cause", f"it is not there with everything but Node equal, and {other}"
    return ruling, reason


def _by_interval(size: float, near: float, far: float, *, flagged: bool) -> tuple[Ruling, str]:
    """Rule on an interval in the claimed direction; `flagged`: the verdict has the claimed sign."""
    if far < -LAYOUT:
        return "reversed", "the change has the other sign"
    if near > size * (1 + ALIKE):
        return "not_reproduced", "same sign, but the change is larger"
    if far < size * (1 - ALIKE):
        smaller = "same sign, but the change is smaller"
        return "not_reproduced", smaller if flagged else "the interval excludes a change of that size"
    if flagged and near >= size * ALIKE:
        return "confirmed", "same sign, size within a third"
    return "cannot_tell", "the interval holds both the claimed change and a much smaller one"


def _despite_causes(pair: Comparison, attribution: Attribution | None, reason: str) -> tuple[Ruling, str]:
    """A change that is there is not Node's where an experiment puts it down to the addon."""
    cause = _own_cause(attribution)
    if cause is not None:
        return "other_cause", f"it is there, but {cause}"
    small = "; it is so small that code placement alone could do it" if pair.below_layout_floor else ""
    return "confirmed", reason + small


def _ruled_no_change(pair: Comparison) -> tuple[Ruling, str]:
    if pair.verdict == "no_change":
        return "confirmed", "no change was claimed, and none is there"
    if pair.verdict in {"slower", "faster"}:
        return "not_reproduced", "no change was claimed, but there is one"
    return "cannot_tell", "the interval is too wide for no change"


def _own_cause(attribution: Attribution | None) -> str | None:
    if attribution is None or not attribution.recurred:
        return None
    found = [c for c in attribution.causes if c.kind in _OWN_CAUSES and c.confirmed]
    return short_text(found[0].text, 240).rstrip(".") if found else None


def _phase(question: Question, pair: Comparison, attribution: Attribution | None) -> PhaseRuling:
    ruling, reason = rule(question.claim.log_time, pair, attribution, question.other)
    return PhaseRuling(
        phase=pair.phase,
        ruling=ruling,
        reason=reason,
        change_pct=pair.wall.change_pct,
        ci_low_pct=pair.wall.ci_low_pct,
        ci_high_pct=pair.wall.ci_high_pct,
        confidence=pair.wall.confidence,
        verdict=pair.verdict,
        rounds=pair.rounds,
    )


def _combined(claimed: ClaimPhase, phases: Sequence[PhaseRuling]) -> tuple[Ruling, PhaseRuling | None]:
    """The ruling on the phase that the claim is of; where that is open, both must speak against it."""
    if not phases:
        return "cannot_tell", None
    own = next((p for p in phases if p.phase == claimed), None)
    if claimed != "unknown":
        return (own.ruling, own) if own is not None else ("cannot_tell", None)
    for wanted in ("confirmed", "other_cause", "cannot_tell"):
        found = next((p for p in phases if p.ruling == wanted), None)
        if found is not None:
            return found.ruling, found
    return phases[0].ruling, phases[0]


def _sentence(
    question: Question,
    base: Environment,
    candidate: Environment,
    phases: Sequence[PhaseRuling],
    ruling: Ruling,
    decisive: PhaseRuling | None,
    failed: Sequence[str],
) -> str:
    claimed = units.format_percent(question.claim.change_pct("time"))
    head = (
        f"{question.claim.text} on {candidate.node.version} against {base.node.version} ({claimed} time "
        f"per call): {RULING_WORDS[ruling]}"
    )
    if not phases:
        why = clean_text(failed[0], 300).rstrip(".") if failed else "it was not measured on both versions"
        return f"{head}, because {why}."
    addon = (
        "" if candidate.addon is None else f" under {candidate.addon.name} {candidate.addon.version}".rstrip()
    )
    measured = ", ".join(_measured(p) for p in phases)
    reason = decisive.reason if decisive is not None else f"no {question.phase} pass was measured"
    return f"{head}; {question.op} takes {measured}{addon} ({reason})."


def _measured(p: PhaseRuling) -> str:
    interval = units.format_interval(p.ci_low_pct, p.ci_high_pct)
    return f"{units.format_percent(p.change_pct)} [{interval}] {p.phase}"


def _environments(question: Question, plan: Plan) -> tuple[Environment, Environment]:
    base = _environment(plan, question.baseline, None)
    return base, _environment(plan, question.claim.version, base)


def _environment(plan: Plan, version: str, other: Environment | None) -> Environment:
    found = [
        e
        for e in plan.environments
        if e is not other and (e.node.version == version or e.node.version.startswith(f"{version}."))
    ]
    # Of several on one release the run's own baseline, or its first other one, is meant.
    found.sort(key=lambda e: e.id != plan.baseline)
    if not found:
        have = ", ".join(e.node.version for e in plan.environments)
        raise UsageError(
            f"the run has no Node {version[:80]} (it has {have}); measure the claim with --rerun."
        )
    return found[0]


def _pair(analysis: Analysis, op: str, base: str, candidate: str, phase: Phase) -> Comparison | None:
    return next(
        (
            c
            for c in analysis.comparisons
            if (c.op, c.baseline, c.candidate, c.phase) == (op, base, candidate, phase) and c.kind != "twin"
        ),
        None,
    )


def _log(change_pct: float) -> float | None:
    ratio = 1.0 + change_pct / 100.0
    return math.log(ratio) if math.isfinite(ratio) and ratio > 0 else None
