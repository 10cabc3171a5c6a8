"""The one neutral view of a run, computed once from plan, analysis and facts.

The renderers decide where a text stands, never what it says.
"""

from collections.abc import Iterator, Mapping, Sequence

from investigator import units
from investigator.analysis import Analysis, CellSummary, Comparison, Interval, PairKind
from investigator.arms import Phase
from investigator.attribution.layers import Attribution
from investigator.build import AddonBuild, BuildFailure
from investigator.collector import CollectorFacts
from investigator.naming import short_names
from investigator.plan import Environment, Failure, Plan
from investigator.report import wording
from investigator.report.layers_view import layers_views
from investigator.report.shapes import (
    CellView,
    ChangeView,
    CollectedView,
    EnvironmentView,
    FailureView,
    FamilyView,
    ReportFacts,
    ReproductionView,
    RowView,
    View,
    WarningView,
)
from investigator.repro.manifest import FOLDER, Manifest, folder_name
from investigator.text import clean_text, short_text

OPERATION_NAME_LIMIT = 64
HEADLINE_LIMIT = 4000
"""A sentence for each candidate, of which there can be many."""


def build_view(
    plan: Plan,
    analysis: Analysis,
    facts: ReportFacts,
    attributions: Sequence[Attribution] = (),
    reproductions: Sequence[Manifest] = (),
) -> View:
    """Compute the view. Pure; environments come in the order of the plan, operations too.

    A predecessor that is the baseline is in the main table and not told twice.
    """
    names = short_names(plan.environments, plan.spec.axis)
    baseline = _short(names, plan.baseline)
    failures = all_failures(analysis, facts.builds)
    warm = tuple(_changes(analysis, names, "baseline", "warm"))
    return View(
        title=clean_text(f"investigate {plan.spec.command}: run {plan.run_id}", 200),
        tool=clean_text(facts.tool, 80),
        headline=clean_text(analysis.headline, HEADLINE_LIMIT),
        summary=wording.summary_lines(plan, analysis, facts, names),
        environments=tuple(
            _environment(plan, environment, names, facts) for environment in plan.environments
        ),
        baseline=baseline,
        candidates=tuple(names[environment.id] for environment in plan.candidates),
        warm=_families(plan, analysis, names, failures, "warm"),
        cold=_families(plan, analysis, names, failures, "cold"),
        cold_differs=tuple(_cold_differs(analysis, names)),
        predecessors=tuple(
            change
            for change in _changes(analysis, names, "predecessor", "warm")
            if change.against != baseline
        ),
        twins=tuple(_changes(analysis, names, "twin", "warm")),
        undecided=tuple(change for change in warm if change.remedy),
        layers=layers_views(attributions, names),
        reproductions=tuple(_reproduction(manifest, names) for manifest in reproductions),
        controls=tuple((control.name, clean_text(control.text, 600)) for control in analysis.controls),
        failures=tuple(_failure(failure, names) for failure in failures),
        warnings=_warnings(analysis, names),
        legend=wording.legend(plan, baseline),
        method=wording.method(plan, analysis),
        objects=wording.objects(facts.builds),
        storage=wording.storage(plan, facts),
        engine=tuple(flat_facts(facts.engine)),
        host=tuple(flat_facts(facts.host)),
        run=tuple(flat_facts(facts.run)),
        folder=clean_text(facts.folder, 400),
        next_commands=tuple(
            wording.next_commands(plan, analysis, facts, {(m.op, m.candidate) for m in reproductions})
        ),
    )


def all_failures(analysis: Analysis, builds: Mapping[str, AddonBuild | BuildFailure]) -> tuple[Failure, ...]:
    """List the failures of the analysis and those of builds that it does not mention."""
    known = {failure.environment for failure in analysis.failures if failure.op is None}
    missing = tuple(
        Failure(environment=environment, op=None, stage="build", reason=build.reason)
        for environment, build in builds.items()
        if isinstance(build, BuildFailure) and environment not in known
    )
    return (*analysis.failures, *missing)


