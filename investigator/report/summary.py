"""summary.json: the result for programs. Stable and documented; the documentation is the fields below.

History: schema 1 is the first.

Percentages of change are changes in time per operation: +50 means half as slow again. A value that does not
exist is null; infinite or undefined numbers never appear.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from investigator import units
from investigator.analysis import Analysis, Comparison, PairKind, Verdict
from investigator.attribution.layers import Attribution
from investigator.build import AddonBuild, BuildFailure
from investigator.collector import CollectorFacts
from investigator.plan import Environment, Plan
from investigator.report.summary_layers import SummaryAttribution, summary_attribution
from investigator.report.view import HEADLINE_LIMIT, all_failures
from investigator.text import clean_text
from investigator.validate.shapes import Validation

SUMMARY_SCHEMA = 1


class SummaryCollections(msgspec.Struct, frozen=True, kw_only=True):
    """Collections of one kind that held up the main thread."""

    count: float | None
    """How many, in one warm lap of every operation."""
    pause_ns: float | None
    """Their pauses together, ns."""


class SummaryEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """One environment that was planned, whether it could be measured or not."""

    id: str
    """Identifier, e.g. ``node24.11.1+bsm12.11.1``; `comparisons` and `failures` refer to it."""
    label: str | None
    """The label the user gave (to the addon, where addons are compared), e.g. ``fix``."""
    node: str
    """Version of Node."""
    v8: str | None
    """Version of V8 as the binary reports it."""
    abi: str | None
    """``process.versions.modules``."""
    napi: str | None
    """Highest Node-API version."""
    addon: str | None
    """npm name of the addon, or ``node:sqlite``; null in ``js`` runs."""
    addon_version: str | None
    """Release of the addon; null where it is the Node build's own."""
    flavor: str | None
    """``source`` (compiled here) or ``prebuilt`` (the shipped binary)."""
    node_flags: tuple[str, ...]
    """Flags given to Node."""
    node_sha256: str
    """Digest of the ``node`` binary, hex."""
    binding_sha256: str | None
    """Digest of the addon's ``.node``, hex; null where the build failed."""
    sqlite3_object_sha256: str | None
    """Digest of ``sqlite3.o``, hex: equal digests are bit-identical SQLite. Null for a shipped binary."""
    heap_limit_bytes: int | None = None
    """Size that V8 lets the heap grow to; null where nothing was measured."""
    semi_space_bytes: int | None = None
    """Half of the young generation as a process begins with it."""
    semi_space_largest_bytes: int | None = None
    """The largest it was after any pass."""
    gc_accounting_ns: float | None = None
    """What observing adds to one collection, ns; part of every figure."""
    gc_operations: int = 0
    """Operations of which the next three are sums: one warm lap of every one, the mean over its laps."""
    gc_warm_ns: float | None = None
    """Wall time of those laps, ns."""
    gc_collections: dict[str, SummaryCollections] = {}
    """By kind: ``scavenge``, ``minor_mark_sweep``, ``mark_sweep_compact``, ``incremental``, ``weak``."""
    helper_cpu_ns: float | None = None
    """CPU time of all threads but the main one (collector and compiler threads), ns; null where unknown."""
    external_largest_bytes: int | None = None
    """Most memory outside of the heap that JavaScript objects held after any pass."""


class SummaryComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One operation, candidate against baseline."""

    op: str
    """Name of the operation."""
    family: str
    """``sqlite``, ``js``, ``boundary``, ``core`` or ``host``."""
    kind: PairKind
    """``baseline`` in `comparisons`; ``predecessor`` or ``twin`` in `other_comparisons`."""
    baseline: str
    """Identifier of the environment compared against."""
    candidate: str
    """Identifier of the environment that is judged."""
    ratio: float | None
    """Time per operation, candidate / baseline."""
    change_pct: float | None
    """Change in wall time per operation, percent."""
    ci_low_pct: float | None
    """Lower end of its interval, percent."""
    ci_high_pct: float | None
    """Upper end of its interval, percent."""
    confidence: float | None
    """Exact coverage of the interval for one look, e.g. 0.9844."""
    verdict: Verdict
    """``slower``, ``faster``, ``no_change``, ``undecided`` or ``invalid`` (another result was computed)."""
    finding: bool
    """Whether this is a finding: slower or faster by 5 % or more, the whole interval beyond 4 %."""
    below_layout_floor: bool
    """Whether it is slower or faster, but too small to be told from code placement."""
    rounds: int
    """Rounds the estimate rests on."""
    baseline_ns_per_op: float | None
    """Wall time per operation of the baseline, ns."""
    candidate_ns_per_op: float | None
    """Wall time per operation of the candidate, ns."""
    cpu_change_pct: float | None
    """Change in CPU time per operation (whole process), percent."""
    cpu_ci_low_pct: float | None
    """Lower end of its interval, percent."""
    cpu_ci_high_pct: float | None
    """Upper end of its interval, percent."""
    cold_change_pct: float | None
    """Change of the first, cold pass of a process, percent."""
    cold_ci_low_pct: float | None
    """Lower end of its interval, percent."""
    cold_ci_high_pct: float | None
    """Upper end of its interval, percent."""
    cold_verdict: Verdict | None
    """Verdict on the cold pass alone."""
    noise_floor_pct: float | None
    """Largest end of the interval of the baseline against itself, percent."""
    published_rule: str
    """``slower``, ``faster`` or ``within noise`` by best round against best round."""
    rounds_needed: int | None
    """For ``undecided``: further rounds that would probably decide; null where no affordable number would."""
    minutes_needed: float | None
    """For ``undecided``: minutes those rounds take."""
    warnings: tuple[str, ...]
    """What weakens this comparison, sentences."""


class SummaryControl(msgspec.Struct, frozen=True, kw_only=True):
    """One control."""

    text: str
    """One sentence for people."""
    values: dict[str, float | None]
    """Figures behind it; units in the keys."""


class SummaryFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Something that could not be built or measured."""

    environment: str
    """Identifier of the environment."""
    op: str | None
    """Name of the operation; null where the whole environment failed."""
    stage: str
    """``build``, ``load``, ``setup``, ``measure`` or ``checksum``."""
    reason: str
    """One sentence."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The file as a whole."""

    schema: int = SUMMARY_SCHEMA
    """Version of this format; a reader refuses a higher one."""
    kind: str = "summary"
    """Always ``summary``."""
    tool: str
    """Name and version of the tool that wrote it."""
    run_id: str
    """Name of the run folder."""
    command: str
    """``sqlite`` or ``js``."""
    axis: str = "node"
    """What differs between the environments: ``node`` (versions) or ``addon`` (addons on one Node)."""
    headline: str
    """The one sentence on top of every report."""
    baseline: str
    """Identifier of the baseline environment."""
    environments: tuple[SummaryEnvironment, ...]
    """In the order they were asked for."""
    comparisons: tuple[SummaryComparison, ...]
    """Candidates against the baseline: exactly one for each measured operation and candidate."""
    other_comparisons: tuple[SummaryComparison, ...]
    """Each version against its predecessor, and the baseline against itself; see `kind`."""
    attributions: tuple[SummaryAttribution, ...]
    """Layers of the findings that have been explained."""
    controls: dict[str, SummaryControl]
    """``host``, ``twin``, ``engine`` (pure JS): what did not depend on the addon."""
    failures: tuple[SummaryFailure, ...]
    """What could not be built or measured."""
    validation: Validation | None = None
    """The answer of `investigate validate`, as in validation.json; null for other runs."""


def summary(
    plan: Plan,
    analysis: Analysis,
    builds: Mapping[str, AddonBuild | BuildFailure],
    tool: str,
    attributions: Sequence[Attribution] = (),
    validation: Validation | None = None,
    collectors: Mapping[str, CollectorFacts] = {},
) -> Summary:
    """Compute summary.json; `builds` by environment identifier, empty in ``js`` runs."""
    return Summary(
        tool=clean_text(tool, 80),
        run_id=clean_text(plan.run_id, 200),
        command=plan.spec.command,
        axis=plan.spec.axis,
        headline=clean_text(analysis.headline, HEADLINE_LIMIT),
        baseline=clean_text(plan.baseline, 200),
        environments=tuple(
            _environment(e, builds.get(e.id), collectors.get(e.id, CollectorFacts()))
            for e in plan.environments
        ),
        comparisons=tuple(_comparisons(plan, analysis, ("baseline",))),
        other_comparisons=tuple(_comparisons(plan, analysis, ("predecessor", "twin"))),
        attributions=tuple(summary_attribution(found) for found in attributions),
        controls={
            control.name: SummaryControl(
                text=clean_text(control.text, 600),
                values={
                    clean_text(key, 80): units.finite(value) for key, value in sorted(control.values.items())
                },
            )
            for control in analysis.controls
        },
        failures=tuple(
            SummaryFailure(
                environment=clean_text(failure.environment, 200),
                op=None if failure.op is None else clean_text(failure.op, 200),
                stage=clean_text(failure.stage, 80),
                reason=clean_text(failure.reason, 2000),
            )
            for failure in all_failures(analysis, builds)
        ),
        validation=validation,
    )


