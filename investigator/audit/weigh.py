"""One change, weighed: every figure that the same data give for it, and what they cannot tell apart."""

import itertools
import math
import statistics
import warnings
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from investigator.audit.book import Book, Cells, best_of, value_of
from investigator.audit.claims import Claim
from investigator.audit.figures import Figure, Place, Unit
from investigator.stats import intervals
from investigator.stats.process import FloatArray

Support = Literal["supported", "within_session", "not_told", "contradicted", "no_figures"]
"""``supported``: interleaved samples whose interval holds the change. ``within_session``: the figures differ
that much, but what else changed between the sides is not excluded. ``not_told``: the same figures fit another
change, or none, as well. ``contradicted``: they exclude it. ``no_figures``: there is only the claim."""
Method = Literal["interleaved samples", "separate samples", "stated spread", "settings as repetitions"]
ALIKE = 1.0 / 3.0
"""Two changes within a third of each other, on the log scale, count as the same."""
SAME = math.log(1.02)
"""What the margin of a verdict does not tell from no change counts as the same."""
_CONFIDENCE = 0.95
_MOST_PAIRS = 200
"""Beyond it the exact distribution takes long and differs from Student's in nothing one could see."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """An interval of the change in percent."""

    low_pct: float
    high_pct: float
    confidence: float | None
    """None for a stated spread, which does not say what it covers."""
    method: Method


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """Two figures whose quotient is the claimed change."""

    setting: str
    baseline: float
    candidate: float
    change_pct: float
    places: tuple[Place, Place]


class Best(msgspec.Struct, frozen=True, kw_only=True):
    """The best figure of one version."""

    setting: str
    value: float
    place: Place


class Weighed(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one operation between two versions; percentages are of `unit` (of rates: - is slower)."""

    op: str
    unit: Unit
    baseline: str
    candidate: str
    asked_pct: float
    """The claimed change; without a claim the one under the first setting of the files."""
    claim: Claim | None
    settings: int
    """Settings that both versions have."""
    published_pct: float
    """Change under the first setting that both have."""
    published_setting: str
    low_pct: float
    """Smallest change under one setting."""
    low_setting: str
    high_pct: float
    high_setting: str
    best_pct: float
    """Best figure against best figure."""
    best: tuple[Best, Best]
    """Of the baseline and of the candidate."""
    median_pct: float
    """Median over the settings, on each side."""
    span: Span | None
    located: tuple[Located, ...]
    support: Support = "not_told"
    alternative_pct: float | None = None
    """A change that the same figures fit as well."""


def weigh(book: Book, op: str, baseline: str, candidate: str, claim: Claim | None) -> Weighed | None:
    """Compute every change that the figures give for one pair; None where they share no setting."""
    unit = book.unit(op)
    before, after = book.cells(op, baseline), book.cells(op, candidate)
    shared = [setting for setting in before if setting in after]
    if not shared:
        return None
    logs = {s: math.log(value_of(after[s]) / value_of(before[s])) for s in shared}
    low, high = min(shared, key=logs.__getitem__), max(shared, key=logs.__getitem__)
    best = best_of(before, unit), best_of(after, unit)
    published = logs[shared[0]]
    weighed = Weighed(
        op=op,
        unit=unit,
        baseline=baseline,
        candidate=candidate,
        asked_pct=_pct(published) if claim is None else claim.change_pct(unit),
        claim=claim,
        settings=len(shared),
        published_pct=_pct(published),
        published_setting=shared[0],
        low_pct=_pct(logs[low]),
        low_setting=low,
        high_pct=_pct(logs[high]),
        high_setting=high,
        best_pct=_pct(math.log(best[1].value / best[0].value)),
        best=(_best(best[0]), _best(best[1])),
        median_pct=_pct(math.log(_median(after, shared) / _median(before, shared))),
        span=_span(before, after, shared, list(logs.values())),
        located=() if claim is None else locate(book, op, baseline, candidate, claim),
    )
    support, alternative = _support(weighed)
    return msgspec.structs.replace(weighed, support=support, alternative_pct=alternative)


def locate(book: Book, op: str, baseline: str, candidate: str, claim: Claim) -> tuple[Located, ...]:
    """Pairs of figures under one setting whose quotient is the claimed change, but for its rounding."""
    wanted, unit = claim.change_pct(book.unit(op)), book.unit(op)
    tolerance = claim.tolerance_pct if unit in (claim.measure, "unknown") else 2.0
    before, after = book.published(op, baseline), book.published(op, candidate)
    found = []
    for setting in before:
        for old in before[setting]:
            for new in after.get(setting, ()):
                change = (new.value / old.value - 1.0) * 100.0
                if abs(change - wanted) <= tolerance * (1 + 1e-9):
                    found.append(
                        Located(
                            setting=setting,
                            baseline=old.value,
                            candidate=new.value,
                            change_pct=change,
                            places=(old.place, new.place),
                        )
                    )
    return tuple(found)


