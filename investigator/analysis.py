"""Samples to verdicts: everything a report needs, computed offline from a run folder, no I/O."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
import pandas as pd

from investigator.arms import Arm, Arms, Phase, arms, arms_of
from investigator.naming import full_names, node_name, short_names
from investigator.operations import Operation
from investigator.plan import Failure, Plan
from investigator.spec import Spec
from investigator.stats import intervals
from investigator.stats.process import FloatArray
from investigator.stats.published import PublishedVerdict, published_rule, spread_pct
from investigator.stats.verdict import Judgement, Margins, Obstacle, Processes, judge
from investigator.text import short_text

ANALYSIS_SCHEMA = 1

Verdict = Literal["slower", "faster", "no_change", "undecided", "invalid"]
PairKind = Literal["baseline", "predecessor", "twin"]


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A change in time per operation in percent (+50 means half as slow again) with its interval.

    With too few rounds for an interval its ends are infinite, and of an ``invalid`` pair nothing is a number;
    JSON has null there.
    """

    change_pct: float
    ci_low_pct: float
    ci_high_pct: float
    confidence: float
    """Exact coverage of the interval for one look, e.g. 0.9844 at 7 rounds."""


class CellSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One operation in one environment, both arms of the baseline pooled."""

    op: str
    family: str
    environment: str
    rounds: int
    ns_per_op: float
    """Median over rounds of the process value."""
    ops_per_s: float
    cpu_ns_per_op: float
    gc_ns_per_op: float
    cold_ns_per_op: float | None
    spread_pct: float
    """(max - min) / min of the process values over rounds: the published rule's spread."""
    best_ns_per_op: float
    """The published rule's figure: best round."""
    disturbed_passes: int
    passes: int


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One operation, candidate against baseline (or against its predecessor, or the A/A twin)."""

    op: str
    family: str
    kind: PairKind
    phase: Phase
    baseline: str
    candidate: str
    rounds: int
    ratio: float
    """candidate / baseline in time per operation."""
    wall: Interval
    cpu: Interval
    verdict: Verdict
    finding: bool
    """A flag from `finding_pct` up, its interval beyond `layout_pct`, on a warm pair against the baseline."""
    below_layout_floor: bool
    """Flagged, but code placement alone could do it."""
    noise_floor_pct: float
    """Largest absolute end of the A/A twin's interval for this operation."""
    published_rule: PublishedVerdict
    """Best round against best round; "within noise" where the gap is below the larger of the two spreads."""
    rounds_needed: int | None
    """For `undecided`: further rounds that would probably decide, None where `obstacle` says why not."""
    minutes_needed: float | None
    obstacle: Obstacle | None = None
    """For `undecided` without a number of rounds: what stands in the way."""
    warnings: tuple[str, ...] = ()
    layer: str | None = None
    """Word for the layer that the explain phase named; None where it named none, or did not look."""


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """One control: ``host`` (drift over the session), ``twin`` (worst A/A interval), ``engine`` (pure JS)."""

    name: Literal["host", "twin", "engine"]
    text: str
    """One sentence for people."""
    values: dict[str, float]
    """Figures behind it; units in the keys."""


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """analysis.json."""

    schema: int = ANALYSIS_SCHEMA
    kind: str = "analysis"
    tool: str = ""
    run_id: str
    headline: str
    """The one plain sentence on top of every output."""
    baseline: str
    environments: tuple[str, ...]
    cells: tuple[CellSummary, ...]
    comparisons: tuple[Comparison, ...]
    controls: tuple[Control, ...]
    failures: tuple[Failure, ...]
    undecided_ops: tuple[str, ...]
    """Operations with an undecided warm comparison: what is measured again. Also those whose forecast says
    that more rounds would not: from 8 rounds it is too dark (in A/A runs it gave up 3 of 20 cells, two of
    which other runs decided with 16)."""

    def pairs(self, phase: Phase = "warm") -> tuple[Comparison, ...]:
        """The candidates against the baseline in one phase, in the order of the tables."""
        return against_baseline(self.comparisons, phase)

    def pair(self, op: str, candidate: str) -> Comparison | None:
        """The warm comparison of one operation with the baseline; None where it could not be made."""
        return next((c for c in self.pairs() if (c.op, c.candidate) == (op, candidate)), None)


def against_baseline(comparisons: Sequence[Comparison], phase: Phase = "warm") -> tuple[Comparison, ...]:
    """Those of candidates with the baseline in one phase: the others are of twins or predecessors."""
    return tuple(c for c in comparisons if c.kind == "baseline" and c.phase == phase)


