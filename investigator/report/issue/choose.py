"""Which findings of a run are regressions, and why the others are not."""

from collections.abc import Iterator, Sequence

import msgspec

from investigator import npm_client, units
from investigator.analysis import Analysis, Comparison
from investigator.errors import UsageError
from investigator.naming import short_names
from investigator.plan import Environment, Plan, find_baseline
from investigator.text import clean_text

_VERDICTS = {
    "no_change": "no change",
    "undecided": "cannot tell",
    "invalid": "invalid",
    "slower": "slower, but below the layout floor",
    "faster": "faster, but below the layout floor",
}
_RELEASED = frozenset({"npm", "dist", "image"})
OWN_BUILD = "sha256-"
"""How the integrity of an addon of one's own begins, the digest of its tree; npm's is a sha512."""
_NAMED = 8
"""Findings named in one sentence."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What texts are written about, and what is left out."""

    comparisons: tuple[Comparison, ...]
    """In the order of the tables."""
    left_out: tuple[str, ...]
    """Sentences: findings that are no regressions."""


def choose(plan: Plan, analysis: Analysis, op: str | None = None, candidate: str | None = None) -> Chosen:
    """Choose the regressions of a run; with `op` every finding of that operation, whatever its direction.

    Raises:
        UsageError: there is no such operation or candidate, or it has no finding.
    """
    pairs = analysis.pairs()
    if candidate is not None:
        if not plan.candidates:
            raise UsageError(f"{plan.run_id} compares nothing: it has one environment.")
        wanted = find_baseline(plan.candidates, candidate, plan.spec.axis, "--candidate")
        pairs = tuple(c for c in pairs if c.candidate == wanted)
    if op is not None:
        return Chosen(comparisons=_of_operation(plan, pairs, op), left_out=())
    findings = [c for c in pairs if c.finding]
    chosen = tuple(c for c in findings if c.verdict == "slower" and not backwards(plan, c))
    return Chosen(comparisons=chosen, left_out=tuple(_left_out(plan, findings)))


def backwards(plan: Plan, comparison: Comparison) -> bool:
    """Whether the candidate is the older release: what is slower there has become faster since."""
    low, high = (plan.environment(name) for name in (comparison.baseline, comparison.candidate))
    pair = [_release(environment, plan) for environment in (low, high)]
    if None in pair:
        return False
    try:
        one, other = (npm_client.precedence(str(release)) for release in pair)
    except ValueError:
        return False
    return bool(other < one)


def _release(environment: Environment, plan: Plan) -> str | None:
    """Version that tells older from newer; None for a build of one's own."""
    if plan.spec.axis == "node":
        return environment.node.version if environment.node.source in _RELEASED else None
    addon, baseline = environment.addon, plan.environment(plan.baseline).addon
    same = addon is not None and baseline is not None and addon.name == baseline.name
    return addon.version if same and addon is not None and not addon.integrity.startswith(OWN_BUILD) else None


def _of_operation(plan: Plan, pairs: Sequence[Comparison], op: str) -> tuple[Comparison, ...]:
    known = [operation.name for operation in plan.operations]
    if op not in known:
        raise UsageError(f"this run has no operation {op[:80]!r}; it has {', '.join(known)}.")
    own = [c for c in pairs if c.op == op]
    findings = tuple(c for c in own if c.finding)
    if not findings:
        names = short_names(plan.environments, plan.spec.axis)
        said = "; ".join(f"{names[c.candidate]}: {_VERDICTS[c.verdict]}" for c in own) or "not measured"
        raise UsageError(f"{op} is no finding of this run ({said}); nothing is filed about it.")
    return findings


def _left_out(plan: Plan, findings: Sequence[Comparison]) -> Iterator[str]:
    old = [c for c in findings if backwards(plan, c)]
    faster = [c for c in findings if c.verdict == "faster" and c not in old]
    improved = [c for c in old if c.verdict == "slower"]
    turned = [c for c in old if c.verdict == "faster"]
    if faster:
        yield f"no regression, it became faster: {_list(plan, faster)}"
    if improved:
        yield f"no regression, only the older release is slower: {_list(plan, improved)}"
    if turned:
        oldest = plan.environment(turned[0].candidate)
        yield (
            f"the older release is faster: {_list(plan, turned)}; measure with it as the baseline "
            f"(--baseline {oldest.label or _release(oldest, plan)}) to file what became slower"
        )


def _list(plan: Plan, comparisons: Sequence[Comparison]) -> str:
    names = short_names(plan.environments, plan.spec.axis)
    said = [
        f"{c.op} on {names[c.candidate]} ({units.format_percent(c.wall.change_pct)})"
        for c in comparisons[:_NAMED]
    ]
    more = len(comparisons) - _NAMED
    return clean_text(", ".join([*said, *([f"{more} more"] if more > 0 else [])]), 1000)
