"""Runs to slopes: a fit of each series in each environment and round, and its change between versions."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from investigator.arms import Arm, Arms, arms, arms_of
from investigator.operations import Sized, sized
from investigator.stats.intervals import Interval, columns, confidence_per_look
from investigator.stats.process import FloatArray
from investigator.stats.slopes import Point, Slopes, compare_slopes, slopes
from investigator.stored_run import StoredRun

WORST_RESIDUAL = 0.10
"""Beyond this distance of a size from the line or plane the model does not hold, and nothing is marked."""
_SPARE_SIZES = 1
"""Sizes beyond the number of coefficients: without one there is no residual, and any model fits."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One coefficient, candidate less baseline."""

    name: str
    """``call``; then ``column``, ``row`` and ``cell``, or ``character``, ``byte``, ``unit``."""
    baseline_ns: Interval
    candidate_ns: Interval
    difference_ns: Interval
    twin_ns: Interval | None
    """The same difference between the two processes of the baseline: what no difference looks like."""
    most_pct: Interval
    """What the difference alone adds to the baseline's time at that measured size where it adds most."""
    marked: bool
    """Whether that is a finding by the rule of the run (5 %, the interval beyond 4 %), that of the twin is
    none, and the model holds on both sides."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One series, one candidate against the baseline."""

    series: str
    baseline: str
    """Identifiers."""
    candidate: str
    sizes: tuple[str, ...]
    """As in the names of the operations."""
    changes: tuple[Change, ...]
    worst_residual: float
    """Largest relative distance of a size from the fits of both sides, as a median over rounds."""
    rounds: int

    @property
    def holds(self) -> bool:
        """Whether the times are on a line or plane at all."""
        return self.worst_residual <= WORST_RESIDUAL