FLAGS: tuple[Verdict, ...] = ("slower", "faster")
PHASES: tuple[Phase, ...] = ("warm", "cold")
MANY_DISTURBED = 0.5
"""Share of disturbed laps from which a comparison says so."""
NAMED_IN_HEADLINE = 2
"""Findings named for each candidate; the tables have them all."""


def analyse(
    plan: Plan,
    samples: pd.DataFrame,
    *,
    failures: Sequence[Failure] = (),
    host_ns: Sequence[float] = (),
    minutes_per_round: float = 0.0,
    tool: str = "",
) -> Analysis:
    """Verdicts on all pairs of a run, finished or not.

    An operation may lack rounds, arms or whole environments: each pair uses the rounds that both of its sides
    have. The planned looks (`Spec.looks`) share 5 % of error between them.

    Args:
        plan: what was compared, and the margins.
        samples: columns of `samples.Sample`; rounds count from 1, rows of round 0 (calibration) are ignored.
        failures: for the tables; those of stage ``checksum`` make their comparisons ``invalid``.
        host_ns: readings of the host control, ns per call in order of time.
        minutes_per_round: what one more round costs; 0 where unknown.
        tool: name and version for analysis.json.
    """
    return analyse_arms(
        plan,
        arms(samples),
        failures=failures,
        host_ns=host_ns,
        minutes_per_round=minutes_per_round,
        tool=tool,
    )


def analyse_arms(
    plan: Plan,
    table: Arms,
    *,
    failures: Sequence[Failure] = (),
    host_ns: Sequence[float] = (),
    minutes_per_round: float = 0.0,
    tool: str = "",
) -> Analysis:
    """The same from process values: see `analyse`."""
    distinct = tuple(dict.fromkeys(failures))
    question = _Question(
        plan=plan,
        invalid=frozenset((f.environment, f.op) for f in distinct if f.stage == "checksum"),
        minutes_per_round=minutes_per_round,
    )
    comparisons = tuple(
        comparison
        for operation in plan.operations
        if operation.family != "host"
        for phase in PHASES
        for comparison in _operation(question, table, operation, phase)
    )
    return Analysis(
        tool=tool,
        run_id=plan.run_id,
        headline=headline(plan, comparisons),
        baseline=plan.baseline,
        environments=tuple(environment.id for environment in plan.environments),
        cells=tuple(_cells(plan, table)),
        comparisons=comparisons,
        controls=tuple(_controls(plan, comparisons, host_ns)),
        failures=distinct,
        undecided_ops=tuple(
            dict.fromkeys(
                c.op
                for c in comparisons
                if c.phase == "warm" and c.verdict == "undecided" and c.kind != "twin"
            )
        ),
    )


# -- cells ------------------------------------------------------------------------------------------------


def _cells(plan: Plan, table: Arms) -> Iterator[CellSummary]:
    for operation in plan.operations:
        for environment in plan.environments:
            warm = arms_of(table, operation.name, "warm", environment.id)
            if warm and np.isfinite(np.concatenate([arm.wall for arm in warm])).any():
                cold = arms_of(table, operation.name, "cold", environment.id)
                yield _cell(operation.name, operation.family, environment.id, warm, cold)


def _cell(op: str, family: str, environment: str, warm: Sequence[Arm], cold: Sequence[Arm]) -> CellSummary:
    wall = _pooled([arm.wall for arm in warm])
    ns_per_op = float(np.median(wall))
    cold_wall = _pooled([arm.wall for arm in cold])
    return CellSummary(
        op=op,
        family=family,
        environment=environment,
        rounds=int(np.isfinite([arm.wall for arm in warm]).any(axis=0).sum()),
        ns_per_op=ns_per_op,
        ops_per_s=1e9 / ns_per_op,
        cpu_ns_per_op=_median(_pooled([arm.cpu for arm in warm])),
        gc_ns_per_op=_median(_pooled([arm.gc for arm in warm])),
        cold_ns_per_op=float(np.median(cold_wall)) if len(cold_wall) else None,
        spread_pct=spread_pct(wall),
        best_ns_per_op=float(np.min(wall)),
        disturbed_passes=sum(arm.disturbed for arm in warm),
        passes=sum(arm.passes for arm in warm),
    )


def _pooled(values: Sequence[FloatArray]) -> FloatArray:
    joined = np.concatenate(values) if values else np.empty(0)
    return np.asarray(joined[np.isfinite(joined)], dtype=np.float64)


