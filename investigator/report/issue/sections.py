"""Blocks of an issue text that all trackers share: tables and lists, Markdown already."""

import math
from collections.abc import Iterable, Iterator, Sequence

from investigator import units
from investigator.analysis import Interval
from investigator.attribution.layers import LAYER_WORDS
from investigator.naming import addon_name
from investigator.report.issue.material import Material, Measured, Side
from investigator.report.issue.public import code, told
from investigator.report.issue.words import does, sides
from investigator.report.tables import markdown_table

MOST_SYMBOLS = 12
MOST_VARIABLES = 40
MOST_OTHERS = 30
MOST_FLAGS = 12


def fold(summary: str, body: str) -> str:
    """A part that GitHub shows closed."""
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def bullets(lines: Iterable[str]) -> str:
    """A list of lines that are Markdown already."""
    return "\n".join(f"- {line}" for line in lines)


# -- the figures --------------------------------------------------------------------------------------------


def result_table(material: Material) -> str:
    """Wall time, CPU time, the baseline against itself, the first calls."""
    found, (low, high) = material.published, sides(material)
    pair = found.comparison
    rows = [
        _figure("time per call", found.baseline.ns_per_op, found.candidate.ns_per_op, pair.wall),
        _figure("CPU time per call, all threads", _cpu(found.baseline), _cpu(found.candidate), pair.cpu),
    ]
    if found.twin is not None:
        rows.append((f"{told(low)} against itself (noise)", "", "", *_change(found.twin.wall)))
    interval = f"{units.format_percent(100 * pair.wall.confidence, signed=False)} interval"
    return markdown_table(("", told(low), told(high), "change", interval), rows, right=(1, 2, 3))


def raw_values(measured: Measured, names: tuple[str, str]) -> str:
    """The value of every process, in ns per call, by round."""
    arms = [
        (f"{told(name)}{' again' if number else ''}", values)
        for name, side in zip(names, (measured.baseline, measured.candidate), strict=True)
        for number, values in enumerate(side.by_round)
    ]
    count = max((len(values) for _, values in arms), default=0)
    rows = (
        (f"{index + 1}", *(_raw(values[index]) if index < len(values) else "-" for _, values in arms))
        for index in range(count)
    )
    return markdown_table(("round", *(name for name, _ in arms)), rows, right=range(1, len(arms) + 1))


def endpoints(material: Material) -> str:
    """User, system and collector time, memory, context switches."""
    low, high = material.published.baseline, material.published.candidate
    rows = (
        _pair("wall time, published value", low.ns_per_op, high.ns_per_op),
        _pair("user CPU time, all threads", low.cpu_user_ns, high.cpu_user_ns),
        _pair("system CPU time, all threads", low.cpu_system_ns, high.cpu_system_ns),
        _pair("collector pauses, main thread", low.gc_pause_ns, high.gc_pause_ns),
        (
            "resident memory after a pass",
            units.format_bytes(_known(low.rss_bytes)),
            units.format_bytes(_known(high.rss_bytes)),
        ),
        (
            "involuntary context switches per second",
            units.format_rate(_known(low.switches_per_s)),
            units.format_rate(_known(high.switches_per_s)),
        ),
    )
    table = markdown_table(("per call", *map(told, sides(material))), rows, right=(1, 2))
    if material.cold is None:
        return table
    change, interval = _change(material.cold.wall)
    return f"{table}\n\nThe first calls of a fresh process (cold): {change} ({interval})."


def slower_rounds(material: Material) -> str:
    """In how many rounds it went the same way: ``8 of 8 rounds``; empty where no round has both sides."""
    found = material.published
    pairs = [
        (low, high)
        for low, high in zip(
            _round_means(found.baseline.by_round), _round_means(found.candidate.by_round), strict=False
        )
        if math.isfinite(low) and math.isfinite(high)
    ]
    if not pairs:
        return ""
    up = found.comparison.wall.change_pct >= 0
    same = sum((high > low) == up for low, high in pairs)
    return f"{same} of {len(pairs)} rounds"


def others(material: Material) -> str:
    """The rest of the run: the same operation elsewhere, and the other operations here."""
    op, candidate = material.op, material.candidate.id
    names = {e.id: version_of(material, e.id) for e in material.plan.environments}
    near = [c for c in material.others if c.op == op or c.candidate == candidate]
    rows = (
        (
            code(c.op, 64),
            told(does(material, c.op), 120),
            told(names.get(c.candidate, c.candidate), 80),
            *_change(c.wall),
            told(c.verdict.replace("_", " ").replace("undecided", "cannot tell")),
        )
        for c in sorted(near, key=lambda c: c.op != op)[:MOST_OTHERS]
    )
    return markdown_table(("operation", "one call is", "on", "change", "interval", "verdict"), rows)


def version_of(material: Material, identifier: str) -> str:
    """Name of an environment in a table."""
    from_plan = next((e for e in material.plan.environments if e.id == identifier), None)
    if from_plan is None:
        return identifier
    label = f" ({from_plan.label})" if from_plan.label else ""
    if material.by_addon and from_plan.addon is not None:
        return f"{addon_name(from_plan.addon)}{label}"
    return f"v{from_plan.node.version}{label}"


# -- layers and causes --------------------------------------------------------------------------------------


