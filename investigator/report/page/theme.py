"""Colours and type of the plots; the page's own style sheet takes the colours from here.

A spec names colours as CSS variables, so that one drawing follows the reader's light or dark scheme; `plain`
puts the light ones in for pictures that leave the page.
"""

import re
from collections.abc import Mapping
from typing import Any

FONT = '"Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif'
NARROW = 340
"""Width in pixels of a plot that fits a phone as it is."""
WIDE = 700
"""Width of a plot drawn for a desk; the script of the page lays it out anew on smaller screens."""
SERIES = 8

COLOURS: Mapping[str, tuple[str, str]] = {
    "page": ("#ffffff", "#15181c"),
    "panel": ("#f5f7f9", "#1e2328"),
    "ink": ("#1b1f24", "#e8eaed"),
    "muted": ("#565e67", "#a4acb5"),
    "grid": ("#dfe3e8", "#333a42"),
    "link": ("#0a58a8", "#7db9f5"),
    "band": ("#e9ecf0", "#2a3037"),
    "slower": ("#b3261e", "#ff8d80"),
    "faster": ("#0a6b4d", "#5ccfa2"),
    "s0": ("#3f4750", "#c3cad2"),
    "s1": ("#0b62b5", "#6cb2f5"),
    "s2": ("#b84600", "#f3a35f"),
    "s3": ("#7236b0", "#c7a2f2"),
    "s4": ("#17713f", "#63cd92"),
    "s5": ("#a01a58", "#f291b8"),
    "s6": ("#00656f", "#5bcbd3"),
    "s7": ("#735500", "#dcbc50"),
    "boundary": ("#d4731b", "#e8934a"),
    "engine": ("#2f72c0", "#67a6ea"),
    "gc": ("#2f8f5b", "#57c28a"),
    "native_core": ("#8659c4", "#b191e6"),
    "os": ("#8a6d3b", "#c9aa74"),
    "rest": ("#8b949e", "#8b949e"),
}
"""Name to the colour in a light and in a dark scheme. Series and marks have a contrast of 3:1 or more."""

LAYER_COLOURS = {
    "boundary": "boundary",
    "outside_core": "boundary",
    "engine": "engine",
    "undivided": "engine",
    "gc": "gc",
    "native_core": "native_core",
    "os": "os",
}
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")

_VARIABLE = re.compile(r"var\(--([a-z0-9_]+)\)")


def colour(name: str) -> str:
    """The CSS variable of a colour."""
    return f"var(--{name})"


def series_colour(number: int) -> str:
    """Colour of an environment: the baseline is 0, candidates repeat after the seventh."""
    return colour("s0" if number == 0 else f"s{(number - 1) % (SERIES - 1) + 1}")


def layer_colour(layer: str) -> str:
    """Colour of a layer; what is no layer is grey."""
    return colour(LAYER_COLOURS.get(layer, "rest"))


def plain(text: str) -> str:
    """`text` (a spec or drawing) with the colours of the light scheme instead of variables."""
    return _VARIABLE.sub(lambda found: COLOURS[found.group(1)][0], text)


def style_variables() -> str:
    """CSS declarations of all colours: light, dark by the reader's scheme, light again on paper."""
    light, dark = (
        "".join(f"--{name}:{pair[scheme]};" for name, pair in COLOURS.items()) for scheme in (0, 1)
    )
    return (
        f":root{{color-scheme:light dark;{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    )


CONFIG: Mapping[str, Any] = {
    "background": None,
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": colour("muted"),
        "titleColor": colour("muted"),
        "titleFontWeight": "normal",
        "titleFontSize": 11,
        "labelFontSize": 11,
        "gridColor": colour("grid"),
        "domainColor": colour("grid"),
        "tickColor": colour("grid"),
        "labelLimit": 150,
    },
    "legend": {
        "labelColor": colour("ink"),
        "titleColor": colour("muted"),
        "labelFontSize": 11,
        "labelLimit": 160,
        "symbolStrokeWidth": 1.5,
    },
    "text": {"fill": colour("ink"), "fontSize": 11},
}
