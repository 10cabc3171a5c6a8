"""Sentences about how the figures came about, and between which releases."""

from investigator import units
from investigator.report.issue.interval import release_interval
from investigator.report.issue.material import Material
from investigator.report.issue.public import code, told
from investigator.report.issue.words import call, does


def method(material: Material) -> str:
    """How the figures came about, in five lines."""
    found, spec = material.published, material.plan.spec
    alone = "alone in its process" if found.alone else "interleaved with the run's other operations"
    twice = "each twice a round" if len(found.candidate.by_round) > 1 else "the baseline twice a round"
    counts = f"{found.baseline.processes} and {found.candidate.processes} processes"
    rounds = f"{found.comparison.rounds} rounds of fresh processes in seeded random order"
    beyond = f"beyond {spec.layout_pct:g} %, which code layout alone can do"
    lines = (
        f"{rounds}, {twice} (A/A): {counts}.",
        f"A process: a fixed number of warm-up calls, then passes of at least 40 ms in three laps, {alone}.",
        "Its value: fastest pass without GC pauses, put together lap by lap, plus mean GC pause; per call.",
        "Change: Hodges-Lehmann over rounds of log(candidate) - mean log(baseline), exact Walsh interval.",
        f"Filed, by a rule fixed before: {spec.finding_pct:g} % or more, with the whole interval {beyond}.",
    )
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))


def one_call(material: Material) -> str:
    """What is timed."""
    text = call(material)
    said = f"One call is {told(does(material, material.op))}"
    return f"{said}: {code(text)}." if text else f"{said}."


def interval_line(material: Material) -> str:
    """Release interval with the V8 versions of both sides."""
    said = told(release_interval(material).text, 600)
    if material.by_addon:
        return f"Releases of the addon: {said}."
    pair = tuple(side.node.versions.get("v8", "?") for side in (material.baseline, material.candidate))
    if material.bisected is not None and material.bisected.first_bad:
        pair = material.bisected.v8
    v8 = " and ".join(told(text) for text in pair if text)
    return f"Releases: {said}.{f' V8: {v8}.' if v8 else ''}"


def screened(material: Material) -> str:
    """The first, independent measurement, where the published one is the second; else empty."""
    screen = material.screen
    if screen is None:
        return ""
    wall = screen.comparison.wall
    change = units.format_percent(wall.change_pct)
    interval = units.format_interval(wall.ci_low_pct, wall.ci_high_pct)
    earlier = f"an earlier {screen.comparison.rounds} rounds, with other operations in the same process"
    return f"Measured twice: {earlier}, gave {change} ({interval})."
