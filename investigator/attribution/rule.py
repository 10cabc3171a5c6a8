"""The rule under which a layer is named: two methods agree, one layer holds the change, little is left over.

Subtraction cannot divide all of what lies outside of SQLite's core: the twin of the boundary runs the addon's
own JavaScript too, and an operation may have no such twin (``outside_core``). The profile says which of the
two it is, boundary or engine; what the methods must agree on are the groups that both can tell apart.
"""

from collections.abc import Mapping

import msgspec

from investigator.attribution.layers import LAYERS, LayerShare, Method, Named
from investigator.attribution.shares import Shares, overlap

HALF = 0.5
UNEXPLAINED_LIMIT = 0.20
COLLECTOR_SHARE = 0.25
"""Part of a change in the collector's own work from which a flag of it can be the explanation."""
BROKEN_SHARE = 0.05
"""Stacks of a usable profile that may be broken."""

OUTSIDE_CORE = "outside_core"
OUTSIDE = ("boundary", "engine")
UNDIVIDED = "undivided"
"""Everything on the processor that is no collection, where no twin divides it."""
NOT_UNDIVIDED = ("gc", "os")
UNEXPLAINED = "unexplained"


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """The layer, and why."""

    layer: Named
    reason: str
    agree: bool


def rule(subtraction: Method, profile: Method, profile_shares: Shares | None) -> Ruling:
    """Name a layer, or say why none can be named.

    `profile_shares` are those behind `profile`, for joining layers that subtraction cannot divide.
    """
    missing = [m for m in (subtraction, profile) if m.unavailable is not None]
    if missing or profile_shares is None:
        why = missing[0].unavailable if missing else "the profile has too few rounds"
        return Ruling(layer="unknown", reason=f"only one method could be used: {why}", agree=False)
    if (left := subtraction.layers.get(UNEXPLAINED)) is not None and abs(left.share) >= UNEXPLAINED_LIMIT:
        return _unknown(
            f"{_pct(left.share)} of the change is in none of the measured parts (20 % is the limit)"
        )
    first, second = _largest(subtraction.layers), _largest(profile.layers)
    group = group_of(second, subtraction)
    if first != group:
        if _spread_out(subtraction.layers) and _spread_out(profile.layers):
            return _mixed(profile)
        return _unknown(f"subtraction points to {_said(first)}, the profile to {_said(second)}")
    one, other = subtraction.layers[first], _joined(profile_shares, subtraction, group)
    if not overlap(_widened(one, left), other):
        return _unknown(
            f"both point to {_said(second)}, but with shares that exclude each other "
            f"({_range(one)} by subtraction, {_range(other)} by the profile)"
        )
    return _judge_shares(subtraction, profile, first, second)


def _judge_shares(subtraction: Method, profile: Method, first: str, second: str) -> Ruling:
    """The methods agree on the largest; is it more than half, surely?"""
    if first == UNDIVIDED:
        return Ruling(
            layer="unknown",
            reason=f"the profile points to {_said(second)} ({_range(profile.layers[second])}), but this "
            "operation has no twins that could confirm it; try `investigate ablate`",
            agree=False,
        )
    one, other = subtraction.layers[first], profile.layers[second]
    if one.ci_low > HALF and other.ci_low > HALF:
        return Ruling(
            layer=second,  # type: ignore[arg-type]
            reason=f"both methods put it there: {_range(one)} of the change by subtraction"
            f"{_grouped(first, second)}, {_range(other)} by the profile",
            agree=True,
        )
    if max(one.share, other.share) <= HALF:
        return _mixed(profile)
    return Ruling(
        layer="unknown",
        reason=f"both methods point to {_said(second)}, but its share may be below one half "
        f"({_range(one)} by subtraction, {_range(other)} by the profile)",
        agree=True,
    )


