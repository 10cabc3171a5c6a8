"""The forms: nodejs/node's bug report, V8's defect report, and a short one for an addon's maintainers.

Headings are the labels of the form as it is filled in on the web, in its order, so that a text can be pasted
field by field, or filed whole: GitHub makes the same text of its form.
Sources: nodejs/node .github/ISSUE_TEMPLATE/1-bug-report.yml; for V8 the questions of its tracker's template.
Neither better-sqlite3 nor better-sqlite3-multiple-ciphers has a template.
"""

import html
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from investigator.report.issue import sections
from investigator.report.issue.again import of_run, rerun
from investigator.report.issue.checklist import checklist
from investigator.report.issue.interval import bisect_command, release_interval
from investigator.report.issue.material import Material, Reproduction
from investigator.report.issue.method import interval_line, method, one_call, screened
from investigator.report.issue.provenance import (
    addon,
    environment,
    libc,
    same_build,
    uname,
)
from investigator.report.issue.public import block, code, source, told
from investigator.report.issue.target import Fit, Target, Tracker, fit, grown, tracker
from investigator.report.issue.words import compared, does, sides, title, title_for_v8

SCREEN_LINES: Final = 60
"""One screen: lines outside of closed folds."""
MOST_CHARACTERS: Final = 60_000
"""Below the 65,536 that GitHub takes."""
_FOLD: Final = re.compile(r"^<details>$.*?^</details>$", re.DOTALL | re.MULTILINE)
_TITLE: Final = re.compile(r"\A(?:<!-- title: .* -->|Title: .*)\n")
_MOST_SNIPPET: Final = 16_000
"""Characters of one file; a part of a program is of no use."""
_SHORT_OUTPUT: Final = 8
"""Lines of what it printed that need no fold, the fence's two included."""
_NAMED_SYMBOLS: Final = 3
_NAMED_CAUSES: Final = 3


class IssueText(msgspec.Struct, frozen=True, kw_only=True):
    """One text, ready to be filed."""

    target: Target
    tracker: Tracker
    title: str
    """Plain text, one line."""
    body: str
    """Markdown; ends with a newline."""
    warning: str | None
    """Why the evidence speaks against this tracker; also in the body."""
    fixed: str = ""
    """A later release that no longer shows it; empty where none is known."""
    missing: tuple[str, ...] = ()
    """Command lines that would answer what the body has to leave open, with ``RUN`` for the run's folder."""

    @property
    def document(self) -> str:
        """Title and body as one file; for GitHub the title is a comment: the file is a body as well."""
        if self.target == "v8":
            return f"Title: {told(self.title)}\n\n{self.body}"
        # Two dashes would end the comment.
        return f"<!-- title: {html.escape(self.title.replace('--', '- -'), quote=False)} -->\n\n{self.body}"


def compose(material: Material, target: Target) -> IssueText:
    """Write the text of one finding for one tracker."""
    judged = fit(target, material)
    write = {"node": _node, "v8": _v8, "addon": _addon}[target]
    return IssueText(
        target=target,
        tracker=tracker(target, material),
        title=title_for_v8(material) if target == "v8" else title(material),
        body=write(material, judged).rstrip() + "\n",
        warning=None if judged.fits else judged.sentence,
        fixed=release_interval(material).first_fixed,
        missing=tuple(_missing(material)),
    )


def _missing(material: Material) -> Iterator[str]:
    if material.attribution is None:
        yield of_run("explain", material)
    made = material.reproductions
    if made is None or not (made.shipped or made.not_shown):
        yield of_run("repro", material)
    narrowed = material.bisected is not None and material.bisected.first_bad
    if not narrowed and release_interval(material).last_good:
        yield bisect_command(material)


# -- nodejs/node --------------------------------------------------------------------------------------------


