"""One process to one number: its laps reduced so that neither a burst nor the collector can mislead.

All functions work on many processes at once: `group` numbers the process of each lap from 0 to `groups` - 1.
A lap is what lies between two readings of the clock: a pass, or a third of one. A process without a usable
lap, or with a value that is not above zero, is NaN.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def process_values(
    group: IntArray,
    groups: int,
    *,
    wall_ns: FloatArray,
    gc_pause_ns: FloatArray,
    calls: FloatArray,
    lap: IntArray | None = None,
) -> FloatArray:
    """Wall time per call of each process, in ns.

    The fastest pass without its main-thread GC pauses, put together lap by lap (`quickest`), per call, plus
    the mean GC pause per call over all laps. What a shared machine does to a lap only ever adds time, so the
    fastest are the closest to what the code costs (Chen and Revels, 2016, arXiv:1608.04295), while a pause in
    one lap of twelve still counts with its twelfth.

    What happens in some passes only, and is no collection, is not seen: `typical_values` is for that.
    """
    return _positive(
        fastest_values(group, groups, wall_ns=wall_ns, gc_pause_ns=gc_pause_ns, calls=calls, lap=lap)
        + _mean_per_call(group, groups, gc_pause_ns, calls)
    )


def typical_values(
    group: IntArray,
    groups: int,
    *,
    wall_ns: FloatArray,
    gc_pause_ns: FloatArray,
    calls: FloatArray,
    lap: IntArray | None = None,
) -> FloatArray:
    """Wall time per call of each process, in ns: as `process_values`, with the median of the `settled` laps.

    Noisier, but slow laps that are the version's own (code that is thrown away and compiled again, say)
    show here while the fastest know nothing of them: a witness against a verdict, never one for it.
    """
    later = settled(group, lap)
    values = _mutator(wall_ns, gc_pause_ns, calls)
    return _positive(
        _median(group[later], groups, values[later]) + _mean_per_call(group, groups, gc_pause_ns, calls)
    )


def cpu_values(
    group: IntArray,
    groups: int,
    *,
    wall_ns: FloatArray,
    cpu_ns: FloatArray,
    gc_pause_ns: FloatArray,
    calls: FloatArray,
    lap: IntArray | None = None,
) -> FloatArray:
    """CPU time of all threads per call of each process, in ns.

    The plain mean over laps (`mean_cpu_values`) would be the obvious endpoint, but a burst that slows the
    processor itself (a neighbour on the cache or the sibling thread) raises CPU time as it raises wall time.
    On simulated bursts like the recorded ones the mean left 87 % of unchanged cells undecided after 16
    rounds, this estimator 8 % (``python -m investigator.stats.simulate``). So each lap is split:

    * what one thread can have used, min(CPU, wall) less the GC pause: as in `fastest_values`;
    * what only other threads can have used, the CPU time above the wall time: mean over all `settled`
      laps, so that a collector or compiler thread that works in one lap of six is not hidden;
    * the main-thread GC pause: mean over all laps, as in `process_values`.

    CPU time of a helper thread that runs while the main thread waits is in the first part: there, and only
    there, a rare piece of it can escape the fastest laps.
    """
    one_thread = np.maximum(np.minimum(cpu_ns, wall_ns) - gc_pause_ns, 0.0)
    beyond_wall = np.maximum(cpu_ns - wall_ns, 0.0)
    later = settled(group, lap)
    values = _per_call(one_thread, calls)
    return _positive(
        mean_of(quickest(group, values, lap), group, groups, values)
        + _mean_per_call(group[later], groups, beyond_wall[later], calls[later])
        + _mean_per_call(group, groups, np.minimum(gc_pause_ns, cpu_ns), calls)
    )


def fastest_values(
    group: IntArray,
    groups: int,
    *,
    wall_ns: FloatArray,
    gc_pause_ns: FloatArray,
    calls: FloatArray,
    lap: IntArray | None = None,
) -> FloatArray:
    """Fastest pass of each process without its GC pauses, put together lap by lap, in ns per call.

    The quietest figure of a process, blind for the collector: used by itself to recognise process states.
    """
    values = _mutator(wall_ns, gc_pause_ns, calls)
    return _positive(mean_of(quickest(group, values, lap), group, groups, values))


def mean_cpu_values(group: IntArray, groups: int, *, cpu_ns: FloatArray, calls: FloatArray) -> FloatArray:
    """Mean CPU time per call of each process, in ns: what `cpu_values` is judged against."""
    return _positive(_mean_per_call(group, groups, cpu_ns, calls))


def mean_values(group: IntArray, groups: int, *, total_ns: FloatArray, calls: FloatArray) -> FloatArray:
    """Total over passes by total calls of each process, in ns; zero is a value here (GC pauses)."""
    return _mean_per_call(group, groups, total_ns, calls)


def quickest(group: IntArray, values: FloatArray, lap: IntArray | None) -> BoolArray:
    """Which laps make up the fastest pass: of each lap of a process the smallest of its `values`.

    `lap` numbers the laps of a pass from 0; None where passes have one. Of each by itself, because laps
    differ where the collector's rhythm is that of the passes (100 kB blobs on Node 24: 47, 69 and 17 us): the
    fastest of all would tell its best moment, these tell its whole course. Without the first of several, see
    `settled`. A/A on two busy cores, median of 20 operations, standard deviation of a round's effect: lower
    quartile of passes 5.0 %, fastest pass 3.6 %, fastest pass lap by lap 2.9 %.
    """
    laps = np.zeros(len(values), dtype=np.int64) if lap is None else lap
    usable = np.flatnonzero(np.isfinite(values) & settled(group, lap))
    cells = group[usable] * (int(laps.max(initial=0)) + 1) + laps[usable]
    ordered = usable[np.lexsort((values[usable], cells))]
    _, first = np.unique(np.sort(cells), return_index=True)
    chosen: BoolArray = np.zeros(len(values), dtype=np.bool_)
    chosen[ordered[first]] = True
    return chosen


def settled(group: IntArray, lap: IntArray | None) -> BoolArray:
    """All laps but the first of each pass; all where passes have one lap.

    In the first lap caches are those of another operation, and helper threads still clean up after the
    harness, which has just emptied the young generation: they use 2 to 9 % of its time, 0.1 % later. With
    another program on one of two cores they take the main thread's core, and on Node 24 more than on 22:
    bind_text_ascii_10k +124 % instead of +116 %, select_point +6.4 % instead of -1.1 %.
    """
    if lap is None:
        return np.ones(len(group), dtype=np.bool_)
    several = np.bincount(group, weights=lap) > 0
    return np.asarray((lap > 0) | ~several[group], dtype=np.bool_)


def mean_of(chosen: BoolArray, group: IntArray, groups: int, values: FloatArray) -> FloatArray:
    """Mean of the `chosen` values of each group, NaN where there are none."""
    ones = np.ones(int(chosen.sum()))
    return _mean_per_call(group[chosen], groups, values[chosen], ones)


def _mutator(wall_ns: FloatArray, gc_pause_ns: FloatArray, calls: FloatArray) -> FloatArray:
    return _per_call(np.maximum(wall_ns - gc_pause_ns, 0.0), calls)


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


def _median(group: IntArray, groups: int, values: FloatArray) -> FloatArray:
    """`numpy.median` of each group in one sort of all values."""
    usable = np.isfinite(values)
    group, values = group[usable], values[usable]
    ordered = values[np.lexsort((values, group))]
    sizes = np.bincount(group, minlength=groups)
    starts = np.cumsum(sizes) - sizes
    filled = sizes > 0
    result = np.full(groups, np.nan)
    low, high = ((starts + place)[filled] for place in ((sizes - 1) // 2, sizes // 2))
    result[filled] = (ordered[low] + ordered[high]) / 2.0
    return result


def _positive(values: FloatArray) -> FloatArray:
    return np.where(values > 0, values, np.nan)
