"""A claimed change: ``24.11.1=-57%`` to a ratio of times, whatever it was measured in."""

import math
import re
from typing import Literal

import msgspec

from investigator.audit.figures import Place, Unit, version_in
from investigator.errors import UsageError
from investigator.text import clean_text

Measure = Literal["rate", "time"]
_CLAIM = re.compile(
    r"(?P<version>[^=]{1,100})=\s*(?P<sign>[-+]?)\s*(?P<size>[0-9]{1,6}(?:\.[0-9]{1,6})?)\s*"
    r"(?P<unit>%|x|times)?\s*(?P<word>slower|faster)?\s*",
    re.IGNORECASE,
)
_FORM = "write VERSION=CHANGE, for instance 24.11.1=-57%, '24=57% slower' or '24=2.3x slower'"


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One claimed change of a version against a baseline."""

    version: str
    op: str | None = None
    log_time: float
    """ln(time per operation, candidate / baseline): positive is slower."""
    text: str
    """As it was written, e.g. ``-57 %``."""
    measure: Measure
    """What the percentage was read as."""
    tolerance_pct: float = 1.0
    """A unit of its last digit: some round, others cut."""
    place: Place | None = None
    """Where a file states it; None for the command line."""

    def change_pct(self, unit: Unit) -> float:
        """The change in percent of rates or of times; of an unknown unit as it was written."""
        as_rate = self.measure == "rate" if unit == "unknown" else unit == "rate"
        return math.expm1(-self.log_time if as_rate else self.log_time) * 100.0


def parse_claim(text: str, measure: Measure) -> Claim:
    """Read one ``--claim``.

    Args:
        text: ``VERSION=CHANGE``; a percentage with sign or word (slower, faster), or a factor with a word.
        measure: what a percentage is a change of, where it is none of a factor.

    Raises:
        UsageError: it has no such form, or no time or rate can change that way.
    """
    shown = clean_text(text, 80)
    found = _CLAIM.fullmatch(text.translate(str.maketrans("\u2212\u2013\u00a0", "-- ")))
    version = None if found is None else version_in(found.group("version").strip())
    if found is None or version is None:
        raise UsageError(f"--claim {shown!r} cannot be read; {_FORM}.")
    size, word = float(found.group("size")), (found.group("word") or "").lower()
    if (found.group("unit") or "%").lower() == "%":
        return _percentage(version, size, found, measure, shown)
    if not word or size < 1 or found.group("sign"):
        raise UsageError(f"--claim {shown!r}: a factor is 1 or more and slower or faster; {_FORM}.")
    log = math.log(size)
    return Claim(
        version=version,
        log_time=log if word == "slower" else -log,
        text=f"{size:g}x {word}",
        measure=measure,
        tolerance_pct=2.0,
    )


def _percentage(version: str, size: float, found: re.Match[str], measure: Measure, shown: str) -> Claim:
    word, sign = (found.group("word") or "").lower(), found.group("sign")
    if not word and not sign and size != 0:
        raise UsageError(f"--claim {shown!r} does not say whether slower or faster; {_FORM}.")
    if word and sign == "-":
        raise UsageError(f"--claim {shown!r} has a minus and a word; {_FORM}.")
    down = sign == "-" or word == ("slower" if measure == "rate" else "faster")
    change = -size if down else size
    if change <= -100.0:
        raise UsageError(f"--claim {shown!r}: nothing falls by 100 % or more and still runs; {_FORM}.")
    log = math.log1p(change / 100.0)
    decimals = len(found.group("size").partition(".")[2])
    return Claim(
        version=version,
        log_time=-log if measure == "rate" else log,
        text=_written(change),
        measure=measure,
        tolerance_pct=10.0**-decimals,
    )


def stated_claim(
    version: str, op: str, change_pct: float, unit: Unit, place: Place | None, measure: Measure
) -> Claim | None:
    """A claim that a file makes itself, or that its figures come to; None where it is no possible change."""
    if not -100.0 < change_pct < 1e6:
        return None
    own: Measure = measure if unit == "unknown" else unit
    log = math.log1p(change_pct / 100.0)
    return Claim(
        version=version,
        op=op,
        log_time=-log if own == "rate" else log,
        text=_written(change_pct),
        measure=own,
        place=place,
    )


def _written(change_pct: float) -> str:
    return f"{change_pct:+.6g} %"
