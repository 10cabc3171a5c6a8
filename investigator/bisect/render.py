"""What came of a bisection, for the terminal, as Markdown and as a picture."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import vl_convert
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from investigator import units
from investigator.bisect.commits import Commits
from investigator.bisect.request import Request
from investigator.bisect.result import Found, Join, ReleaseRow, Result, effect, effect_text
from investigator.causes.build import BuildDifference
from investigator.stats.bisection import Step
from investigator.text import clean_text, escape_markdown

BAR: Final = 20
"""Characters of the longest bar."""
SHOWN_COMMITS: Final = 20
_STYLES: Final = {"good": "green", "bad": "red", "between": "yellow", "undecided": "yellow", "skipped": "dim"}
_COLOURS: Final = {"good": "#2b7a4b", "bad": "#b3261e", "between": "#b8860b", "undecided": "#6b6b6b"}


def step_line(request: Request, step: Step, bracket: tuple[int, int], left: int) -> str:
    """One step, as progress."""
    versions = [release.version for release in request.releases]
    words = {"old": "good", "new": "bad"} if request.find == "regression" else {"old": "bad", "new": "good"}
    words |= {"between": "between the two", "undecided": "cannot tell"}
    told = ", ".join(
        f"{versions[i]} {effect_text(effect(r.change))} {words[r.side]}" for i, r in step.readings.items()
    )
    ends = f"{versions[step.ends[1]]} {effect_text(effect(step.gap))}"
    last, first = bracket
    return (
        f"step {step.number} ({step.purpose}, {step.rounds} rounds): {told or ends}; "
        f"between {versions[last]} and {versions[first]}, {left} to ask"
    )


# -- terminal -----------------------------------------------------------------------------------------------


def terminal(result: Result, folder: str) -> RenderableType:
    """The answer, the table with its plot, what changed, and where the files are."""
    parts: list[RenderableType] = [Text(clean_text(result.headline, 600), style="bold"), Text("")]
    parts += [Text(clean_text(line, 400)) for line in _summary(result)]
    parts += [Text(""), _table(result)]
    if len(result.changes) > 1:
        parts += [Text(""), Text("Other changes on the way", style="bold")]
        parts += [_indented(_change_line(change), 400) for change in result.changes[1:]]
    if result.join is not None:
        title = f"What changed from {result.join.last} to {result.join.first}"
        parts += [Text(""), Text(clean_text(title, 200), style="bold")]
        parts += [_indented(f"{name}: {text}", 160) for name, text in _joined(result.join, brief=True)]
    parts += _commit_lines(result)
    parts += [Text(""), *(Text(clean_text(note, 600), style="dim") for note in result.notes)]
    files = f"Files: {folder} (bisect.json, report.md, plot.svg, plot.png)"
    parts.append(Text(clean_text(files, 400), style="dim"))
    return Group(*parts)


def _indented(text: str, limit: int) -> Text:
    return Text(f"  {clean_text(text, limit)}")


def _summary(result: Result) -> list[str]:
    where = f" on Node {result.node}" if result.node else ""
    with_addon = f", {result.addon}" if result.addon else ", no addon"
    ends = "first bad release" if result.find == "regression" else "first fixed release"
    asked = f"looked for the {ends} of {result.op}, {result.good} good and {result.bad} bad"
    cost = (
        f"{result.steps} steps, {result.rounds} rounds, {units.format_clock(result.measuring_s)} of measuring"
    )
    return [
        f"{asked}{where}{with_addon}",
        f"{len(result.releases)} releases on the way, {cost}; the ends differ by {effect_text(result.gap)}",
    ]


def _tried(result: Result) -> list[ReleaseRow]:
    return [row for row in result.releases if row.place != "not measured"]


def _table(result: Result) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    node = ("V8", "ABI") if result.axis == "node" else ()
    for title in (
        "release",
        *node,
        "addon build",
        "time",
        f"against {result.releases[0].version}",
        "",
        "",
        "steps",
    ):
        right = title in {"time", "steps"}
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    scale = max((row.ns_per_op or 0.0 for row in result.releases), default=0.0) or 1.0
    for row in _tried(result):
        table.add_row(*_cells(row, scale, node=bool(node)))
    return table


def _cells(row: ReleaseRow, scale: float, *, node: bool) -> list[Text]:
    """A release with its bar; the bars one below the other are the plot for a terminal."""
    style = _STYLES.get(row.place, "")
    shown = row.reason if row.place == "skipped" else effect_text(row.effect)
    steps = ",".join(map(str, row.steps)) if len(row.steps) <= 3 else f"all {len(row.steps)}"
    facts = (row.v8, row.abi) if node else ()
    return [
        Text(clean_text(row.version, 60)),
        *(Text(clean_text(fact, 20)) for fact in facts),
        Text(_build_text(row)),
        Text(units.format_time(row.ns_per_op) if row.ns_per_op else ""),
        Text(clean_text(shown, 160)),
        Text("#" * round(BAR * (row.ns_per_op or 0.0) / scale), style=style),
        Text("cannot tell" if row.place == "undecided" else row.place, style=style),
        Text(steps),
    ]


def _build_text(row: ReleaseRow) -> str:
    text = "" if not row.build else "own" if row.build == "own" else f"of {clean_text(row.build, 30)}"
    return f"{text}, own verified" if row.verified and row.build not in {"", "own"} else text


def _change_line(change: Found) -> str:
    place = f"{change.first}" if change.named else f"after {change.last}, up to {change.first}"
    told = effect_text(change.effect) if change.effect is not None else change.reason
    return f"{place}: {told}"


def _joined(join: Join, *, brief: bool = False) -> list[tuple[str, str]]:
    """Name and text of each difference; `brief` only counts V8's flags, of which there are dozens."""
    rows: list[tuple[str, str]] = []
    if join.node is not None:
        rows += [
            (v.name, f"{v.baseline or '-'} -> {v.candidate or '-'}{f' ({v.about})' if v.about else ''}")
            for v in join.node.versions
        ]
        # Lists of Node's own source files and the like say nothing about speed.
        decisive = [d for d in join.node.config if d.relevance == "code"]
        rows += [(f"config {d.subject}", _sides(d)) for d in decisive]
        if others := len(join.node.config) - len(decisive):
            rows.append(("other config", f"{others} variables that decide no machine code"))
        if brief and join.node.defaults:
            rows.append(
                ("V8 defaults", f"{len(join.node.defaults)} flags with another one, listed in report.md")
            )
        else:
            rows += [
                (d.name, f"default {d.baseline} -> {d.candidate} ({d.about})") for d in join.node.defaults
            ]
        if join.node.new_flags or join.node.gone_flags:
            rows.append(("V8 flags", f"{join.node.new_flags} new, {join.node.gone_flags} gone"))
    rows += [(f"addon {d.what} {d.subject}", _sides(d)) for d in join.addon]
    return rows