def _node(material: Material, judged: Fit) -> str:
    low, high = (told(name) for name in sides(material))
    form = _parts(
        _heading("Version", f"{high} ({low} does not show it)"),
        _heading("Platform", _platform(material)),
        _heading("Subsystem", _subsystem(material)),
        _heading("What steps will reproduce the bug?", _reproduction(material, dependency_free=True)),
        _heading("How often does it reproduce? Is there a required condition?", _how_often(material)),
        _heading("What is the expected behavior? Why is that the expected behavior?", _expected(material)),
        _heading("What do you see instead?", _actual(material)),
        _heading("Additional information", _additional(material, judged)),
    )
    return _parts(form, *_folds(material, len(form)))


def _platform(material: Material) -> str:
    """``uname -a`` without the name of the host, and what decides times beside it."""
    host = material.host
    machine = f"{host.cpu_model}, {host.cores_usable} CPUs, {host.virtualisation}"
    return f"{code(uname(material))}; {told(libc(material))}; {told(machine)}"


def _subsystem(material: Material) -> str:
    package, family = material.candidate.addon, material.published.comparison.family
    if material.layer in {"engine", "gc"} or (family == "js" and material.layer == "unknown"):
        return "deps: V8 (pure JavaScript, no addon)" if family == "js" else "deps: V8"
    if package is None or family == "js":
        return "not known"
    if package.kind == "node:sqlite":
        return "sqlite"
    if material.layer == "boundary":
        api = "Node-API" if package.napi is not None else "V8's C++ API"
        return f"native addons through {api}"
    return f"native addons (layer: {sections.layer_word(material.layer)})"


def _how_often(material: Material) -> str:
    rounds = sections.slower_rounds(material)
    said = f"Always: in {rounds} of fresh processes." if rounds else "In every round that was measured."
    parts = (said, f"Required: {told(does(material, material.op))}.", _siblings(material), screened(material))
    return " ".join(part for part in parts if part)


def _siblings(material: Material) -> str:
    """What the same kind of operation does in other sizes, on the same two versions."""
    words = material.op.split("_")
    if len(words) < 3:
        return ""
    stem = "_".join((*words[:2], ""))
    here = [c for c in material.others if c.candidate == material.candidate.id]
    near = [c for c in here if c.op != material.op and c.op.startswith(stem)]
    if not near:
        return "Other sizes were not measured in this run."
    unsure = {"no_change": " (no change)", "undecided": " (cannot tell)"}
    said = (
        f"{told(does(material, c.op))}: {sections.percent(c.wall.change_pct)}{unsure.get(c.verdict, '')}"
        for c in near[:4]
    )
    return f"In the same run: {'; '.join(said)}."


def _expected(material: Material) -> str:
    low, _ = sides(material)
    time = sections.time(material.published.baseline.ns_per_op)
    return f"About the time of {told(low)}, {time} per call. {same_build(material)}"


def _actual(material: Material) -> str:
    return f"One call {told(compared(material))}.\n\n{sections.result_table(material)}"


# -- V8 -----------------------------------------------------------------------------------------------------


def _v8(material: Material, judged: Fit) -> str:
    pair = (material.baseline, material.candidate)
    low, high = (told(f"{e.node.versions.get('v8', '?')} (Node.js v{e.node.version})") for e in pair)
    more = _additional(material, judged)
    form = _parts(
        f"Version: {high}; {low} does not show it",
        f"OS: {_platform(material)}",
        f"Architecture: {told(material.host.architecture)}",
        _question("What steps will reproduce the problem?", _reproduction(material, dependency_free=True)),
        _question("What is the expected output?", _expected(material)),
        _question("What do you see instead?", f"{_actual(material)}\n\n{_how_often(material)}"),
        _question("Please use labels and text to provide additional information.", more),
    )
    kept, left_out = _fitting(_details(material), len(form))
    # One fold only: a tracker that shows tags as text then shows two of them.
    body = _parts(*(_question(name, body) for name, body in kept), left_out)
    return _parts(form, sections.fold("Details", body))


# -- an addon -----------------------------------------------------------------------------------------------


