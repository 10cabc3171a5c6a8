"""Pairs of several runs side by side: which recur, which contradict each other, which cannot be compared."""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from investigator.compare.conditions import Difference, differences, obstacles
from investigator.compare.identity import Side, pair_name, same
from investigator.errors import UsageError
from investigator.report.summary import SummaryComparison
from investigator.stored_run import StoredRun

Outcome = Literal["recurs", "contradicts", "some_only", "no_change", "undecided", "not_compared"]
"""``recurs``: flagged on the same side in every run that could be compared, two at least; ``contradicts``:
slower in one and faster in another; ``some_only``: flagged in some, and in the others not; the rest is
flagged nowhere: ``no_change`` in all, or ``undecided`` in some. ``not_compared``: fewer than two runs
left."""

_FLAGS = frozenset({"slower", "faster"})


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What one run says about a pair."""

    baseline: str
    """Identifier of its environment in that run, label included."""
    candidate: str
    verdict: str
    finding: bool
    """Flagged, and too large for code placement alone."""
    change_pct: float | None
    ci_low_pct: float | None
    ci_high_pct: float | None
    rounds: int
    layer: str | None
    """Where the run's explain phase put it; None where it did not look."""

    @property
    def flagged(self) -> bool:
        """Whether it is slower or faster."""
        return self.verdict in _FLAGS


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How much larger the quotient candidate / baseline is in one run than in the first that has the pair."""

    run: int
    """Number of the run, from 1."""
    factor: float
    low: float
    """Lowest that both intervals allow: coverage is that of both together."""
    high: float

    @property
    def overlap(self) -> bool:
        """Whether the two intervals have a value in common."""
        return self.low <= 1.0 <= self.high


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One operation and pair in all runs."""

    op: str
    family: str
    pair: str
    """Name of the pair: what was compared with what."""
    outcome: Outcome
    finding: bool
    """Whether any run calls it a finding, also one that could not be compared."""
    seen: tuple[Seen | None, ...]
    """One for each run; None where it has none, or where it is another question (`missing` says why)."""
    sizes: tuple[Size, ...]
    missing: tuple[str | None, ...]
    """One for each run: why it does not take part there."""

    @property
    def flagged(self) -> bool:
        """Whether any run that takes part calls it slower or faster."""
        return any(seen is not None and seen.flagged for seen in self.seen)


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """All pairs of all runs."""

    runs: tuple[StoredRun, ...]
    differences: tuple[Difference, ...]
    rows: tuple[Row, ...]


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    comparison: SummaryComparison
    baseline: Side
    candidate: Side


class _Group(msgspec.Struct, kw_only=True):
    """The same pair in several runs, one place a run; grows while runs are read."""

    places: list[_Entry | None]
    twice: set[int]
    """Runs that have it more than once, under different labels."""

    @property
    def first(self) -> _Entry:
        return next(entry for entry in self.places if entry is not None)


def compare(runs: Sequence[StoredRun]) -> Compared:
    """Put runs side by side.

    Raises:
        UsageError: fewer than two, or two copies of the same run, which would recur in every finding.
    """
    if len(runs) < 2:
        raise UsageError("one run has nothing to be compared with; name two or more.")
    for place, run in enumerate(runs):
        for earlier in runs[:place]:
            if _origin(run) == _origin(earlier):
                raise UsageError(
                    f"{earlier.folder.path} and {run.folder.path} are the same run "
                    f"({_origin(run)[0][:80]}), so that all of it would recur; name another one."
                )
    return Compared(
        runs=tuple(runs),
        differences=differences(runs),
        rows=tuple(_row(runs, group) for group in _groups(runs)),
    )


def _origin(run: StoredRun) -> tuple[str, str]:
    return run.record.run_id, run.record.started_at


def _groups(runs: Sequence[StoredRun]) -> list[_Group]:
    groups: list[_Group] = []
    for place, run in enumerate(runs):
        for entry in _entries(run):
            group = next((group for group in groups if _same_pair(group.first, entry) == ""), None)
            if group is None:
                group = _Group(places=[None] * len(runs), twice=set())
                groups.append(group)
            if group.places[place] is not None:
                group.twice.add(place)
            else:
                group.places[place] = entry
    return groups


def _entries(run: StoredRun) -> Iterator[_Entry]:
    """Every pair of two environments; those of the twin are controls."""
    environments = {e.id: e for e in run.summary.environments}
    for comparison in (*run.summary.comparisons, *run.summary.other_comparisons):
        baseline, candidate = environments.get(comparison.baseline), environments.get(comparison.candidate)
        if comparison.kind != "twin" and baseline is not None and candidate is not None:
            yield _Entry(
                comparison=comparison,
                baseline=Side(run=run, environment=baseline, family=comparison.family),
                candidate=Side(run=run, environment=candidate, family=comparison.family),
            )


def _same_pair(one: _Entry, other: _Entry) -> str | None:
    """Empty for the same operation and releases; a reason for same names with other contents; else None."""
    if one.comparison.op != other.comparison.op or _releases(one) != _releases(other):
        return None
    return same(one.baseline, other.baseline) or same(one.candidate, other.candidate) or ""


def _releases(entry: _Entry) -> tuple[str, str]:
    return entry.baseline.release, entry.candidate.release


