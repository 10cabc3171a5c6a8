"""Method 1: what each layer costs by itself, and what is left of the operation.

Terms of one process, ns per call, additive by construction (``off``, the part of ``os`` off the processor,
stands beside them for the profile, which sees only what runs):

* ``total``: fastest pass without its GC pauses, lap by lap, plus the mean GC pause, as in the verdicts;
* ``gc``: mean main-thread pause, with its work in the kernel and its waiting for other threads (``gc_off``);
* ``os``, outside of collections: system time of the main thread, plus the time off the processor (of the
  same laps: being preempted by strangers is no property of a version);
* ``native_core``: user time of the C loop (twin ``core.<op>``);
* ``boundary``: user time of the twin ``boundary.<op>``, which makes the addon's sequence of API calls;
* ``core_within`` (beside them): user time of the twin ``together.<op>``, which makes one call of the C loop
  inside of each call of the boundary's, less the boundary's: the core with the caches that it finds there;
* ``unexplained``: the rest.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pandas as pd

from investigator.stats.process import FloatArray, IntArray, mean_of, mean_values, quickest

PARTS = ("gc", "os", "native_core", "boundary")
TOGETHER = "together"
FIDELITY = 0.10
"""Twins count only where they make up the operation within 10 %."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Terms of one environment: one value a round, mean of its processes there."""

    values: Mapping[str, FloatArray]
    """By term; each of shape (rounds,), NaN for missing."""

    def __getitem__(self, term: str) -> FloatArray:
        return self.values[term]


def process_terms(table: pd.DataFrame) -> pd.DataFrame:
    """Total, gc, off-CPU, system and user time of each process, in ns per call.

    `table` has columns of `samples.Sample`, warm passes only. The user share of the CPU time is taken from
    all passes of an operation in an environment together: the kernel divides user from system time by its
    clock tick, which is far too coarse for one pass.
    """
    keys = ["environment", "op", "round", "twin"]
    group: IntArray = np.asarray(table.groupby(keys, sort=False, observed=True).ngroup(), dtype=np.int64)
    _, first = np.unique(group, return_index=True)
    result = table.iloc[first][keys].reset_index(drop=True)
    count = len(result)
    calls, wall, gc = (table[name].to_numpy(np.float64) for name in ("calls", "wall_ns", "gc_pause_ns"))
    user, system = _main_cpu(table)
    cpu = user + system
    per_call = np.maximum(wall - gc, 0.0) / calls
    fastest = quickest(group, per_call, table["lap"].to_numpy(np.int64))
    mutator = mean_of(fastest, group, count, per_call)
    collecting = _gc_cpu(table, gc, cpu)
    off = mean_of(fastest, group, count, np.maximum((wall - gc) - (cpu - collecting), 0.0) / calls)
    result["gc"] = mean_values(group, count, total_ns=gc, calls=calls)
    result["gc_off"] = mean_values(group, count, total_ns=np.maximum(gc - collecting, 0.0), calls=calls)
    result["total"] = mutator + result["gc"]
    cell = table.groupby(["environment", "op"], sort=False, observed=True).ngroup().to_numpy()
    system_share = np.bincount(cell, weights=system) / np.maximum(np.bincount(cell, weights=cpu), 1.0)
    on_cpu = np.maximum(mutator - off, 0.0)
    in_kernel = on_cpu * system_share[cell[first]]
    result["off"] = off
    result["os"] = off + in_kernel
    result["user"] = on_cpu - in_kernel
    return result


def _main_cpu(table: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
    """User and system time of the main thread; of the whole process, at most the wall time, where unknown."""
    user, system = (table[f"cpu_{kind}_ns"].to_numpy(np.float64) for kind in ("user", "system"))
    both = user + system
    scale = np.minimum(1.0, table["wall_ns"].to_numpy(np.float64) / np.maximum(both, 1.0))
    user, system = user * scale, system * scale
    if "main_user_ns" in table:
        main_user, main_system = (
            table[f"main_{kind}_ns"].to_numpy(np.float64) for kind in ("user", "system")
        )
        known = np.isfinite(main_user) & (main_user >= 0) & (main_user + main_system > 0)
        user, system = np.where(known, main_user, user), np.where(known, main_system, system)
    return user, system


def _gc_cpu(table: pd.DataFrame, gc: FloatArray, cpu: FloatArray) -> FloatArray:
    """CPU time of the main thread inside collections; all of the pause where no probe has read it."""
    guess = np.minimum(gc, cpu)
    if "main_gc_cpu_ns" not in table:
        return guess
    known = table["main_gc_cpu_ns"].to_numpy(np.float64)
    return np.where(known >= 0, np.minimum(known, guess), guess)


def terms(
    processes: pd.DataFrame, environment: str, op: str, rounds: Sequence[int], *, twins: Mapping[str, str]
) -> Terms:
    """Terms of one environment; `twins` maps ``native_core`` and ``boundary`` to their operations.

    A term without a twin is NaN, and so is ``unexplained`` then.
    """
    own = processes[processes["environment"] == environment]
    values = {
        "total": _by_round(own, op, "total", rounds),
        "gc": _by_round(own, op, "gc", rounds),
        "os": _by_round(own, op, "os", rounds),
        "off": _by_round(own, op, "off", rounds),
        "gc_off": _by_round(own, op, "gc_off", rounds),
    }
    nothing: FloatArray = np.full(len(rounds), np.nan)
    for term in ("native_core", "boundary"):
        values[term] = _by_round(own, twins[term], "user", rounds) if term in twins else nothing
    if TOGETHER in twins:
        values["core_within"] = _by_round(own, twins[TOGETHER], "user", rounds) - values["boundary"]
    return Terms(values=_with_unexplained(values))


def _with_unexplained(values: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    return {**values, "unexplained": values["total"] - sum(values[term] for term in PARTS)}


def within(of: Terms) -> Terms | None:
    """The terms with the native core as it is between the addon's work and Node's; None where unmeasured."""
    core = of.values.get("core_within")
    if core is None or not np.isfinite(core).any():
        return None
    return Terms(values=_with_unexplained({**of.values, "native_core": core}))


def _by_round(processes: pd.DataFrame, op: str, column: str, rounds: Sequence[int]) -> FloatArray:
    means = processes[processes["op"] == op].groupby("round")[column].mean()
    return np.asarray(means.reindex(list(rounds)).to_numpy(np.float64), dtype=np.float64)


def infidelity(of: Terms) -> float:
    """Share of the operation that core, boundary, gc and os together do not make up, or exceed it by."""
    total = np.nanmedian(of["total"])
    rest = np.nanmedian(of["unexplained"])
    return float(abs(rest) / total) if total > 0 else float("inf")
