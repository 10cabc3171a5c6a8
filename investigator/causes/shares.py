"""How much of a gap an experiment closes, with an exact interval (pure functions on rounds).

A round gives the plain effect ``e`` (log candidate - log baseline) and the effect ``f`` with something
changed: a V8 flag, the other code path. The closed share ``s`` is where ``f = (1 - s) e``. For every s the
differences ``f - (1 - s) e`` are one number a round, and the signed-rank interval of `stats.intervals` says
whether zero is plausible. The shares for which it is form the interval (Fieller's argument with Walsh
averages): where all gaps have one sign, its ends are order statistics of ``1 - (f_i + f_j) / (e_i + e_j)``
over all pairs of rounds. It is exact at any number of rounds, where a percentile bootstrap over six rounds
would hold far less than it promises; it has no ends where the gap's own interval contains zero.
"""

import msgspec
import numpy as np

from investigator.stats.intervals import MIN_ROUNDS, critical_value
from investigator.stats.process import FloatArray

CONFIDENCE = 0.95


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A closed share: 1 is all of the gap, 0 nothing, below 0 the gap grew, above 1 it turned round."""

    estimate: float
    low: float | None
    """None where the rounds are too few for an interval, or the gap itself is not clear of zero."""
    high: float | None
    confidence: float
    """Exact coverage; 1 where there is no interval."""
    rounds: int

    def at_least(self, share: float) -> bool:
        """Whether the whole interval lies at or above `share`."""
        return self.low is not None and self.low >= share

    @property
    def text(self) -> str:
        """``92 % [88, 97]``."""
        estimate = f"{self.estimate * 100:.0f} %"
        if self.low is None or self.high is None:
            return estimate
        return f"{estimate} [{self.low * 100:.0f}, {self.high * 100:.0f}]"


def closed_share(plain: FloatArray, changed: FloatArray, confidence: float = CONFIDENCE) -> Share | None:
    """Part of the plain effect that is gone with the change.

    Args:
        plain: effect of each round, log scale, NaN where missing.
        changed: effect of the same rounds with the change.
        confidence: of the interval; capped by the number of rounds.

    Returns:
        The share; None where no round has both effects or the plain effects add up to nothing.
    """
    usable = np.isfinite(plain) & np.isfinite(changed)
    e, f = plain[usable], changed[usable]
    rounds = len(e)
    if rounds == 0:
        return None
    first, second = np.triu_indices(rounds)
    gaps, left = e[first] + e[second], f[first] + f[second]
    direction = np.sign(np.median(gaps))
    if direction == 0:
        return None
    gaps, left = gaps * direction, left * direction
    clear = bool(np.all(gaps > 0))
    shares = np.sort(1.0 - left[gaps != 0] / gaps[gaps != 0])
    estimate = float(np.median(shares)) if clear else float(1.0 - np.median(left) / np.median(gaps))
    dropped, achieved = critical_value(rounds, confidence)
    if rounds < MIN_ROUNDS or int(np.sum(gaps <= 0)) > dropped:
        # Where the gap's own interval contains zero, any share is plausible.
        return Share(estimate=estimate, low=None, high=None, confidence=1.0, rounds=rounds)
    low, high = _plausible(gaps, left, shares, dropped)
    return Share(estimate=estimate, low=low, high=high, confidence=achieved, rounds=rounds)


def _plausible(gaps: FloatArray, left: FloatArray, shares: FloatArray, dropped: int) -> tuple[float, float]:
    """Smallest and largest share that the signed-rank test does not reject; gaps are mostly positive.

    A share is rejected when at most `dropped` of the averages ``left - (1 - s) gap`` lie on one side of zero.
    That changes only at `shares`, where an average is zero. With gaps of both signs the plausible shares need
    not be one interval; then this is the one around them.
    """
    rising, falling = (np.sort(1.0 - left[side] / gaps[side]) for side in (gaps > 0, gaps < 0))
    rising_below = np.searchsorted(rising, shares, side="right")
    rising_above = len(rising) - np.searchsorted(rising, shares, side="left")
    falling_below = np.searchsorted(falling, shares, side="right")
    falling_above = len(falling) - np.searchsorted(falling, shares, side="left")
    flat = left[gaps == 0]
    not_above = rising_above + falling_below + int(np.sum(flat <= 0))
    not_below = rising_below + falling_above + int(np.sum(flat >= 0))
    kept = shares[(not_above > dropped) & (not_below > dropped)]
    return float(kept[0]), float(kept[-1])
