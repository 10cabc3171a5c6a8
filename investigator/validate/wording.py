"""Sentences and figures of an answer, equal in every renderer; built from the plan and the figures."""

import math
from collections.abc import Sequence

from investigator import units
from investigator.analysis import Comparison, Interval
from investigator.naming import addon_name
from investigator.plan import Environment, Plan
from investigator.spec import Fix, Spec
from investigator.stats.intervals import Interval as LogInterval
from investigator.text import clean_text, short_text
from investigator.validate.shapes import Change, Other, Outcome, Recovery

NOTHING = Change(change_pct=None, ci_low_pct=None, ci_high_pct=None)
MOST_NAMED = 3
"""Operations named in a sentence; the tables have them all."""


def headline(
    plan: Plan,
    outcome: Outcome,
    targets: Sequence[Recovery],
    others: Sequence[Other],
    problems: Sequence[str],
) -> str:
    """The one sentence on top of every output."""
    if outcome == "pass":
        return f"Pass: {fix_name(plan)}. {_back(targets)}; {_cleared(others)}."
    word = {"fail": "Fail", "invalid": "Invalid", "cannot_tell": "Cannot tell"}[outcome]
    more = f"; and {len(problems) - MOST_NAMED} more" if len(problems) > MOST_NAMED else ""
    told = f"{word}: {fix_name(plan)}. {'; '.join(problems[:MOST_NAMED])}{more}."
    repaired = [t for t in targets if t.outcome == "pass"]
    return f"{told} {_back(repaired)}." if repaired else told


def _back(targets: Sequence[Recovery]) -> str:
    """How much of the loss came back, of a few operations."""
    told = "; ".join(f"{op_name(t.op)}: {t.reason}" for t in targets[:MOST_NAMED])
    more = f" and {len(targets) - MOST_NAMED} more" if len(targets) > MOST_NAMED else ""
    return f"{told}{more}"


def _cleared(others: Sequence[Other]) -> str:
    if not others:
        return "no other operation was measured"
    fine = sum(o.outcome == "ok" for o in others)
    if fine == len(others) == 1:
        return f"{op_name(others[0].op)}, the other operation, is not slower than on the regressed side"
    if fine == len(others):
        return f"none of {fine} other operations is slower than on the regressed side"
    counts = {
        "not slower than on the regressed side": fine,
        "too little slower to tell from code placement": sum(o.outcome == "below_floor" for o in others),
        "undecided": sum(o.outcome == "undecided" for o in others),
        "not measured": sum(o.outcome == "not_measured" for o in others),
    }
    told = [f"{count} {what}" for what, count in counts.items() if count]
    return f"of {len(others)} other operation{'' if len(others) == 1 else 's'} {', '.join(told)}"


def criterion(spec: Spec) -> str:
    """What a pass needs."""
    fix = spec.fix or Fix(kind="node")
    back = f"of the loss at least {fix.restore_pct:g} % comes back (lower end of the interval)"
    if fix.equal:
        limit = f"{spec.equivalence_pct:g} %"
        back = f"the fix is no slower than the baseline (wall and CPU time, within {limit})"
    return (
        f"{back}, and no other operation fails with the fix alone, or is slower than on the regressed side "
        f"by {spec.finding_pct:g} % or more with its interval beyond {spec.layout_pct:g} %"
    )


def fix_name(plan: Plan) -> str:
    """The fix in a sentence: ``Node 24.19.0``, ``NAME 12.11.1 with the patch x.diff on Node 24.11.1``."""
    fix, environment = plan.spec.fix, _side(plan, "fix")
    if fix is None or fix.kind == "node" or environment.addon is None:
        return _node(environment)
    if fix.kind == "patch":
        named = f" {fix.name}" if fix.name else ""
        return clean_text(
            f"{addon_name(environment.addon)} with the patch{named} on {_node(environment)}", 200
        )
    return clean_text(f"{addon_name(environment.addon)} on {_node(environment)}", 200)


def addon_of(plan: Plan) -> str:
    """The addon of the regressed side; empty where there is none, or where the sides are addons."""
    addon = _side(plan, "regressed").addon
    return "" if addon is None or plan.spec.axis == "addon" else clean_text(addon_name(addon), 120)


def side_name(plan: Plan, label: str) -> str:
    """Baseline or regressed side in a sentence."""
    environment = _side(plan, label)
    if plan.spec.axis == "addon" and environment.addon is not None:
        return clean_text(f"{addon_name(environment.addon)} on {_node(environment)}", 200)
    return _node(environment)


def _side(plan: Plan, label: str) -> Environment:
    return next(environment for environment in plan.environments if environment.label == label)


def _node(environment: Environment) -> str:
    own = " (a build of one's own)" if environment.node.source == "path" else ""
    return clean_text(f"Node {environment.node.version}{own}", 120)


def op_name(op: str) -> str:
    """An operation in a sentence."""
    return short_text(op, 60)


def some(ops: Sequence[str]) -> str:
    """A few operations, and how many more."""
    more = f" and {len(ops) - MOST_NAMED} more" if len(ops) > MOST_NAMED else ""
    return f"{', '.join(op_name(op) for op in ops[:MOST_NAMED])}{more}"


def part(text: str) -> str:
    """A reason as a part of a sentence."""
    return clean_text(text, 300).rstrip(".")


def percent(wall: Interval) -> str:
    """A change with its interval."""
    change = units.format_percent(wall.change_pct)
    if units.finite(wall.ci_low_pct) is None or units.finite(wall.ci_high_pct) is None:
        return change
    return f"{change} [{units.format_interval(wall.ci_low_pct, wall.ci_high_pct)}]"


def change(pair: Comparison | None) -> Change:
    """A comparison as it is stored."""
    if pair is None:
        return NOTHING
    return Change(
        change_pct=units.finite(pair.wall.change_pct),
        ci_low_pct=units.finite(pair.wall.ci_low_pct),
        ci_high_pct=units.finite(pair.wall.ci_high_pct),
    )


def log_change(wall: LogInterval) -> Change:
    """An effect on the log scale as it is stored."""
    shown = log_interval(wall)
    return Change(
        change_pct=units.finite(shown.change_pct),
        ci_low_pct=units.finite(shown.ci_low_pct),
        ci_high_pct=units.finite(shown.ci_high_pct),
    )


def log_interval(wall: LogInterval) -> Interval:
    """An effect on the log scale in percent."""
    low, middle, high = (
        math.expm1(value) * 100 if math.isfinite(value) else value
        for value in (wall.low, wall.estimate, wall.high)
    )
    return Interval(change_pct=middle, ci_low_pct=low, ci_high_pct=high, confidence=wall.confidence)
