"""One side's code path on the other side: the experiment that shows whether the addon's source is the cause.

Two swaps. A *path* swap rewrites the ``#if`` that decides a region, and all that hang on the same condition,
so that every Node compiles the branch that one side takes; it is an ordinary patched package, and its patch
is the evidence. A *binary* swap runs one build on both sides, where the addon's interface allows it
(Node-API, or two Node builds of one ABI): then nothing of the addon differs.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from investigator import addons
from investigator.addons import AddonPackage
from investigator.arms import Arms
from investigator.build import AddonBuild
from investigator.causes.ablation import share_of
from investigator.causes.cpp import Conditional, conditionals
from investigator.causes.effects import wall_by_round
from investigator.causes.shares import Share
from investigator.causes.source import SourceRegion
from investigator.errors import InvestigateError
from investigator.plan import Environment, environment_id
from investigator.store import write_atomic
from investigator.text import clean_text

Side = Literal["baseline", "candidate"]

MAX_SOURCE_BYTES: Final = 4 << 20
_ATOM: Final = re.compile(r"[A-Za-z_]\w*|\d+")


class NoSwap(msgspec.Struct, frozen=True, kw_only=True):
    """A swap that cannot be made."""

    reason: str
    """One sentence."""


class PathSwap(msgspec.Struct, frozen=True, kw_only=True):
    """An environment that compiles the other side's code path."""

    direction: Literal["old_on_new", "new_on_old"]
    """``old_on_new``: the candidate's Node with the baseline's path; ``new_on_old``: the reverse."""
    environment: Environment
    """To be built and measured beside the pair. That it does not compile is a `BuildFailure`, as always."""
    regions: tuple[SourceRegion, ...]
    """What is swapped together."""
    patch: str
    """The unified diff."""


class BinarySwap(msgspec.Struct, frozen=True, kw_only=True):
    """The candidate's Node with the baseline's own binary."""

    environment: Environment
    build: AddonBuild
    """The baseline's build: give it to the plan under the environment's identifier, do not build anew."""


# -- the other code path ------------------------------------------------------------------------------------


def linked(regions: Sequence[SourceRegion], region: SourceRegion) -> tuple[SourceRegion, ...]:
    """`region` and all others on the same condition: they call each other and only compile together."""
    atoms = _atoms(region)
    return tuple(other for other in regions if other.kind == "branch" and _atoms(other) == atoms)


def groups(regions: Sequence[SourceRegion]) -> tuple[tuple[SourceRegion, ...], ...]:
    """All regions that an ``#if`` decides, each with those that are swapped together with it."""
    found: dict[frozenset[str], tuple[SourceRegion, ...]] = {}
    for region in regions:
        if region.kind == "branch":
            found.setdefault(_atoms(region), linked(regions, region))
    return tuple(found.values())


def _atoms(region: SourceRegion) -> frozenset[str]:
    """Names and numbers of a condition: ``X < 127`` and ``X >= 127`` are the two sides of one decision."""
    return frozenset(_ATOM.findall(region.condition or "")) - {"defined"}


def plan_swaps(
    regions: Sequence[SourceRegion], baseline: Environment, candidate: Environment, folder: Path
) -> tuple[PathSwap | NoSwap, ...]:
    """Both directions of one path swap.

    Args:
        regions: what is swapped together (`linked`, one of `groups`).
        baseline: the pair's environments, of one addon package.
        candidate: the other side.
        folder: where the patches are kept as evidence, in the run folder.
    """
    return (
        plan_swap(regions, "old_on_new", candidate, "baseline", folder),
        plan_swap(regions, "new_on_old", baseline, "candidate", folder),
    )


def plan_swap(
    regions: Sequence[SourceRegion],
    direction: Literal["old_on_new", "new_on_old"],
    environment: Environment,
    side: Side,
    folder: Path,
) -> PathSwap | NoSwap:
    """One direction: `environment` with the code path of `side`."""
    if environment.addon is None:
        return NoSwap(reason="there is no addon whose code could be swapped")
    if environment.flavor != "source":
        return NoSwap(reason="a shipped binary cannot be built from another code path; leave out --prebuilt")
    patch = swap_patch(environment.addon, regions, side)
    if isinstance(patch, NoSwap):
        return patch
    package = _patched(environment.addon, patch, folder / f"swap-{direction}.patch")
    if isinstance(package, NoSwap):
        return package
    swapped = msgspec.structs.replace(
        environment,
        id=environment_id(environment.node, package, environment.flavor),
        addon=package,
    )
    return PathSwap(direction=direction, environment=swapped, regions=tuple(regions), patch=patch)


def _patched(package: AddonPackage, patch: str, file: Path) -> AddonPackage | NoSwap:
    write_atomic(file, patch.encode("utf-8", errors="surrogateescape"))
    try:
        return msgspec.structs.replace(addons.patched(package, str(file)), own_patch=True)
    except InvestigateError as error:
        return NoSwap(reason=f"the other code path cannot be written into the package: {error}")


