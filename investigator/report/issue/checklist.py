"""The fourteen things that maintainers have asked for in threads like this, each answered.

An answer is given, or says ``not applicable`` with the reason, or ``not measured`` with the command that
would measure it.
"""

from collections.abc import Callable
from typing import Final

from investigator import units
from investigator.report.issue import sections
from investigator.report.issue.again import of_run, rerun, validate
from investigator.report.issue.interval import bisect_command, later_undecided, release_interval
from investigator.report.issue.material import Material
from investigator.report.issue.method import interval_line
from investigator.report.issue.public import code, told
from investigator.report.issue.words import does, sides
from investigator.report.tables import markdown_table

ENOUGH_PROCESSES: Final = 10
NOT_APPLICABLE: Final = "not applicable"
NOT_MEASURED: Final = "not measured"


def checklist(material: Material) -> str:
    """The list as a table."""
    rows = ((f"{number}", asked, answer(material)) for number, (asked, answer) in enumerate(_LINES, start=1))
    return markdown_table(("", "asked", "answer"), rows)


def _snippet(material: Material) -> str:
    made = material.reproductions
    if made is None:
        return f"{NOT_MEASURED}: no snippet was made and run; {code(of_run('repro', material))} makes one"
    said = [f"{told(p.title)}: {told(p.reason.rstrip('.'), 300)}" for p in made.shipped]
    said += [f"not shown by {told(text, 200)}" for text in made.not_shown]
    if not said:
        return (
            f"{NOT_MEASURED}: what was made could not be run; {code(of_run('repro', material))} tries again"
        )
    return f"made and run on both versions: {'; '.join(said)}"


def _environment(material: Material) -> str:
    known = "process.versions and process.config" if material.config is not None else "process.versions"
    return f"see Environment: {known} of both, uname, libc, CPU, governor, virtualisation, limits"


def _addon(material: Material) -> str:
    package = material.candidate.addon
    if package is None or material.published.comparison.family == "js":
        return f"{NOT_APPLICABLE}: no addon under test takes part in this operation"
    if package.kind == "node:sqlite":
        return f"{NOT_APPLICABLE}: node:sqlite is a part of Node.js"
    return "see Addon: release with its npm integrity, sha256 of the .node, compiler, flags, prebuilt or not"


def _processes(material: Material) -> str:
    found = material.published
    low, high = found.baseline.processes, found.candidate.processes
    enough = "" if min(low, high) >= ENOUGH_PROCESSES else " (fewer than ten: `--rounds 10` measures more)"
    return (
        f"{low} and {high} independent processes{enough}, interleaved in {found.comparison.rounds} rounds; "
        "the value of each is under Raw values; interval in the table above"
    )


def _against_itself(material: Material) -> str:
    twin = material.published.twin
    if twin is None:
        return f"{NOT_MEASURED}: the baseline has no second process in these rounds"
    change = units.format_percent(twin.wall.change_pct)
    interval = units.format_interval(twin.wall.ci_low_pct, twin.wall.ci_high_pct)
    return f"{told(sides(material)[0])} against itself in the same rounds: {change} ({interval})"


def _interval(material: Material) -> str:
    said = interval_line(material)
    if material.bisected is not None and material.bisected.first_bad:
        return said
    if material.by_addon:
        return f"{said} Node.js releases: {NOT_APPLICABLE}, both sides run the same build"
    if not release_interval(material).last_good:
        return f"{said} {NOT_MEASURED} further: {code(bisect_command(material))}"
    narrower = f"{NOT_MEASURED}; {code(bisect_command(material))}"
    return f"{said} Releases between, nightlies and the V8 change: {narrower}"


