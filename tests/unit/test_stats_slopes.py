"""The fit over a grid of sizes: exact on a plane, honest where there is none."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from investigator.stats.slopes import Point, compare_slopes, fit, slopes

GRID = [(rows, columns) for rows in (1, 50, 200) for columns in (1, 4, 12)]


def grid(call: float, row: float, cell: float, noise: np.random.Generator | None = None) -> list[Point]:
    return [
        Point(
            terms=(rows, rows * columns),
            ns_per_call=(call + row * rows + cell * rows * columns)
            * (1.0 if noise is None else float(noise.lognormal(0.0, 0.01))),
        )
        for rows, columns in GRID
    ]


@given(
    call=st.floats(1.0, 1e4),
    row=st.floats(1.0, 1e4),
    cell=st.floats(1.0, 1e4),
)
def test_a_plane_is_found_exactly(call: float, row: float, cell: float) -> None:
    found = fit(grid(call, row, cell))
    assert found is not None
    assert found.values == pytest.approx((call, row, cell), rel=1e-5, abs=1e-4)
    assert found.worst_residual < 1e-8


@pytest.mark.parametrize(
    "points",
    [
        [],
        grid(100.0, 10.0, 1.0)[:2],
        [p for p in grid(100.0, 10.0, 1.0) if p.terms[0] == 50],
        [p for p in grid(100.0, 10.0, 1.0) if p.terms[1] == 4 * p.terms[0]],
        [*grid(100.0, 10.0, 1.0), Point(terms=(3, 9), ns_per_call=0.0)],
        [*grid(100.0, 10.0, 1.0), Point(terms=(3, 9), ns_per_call=math.nan)],
    ],
    ids=["none", "two", "one row count", "one column count", "no time", "not a number"],
)
def test_too_little_gives_no_fit(points: list[Point]) -> None:
    assert fit(points) is None
    assert slopes([points, points], 0.95) is None


def test_a_bend_shows_in_the_residual() -> None:
    bent = [
        Point(terms=p.terms, ns_per_call=p.ns_per_call * (2.0 if p.terms[0] == 200 else 1.0))
        for p in grid(100.0, 80.0, 20.0)
    ]
    found = fit(bent)
    assert found is not None
    assert found.worst_residual > 0.1


def test_only_the_coefficient_that_changed_differs() -> None:
    noise = np.random.default_rng(3)
    baseline = [grid(300.0, 150.0, 40.0, noise) for _ in range(12)]
    candidate = [grid(300.0, 150.0, 60.0, noise) for _ in range(12)]
    found = compare_slopes(baseline, candidate, 0.95)
    assert found is not None
    call, row, cell = found.coefficients
    assert cell.estimate == pytest.approx(20.0, rel=0.1)
    assert cell.low > 15.0
    assert row.low < 0.0 < row.high
    assert call.low < 0.0 < call.high
    assert cell.rounds == 12


def test_a_round_without_a_fit_is_left_out() -> None:
    whole = grid(300.0, 150.0, 40.0)
    found = compare_slopes([whole, whole[:2]], [whole, whole], 0.95)
    assert found is not None
    assert {each.rounds for each in found.coefficients} == {1}
    assert not found.coefficients[0].bounded


def test_rounds_must_be_the_same() -> None:
    with pytest.raises(ValueError, match="zip"):
        compare_slopes([grid(1.0, 1.0, 1.0)], [], 0.95)


def test_a_line_has_two_coefficients() -> None:
    found = fit([Point(terms=(size,), ns_per_call=30.0 + 0.5 * size) for size in (20, 200, 2000)])
    assert found is not None
    assert found.values == pytest.approx((30.0, 0.5))
