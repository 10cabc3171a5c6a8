"""What the checks look at, what they find, and how a place or a number is written in a sentence."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from investigator import units
from investigator.audit.book import Book
from investigator.audit.figures import Figure, Place, Row, Unit, version_key
from investigator.audit.suite import SUITE_ROW
from investigator.audit.weigh import Weighed

Kind = Literal["against", "missing", "for"]
"""``against`` weakens the figures, ``missing`` is not recorded, ``for`` strengthens them."""
MOST_OPS = 8
"""Operations that are looked at one by one where nothing is claimed; the others are in the changes."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the figures can, cannot or do not say."""

    check: str
    """Name of the check; stable."""
    kind: Kind
    text: str
    """One sentence."""
    places: tuple[Place, ...]
    """Where it was read; empty only for what no file holds."""


class Evidence:
    """What the checks look at."""

    def __init__(self, book: Book, weighed: Sequence[Weighed]) -> None:
        self.book = book
        self.weighed = tuple(weighed)
        claimed = [w for w in weighed if w.claim is not None]
        by_op = {w.op: w for w in reversed(weighed)}
        self.ops = tuple(dict.fromkeys(w.op for w in weighed))[: None if claimed else MOST_OPS]
        """Operations that are looked at one by one: without a claim those with the largest changes."""
        self.leading = tuple(claimed) or tuple(by_op[op] for op in self.ops)
        """The claimed changes; without a claim the largest of each operation."""
        versions = dict.fromkeys(v for w in weighed for v in (w.baseline, w.candidate))
        self.versions = tuple(sorted(versions, key=version_key))
        """Versions that are weighed, oldest first."""
        self.sheets = [s for s in book.sheets if any(row.version in versions for row in s.rows)]
        """Files that hold a weighed version."""
        self.rows = [(s, row) for s in self.sheets for row in s.rows if row.version in versions]
        """What they say of the weighed versions."""

    def figures(self, op: str, version: str) -> list[Figure]:
        """Every figure of one operation on one version."""
        return [figure for found in self.book.cells(op, version).values() for figure in found]


def rows_of(evidence: Evidence) -> list[Row]:
    """Rows of the weighed versions."""
    return [row for _, row in evidence.rows]


def places_of(evidence: Evidence, w: Weighed, settings: Sequence[str]) -> tuple[Place, ...]:
    """Places of both figures of a change under some settings."""
    return tuple(
        figure.place
        for setting in dict.fromkeys(settings)
        for version in (w.baseline, w.candidate)
        for figure in evidence.book.cells(w.op, version).get(setting, ())
    )


def number_text(figure: Figure) -> str:
    """A figure with its unit."""
    return value_text(figure.value, figure.unit)


def value_text(value: float, unit: Unit) -> str:
    """A value with its unit."""
    if unit == "time":
        return units.format_time(value * 1e9)
    return units.format_rate(value) + ("/s" if unit == "rate" else "")


def under_text(setting: str) -> str:
    """A setting in a sentence; empty where there is none."""
    return f" under {setting}" if setting else ""


def field_of(row: Row, fields: str) -> Place:
    """Where a JSON file of the suite has, or would have, these facts; elsewhere the row itself."""
    return msgspec.structs.replace(row.place, at=fields) if row.place.at == SUITE_ROW else row.place


def later_text(seconds: float) -> str:
    """A span of time in a sentence."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 2 * 86400:
        return (
            f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"
            if seconds >= 3600
            else f"{seconds / 60:.0f} min"
        )
    return f"{seconds / 86400:,.0f} days"
