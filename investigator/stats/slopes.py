"""What a call, a row and a cell cost: time = a + b x rows + c x rows x columns, fitted over a grid of sizes.

Each round gives one fit for each environment, so that coefficients come with the same exact intervals over
rounds as times do. A coefficient can be near zero, or below it: they are compared as differences in
nanoseconds, not as ratios.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from investigator.stats.intervals import Interval, interval
from investigator.stats.process import FloatArray

COEFFICIENTS = ("call", "row", "cell")
MIN_POINTS = 3


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One size of the grid, measured in one round."""

    rows: int
    columns: int
    ns_per_call: float


class Coefficients(msgspec.Struct, frozen=True, kw_only=True):
    """One fit."""

    call_ns: float
    """What a call costs before its first row."""
    row_ns: float
    """What each row costs beside its cells."""
    cell_ns: float
    """What each cell of a row costs."""
    worst_residual: float
    """Largest relative distance of a point from the fit: how far the model holds."""

    @property
    def values(self) -> tuple[float, float, float]:
        """The three in the order of `COEFFICIENTS`."""
        return (self.call_ns, self.row_ns, self.cell_ns)


class Slopes(msgspec.Struct, frozen=True, kw_only=True):
    """The coefficients of one environment over rounds, in nanoseconds; also a difference of two."""

    call: Interval
    row: Interval
    cell: Interval
    worst_residual: float
    """The largest of all rounds: beyond some 10 % the grid is not on a plane, and slopes say little."""


def fit(points: Sequence[Point]) -> Coefficients | None:
    """Least squares over relative residuals, so that the largest size of a grid does not rule the fit.

    Returns:
        None where the points do not determine three coefficients: fewer than three, or all with the same rows
        or the same columns, or a time that is not positive.
    """
    times = np.array([point.ns_per_call for point in points], dtype=np.float64)
    if len(times) < MIN_POINTS or not np.all(np.isfinite(times)) or np.any(times <= 0):
        return None
    design = np.array([[1.0, point.rows, point.rows * point.columns] for point in points], dtype=np.float64)
    weighted = design / times[:, np.newaxis]
    if np.linalg.matrix_rank(design) < len(COEFFICIENTS):
        return None
    found, *_ = np.linalg.lstsq(weighted, np.ones(len(times)), rcond=None)
    call, row, cell = (float(value) for value in found)
    return Coefficients(
        call_ns=call,
        row_ns=row,
        cell_ns=cell,
        worst_residual=float(np.max(np.abs(weighted @ found - 1.0))),
    )


def slopes(rounds: Sequence[Sequence[Point]], confidence: float) -> Slopes | None:
    """Coefficients of one environment with intervals over its rounds; None where no round can be fitted."""
    fits = [found for points in rounds if (found := fit(points)) is not None]
    return _over_rounds(np.array([f.values for f in fits]), fits, confidence)


def compare_slopes(
    baseline: Sequence[Sequence[Point]], candidate: Sequence[Sequence[Point]], confidence: float
) -> Slopes | None:
    """Candidate less baseline in nanoseconds, round by round.

    Args:
        baseline: the grid of each round; the same rounds in the same order as `candidate`.
        candidate: likewise.
        confidence: of each of the three intervals.

    Returns:
        Differences with intervals over the rounds in which both can be fitted; None where there is none.
    """
    pairs = [
        (first, second)
        for one, other in zip(baseline, candidate, strict=True)
        if (first := fit(one)) is not None and (second := fit(other)) is not None
    ]
    differences = np.array([np.subtract(second.values, first.values) for first, second in pairs])
    return _over_rounds(differences, [each for pair in pairs for each in pair], confidence)


def _over_rounds(values: FloatArray, fits: Sequence[Coefficients], confidence: float) -> Slopes | None:
    """`values` has a row a round and a column a coefficient."""
    if not fits:
        return None
    call, row, cell = (interval(np.ascontiguousarray(column), confidence) for column in values.T)
    return Slopes(call=call, row=row, cell=cell, worst_residual=max(f.worst_residual for f in fits))
