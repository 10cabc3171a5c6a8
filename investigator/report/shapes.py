"""Shapes of the view: what a report says, every number already a text, nothing laid out yet.

All texts are clean (one bounded printable line) but not escaped: that depends on the renderer.
"""

from collections.abc import Mapping

import msgspec

from investigator import units
from investigator.build import AddonBuild, BuildFailure
from investigator.collector import CollectorFacts
from investigator.report.layers_view import LayersView


class ReportFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the run recorded beside its measurements."""

    tool: str
    """Name and version of this tool."""
    folder: str
    """The run folder as the user would type it."""
    engine: Mapping[str, object] = {}
    """`Engine.facts()`; the entries ``engine`` and ``version`` also stand under the headline."""
    host: Mapping[str, object] = {}
    """Facts of the host; nested mappings are shown with dotted names, ``*_bytes`` in binary units."""
    run: Mapping[str, object] = {}
    """What else run.json holds: start, digests of the fixtures, what the measuring cost."""
    builds: Mapping[str, AddonBuild | BuildFailure] = {}
    """By environment identifier; empty in ``js`` runs."""
    collectors: Mapping[str, CollectorFacts] = {}
    """By environment identifier; empty in older runs."""


class EnvironmentView(msgspec.Struct, frozen=True, kw_only=True):
    """One environment: columns of the provenance table."""

    short: str
    """The name used in all other tables."""
    id: str
    baseline: bool
    node: str
    v8: str
    abi: str
    napi: str
    addon: str
    """Name and version; empty in ``js`` runs."""
    flavor: str
    node_flags: str
    node_sha256: str
    binding_sha256: str
    sqlite3_object_sha256: str
    compiler: str
    flags: tuple[tuple[str, str], ...]
    """Source file and the compiler's command line."""
    heap_limit: str
    semi_space: str
    """Half of the young generation: at the start, and the largest seen."""
    accounting: str
    """What keeping account of a collection adds to it."""
    collected: "CollectedView"
    """What the collector did."""


class CollectedView(msgspec.Struct, frozen=True, kw_only=True):
    """Collections of one environment in one warm lap of every operation, and what they cost."""

    operations: str
    """How many operations that are."""
    kinds: Mapping[str, str]
    """Kind to its number and its pauses."""
    pauses: str
    """All pauses together, and their share of the wall time."""
    helpers: str
    """CPU time of the threads beside the main one."""
    external: str
    """Most memory outside of the heap."""


class CellView(msgspec.Struct, frozen=True, kw_only=True):
    """One operation in one environment."""

    rate: str
    """Operations per second, or ``failed``."""
    time: str
    best: str = units.MISSING
    """Best round."""
    spread: str = units.MISSING
    """Spread over the rounds, (max - min) / min."""
    cpu: str = units.MISSING
    gc: str = units.MISSING
    rounds: str = units.MISSING
    disturbed: str = units.MISSING
    """Disturbed passes of all passes."""


class ChangeView(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison."""

    op: str
    candidate: str
    against: str
    change: str
    """Change in time per operation."""
    interval: str
    confidence: str
    cpu_change: str
    cpu_interval: str
    verdict: str
    """One of the five words of `VERDICT_WORDS`."""
    mark: str
    """`FINDING_MARK`, `FLOOR_MARK` or nothing."""
    published: str
    """Verdict of the published rule."""
    remedy: str
    """For ``cannot tell``: what would decide it. Empty for the others."""


class RowView(msgspec.Struct, frozen=True, kw_only=True):
    """One operation: a cell per environment, a change per candidate (None where there is none)."""

    op: str
    cells: tuple[CellView, ...]
    changes: tuple[ChangeView | None, ...]
    noise: str
    """Largest end of the interval of the baseline against itself."""


class FamilyView(msgspec.Struct, frozen=True, kw_only=True):
    """The operations of one family in one phase."""

    family: str
    title: str
    rows: tuple[RowView, ...]


class FailureView(msgspec.Struct, frozen=True, kw_only=True):
    """Something that could not be built or measured."""

    environment: str
    op: str
    """Empty where the whole environment failed."""
    stage: str
    reason: str


class WarningView(msgspec.Struct, frozen=True, kw_only=True):
    """One warning and the comparisons that carry it."""

    text: str
    where: tuple[str, ...]


class ReproductionView(msgspec.Struct, frozen=True, kw_only=True):
    """What came of reproducing one finding without this program."""

    op: str
    candidate: str
    folder: str
    """Relative to the run folder."""
    finding: str
    programs: tuple[tuple[str, str, str, str], ...]
    """Name, what it does, ``shipped`` or ``not shipped``, and the sentence that says why."""
    notes: tuple[str, ...]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the renderers need."""

    title: str
    tool: str
    headline: str
    summary: tuple[tuple[str, str], ...]
    """Name and text, the lines under the headline."""
    environments: tuple[EnvironmentView, ...]
    baseline: str
    candidates: tuple[str, ...]
    """Short names of the environments that are compared with the baseline, in the order of the plan."""
    warm: tuple[FamilyView, ...]
    cold: tuple[FamilyView, ...]
    cold_differs: tuple[tuple[ChangeView, ChangeView], ...]
    """Pairs (cold, warm) where the cold pass tells something else than the warm ones."""
    predecessors: tuple[ChangeView, ...]
    twins: tuple[ChangeView, ...]
    undecided: tuple[ChangeView, ...]
    layers: tuple[LayersView, ...]
    """Findings that have been explained."""
    reproductions: tuple[ReproductionView, ...]
    """Findings that `investigate repro` was asked about."""
    controls: tuple[tuple[str, str], ...]
    failures: tuple[FailureView, ...]
    warnings: tuple[WarningView, ...]
    legend: tuple[str, ...]
    method: tuple[str, ...]
    objects: str
    """Whether ``sqlite3.o`` is the same everywhere; empty where nothing was compiled."""
    storage: str
    engine: tuple[tuple[str, str], ...]
    host: tuple[tuple[str, str], ...]
    run: tuple[tuple[str, str], ...]
    folder: str
    next_commands: tuple[tuple[str, str], ...]
    """What it is for, and the command."""
