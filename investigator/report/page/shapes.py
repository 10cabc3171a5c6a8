"""Shapes of a figure, and the helpers that all kinds of figures share."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from investigator.report.page.theme import CONFIG
from investigator.text import short_text

Spec = dict[str, Any]
"""A Vega-Lite or Vega specification: plain JSON."""

VEGA_LITE = "https://vega.github.io/schema/vega-lite/v6.json"
VEGA = "https://vega.github.io/schema/vega/v6.json"

_UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One plot with what stands in for it where it cannot be seen."""

    name: str
    """Safe as a file name and as an HTML id; unique in a report."""
    title: str
    caption: str
    """How to read it; one or two sentences."""
    summary: str
    """What it shows, for those who cannot see it."""
    language: Literal["vega", "vega-lite"]
    spec: Spec
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The plotted values as texts."""


def vega_lite(width: int, height: int, body: Mapping[str, Any]) -> Spec:
    """A Vega-Lite spec whose whole width is `width` pixels, axes included."""
    return {
        "$schema": VEGA_LITE,
        "width": width,
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": 4,
        "config": CONFIG,
        **body,
    }


def slug(*parts: str) -> str:
    """A name of letters, digits, dots and dashes, at most 120 characters."""
    return "-".join(_UNSAFE.sub("-", part)[:50].strip("-.") for part in parts if part)[:120] or "figure"


def time_unit(values_ns: Sequence[float]) -> tuple[str, float]:
    """The unit in which the largest of `values_ns` is a number from 1 to 999, and its length in ns."""
    largest = max((abs(value) for value in values_ns), default=0.0)
    return next(((unit, scale) for unit, scale in _UNITS if largest >= scale), _UNITS[-1])


def rounded(value: float) -> float:
    """Five significant digits: enough for any plot, and half the bytes."""
    return float(f"{value:.5g}")


def label(text: str, limit: int = 40) -> str:
    """A name as it stands in a plot."""
    return short_text(text, limit)
