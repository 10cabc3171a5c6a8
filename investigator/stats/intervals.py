"""Rounds to an estimate with an exact interval: Hodges-Lehmann and Walsh averages of the signed-rank test.

Effects are differences of logarithms, one a round; nothing is assumed about their distribution but symmetry.
Hollander, Wolfe, Chicken: Nonparametric Statistical Methods, 3rd ed., sections 3.1 to 3.3.
"""

import functools

import msgspec
import numpy as np

from investigator.stats.process import FloatArray

FAMILY_CONFIDENCE = 0.95
MIN_ROUNDS = 5
"""With four rounds the widest interval there is holds 87.5 %: too little for any verdict."""


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """An effect on the log scale; `low` and `high` are infinite where the rounds are too few."""

    estimate: float
    low: float
    high: float
    confidence: float
    """Exact coverage: at least what was asked for, or all that this number of rounds can give."""
    rounds: int

    @property
    def bounded(self) -> bool:
        """Whether there were enough rounds for an interval at all."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))


def confidence_per_look(looks: int) -> float:
    """Confidence of each look so that the whole keeps 95 %: 0.975 for two looks, 0.9833 for three."""
    return 1.0 - (1.0 - FAMILY_CONFIDENCE) / max(looks, 1)


def effects(candidate: FloatArray, baseline: FloatArray) -> FloatArray:
    """Effect of each round: mean log of the candidate's processes less that of the baseline's.

    Both hold process values of shape (rounds,) or (rounds, processes), NaN where a process is missing. A
    round counts when each side has at least one process there.
    """
    differences = _mean_log(candidate) - _mean_log(baseline)
    return np.asarray(differences[np.isfinite(differences)], dtype=np.float64)


def _mean_log(values: FloatArray) -> FloatArray:
    """One value a round, NaN where no process is there."""
    logs = np.log(columns(values))
    present = np.isfinite(logs)
    counts, sums = present.sum(axis=1), np.where(present, logs, 0.0).sum(axis=1)
    means: FloatArray = np.divide(sums, counts, out=np.full(len(logs), np.nan), where=counts > 0)
    return means


def columns(values: FloatArray) -> FloatArray:
    """Process values as (rounds, processes): one process a round may come without its second axis."""
    return values[:, np.newaxis] if values.ndim == 1 else values


def interval(effect: FloatArray, confidence: float) -> Interval:
    """Hodges-Lehmann estimate of `effect` with the shortest exact interval of at least `confidence`.

    Where even the widest one (all Walsh averages) holds less, that one is returned with what it holds: 0.9844
    at seven rounds. Below `MIN_ROUNDS` the interval is infinite; without any round the estimate is NaN.
    """
    rounds = len(effect)
    if rounds == 0:
        return Interval(estimate=np.nan, low=-np.inf, high=np.inf, confidence=1.0, rounds=0)
    averages = walsh_averages(effect)
    estimate = float(np.median(averages))
    if rounds < MIN_ROUNDS:
        return Interval(estimate=estimate, low=-np.inf, high=np.inf, confidence=1.0, rounds=rounds)
    dropped, achieved = critical_value(rounds, confidence)
    return Interval(
        estimate=estimate,
        low=float(averages[dropped]),
        high=float(averages[-1 - dropped]),
        confidence=achieved,
        rounds=rounds,
    )


def walsh_averages(effect: FloatArray) -> FloatArray:
    """Sorted averages of all pairs, each value with itself included: n (n + 1) / 2 of them."""
    first, second = _pairs(len(effect))
    return np.sort((effect[first] + effect[second]) / 2.0)


@functools.lru_cache(maxsize=256)
def critical_value(rounds: int, confidence: float) -> tuple[int, float]:
    """Walsh averages to drop at each end, and the exact coverage of what is left.

    The statistic is at most k with probability P(k) when nothing differs, and the interval without the k
    outermost averages at each end has coverage 1 - 2 P(k).
    """
    tail = np.cumsum(signed_rank_distribution(rounds))
    allowed = (1.0 - confidence) / 2.0
    # A coverage that equals the wanted one but for rounding counts as reached.
    fitting = int(np.searchsorted(tail, allowed * (1.0 + 1e-9), side="right"))
    dropped = max(fitting - 1, 0)
    return dropped, float(1.0 - 2.0 * tail[dropped])


@functools.lru_cache(maxsize=256)
def signed_rank_distribution(rounds: int) -> FloatArray:
    """Probability of each value 0 .. n (n + 1) / 2 of the signed-rank statistic when nothing differs.

    Each rank counts or does not with probability one half: one convolution a rank, exact to the last digit
    of a double because only halvings and sums of positive numbers occur.
    """
    probabilities = np.zeros(rounds * (rounds + 1) // 2 + 1)
    probabilities[0] = 1.0
    for rank in range(1, rounds + 1):
        shifted = np.zeros_like(probabilities)
        shifted[rank:] = probabilities[:-rank]
        probabilities = (probabilities + shifted) / 2.0
    probabilities.flags.writeable = False
    return probabilities


@functools.lru_cache(maxsize=256)
def _pairs(rounds: int) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.triu_indices(rounds)
    return first, second