def _median(values: FloatArray) -> float:
    return float(np.median(values)) if len(values) else 0.0


# -- comparisons ------------------------------------------------------------------------------------------


class _Question(msgspec.Struct, frozen=True, kw_only=True):
    """What every comparison needs to know beside the times."""

    plan: Plan
    invalid: frozenset[tuple[str, str | None]]
    """Environment and operation whose results differ from the baseline's."""
    minutes_per_round: float

    @property
    def margins(self) -> Margins:
        return Margins(margin_pct=self.plan.spec.margin_pct, equivalence_pct=self.plan.spec.equivalence_pct)

    @property
    def confidence(self) -> float:
        return intervals.confidence_per_look(len(self.plan.spec.looks))


def _operation(question: _Question, table: Arms, operation: Operation, phase: Phase) -> Iterator[Comparison]:
    """All comparisons of one operation in one phase: the twin first, since it can forbid the others."""
    op, plan = operation.name, question.plan
    baseline = arms_of(table, op, phase, plan.baseline)
    twin = _judge_pair(question, baseline[:1], baseline[1:], None)
    veto = _twin_veto(twin)
    floor = math.inf if twin is None else _largest_end_pct(twin.wall)
    for kind, low_id, high_id in _pairs(plan):
        low, high = arms_of(table, op, phase, low_id), arms_of(table, op, phase, high_id)
        if kind == "twin":
            low, high = baseline[:1], baseline[1:]
        differs = (low_id, op) in question.invalid or (high_id, op) in question.invalid
        judgement = twin if kind == "twin" else _judge_pair(question, low, high, veto)
        if judgement is not None or differs:
            yield _comparison(
                question,
                _Pair(
                    op=op,
                    family=operation.family,
                    kind=kind,
                    phase=phase,
                    baseline=low_id,
                    candidate=high_id,
                    low=low,
                    high=high,
                    differs=differs,
                ),
                judgement,
                noise_floor_pct=floor,
            )