def interleaved(before: Figure, after: Figure) -> bool:
    """Whether samples of both sides alternate in the file: at least half of the changes that could be."""
    if not before.order or not after.order or before.place.file != after.place.file:
        return False
    sides = [side for _, side in sorted([(p, 0) for p in before.order] + [(p, 1) for p in after.order])]
    switches = sum(a != b for a, b in itertools.pairwise(sides))
    return switches >= min(len(before.order), len(after.order))


def alike(one_pct: float, other_pct: float) -> bool:
    """Whether two changes have the same sign and sizes within a third of each other."""
    one, other = log_change(one_pct), log_change(other_pct)
    return abs(one - other) <= max(ALIKE * abs(one), SAME)


def log_change(change_pct: float) -> float:
    """A change on the log scale; what rounds to -100 % stays finite."""
    return math.log(max(1.0 + change_pct / 100.0, 1e-12))


def _best(figure: Figure) -> Best:
    return Best(setting=figure.setting, value=figure.value, place=figure.place)


def _pct(log: float) -> float:
    return math.expm1(log) * 100.0


def _median(cells: Cells, settings: Sequence[str]) -> float:
    return float(statistics.median(value_of(cells[setting]) for setting in settings))


def _span(before: Cells, after: Cells, shared: Sequence[str], logs: Sequence[float]) -> Span | None:
    if len(shared) == 1:
        return _of_samples(before[shared[0]], after[shared[0]]) or _stated(
            before[shared[0]], after[shared[0]]
        )
    effect = np.asarray(logs, dtype=np.float64)
    return _walsh(effect, "settings as repetitions")


def _walsh(effect: FloatArray, method: Method) -> Span | None:
    found = intervals.interval(effect, _CONFIDENCE)
    if not found.bounded:
        return None
    return Span(
        low_pct=_pct(found.low), high_pct=_pct(found.high), confidence=found.confidence, method=method
    )


def _of_samples(before: Sequence[Figure], after: Sequence[Figure]) -> Span | None:
    """Paired where the runs alternate, which their order is there for; else Welch's, as compare.R has it."""
    old = np.log(np.array([s for figure in before for s in figure.samples], dtype=np.float64))
    new = np.log(np.array([s for figure in after for s in figure.samples], dtype=np.float64))
    alternate = len(before) == len(after) == 1 and interleaved(before[0], after[0])
    if alternate and len(old) == len(new) <= _MOST_PAIRS:
        paired = _walsh(np.asarray(new - old, dtype=np.float64), "interleaved samples")
        if paired is not None:
            return paired
    if min(len(old), len(new)) < 2 or (np.ptp(old) == 0 and np.ptp(new) == 0):
        return None
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # samples that hardly vary
        from scipy import stats  # noqa: PLC0415 - it takes a second, which `--help` should not pay

        found = stats.ttest_ind(new, old, equal_var=False).confidence_interval(_CONFIDENCE)
    if not (math.isfinite(found.low) and math.isfinite(found.high)):
        return None
    method: Method = "interleaved samples" if alternate else "separate samples"
    return Span(low_pct=_pct(found.low), high_pct=_pct(found.high), confidence=_CONFIDENCE, method=method)


def _stated(before: Sequence[Figure], after: Sequence[Figure]) -> Span | None:
    """Lowest against highest of what both sides state; says nothing about confidence."""
    if len(before) != 1 or len(after) != 1:
        return None
    old, new = before[0], after[0]
    if not (old.low and old.high and new.low and new.high):
        return None
    low, high = sorted((new.low / old.high, new.high / old.low))
    return Span(low_pct=(low - 1) * 100, high_pct=(high - 1) * 100, confidence=None, method="stated spread")


def _support(weighed: Weighed) -> tuple[Support, float | None]:
    span = weighed.span
    if weighed.settings == 1 and span is not None:
        return _support_of_span(weighed.asked_pct, span)
    if weighed.settings == 1:
        fits = weighed.claim is None or alike(weighed.asked_pct, weighed.published_pct)
        return ("not_told", 0.0) if fits else ("contradicted", weighed.published_pct)
    given = (
        weighed.published_pct,
        weighed.low_pct,
        weighed.high_pct,
        weighed.best_pct,
        weighed.median_pct,
    )
    asked = log_change(weighed.asked_pct)
    farthest = max(given, key=lambda pct: abs(log_change(pct) - asked))
    if all(alike(weighed.asked_pct, pct) for pct in given):
        return "within_session", None
    if not any(alike(weighed.asked_pct, pct) for pct in given):
        return "contradicted", weighed.published_pct
    return "not_told", farthest


def _support_of_span(asked_pct: float, span: Span) -> tuple[Support, float | None]:
    fits = span.low_pct <= asked_pct <= span.high_pct or any(
        alike(asked_pct, end) for end in (span.low_pct, span.high_pct)
    )
    nearest = 0.0 if span.low_pct <= 0.0 <= span.high_pct else min(span.low_pct, span.high_pct, key=abs)
    if not fits:
        return "contradicted", nearest
    if span.low_pct <= 0.0 <= span.high_pct:
        return "not_told", 0.0
    return ("supported" if span.method == "interleaved samples" else "within_session"), None
