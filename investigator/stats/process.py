"""One process to one number: its passes reduced so that neither a burst nor the collector can mislead.

All functions work on many processes at once: `group` numbers the process of each pass from 0 to `groups` - 1.
A process without a usable pass, or with a value that is not above zero, is NaN.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LOWER_QUARTILE = 0.25


def process_values(
    group: IntArray, groups: int, *, wall_ns: FloatArray, gc_pause_ns: FloatArray, calls: FloatArray
) -> FloatArray:
    """Wall time per call of each process, in ns.

    Lower quartile over passes of (wall - main-thread GC pause) per call, plus the mean GC pause per call over
    all passes: a burst raises some passes and leaves the quartile alone, while a pause in one pass of six
    still counts with its sixth.
    """
    mutator = np.maximum(wall_ns - gc_pause_ns, 0.0)
    return _positive(
        lower_quartile(group, groups, _per_call(mutator, calls))
        + _mean_per_call(group, groups, gc_pause_ns, calls)
    )


def cpu_values(
    group: IntArray,
    groups: int,
    *,
    wall_ns: FloatArray,
    cpu_ns: FloatArray,
    gc_pause_ns: FloatArray,
    calls: FloatArray,
) -> FloatArray:
    """CPU time of all threads per call of each process, in ns.

    The plain mean over passes (`mean_cpu_values`) would be the obvious endpoint, but a burst that slows the
    processor itself (a neighbour on the cache or the sibling thread) raises CPU time as it raises wall time.
    On simulated bursts like the recorded ones the mean left 87 % of unchanged cells undecided after 16
    rounds, this estimator 8 % (``python -m investigator.stats.simulate``). So each pass is split:

    * what one thread can have used, min(CPU, wall) less the GC pause: lower quartile over passes;
    * what only other threads can have used, the CPU time above the wall time: mean over all passes, so that a
      collector or compiler thread that works in one pass of six is not hidden;
    * the main-thread GC pause: mean over all passes, as in `process_values`.

    CPU time of a helper thread that runs while the main thread waits is in the first part: there, and only
    there, a rare piece of it can escape the quartile.
    """
    one_thread = np.maximum(np.minimum(cpu_ns, wall_ns) - gc_pause_ns, 0.0)
    beyond_wall = np.maximum(cpu_ns - wall_ns, 0.0)
    return _positive(
        lower_quartile(group, groups, _per_call(one_thread, calls))
        + _mean_per_call(group, groups, beyond_wall, calls)
        + _mean_per_call(group, groups, np.minimum(gc_pause_ns, cpu_ns), calls)
    )


def fastest_values(
    group: IntArray, groups: int, *, wall_ns: FloatArray, gc_pause_ns: FloatArray, calls: FloatArray
) -> FloatArray:
    """Fastest pass of each process without its GC pause, in ns per call.

    The quietest figure of a process (bursts are seldom as long as all its passes) but blind for everything
    that does not happen in every pass: used to recognise process states, never for an effect.
    """
    values = _per_call(np.maximum(wall_ns - gc_pause_ns, 0.0), calls)
    fastest = np.full(groups, np.inf)
    usable = np.isfinite(values)
    np.minimum.at(fastest, group[usable], values[usable])
    return _positive(np.where(np.isfinite(fastest), fastest, np.nan))


def mean_cpu_values(group: IntArray, groups: int, *, cpu_ns: FloatArray, calls: FloatArray) -> FloatArray:
    """Mean CPU time per call of each process, in ns: what `cpu_values` is judged against."""
    return _positive(_mean_per_call(group, groups, cpu_ns, calls))


def mean_values(group: IntArray, groups: int, *, total_ns: FloatArray, calls: FloatArray) -> FloatArray:
    """Total over passes by total calls of each process, in ns; zero is a value here (GC pauses)."""
    return _mean_per_call(group, groups, total_ns, calls)


def _per_call(total: FloatArray, calls: FloatArray) -> FloatArray:
    result: FloatArray = np.full(len(total), np.nan)
    np.divide(total, calls, out=result, where=calls > 0)
    return result


def _mean_per_call(group: IntArray, groups: int, total: FloatArray, calls: FloatArray) -> FloatArray:
    sums = np.bincount(group, weights=total, minlength=groups)
    counts = np.bincount(group, weights=calls, minlength=groups)
    result: FloatArray = np.full(groups, np.nan)
    np.divide(sums, counts, out=result, where=counts > 0)
    return result


def lower_quartile(group: IntArray, groups: int, values: FloatArray) -> FloatArray:
    """`numpy.quantile` (linear, at `LOWER_QUARTILE`) of each group in one sort of all values."""
    usable = np.isfinite(values)
    group, values = group[usable], values[usable]
    ordered = values[np.lexsort((values, group))]
    sizes = np.bincount(group, minlength=groups)
    starts = np.cumsum(sizes) - sizes
    position = (sizes - 1) * LOWER_QUARTILE
    below = np.floor(position).astype(np.int64)
    above = np.minimum(below + 1, sizes - 1)
    result = np.full(groups, np.nan)
    filled = sizes > 0
    low = ordered[(starts + below)[filled]]
    high = ordered[(starts + above)[filled]]
    result[filled] = low + (position - below)[filled] * (high - low)
    return result


def _positive(values: FloatArray) -> FloatArray:
    return np.where(values > 0, values, np.nan)