class _Series(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    ops: tuple[str, ...]
    sizes: tuple[Sized, ...]

    @property
    def terms(self) -> tuple[tuple[float, ...], ...]:
        """What each size is multiplied with.

        Columns have a term of their own: their names are made once a call, whatever its rows. Without it the
        rows of one call are on no plane (`row_bulk` on Node 22 and 24: 24 % off at 1x12, 3 % with it).
        """
        return tuple(
            (float(s.size),)
            if s.columns is None
            else (float(s.columns), float(s.size), float(s.size * s.columns))
            for s in self.sizes
        )


def measured_series(run: StoredRun) -> tuple[Compared, ...]:
    """Every series with enough sizes, each candidate against the baseline."""
    table = arms(run.passes)
    baseline = run.summary.baseline
    candidates = [e.id for e in run.summary.environments if e.id != baseline]
    found = (
        _compared(run, table, series, candidate)
        for series in _series(dict.fromkeys(op for op, phase, *_ in table if phase == "warm"))
        for candidate in candidates
    )
    return tuple(each for each in found if each is not None)


def _series(ops: Iterable[str]) -> Iterator[_Series]:
    grouped: dict[tuple[str, bool], list[tuple[str, Sized]]] = {}
    for op in ops:
        size = sized(op)
        if size is not None:
            grouped.setdefault((size.series, size.columns is not None), []).append((op, size))
    for (name, grid), members in grouped.items():
        coefficients = 4 if grid else 2
        if len(members) >= coefficients + _SPARE_SIZES:
            members.sort(key=lambda member: (member[1].size, member[1].columns or 0))
            yield _Series(
                name=name, ops=tuple(op for op, _ in members), sizes=tuple(size for _, size in members)
            )


def _compared(run: StoredRun, table: Arms, series: _Series, candidate: str) -> Compared | None:
    confidence = confidence_per_look(len(run.spec.looks))
    low = [arms_of(table, op, "warm", run.summary.baseline) for op in series.ops]
    high = [arms_of(table, op, "warm", candidate) for op in series.ops]
    if not all(low) or not all(high):
        return None
    before, after = _grids(series, low), _grids(series, high)
    one, other = slopes(before, confidence), slopes(after, confidence)
    difference = compare_slopes(before, after, confidence)
    if one is None or other is None or difference is None:
        return None
    twin = None
    if all(len(found) == 2 for found in low):
        first, second = ([found[place : place + 1] for found in low] for place in (0, 1))
        twin = compare_slopes(_grids(series, first), _grids(series, second), confidence)
    worst = max(one.worst_residual, other.worst_residual)
    scales = _scales(series, before)
    return Compared(
        series=series.name,
        baseline=run.summary.baseline,
        candidate=candidate,
        sizes=tuple(op.removeprefix(f"{series.name}_") for op in series.ops),
        changes=tuple(
            _change(
                run, place, name, (one, other, difference, twin), scales[place], holds=worst <= WORST_RESIDUAL
            )
            for place, name in enumerate(_names(series))
        ),
        worst_residual=worst,
        rounds=difference.coefficients[0].rounds,
    )


_UNITS = {
    "rows": "row",
    "buffer": "byte",
    "blob": "byte",
    "text": "character",
    "utf8": "character",
    "string": "character",
}
"""What the size of a series counts, by a word of its name."""


def _names(series: _Series) -> tuple[str, ...]:
    """Of the coefficients; the size of a workload of one's own is just a unit."""
    if series.sizes[0].columns is not None:
        return ("call", "column", "row", "cell")
    return ("call", next((unit for word, unit in _UNITS.items() if word in series.name), "unit"))


def _grids(series: _Series, found: Sequence[Sequence[Arm]]) -> list[list[Point]]:
    """Points of each round; none of a round in which a size is missing, for fewer sizes make another fit."""
    times = np.column_stack([_one_value(np.column_stack([arm.wall for arm in each])) for each in found])
    return [
        [Point(terms=terms, ns_per_call=float(ns)) for terms, ns in zip(series.terms, row, strict=True)]
        if np.isfinite(row).all()
        else []
        for row in times
    ]


def _one_value(wall: FloatArray) -> FloatArray:
    """Geometric mean of the processes of each round, as for the verdicts; NaN where there is none."""
    logs = np.log(columns(wall))
    present = np.isfinite(logs)
    counts = present.sum(axis=1)
    sums = np.where(present, logs, 0.0).sum(axis=1)
    means = np.divide(sums, counts, out=np.full(len(logs), np.nan), where=counts > 0)
    return np.asarray(np.exp(means), dtype=np.float64)


def _scales(series: _Series, before: Sequence[Sequence[Point]]) -> list[float]:
    """Percent of the baseline's time that one nanosecond more of each coefficient is, at most."""
    times = np.median([[p.ns_per_call for p in points] for points in before if points], axis=0)
    design = np.array([[1.0, *terms] for terms in series.terms])
    return [float(value) for value in (design / times[:, np.newaxis]).max(axis=0) * 100.0]


def _change(
    run: StoredRun,
    place: int,
    name: str,
    found: tuple[Slopes, Slopes, Slopes, Slopes | None],
    scale: float,
    *,
    holds: bool,
) -> Change:
    one, other, difference = (each.coefficients[place] for each in found[:3])
    twin = None if found[3] is None else found[3].coefficients[place]
    most = _times(difference, scale)
    return Change(
        name=name,
        baseline_ns=one,
        candidate_ns=other,
        difference_ns=difference,
        twin_ns=twin,
        most_pct=most,
        marked=holds and _beyond(run, most) and not (twin is not None and _beyond(run, _times(twin, scale))),
    )


def _times(value: Interval, scale: float) -> Interval:
    return msgspec.structs.replace(
        value, estimate=value.estimate * scale, low=value.low * scale, high=value.high * scale
    )


def _beyond(run: StoredRun, most: Interval) -> bool:
    """The rule of a finding, on what a coefficient does to the time of a call."""
    if not most.bounded or most.low <= 0.0 <= most.high:
        return False
    nearer = min(abs(most.low), abs(most.high))
    return abs(most.estimate) >= run.spec.finding_pct and nearer > run.spec.layout_pct
