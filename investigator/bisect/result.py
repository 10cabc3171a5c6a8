"""bisect.json: what a bisection found, in the words of the one who asked."""

import math
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
import numpy as np

from investigator import measure, units
from investigator.addons import AddonPackage
from investigator.bisect.candidates import Candidate, Candidates
from investigator.bisect.commits import Commits
from investigator.bisect.request import Find, Request
from investigator.bisect.steps import levels_of, step_folders
from investigator.causes.build import BuildDifference, compare_builds
from investigator.causes.changes import NodeChanges, changes_between
from investigator.causes.flags import read_flags
from investigator.engine.interface import Engine
from investigator.prepare import PLAN_SCHEMA, StoredPlan
from investigator.spec import Axis
from investigator.stats.bisection import Bisection, Change
from investigator.stats.intervals import Interval
from investigator.store import RunFolder

RESULT_SCHEMA: Final = 1
RESULT_FILE: Final = "bisect.json"

Outcome = Literal["found", "range", "no_difference", "reversed"]
Place = Literal["good", "bad", "between", "undecided", "skipped", "not measured"]


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """A change in time per operation, in percent; an end that is not known is null."""

    change_pct: float
    ci_low_pct: float | None
    ci_high_pct: float | None
    confidence: float
    rounds: int


class ReleaseRow(msgspec.Struct, frozen=True, kw_only=True):
    """One release on the way."""

    version: str
    published: str
    place: Place
    effect: Effect | None
    """Against the older end; None where it was not measured."""
    ns_per_op: float | None
    """The older end's median over all steps, times the change: comparable however fast the machine was."""
    steps: tuple[int, ...]
    """Steps in which it was measured."""
    v8: str
    abi: str
    build: str
    """``own``, or the release for whose headers the addon was compiled; empty where nothing was."""
    verified: bool
    reason: str
    """Why it was skipped."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time changes."""

    last: str
    first: str
    named: bool
    """Whether `first` is the release that did it; else it lies somewhere after `last` and up to `first`."""
    between: tuple[str, ...]
    """Releases in between, where it could not be narrowed further."""
    reason: str
    effect: Effect | None
    """`first` against `last`, from the rounds of the verification."""
    probability: float
    asked: bool
    """Whether it is the change that was asked for; others were found beside it."""


