"""Forest plot: every change with its interval, and the margin it is judged by."""

import math
from collections.abc import Mapping, Sequence

from investigator import units
from investigator.analysis import Comparison
from investigator.report.page.shapes import Figure, Spec, label, rounded, slug, vega_lite
from investigator.report.page.theme import SHAPES, WIDE, colour, series_colour
from investigator.report.wording import VERDICT_WORDS

ROW = 15
"""Pixels between two intervals of one operation."""
_TICKS_PCT = (-95, -90, -80, -65, -50, -35, -20, -10, 0, 10, 25, 50, 100, 200, 400, 900, 1900)
_LEAST, _MOST = math.log(0.02), math.log(50.0)
"""Ends of what is drawn; an interval beyond runs to the edge."""


def forest_figure(
    family: str, comparisons: Sequence[Comparison], names: Mapping[str, str], margin_pct: float
) -> Figure | None:
    """Plot the warm comparisons of one family with the baseline; None where there is none to plot.

    Args:
        family: for the title and the name.
        comparisons: in the order of the rows; those without an estimate are left out.
        names: short names of environments, candidates in the order of their colours behind the baseline.
        margin_pct: the margin that an interval must lie beyond.
    """
    drawn = [c for c in comparisons if math.isfinite(c.wall.change_pct) and c.wall.change_pct > -100]
    if not drawn:
        return None
    order = [environment for environment in names if any(c.candidate == environment for c in drawn)]
    numbers = {environment: number for number, environment in enumerate(names)}
    texts = {environment: label(names[environment], 24) for environment in order}
    colours = {
        "domain": [texts[e] for e in order],
        "range": [series_colour(numbers[e]) for e in order],
    }
    shapes = {"domain": colours["domain"], "range": [SHAPES[numbers[e] % len(SHAPES)] for e in order]}
    ops = list(dict.fromkeys(label(c.op, 30) for c in drawn))
    rows = [_row(comparison, texts) for comparison in drawn]
    ends = [row[key] for row in rows for key in ("lo", "hi")] + [math.log1p(x / 100) for x in (-6, 6)]
    domain = [min(ends) - 0.02, max(ends) + 0.02]
    body = {
        "data": {"values": rows},
        "layer": _layers(domain, colours, shapes, margin_pct),
        "encoding": {
            "y": {
                "field": "op",
                "type": "nominal",
                "sort": ops,
                "axis": {"title": None, "grid": True, "bandPosition": 1, "ticks": False, "labelLimit": 130},
            },
        },
    }
    height = len(ops) * (ROW * len(order) + 8)
    return Figure(
        name=slug("changes", family),
        title=f"Changes: {label(family)}",
        caption=(
            "Change in time per operation with its interval; right of the line is slower. The grey band is "
            f"the margin of {margin_pct:g} %: only an interval wholly outside of it is slower or "
            "faster (filled). Hollow: no change or cannot tell. The scale is logarithmic: twice as fast is "
            "as far as twice as slow."
        ),
        summary=_summary(drawn, texts),
        language="vega-lite",
        spec=vega_lite(WIDE, height, body),
        columns=("operation", "version", "change", "interval", "verdict"),
        rows=tuple(
            (
                label(c.op, 64),
                texts[c.candidate],
                units.format_percent(c.wall.change_pct),
                units.format_interval(c.wall.ci_low_pct, c.wall.ci_high_pct),
                VERDICT_WORDS[c.verdict],
            )
            for c in drawn
        ),
    )