def _sides(difference: BuildDifference) -> str:
    return f"{difference.baseline or '-'} -> {difference.candidate or '-'}"


def _commit_lines(result: Result) -> list[RenderableType]:
    found = result.commits
    if found is None:
        return []
    if found.reason:
        return [Text(""), Text(clean_text(f"Commits: {found.reason}", 400))]
    parts: list[RenderableType] = [Text(""), Text(_commit_title(result, found), style="bold")]
    parts += [
        _indented(f"{commit.sha[:10]} {commit.date} {commit.subject}", 160)
        for commit in found.commits[:SHOWN_COMMITS]
    ]
    return parts


def _commit_title(result: Result, found: Commits) -> str:
    touching = f"{found.total:,} of them touch {', '.join(found.paths)}"
    return f"Commits {found.range}: {result.commits_total:,}, all in commits.txt; {touching}"


# -- Markdown -----------------------------------------------------------------------------------------------


def markdown(result: Result) -> str:
    """report.md."""
    return "\n".join(_markdown(result)) + "\n"


def _markdown(result: Result) -> Iterator[str]:
    yield f"# {escape_markdown(result.headline, 600)}"
    yield ""
    for line in _summary(result):
        yield f"- {escape_markdown(line, 400)}"
    yield ""
    yield "![Time per operation along the releases](plot.svg)"
    yield ""
    yield from _release_table(result)
    missing = [row.version for row in result.releases if row.place == "not measured"]
    if missing:
        names = escape_markdown(", ".join(missing), 20_000)
        yield f"Not measured, because nothing depended on them: {names}."
        yield ""
    if len(result.changes) > 1:
        yield "## Other changes on the way"
        yield ""
        yield from (f"- {escape_markdown(_change_line(change), 400)}" for change in result.changes[1:])
        yield ""
    if result.join is not None:
        yield from _join_table(result.join)
    if result.commits is not None:
        yield from _commits(result, result.commits)
    if result.measured_on:
        yield "## Where it ran"
        yield ""
        yield from (f"- {name}: {escape_markdown(text, 300)}" for name, text in result.measured_on)
        yield ""
    yield "## How to read it"
    yield ""
    for note in (*result.notes, *_METHOD):
        yield f"- {escape_markdown(note, 800)}"