def flat_facts(facts: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and text of each fact; nested mappings get dotted names, sequences commas."""
    for key, value in facts.items():
        name = clean_text(f"{prefix}{key}", 80)
        if isinstance(value, Mapping):
            yield from flat_facts(value, f"{name}.")
        elif isinstance(value, list | tuple | set | frozenset):
            yield name, clean_text(", ".join(str(item) for item in value), 300)
        elif isinstance(value, int | float) and name.endswith("_bytes"):
            yield name, units.format_bytes(value)
        elif isinstance(value, float):
            yield name, f"{value:.4g}"
        elif value is not None and value != "":
            yield name, clean_text(str(value), 300)


def _short(names: Mapping[str, str], identifier: str) -> str:
    return names.get(identifier, short_text(identifier, 80))


def _environment(
    plan: Plan,
    environment: Environment,
    names: Mapping[str, str],
    facts: ReportFacts,
) -> EnvironmentView:
    build = facts.builds.get(environment.id)
    collector = facts.collectors.get(environment.id, CollectorFacts())
    built = build if isinstance(build, AddonBuild) else None
    versions = environment.node.versions
    return EnvironmentView(
        short=names[environment.id],
        id=clean_text(environment.id, 120),
        baseline=environment.id == plan.baseline,
        node=clean_text(environment.node.version, 80),
        v8=clean_text(versions.get("v8", ""), 80),
        abi=clean_text(versions.get("modules", ""), 80),
        napi=clean_text(versions.get("napi", ""), 80),
        addon=wording.addon_text(environment),
        flavor="" if environment.addon is None else environment.flavor,
        node_flags=clean_text(" ".join(environment.node_flags), 300),
        node_sha256=clean_text(environment.node.node_sha256, 64),
        binding_sha256=clean_text(built.binding_sha256, 64) if built else "",
        sqlite3_object_sha256=clean_text(built.sqlite3_object_sha256 or "", 64) if built else "",
        compiler=clean_text(built.compiler, 200) if built else "",
        flags=tuple(
            (clean_text(source, 120), clean_text(flags, 4000)) for source, flags in built.flags.items()
        )
        if built
        else (),
        heap_limit=units.format_bytes(collector.heap_limit_bytes),
        semi_space=f"{units.format_bytes(collector.semi_space_bytes)} to "
        f"{units.format_bytes(collector.semi_space_largest_bytes)}"
        if collector.semi_space_bytes is not None
        else units.MISSING,
        # Zero is a difference of quartiles that chance made negative.
        accounting="none to be measured"
        if collector.gc_accounting_ns == 0
        else units.format_time(collector.gc_accounting_ns),
        collected=_collected(collector),
    )


def _collected(collector: CollectorFacts) -> CollectedView:
    pauses_ns = sum(found.pause_ns for found in collector.collections)
    warm_ns = collector.warm_ns
    return CollectedView(
        operations=f"{collector.operations:,}" if collector.operations else units.MISSING,
        kinds={
            clean_text(found.kind, 40): f"{found.count:.3g}, {units.format_time(found.pause_ns)}"
            for found in collector.collections
        },
        pauses=f"{units.format_time(pauses_ns)}, {_share(pauses_ns, warm_ns)}" if warm_ns else units.MISSING,
        helpers=f"{units.format_time(collector.helper_cpu_ns)}, {_share(collector.helper_cpu_ns, warm_ns)}"
        if warm_ns and collector.helper_cpu_ns is not None
        else units.MISSING,
        external=units.format_bytes(collector.external_largest_bytes),
    )


def _share(part_ns: float, whole_ns: float) -> str:
    return units.format_percent(100.0 * part_ns / whole_ns, signed=False)


def _families(
    plan: Plan,
    analysis: Analysis,
    names: Mapping[str, str],
    failures: Sequence[Failure],
    phase: Phase,
) -> tuple[FamilyView, ...]:
    family_of: dict[str, str] = {operation.name: operation.family for operation in plan.operations}
    for pair in analysis.comparisons:
        family_of.setdefault(pair.op, pair.family)
    for cell in analysis.cells:
        if cell.family != "host":  # a control, told among the controls
            family_of.setdefault(cell.op, cell.family)
    cells = {(cell.op, cell.environment): cell for cell in analysis.cells}
    pairs = {(pair.op, pair.candidate): pair for pair in analysis.pairs(phase)}
    if phase == "cold" and not pairs:
        return ()
    failed = {(failure.environment, failure.op) for failure in failures}

    def row(op: str) -> RowView:
        own = [pairs.get((op, environment.id)) for environment in plan.candidates]
        return RowView(
            op=short_text(op, OPERATION_NAME_LIMIT),
            cells=tuple(
                _cell(
                    cells.get((op, environment.id)),
                    phase,
                    failed={(environment.id, op), (environment.id, None)} & failed != set(),
                )
                for environment in plan.environments
            ),
            changes=tuple(None if pair is None else change_view(pair, names) for pair in own),
            noise=units.format_percent(
                max((pair.noise_floor_pct for pair in own if pair is not None), default=None), signed=False
            ),
        )

    return tuple(
        FamilyView(family=short_text(family, 40), title=wording.family_title(family), rows=rows)
        for family in wording.family_order(family_of.values())
        if (rows := tuple(row(op) for op in family_of if family_of[op] == family))
    )


def _cell(cell: CellSummary | None, phase: Phase, *, failed: bool) -> CellView:
    if cell is None:
        return CellView(rate="failed" if failed else units.MISSING, time="")
    if phase == "cold":
        cold_ns = units.finite(cell.cold_ns_per_op)
        return CellView(
            rate=units.format_rate(1e9 / cold_ns if cold_ns else None), time=units.format_time(cold_ns)
        )
    return CellView(
        rate=units.format_rate(cell.ops_per_s),
        time=units.format_time(cell.ns_per_op),
        best=units.format_time(cell.best_ns_per_op),
        spread=units.format_percent(cell.spread_pct, signed=False),
        cpu=units.format_time(cell.cpu_ns_per_op),
        gc=units.format_time(cell.gc_ns_per_op),
        rounds=f"{cell.rounds:,}",
        disturbed=f"{cell.disturbed_passes:,} of {cell.passes:,}",
    )


def change_view(pair: Comparison, names: Mapping[str, str]) -> ChangeView:
    """Put one comparison into words."""
    return ChangeView(
        op=short_text(pair.op, OPERATION_NAME_LIMIT),
        candidate=_short(names, pair.candidate),
        against=_short(names, pair.baseline),
        change=units.format_percent(pair.wall.change_pct),
        interval=units.format_interval(pair.wall.ci_low_pct, pair.wall.ci_high_pct),
        confidence=units.format_percent(100 * pair.wall.confidence, signed=False),
        cpu_change=units.format_percent(pair.cpu.change_pct),
        cpu_interval=units.format_interval(pair.cpu.ci_low_pct, pair.cpu.ci_high_pct),
        verdict=wording.VERDICT_WORDS[pair.verdict],
        mark=wording.FINDING_MARK if pair.finding else wording.FLOOR_MARK if pair.below_layout_floor else "",
        published=pair.published_rule,
        remedy=wording.remedy(pair),
    )


def _changes(
    analysis: Analysis, names: Mapping[str, str], kind: PairKind, phase: Phase
) -> Iterator[ChangeView]:
    for pair in analysis.comparisons:
        if pair.kind == kind and pair.phase == phase:
            yield change_view(pair, names)


def _cold_differs(analysis: Analysis, names: Mapping[str, str]) -> Iterator[tuple[ChangeView, ChangeView]]:
    warm = {(pair.op, pair.candidate): pair for pair in analysis.pairs()}
    for cold in analysis.pairs("cold"):
        partner = warm.get((cold.op, cold.candidate))
        if partner is not None and tells_more(cold, partner):
            yield change_view(cold, names), change_view(partner, names)


def tells_more(cold: Comparison, warm: Comparison) -> bool:
    """Whether the cold pass contradicts the warm ones: another decided verdict, or a far larger effect."""
    flags = {"slower", "faster"}
    if not {cold.verdict, warm.verdict} & flags or cold.verdict in {"undecided", "invalid"}:
        return False
    if cold.verdict != warm.verdict:
        return True
    larger, smaller = sorted((abs(cold.wall.change_pct), abs(warm.wall.change_pct)), reverse=True)
    return larger > 2 * smaller and not _overlap(cold.wall, warm.wall)


def _overlap(one: Interval, other: Interval) -> bool:
    return one.ci_low_pct <= other.ci_high_pct and other.ci_low_pct <= one.ci_high_pct


def _reproduction(manifest: Manifest, names: Mapping[str, str]) -> ReproductionView:
    return ReproductionView(
        op=short_text(manifest.op, OPERATION_NAME_LIMIT),
        candidate=_short(names, manifest.candidate),
        folder=f"{FOLDER}/{folder_name(manifest.op, manifest.candidate)}",
        finding=f"{units.format_percent(manifest.change_pct)} "
        f"[{units.format_interval(manifest.ci_low_pct, manifest.ci_high_pct)}]",
        programs=tuple(
            (
                clean_text(program.name, 60),
                clean_text(program.title, 200),
                "shipped" if program.shipped else "not shipped",
                clean_text(program.reason, 400),
            )
            for program in manifest.programs
        ),
        notes=tuple(clean_text(note, 400) for note in (*manifest.needs, *manifest.notes)),
    )


def _failure(failure: Failure, names: Mapping[str, str]) -> FailureView:
    return FailureView(
        environment=_short(names, failure.environment),
        op="" if failure.op is None else short_text(failure.op, OPERATION_NAME_LIMIT),
        stage=clean_text(failure.stage, 40),
        reason=clean_text(failure.reason, 600),
    )


def _warnings(analysis: Analysis, names: Mapping[str, str]) -> tuple[WarningView, ...]:
    where: dict[str, list[str]] = {}
    for pair in analysis.comparisons:
        for text in pair.warnings:
            place = f"{short_text(pair.op, OPERATION_NAME_LIMIT)} {_short(names, pair.candidate)}"
            places = where.setdefault(clean_text(text, 400), [])
            place += " (cold)" if pair.phase == "cold" else ""
            if place not in places:
                places.append(place)
    return tuple(WarningView(text=text, where=tuple(places)) for text, places in where.items())
