"""Which of many releases changed a time: bisection that copes with noise. Pure: the caller measures.

Releases are numbered along their history, 0 the old end and n - 1 the new one; the two differ. One *step*
measures both ends and a candidate, interleaved in rounds, and looks at the rounds at fixed numbers of them.
On the log scale the candidate lies at a position between the ends (0 at the old, 1 at the new one). Weighted
sums of the three logs of a round are symmetric about their true value as pairs are, so the exact interval
over rounds (`intervals`) decides:

* ``old``: the interval of the position lies wholly below 3/8;
* ``new``: wholly above 5/8;
* ``between``: neither, but wholly between 1/4 and 3/4, and beyond what code placement alone does from both
  ends: there are (at least) two steps, one on each side of it, and each is looked for by itself;
* ``undecided``: anything else; more rounds up to the last look, then another release is asked. Never a guess.

A posterior over the place of the step (uniform before) chooses where to look: the release that halves it.
Each release weighs with its likelihood ratio, in which the placement of code counts as noise that more rounds
do not remove. At the end the last old and the first new release are measured again in rounds of their own,
twice as many.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import Final, Literal

import msgspec
import numpy as np

from investigator.stats.intervals import Interval, confidence_per_look, interval
from investigator.stats.process import FloatArray

Side = Literal["old", "new", "between", "undecided"]
Purpose = Literal["search", "verify"]

SEARCH_LOOKS: Final = (8, 16, 32)
"""Rounds at which a step is looked at; three looks share 5 %. Among eight one outlier has half its weight."""
VERIFY_LOOKS: Final = (16, 32)
OLD_BELOW: Final = 0.375
NEW_ABOVE: Final = 0.625
BETWEEN: Final = (0.25, 0.75)
MARGIN: Final = -math.log1p(-0.02)
"""What the ends, and at last the two neighbours, must differ by at least: the rule's 2 %."""
LAYOUT: Final = math.log1p(0.04)
"""What the placement of code does at most between two builds of the same code."""
LAYOUT_SD: Final = 0.018
"""The same as a standard deviation: 1.5 % a release, and a half of the two ends' as well."""
MOST_EVIDENCE: Final = math.log(999.0)
"""No release speaks for or against by more, however long it was measured."""
ENOUGH: Final = 0.95
"""Posterior of the one place that is named."""
CREDIBLE: Final = 0.99
OTHER_STEP: Final = 0.25
"""A further step counts from this part of the gap between the ends on, but not below `OTHER_LEAST`."""
OTHER_LEAST: Final = math.log1p(0.06)
MOST_CHANGES: Final = 4
VERIFICATIONS: Final = 3
UNDECIDED_AGAIN: Final = 2
"""Undecided releases that are measured once more, in the rounds of the verification."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be measured: a step of so many rounds, those of its earlier looks included."""

    step: int
    """From 1."""
    purpose: Purpose
    ends: tuple[int, int]
    targets: tuple[int, ...]
    rounds: int
    most_rounds: int
    """Rounds of the last look of this step."""


Levels = Mapping[int, FloatArray]
"""Log of the time per operation by release, one value a round, NaN for missing. A target that cannot be
measured is not in it."""
Measure = Callable[[Look], Levels]


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One release between two ends, on the log scale."""

    side: Side
    position: float
    """0 at the old end, 1 at the new one."""
    change: Interval
    """Against the old end."""
    centre: float
    """Distance to the middle of the ends, positive towards the new one."""
    error: float
    """Standard error of `centre`."""
    gap: float
    """Distance of the ends, not negative."""

    @property
    def evidence(self) -> float:
        """Log likelihood ratio of lying at the new end over the old one."""
        if not math.isfinite(self.centre):
            return 0.0
        ratio = self.centre * self.gap / (self.error**2 + LAYOUT_SD**2)
        return max(-MOST_EVIDENCE, min(MOST_EVIDENCE, ratio))


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step that was measured."""

    number: int
    purpose: Purpose
    ends: tuple[int, int]
    rounds: int
    readings: dict[int, Reading]
    """Of these rounds alone; empty where the ends themselves were compared."""
    gap: Interval
    """New end against the old one."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Where the level changes: between `last` and `first`."""

    last: int
    """Last release at the old level, as far as it is known."""
    first: int
    """First one at the new level; named when it follows `last` and all the rest holds."""
    named: bool
    reason: str
    """Why it is not named; empty where it is."""
    effect: Interval | None
    """`first` against `last`, from the rounds of the verification; None where those were not measured."""
    probability: float
    """Posterior of exactly this place."""
    ends: tuple[int, int]
    """Between which it was looked for."""