def encode_summary(value: Summary) -> bytes:
    """Write it as indented JSON with a final newline, fields in the order documented above."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def _environment(
    environment: Environment, build: AddonBuild | BuildFailure | None, collector: CollectorFacts
) -> SummaryEnvironment:
    versions, addon = environment.node.versions, environment.addon
    built = build if isinstance(build, AddonBuild) else None
    return SummaryEnvironment(
        id=clean_text(environment.id, 200),
        label=None if environment.label is None else clean_text(environment.label, 200),
        node=clean_text(environment.node.version, 200),
        v8=_or_none(versions.get("v8")),
        abi=_or_none(versions.get("modules")),
        napi=_or_none(versions.get("napi")),
        addon=_or_none(addon.name if addon else None),
        addon_version=_or_none(addon.version if addon else None),
        flavor=environment.flavor if addon else None,
        node_flags=tuple(clean_text(flag, 200) for flag in environment.node_flags),
        node_sha256=clean_text(environment.node.node_sha256, 64),
        binding_sha256=_or_none(built.binding_sha256 if built else None),
        sqlite3_object_sha256=_or_none(built.sqlite3_object_sha256 if built else None),
        heap_limit_bytes=collector.heap_limit_bytes,
        semi_space_bytes=collector.semi_space_bytes,
        semi_space_largest_bytes=collector.semi_space_largest_bytes,
        gc_accounting_ns=units.finite(collector.gc_accounting_ns),
        gc_operations=collector.operations,
        gc_warm_ns=units.finite(collector.warm_ns),
        gc_collections={
            clean_text(found.kind, 40): SummaryCollections(
                count=units.finite(found.count), pause_ns=units.finite(found.pause_ns)
            )
            for found in collector.collections
        },
        helper_cpu_ns=units.finite(collector.helper_cpu_ns),
        external_largest_bytes=collector.external_largest_bytes,
    )


def _or_none(text: str | None) -> str | None:
    return clean_text(text, 200) if text else None


def _comparisons(plan: Plan, analysis: Analysis, kinds: tuple[PairKind, ...]) -> Iterator[SummaryComparison]:
    """Yield warm pairs with their cold partner, by kind, operation of the plan, environment of the plan."""
    operations = {operation.name: place for place, operation in enumerate(plan.operations)}
    environments = {environment.id: place for place, environment in enumerate(plan.environments)}
    times = {(cell.op, cell.environment): cell.ns_per_op for cell in analysis.cells}
    cold = {(p.kind, p.op, p.baseline, p.candidate): p for p in analysis.comparisons if p.phase == "cold"}
    warm = {
        (p.kind, p.op, p.baseline, p.candidate): p
        for p in analysis.comparisons
        if p.phase == "warm" and p.kind in kinds
    }

    def place(pair: Comparison) -> tuple[int, int, str, int, int]:
        last = len(operations)
        return (
            kinds.index(pair.kind),
            operations.get(pair.op, last),
            pair.op,
            environments.get(pair.candidate, len(environments)),
            environments.get(pair.baseline, len(environments)),
        )

    for pair in sorted(warm.values(), key=place):
        partner = cold.get((pair.kind, pair.op, pair.baseline, pair.candidate))
        yield _comparison(
            pair, partner, times.get((pair.op, pair.baseline)), times.get((pair.op, pair.candidate))
        )


def _comparison(
    pair: Comparison, cold: Comparison | None, baseline_ns: float | None, candidate_ns: float | None
) -> SummaryComparison:
    return SummaryComparison(
        op=clean_text(pair.op, 200),
        family=clean_text(pair.family, 80),
        kind=pair.kind,
        baseline=clean_text(pair.baseline, 200),
        candidate=clean_text(pair.candidate, 200),
        ratio=units.finite(pair.ratio),
        change_pct=units.finite(pair.wall.change_pct),
        ci_low_pct=units.finite(pair.wall.ci_low_pct),
        ci_high_pct=units.finite(pair.wall.ci_high_pct),
        confidence=units.finite(pair.wall.confidence),
        verdict=pair.verdict,
        finding=pair.finding,
        below_layout_floor=pair.below_layout_floor,
        rounds=pair.rounds,
        baseline_ns_per_op=units.finite(baseline_ns),
        candidate_ns_per_op=units.finite(candidate_ns),
        cpu_change_pct=units.finite(pair.cpu.change_pct),
        cpu_ci_low_pct=units.finite(pair.cpu.ci_low_pct),
        cpu_ci_high_pct=units.finite(pair.cpu.ci_high_pct),
        cold_change_pct=units.finite(cold.wall.change_pct) if cold else None,
        cold_ci_low_pct=units.finite(cold.wall.ci_low_pct) if cold else None,
        cold_ci_high_pct=units.finite(cold.wall.ci_high_pct) if cold else None,
        cold_verdict=cold.verdict if cold else None,
        noise_floor_pct=units.finite(pair.noise_floor_pct),
        published_rule=pair.published_rule,
        rounds_needed=pair.rounds_needed,
        minutes_needed=units.finite(pair.minutes_needed),
        warnings=tuple(clean_text(text, 600) for text in pair.warnings),
    )