def layers(material: Material) -> str:
    """Both methods' parts of the change; empty where it was not explained."""
    found = material.attribution
    rows = [
        (
            LAYER_WORDS.get(name, told(name, 40)),
            told(method.name, 40),
            units.format_time(_known(part.baseline_ns_per_op)),
            units.format_time(_known(part.candidate_ns_per_op)),
            signed_time(part.ns_per_op),
            units.format_percent(part.share * 100.0, signed=False),
            units.format_interval(part.ci_low * 100.0, part.ci_high * 100.0),
        )
        for method in (() if found is None else found.methods)
        if method.name in {"subtraction", "profile"}
        for name, part in sorted(method.layers.items(), key=lambda item: -abs(item[1].share))
    ]
    if not rows:
        return ""
    header = ("layer", "method", *map(told, sides(material)), "change", "share", "95 % interval")
    return markdown_table(header, rows, right=range(2, 6))


def symbols(material: Material) -> str:
    """Functions by how much their own time changed; empty where there is no profile."""
    found = material.attribution
    rows = [
        (
            code(symbol.name, 160),
            LAYER_WORDS.get(symbol.layer, told(symbol.layer, 40)),
            units.format_time(_known(symbol.baseline_ns_per_op)),
            units.format_time(_known(symbol.candidate_ns_per_op)),
            signed_time(symbol.ns_per_op),
        )
        for symbol in (() if found is None else found.symbols)[:MOST_SYMBOLS]
    ]
    if not rows:
        return ""
    header = ("function, its own time per call", "layer", *map(told, sides(material)), "change")
    return markdown_table(header, rows, right=range(2, 5))


def flags(material: Material) -> str:
    """V8 flags under which the pair was measured again; empty where that was not done."""
    rows = [
        (
            code(result.ablation.name, 120),
            told(result.ablation.subsystem, 80),
            units.format_time(_known(result.baseline_ns)),
            units.format_time(_known(result.candidate_ns)),
            told(result.closed.text) if result.closed else told(result.failure or "failed", 120),
            "yes" if result.closes else "no",
        )
        for report in material.flags
        for result in report.results[:MOST_FLAGS]
    ]
    if not rows:
        return ""
    header = ("flag", "subsystem", *map(told, sides(material)), "share of the gap closed", "half or more")
    return markdown_table(header, rows, right=(2, 3))


def confirmed(material: Material) -> tuple[str, ...]:
    """Causes that an experiment confirmed, escaped."""
    found = material.attribution
    return tuple(told(c.text, 600) for c in (() if found is None else found.causes) if c.confirmed)


def rejected(material: Material, limit: int = 600) -> tuple[str, ...]:
    """Candidate causes that were tested and do not explain it, escaped."""
    found = material.attribution
    if found is None:
        return ()
    causes = (cause.text for cause in found.causes if not cause.confirmed)
    return tuple(_cut(text, limit) for text in (*causes, *found.rejected))


def notes(material: Material) -> tuple[str, ...]:
    """What limits the methods, escaped."""
    found = material.attribution
    if found is None:
        return ()
    limits = [note for m in found.methods if m.name in {"subtraction", "profile"} for note in m.notes]
    refused = [f"{m.name} could not be used: {m.unavailable}" for m in found.methods if m.unavailable]
    return tuple(told(text, 600) for text in (*refused, *limits, *found.warnings))


def layer_word(layer: str) -> str:
    """The word people read for a layer."""
    return LAYER_WORDS.get(layer, told(layer, 40))


def _cut(text: str, limit: int) -> str:
    return told(text if len(text) <= limit else f"{text[: limit - 4].rstrip()} ...", limit + 8)


# -- cells --------------------------------------------------------------------------------------------------


def signed_time(elapsed_ns: float) -> str:
    """A difference of times with its sign."""
    text = units.format_time(_known(elapsed_ns))
    return f"+{text}" if elapsed_ns > 0 else text


def time(elapsed_ns: float) -> str:
    """A time, or the mark for none."""
    return units.format_time(_known(elapsed_ns))


def percent(change_pct: float) -> str:
    """A change with its sign."""
    return units.format_percent(change_pct)


def disturbed(measured: Measured) -> str:
    """How many timed laps were disturbed."""
    share = 100.0 * measured.disturbed / measured.passes if measured.passes else 0.0
    shown = units.format_percent(share, signed=False)
    return f"{shown} of {measured.passes:,} timed laps were disturbed, and kept"


def _known(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _figure(name: str, low: float, high: float, wall: Interval) -> tuple[str, str, str, str, str]:
    return (name, units.format_time(_known(low)), units.format_time(_known(high)), *_change(wall))


def _change(wall: Interval) -> tuple[str, str]:
    return units.format_percent(wall.change_pct), units.format_interval(wall.ci_low_pct, wall.ci_high_pct)


def _pair(name: str, low: float, high: float) -> tuple[str, str, str]:
    return (name, units.format_time(_known(low)), units.format_time(_known(high)))


def _cpu(side: Side) -> float:
    return side.cpu_user_ns + side.cpu_system_ns


def _raw(value: float) -> str:
    return f"{value:,.1f}" if math.isfinite(value) else "-"


def _round_means(arms: Sequence[Sequence[float]]) -> Iterator[float]:
    for values in zip(*arms, strict=False):
        known = [value for value in values if math.isfinite(value)]
        yield math.exp(sum(map(math.log, known)) / len(known)) if known else float("nan")