def swap_patch(package: AddonPackage, regions: Sequence[SourceRegion], side: Side) -> str | NoSwap:
    """The unified diff that makes every Node compile `side`'s branch of the regions."""
    if package.directory is None:
        return NoSwap(reason=f"{package.name} has no sources")
    by_file: dict[str, list[SourceRegion]] = {}
    for region in regions:
        if region.kind != "branch" or region.condition_file is None:
            return NoSwap(reason=f"{region.where} is not decided by a condition of the addon's own")
        by_file.setdefault(region.condition_file, []).append(region)
    # The first line makes patches of packages that are patched already differ from those that are not.
    parts = [f"Code path of the {side}, on top of {package.patch_sha256 or 'the release'}\n"]
    for name, inside in sorted(by_file.items()):
        original = _read(package.directory, name)
        if original is None:
            return NoSwap(reason=f"{name} of {package.name} cannot be read")
        changed = rewrite(original, inside, side)
        if isinstance(changed, NoSwap):
            return changed
        parts += _diff(name, original, changed)
    return "".join(parts)


def _read(package: Path, name: str) -> str | None:
    path = package / name
    try:
        if not path.resolve().is_relative_to(package.resolve()) or path.stat().st_size > MAX_SOURCE_BYTES:
            return None
        return path.read_bytes().decode("utf-8", errors="surrogateescape")
    except OSError:
        return None


def rewrite(text: str, regions: Sequence[SourceRegion], side: Side) -> str | NoSwap:
    """Make the conditions of `regions` constant: `side`'s branch is compiled; line numbers stay (pure)."""
    lines = text.split("\n")
    by_line = {group.line: group for group in conditionals(text)}
    for region in regions:
        group = by_line.get(region.condition_line or 0)
        if group is None:
            return NoSwap(reason=f"{region.where} holds no #if any more")
        wanted = region.baseline_branch if side == "baseline" else region.candidate_branch
        _settle(lines, group, wanted)
    return "\n".join(lines)


def _settle(lines: list[str], group: Conditional, wanted: int | None) -> None:
    for number, branch in enumerate(group.branches):
        word = "if" if number == 0 else "elif"
        start = branch.line - 1
        lines[start] = f"#{word} {int(number == wanted)} // swapped"
        for below in range(start + 1, start + branch.directive_lines):
            lines[below] = ""


def _diff(name: str, original: str, changed: str) -> list[str]:
    lines = difflib.unified_diff(_split(original), _split(changed), fromfile=f"a/{name}", tofile=f"b/{name}")
    return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]


def _split(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends one, as for patch."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


# -- one binary on both -------------------------------------------------------------------------------------


def shared_binary(
    baseline: Environment, candidate: Environment, builds: Mapping[str, AddonBuild]
) -> BinarySwap | NoSwap:
    """The candidate's Node with the binary that was built (or shipped) for the baseline.

    The build is shared, not made again: the environment gets an identifier of its own and the plan's `builds`
    the baseline's `AddonBuild` under it. The worker's hello then proves that this very file was loaded.
    """
    build = builds.get(baseline.id)
    if baseline.addon is None or candidate.addon is None or build is None:
        return NoSwap(reason="there is no binary that could be shared")
    offered = candidate.node.versions.get("napi", "")
    same_abi = baseline.node.versions.get("modules", "-") == candidate.node.versions.get("modules", "")
    if baseline.addon.napi is None and not same_abi:
        return NoSwap(
            reason=f"{baseline.addon.name} {baseline.addon.version} is built on V8's own interface: its "
            f"binary for Node {baseline.node.version} does not load on {candidate.node.version}"
        )
    if baseline.addon.napi is not None and (not offered.isdecimal() or int(offered) < baseline.addon.napi):
        return NoSwap(
            reason=f"Node {candidate.node.version} offers Node-API {clean_text(offered, 20) or 'nothing'}, "
            f"the binary needs {baseline.addon.napi}"
        )
    if build.binding_sha256 == (builds[candidate.id].binding_sha256 if candidate.id in builds else None):
        return NoSwap(reason="both sides run the same binary already")
    shared = msgspec.structs.replace(
        candidate,
        id=f"{candidate.id}-binary-of-node{baseline.node.version}",
        addon=baseline.addon,
        flavor=baseline.flavor,
    )
    return BinarySwap(environment=shared, build=build)


# -- what it moved ------------------------------------------------------------------------------------------


def moved_share(
    arms: Arms,
    op: str,
    baseline: str,
    candidate: str,
    swapped: str,
    direction: Literal["old_on_new", "new_on_old"],
) -> Share | None:
    """Part of the difference between baseline and candidate that goes with the code path.

    Args:
        arms: process values of a run that measured the pair and the swapped environment in the same rounds.
        op: the operation.
        baseline: environment identifiers.
        candidate: the other side.
        swapped: the swapped environment.
        direction: which side it stands in for.
    """
    old, new = (wall_by_round(arms, op, side) for side in (baseline, candidate))
    other = wall_by_round(arms, op, swapped)
    if direction == "old_on_new":
        return share_of(old, new, old, other)
    return share_of(old, new, other, new)
