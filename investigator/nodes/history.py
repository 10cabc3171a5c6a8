"""Releases in the order in which Node changed, from one to another. Pure but for the table of branch points.

Node's history is no line. Each major is cut from the main branch; until the next one is cut it follows main
closely, afterwards it takes ports only. From 22.3.0 to 24.11.1 the way is therefore 22.3.0 .. 22.9.0, 23.0.0
.. 23.11.0, 24.0.0 .. 24.11.1: 22.10.0 and later never became 23. Where the older end itself lies beyond such
a point (22.21.1), the point (22.9.0) comes next to it: what differs between the two was ported back, or not
ported. Nightlies and canaries come from main itself and are ordered by the date in their names.
"""

import re
import tomllib
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import resources
from typing import Final

import msgspec
import semantic_version

from investigator.errors import UsageError
from investigator.text import clean_text

_TABLE: Final = "branches.toml"
_DATED: Final = re.compile(r"(nightly|v8-canary|test|rc)\.?([0-9]{8})?")


Precedes = Callable[[str, str], bool]
"""Whether one version is older than another."""


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """One release of Node or of an addon."""

    version: str
    published: str = ""
    """Date, ``2025-05-06``; empty where no reliable one is known."""


def channel(version: str) -> str:
    """``nightly``, ``v8-canary``, ...; empty for a release."""
    tag = version.partition("-")[2]
    found = _DATED.match(tag)
    return "" if not tag else found.group(1) if found else tag[:40]


def is_before(one: str, other: str) -> bool:
    """Whether `one` is older than `other`, both of one channel."""
    return _order(one) < _order(other)


def path(releases: Sequence[Release], old: str, new: str, lines: Sequence[int] = ()) -> tuple[Release, ...]:
    """The releases from `old` to `new`, both included, in the order of Node's history.

    Args:
        releases: all there are, in any order.
        old: the older end.
        new: the newer end.
        lines: majors between the ends that count; empty for all.

    Raises:
        UsageError: the two are of different channels, or `new` is not newer.
    """
    if channel(old) != channel(new):
        raise UsageError(
            f"{old} and {new} do not lie in one history; name two releases, or two builds of one channel."
        )
    if not is_before(old, new):
        raise UsageError(f"{clean_text(new, 60)} is not newer than {clean_text(old, 60)}.")
    known = {release.version: release for release in releases if channel(release.version) == channel(old)}
    between = [
        release
        for release in sorted(known.values(), key=lambda release: _order(release.version))
        if is_before(old, release.version) and is_before(release.version, new)
    ]
    if not channel(old):
        between = _on_the_way(known, between, _major(old), _major(new), old)
    wanted = [release for release in between if not lines or _major(release.version) in lines]
    return (known.get(old, Release(version=old)), *wanted, known.get(new, Release(version=new)))


def _on_the_way(
    known: dict[str, Release], between: Sequence[Release], first: int, last: int, old: str
) -> list[Release]:
    """Leave out what came from a line after the next one was cut from main."""
    ends = {line: _branch_point(known, line) for line in range(first, last)}
    kept = [
        release
        for release in between
        if (end := ends.get(_major(release.version))) is None or not is_before(end, release.version)
    ]
    point = ends.get(first)
    # The older end is on the branch already: the release that it has in common with the newer one.
    if point is not None and is_before(point, old) and point in known:
        kept.insert(0, known[point])
    return kept


def _branch_point(known: dict[str, Release], line: int) -> str | None:
    """Last release of a line before the next line began; None where that is not known."""
    following = min((v for v in known if _major(v) > line), key=semantic_version.Version, default=None)
    dates = {v: release.published for v, release in known.items() if _major(v) == line}
    if following is not None and known[following].published and all(dates.values()):
        before = [v for v, date in dates.items() if date < known[following].published]
        return max(before, key=semantic_version.Version, default=None)
    point = _table().get(str(line))
    if point is None:
        return None
    # The packages may lack that one; then the one before it.
    here = [v for v in dates if not is_before(point, v)]
    return max(here, key=semantic_version.Version, default=None)


@lru_cache(maxsize=1)
def _table() -> dict[str, str]:
    text = resources.files("investigator.nodes").joinpath(_TABLE).read_text("utf-8")
    return msgspec.convert(tomllib.loads(text)["last"], type=dict[str, str])


def _major(version: str) -> int:
    return int(version.partition(".")[0])


def _order(version: str) -> tuple[str, semantic_version.Version]:
    """By the date in a nightly's name, then by version."""
    found = _DATED.match(version.partition("-")[2])
    return (found.group(2) or "" if found else "", semantic_version.Version(version))
