"""Flame graphs: two profiles on one scale, and their difference.

The outermost row is the layer, so that a graph is divided by layer first. What the harness itself puts above
the measured calls is left out.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from investigator import units
from investigator.attribution.layers import LAYER_WORDS, LAYERS
from investigator.profiling.classify import classify
from investigator.profiling.stacks import Frame, Stacks
from investigator.report.page.shapes import VEGA, Figure, Spec, label, rounded, slug, time_unit
from investigator.report.page.theme import CONFIG, colour, layer_colour

Path = tuple[str, ...]
Weights = Mapping[Path, float]
"""Own time in ns of one call by stack, outermost first; the first name is the layer."""

ROW = 17
LEAST_SHARE = 0.005
"""Part of the whole width from which a frame is drawn."""
MOST_ROWS = 24
MOST_TOLD = 15
"""Boxes in the table beside a graph, the largest first."""
FLAME_WIDTH = 520
DIFFERENCE_WIDTH = 1060
_HARNESS = re.compile(
    r"(?:^|[ :^*+~])(?:(?:main|guard|pass|operation|loop)\.mjs:\d+:\d+|a?sync_\w+ :\d+:\d+)$"
)
_TIER = re.compile(r"^JS:[*^+~]?")
_TRAMPOLINES = re.compile(r"^(?:\[generated code\]|Builtins_InterpreterEntryTrampoline)$")
_API_CALL = re.compile(r"^Builtins_(?:CallApiCallback|HandleApiCall)\w*$")
_TEMPLATE = re.compile(r"<.*>$|\(.*\)")
_BROKEN = "broken"
_LAYER_PLACE = {str(layer): place for place, layer in enumerate(LAYERS)}


class Side(NamedTuple):
    """The profile of one environment."""

    name: str
    """Short name of the environment."""
    stacks: Stacks
    ns_per_call: float
    """What the whole of it stands for."""


class _Node:
    """A function called along one path: its time with everything inside it, on both sides."""

    __slots__ = ("children", "depth", "name", "new_ns", "old_ns", "widest_ns")

    def __init__(self, name: str, depth: int) -> None:
        self.name = name
        self.depth = depth
        self.children: dict[str, _Node] = {}
        self.old_ns = self.new_ns = self.widest_ns = 0.0


class _Box(NamedTuple):
    node: _Node
    layer: str
    start_ns: float
    width_ns: float


def flame_figures(op: str, before: Side, after: Side) -> tuple[Figure, ...]:
    """Both graphs and their difference; nothing where one side has no samples."""
    old, new = (_weights(side) for side in (before, after))
    if not old or not new:
        return ()
    root = _tree(old, new)
    return (
        _side_figure(op, after.name, before.name, _boxes(root, lambda node: node.old_ns), root.old_ns, root),
        _side_figure(op, after.name, after.name, _boxes(root, lambda node: node.new_ns), root.new_ns, root),
        _difference_figure(op, before.name, after.name, root),
    )


def _side_figure(
    op: str, candidate: str, name: str, boxes: Sequence[_Box], whole_ns: float, root: _Node
) -> Figure:
    widest_ns = max(root.old_ns, root.new_ns)
    unit, scale = time_unit([widest_ns])
    frames = [
        {
            **_frame(box, scale),
            "c": layer_colour(box.layer),
            "o": 0.55 if box.node.depth == 1 else 0.3 + 0.1 * (box.node.depth % 2),
            "text": f"{units.format_time(box.width_ns)}, {100 * box.width_ns / whole_ns:.1f} %",
        }
        for box in boxes
    ]
    layers = [box for box in boxes if box.node.depth == 1]
    shares = (f"{_said(box.layer)} {100 * box.width_ns / whole_ns:.0f} %" for box in layers)
    return Figure(
        name=slug("flame", op, candidate, name),
        title=f"Flame graph: {label(op)} on {name}",
        caption="",
        summary=f"{units.format_time(whole_ns)} per operation: {', '.join(shares)}.",
        language="vega",
        spec=_spec(frames, widest_ns / scale, f"{unit} per operation", FLAME_WIDTH),
        columns=("function and what it calls", "layer", "time"),
        rows=tuple(
            (_called(box), _said(box.layer), units.format_time(box.width_ns))
            for box in sorted(boxes, key=lambda box: -box.width_ns)[:MOST_TOLD]
            if box.node.depth > 1
        ),
    )


def _difference_figure(op: str, before: str, after: str, root: _Node) -> Figure:
    boxes = _boxes(root, lambda node: node.widest_ns)
    unit, scale = time_unit([root.widest_ns])
    most = max((abs(box.node.new_ns - box.node.old_ns) for box in boxes), default=0.0) or 1.0
    frames = [
        {
            **_frame(box, scale),
            "c": colour("slower" if box.node.new_ns > box.node.old_ns else "faster"),
            "o": rounded(0.04 + 0.6 * min(1.0, abs(box.node.new_ns - box.node.old_ns) / most)),
            "text": f"{units.format_time(box.node.old_ns)} to {units.format_time(box.node.new_ns)}",
        }
        for box in boxes
    ]
    ordered = sorted(boxes, key=lambda box: -abs(box.node.new_ns - box.node.old_ns))
    return Figure(
        name=slug("flame-difference", op, after),
        title=f"Difference: {before} to {after}",
        caption=(
            "Every stack is as wide as on the side where it takes longer; red has grown, green has shrunk, "
            "the more the stronger."
        ),
        summary=f"{units.format_time(root.old_ns)} to {units.format_time(root.new_ns)} per operation.",
        language="vega",
        spec=_spec(frames, root.widest_ns / scale, f"{unit} per operation", DIFFERENCE_WIDTH),
        columns=("function and what it calls", "layer", before, after),
        rows=tuple(
            (
                _called(box),
                _said(box.layer),
                units.format_time(box.node.old_ns),
                units.format_time(box.node.new_ns),
            )
            for box in ordered[:MOST_TOLD]
            if box.node.depth > 1
        ),
    )


# -- stacks to boxes --------------------------------------------------------------------------------------


def _weights(side: Side) -> dict[Path, float]:
    counts: dict[Path, int] = {}
    for stack, count in side.stacks.items():
        if stack.thread == "main":
            path = (classify(stack) or _BROKEN, *_shown(stack.frames))[:MOST_ROWS]
            counts[path] = counts.get(path, 0) + count
    total = sum(counts.values())
    return {path: count / total * side.ns_per_call for path, count in counts.items()}


def _shown(frames: Sequence[Frame]) -> Iterator[str]:
    """Names below the harness, without what differs although the work is the same."""
    own = max((n for n, f in enumerate(frames, 1) if f.origin == "js" and _is_harness(f.symbol)), default=0)
    last = ""
    for frame in frames[own:]:
        name = _API_CALL.sub("API callback", _TIER.sub("", frame.symbol))
        # What calls itself, or is told twice by an inlined caller, is one box.
        if name != last and not _TRAMPOLINES.match(name):
            yield name
            last = name


@functools.lru_cache(maxsize=1 << 14)
def _is_harness(symbol: str) -> bool:
    return _HARNESS.search(symbol) is not None


def _tree(old: Weights, new: Weights) -> _Node:
    root = _Node("", 0)
    for path in old.keys() | new.keys():
        before, after = old.get(path, 0.0), new.get(path, 0.0)
        node = root
        for name in ("", *path):
            if name:
                child = node.children.get(name)
                if child is None:
                    child = node.children[name] = _Node(name, node.depth + 1)
                node = child
            node.old_ns += before
            node.new_ns += after
            node.widest_ns += max(before, after)
    return root


def _boxes(root: _Node, width_ns: Callable[[_Node], float]) -> list[_Box]:
    """What is wide enough to be drawn, from the outermost inwards; `MOST_ROWS` bounds the depth."""
    least_ns = LEAST_SHARE * max(root.old_ns, root.new_ns)
    boxes: list[_Box] = []

    def place(parent: _Node, layer: str, start_ns: float) -> None:
        for node in sorted(parent.children.values(), key=_order):
            own = width_ns(node)
            if own >= least_ns:
                inside = layer or node.name
                boxes.append(_Box(node, inside, start_ns, own))
                place(node, inside, start_ns)
            start_ns += own

    place(root, "", 0.0)
    return boxes


def _order(node: _Node) -> tuple[int, str]:
    """Layers in their usual order, functions by name: the same place in both graphs."""
    place = _LAYER_PLACE.get(node.name, len(_LAYER_PLACE)) if node.depth == 1 else 0
    return place, node.name


def _said(layer: str) -> str:
    return LAYER_WORDS.get(layer, label(layer))


def _called(box: _Box) -> str:
    return label(box.node.name, 120)


# -- boxes to a plot --------------------------------------------------------------------------------------


def _frame(box: _Box, scale: float) -> Spec:
    name = box.node.name
    return {
        "n": _said(name) if box.node.depth == 1 else label(name, 100),
        "s": _said(name) if box.node.depth == 1 else label(_own_name(name), 60),
        "d": box.node.depth - 1,
        "x": rounded(box.start_ns / scale),
        "w": rounded(box.width_ns / scale),
    }


def _own_name(symbol: str) -> str:
    """``TransitionToDataProperty`` of ``v8::internal::Map::TransitionToDataProperty``."""
    return _TEMPLATE.sub("", symbol).rpartition("::")[2] or symbol


def _spec(frames: Sequence[Spec], widest: float, title: str, width: int) -> Spec:
    """A Vega spec: the outermost row on top; a click enlarges a box, one on the top row undoes it."""
    rows = 1 + max((frame["d"] for frame in frames), default=0)
    tooltip = {"signal": "{title: datum.n, 'per operation': datum.text}"}
    left = {"signal": "scale('x', datum.x)"}
    right = {"signal": "scale('x', datum.x + datum.w)"}
    return {
        "$schema": VEGA,
        "width": width,
        "height": rows * ROW,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": 4,
        "config": CONFIG,
        "signals": [
            {
                "name": "shown",
                "value": [0, rounded(widest)],
                "on": [
                    {
                        "events": "@box:click, @name:click",
                        "update": f"datum.d == 0 ? [0, {rounded(widest)}] : [datum.x, datum.x + datum.w]",
                    }
                ],
            }
        ],
        "data": [{"name": "frames", "values": list(frames)}],
        "scales": [
            {"name": "x", "type": "linear", "domain": {"signal": "shown"}, "range": "width", "zero": False}
        ],
        "axes": [{"orient": "bottom", "scale": "x", "title": title, "tickCount": 5, "grid": False}],
        "marks": [
            {
                "type": "group",
                "encode": {
                    "update": {
                        "width": {"signal": "width"},
                        "height": {"signal": "height"},
                        "clip": {"value": True},
                    }
                },
                "marks": [
                    {
                        "type": "rect",
                        "name": "box",
                        "from": {"data": "frames"},
                        "aria": False,
                        "encode": {
                            "update": {
                                "x": left,
                                "x2": right,
                                "y": {"signal": f"datum.d * {ROW}"},
                                "height": {"value": ROW - 1},
                                "fill": {"field": "c"},
                                "fillOpacity": {"field": "o"},
                                "stroke": {"value": colour("page")},
                                "strokeWidth": {"value": 0.5},
                                "tooltip": tooltip,
                                "cursor": {"value": "pointer"},
                            }
                        },
                    },
                    {
                        "type": "text",
                        "name": "name",
                        "from": {"data": "frames"},
                        "aria": False,
                        "encode": {
                            "update": {
                                "x": {"signal": "max(0, scale('x', datum.x)) + 3"},
                                "y": {"signal": f"datum.d * {ROW} + {ROW // 2}"},
                                "baseline": {"value": "middle"},
                                "fontSize": {"value": 10.5},
                                "fill": {"value": colour("ink")},
                                "text": {"signal": _FITTING},
                                "tooltip": tooltip,
                                "cursor": {"value": "pointer"},
                            }
                        },
                    },
                ],
            }
        ],
    }


_VISIBLE = "(min(width, scale('x', datum.x + datum.w)) - max(0, scale('x', datum.x)))"
"""Pixels of a box that can be seen."""
_CHARACTER = 6.1
"""Usual width of a character in pixels: measuring each text takes longer than everything else."""
_FITTING = (
    f"{_VISIBLE} < 24 ? '' : length(datum.n) * {_CHARACTER} + 6 <= {_VISIBLE} ? datum.n : "
    f"length(datum.s) * {_CHARACTER} + 6 <= {_VISIBLE} ? datum.s : "
    f"slice(datum.s, 0, max(1, floor(({_VISIBLE} - 6) / {_CHARACTER}) - 1)) + '\u2026'"
)
"""The whole name, else the name without its classes, else as much of that as there is room for."""