def _release_table(result: Result) -> Iterator[str]:
    older = result.releases[0].version
    yield f"| release | published | V8 | ABI | addon build | time | against {older} | | steps |"
    yield "|---|---|---|---|---|---:|---|---|---|"
    for row in _tried(result):
        cells = (
            row.version,
            row.published,
            row.v8,
            row.abi,
            _build_text(row),
            units.format_time(row.ns_per_op) if row.ns_per_op else "",
            row.reason if row.place == "skipped" else effect_text(row.effect),
            "cannot tell" if row.place == "undecided" else row.place,
            ", ".join(map(str, row.steps)),
        )
        yield f"| {' | '.join(escape_markdown(cell, 300) for cell in cells)} |"
    yield ""


def _join_table(join: Join) -> Iterator[str]:
    yield f"## What changed from {escape_markdown(join.last)} to {escape_markdown(join.first)}"
    yield ""
    yield "| what | |"
    yield "|---|---|"
    for name, text in _joined(join):
        yield f"| {escape_markdown(name, 200)} | {escape_markdown(text, 400)} |"
    yield ""


def _commits(result: Result, found: Commits) -> Iterator[str]:
    yield "## Commits"
    yield ""
    yield escape_markdown(found.reason or _commit_title(result, found), 400)
    yield ""
    for commit in found.commits[: 4 * SHOWN_COMMITS]:
        yield f"- {escape_markdown(f'{commit.sha[:10]} {commit.date} {commit.subject}', 240)}"
    yield ""


_METHOD: Final = (
    "Each step measures both ends and one release, interleaved in rounds, a fresh process each.",
    "Position: 0 at the older end, 1 at the newer one, on the log scale; its exact interval decides.",
    "Below 3/8 a release counts as the older end, above 5/8 as the newer; looks after 8, 16 and 32 rounds.",
    "The two neighbours of the change are measured again, in 16 to 32 rounds, with own addon builds.",
    "Only if both show the same again, and differ from each other, a release is named.",
    "Releases are in the order in which Node's main branch went; see the README.",
)


# -- pictures -----------------------------------------------------------------------------------------------


def pictures(result: Result) -> Mapping[str, bytes]:
    """plot.svg and plot.png; nothing where no release was measured."""
    spec = chart(result)
    if not spec["data"]["values"]:
        return {}
    text = json.dumps(spec)
    return {
        "plot.svg": vl_convert.vegalite_to_svg(text).encode(),
        "plot.png": vl_convert.vegalite_to_png(text, scale=2),
    }


def chart(result: Result) -> dict[str, Any]:
    """Vega-Lite: change against the older end along the releases, with intervals; skipped ones as ticks."""
    order = [clean_text(row.version, 60) for row in result.releases]
    values: Sequence[dict[str, Any]] = [
        {
            "release": clean_text(row.version, 60),
            "change": row.effect.change_pct,
            "low": row.effect.change_pct if row.effect.ci_low_pct is None else row.effect.ci_low_pct,
            "high": row.effect.change_pct if row.effect.ci_high_pct is None else row.effect.ci_high_pct,
            "place": row.place,
        }
        for row in result.releases
        if row.effect is not None
    ]
    x = {
        "field": "release",
        "type": "nominal",
        "scale": {"domain": order},
        "title": "release, in the order of Node's history"
        if result.axis == "node"
        else "release of the addon",
        "axis": {"labelAngle": -90, "labelOverlap": "greedy"},
    }
    colour = {
        "field": "place",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(_COLOURS), "range": list(_COLOURS.values())},
    }
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "rule"},
            "encoding": {
                "x": x,
                "y": {"field": "low", "type": "quantitative"},
                "y2": {"field": "high"},
                "color": colour,
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {
                "x": x,
                "y": {
                    "field": "change",
                    "type": "quantitative",
                    "title": f"time per operation against {order[0]}, %",
                },
                "color": colour,
            },
        },
    ]
    skipped = [clean_text(row.version, 60) for row in result.releases if row.place == "skipped"]
    if skipped:
        layers.append(
            {
                "data": {"values": [{"release": version, "text": "skipped"} for version in skipped]},
                "mark": {"type": "text", "angle": 270, "fontSize": 9, "color": "#6b6b6b", "align": "left"},
                "encoding": {"x": x, "y": {"datum": 0}, "text": {"field": "text"}},
            }
        )
    marked = [change for change in result.changes if change.named]
    if marked:
        layers.append(
            {
                "data": {"values": [{"release": clean_text(change.first, 60)} for change in marked]},
                "mark": {"type": "rule", "strokeDash": [4, 3], "color": "#444"},
                "encoding": {"x": x},
            }
        )
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {"text": clean_text(result.headline, 160), "anchor": "start", "fontSize": 12},
        "width": max(320, min(1100, 16 * len(order))),
        "height": 260,
        "background": "white",
        "data": {"values": values},
        "layer": layers,
    }