def by_experiment(ruling: Ruling, subtraction: Method, profile: Method, experiment: Method | None) -> Ruling:
    """What an ablation or swap adds where the two methods name nothing: it closes at least half of the gap.

    It counts where it acts on the layer to which one of the methods gives the largest part, and for the
    collector where one gives it a quarter: what a collector does late or seldom costs time outside of its own
    work too (memory that has gone cold when it is used again), and a flag of the collector takes that away.
    """
    if ruling.layer not in {"unknown", "mixed"} or experiment is None or experiment.largest is None:
        return ruling
    layer = experiment.largest
    closed = experiment.layers[layer]
    seen = [method for method in (subtraction, profile) if _supports(method, layer)]
    if not seen or closed.ci_low < HALF:
        return ruling
    share = seen[0].layers[layer]
    return Ruling(
        layer=layer,  # type: ignore[arg-type]
        reason=f"{experiment.notes[0]}, which acts on it, closes {_range(closed)} of the gap, and "
        f"{_range(share)} of the change lie in the layer's own work by {seen[0].name}"
        + (", the rest in what follows from it" if share.share < HALF else ""),
        agree=True,
    )


def _supports(method: Method, layer: str) -> bool:
    if method.largest == layer:
        return True
    return layer == "gc" and layer in method.layers and method.layers[layer].ci_low >= COLLECTOR_SHARE


def group_of(layer: str, subtraction: Method) -> str:
    """The part of subtraction in which a layer lies."""
    if layer in subtraction.layers:
        return layer
    if layer == "engine" and "boundary" in subtraction.layers:
        return "boundary"  # the twin runs the JavaScript around the calls as well
    if OUTSIDE_CORE in subtraction.layers and layer in OUTSIDE:
        return OUTSIDE_CORE
    if UNDIVIDED in subtraction.layers and layer not in NOT_UNDIVIDED:
        return UNDIVIDED
    return layer


def _joined(profile: Shares, subtraction: Method, group: str) -> LayerShare:
    names = tuple(name for name in LAYERS if group_of(name, subtraction) == group and name in profile.layers)
    return profile.joined(names)


def _widened(share: LayerShare, left: LayerShare | None) -> LayerShare:
    """The interval with what is not of chance.

    The unexplained part may belong to it, and up to 5 % of the profile's stacks are broken.
    """
    low, high = (0.0, 0.0) if left is None else (min(left.ci_low, 0.0), max(left.ci_high, 0.0))
    return msgspec.structs.replace(
        share, ci_low=share.ci_low + low - BROKEN_SHARE, ci_high=share.ci_high + high + BROKEN_SHARE
    )


def _largest(layers: Mapping[str, LayerShare]) -> str:
    return max((name for name in layers if name != UNEXPLAINED), key=lambda name: layers[name].share)


def _spread_out(layers: Mapping[str, LayerShare]) -> bool:
    """Whether surely no layer holds more than half."""
    return all(layer.ci_high <= HALF for layer in layers.values())


def _mixed(profile: Method) -> Ruling:
    parts = sorted(profile.layers.items(), key=lambda item: -item[1].share)[:3]
    shown = ", ".join(f"{_said(name)} {_pct(layer.share)}" for name, layer in parts)
    return Ruling(layer="mixed", reason=f"no layer holds more than half of the change: {shown}", agree=True)


def _unknown(reason: str) -> Ruling:
    return Ruling(layer="unknown", reason=reason, agree=False)


def _said(name: str) -> str:
    return {
        "native_core": "native core",
        OUTSIDE_CORE: "what lies outside of SQLite",
        UNDIVIDED: "running code",
    }.get(name, name)


def _grouped(name: str, layer: str) -> str:
    return "" if name == layer else " (boundary and engine together)"


def _range(layer: LayerShare) -> str:
    return f"{_pct(layer.share)} [{layer.ci_low * 100:.0f}, {layer.ci_high * 100:.0f}]"


def _pct(share: float) -> str:
    return f"{share * 100:.0f} %"
