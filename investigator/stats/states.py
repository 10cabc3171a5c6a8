"""Processes that fall into two states: a difference of layout or of luck, not of versions.

A loop can run in a fast and a slow state, say 10 % apart, chosen anew by every process. With few rounds the
draw can fall so that all candidates are slow and most baselines fast, and an interval over rounds then lies
beyond every margin. What gives such a draw away are *mixed* rounds: rounds in which candidate and baseline
processes lie one whole gap apart, or together, in a pattern that a plain shift between versions forbids.
"""

import itertools
import math

import msgspec
import numpy as np

from investigator.stats.intervals import columns
from investigator.stats.process import BoolArray, FloatArray

GAP_RANGE = (0.7, 2.5)
"""Gaps that could have produced a claimed effect, as multiples of it: a lucky draw can show half the gap."""
SEPARATION = 3.5
"""Gap over process noise below which two states cannot be told from one wide one."""
EVIDENCE = 10.0
"""Gain in squared distance, in units of the noise variance, from which a round counts as mixed: a likelihood
ratio of about 50."""
FIT = 12.0
"""Largest squared distance to a pattern, same units: an outlier of another size than the gap fits none."""
MIXED_SHARE = 0.1
"""Share of rounds that must be mixed: one of eight, two of sixteen."""
NOISE_FLOOR = 0.05
"""Smallest noise assumed, as a share of the gap."""


class States(msgspec.Struct, frozen=True, kw_only=True):
    """Two states seen in both versions."""

    gap: float
    """Distance of the states on the log scale."""
    mixed_rounds: int
    rounds: int
    luck: float
    """Chance that processes of both versions that choose their states alike fall as unevenly as they did."""


def two_states(candidate: FloatArray, baseline: FloatArray, effect: float) -> States | None:
    """The two states that could explain `effect`, where the rounds speak for them; else None.

    Both hold process values, shape (rounds,) or (rounds, processes), NaN for missing; `effect` is the
    claimed effect on the log scale. Two explanations are compared round by round: a shift (each candidate one
    gap from each baseline process of its round) and two states (each process in either). The second always
    fits better, having more freedom; a round counts as mixed only where it fits better by far.
    """
    candidates = columns(candidate).shape[1]
    values = _complete_rounds(columns(candidate), columns(baseline))
    rounds = len(values)
    if rounds < 2 or effect == 0.0 or not math.isfinite(effect):
        return None
    patterns = np.array(list(itertools.product((0.0, 1.0), repeat=values.shape[1])))
    centred = patterns - patterns.mean(axis=1, keepdims=True)
    of_candidate = np.arange(values.shape[1]) < candidates
    shift = int(np.flatnonzero((patterns == np.where(of_candidate, effect > 0, effect < 0)).all(axis=1))[0])
    gaps = _possible_gaps(values, abs(effect))
    if len(gaps) == 0:
        return None
    deviations = values - values.mean(axis=1, keepdims=True)
    # distances: gap x round x pattern
    distances = ((deviations[None, :, None, :] - gaps[:, None, None, None] * centred[None, None]) ** 2).sum(
        axis=3
    )
    best = int(np.argmin(np.sqrt(distances.min(axis=2)).sum(axis=1)))
    gap, distance = float(gaps[best]), distances[best]
    nearest = distance.min(axis=1)
    variance = max(_variance(nearest, values.shape[1] - 1), (NOISE_FLOOR * gap) ** 2)
    if gap < SEPARATION * math.sqrt(variance):
        return None
    mixed = (distance[:, shift] - nearest > EVIDENCE * variance) & (nearest < FIT * variance)
    count = int(mixed.sum())
    if count < math.ceil(MIXED_SHARE * rounds):
        return None
    chosen = patterns[distance.argmin(axis=1)] > 0
    luck = _luck(chosen if effect > 0 else ~chosen, of_candidate)
    return States(gap=gap, mixed_rounds=count, rounds=rounds, luck=luck)


def _luck(far: BoolArray, of_candidate: BoolArray) -> float:
    """Chance of so many candidate processes in the far state, were each round's states dealt out blindly.

    Exact: the convolution over rounds of hypergeometric distributions, as in the conditional test of Mantel
    and Haenszel. `far` has shape (rounds, processes); a round in one state throughout tells nothing.
    """
    candidates = int(of_candidate.sum())
    distribution = np.ones(1)
    for row in far:
        slow, fast = int(row.sum()), int((~row).sum())
        ways = [math.comb(slow, k) * math.comb(fast, candidates - k) for k in range(candidates + 1)]
        distribution = np.convolve(distribution, np.array(ways) / math.comb(len(row), candidates))
    return float(distribution[int(far[:, of_candidate].sum()) :].sum())


def _complete_rounds(candidate: FloatArray, baseline: FloatArray) -> FloatArray:
    """Logs of shape (rounds, processes of both); a missing process is stood in for by its twin."""
    sides = [np.log(candidate), np.log(baseline)]
    whole = np.all([np.isfinite(side).any(axis=1) for side in sides], axis=0)
    filled = []
    for side in sides:
        kept = side[whole]
        present = np.isfinite(kept)
        means = np.where(present, kept, 0.0).sum(axis=1) / np.maximum(present.sum(axis=1), 1)
        filled.append(np.where(present, kept, means[:, np.newaxis]))
    return np.asarray(np.hstack(filled), dtype=np.float64)


def _possible_gaps(values: FloatArray, effect: float) -> FloatArray:
    first, second = np.triu_indices(values.shape[1], k=1)
    gaps = np.unique(np.abs(values[:, first] - values[:, second]))
    low, high = GAP_RANGE
    return np.asarray(gaps[(gaps >= low * effect) & (gaps <= high * effect)], dtype=np.float64)


def _variance(squared_distances: FloatArray, freedom: int) -> float:
    """Noise variance from the median of squared distances, which follow a chi-square of `freedom` degrees."""
    medians = {1: 0.4549, 2: 1.3863}
    return float(np.median(squared_distances)) / medians.get(freedom, freedom - 2.0 / 3.0)