class _Pair(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared with what."""

    op: str
    family: str
    kind: PairKind
    phase: Phase
    baseline: str
    candidate: str
    low: Sequence[Arm]
    """Arms of the baseline side."""
    high: Sequence[Arm]
    differs: bool
    """Whether the results of the two sides differ."""


def _pairs(plan: Plan) -> Iterator[tuple[PairKind, str, str]]:
    """Kind, baseline and candidate: each against the baseline and against its predecessor in the list.

    A pair stands once: where the predecessor is the baseline, it is the baseline's pair.
    """
    yield "twin", plan.baseline, plan.baseline
    order = [environment.id for environment in plan.environments]
    for before, identifier in zip([None, *order], order, strict=False):
        if identifier != plan.baseline:
            yield "baseline", plan.baseline, identifier
        if before is not None and before != plan.baseline:
            yield "predecessor", before, identifier


def _judge_pair(
    question: _Question, low: Sequence[Arm], high: Sequence[Arm], veto: str | None
) -> Judgement | None:
    """The verdict on a pair; None where no round has both sides."""
    if not low or not high:
        return None
    judgement = judge(
        processes(high, low), margins=question.margins, confidence=question.confidence, veto=veto
    )
    return judgement if judgement.wall.rounds else None


def processes(candidate: Sequence[Arm], baseline: Sequence[Arm]) -> Processes:
    """Both sides as the rule takes them, each of at least one arm."""
    return Processes(
        candidate_wall=np.column_stack([arm.wall for arm in candidate]),
        baseline_wall=np.column_stack([arm.wall for arm in baseline]),
        candidate_cpu=np.column_stack([arm.cpu for arm in candidate]),
        baseline_cpu=np.column_stack([arm.cpu for arm in baseline]),
        candidate_fastest=np.column_stack([arm.fastest for arm in candidate]),
        baseline_fastest=np.column_stack([arm.fastest for arm in baseline]),
        candidate_typical=np.column_stack([arm.typical for arm in candidate]),
        baseline_typical=np.column_stack([arm.typical for arm in baseline]),
    )


def beyond_layout(wall: Interval, spec: Spec) -> bool:
    """Whether a change is too large to come from code placement alone, estimate and interval."""
    nearer_end = min(abs(wall.ci_low_pct), abs(wall.ci_high_pct))
    return abs(wall.change_pct) >= spec.finding_pct and nearer_end > spec.layout_pct


def _comparison(
    question: _Question, pair: _Pair, judgement: Judgement | None, *, noise_floor_pct: float
) -> Comparison:
    wall = _percent(None if judgement is None else judgement.wall)
    cpu = _percent(None if judgement is None else judgement.cpu)
    verdict: Verdict = "invalid" if pair.differs or judgement is None else judgement.verdict
    flagged = verdict in FLAGS
    large = beyond_layout(wall, question.plan.spec)
    needed = judgement.rounds_needed if judgement is not None and verdict == "undecided" else None
    if pair.kind == "twin":
        needed = None  # nobody waits for a verdict on the twin
    minutes = question.minutes_per_round
    return Comparison(
        op=pair.op,
        family=pair.family,
        kind=pair.kind,
        phase=pair.phase,
        baseline=pair.baseline,
        candidate=pair.candidate,
        rounds=judgement.wall.rounds if judgement is not None else 0,
        ratio=1.0 + wall.change_pct / 100.0,
        wall=wall,
        cpu=cpu,
        verdict=verdict,
        finding=flagged and large and pair.kind == "baseline" and pair.phase == "warm",
        below_layout_floor=flagged and not large,
        noise_floor_pct=noise_floor_pct,
        published_rule=_published(pair.low, pair.high),
        rounds_needed=needed,
        minutes_needed=needed * minutes if needed is not None and minutes > 0 else None,
        obstacle=judgement.obstacle if judgement is not None and verdict == "undecided" else None,
        warnings=tuple(_warnings(pair, judgement)),
    )


def _percent(interval: intervals.Interval | None) -> Interval:
    if interval is None:
        return Interval(change_pct=math.nan, ci_low_pct=math.nan, ci_high_pct=math.nan, confidence=math.nan)
    return Interval(
        change_pct=_change_pct(interval.estimate),
        ci_low_pct=_change_pct(interval.low),
        ci_high_pct=_change_pct(interval.high),
        confidence=interval.confidence,
    )


def _change_pct(effect: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.expm1(effect)) * 100.0


def _published(low: Sequence[Arm], high: Sequence[Arm]) -> PublishedVerdict:
    baseline, candidate = _pooled([arm.wall for arm in low]), _pooled([arm.wall for arm in high])
    return published_rule(baseline, candidate) if len(baseline) and len(candidate) else "within noise"


def _warnings(pair: _Pair, judgement: Judgement | None) -> Iterator[str]:
    if pair.differs:
        yield "the results differ from those of the baseline: the times mean nothing"
        return
    if judgement is not None:
        yield from judgement.warnings
    if pair.kind == "baseline" and len(pair.low) == 1:
        yield "the A/A twin of this operation is missing"
    both = [*pair.low, *pair.high]
    passes, disturbed = sum(arm.passes for arm in both), sum(arm.disturbed for arm in both)
    if pair.phase == "warm" and passes and disturbed / passes > MANY_DISTURBED:
        yield f"{disturbed} of {passes} laps were disturbed from outside"


def _twin_veto(twin: Judgement | None) -> str | None:
    if twin is None or twin.verdict not in FLAGS:
        return None
    low, high = _change_pct(twin.wall.low), _change_pct(twin.wall.high)
    return (
        f"the baseline differs from itself ({low:+.1f} to {high:+.1f} % between its two arms): "
        "no verdict on this operation in this run"
    )


def _largest_end_pct(interval: intervals.Interval) -> float:
    return max(abs(_change_pct(interval.low)), abs(_change_pct(interval.high)))


# -- controls ---------------------------------------------------------------------------------------------


def _controls(plan: Plan, comparisons: Sequence[Comparison], host_ns: Sequence[float]) -> Iterator[Control]:
    yield from _host_control(host_ns)
    yield from _twin_control([c for c in comparisons if c.kind == "twin" and c.phase == "warm"])
    yield from _engine_control(
        plan,
        [c for c in against_baseline(comparisons) if c.family == "js"],
    )


def _host_control(readings: Sequence[float]) -> Iterator[Control]:
    """Drift is the median slope between readings over the session; it is told, never divided out."""
    values = np.array([value for value in readings if value > 0 and math.isfinite(value)])
    if len(values) < 2:
        return
    first, second = np.triu_indices(len(values), k=1)
    logs = np.log(values)
    slope = float(np.median((logs[second] - logs[first]) / (second - first)))
    drift, spread = _change_pct(slope * (len(values) - 1)), spread_pct(values)
    yield Control(
        name="host",
        text=(
            f"The host control, the same binary in every round, drifted by {drift:+.1f} % over the session; "
            f"its {len(values)} readings lie within {spread:.1f} %."
        ),
        values={"drift_pct": drift, "spread_pct": spread, "readings": float(len(values))},
    )


def _twin_control(twins: Sequence[Comparison]) -> Iterator[Control]:
    bounded = [c for c in twins if math.isfinite(c.noise_floor_pct)]
    if not bounded:
        return
    worst = max(bounded, key=lambda c: c.noise_floor_pct)
    flagged = [c.op for c in bounded if c.verdict in FLAGS]
    yield Control(
        name="twin",
        text=(
            f"The baseline measured against itself differs by at most {worst.noise_floor_pct:.1f} % "
            f"({worst.op}, end of the interval); {len(flagged)} of {len(bounded)} operations are flagged"
            f"{': ' + ', '.join(flagged) if flagged else ''}."
        ),
        values={
            "worst_floor_pct": worst.noise_floor_pct,
            "median_floor_pct": float(np.median([c.noise_floor_pct for c in bounded])),
            "flagged": float(len(flagged)),
            "operations": float(len(bounded)),
        },
    )


def _engine_control(plan: Plan, pairs: Sequence[Comparison]) -> Iterator[Control]:
    """Pure JS: between Node versions it tells about V8, between addons on one Node it is a null control."""
    same_node = plan.spec.axis == "addon"
    names = (short_names if same_node else full_names)(plan.environments, plan.spec.axis)
    values: dict[str, float] = {}
    parts: list[str] = []
    for environment in plan.environments:
        changes = [
            c.wall.change_pct
            for c in pairs
            if c.candidate == environment.id and c.verdict != "invalid" and math.isfinite(c.wall.change_pct)
        ]
        if changes:
            median = float(np.median(changes))
            values[f"{environment.id}_change_pct"] = median
            where = f"{'with' if same_node else 'on'} {names[environment.id]}"
            counted = f"{len(changes)} operation{'' if len(changes) == 1 else 's'}"
            parts.append(f"{median:+.1f} % {where} ({counted})")
    if not parts:
        return
    found = f"against {names[plan.baseline]}, median change: {', '.join(parts)}"
    text = f"Pure JS {found}; it tells whether V8 as a whole moved, and nothing is divided by it."
    if same_node:
        values["flagged"] = float(sum(c.verdict in FLAGS for c in pairs))
        text = (
            f"Pure JS on the same {node_name(plan.environments[0])} {found}; {values['flagged']:.0f} of "
            f"{len(pairs)} comparisons are flagged. The engine is the same binary: this null control "
            "tells of noise and code placement, not of V8."
        )
    yield Control(name="engine", text=text, values=values)


# -- headline ---------------------------------------------------------------------------------------------

_FAMILY_WORDS = {
    "sqlite": "SQLite operation",
    "js": "JS operation",
    "boundary": "boundary operation",
    "core": "core operation",
}


def headline(plan: Plan, comparisons: Sequence[Comparison]) -> str:
    """One sentence for each candidate, of some 200 characters, saying no more than the verdicts do.

    Only warm pairs with the baseline count, and only families of which something was planned.
    """
    names = full_names(plan.environments, plan.spec.axis)
    candidates = [environment.id for environment in plan.candidates]
    if not candidates:
        return f"Only {names[plan.baseline]} was measured: there is nothing to compare it with."
    pairs = against_baseline(comparisons)
    return " ".join(
        _sentence(plan, names, candidate, [c for c in pairs if c.candidate == candidate])
        for candidate in candidates
    )


def _sentence(plan: Plan, names: Mapping[str, str], candidate: str, pairs: Sequence[Comparison]) -> str:
    name, against = names[candidate], _after(names[candidate], names[plan.baseline])
    if plan.spec.axis == "addon":
        against = f"{against} on {node_name(plan.environment(plan.baseline))}"
    planned = {operation.family for operation in plan.operations}
    families = sorted(planned & set(_FAMILY_WORDS), key=lambda family: (family != plan.spec.command, family))
    if not pairs or not families:
        return f"{name} could not be compared with {against}."
    own, *others = families
    named = _largest(pairs)
    parts = [_own_family(plan, own, f"{name} is {{}} than {against}", pairs, named)]
    if not any(c.finding for c in pairs):
        told = any(c.verdict in {*FLAGS, "no_change"} for c in pairs)
        opening = (
            f"No finding for {name} against {against}"
            if told
            else f"Cannot tell whether {name} differs from {against}"
        )
        parts[0] = f"{opening}: {_tally(plan, own, pairs)}"
    elif not any(c.finding and c.family == own for c in pairs):
        parts[0] = f"{name} against {against}: {_tally(plan, own, pairs)}"
    parts += [_other_family(plan, family, pairs, named) for family in others]
    return "; ".join(part for part in parts if part) + "."


def _after(name: str, other: str) -> str:
    """`other` as it follows on `name`: what both begin with is not said twice."""
    shared = f"{name.partition(' ')[0]} "
    return other.removeprefix(shared) if name.startswith(shared) else other


def _own_family(
    plan: Plan, family: str, opening: str, pairs: Sequence[Comparison], named: frozenset[str]
) -> str:
    """``Node 24 is slower than 22 on 3 of 13 SQLite operations (...), faster on none; 9 unchanged``."""
    counts = {verdict: _findings(pairs, family, verdict) for verdict in FLAGS}
    first, second = sorted(FLAGS, key=lambda verdict: not counts[verdict])
    planned = _planned(plan, family)
    # The opening ends with "on Node ..." where addons are compared.
    on = "in" if plan.spec.axis == "addon" else "on"
    return (
        f"{opening.format(first)} {on} {len(counts[first])} of {planned}{_named(counts[first], named)}, "
        f"{second} {on} {len(counts[second]) or 'none'}{_named(counts[second], named)}; "
        f"{_rest(plan, family, pairs)}"
    ).removesuffix("; ")


def _other_family(plan: Plan, family: str, pairs: Sequence[Comparison], named: frozenset[str]) -> str:
    """``of 7 JS operations 1 slower (json_parse +12 %), 6 unchanged``."""
    if not any(c.family == family for c in pairs):
        return ""
    counts = {verdict: _findings(pairs, family, verdict) for verdict in FLAGS}
    told = [f"{len(found)} {verdict}{_named(found, named)}" for verdict, found in counts.items() if found]
    return f"of {_planned(plan, family)} {', '.join([*told, *filter(None, [_rest(plan, family, pairs)])])}"


def _tally(plan: Plan, family: str, pairs: Sequence[Comparison]) -> str:
    return f"of {_planned(plan, family)} {_rest(plan, family, pairs)}"


def _rest(plan: Plan, family: str, pairs: Sequence[Comparison]) -> str:
    """Everything that is no finding: ``9 unchanged, 1 cannot tell``."""
    own = [c for c in pairs if c.family == family]
    counts = (
        (sum(c.verdict == "no_change" for c in own), "unchanged"),
        (sum(c.below_layout_floor for c in own), "too small to tell from code placement"),
        (sum(c.verdict == "undecided" for c in own), "cannot tell"),
        (sum(c.verdict == "invalid" for c in own), "invalid"),
        (sum(o.family == family for o in plan.operations) - len(own), "not measured"),
    )
    return ", ".join(f"{count} {text}" for count, text in counts if count)


def _planned(plan: Plan, family: str) -> str:
    count = sum(operation.family == family for operation in plan.operations)
    return f"{count} {_FAMILY_WORDS[family]}{'' if count == 1 else 's'}"


def _findings(pairs: Sequence[Comparison], family: str, verdict: Verdict) -> list[Comparison]:
    return [c for c in pairs if c.finding and c.family == family and c.verdict == verdict]


def _largest(pairs: Sequence[Comparison]) -> frozenset[str]:
    """Operations with the largest changes among the findings of one candidate: those that are named."""
    found = sorted((c for c in pairs if c.finding), key=lambda c: -abs(math.log(c.ratio)))
    return frozenset(c.op for c in found[:NAMED_IN_HEADLINE])


def _named(pairs: Sequence[Comparison], named: frozenset[str]) -> str:
    """`` (bind_text_ascii_10k +114 %, ...)``: those of `pairs` that are `named`, the largest first."""
    ordered = sorted((c for c in pairs if c.op in named), key=lambda c: -abs(math.log(c.ratio)))
    shown = [f"{short_text(c.op, 40)} {c.wall.change_pct:+.0f} %{_layer(c)}" for c in ordered]
    return f" ({', '.join([*shown, *(['...'] if len(ordered) < len(pairs) else [])])})" if shown else ""


def _layer(comparison: Comparison) -> str:
    return f" in the {comparison.layer}" if comparison.layer is not None else ""
