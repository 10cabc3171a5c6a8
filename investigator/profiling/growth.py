"""Which functions grew: own time per operation of each, before and after, from shares of samples."""

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from investigator.attribution.layers import Layer
from investigator.profiling.classify import classify, kind_of
from investigator.profiling.stacks import Frame, Stack, Stacks
from investigator.stats.intervals import interval

CONFIDENCE = 0.95

Key = tuple[Frame, Layer]


class SymbolGrowth(msgspec.Struct, frozen=True, kw_only=True):
    """Own time of one function in one layer; what libc did for it counts to it."""

    symbol: str
    origin: str
    """Where it lies: ``node``, ``addon``, ``core``, ``js``, ``kernel``, ``libc``."""
    layer: Layer
    before_ns_per_op: float
    after_ns_per_op: float
    delta_ns_per_op: float
    """After less before."""
    ci_low: float | None
    """95 % interval of the difference over rounds; None where they are fewer than five."""
    ci_high: float | None


def symbol_growth(
    before: Sequence[Stacks],
    after: Sequence[Stacks],
    ns_per_call_before: float,
    ns_per_call_after: float,
    *,
    limit: int = 200,
) -> tuple[SymbolGrowth, ...]:
    """Functions by growth, the largest first, those that shrank last.

    Args:
        before: profiles of the baseline, one a round.
        after: profiles of the candidate, in the same rounds.
        ns_per_call_before: time of a call in the baseline, not profiled.
        ns_per_call_after: the same in the candidate.
        limit: functions to return; those that changed least are left out.

    Returns:
        Growths that add up to the whole change but for what `limit` cuts off. Nothing where one side has no
        samples.
    """
    olds, news = [own_samples(s) for s in before], [own_samples(s) for s in after]
    old_all, new_all = _shares(sum(olds, Counter())), _shares(sum(news, Counter()))
    if not old_all or not new_all:
        return ()
    deltas = {
        key: new_all.get(key, 0.0) * ns_per_call_after - old_all.get(key, 0.0) * ns_per_call_before
        for key in old_all.keys() | new_all.keys()
    }
    chosen = sorted(deltas, key=lambda key: (-abs(deltas[key]), key))[:limit]
    rounds = [(_shares(old), _shares(new)) for old, new in zip(olds, news, strict=False) if old and new]
    growths = []
    for frame, layer in chosen:
        key = (frame, layer)
        low, high = _interval(
            [
                new.get(key, 0.0) * ns_per_call_after - old.get(key, 0.0) * ns_per_call_before
                for old, new in rounds
            ]
        )
        growths.append(
            SymbolGrowth(
                symbol=frame.symbol,
                origin=frame.origin,
                layer=layer,
                before_ns_per_op=old_all.get(key, 0.0) * ns_per_call_before,
                after_ns_per_op=new_all.get(key, 0.0) * ns_per_call_after,
                delta_ns_per_op=deltas[key],
                ci_low=low,
                ci_high=high,
            )
        )
    return tuple(sorted(growths, key=lambda g: (-g.delta_ns_per_op, g.symbol)))


def own_samples(stacks: Stacks) -> Counter[Key]:
    """Samples of the main thread by the function that worked; broken stacks are left out."""
    own: Counter[Key] = Counter()
    for stack, count in stacks.items():
        layer = classify(stack) if stack.thread == "main" else None
        if layer is not None:
            own[worker_of(stack), layer] += count
    return own


def worker_of(stack: Stack) -> Frame:
    """The innermost frame that is not libc or a nameless stub."""
    return next((f for f in reversed(stack.frames) if kind_of(f) != "transparent"), stack.frames[-1])


def _shares(own: Counter[Key]) -> dict[Key, float]:
    total = sum(own.values())
    return {key: count / total for key, count in own.items()} if total else {}


def _interval(deltas: Sequence[float]) -> tuple[float | None, float | None]:
    found = interval(np.asarray(deltas, dtype=np.float64), CONFIDENCE)
    return (found.low, found.high) if found.bounded else (None, None)
