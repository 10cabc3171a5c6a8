"""Where the time of one operation goes, before and after, and which functions it goes to."""

import math
from collections.abc import Iterator, Sequence

from investigator import units
from investigator.attribution.layers import LAYER_WORDS, LAYERS, Attribution, Method, Symbol
from investigator.report.page.shapes import Figure, Spec, label, rounded, slug, time_unit, vega_lite
from investigator.report.page.theme import WIDE, colour, layer_colour

MOST_SYMBOLS = 12
_ORDER = (*LAYERS, "outside_core", "undivided", "unexplained")
_BAR = 26


def layers_figure(found: Attribution, before: str, after: str) -> Figure | None:
    """Plot the time of each layer on both sides by each method; None where no method could be used.

    Args:
        found: the attribution.
        before: short name of the baseline.
        after: short name of the candidate.
    """
    parts = tuple(_parts(found.methods, before, after))
    if not parts:
        return None
    unit, scale = time_unit([ns for *_, ns in parts])
    layers = [name for name in _ORDER if any(layer == name and ns for _, _, layer, ns in parts)]
    rows = [
        {
            "bar": f"{side} · {method}",
            "layer": LAYER_WORDS[layer],
            "n": _ORDER.index(layer),
            "t": rounded(ns / scale),
            "text": units.format_time(ns),
        }
        for side, method, layer, ns in parts
    ]
    body = {
        "data": {"values": rows},
        "mark": {
            "type": "bar",
            "stroke": colour("page"),
            "strokeWidth": 1,
            "height": {"band": 0.7},
            "aria": False,
        },
        "encoding": {
            "y": {
                "field": "bar",
                "type": "nominal",
                "sort": list(dict.fromkeys(row["bar"] for row in rows)),
                "axis": {"title": None, "ticks": False, "domain": False, "labelLimit": 180},
            },
            "x": {
                "field": "t",
                "type": "quantitative",
                "axis": {"title": f"{unit} per operation", "tickCount": 8},
            },
            "order": {"field": "n", "type": "quantitative"},
            "fill": {
                "field": "layer",
                "type": "nominal",
                "scale": {
                    "domain": [LAYER_WORDS[name] for name in layers],
                    "range": [layer_colour(name) for name in layers],
                },
                "legend": {"title": None, "orient": "bottom", "direction": "horizontal", "columns": 2},
            },
            "tooltip": [
                {"field": "bar", "title": "side"},
                {"field": "layer"},
                {"field": "text", "title": "per operation"},
            ],
        },
    }
    return Figure(
        name=slug("layers", found.op, after),
        title="Time per operation by layer",
        caption=(
            f"{before} above {after}, by each method that could be used. "
            "Left of zero: what a method counts twice."
        ),
        summary=_layers_summary(parts, before, after),
        language="vega-lite",
        spec=vega_lite(WIDE, _BAR * len({row["bar"] for row in rows}), body),
        columns=("side", "method", "layer", "per operation"),
        rows=tuple(
            (side, method, LAYER_WORDS[layer], units.format_time(ns)) for side, method, layer, ns in parts
        ),
    )


def _parts(methods: Sequence[Method], before: str, after: str) -> Iterator[tuple[str, str, str, float]]:
    for method in methods:
        for side in (before, after):
            for layer in _ORDER:
                share = method.layers.get(layer)
                if share is not None:
                    ns = share.baseline_ns_per_op if side == before else share.candidate_ns_per_op
                    if math.isfinite(ns):
                        yield side, method.name, layer, ns


def _layers_summary(parts: Sequence[tuple[str, str, str, float]], before: str, after: str) -> str:
    sentences = []
    for method in dict.fromkeys(method for _, method, _, _ in parts):
        own = {(side, layer): ns for side, name, layer, ns in parts if name == method}
        moved = [
            f"{LAYER_WORDS[layer]} {units.format_time(ns)} to {units.format_time(own.get((after, layer)))}"
            for (side, layer), ns in own.items()
            if side == before
        ]
        sentences.append(f"By {method}, {before} to {after}: {', '.join(moved)}.")
    return " ".join(sentences)


def symbols_figure(found: Attribution, after: str) -> Figure | None:
    """Plot the functions whose own time changed most; None where no profile names any."""
    symbols = [s for s in found.symbols if math.isfinite(s.ns_per_op)][:MOST_SYMBOLS]
    symbols.sort(key=lambda symbol: -symbol.ns_per_op)
    if not symbols:
        return None
    unit, scale = time_unit([s.ns_per_op for s in symbols])
    rows = [
        {
            "n": number,
            "name": label(symbol.name, 60),
            "t": rounded(symbol.ns_per_op / scale),
            "text": _signed(symbol.ns_per_op),
            "layer": LAYER_WORDS.get(symbol.layer, label(symbol.layer)),
            "before": units.format_time(symbol.baseline_ns_per_op),
            "after": units.format_time(symbol.candidate_ns_per_op),
        }
        for number, symbol in enumerate(symbols)
    ]
    return Figure(
        name=slug("functions", found.op, after),
        title="Functions that grew or shrank most",
        caption=(
            "Change in own time per operation, from the profiles of all rounds: growth to the right. "
            "The bars have the colours of the layers."
        ),
        summary="; ".join(f"{row['name']} {row['text']}" for row in rows[:6]) + ".",
        language="vega-lite",
        spec=vega_lite(WIDE, 34 * len(rows), _symbols_body(rows, symbols, unit)),
        columns=("function", "layer", "before", "after", "change"),
        rows=tuple(
            (
                label(symbol.name, 120),
                str(row["layer"]),
                str(row["before"]),
                str(row["after"]),
                str(row["text"]),
            )
            for symbol, row in zip(symbols, rows, strict=True)
        ),
    )


def _symbols_body(rows: Sequence[Spec], symbols: Sequence[Symbol], unit: str) -> Spec:
    layers = {LAYER_WORDS.get(s.layer, label(s.layer)): layer_colour(s.layer) for s in symbols}
    y = {"field": "n", "type": "ordinal", "axis": None}
    tooltip = [{"field": name} for name in ("name", "layer", "before", "after")]
    return {
        "data": {"values": list(rows)},
        "encoding": {"y": y, "tooltip": [*tooltip, {"field": "text", "title": "change"}]},
        "layer": [
            {
                "mark": {"type": "bar", "height": 11, "yOffset": 8, "aria": False},
                "encoding": {
                    "x": {
                        "field": "t",
                        "type": "quantitative",
                        "axis": {"title": f"change, {unit} per operation", "tickCount": 6, "grid": False},
                    },
                    "fill": {
                        "field": "layer",
                        "type": "nominal",
                        "scale": {"domain": list(layers), "range": list(layers.values())},
                        "legend": {
                            "title": None,
                            "orient": "bottom",
                            "direction": "horizontal",
                            "columns": 2,
                        },
                    },
                },
            },
            {
                "mark": {
                    "type": "text",
                    "align": "left",
                    "baseline": "bottom",
                    "dy": 1,
                    "fill": colour("ink"),
                    "aria": False,
                },
                "encoding": {
                    "x": {"value": 2},
                    "text": {"field": "line"},
                },
                "transform": [{"calculate": "datum.name + '  ' + datum.text", "as": "line"}],
            },
        ],
    }


def _signed(elapsed_ns: float) -> str:
    text = units.format_time(elapsed_ns)
    return f"+{text}" if elapsed_ns > 0 else text