def _row(runs: Sequence[StoredRun], group: _Group) -> Row:
    first = group.first
    comparison = first.comparison
    sound = [_unsound(place, entry, group) for place, entry in enumerate(group.places)]
    usable = (e for e, why in zip(group.places, sound, strict=True) if e is not None and why is None)
    reference = next(usable, first).baseline.run
    missing = tuple(
        (why or _unlike(reference, run, comparison)) if entry is not None else _absent(run, first)
        for run, entry, why in zip(runs, group.places, sound, strict=True)
    )
    seen = tuple(
        None if entry is None or why is not None else _seen(entry)
        for entry, why in zip(group.places, missing, strict=True)
    )
    return Row(
        op=comparison.op,
        family=comparison.family,
        pair=pair_name(first.baseline, first.candidate),
        outcome=_outcome([each for each in seen if each is not None]),
        finding=any(entry is not None and _is_finding(entry.comparison) for entry in group.places),
        seen=seen,
        sizes=tuple(_sizes(seen)),
        missing=missing,
    )


def _unsound(place: int, entry: _Entry | None, group: _Group) -> str | None:
    """Why what a run says about a pair cannot be set beside anything."""
    if place in group.twice:
        return "more than one of its environments is that release; labels do not say which is meant"
    if entry is not None and entry.comparison.verdict == "invalid":
        return "invalid: the results of the two sides differ"
    return None


def _unlike(reference: StoredRun, run: StoredRun, comparison: SummaryComparison) -> str | None:
    return "; ".join(obstacles(reference, run, comparison.op, comparison.family)) or None


def _is_finding(comparison: SummaryComparison) -> bool:
    """Of any pair, where the run itself counts only those against its baseline."""
    return comparison.verdict in _FLAGS and not comparison.below_layout_floor


def _absent(run: StoredRun, wanted: _Entry) -> str:
    """Why a run does not have a pair that another one has."""
    op = wanted.comparison.op
    entries = list(_entries(run))
    for entry in entries:
        reason = _same_pair(wanted, entry)
        if reason:
            return reason
    if any(e.comparison.op == op and _releases(e) == _releases(wanted)[::-1] for e in entries):
        return "measured the other way round there: baseline and candidate are exchanged"
    for side in (wanted.baseline, wanted.candidate):
        reason = _no_environment(run, side, op)
        if reason is not None:
            return reason
    if all(e.comparison.op != op for e in entries):
        return "the operation was not measured"
    return "the two were not compared with each other; its baseline is another"


def _no_environment(run: StoredRun, wanted: Side, op: str) -> str | None:
    sides = [Side(run=run, environment=e, family=wanted.family) for e in run.summary.environments]
    if fitting := [side for side in sides if side.release == wanted.release]:
        failed = {f.environment: f for f in run.summary.failures if f.op in {None, op}}
        broken = [failed[side.environment.id] for side in fitting if side.environment.id in failed]
        return f"{wanted.release} failed there ({broken[0].stage})" if len(broken) == len(fitting) else None
    if others := [side.addon for side in sides if side.node == wanted.node]:
        return f"on Node {wanted.node} it has {others[0] or 'no addon'}, not {wanted.addon or 'none'}"
    return f"it has no Node {wanted.node}"


def _seen(entry: _Entry) -> Seen:
    comparison = entry.comparison
    attributions = entry.baseline.run.summary.attributions
    layers = [
        a.layer
        for a in attributions
        if (a.op, a.baseline, a.candidate) == (comparison.op, comparison.baseline, comparison.candidate)
        and a.recurred
    ]
    return Seen(
        baseline=comparison.baseline,
        candidate=comparison.candidate,
        verdict=comparison.verdict,
        finding=_is_finding(comparison),
        change_pct=comparison.change_pct,
        ci_low_pct=comparison.ci_low_pct,
        ci_high_pct=comparison.ci_high_pct,
        rounds=comparison.rounds,
        layer=layers[0] if layers else None,
    )


def _outcome(seen: Sequence[Seen]) -> Outcome:
    verdicts = {each.verdict for each in seen}
    if len(seen) < 2:
        return "not_compared"
    if verdicts >= _FLAGS:
        return "contradicts"
    if verdicts & _FLAGS:
        return "recurs" if len(verdicts) == 1 else "some_only"
    return "no_change" if verdicts == {"no_change"} else "undecided"


def _sizes(seen: Sequence[Seen | None]) -> Iterator[Size]:
    """Quotients of the ratios (on the log scale, differences): each later run over the first."""
    known = [
        (number, ratios)
        for number, each in enumerate(seen, 1)
        if each is not None and (ratios := _ratios(each))
    ]
    for number, (low, middle, high) in known[1:]:
        first_low, first_middle, first_high = known[0][1]
        yield Size(run=number, factor=middle / first_middle, low=low / first_high, high=high / first_low)


def _ratios(seen: Seen) -> tuple[float, float, float] | None:
    """Candidate / baseline: low end, estimate, high end; None without an interval."""
    low, middle, high = (
        None if value is None else 1.0 + value / 100.0
        for value in (seen.ci_low_pct, seen.change_pct, seen.ci_high_pct)
    )
    if low is None or middle is None or high is None or min(low, middle, high) <= 0:
        return None
    return low, middle, high
