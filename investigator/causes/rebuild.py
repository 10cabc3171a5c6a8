"""The candidate compiled with what the baseline was compiled with: the experiment behind the cause ``build``.

Two rebuilds, each of the candidate's own sources on its own Node: one with the baseline's flags, one with the
baseline's ``sqlite3.o`` itself, whether flags or sources made it another one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

from investigator.build import AddonBuild, FlagChange, Substitution
from investigator.causes.build import BuildComparison, decides_code, normal_flags
from investigator.text import clean_text

AMALGAMATION: Final = "sqlite3.c"
_MOST_SHOWN: Final = 4
_DEFINITIONS: Final = ("-D", "-U")


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One way to make a rebuild."""

    what: str
    """What is taken from the baseline, for texts."""
    substitution: Substitution


class Rebuild(msgspec.Struct, frozen=True, kw_only=True):
    """One rebuild to try."""

    name: Literal["flags", "sqlite3.o"]
    attempts: tuple[Attempt, ...]
    """The first that compiles is measured: a source may need its own definitions."""


def plan_rebuilds(
    baseline: AddonBuild, candidate: AddonBuild, compared: BuildComparison
) -> tuple[Rebuild, ...]:
    """The rebuilds that what differs between two builds asks for; none where a side was shipped."""
    if compared.binary_equal or not baseline.flags or not candidate.flags:
        return ()
    return (*_with_flags(baseline.flags, candidate.flags), *_with_object(baseline, candidate))


def _with_flags(baseline: Mapping[str, str], candidate: Mapping[str, str]) -> Iterator[Rebuild]:
    """With the baseline's flags for all that both sides compile or link, but for the amalgamation."""
    both = [name for name in candidate if name in baseline and name != AMALGAMATION]
    changes = {name: flag_change(baseline[name], candidate[name]) for name in both}
    changes = {name: change for name, change in changes.items() if change.without or change.added}
    if not changes:
        return
    without = {name: _without_definitions(change) for name, change in changes.items()}
    without = {name: change for name, change in without.items() if change.without or change.added}
    attempts = [changes, without] if without and without != changes else [changes]
    yield Rebuild(
        name="flags",
        attempts=tuple(
            Attempt(what=_shown(flags), substitution=Substitution(flags=flags)) for flags in attempts
        ),
    )


def flag_change(baseline: str, candidate: str) -> FlagChange:
    """Turn the candidate's command line into the baseline's, as far as it decides machine code."""
    one, other = (Counter(filter(decides_code, normal_flags(line))) for line in (baseline, candidate))
    return FlagChange(
        without=tuple(sorted((other - one).elements())), added=tuple(sorted((one - other).elements()))
    )


def _without_definitions(change: FlagChange) -> FlagChange:
    return FlagChange(
        without=tuple(word for word in change.without if not word.startswith(_DEFINITIONS)),
        added=tuple(word for word in change.added if not word.startswith(_DEFINITIONS)),
    )


def _shown(changes: Mapping[str, FlagChange]) -> str:
    texts = dict.fromkeys(
        f"{' '.join(change.without) or 'nothing'} replaced by {' '.join(change.added) or 'nothing'}"
        for change in changes.values()
    )
    shown = "; ".join(list(texts)[:_MOST_SHOWN])
    return clean_text(f"flags of {', '.join(list(changes)[:_MOST_SHOWN])} ({shown})", 400)


def _with_object(baseline: AddonBuild, candidate: AddonBuild) -> Iterator[Rebuild]:
    digests = (baseline.sqlite3_object_sha256, candidate.sqlite3_object_sha256)
    if None in digests or digests[0] == digests[1]:
        return
    yield Rebuild(
        name="sqlite3.o",
        attempts=(
            Attempt(
                what="the object code of SQLite (sqlite3.o)",
                substitution=Substitution(
                    amalgamation=baseline.directory / "sqlite3.o", amalgamation_sha256=digests[0]
                ),
            ),
        ),
    )