def _addon(material: Material, judged: Fit) -> str:
    low, high = (told(name) for name in sides(material))
    package = material.candidate.addon
    name = "no addon" if package is None else f"{package.name} {package.version}".strip()
    subject = f"{told(name)} on Node.js {high}, compared with {low}"
    if material.by_addon:
        subject = f"{high}, compared with {low}, on Node.js v{told(material.candidate.node.version)}"
    known = f"{_expected(material)} {_how_often(material)}\n\n{_additional(material, judged)}"
    form = _parts(
        _heading("Versions", f"{subject}. {_platform(material)}"),
        _heading("What happens", _actual(material)),
        _heading("How to see it", _reproduction(material, dependency_free=False)),
        _heading("What is known", known),
    )
    return _parts(form, *_folds(material, len(form)))


# -- parts of all three -------------------------------------------------------------------------------------


def _reproduction(material: Material, *, dependency_free: bool) -> str:
    """The steps: a program that shows the effect, or that there is none and how to measure with the tool."""
    made = material.reproductions
    found = None if made is None else made.best(dependency_free=dependency_free)
    if found is None:
        return f"{one_call(material)} {_no_program(material)}\n\n{block(rerun(material))}"
    files = "\n\n".join(_file(name, text) for name, text in found.files)
    run = (
        f"With each version: {code(found.command)}. Both by turns on the machine below: {told(found.reason)}"
    )
    intro = f"{one_call(material)} This shows it: {told(found.title)}."
    return _parts(intro, files, f"{run.rstrip('.')}. {_printed(found)}")


def _no_program(material: Material) -> str:
    with_tool = f"With the tool that measured it ({told(material.tool, 60)}, a Python package):"
    if material.reproductions is None:
        command = code(of_run("repro", material))
        none = f"No snippet that needs Node.js alone was made for this finding; {command} makes and runs one."
        return f"{none} {with_tool}"
    tried = "; ".join(told(text, 200) for text in material.reproductions.not_shown)
    if tried:
        return f"Run without that tool, and not showing it in its whole size: {tried}. {with_tool}"
    return f"A snippet that needs Node.js alone could not be run on the machine below. {with_tool}"


def _file(name: str, text: str) -> str:
    lines = text.rstrip("\n").count("\n") + 1
    if len(text) > _MOST_SNIPPET:
        return f"{code(name)} has {lines:,} lines: too long for here, to be had on request."
    return sections.fold(f"{told(name)} ({lines} lines)", source(name, text))


def _printed(found: Reproduction) -> str:
    text = source("output.txt", found.printed.strip("\n")[:4000])
    if len(text.splitlines()) <= _SHORT_OUTPUT:
        return f"It printed:\n\n{text}"
    return f"\n\n{sections.fold('What it printed', text)}"


def _additional(material: Material, judged: Fit) -> str:
    lines = []
    if not judged.fits:
        lines.append(f"**The evidence speaks against this tracker.** {told(judged.sentence)}")
    lines += [
        _where(material, judged),
        *_named_symbols(material),
        *(f"Cause, confirmed by an experiment: {text}." for text in sections.confirmed(material)),
        *_named_rejected(material),
        interval_line(material),
    ]
    return sections.bullets(lines)


def _where(material: Material, judged: Fit) -> str:
    """The layer, and what the reader of this tracker has to know of it."""
    word, found = sections.layer_word(material.layer), material.attribution
    known = found is not None and material.layer not in {"unknown", "mixed"}
    if judged.fits and not known:
        return told(judged.sentence)  # it says that the layer is not known, and why
    reason = f" ({told(found.reason, 300)})" if found is not None and known else ""
    return f"Where: {word}{reason}. {told(judged.sentence) if judged.fits else ''}".rstrip()


def _named_symbols(material: Material) -> list[str]:
    """The functions that grew most, in one line."""
    if grown(material) is None or material.attribution is None:
        return []
    moved = sorted(material.attribution.symbols, key=lambda s: -abs(s.ns_per_op))[:_NAMED_SYMBOLS]
    said = ", ".join(f"{code(s.name, 100)} {sections.signed_time(s.ns_per_op)}" for s in moved)
    return [f"Own time per call by profile: {said}."]


