"""What a published file says, whatever its format: figures, their rows, and where each was read."""

import datetime as dt
import math
import re
from typing import Literal

import msgspec

from investigator.text import short_text

Unit = Literal["rate", "time", "unknown"]
"""``rate``: operations per second, more is better. ``time``: seconds, less is better."""
Format = Literal["sqlite-benchmarks", "hyperfine", "compare.js", "markdown"]
NAME_LIMIT = 80
MAX_REMARKS = 20
"""Of one file: whoever sends ten thousand broken entries need not read of each."""

_VERSION = re.compile(
    r"(?<![\w.])(?:node(?:js)?)?v?([0-9]{1,3}\.[0-9]{1,4}\.[0-9]{1,4})(?![\w.]*[0-9])", re.IGNORECASE
)
_MAJOR = re.compile(r"\bnode(?:\.?js)?[\s@_-]*v?([0-9]{1,3})(?:\.x)?(?![\w.]*[0-9])", re.IGNORECASE)
_BARE_MAJOR = re.compile(r"\s*v?([0-9]{1,3})(?:\.x)?(?:\s*\(?(?:lts|current)\)?)?\s*", re.IGNORECASE)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where something was read."""

    file: str
    """Name of the file as the audit shows it."""
    at: str
    """Field, line, or both: ``results.MMAP 256MB.select_ops_per_sec``, ``line 12``."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One published number: an operation on one version under one setting."""

    version: str
    op: str
    setting: str = ""
    """What else varies inside a file, such as a PRAGMA configuration; empty where nothing does."""
    value: float
    """Operations per second, or seconds; positive and finite."""
    unit: Unit
    samples: tuple[float, ...] = ()
    """Single runs behind `value`, in their order; empty where the file has only the one number."""
    order: tuple[int, ...] = ()
    """Position of each sample in the file; empty where the file does not tell."""
    low: float | None = None
    """Lowest single value that the file states."""
    high: float | None = None
    count: int | None = None
    """Number of runs that the file states."""
    place: Place


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What one file says of one version beside its figures; None for what it does not record."""

    version: str
    place: Place
    measured_at: dt.datetime | None = None
    """UTC."""
    host: str | None = None
    """Anything that tells one machine from another; platform and architecture do not."""
    platform: str | None = None
    addon: str | None = None
    addon_version: str | None = None


class Stated(msgspec.Struct, frozen=True, kw_only=True):
    """A change that the file itself states beside its figures."""

    version: str
    op: str
    setting: str = ""
    change_pct: float
    place: Place


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """Something in the file that was left out or looks wrong."""

    text: str
    place: Place


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """One file, read."""

    name: str
    format: Format
    figures: tuple[Figure, ...]
    rows: tuple[Row, ...]
    stated: tuple[Stated, ...] = ()
    remarks: tuple[Remark, ...] = ()


class Notes:
    """Collects remarks on one file, a bounded number of them."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: list[Remark] = []
        self._more = 0

    def place(self, at: str) -> Place:
        """A place in this file."""
        return Place(file=self._file, at=short_text(at, 160))

    def add(self, text: str, at: str) -> None:
        """Note what is wrong with one entry."""
        if len(self._found) < MAX_REMARKS:
            self._found.append(Remark(text=short_text(text, 200), place=self.place(at)))
        else:
            self._more += 1

    def remarks(self) -> tuple[Remark, ...]:
        """All of them; the last one counts what is not listed."""
        if not self._more:
            return tuple(self._found)
        more = Remark(text=f"{self._more:,} more entries like these", place=self.place("further on"))
        return (*self._found, more)


def usable(value: object) -> float | None:
    """A measured number: positive and finite, no boolean, no text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    # Subnormal and enormous numbers measure nothing, and their ratios overflow.
    return number if math.isfinite(number) and 1e-15 < number < 1e18 else None


def version_in(text: str) -> str | None:
    """The Node version that a text names: ``24.11.1`` in ``node v24.11.1``, ``24`` in ``Node 24``."""
    head = text[:400]
    found = _VERSION.search(head) or _MAJOR.search(head) or _BARE_MAJOR.fullmatch(head)
    return None if found is None else found.group(1)


def version_name(text: str) -> str:
    """The version that a text names, else the text itself as a short name."""
    return version_in(text) or short_text(text, NAME_LIMIT) or "unnamed"


def version_key(version: str) -> tuple[int, ...]:
    """Older versions sort first; names without numbers come before all."""
    return tuple(int(part) for part in re.findall(r"[0-9]{1,4}", version)[:3])
