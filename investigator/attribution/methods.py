"""The two methods, from measurements to shares of the change."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pandas as pd

from investigator.attribution.layers import LAYERS, Method
from investigator.attribution.rule import (
    BROKEN_SHARE,
    OUTSIDE_CORE,
    UNDIVIDED,
    UNEXPLAINED,
    UNEXPLAINED_LIMIT,
)
from investigator.attribution.shares import Shares, shares
from investigator.attribution.subtraction import (
    FIDELITY,
    PARTS,
    Terms,
    infidelity,
    process_terms,
    terms,
    within,
)
from investigator.stats.process import FloatArray

PROFILE_DEVIATION = 0.10
"""A profile that slows the operation by more than this shows another program."""
SIDES = ("baseline", "candidate")


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """What is attributed: one operation in two environments, its rounds and its twins."""

    op: str
    family: str
    baseline: str
    candidate: str
    rounds: tuple[int, ...]
    twins: Mapping[str, str]
    """``native_core``, ``boundary`` and ``together`` to the operation that measures it."""
    without_twin: Mapping[str, str]
    """The same keys to the reason why there is none."""


class Profiled(msgspec.Struct, frozen=True, kw_only=True):
    """Profile of one operation in one environment and round."""

    environment: str
    round: int
    layers: Mapping[str, int]
    """Samples of the main thread by layer."""
    broken: int
    """Samples of the main thread whose stack could not be followed."""
    ns_per_call: float
    """Time per call while profiled, reduced like the unprofiled one."""


def pair_terms(pair: Pair, table: pd.DataFrame) -> tuple[Terms, Terms]:
    """Terms of baseline and candidate; `table` holds warm passes of the operation and its twins."""
    processes = process_terms(table)
    low, high = (
        terms(processes, environment, pair.op, pair.rounds, twins=pair.twins)
        for environment in (pair.baseline, pair.candidate)
    )
    return low, high


def subtract(pair: Pair, low: Terms, high: Terms, seed: int = 1) -> tuple[Method, Shares | None]:
    """Method 1."""
    if pair.family == "js":
        return _method(low, high, ("gc", "os"), "engine", seed)
    if "native_core" not in pair.twins:
        note = pair.without_twin.get("native_core", "this operation has no twin in C")
        return _method(low, high, ("gc", "os"), UNDIVIDED, seed, notes=(note,))
    if "boundary" not in pair.twins:
        note = pair.without_twin.get("boundary", "this operation has no twin of its boundary")
        return _outside_core(low, high, seed, note)
    low, high, chosen = _composition(low, high)
    faster, slower = sorted((low, high), key=lambda side: float(np.nanmedian(side["total"])))
    if (off := infidelity(faster)) > FIDELITY:
        reason = (
            f"core and boundary twins miss the operation by {off * 100:.0f} % in the faster version "
            "(10 % is the limit)"
        )
        return Method(name="subtraction", unavailable=reason), None
    method, found = _method(low, high, PARTS, UNEXPLAINED, seed, notes=chosen)
    left = 0.0 if found is None else abs(found.layers[UNEXPLAINED].share)
    if found is None or (left < UNEXPLAINED_LIMIT and infidelity(slower) <= FIDELITY):
        return method, found
    # The twins make up the faster version but not the slower one: what was added is in none of them.
    note = (
        f"the addon's own calls explain {found.layers['boundary'].share * 100:.0f} % of the change, "
        f"{left * 100:.0f} % lie in none of the twins: JavaScript around the calls, or memory that they do "
        "not touch"
    )
    return _outside_core(low, high, seed, note)


def _composition(low: Terms, high: Terms) -> tuple[Terms, Terms, tuple[str, ...]]:
    """Of the two ways to put the twins together the one that makes up both versions better.

    Beside each other, each in a loop of its own; or the core as it runs within the addon's calls. The first
    finds its caches warm (right for long calls, and for the shortest), the second does not.
    """
    low_within, high_within = within(low), within(high)
    if low_within is None or high_within is None:
        return low, high, ()
    beside_off = max(infidelity(low), infidelity(high))
    within_off = max(infidelity(low_within), infidelity(high_within))
    if not within_off < beside_off:
        return low, high, ()
    note = (
        "native core is SQLite's work inside of the addon's calls, where caches are colder than in a loop of "
        f"its own: so the twins make up both versions within {within_off * 100:.0f} % (else "
        f"{beside_off * 100:.0f} %)"
    )
    return low_within, high_within, (note,)


def _outside_core(low: Terms, high: Terms, seed: int, note: str) -> tuple[Method, Shares | None]:
    return _method(low, high, ("gc", "os", "native_core"), OUTSIDE_CORE, seed, notes=(note,))


def _method(
    low: Terms, high: Terms, names: Sequence[str], rest: str, seed: int, notes: tuple[str, ...] = ()
) -> tuple[Method, Shares | None]:
    found = shares(_chosen(low, names), _chosen(high, names), rest=rest, seed=seed)
    if found is None:
        return Method(name="subtraction", unavailable="fewer than four rounds have all parts"), None
    return (
        Method(name="subtraction", layers=dict(found.layers), largest=largest(found), notes=notes),
        found,
    )


def _chosen(side: Terms, names: Sequence[str]) -> dict[str, FloatArray]:
    return {name: side[name] for name in ("total", *names)}


def largest(found: Shares) -> str:
    """The part with the largest share of the change."""
    return max(found.layers, key=lambda name: found.layers[name].share)


# -- method 2 -----------------------------------------------------------------------------------------------


def profile(
    pair: Pair, low: Terms, high: Terms, readings: Sequence[Profiled], seed: int = 1
) -> tuple[Method, Shares | None]:
    """Method 2: shares of samples times the unprofiled time, by round."""
    if (reason := _unusable(pair, low, high, readings)) is not None:
        return Method(name="profile", unavailable=reason), None
    sides = [
        _profile_terms(side, [r for r in readings if r.environment == environment], pair.rounds)
        for side, environment in ((low, pair.baseline), (high, pair.candidate))
    ]
    found = shares(sides[0], sides[1], rest=None, seed=seed)
    if found is None:
        return Method(
            name="profile", unavailable="fewer than four rounds have a profile of both versions"
        ), None
    return Method(name="profile", layers=dict(found.layers), largest=largest(found)), found


def _unusable(pair: Pair, low: Terms, high: Terms, readings: Sequence[Profiled]) -> str | None:
    for side, environment in ((low, pair.baseline), (high, pair.candidate)):
        own = [r for r in readings if r.environment == environment]
        sampled = sum(sum(r.layers.values()) + r.broken for r in own)
        if sampled == 0:
            return f"no sample fell into {pair.op} on {environment}"
        broken = sum(r.broken for r in own) / sampled
        if broken > BROKEN_SHARE:
            return f"{broken * 100:.0f} % of the stacks on {environment} are broken (5 % is the limit)"
        slower = float(np.median([r.ns_per_call for r in own]) / np.nanmedian(side["total"])) - 1.0
        if abs(slower) > PROFILE_DEVIATION:
            return (
                f"under the profiler {pair.op} on {environment} takes {slower * 100:+.0f} % of its time "
                "(10 % is the limit)"
            )
    return None


def _profile_terms(side: Terms, readings: Sequence[Profiled], rounds: Sequence[int]) -> dict[str, FloatArray]:
    by_round = {r.round: r for r in readings}
    values: dict[str, FloatArray] = {"total": side["total"]}
    running = side["total"] - side["off"] - side["gc_off"]
    for layer in LAYERS:
        fractions = np.array([_fraction(by_round.get(number), layer) for number in rounds])
        values[layer] = fractions * running
    values["os"] = values["os"] + side["off"]
    values["gc"] = values["gc"] + side["gc_off"]
    return values


def _fraction(reading: Profiled | None, layer: str) -> float:
    sampled = sum(reading.layers.values()) if reading is not None else 0
    return float("nan") if reading is None or sampled == 0 else reading.layers.get(layer, 0) / sampled
