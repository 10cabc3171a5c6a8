"""Sentences of the report that are the same in every renderer."""

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from investigator import units
from investigator.analysis import Analysis, Comparison, Verdict
from investigator.build import AddonBuild, BuildFailure
from investigator.naming import addon_name, node_name
from investigator.plan import Environment, Plan
from investigator.report.commands import command_line
from investigator.report.shapes import ReportFacts
from investigator.spec import with_patch
from investigator.stats.verdict import MAX_ROUNDS, Obstacle
from investigator.text import clean_text, short_text

FINDING_MARK = "!"
FLOOR_MARK = "~"

VERDICT_WORDS: Mapping[Verdict, str] = {
    "slower": "slower",
    "faster": "faster",
    "no_change": "no change",
    "undecided": "cannot tell",
    "invalid": "invalid",
}
"""The five words people see for the five verdicts."""

_OBSTACLES: Mapping[Obstacle | None, str] = {
    "twin": "a quieter run: the baseline differs from itself",
    "states": "no number of rounds: processes fall into two states",
    "passes": "no number of rounds: the versions differ in some laps only",
    "contradiction": "no number of rounds: wall and CPU time contradict",
    "cpu": "no number of rounds: only the CPU time changed",
    "noise": f"over {MAX_ROUNDS} rounds at this noise, or a quieter machine",
}
"""What would decide a comparison that no affordable number of rounds will."""

_FAMILY_TITLES = {
    "sqlite": "sqlite: the encrypted database through the addon",
    "js": "js: pure JavaScript, no addon",
    "boundary": "boundary: single crossings between JavaScript and C++",
    "core": "core: the same SQL without JavaScript",
    "host": "host: the same binary every time",
}


def family_order(families: Iterable[str]) -> tuple[str, ...]:
    """Put families into the order of the report: known ones as listed here, others by name."""
    present = set(families)
    return (*(f for f in _FAMILY_TITLES if f in present), *sorted(present - set(_FAMILY_TITLES)))


def family_title(family: str) -> str:
    """Say what a family is."""
    return _FAMILY_TITLES.get(family, short_text(family, 40))


def addon_text(environment: Environment) -> str:
    """Name and version of the addon; empty where there is none."""
    return "" if environment.addon is None else clean_text(addon_name(environment.addon), 120)


def remedy(pair: Comparison) -> str:
    """Say what would decide an undecided comparison; empty for the others."""
    if pair.verdict != "undecided":
        return ""
    if pair.rounds_needed is None:
        return _OBSTACLES.get(pair.obstacle, _OBSTACLES["noise"])
    rounds = f"{pair.rounds_needed:,} more round{'' if pair.rounds_needed == 1 else 's'}"
    return rounds if pair.minutes_needed is None else f"{rounds}, {units.format_minutes(pair.minutes_needed)}"


