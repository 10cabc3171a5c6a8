"""Samples to verdicts: everything a report needs, computed offline from a run folder, no I/O."""

from typing import Literal

import msgspec

from investigator.plan import Failure

ANALYSIS_SCHEMA = 1

Verdict = Literal["slower", "faster", "no_change", "undecided", "invalid"]
PairKind = Literal["baseline", "predecessor", "twin"]
Phase = Literal["warm", "cold"]


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A change in time per operation in percent (+50 means half as slow again) with its interval."""

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
    """A flag from `finding_pct` up, on a warm pair against the baseline whose twin is clean."""
    below_layout_floor: bool
    """Flagged, but below `finding_pct`."""
    noise_floor_pct: float
    """Largest absolute end of the A/A twin's interval for this operation."""
    published_rule: Literal["slower", "faster", "within noise"]
    """Best round against best round; "within noise" where the gap is smaller than either spread."""
    rounds_needed: int | None
    """For `undecided`: further rounds that would probably decide, None where more rounds will not."""
    minutes_needed: float | None
    warnings: tuple[str, ...] = ()


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
    """Operations with an undecided warm comparison: what an extension measures again."""
