"""Numbers as people write them in tables: thousands separators, units, ± spreads, a change in brackets."""

import re

import msgspec

from investigator.audit.figures import Unit, usable

_LIMIT = 200
"""Characters of a cell that are looked at; more is no number."""

_RATE_UNIT = (
    r"(?:[a-z]{1,20}\s?(?:/|per)\s?s(?:ec(?:ond)?)?|/\s?s(?:ec(?:ond)?)?|per second|ops|rps|qps|tps|hz)\b"
)
_TIME_SCALES = {
    "ns": 1e-9, "µs": 1e-6, "μs": 1e-6, "us": 1e-6, "ms": 1e-3,
    "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0,
}  # fmt: skip
_TIME_UNIT = r"(?:ns|µs|μs|us|ms|secs?|seconds|s)(?![a-z])"
_SUFFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_NUMBER = r"[0-9][0-9., _'\u2019]{0,40}[0-9](?:e[-+]?[0-9]{1,3})?|[0-9]|\.[0-9]{1,20}"
_CELL = re.compile(
    rf"(?P<about>[~≈<>]|about |approx\.? |ca\.? )?\s*(?P<value>[-+]?(?:{_NUMBER}))\s?"
    r"(?P<suffix>[kmg](?![a-z/]))?\s*"
    rf"(?P<unit>{_RATE_UNIT}|{_TIME_UNIT}|%|x\b)?\s*"
    rf"(?:(?:±|\+/-|\+-)\s*(?P<spread>{_NUMBER})\s?(?P<spread_suffix>[kmg](?![a-z/]))?\s*(?P<spread_pct>%)?[^(]{{0,40}})?"
    rf"(?P<rest>.*)",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"(?P<sign>[-+])?\s*(?P<size>[0-9]{1,9}(?:[.,][0-9]{1,6})?)\s*%\s*(?P<word>slower|faster)?", re.I
)
_NOISE = re.compile(r"<[^<>]{0,60}>|!?\[(?P<text>[^\]\[]{0,120})\]\([^()]{0,300}\)|[*`~]{1,3}(?![0-9])|[*`]")
_SPACES = str.maketrans(
    dict.fromkeys("\xa0\u2007\u2009\u202f\t", " ") | dict.fromkeys("\u2212\u2013\u2012\ufe63", "-")
)


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One number of a table, in ops/s or seconds where the unit is known."""

    value: float
    unit: Unit
    half_width: float | None = None
    """What stands after ±, in the unit of `value`."""
    change_pct: float | None = None
    """A change that stands in brackets beside the number."""
    about: bool = False
    """Marked as approximate."""


def plain(text: str) -> str:
    """A cell without emphasis, code marks, tags and link targets, one kind of minus and of space."""
    cut = text[:_LIMIT].translate(_SPACES)
    return " ".join(_NOISE.sub(lambda found: found.group("text") or " ", cut).split())


def unit_of(text: str) -> tuple[Unit, float]:
    """Unit that a heading names, with its factor to ops/s or seconds; unknown where it names none.

    Bare ``s`` counts only in brackets or after a slash: ``Mean [s]``, not ``Reads``.
    """
    text = plain(text).lower()
    if re.search(_RATE_UNIT, text) or re.search(r"throughput|ops\b|operations per", text):
        scale = re.search(r"\b([kmg])ops\b", text)
        return "rate", _SUFFIXES[scale.group(1)] if scale else 1.0
    found = re.search(r"(?<![a-z])(ns|µs|μs|us|ms|secs?|seconds)(?![a-z])", text) or re.search(
        r"[\[(]\s*(s)\s*[\])]", text
    )
    if found:
        return "time", _TIME_SCALES[found.group(1)]
    return "unknown", 1.0


def read_cell(text: str, unit: Unit, scale: float) -> Cell | None:
    """Read one cell under a heading of that unit; a unit of its own in the cell comes first.

    None where it holds no positive number, or a percentage or factor instead of a measurement.
    """
    found = _CELL.fullmatch(plain(text))
    if found is None or (found.group("unit") or "") in {"%", "x"} or _words(found.group("rest")):
        return None
    own, factor = _own_unit(found.group("unit"), unit, scale)
    value = _scaled(found.group("value"), found.group("suffix"), factor)
    if value is None:
        return None
    spread = None
    if found.group("spread"):
        spread = _scaled(found.group("spread"), found.group("spread_suffix"), factor)
        if spread is not None and found.group("spread_pct"):
            spread = value * spread / factor / 100.0
    return Cell(
        value=value,
        unit=own,
        half_width=spread,
        change_pct=read_change(found.group("rest")),
        about=found.group("about") is not None,
    )


def _words(rest: str) -> bool:
    """Whether what follows the number makes it something else: ``3.98 MB``, ``20 runs``, ``2025-11-14``."""
    text = rest.strip()
    return bool(text) and not re.match(r"[\[(,;]|[-+]\s?[0-9.,]+\s?%|\W*$", text)


def _own_unit(written: str | None, unit: Unit, scale: float) -> tuple[Unit, float]:
    if not written:
        return unit, scale
    factor = _TIME_SCALES.get(written.lower())
    return ("rate", 1.0) if factor is None else ("time", factor)


def _scaled(text: str, suffix: str | None, factor: float) -> float | None:
    number = number_in(text)
    return None if number is None else usable(number * _SUFFIXES[(suffix or "").lower()] * factor)


def number_in(text: str) -> float | None:
    """Read a number with or without thousands separators: ``18,383``, ``18 383``, ``1.234,5``, ``17,5``."""
    digits, _, exponent = re.sub(r"[ _'\u2019]", "", text.lower()).partition("e")
    comma, dot = digits.rfind(","), digits.rfind(".")
    if comma >= 0 and dot >= 0:
        thousands, decimal = (",", ".") if dot > comma else (".", ",")
        digits = digits.replace(thousands, "").replace(decimal, ".")
    elif comma >= 0:
        grouped = re.fullmatch(r"[-+]?[0-9]{1,3}(?:,[0-9]{3})+", digits)
        digits = digits.replace(",", "" if grouped else ".")
    elif digits.count(".") > 1:
        digits = digits.replace(".", "")
    try:
        return float(f"{digits}e{exponent}" if exponent else digits)
    except (ValueError, OverflowError):
        return None


def read_change(text: str) -> float | None:
    """Read a change in percent: ``-57%``, ``(+3.5 %)``, ``57 % slower`` (as -57); None where none is."""
    found = _CHANGE.search(plain(text))
    if found is None:
        return None
    size = float(found.group("size").replace(",", "."))
    slower = (found.group("word") or "").lower() == "slower"
    return -size if found.group("sign") == "-" or slower else size