def summary_lines(
    plan: Plan, analysis: Analysis, facts: ReportFacts, names: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Say under the headline what was compared: pairs of a name and a text."""
    describe = _addon_described if plan.spec.axis == "addon" else _described
    baseline = [describe(e, names) for e in plan.environments if e.id == plan.baseline]
    lines = (
        ("baseline", "; ".join(baseline)),
        ("candidates", "; ".join(describe(e, names) for e in plan.candidates)),
        ("Node", _node_line(plan)),
        ("addon", _addon_line(plan)),
        ("measured", ", ".join(_measured(analysis, facts))),
        ("storage", storage(plan, facts)),
    )
    return tuple((name, text) for name, text in lines if text)


def storage(plan: Plan, facts: ReportFacts) -> str:
    """Say where the databases lived; empty in ``js`` runs."""
    if plan.spec.command != "sqlite":
        return ""
    scratch = str(facts.engine.get("scratch_default", "tmpfs"))
    if plan.spec.storage == "disk" or not scratch.startswith("tmpfs"):
        return "Databases lived in a folder of the host's file system"
    return "Databases lived on tmpfs: the disk is hidden (--storage disk measures it)"


def objects(builds: Mapping[str, AddonBuild | BuildFailure]) -> str:
    """Say whether the builds share ``sqlite3.o``; empty where fewer than two were compiled."""
    digests = [
        build.sqlite3_object_sha256
        for build in builds.values()
        if isinstance(build, AddonBuild) and build.sqlite3_object_sha256 is not None
    ]
    if len(digests) < 2:
        return ""
    if len(set(digests)) == 1:
        return f"sqlite3.o is bit-identical in all {len(digests)} builds"
    return f"sqlite3.o differs: {len(set(digests))} different objects in {len(digests)} builds"


def legend(plan: Plan, baseline: str) -> tuple[str, ...]:
    """Explain the columns and marks of the tables."""
    marks = (
        f"{FINDING_MARK} finding: {plan.spec.finding_pct:g} % or more, interval beyond "
        f"{plan.spec.layout_pct:g} %; {FLOOR_MARK} below the layout floor: code placement alone can do it"
    )
    return (
        f"change: time per operation against {baseline}, with its interval in percent; + is slower",
        marks,
        "noise: the baseline measured against itself, largest end of its interval",
        "published: the rule of published comparisons, best round against best round",
    )


def method(plan: Plan, analysis: Analysis) -> tuple[str, ...]:
    """Explain how the figures came about, one paragraph each."""
    spec = plan.spec
    extended = f", up to {spec.max_rounds} for cells that were undecided"
    rounds = (
        f"Rounds: {spec.rounds}{extended if spec.max_rounds > spec.rounds else ''}. In every round each "
        "environment runs in fresh processes, in seeded random order, the baseline twice."
    )
    process = (
        "Value of a process: wall time of its fastest pass without collector pauses, put together lap by "
        "lap, plus the mean collector pause, per call. Cold: the first pass of a fresh process, in "
        "a table of its own."
    )
    change = (
        "Change: Hodges-Lehmann estimate over rounds of the log ratio to the mean of the two baseline "
        "processes of the same round, with the exact Walsh-average interval "
        f"({_confidence(analysis)} for one look; the looks together keep 95 %)."
    )
    verdicts = (
        f"Verdicts: slower or faster when the interval lies wholly beyond {spec.margin_pct:g} %; no change "
        f"when the intervals of wall and CPU time lie wholly inside {spec.equivalence_pct:g} %; "
        "else cannot tell. The margins were fixed before the run. An operation whose baseline differs from "
        "itself cannot tell."
    )
    finding = (
        f"Finding: slower or faster by {spec.finding_pct:g} % or more, with the whole interval beyond "
        f"{spec.layout_pct:g} %. Two builds of different releases differ by 1 to 4 % in code placement alone."
    )
    return (rounds, process, change, verdicts, finding)


def next_commands(
    plan: Plan,
    analysis: Analysis,
    facts: ReportFacts,
    reproduced: Collection[tuple[str, str]] = (),
) -> Iterator[tuple[str, str]]:
    """Yield what one might do next, with its command line; `reproduced` holds operations and candidates."""
    folder = clean_text(facts.folder, 400)
    # Copies of the workloads and the patch lie in the run folder; the spec names them relative to it.
    spec = msgspec.structs.replace(
        with_patch(plan.spec, lambda name: f"{folder}/{name}"),
        workloads=tuple(f"{folder}/{name}" for name in plan.spec.workloads),
    )
    warm = analysis.pairs()
    undecided = dict.fromkeys(p.op for p in warm if p.verdict == "undecided" and p.rounds_needed is not None)
    findings = dict.fromkeys(p.op for p in warm if p.finding)
    yield "show this again", shlex.join(["investigate", "show", folder])
    if undecided and spec.fix is None:
        yield "decide what is undecided", command_line(spec, ops=tuple(undecided), thorough=True)
    if findings and spec.fix is None:
        again = command_line(spec, ops=tuple(findings), seed=spec.seed + 1)
        yield "measure the findings again", again
    if any(p.finding and (p.op, p.candidate) not in reproduced for p in warm):
        yield "reproduce the findings without this tool", shlex.join(["investigate", "repro", folder])
    yield "repeat the whole run", shlex.join(["investigate", "run", f"{folder}/spec.toml"])


def _described(environment: Environment, names: Mapping[str, str]) -> str:
    node, short = environment.node.version, names[environment.id]
    parts = [
        *([] if short == node else [f"Node {node}"]),
        *_engine_versions(environment),
        *environment.node_flags,
    ]
    return clean_text(f"{short} ({', '.join(parts)})", 300)


def _engine_versions(environment: Environment) -> tuple[str, str]:
    versions = environment.node.versions
    return f"V8 {'.'.join(versions.get('v8', '?').split('.')[:2])}", f"ABI {versions.get('modules', '?')}"


def _addon_described(environment: Environment, names: Mapping[str, str]) -> str:
    """An environment of a run that compares addons: what the column's name leaves out."""
    short, addon = names[environment.id], environment.addon
    parts = []
    if addon is not None:
        parts += [] if short in {addon.version, addon_text(environment)} else [addon_text(environment)]
        parts += [] if addon.napi is None else [f"Node-API {addon.napi}"]
    return clean_text(f"{short} ({', '.join(parts)})" if parts else short, 300)


def _node_line(plan: Plan) -> str:
    """The one Node build of a run that compares addons; empty for the others."""
    if plan.spec.axis != "addon":
        return ""
    first = plan.environments[0]
    name, parts = node_name(first).removeprefix("Node "), (*_engine_versions(first), *first.node_flags)
    return clean_text(f"{name} ({', '.join(parts)}), the same for all", 300)


def _addon_line(plan: Plan) -> str:
    with_addon = [environment for environment in plan.environments if environment.addon is not None]
    seen = dict.fromkeys(f"{addon_text(e)}, {_flavor(e)}" for e in with_addon)
    if not seen:
        return ""
    encrypted = any(e.addon is not None and e.addon.encrypted for e in with_addon)
    cipher = f"cipher {plan.spec.cipher}" if encrypted else "no cipher"
    return clean_text("; ".join((*seen, cipher)), 400)


def _flavor(environment: Environment) -> str:
    if environment.addon is not None and environment.addon.kind == "node:sqlite":
        return "part of Node"
    flavors = {"source": "compiled from source", "prebuilt": "the shipped binary"}
    return flavors.get(environment.flavor, environment.flavor)


def _measured(analysis: Analysis, facts: ReportFacts) -> Iterator[str]:
    rounds = sorted({cell.rounds for cell in analysis.cells})
    if rounds:
        last = f"{rounds[-1]} round{'' if rounds[-1] == 1 else 's'}"
        yield last if len(rounds) == 1 else f"{rounds[0]} to {last}"
    if engine := _engine_name(facts):
        yield f"engine {engine} {clean_text(str(facts.engine.get('version', '')), 80)}".rstrip()
    passes = sum(cell.passes for cell in analysis.cells)
    disturbed = sum(cell.disturbed_passes for cell in analysis.cells)
    if passes:
        yield f"{units.format_percent(100 * disturbed / passes, signed=False)} of {passes:,} laps disturbed"


def _engine_name(facts: ReportFacts) -> str:
    return clean_text(str(facts.engine.get("engine", "")), 80)


def _confidence(analysis: Analysis) -> str:
    confidences = sorted(pair.wall.confidence for pair in analysis.pairs())
    if not confidences:
        return units.MISSING
    ends = [units.format_percent(100 * end, signed=False) for end in (confidences[0], confidences[-1])]
    return " to ".join(dict.fromkeys(ends))
