"""The addon's own C++ as the compiler sees it on two sides: where it differs, and which ``#if`` decides it.

An addon may hold two programs: better-sqlite3 12.x builds rows one way below ABI 127 and another way from
there on. Comparing two Node versions then compares two C++ programs, and the difference is the addon's, not
Node's.

The preprocessor of the addon's own build (its flags, its definitions) runs in the engine once a side; what is
left of the addon's own files is compared. Own means the package's files without the SQLite amalgamation,
generated files and ``node_modules``. Between two releases of the addon (one Node) functions are compared
instead.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from investigator import cache
from investigator.addons import AddonPackage
from investigator.build import AddonBuild, address, base_identity
from investigator.causes.preprocess import UnreadableSourceError, is_compiled, preprocess, read_sources
from investigator.causes.regions import SourceRegion, function_regions, header_regions
from investigator.causes.shares import Share
from investigator.engine.interface import Engine
from investigator.nodes.interface import NodeBuild
from investigator.plan import Environment

__all__ = [
    "SourceCause",
    "SourceComparison",
    "SourceRegion",
    "compare_sources",
    "function_of_symbol",
    "keep_source_cause",
    "on_profile",
]

RECIPE: Final = 1
"""Raise it whenever the comparison changes: it is part of every cache key."""
MIN_SHARE: Final = 0.5
"""Part of the delta that a swap must move before the source is a cause (design.md section 8)."""
_KIND: Final = "source-comparisons"
_SYMBOL_TAIL: Final = re.compile(r"\s*(?:\[clone [^\]]*\]|const|&|&&)\s*$")


class SourceComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What the addon's own sources have to do with a pair."""

    axis: Literal["headers", "addon"]
    """One package under two header sets, or two packages."""
    regions: tuple[SourceRegion, ...]
    functions: int
    """Functions that were compared."""
    reason: str | None = None
    """Why nothing could be compared, as one sentence; None where it was."""
    identical: bool = False
    """Whether both sides compile the very same own code (or run the same binary)."""


class SourceCause(msgspec.Struct, frozen=True, kw_only=True):
    """A region held against the rule of design.md section 8."""

    region: SourceRegion
    on_profile: tuple[str, ...]
    """Functions of the region, or callers of them, that the operation's profile shows."""
    moved: Share | None
    """Part of the delta that the swap of this region moves; None where no swap was measured."""
    kept: bool
    """Whether it counts as a cause."""
    why: str
    """One sentence."""


# -- comparing two environments -----------------------------------------------------------------------------


def compare_sources(
    engine: Engine, baseline: Environment, candidate: Environment, builds: Mapping[str, AddonBuild]
) -> SourceComparison:
    """Compare the addon's own sources as both environments compile them; from the cache where possible.

    Args:
        engine: where the preprocessor runs (0.5 s a side).
        baseline: one side.
        candidate: the other; another Node, another addon release, or both.
        builds: of the run, by environment identifier.

    Returns:
        The regions; or none and the reason where there is nothing to compare.

    Raises:
        EngineMissingError: the engine does not answer any more.
        HostUnfitError: the disk is full.
    """
    axis: Literal["headers", "addon"] = "headers" if _same_package(baseline, candidate) else "addon"
    sides = (baseline, candidate)
    if any(e.addon is None or e.addon.kind == "node:sqlite" for e in sides):
        return _nothing(axis, "there is no addon with sources of its own on both sides")
    one, other = (builds.get(environment.id) for environment in sides)
    if one is None or other is None:
        return _nothing(axis, "a side was not built")
    made = (one, other)
    if one.binding_sha256 == other.binding_sha256:
        return SourceComparison(axis=axis, regions=(), functions=0, identical=True)
    if not all(any(map(is_compiled, build.flags)) for build in made):
        return _nothing(axis, "a side is a shipped binary, of which no compiler flags are known")
    key = address(
        [RECIPE, axis, base_identity(engine), *(_side_identity(*s) for s in zip(sides, made, strict=True))]
    )
    path = cache.cache_root() / _KIND / f"{key}.json"
    stored = _stored(path)
    if stored is None:
        stored = _compare(engine, axis, sides, made)
        if stored.reason is None:  # a failure may pass: a busy host, a full disk
            cache.write_text(path, msgspec.json.encode(stored).decode())
    return stored


def _same_package(one: Environment, other: Environment) -> bool:
    return one.addon is not None and other.addon is not None and identity(one.addon) == identity(other.addon)


def identity(addon: AddonPackage) -> list[object]:
    """What makes an addon's sources."""
    return [addon.name, addon.version, addon.integrity, addon.patch_sha256]