class Join(msgspec.Struct, frozen=True, kw_only=True):
    """What else changed between the two neighbours."""

    last: str
    first: str
    node: NodeChanges | None
    """Where Node releases were bisected."""
    addon: tuple[BuildDifference, ...]
    """What differs between the two addon builds."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """bisect.json."""

    headline: str
    outcome: Outcome
    first: str | None
    """The release that was looked for; None where it cannot be named."""
    last: str | None
    """The release before it."""
    op: str
    find: Find
    axis: Axis
    good: str
    bad: str
    node: str
    """The one Node, where addons are bisected."""
    addon: str
    gap: Effect
    """Newer end against the older one."""
    changes: tuple[Found, ...]
    releases: tuple[ReleaseRow, ...]
    """All releases on the way, in its order."""
    left_out: int
    """Releases with versions between the ends that lie on other branches."""
    steps: int
    rounds: int
    measuring_s: float
    join: Join | None
    commits: Commits | None = None
    """Where a clone was given: those that touch what the operation may depend on."""
    commits_total: int = 0
    """All between the two; commits.txt lists them."""
    measured_on: tuple[tuple[str, str], ...] = ()
    """Machine and engine: name and text."""
    notes: tuple[str, ...]


def effect(value: Interval) -> Effect:
    """Percent of an interval on the log scale."""
    return Effect(
        change_pct=math.expm1(value.estimate) * 100.0,
        ci_low_pct=math.expm1(value.low) * 100.0 if math.isfinite(value.low) else None,
        ci_high_pct=math.expm1(value.high) * 100.0 if math.isfinite(value.high) else None,
        confidence=value.confidence,
        rounds=value.rounds,
    )


def effect_text(value: Effect | None) -> str:
    """``+112 % [+108 to +116]``."""
    if value is None:
        return units.MISSING
    ends = units.format_interval(value.ci_low_pct, value.ci_high_pct)
    return f"{units.format_percent(value.change_pct)} [{ends}]"


def make_result(
    request: Request,
    found: Bisection,
    folder: RunFolder,
    candidates: Candidates,
    op: str,
    engine: Engine,
) -> Result:
    """Put together what the search found, what was skipped, and what changed between the neighbours."""
    changes = tuple(_found(request, change, asked=n == 0) for n, change in enumerate(found.changes))
    outcome = _outcome(request, found)
    asked = changes[0] if changes else None
    old = candidates.get(request.old, own_build=True)
    cost = _cost(folder, op, "" if old is None else old.environment.id)
    rows = _rows(request, found, candidates, cost.old_ns_per_op)
    named = asked if asked is not None and asked.named else None
    return Result(
        headline=_headline(request, outcome, asked, found, op),
        outcome=outcome,
        first=named.first if named else None,
        last=named.last if named else None,
        op=op,
        find=request.find,
        axis=request.axis,
        good=request.good,
        bad=request.bad,
        node=old.environment.node.version if old is not None and request.axis == "addon" else "",
        addon=_addon_text(request, None if old is None else old.environment.addon),
        gap=effect(found.gap),
        changes=changes,
        releases=rows,
        left_out=request.left_out,
        steps=len(found.steps),
        rounds=cost.rounds,
        measuring_s=round(cost.elapsed_s, 1),
        join=None if asked is None else _join(request, asked, candidates, engine),
        notes=tuple(_notes(request, found, rows)),
    )


def _addon_text(request: Request, addon: AddonPackage | None) -> str:
    if request.axis == "addon":
        return request.addon or ""
    return "" if addon is None else f"{addon.name} {addon.version}".strip()


# -- the changes --------------------------------------------------------------------------------------------


def _found(request: Request, change: Change, *, asked: bool) -> Found:
    versions = [release.version for release in request.releases]
    return Found(
        last=versions[change.last],
        first=versions[change.first],
        named=change.named,
        between=tuple(versions[change.last + 1 : change.first]),
        reason=change.reason,
        effect=None if change.effect is None else effect(change.effect),
        probability=round(change.probability, 4),
        asked=asked,
    )


def _outcome(request: Request, found: Bisection) -> Outcome:
    if not found.changes:
        wrong_way = found.gap.bounded and (
            found.gap.high < 0.0 if request.find == "regression" else found.gap.low > 0.0
        )
        return "reversed" if wrong_way else "no_difference"
    return "found" if found.changes[0].named else "range"


def _headline(request: Request, outcome: Outcome, asked: Found | None, found: Bisection, op: str) -> str:
    gap = effect_text(effect(found.gap))
    word = "first bad" if request.find == "regression" else "first fixed"
    if asked is not None and asked.named:
        more = len(found.changes) - 1
        others = f" {more} other change{'' if more == 1 else 's'} on the way." if more else ""
        told = f"{op} {effect_text(asked.effect)} against {asked.last}."
        return f"{asked.first} is the {word} release: {told}{others}"
    if asked is not None:
        return (
            f"cannot narrow further than {asked.last}..{asked.first}: the {word} release of {op} is one of "
            f"the {len(asked.between) + 1} after {asked.last} ({asked.reason})."
        )
    if outcome == "reversed":
        other = "a fix" if request.find == "regression" else "a regression"
        return f"{op} changes the other way from {request.old} to {request.new}, {gap}: that is {other}."
    return (
        f"{op} does not differ for certain between {request.old} and {request.new}: {gap}; nothing to bisect."
    )


# -- the table ----------------------------------------------------------------------------------------------


class _Cost(msgspec.Struct, frozen=True, kw_only=True):
    rounds: int
    elapsed_s: float
    old_ns_per_op: float | None


def _cost(folder: RunFolder, op: str, old: str) -> _Cost:
    """What the steps took, and the median time per operation of the older end over them."""
    logs: list[float] = []
    rounds, elapsed_s = 0, 0.0
    for path in step_folders(folder):
        step = RunFolder(path)
        plan = step.read_json("plan.json", "plan", PLAN_SCHEMA, StoredPlan).plan
        records = measure.read_rounds(step)
        if not records:
            continue
        rounds += len(records)
        elapsed_s += sum(record.elapsed_s for record in records)
        values = levels_of(step, plan, records, op).get(old, np.empty(0))
        logs += values[np.isfinite(values)].tolist()
    median = float(np.exp(np.median(logs))) if logs else None
    return _Cost(rounds=rounds, elapsed_s=elapsed_s, old_ns_per_op=median)


def _rows(
    request: Request, found: Bisection, candidates: Candidates, old_ns_per_op: float | None
) -> tuple[ReleaseRow, ...]:
    last = len(request.releases) - 1
    rows = []
    for index, release in enumerate(request.releases):
        steps = tuple(step.number for step in found.steps if index in step.readings or index in step.ends)
        made = candidates.made(release.version)
        level = found.levels.get(index)
        if level is not None and not math.isfinite(level.estimate):
            level = None
        rows.append(
            ReleaseRow(
                version=release.version,
                published=release.published,
                place=_place(request, found, index, last, skipped=release.version in candidates.skipped),
                effect=None if level is None else effect(level),
                ns_per_op=None
                if level is None or old_ns_per_op is None
                else old_ns_per_op * math.exp(level.estimate),
                steps=steps,
                v8="" if made is None else _two(made.environment.node.versions.get("v8", "")),
                abi="" if made is None else made.environment.node.versions.get("modules", ""),
                build=_build(made),
                verified=any(step.purpose == "verify" and index in step.readings for step in found.steps),
                reason=candidates.skipped.get(release.version, ""),
            )
        )
    return tuple(rows)


def _two(v8: str) -> str:
    """``13.6`` of ``13.6.233.10-node.28``."""
    return ".".join(v8.split(".")[:2])


def _build(made: Candidate | None) -> str:
    if made is None or made.build is None:
        return ""
    return "own" if made.built_for == made.environment.node.version else made.built_for


def _place(request: Request, found: Bisection, index: int, last: int, *, skipped: bool) -> Place:
    older, newer = ("good", "bad") if request.find == "regression" else ("bad", "good")
    words: dict[str, Place] = {
        "old": "good" if older == "good" else "bad",
        "new": "bad" if newer == "bad" else "good",
        "between": "between",
        "undecided": "undecided",
    }
    if index == 0:
        return words["old"]
    if index == last:
        return words["new"]
    if skipped:
        return "skipped"
    if index not in found.levels:
        return "not measured"
    sides = [
        step.readings[index].side for step in found.steps if step.ends == (0, last) and index in step.readings
    ]
    # Asked only in a search between two others, it is at a level of its own.
    return words[sides[-1]] if sides else "between"


# -- what changed -------------------------------------------------------------------------------------------


def _join(request: Request, asked: Found, candidates: Candidates, engine: Engine) -> Join | None:
    sides = [candidates.get(version, own_build=True) for version in (asked.last, asked.first)]
    last, first = sides
    if last is None or first is None:
        return None
    nodes = (last.environment.node, first.environment.node)
    differences: Sequence[BuildDifference] = ()
    if last.build is not None and first.build is not None:
        compared = compare_builds(last.build, first.build, *nodes).differences
        differences = [d for d in compared if d.what not in {"config.gypi", "common.gypi"}]
    if request.axis == "addon":
        differences = [*_packages(last.environment.addon, first.environment.addon), *differences]
    changes = None
    if request.axis == "node":
        changes = changes_between(*nodes, (read_flags(engine, nodes[0]), read_flags(engine, nodes[1])))
    return Join(last=asked.last, first=asked.first, node=changes, addon=tuple(differences))


def _packages(one: AddonPackage | None, other: AddonPackage | None) -> list[BuildDifference]:
    """What two releases of an addon say of themselves."""
    if one is None or other is None:
        return []
    names = sorted({*one.dependencies, *other.dependencies})
    facts = [
        ("Node API it is written for", _api(one), _api(other)),
        ("engines", one.engines, other.engines),
        *(
            (f"dependency {name}", one.dependencies.get(name, ""), other.dependencies.get(name, ""))
            for name in names
        ),
    ]
    return [
        BuildDifference(what="package", subject=what, baseline=before, candidate=after, relevance="language")
        for what, before, after in facts
        if before != after
    ]


def _api(package: AddonPackage) -> str:
    return "V8" if package.napi is None else f"Node-API {package.napi}"


# -- what weakens it ----------------------------------------------------------------------------------------


def _notes(request: Request, found: Bisection, rows: Sequence[ReleaseRow]) -> list[str]:
    notes = []
    if request.left_out:
        notes.append(
            f"{request.left_out} releases with versions between the ends are not on the way: they came from "
            "a line after the next one was cut from Node's main branch. The same change may have been ported "
            "to them."
        )
    shared = [row.version for row in rows if row.build not in {"", "own"} and row.place != "skipped"]
    if shared:
        notes.append(
            f"{', '.join(shared)} ran an addon build that was compiled for the headers of another release "
            "of the same ABI; both neighbours were verified with builds of their own."
        )
    others = [change for change in found.changes[1:] if change.named]
    if found.changes and not others and len(found.changes) == 1:
        notes.append(
            "Releases that were not measured may differ: a change that came and went between two measured "
            "ones is not seen."
        )
    return notes