def _layers(domain: Sequence[float], colours: Spec, shapes: Spec, margin_pct: float) -> list[Spec]:
    ticks = [math.log1p(tick / 100) for tick in _TICKS_PCT]
    x = {
        "field": "x",
        "type": "quantitative",
        "scale": {"domain": list(domain), "nice": False, "zero": False},
        "axis": {
            "title": "change in time per operation",
            "orient": "top",
            "values": [rounded(tick) for tick in ticks if domain[0] <= tick <= domain[1]],
            "labelExpr": "datum.value == 0 ? '0' : format(round((exp(datum.value) - 1) * 100), '+') + ' %'",
            "labelOverlap": "greedy",
            "labelSeparation": 6,
        },
    }
    offset = {"field": "v", "type": "nominal", "sort": colours["domain"]}
    legend = (
        None if len(colours["domain"]) < 2 else {"title": None, "orient": "bottom", "direction": "horizontal"}
    )
    stroke = {"field": "v", "type": "nominal", "scale": colours, "legend": legend}
    tooltip = [
        {"field": "op", "title": "operation"},
        {"field": "v", "title": "version"},
        {"field": "change"},
        {"field": "interval"},
        {"field": "verdict"},
    ]
    band = {"lo": math.log1p(-margin_pct / 100), "hi": math.log1p(margin_pct / 100)}
    point = {
        "x": x,
        "yOffset": offset,
        "shape": {"field": "v", "type": "nominal", "scale": shapes, "legend": legend},
        "tooltip": tooltip,
    }
    return [
        {
            "data": {"values": [band]},
            "mark": {"type": "rect", "fill": colour("band"), "aria": False},
            "encoding": {
                "y": None,
                "x": {**x, "field": "lo"},
                "x2": {"field": "hi"},
            },
        },
        {
            "data": {"values": [{"x": 0}]},
            "mark": {"type": "rule", "stroke": colour("muted"), "aria": False},
            "encoding": {"y": None, "x": x},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 2, "aria": False},
            "encoding": {
                "x": {**x, "field": "lo"},
                "x2": {"field": "hi"},
                "yOffset": offset,
                "stroke": stroke,
                "tooltip": tooltip,
            },
        },
        {
            "mark": {"type": "point", "size": 44, "strokeWidth": 1.5, "opacity": 1, "aria": False},
            "encoding": {
                **point,
                "stroke": stroke,
                "fill": {
                    "condition": {"test": "!datum.flag", "value": colour("page")},
                    "field": "v",
                    "type": "nominal",
                    "scale": colours,
                    "legend": legend,
                },
            },
        },
    ]


def _row(comparison: Comparison, texts: Mapping[str, str]) -> Spec:
    wall = comparison.wall
    return {
        "op": label(comparison.op, 30),
        "v": texts[comparison.candidate],
        "x": rounded(_log(wall.change_pct)),
        "lo": rounded(_log(wall.ci_low_pct, otherwise=_LEAST)),
        "hi": rounded(_log(wall.ci_high_pct, otherwise=_MOST)),
        "flag": comparison.verdict in {"slower", "faster"},
        "change": units.format_percent(wall.change_pct),
        "interval": units.format_interval(wall.ci_low_pct, wall.ci_high_pct),
        "verdict": VERDICT_WORDS[comparison.verdict],
    }


def _log(change_pct: float, otherwise: float = 0.0) -> float:
    """Natural logarithm of the ratio, within what is drawn."""
    if not math.isfinite(change_pct):
        return otherwise
    return min(max(math.log1p(max(change_pct, -99.9) / 100), _LEAST), _MOST)


def _summary(drawn: Sequence[Comparison], texts: Mapping[str, str]) -> str:
    flagged = [c for c in drawn if c.verdict in {"slower", "faster"}]
    parts = [
        f"{label(c.op)} on {texts[c.candidate]} {VERDICT_WORDS[c.verdict]}, "
        f"{units.format_percent(c.wall.change_pct)} "
        f"({units.format_interval(c.wall.ci_low_pct, c.wall.ci_high_pct)})"
        for c in flagged[:12]
    ]
    rest = f"; {len(flagged) - 12} more" if len(flagged) > 12 else ""
    told = f": {'; '.join(parts)}{rest}" if parts else ""
    return f"{len(flagged)} of {len(drawn)} changes lie beyond the margin{told}."
