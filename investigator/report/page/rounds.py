"""All rounds of one operation: a point for every process, the baseline's twin beside it."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from investigator import units
from investigator.arms import Arm, Arms
from investigator.report.page.shapes import Figure, label, rounded, slug, time_unit, vega_lite
from investigator.report.page.theme import NARROW, SHAPES, colour, series_colour

HEIGHT = 170


def rounds_figure(
    op: str, arms: Arms, environments: Sequence[str], names: Mapping[str, str], *, name: str = "rounds"
) -> Figure | None:
    """Plot the warm process values of `op`; None where nothing was measured.

    Args:
        op: operation.
        arms: process values of the run, ns per call.
        environments: identifiers, the baseline first.
        names: short names of environments.
        name: first part of the figure's name.
    """
    columns = tuple(_columns(op, arms, environments, names))
    values = [value for _, _, _, arm in columns for value in arm.wall if np.isfinite(value)]
    if not values:
        return None
    unit, scale = time_unit(values)
    shown = [text for _, text, _, _ in columns]
    points = [
        {"v": text, "r": number, "t": rounded(value / scale), "text": units.format_time(value)}
        for _, text, _, arm in columns
        for number, value in enumerate(arm.wall, start=1)
        if np.isfinite(value)
    ]
    band = 0.75 * (NARROW - 60) / len(columns)
    x = {
        "field": "v",
        "type": "nominal",
        "sort": shown,
        "axis": {"labelAngle": 0, "title": None, "grid": False},
    }
    y = {
        "field": "t",
        "type": "quantitative",
        "scale": {"zero": False, "nice": True, "padding": 6},
        "axis": {"title": f"{unit} per operation", "tickCount": 5},
    }
    colours = {"domain": shown, "range": [series_colour(number) for number, *_ in columns]}
    body = {
        "data": {"values": points},
        "layer": [
            {
                "mark": {"type": "tick", "thickness": 2, "opacity": 0.5, "size": band, "aria": False},
                "encoding": {
                    "x": {**x, "bandPosition": 0.5},
                    "y": {**y, "aggregate": "median"},
                    "color": {"field": "v", "type": "nominal", "scale": colours, "legend": None},
                },
            },
            {
                "mark": {"type": "point", "size": 34, "strokeWidth": 1.5, "opacity": 1, "aria": False},
                "encoding": {
                    "x": x,
                    "y": y,
                    "xOffset": {"field": "r", "type": "ordinal"},
                    "stroke": {"field": "v", "type": "nominal", "scale": colours, "legend": None},
                    "fill": {
                        "field": "v",
                        "type": "nominal",
                        "scale": {
                            "domain": shown,
                            "range": [
                                colour("page") if twin else series_colour(number)
                                for number, _, twin, _ in columns
                            ],
                        },
                        "legend": None,
                    },
                    "shape": {
                        "field": "v",
                        "type": "nominal",
                        "scale": {"domain": shown, "range": [SHAPES[n % len(SHAPES)] for n, *_ in columns]},
                        "legend": None,
                    },
                    "tooltip": [
                        {"field": "v", "title": "version"},
                        {"field": "r", "title": "round"},
                        {"field": "text", "title": "per operation"},
                    ],
                },
            },
        ],
    }
    return Figure(
        name=slug(name, op),
        title=label(op, 64),
        caption="",
        summary=_summary(op, columns),
        language="vega-lite",
        spec=vega_lite(NARROW, HEIGHT, body),
        columns=("version", *(f"round {number + 1}" for number in range(len(columns[0][3].wall)))),
        rows=tuple((text, *map(units.format_time, arm.wall)) for _, text, _, arm in columns),
    )


def _columns(
    op: str, arms: Arms, environments: Sequence[str], names: Mapping[str, str]
) -> Iterator[tuple[int, str, bool, Arm]]:
    """Number of the environment, text of the column, whether it is a second process, and the values."""
    for number, environment in enumerate(environments):
        for twin in (False, True):
            arm = arms.get((op, "warm", environment, twin))
            if arm is not None and np.isfinite(arm.wall).any():
                yield (
                    number,
                    label(names.get(environment, environment), 24) + (" again" if twin else ""),
                    twin,
                    arm,
                )


def _summary(op: str, columns: Sequence[tuple[int, str, bool, Arm]]) -> str:
    parts = [
        f"{text} median {units.format_time(float(np.nanmedian(arm.wall)))}, "
        f"{units.format_time(float(np.nanmin(arm.wall)))} to {units.format_time(float(np.nanmax(arm.wall)))}"
        for _, text, _, arm in columns
    ]
    return f"Time per operation of {label(op, 64)} in every round: {'; '.join(parts)}."