class Bisection(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    steps: tuple[Step, ...]
    levels: dict[int, Interval]
    """Every release that was measured, against the old end."""
    skipped: tuple[int, ...]
    gap: Interval
    """New end against the old one, from all rounds."""
    changes: tuple[Change, ...]
    """The largest in the direction of the ends first; empty where those do not differ."""


class _Rows(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds in which a release was measured beside two ends."""

    old: FloatArray
    new: FloatArray
    target: FloatArray

    def joined(self, other: "_Rows") -> "_Rows":
        return _Rows(
            old=np.concatenate([self.old, other.old]),
            new=np.concatenate([self.new, other.new]),
            target=np.concatenate([self.target, other.target]),
        )


def read(old: FloatArray, new: FloatArray, target: FloatArray, confidence: float) -> Reading:
    """Where a release lies between two ends; arrays of logs, one value a round, NaN for missing.

    `confidence` is that of one look, for each of the intervals.
    """
    whole = np.isfinite(old) & np.isfinite(new) & np.isfinite(target)
    old, new, target = old[whole], new[whole], target[whole]
    gap = interval(new - old, confidence)
    sign = -1.0 if gap.estimate < 0 else 1.0

    def beyond(position: float) -> Interval:
        """How far the release lies beyond a position; towards the new end is positive."""
        return interval(sign * (target - (1.0 - position) * old - position * new), confidence)

    centre, change = beyond(0.5), interval(target - old, confidence)
    size = abs(gap.estimate)
    return Reading(
        side=_side(
            beyond, interval(sign * (target - old), confidence), interval(sign * (new - target), confidence)
        ),
        position=0.5 + centre.estimate / size if size > 0 else math.nan,
        change=change,
        centre=centre.estimate,
        error=_error(centre),
        gap=size,
    )


def _side(beyond: Callable[[float], Interval], from_old: Interval, to_new: Interval) -> Side:
    if not from_old.bounded:
        return "undecided"
    if beyond(OLD_BELOW).high < 0.0:
        return "old"
    if beyond(NEW_ABOVE).low > 0.0:
        return "new"
    inside = beyond(BETWEEN[0]).low > 0.0 and beyond(BETWEEN[1]).high < 0.0
    return "between" if inside and min(from_old.low, to_new.low) > LAYOUT else "undecided"


def _error(value: Interval) -> float:
    """Standard error that belongs to an exact interval; infinite where there is none."""
    if not value.bounded:
        return math.inf
    return (value.high - value.low) / 2.0 / NormalDist().inv_cdf(0.5 + value.confidence / 2.0)


def posterior(evidence: Mapping[int, float], first: int, last: int) -> FloatArray:
    """Probability that the first new release is k, for k = `first` + 1 .. `last`; uniform before.

    `evidence` has the log likelihood ratio (new over old) of measured releases between `first` and `last`.
    """
    places = np.arange(first + 1, last + 1)
    logs = np.zeros(len(places))
    for index, ratio in evidence.items():
        # A step at k makes all releases from k on new.
        logs += np.where(places <= index, ratio / 2.0, -ratio / 2.0)
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


class _Hunt:
    """The search for one change between two ends."""

    def __init__(self, old: int, new: int, direction: int) -> None:
        self.old, self.new, self.direction = old, new, direction
        self.rows: dict[int, _Rows] = {}
        self.sides: dict[int, Side] = {}
        self.gaps: list[FloatArray] = []
        self.apart: bool | None = None
        """Whether the ends differ; None before the first step."""
        self.verified: set[int] = set()
        self.effect: tuple[int, int, Interval] | None = None

    def bracket(self) -> tuple[int, int]:
        """Last release that is decided old before the first that is decided new."""
        news = [i for i, side in self.sides.items() if side == "new"]
        first = min([*news, self.new])
        return max([self.old, *(i for i, side in self.sides.items() if side == "old" and i < first)]), first

    @property
    def split(self) -> int | None:
        """A release at a level of its own between the ends; None where there is none."""
        return next((i for i, side in self.sides.items() if side == "between"), None)

    def readings(self) -> dict[int, Reading]:
        """Every release with all its rounds."""
        confidence = confidence_per_look(len(SEARCH_LOOKS))
        return {i: read(r.old, r.new, r.target, confidence) for i, r in self.rows.items()}

    def gap(self) -> Interval:
        """New end against the old one, from all rounds."""
        return interval(_finite(np.concatenate(self.gaps)), confidence_per_look(len(SEARCH_LOOKS)))


def _finite(values: FloatArray) -> FloatArray:
    return values[np.isfinite(values)]


class _Bisector:
    def __init__(
        self,
        count: int,
        measure: Measure,
        most_steps: int,
        tell: Callable[[Step, tuple[int, int], int], None],
    ) -> None:
        self.count, self.measure, self.most_steps, self.tell = count, measure, most_steps, tell
        self.skipped: set[int] = set()
        self.in_a_row = 0
        self.steps: list[Step] = []

    # -- one step --

    def step(self, hunt: _Hunt, targets: Sequence[int], purpose: Purpose) -> Levels:
        """Measure, with more rounds while something is undecided; the rounds join those of the hunt."""
        looks = SEARCH_LOOKS if purpose == "search" else VERIFY_LOOKS
        confidence = confidence_per_look(len(looks))
        for rounds in looks:
            levels = self.measure(
                Look(
                    step=len(self.steps) + 1,
                    purpose=purpose,
                    ends=(hunt.old, hunt.new),
                    targets=tuple(t for t in targets if t not in self.skipped),
                    rounds=rounds,
                    most_rounds=looks[-1],
                )
            )
            self.skipped |= {target for target in targets if target not in levels}
            there = [target for target in targets if target in levels]
            if targets and not there:
                self.in_a_row += 1
                return {}
            old, new = levels[hunt.old], levels[hunt.new]
            gap = interval(_finite(new - old), confidence)
            readings = {t: read(old, new, levels[t], confidence) for t in there}
            apart = hunt.apart or _beyond(gap)
            if apart and gap.estimate * hunt.direction < 0:
                apart = False
                break
            if apart and all(reading.side != "undecided" for reading in readings.values()):
                break
        self.in_a_row = 0
        hunt.apart = apart
        hunt.gaps.append(new - old)
        for target, reading in readings.items():
            rows = _Rows(old=old, new=new, target=levels[target])
            hunt.rows[target] = hunt.rows[target].joined(rows) if target in hunt.rows else rows
            if purpose == "verify" and reading.side != hunt.sides.get(target):
                # The two occasions disagree: all rounds together decide, or nothing does.
                hunt.sides[target] = hunt.readings()[target].side
            else:
                hunt.sides[target] = reading.side
        self.steps.append(
            Step(
                number=len(self.steps) + 1,
                purpose=purpose,
                ends=(hunt.old, hunt.new),
                rounds=len(old),
                readings=readings,
                gap=gap,
            )
        )
        self.tell(self.steps[-1], hunt.bracket(), len(self.open(hunt)))
        return levels

    # -- the search --

    def open(self, hunt: _Hunt) -> list[int]:
        """Releases that may still narrow it down."""
        last, first = hunt.bracket()
        return [i for i in range(last + 1, first) if i not in self.skipped and i not in hunt.sides]

    def narrow(self, hunt: _Hunt) -> None:
        """Ask the release that halves the posterior, until nothing is left to ask."""
        while (choices := self.open(hunt)) and hunt.apart is not False and hunt.split is None:
            if len(self.steps) >= self.most_steps:
                return
            evidence = {i: reading.evidence for i, reading in hunt.readings().items()}
            last, first = hunt.bracket()
            inside = {i: ratio for i, ratio in evidence.items() if last < i < first}
            below = np.cumsum(posterior(inside, last, first))
            choices = self._away_from_skipped(choices)
            self.step(hunt, (min(choices, key=lambda i: abs(below[i - last - 1] - 0.5)),), "search")

    def _away_from_skipped(self, choices: list[int]) -> list[int]:
        """After skips in a row the neighbours are likely to fail as well: go farther away each time."""
        distance = 2 ** (self.in_a_row - 1) if self.in_a_row else 0
        far = [i for i in choices if all(abs(i - skipped) > distance for skipped in self.skipped)]
        return far or choices

    def verify(self, hunt: _Hunt) -> None:
        """Measure the two neighbours again, and with them what stayed undecided between them."""
        last, first = hunt.bracket()
        unsure = [i for i in range(last + 1, first) if hunt.sides.get(i) == "undecided"][:UNDECIDED_AGAIN]
        targets = sorted({last, first, *unsure} - {hunt.old, hunt.new})
        before = dict(hunt.sides)
        levels = self.step(hunt, targets, "verify")
        if not levels:
            return
        fresh = self.steps[-1]
        hunt.verified |= {i for i, reading in fresh.readings.items() if reading.side == before.get(i)}
        hunt.verified |= {i for i in unsure if i in fresh.readings and fresh.readings[i].side != "undecided"}
        if _beyond(fresh.gap):
            hunt.verified |= {hunt.old, hunt.new}
        confidence = confidence_per_look(len(VERIFY_LOOKS))
        last, first = hunt.bracket()
        if last in levels and first in levels:
            hunt.effect = (last, first, interval(_finite(levels[first] - levels[last]), confidence))

    def hunt(self, old: int, new: int, direction: int = 0) -> _Hunt:
        """Look for one change, verify it, and go on where the verification says otherwise."""
        hunt = _Hunt(old, new, direction)
        for _ in range(VERIFICATIONS):
            self.narrow(hunt)
            if hunt.apart is False or hunt.split is not None or len(self.steps) >= self.most_steps:
                break
            self.verify(hunt)
            if not self.open(hunt) and set(hunt.bracket()) <= hunt.verified:
                break
        return hunt

    def changes(self, hunt: _Hunt, levels: dict[int, Interval]) -> list[Change]:
        """What a hunt found; where it met a level of its own, what lies on either side. Fills `levels`."""
        base = levels[hunt.old]
        levels |= {i: _shifted(r.change, base) for i, r in hunt.readings().items() if i not in levels}
        if hunt.split is None:
            return [_change(self, hunt)]
        last, first = hunt.bracket()
        found: list[Change] = []
        for pair in ((last, hunt.split), (hunt.split, first)):
            inner = self.hunt(*pair) if len(self.steps) < self.most_steps else None
            if inner is None or not inner.apart:
                found.append(_seen(pair, NO_STEP_LEFT if inner is None else NOT_APART))
            else:
                found += self.changes(inner, levels)
        return found


def bisect(
    count: int,
    measure: Measure,
    *,
    most_steps: int | None = None,
    direction: int = 0,
    tell: Callable[[Step, tuple[int, int], int], None] = lambda _step, _bracket, _left: None,
) -> Bisection:
    """Find where the level of `count` releases changes, the ends given.

    Args:
        count: releases along the history, both ends included.
        measure: carries a look out; asked again with more rounds, it returns the earlier ones as well.
        most_steps: after which the search ends where it is; None for `usual_most_steps`.
        direction: 1 where the new end is to be slower, -1 for faster, 0 for either; where the ends differ the
            other way the search ends.
        tell: told of each step, of the releases it now lies between, and how many may still be asked.
    """
    bisector = _Bisector(count, measure, most_steps or usual_most_steps(count), tell)
    first = bisector.hunt(0, count - 1, direction)
    levels = {0: _nothing()}
    gap = first.gap() if first.gaps else _nothing()
    if first.gaps:
        levels[count - 1] = gap
    changes = bisector.changes(first, levels) if first.apart else []
    while changes and len(changes) < MOST_CHANGES and (pair := _further(levels, changes, gap)) is not None:
        if len(bisector.steps) >= bisector.most_steps:
            changes.append(_seen(pair, NO_STEP_LEFT))
            continue
        hunt = bisector.hunt(*pair)
        changes += bisector.changes(hunt, levels) if hunt.apart else [_seen(pair, NOT_APART)]
    return Bisection(
        steps=tuple(bisector.steps),
        levels=dict(sorted(levels.items())),
        skipped=tuple(sorted(bisector.skipped)),
        gap=gap,
        changes=tuple(_ordered(changes, levels, gap)),
    )


def _ordered(changes: Sequence[Change], levels: Mapping[int, Interval], gap: Interval) -> list[Change]:
    """The largest change in the direction of the ends first: it is the one that was asked for."""
    sign = -1.0 if gap.estimate < 0 else 1.0

    def size(change: Change) -> float:
        if change.effect is not None:
            return sign * change.effect.estimate
        if change.last not in levels or change.first not in levels:
            return 0.0
        return sign * (levels[change.first].estimate - levels[change.last].estimate)

    return sorted(changes, key=size, reverse=True)


def usual_most_steps(count: int) -> int:
    """Steps that a search may take: about log2 of the releases, and some for noise and further changes."""
    return math.ceil(math.log2(max(count, 2))) + 10


def _beyond(value: Interval) -> bool:
    return value.bounded and (value.low > MARGIN or value.high < -MARGIN)


def _nothing() -> Interval:
    return Interval(estimate=0.0, low=0.0, high=0.0, confidence=1.0, rounds=0)


def _shifted(value: Interval, by: Interval) -> Interval:
    """A change against a release whose own change against the old end is `by`."""
    return msgspec.structs.replace(
        value,
        estimate=value.estimate + by.estimate,
        low=value.low + by.low,
        high=value.high + by.high,
    )


def _change(bisector: _Bisector, hunt: _Hunt) -> Change:
    """What a hunt can claim."""
    last, first = hunt.bracket()
    evidence = {i: reading.evidence for i, reading in hunt.readings().items()}
    probabilities = posterior(evidence, hunt.old, hunt.new)
    probability = float(probabilities[last - hunt.old : first - hunt.old].sum())
    effect = hunt.effect[2] if hunt.effect is not None and hunt.effect[:2] == (last, first) else None
    reason = _doubt(bisector, hunt, effect)
    if not reason and probability < ENOUGH:
        reason = f"the place is only {probability * 100:.0f} % sure"
    if not {last, first} <= hunt.verified or probability < ENOUGH:
        last, first = _wider(hunt, probabilities)
        effect = None
    return Change(
        last=last,
        first=first,
        named=not reason,
        reason=reason,
        effect=effect,
        probability=probability,
        ends=(hunt.old, hunt.new),
    )


def _doubt(bisector: _Bisector, hunt: _Hunt, effect: Interval | None) -> str:
    last, first = hunt.bracket()
    between = range(last + 1, first)
    undecided = sum(hunt.sides.get(i) == "undecided" for i in between)
    skipped = sum(i in bisector.skipped for i in between)
    if len(between) > undecided + skipped:
        return NO_STEP_LEFT
    told = []
    if skipped:
        told.append(f"{skipped} in between cannot be measured")
    if undecided:
        told.append(f"{undecided} in between cannot be told from either side")
    if told:
        return " and ".join(told)
    if not {last, first} <= hunt.verified:
        return "measured again, the two did not show the same"
    if effect is None or not _beyond(effect):
        return NOT_APART
    part = (hunt.old, hunt.new) != (0, bisector.count - 1)
    if part and min(abs(effect.low), abs(effect.high)) < LAYOUT:
        return "it is no larger than what the placement of code does between two builds"
    return ""


def _wider(hunt: _Hunt, probabilities: FloatArray) -> tuple[int, int]:
    """The narrowest claim that holds: the verified neighbours farther out, and 99 % of the posterior."""
    last, first = hunt.bracket()
    olds = [i for i in hunt.verified if i <= last and (i == hunt.old or hunt.sides.get(i) == "old")]
    news = [i for i in hunt.verified if i >= first and (i == hunt.new or hunt.sides.get(i) == "new")]
    ordered = np.argsort(-probabilities)
    enough = int(np.searchsorted(np.cumsum(probabilities[ordered]), CREDIBLE)) + 1
    places = ordered[:enough] + hunt.old + 1
    return (
        min(max([hunt.old, *olds]), int(places.min()) - 1),
        max(min([hunt.new, *news]), int(places.max())),
    )


NO_STEP_LEFT: Final = "no step was left to look closer (--max-steps)"
NOT_APART: Final = "measured against each other, the two do not differ for certain"


def _seen(pair: tuple[int, int], reason: str) -> Change:
    return Change(
        last=pair[0], first=pair[1], named=False, reason=reason, effect=None, probability=0.0, ends=pair
    )


def _further(
    levels: Mapping[int, Interval], known: Sequence[Change], gap: Interval
) -> tuple[int, int] | None:
    """Two measured releases that differ for certain though no change lies between: the nearest such pair."""
    least = max(OTHER_LEAST, OTHER_STEP * abs(gap.estimate))
    places = sorted(i for i, level in levels.items() if level.bounded)
    found: list[tuple[int, float, tuple[int, int]]] = []
    for one, other in itertools.combinations(places, 2):
        told = any(one < change.first and change.last < other for change in known)
        difference = abs(levels[other].estimate - levels[one].estimate)
        noise = 3.0 * math.hypot(_error_of(levels[one]), _error_of(levels[other]))
        if not told and difference - noise > least:
            found.append((other - one, -difference, (one, other)))
    return min(found)[2] if found else None


def _error_of(value: Interval) -> float:
    return 0.0 if value.rounds == 0 else _error(value)
