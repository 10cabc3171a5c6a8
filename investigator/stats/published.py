"""The rule of the published comparison (product.md, claim 2), shown beside ours for comparability."""

from typing import Literal

import numpy as np

from investigator.stats.process import FloatArray

PublishedVerdict = Literal["slower", "faster", "within noise"]


def spread_pct(values: FloatArray) -> float:
    """(max - min) / min over rounds, in percent: what one version shows against itself."""
    return float((np.max(values) / np.min(values) - 1.0) * 100.0)


def published_rule(baseline: FloatArray, candidate: FloatArray) -> PublishedVerdict:
    """Best round against best round; a gap below the larger of the two spreads is noise.

    The gap is that of the slower over the faster best round, so that the order of the two does not matter.
    """
    best_baseline, best_candidate = float(np.min(baseline)), float(np.min(candidate))
    gap_pct = (max(best_baseline, best_candidate) / min(best_baseline, best_candidate) - 1.0) * 100.0
    if gap_pct <= max(spread_pct(baseline), spread_pct(candidate)):
        return "within noise"
    return "slower" if best_candidate > best_baseline else "faster"
