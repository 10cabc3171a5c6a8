"""What a call costs and what each unit adds: time = a + b x size, or one over rows and columns.

Each round gives one fit for each environment over a grid of sizes, so that coefficients come with the same
exact intervals over rounds as times do. A coefficient can be near zero, or below it: they are compared as
differences in nanoseconds, not as ratios.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from investigator.stats.intervals import Interval, interval
from investigator.stats.process import FloatArray


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One size of the grid, measured in one round."""

    terms: tuple[float, ...]
    """What the coefficients after the first are multiplied with: (size,), or (rows, rows x columns), ..."""
    ns_per_call: float


class Coefficients(msgspec.Struct, frozen=True, kw_only=True):
    """One fit."""

    values: tuple[float, ...]
    """Nanoseconds: of a call without any unit, then of a unit of each term."""
    residuals: tuple[float, ...]
    """Relative distance of the fit from each point: positive where the fit is above the time."""

    @property
    def worst_residual(self) -> float:
        """Largest distance of a point from the fit."""
        return max(abs(residual) for residual in self.residuals)


class Slopes(msgspec.Struct, frozen=True, kw_only=True):
    """The coefficients of one environment over rounds, in nanoseconds; also a difference of two."""

    coefficients: tuple[Interval, ...]
    worst_residual: float
    """Largest distance of a size from the fit, as a median over rounds, so that noise of single rounds is
    none: beyond some 10 % the sizes are not on a line or plane, and slopes say little."""


def fit(points: Sequence[Point]) -> Coefficients | None:
    """Least squares over relative residuals, so that the largest size of a grid does not rule the fit.

    Returns:
        None where the points do not determine the coefficients: fewer than these, sizes that do not differ,
        or a time that is not positive.
    """
    times = np.array([point.ns_per_call for point in points], dtype=np.float64)
    if not len(times) or not np.all(np.isfinite(times)) or np.any(times <= 0):
        return None
    design = np.array([[1.0, *point.terms] for point in points], dtype=np.float64)
    weighted = design / times[:, np.newaxis]
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    found, *_ = np.linalg.lstsq(weighted, np.ones(len(times)), rcond=None)
    return Coefficients(
        values=tuple(float(value) for value in found),
        residuals=tuple(float(value) for value in weighted @ found - 1.0),
    )


def slopes(rounds: Sequence[Sequence[Point]], confidence: float) -> Slopes | None:
    """Coefficients of one environment with intervals over its rounds; None where no round can be fitted."""
    fits = [found for points in rounds if (found := fit(points)) is not None]
    return _over_rounds(np.array([f.values for f in fits]), (fits,), confidence)


def compare_slopes(
    baseline: Sequence[Sequence[Point]], candidate: Sequence[Sequence[Point]], confidence: float
) -> Slopes | None:
    """Candidate less baseline in nanoseconds, round by round.

    Args:
        baseline: the grid of each round; the same rounds in the same order as `candidate`.
        candidate: likewise.
        confidence: of each interval.

    Returns:
        Differences with intervals over the rounds in which both can be fitted; None where there is none.
    """
    pairs = [
        (first, second)
        for one, other in zip(baseline, candidate, strict=True)
        if (first := fit(one)) is not None and (second := fit(other)) is not None
    ]
    differences = np.array([np.subtract(second.values, first.values) for first, second in pairs])
    sides = [[first for first, _ in pairs], [second for _, second in pairs]]
    return _over_rounds(differences, sides, confidence)


def _over_rounds(
    values: FloatArray, sides: Sequence[Sequence[Coefficients]], confidence: float
) -> Slopes | None:
    """`values` has a row a round and a column a coefficient; a side has fits of the same sizes."""
    if not all(sides):
        return None
    residuals = [np.median([fitted.residuals for fitted in fits], axis=0) for fits in sides]
    return Slopes(
        coefficients=tuple(interval(np.ascontiguousarray(column), confidence) for column in values.T),
        worst_residual=float(np.max(np.abs(residuals))),
    )
