import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from investigator import units


@pytest.mark.parametrize(
    ("elapsed_ns", "text"),
    [
        (0, "0 ns"),
        (0.0123, "0.0123 ns"),
        (8.912, "8.91 ns"),
        (240.2, "240 ns"),
        (999.4, "999 ns"),
        (999.7, "1.00 µs"),
        (4_646, "4.65 µs"),
        (9_996, "10.0 µs"),
        (999_600, "1.00 ms"),
        (15.64e6, "15.6 ms"),
        (7.5e10, "75.0 s"),
        (5e12, "5,000 s"),
        (None, "-"),
        (math.nan, "-"),
        (math.inf, "-"),
    ],
)
def test_time(elapsed_ns: float | None, text: str) -> None:
    assert units.format_time(elapsed_ns) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0.01234, "0.0123"),
        (12.34, "12.3"),
        (99.96, "100"),
        (215_656.2, "215,656"),
        (9_999_999.4, "9,999,999"),
        (9_999_999.6, "10.0 M"),
        (1.1e9, "1,100 M"),
        (math.nan, "-"),
    ],
)
def test_rate(rate: float, text: str) -> None:
    assert units.format_rate(rate) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0 %"),
        (-0.04, "0.0 %"),
        (2.14, "+2.1 %"),
        (-54.25, "-54.2 %"),
        (99.96, "+100 %"),
        (1234.5, "+1,234 %"),
        (None, "-"),
    ],
)
def test_percent(value: float | None, text: str) -> None:
    assert units.format_percent(value) == text


def test_interval_needs_both_ends() -> None:
    assert units.format_interval(-0.42, 110.2) == "-0.4 to +110"
    assert units.format_interval(math.nan, 1.0) == "-"
    assert units.format_interval(1.0, None) == "-"


def test_bytes_and_durations() -> None:
    assert units.format_bytes(1023) == "1023 B"
    assert units.format_bytes(1024) == "1.00 KiB"
    assert units.format_bytes(451 * 2**20) == "451 MiB"
    assert units.format_bytes(5000 * 2**40) == "5,000 TiB"
    assert units.format_clock(59.6) == "1:00"
    assert units.format_clock(3723) == "1:02:03"
    assert units.format_clock(-1) == "0:00"
    assert units.format_minutes(0.5) == "less than a minute"
    assert units.format_minutes(2.3) == "3 min"
    assert units.format_minutes(None) == "-"


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_nothing_that_is_not_a_number_is_shown(value: float) -> None:
    texts = [units.format_time(value), units.format_rate(value), units.format_percent(value)]
    assert not any(word in text for text in texts for word in ("nan", "inf"))
    if not math.isfinite(value):
        assert texts == ["-", "-", "-"]


@given(st.floats(min_value=1e-3, max_value=1e12))
def test_time_is_right_within_half_a_digit(value: float) -> None:
    number, unit = units.format_time(value).split(" ")
    shown = float(number.replace(",", "")) * {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert shown == pytest.approx(value, rel=0.0051)
