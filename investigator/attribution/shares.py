"""Shares of a change with intervals: a joint bootstrap over rounds.

A round is the block: all terms of both environments are drawn together, so that what is common to them (a
slow round, the noise of the operation itself in numerator and denominator) stays together. Efron &
Tibshirani, An Introduction to the Bootstrap, 1993, chapters 6 and 13 (percentile interval).
"""

from collections.abc import Mapping

import msgspec
import numpy as np

from investigator.attribution.layers import LayerShare
from investigator.stats.process import FloatArray

RESAMPLES = 4000
TRIM = 0.2
"""Trimmed from either end of the rounds: one process in a long burst must not move a mean of eight rounds."""
MIN_ROUNDS = 4
CONFIDENCE = 0.95


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of one method; `samples` are the resampled ones, by layer."""

    delta_ns: float
    layers: Mapping[str, LayerShare]
    samples: Mapping[str, FloatArray]

    def joined(self, names: tuple[str, ...]) -> LayerShare:
        """Several layers taken as one."""
        parts = [self.layers[name] for name in names]
        low, high = _interval(sum_of([self.samples[name] for name in names]))
        return LayerShare(
            baseline_ns_per_op=sum(part.baseline_ns_per_op for part in parts),
            candidate_ns_per_op=sum(part.candidate_ns_per_op for part in parts),
            ns_per_op=sum(part.ns_per_op for part in parts),
            share=sum(part.share for part in parts),
            ci_low=low,
            ci_high=high,
        )


def shares(
    baseline: Mapping[str, FloatArray],
    candidate: Mapping[str, FloatArray],
    *,
    rest: str | None,
    seed: int = 1,
) -> Shares | None:
    """Divide the change of ``total`` among the other terms; None with fewer than four whole rounds.

    Args:
        baseline: ``total`` and the terms to show, each of shape (rounds,), in ns per call, NaN for missing.
        candidate: the same terms of the candidate.
        rest: name of a term that takes what the others leave; None where the terms are additive already.
        seed: of the resampling.
    """
    names = [name for name in baseline if name != "total"]
    low, high = (
        np.column_stack([side[name] for name in ("total", *names)]) for side in (baseline, candidate)
    )
    whole = np.isfinite(low).all(axis=1) & np.isfinite(high).all(axis=1)
    low, high = low[whole], high[whole]
    if len(low) < MIN_ROUNDS:
        return None
    rng = np.random.default_rng(seed)
    draws = rng.integers(0, len(low), size=(RESAMPLES, len(low)))
    estimate = _with_rest(_location((high - low)[np.newaxis]), names, rest)
    resampled = _with_rest(_location((high - low)[draws]), names, rest)
    names = [*names, rest] if rest is not None else names
    sides = [
        _with_rest(_location(side[np.newaxis]), names[: side.shape[1] - 1], rest)[0] for side in (low, high)
    ]
    total = estimate[0, 0]
    if total == 0.0:
        return None
    samples = {name: _ratio(resampled[:, 1 + k], resampled[:, 0]) for k, name in enumerate(names)}
    layers = {}
    for k, name in enumerate(names, start=1):
        ends = _interval(samples[name])
        layers[name] = LayerShare(
            baseline_ns_per_op=float(sides[0][k]),
            candidate_ns_per_op=float(sides[1][k]),
            ns_per_op=float(estimate[0, k]),
            share=float(estimate[0, k] / total),
            ci_low=ends[0],
            ci_high=ends[1],
        )
    return Shares(delta_ns=float(total), layers=layers, samples=samples)


def overlap(one: LayerShare, other: LayerShare) -> bool:
    """Whether two intervals of a share have a value in common."""
    return one.ci_low <= other.ci_high and other.ci_low <= one.ci_high


def sum_of(values: list[FloatArray]) -> FloatArray:
    """Elementwise sum."""
    return np.asarray(np.sum(values, axis=0), dtype=np.float64)


def _location(values: FloatArray) -> FloatArray:
    """Trimmed mean over axis 1: (draws, rounds, terms) to (draws, terms)."""
    from scipy import stats  # noqa: PLC0415 - it takes a second, which `--help` should not pay

    return np.asarray(stats.trim_mean(values, TRIM, axis=1), dtype=np.float64)


def _with_rest(values: FloatArray, names: list[str], rest: str | None) -> FloatArray:
    """Columns total, *names, and the rest where it has a name: additive by construction."""
    if rest is None:
        return values
    left = values[:, 0] - values[:, 1 : 1 + len(names)].sum(axis=1)
    return np.column_stack([values, left])


def _ratio(part: FloatArray, total: FloatArray) -> FloatArray:
    result: FloatArray = np.full(len(part), np.nan)
    np.divide(part, total, out=result, where=total != 0)
    return result


def _interval(values: FloatArray) -> tuple[float, float]:
    usable = values[np.isfinite(values)]
    if len(usable) == 0:
        return float("-inf"), float("inf")
    low, high = np.quantile(usable, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
