"""What other commands left for an issue text: reproductions in the run, bisections in it or beside it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from investigator import npm_client, units
from investigator.errors import StoredFileError
from investigator.naming import addon_name
from investigator.plan import Environment, Plan
from investigator.report.issue.material import Bisected, Reproduction, Reproductions
from investigator.repro.manifest import (
    COMMAND,
    DEPENDENCY_FREE,
    Program,
    ProgramKind,
    folder_of,
    read_manifest,
)
from investigator.store import RunFolder, read_json

BISECT_FILE: Final = "bisect.json"
BISECT_SCHEMA: Final = 1
MOST_BISECTIONS: Final = 500
MOST_FILE_BYTES: Final = 24_000
"""Of one file of a program; issue texts have their own, smaller limits."""


# -- reproductions ------------------------------------------------------------------------------------------


def reproductions(run: RunFolder, op: str, candidate: Environment) -> Reproductions | None:
    """What came of the reproduction of a finding; None where none was made.

    Raises:
        StoredFileError: its manifest is damaged or newer than this tool.
    """
    folder = folder_of(run, op, candidate.id)
    addon = "" if candidate.addon is None else f"{candidate.addon.name}@{candidate.addon.version}"
    manifest = read_manifest(folder)
    if manifest is None:
        return None
    return Reproductions(
        shipped=tuple(_reproduction(folder, program, addon) for program in manifest.shipped),
        not_shown=tuple(
            f"{program.title} ({units.format_percent(program.change_pct)})"
            for program in manifest.programs
            if not program.shipped and program.change_pct is not None
        ),
        not_run=tuple(
            program.title
            for program in manifest.programs
            if not program.shipped and program.change_pct is None
        ),
    )


def _reproduction(folder: Path, program: Program, addon: str) -> Reproduction:
    return Reproduction(
        name=program.name,
        title=program.title,
        files=tuple((Path(name).name, text) for name in program.files if (text := _text(folder, name))),
        command=_command(program, addon),
        printed=program.output,
        reason=program.reason,
        dependency_free=program.kind in DEPENDENCY_FREE,
    )


def _command(program: Program, addon: str) -> str:
    """What one types, beside the files, to run the program with one version."""
    script = next((Path(name).name for name in program.files if name.endswith((".mjs", ".js"))), "")
    ways: dict[ProgramKind, str] = {
        "js": "node",
        "node_sqlite": "node",
        "v8_addon": "npx node-gyp rebuild && node",
        "napi_addon": "npx node-gyp rebuild && node",
        "real": f"npm install {addon} && node",
    }
    if script and program.kind in ways:
        return f"{ways[program.kind]} {script}"
    return f"{COMMAND} {program.name}"


def _text(folder: Path, name: str) -> str:
    """A file of the reproduction; empty where it cannot be read, or would lie elsewhere."""
    path = folder / name
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            return ""
        with path.open("rb") as file:
            return file.read(MOST_FILE_BYTES).decode("utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


# -- bisections ---------------------------------------------------------------------------------------------


class _Change(msgspec.Struct, frozen=True, kw_only=True):
    last: str
    first: str
    named: bool
    probability: float
    asked: bool


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    v8: str


class _Bisection(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of bisect.json that a text needs."""

    headline: str
    op: str
    find: Literal["regression", "fixed"]
    axis: str
    addon: str
    changes: tuple[_Change, ...]
    releases: tuple[_Row, ...]
    rounds: int


def bisected(run: RunFolder, plan: Plan, op: str, pair: tuple[Environment, Environment]) -> Bisected | None:
    """The narrowest bisection of this operation between the two sides; None where there is none."""
    regressions, fixes = [], []
    for found in _bisections(run):
        change = next((c for c in found.changes if c.asked), None)
        if (
            change is None
            or (found.op, found.axis) != (op, plan.spec.axis)
            or not _same_addon(found, pair[0])
        ):
            continue
        if found.find == "regression" and _inside(change, plan, pair):
            regressions.append((found, change))
        if found.find == "fixed" and _later(change, plan, pair):
            fixes.append((found, change))
    if not regressions and not fixes:
        return None
    known = Bisected()
    if regressions:
        found, change = max(regressions, key=_trust)
        v8 = {row.version: row.v8 for row in found.releases}
        known = Bisected(
            last_good=change.last,
            first_bad=change.first,
            v8=(v8.get(change.last, ""), v8.get(change.first, "")),
            text=_told(found, change),
        )
    if fixes:
        found, change = max(fixes, key=_trust)
        known = msgspec.structs.replace(known, first_fixed=change.first, fixed_text=_told(found, change))
    return known


def _trust(item: tuple[_Bisection, _Change]) -> tuple[bool, float]:
    """Those that name a release first, then the most certain."""
    return item[1].named, item[1].probability


def _told(found: _Bisection, change: _Change) -> str:
    releases = f"{len(found.releases)} releases, {found.rounds} rounds, probability {change.probability:.3g}"
    return f"{found.headline.rstrip('.')} ({releases})"


def _bisections(run: RunFolder) -> Iterator[_Bisection]:
    inside = sorted(run.path.glob(f"bisect*/{BISECT_FILE}"))
    beside = sorted(run.path.resolve().parent.glob(f"*/{BISECT_FILE}"))
    for path in [*inside, *beside][:MOST_BISECTIONS]:
        try:
            yield read_json(path, "bisect", BISECT_SCHEMA, _Bisection)
        except StoredFileError:
            continue  # another run's damage is not this one's


def _same_addon(found: _Bisection, environment: Environment) -> bool:
    if found.axis == "addon":
        return environment.addon is not None and found.addon == environment.addon.name
    return found.addon == ("" if environment.addon is None else addon_name(environment.addon))


def _inside(change: _Change, plan: Plan, pair: tuple[Environment, Environment]) -> bool:
    low, high = (_number(environment, plan) for environment in pair)
    return _ordered(low, change.last, change.first, high)


def _later(change: _Change, plan: Plan, pair: tuple[Environment, Environment]) -> bool:
    return _ordered(_number(pair[1], plan), change.first)


def _number(environment: Environment, plan: Plan) -> str:
    if plan.spec.axis == "addon" and environment.addon is not None:
        return environment.addon.version
    return environment.node.version


def _ordered(*versions: str) -> bool:
    try:
        numbers = [npm_client.precedence(version) for version in versions]
    except ValueError:
        return False
    return numbers == sorted(numbers)
