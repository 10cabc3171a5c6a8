"""Effects by round from the arms of a nested run: what closed shares are made of."""

import warnings

import numpy as np

from investigator.arms import Arms, arms_of
from investigator.stats.process import FloatArray


def wall_by_round(arms: Arms, op: str, environment: str) -> FloatArray:
    """Wall time per call of each round in ns; the geometric mean where it ran twice, NaN for missing."""
    found = [arm.wall for arm in arms_of(arms, op, "warm", environment)]
    if not found:
        return np.full(rounds_of(arms), np.nan)
    with warnings.catch_warnings():
        # A round without any process is NaN, which is what it should be.
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.exp(np.nanmean(np.log(np.stack(found)), axis=0)), dtype=np.float64)


def rounds_of(arms: Arms) -> int:
    """Rounds in the table."""
    return max((len(arm.wall) for arm in arms.values()), default=0)


def log_effects(candidate_ns: FloatArray, baseline_ns: FloatArray) -> FloatArray:
    """Effect of each round on the log scale, NaN for missing."""
    return np.asarray(np.log(candidate_ns) - np.log(baseline_ns), dtype=np.float64)
