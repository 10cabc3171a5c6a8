"""Numbers as people read them. Pure; the only place where a value is scaled for the eye.

Stored values keep their base unit (ns, bytes, percent) and say it in their name. A value that is missing
or not finite is shown as ``-``, never as ``nan``.
"""

import math
import re

MISSING = "-"

_TIME_UNITS = (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9))
_SIZE = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)
_BYTE_UNITS = (("KiB", 2.0**10), ("MiB", 2.0**20), ("GiB", 2.0**30), ("TiB", 2.0**40))


def finite(value: float | None) -> float | None:
    """Return the value, or None where it is missing, infinite or not a number: JSON has no such numbers."""
    return value if value is not None and math.isfinite(value) else None


def format_time(elapsed_ns: float | None) -> str:
    """Write nanoseconds with three digits and the unit that fits: ``9.97 µs``, ``240 ns``, ``75.0 s``."""
    elapsed_ns = finite(elapsed_ns)
    if elapsed_ns is None:
        return MISSING
    for unit, scale in _TIME_UNITS[:-1]:
        # 999.7 ns is 1.00 µs, not 1000 ns: decide on the rounded number.
        if abs(elapsed_ns / scale) < 999.5:
            return f"{_three_digits(elapsed_ns / scale)} {unit}"
    return f"{_three_digits(elapsed_ns / 1e9)} s"


def format_rate(ops_per_s: float | None) -> str:
    """Write operations per second, at most nine characters: ``215,656``, ``12.3``, ``24.1 M``."""
    ops_per_s = finite(ops_per_s)
    if ops_per_s is None:
        return MISSING
    if abs(ops_per_s) >= 9_999_999.5:
        return f"{_three_digits(ops_per_s / 1e6)} M"
    if abs(ops_per_s) >= 99.95:
        return f"{ops_per_s:,.0f}"
    return _three_digits(ops_per_s)


def format_percent(value_pct: float | None, *, signed: bool = True) -> str:
    """Write percent: ``+2.1 %``, ``-54.0 %``, ``+115 %``; no sign where it is no change but a share."""
    value_pct = finite(value_pct)
    return MISSING if value_pct is None else f"{_percent_digits(value_pct, signed=signed)} %"


def format_interval(low_pct: float | None, high_pct: float | None) -> str:
    """Write both ends of an interval in percent: ``-0.4 to +0.8``, ``+110 to +120``."""
    low_pct, high_pct = finite(low_pct), finite(high_pct)
    if low_pct is None or high_pct is None:
        return MISSING
    return f"{_percent_digits(low_pct, signed=True)} to {_percent_digits(high_pct, signed=True)}"


def format_bytes(count: float | None) -> str:
    """Write bytes in binary units: ``512 B``, ``451 MiB``, ``1.50 GiB``."""
    count = finite(count)
    if count is None:
        return MISSING
    if abs(count) < 1024:
        return f"{count:.0f} B"
    for unit, scale in _BYTE_UNITS[:-1]:
        if abs(count / scale) < 1023.5:
            return f"{_three_digits(count / scale)} {unit}"
    unit, scale = _BYTE_UNITS[-1]
    return f"{_three_digits(count / scale)} {unit}"


def parse_bytes(text: str) -> int | None:
    """Read a size: ``10GB`` and ``10G`` in powers of 1000, ``10GiB`` of 1024; None where it is none."""
    found = _SIZE.fullmatch(text)
    if found is None or (found.group(3) and not found.group(2)):
        return None
    power = " KMGT".index(found.group(2).upper() or " ")
    return int(float(found.group(1)) * (1024 if found.group(3) else 1000) ** power)


def format_clock(elapsed_s: float | None) -> str:
    """Write a duration the way a stopwatch shows it: ``0:07``, ``12:34``, ``1:02:03``."""
    elapsed_s = finite(elapsed_s)
    if elapsed_s is None:
        return MISSING
    minutes, seconds = divmod(max(0, round(elapsed_s)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def format_minutes(minutes: float | None) -> str:
    """Write a duration for planning, rounded up rather than down: ``less than a minute``, ``3 min``."""
    minutes = finite(minutes)
    if minutes is None:
        return MISSING
    if minutes < 0.75:
        return "less than a minute"
    return f"{math.ceil(minutes - 0.25):,} min"


def _three_digits(value: float) -> str:
    """Three significant digits without an exponent, thousands separated."""
    size = abs(value)
    if size == 0:
        return "0"
    if size < 0.9995:
        # Small values keep three digits too: 0.0123, not 0.01.
        return f"{value:.{min(9, 2 - math.floor(math.log10(size)))}f}"
    decimals = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{value:,.{decimals}f}"


def _percent_digits(value_pct: float, *, signed: bool) -> str:
    decimals = 1 if abs(value_pct) < 99.95 else 0
    rounded = round(value_pct, decimals)
    if rounded == 0:
        return "0.0"
    return f"{rounded:{'+' if signed else ''},.{decimals}f}"