def _side_identity(environment: Environment, build: AddonBuild) -> list[object]:
    return (
        [*identity(environment.addon), *_headers(environment.node), dict(build.flags)]
        if environment.addon
        else []
    )


def _headers(node: NodeBuild) -> list[str]:
    return [node.node_sha256, node.config_sha256, node.versions.get("modules", "")]


def _stored(path: Path) -> SourceComparison | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=SourceComparison)
    except (OSError, msgspec.MsgspecError):
        return None


def _nothing(axis: Literal["headers", "addon"], reason: str) -> SourceComparison:
    return SourceComparison(axis=axis, regions=(), functions=0, reason=reason)


def _compare(
    engine: Engine,
    axis: Literal["headers", "addon"],
    sides: tuple[Environment, Environment],
    builds: tuple[AddonBuild, AddonBuild],
) -> SourceComparison:
    try:
        seen = [
            preprocess(engine, environment.node, build)
            for environment, build in zip(sides, builds, strict=True)
        ]
    except UnreadableSourceError as reason:
        return _nothing(axis, str(reason))
    files = [read_sources(build.directory / "package") for build in builds]
    found = (
        header_regions(seen[0], seen[1], files[0])
        if axis == "headers"
        else function_regions(seen[0], seen[1], files[0], files[1])
    )
    return SourceComparison(
        axis=axis,
        regions=tuple(found),
        functions=max(len(side.functions) for side in seen),
        identical=not found,
    )


# -- the rule -----------------------------------------------------------------------------------------------


def function_of_symbol(symbol: str) -> str:
    """Qualified name of a demangled symbol: no return type, parameters, template arguments or clone marks."""
    text = symbol[:2000].strip()
    while (shorter := _SYMBOL_TAIL.sub("", text)) != text:
        text = shorter
    text = text.replace("(anonymous namespace)::", "").removesuffix("[inlined]").strip()
    plain: list[str] = []
    depth = 0
    for character in text:
        if character == "<":
            depth += 1
        elif character == ">" and depth:
            depth -= 1
        elif character == "(" and depth == 0:
            break
        elif depth == 0:
            plain.append(character)
    return "".join(plain).strip().rpartition(" ")[2]


def on_profile(region: SourceRegion, symbols: Iterable[str]) -> tuple[str, ...]:
    """Functions of a region among the symbols; where none is, callers that may have swallowed them."""
    seen = {function_of_symbol(symbol) for symbol in symbols}
    direct = tuple(name for name in region.functions if _matches(name, seen))
    return direct or tuple(name for name in region.callers if _matches(name, seen))


def _matches(name: str, seen: set[str]) -> bool:
    return name in seen or any(other.endswith(f"::{name}") for other in seen)


def keep_source_cause(
    regions: Sequence[SourceRegion], profile_symbols: Iterable[str], swap_moved_share: Share | None
) -> tuple[SourceCause, ...]:
    """Hold the regions against the rule: on the operation's profile, and the swap moves half of the delta.

    Args:
        regions: those that one swap exchanges together (see `swap.linked`).
        profile_symbols: demangled symbols of the addon that the operation's profile shows.
        swap_moved_share: part of the delta that the swap moves; None where it was not or cannot be measured.

    Returns:
        One judgement a region: kept ones first, and of these the regions that the profile shows directly.
    """
    symbols = tuple(profile_symbols)
    judged = [_judge(region, on_profile(region, symbols), swap_moved_share) for region in regions]
    return tuple(sorted(judged, key=lambda cause: (not cause.kept, not _is_direct(cause))))


def _is_direct(cause: SourceCause) -> bool:
    """Whether the profile shows a function of the region itself, and not only one that calls it."""
    return bool(set(cause.on_profile) & set(cause.region.functions))


def _judge(region: SourceRegion, seen: tuple[str, ...], moved: Share | None) -> SourceCause:
    kept = bool(seen) and moved is not None and moved.at_least(MIN_SHARE)
    if not seen:
        why = "none of its functions is on the profile of the operation"
    elif moved is None:
        why = f"{seen[0]} is on the profile, but no swap could show what it moves"
    elif moved.low is None:
        why = (
            f"{seen[0]} is on the profile, but the difference is too small to tell what the swap moves of it"
        )
    elif kept:
        why = f"{seen[0]} is on the profile, and the other code path moves {moved.text} of the difference"
    else:
        why = (
            f"{seen[0]} is on the profile, but the other code path moves only {moved.text} of the difference"
        )
    return SourceCause(region=region, on_profile=seen, moved=moved, kept=kept, why=why)