def _named_rejected(material: Material) -> list[str]:
    found = sections.rejected(material, 170)
    if not found:
        return []
    more = f"; {len(found) - _NAMED_CAUSES} more below" if len(found) > _NAMED_CAUSES else ""
    return [f"Tested and rejected: {'; '.join(found[:_NAMED_CAUSES])}{more}."]


def _folds(material: Material, used: int) -> tuple[str, ...]:
    """The closed parts as folds, as many as fit beside `used` characters."""
    kept, left_out = _fitting(_details(material), used)
    return (*(sections.fold(name, body) for name, body in kept), left_out)


def _fitting(details: list[tuple[str, str]], used: int) -> tuple[list[tuple[str, str]], str]:
    """Details in their order while they fit, and a sentence about the others."""
    kept: list[tuple[str, str]] = []
    missing: list[tuple[str, str]] = []
    for name, body in details:
        used += len(name) + len(body) + 60
        (kept if used < MOST_CHARACTERS else missing).append((name, body))
    names = ", ".join(name for name, _ in missing)
    return kept, f"Left out for its length: {names}." if names else ""


def _details(material: Material) -> list[tuple[str, str]]:
    """The closed parts: name and body; those without anything to say are left out."""
    found = material.published
    again = material.screen
    causes = [
        *(f"confirmed: {text}" for text in sections.confirmed(material)),
        *(f"rejected: {text}" for text in sections.rejected(material)),
        *(f"note: {text}" for text in sections.notes(material)),
    ]
    raw = [
        f"ns per call, one value a process. {sections.disturbed(found)}.",
        sections.raw_values(found, sides(material)),
    ]
    if again is not None:
        raw += ["The earlier rounds:", sections.raw_values(again, sides(material))]
    parts = [
        ("Method, in five lines", method(material)),
        ("Checklist", checklist(material)),
        ("Profile: functions whose own time changed", sections.symbols(material)),
        ("Layers: both methods", sections.layers(material)),
        ("Causes: tested, confirmed, rejected; what else differs", _causes(material, causes)),
        ("V8 flags", sections.flags(material)),
        ("Times", sections.endpoints(material)),
        ("Environment", environment(material)),
        ("Addon", addon(material)),
        ("Raw values", "\n\n".join(raw)),
        ("Other comparisons of the run", sections.others(material) if material.others else ""),
        ("Releases of the run, and how to measure again", _measured_with(material)),
    ]
    return [(name, body) for name, body in parts if body]


def _causes(material: Material, causes: list[str]) -> str:
    changed = () if material.attribution is None else material.attribution.changed
    lines = [*causes, *(f"also different: {told(text, 200)}" for text in changed)]
    if not lines:
        return "Not measured: nothing was tested."
    return sections.bullets(lines)


def _measured_with(material: Material) -> str:
    interval = release_interval(material)
    releases = "; ".join(f"{told(r.name)} {r.says}" for r in interval.readings)
    tool = f"Measured with {told(material.tool)}, run begun {told(material.started_at)}"
    failed = ", ".join(told(sections.version_of(material, identifier)) for identifier in material.failed)
    missing = f" Could not be built: {failed}." if failed else ""
    return f"{tool}. Releases in the run: {releases}.{missing} Again:\n\n{block(rerun(material))}"


def _heading(label: str, text: str) -> str:
    return f"### {label}\n\n{text}"


def _question(label: str, text: str) -> str:
    return f"**{label}**\n\n{text}"


def _parts(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def screen_lines(text: str) -> int:
    """Lines of a text outside of its folds: what `SCREEN_LINES` bounds. The title is no part of the page."""
    open_text = _FOLD.sub("", _TITLE.sub("", text))
    return len(re.sub(r"\n{3,}", "\n\n", open_text).strip().splitlines())