def _elsewhere(material: Material) -> str:
    if material.by_addon:
        return f"{NOT_APPLICABLE}: the Node.js build, and its V8, is the same on both sides"
    nightly = [
        e
        for e in material.plan.environments
        if any(word in e.node.version for word in ("canary", "nightly", "-pre"))
    ]
    if nightly:
        names = ", ".join(told(sections.version_of(material, e.id)) for e in nightly)
        return f"measured in the same run on {names}: see Other comparisons"
    command = rerun(material, "dist:https://nodejs.org/download/v8-canary@v8-canary")
    shell = (
        "" if material.published.comparison.family == "js" else "; d8 has no addons, so no d8 run of this one"
    )
    return f"{NOT_MEASURED} on V8's tip: {code(command)}{shell}"


def _flags(material: Material) -> str:
    if material.flags:
        return "see V8 flags"
    return f"{NOT_MEASURED}: {code(of_run('ablate', material))}"


def _profile(material: Material) -> str:
    if sections.symbols(material):
        return "see Profile: own time by function, native frames resolved; full stacks can be had on request"
    found = material.attribution
    if found is None:
        return f"{NOT_MEASURED}: {code(of_run('explain', material))}"
    reason = next((m.unavailable for m in found.methods if m.name == "profile" and m.unavailable), None)
    return f"{NOT_MEASURED}: {told(reason or 'there is no profile of these rounds', 300)}"


def _times(_material: Material) -> str:
    return "see Times: user, system and wall time, collector pauses, resident memory"


def _swap(material: Material) -> str:
    confirmed = sections.confirmed(material)
    if confirmed:
        return "; ".join(confirmed)
    if material.published.comparison.family == "js":
        return f"{NOT_APPLICABLE}: nothing but the Node.js build takes part"
    if material.same_binary:
        return (
            "the addon's binary is the very same on both sides: exchanging Node.js alone is what was measured"
        )
    tried = [text for text in sections.rejected(material, 300) if "source" in text or "binary" in text]
    if tried:
        return f"none that moves half of the change: {'; '.join(tried)}"
    return f"{NOT_MEASURED}: {code(of_run('explain', material))}"


def _impact(material: Material) -> str:
    found = material.published
    delta = sections.signed_time(found.candidate.ns_per_op - found.baseline.ns_per_op)
    return (
        "expected: the same time per call, since only the version differs; what it costs: "
        f"{delta} for each call of {told(does(material, material.op))}. "
        f"In an application of one's own: {NOT_MEASURED} (`--workload FILE`)"
    )


def _fix(material: Material) -> str:
    fixed = release_interval(material).first_fixed
    if material.bisected is not None and material.bisected.first_fixed:
        return f"{told(fixed)} is good again by bisection: see above; it was not measured beside these two"
    if fixed:
        return f"{told(fixed)} in the same interleaved run: see Other comparisons"
    later = ", ".join(told(name) for name in later_undecided(material))
    if later:
        return (
            f"{later} in the same interleaved run, but that cannot be told from good: see Other comparisons"
        )
    if material.by_addon:
        return f"{NOT_MEASURED}: there is no fix build yet"
    return f"{NOT_MEASURED}: there is no fix build yet; {code(validate(material))} judges one"


def _rejected(material: Material) -> str:
    found = sections.rejected(material)
    if found:
        return f"{len(found)} tested and rejected: see Causes"
    return f"{NOT_MEASURED}: {code(of_run('explain', material))}"


_LINES: Final[tuple[tuple[str, Callable[[Material], str]], ...]] = (
    ("snippet without dependencies, beside the real one", _snippet),
    ("versions, configuration and machine", _environment),
    ("addon, lock file, binary, compiler and flags", _addon),
    ("ten or more independent processes a side, interleaved, raw samples, interval", _processes),
    ("the same version against itself on the same host", _against_itself),
    ("last good and first bad release, then nightlies and V8 changes", _interval),
    ("d8, another embedder, or a canary build", _elsewhere),
    ("V8 flags", _flags),
    ("symbolised profile of both, native frames included", _profile),
    ("user, system and wall time, collector, memory", _times),
    ("exchange of a component that proves the cause", _swap),
    ("expectation, and what it does to real work", _impact),
    ("a fix build against bad and good in one run", _fix),
    ("candidate causes tested and rejected", _rejected),
)
