"""Whether a flag shows again when the operation is measured anew, alone in its process."""

from collections.abc import Iterable

import msgspec

from investigator.analysis import Analysis, Comparison, headline
from investigator.attribution.layers import LAYER_WORDS, LAYERS, Attribution
from investigator.plan import Plan

WITHDRAWN = "withdrawn"


def recurs(screen: Comparison, again: Comparison) -> bool:
    """Whether the new interval excludes zero on the side of the flag."""
    if screen.wall.change_pct > 0:
        return again.wall.ci_low_pct > 0
    return again.wall.ci_high_pct < 0


def published(plan: Plan, analysis: Analysis, attributions: Iterable[Attribution]) -> Analysis:
    """`analysis` with the explained findings as the explain phase saw them, and withdrawn flags taken back.

    The screen picked the largest of many, which overstates them; the new rounds did not pick.
    """
    by_pair = {(a.op, a.candidate): a for a in attributions}
    comparisons = tuple(_published(c, by_pair.get((c.op, c.candidate))) for c in analysis.comparisons)
    return msgspec.structs.replace(analysis, comparisons=comparisons, headline=headline(plan, comparisons))


def _published(screen: Comparison, attribution: Attribution | None) -> Comparison:
    if attribution is None or not screen.finding or attribution.rounds == 0:
        return screen
    said = f"{screen.wall.change_pct:+.1f} % [{screen.wall.ci_low_pct:.1f}, {screen.wall.ci_high_pct:.1f}]"
    wall = msgspec.structs.replace(
        screen.wall,
        change_pct=attribution.change_pct,
        ci_low_pct=attribution.ci_low_pct,
        ci_high_pct=attribution.ci_high_pct,
        confidence=attribution.confidence,
    )
    if not attribution.recurred:
        text = (
            f"flag {WITHDRAWN}: the screen said {said}, {attribution.rounds} new rounds alone in its process "
            f"{wall.change_pct:+.1f} % [{wall.ci_low_pct:.1f}, {wall.ci_high_pct:.1f}]"
        )
        return msgspec.structs.replace(
            screen, verdict="undecided", finding=False, warnings=(text, *screen.warnings)
        )
    text = f"measured again alone in its process, {attribution.rounds} rounds; the screen said {said}"
    return msgspec.structs.replace(
        screen,
        wall=wall,
        ratio=1.0 + wall.change_pct / 100.0,
        rounds=attribution.rounds,
        warnings=(*screen.warnings, text),
        layer=LAYER_WORDS[attribution.layer] if attribution.layer in LAYERS else None,
    )
