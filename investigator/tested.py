"""What the experiments on a finding say, from their records: offline."""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np

from investigator import measure
from investigator.arms import Arms, arms
from investigator.attribution.layers import Cause, Layer
from investigator.build import AddonBuild
from investigator.causes.ablation import ABLATION_SCHEMA, AblationReport
from investigator.causes.build import BuildComparison
from investigator.causes.changes import NodeChanges
from investigator.causes.effects import wall_by_round
from investigator.causes.shares import Share
from investigator.causes.source import (
    MIN_SHARE,
    SourceCause,
    SourceComparison,
    SourceRegion,
    keep_source_cause,
)
from investigator.causes.swap import moved_share
from investigator.plan import Environment, Plan
from investigator.records import read_table
from investigator.store import RunFolder

CAUSES_SCHEMA = 1
ONE_CPU = "one-cpu"
MOST_VERSIONS = 8


class SwapRun(msgspec.Struct, frozen=True, kw_only=True):
    """A swap that was measured, or the reason why it was not."""

    folder: str
    """In the nested folder of the finding."""
    regions: tuple[SourceRegion, ...]
    direction: Literal["old_on_new", "new_on_old"] | None = None
    environment: Environment | None = None
    build: AddonBuild | None = None
    reason: str = ""
    what: str = ""
    """Of a rebuild: what is taken from the baseline's build."""
    layer: Layer | None = None
    """Of a rebuild: the layer that it acts on, where that is clear."""


class CausesRecord(msgspec.Struct, frozen=True, kw_only=True):
    """causes.json."""

    source: SourceComparison
    builds: BuildComparison | None
    changes: NodeChanges
    swaps: tuple[SwapRun, ...]
    binary: SwapRun | None = None
    """The candidate's Node with the baseline's own binary, where that loads (Node-API)."""
    rebuilds: tuple[SwapRun, ...] = ()
    """The candidate built with the baseline's flags, or with its SQLite."""

    @property
    def to_measure(self) -> tuple[SwapRun, ...]:
        """Everything that has a build of its own to measure."""
        every = (*self.swaps, self.binary, *self.rebuilds)
        return tuple(s for s in every if s is not None and s.build is not None)


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked for behind one finding, and what was found."""

    causes: tuple[Cause, ...] = ()
    rejected: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """What else differs between the two sides."""
    warnings: tuple[str, ...] = ()


def tested(
    run: RunFolder, folder: RunFolder, op: str, pair: tuple[str, str], functions: Sequence[str]
) -> Tested:
    """Read the experiments of one finding; nothing where there were none.

    Args:
        run: the run.
        folder: the nested folder of the finding.
        op: its operation.
        pair: identifiers of baseline and candidate.
        functions: symbols of the addon on the operation's profile.
    """
    if not (folder.path / "causes.json").exists():
        return Tested()
    record = folder.read_json("causes.json", "causes", CAUSES_SCHEMA, CausesRecord)
    causes: list[Cause] = []
    rejected = list(_nothing_found(record))
    for swap in record.swaps:
        judged = _judged(folder, swap, op, pair, functions)
        causes += _source_cause(judged)
        rejected += [_rejected(cause, swap) for cause in judged if not cause.kept]
    if record.binary is not None:
        causes += _binary_cause(folder, record.binary, op, pair)
        rejected += _binary_in_vain(folder, record.binary, op, pair)
    for rebuild in record.rebuilds:
        moved = _moved(folder, rebuild, op, pair)
        causes += _rebuild_cause(rebuild, moved)
        rejected += _rebuilt_in_vain(rebuild, moved)
    for report in _ablations(run, op, pair[1]):
        causes += _flag_causes(report)
        rejected += _flags_in_vain(report)
    return Tested(
        causes=tuple(causes),
        rejected=tuple(rejected),
        changed=tuple(_changed(record)),
        warnings=(*_one_cpu(folder, op, pair), *_not_rebuilt(record)),
    )


def _nothing_found(record: CausesRecord) -> Iterator[str]:
    if record.builds is None and record.source.reason is not None:
        return  # no addon on both sides
    if record.source.reason is not None:
        yield f"the addon's own source could not be compared: {record.source.reason}"
    elif not record.source.regions:
        yield "the addon's own source: both sides compile the same code"
    elif not record.swaps:
        places = ", ".join(region.where for region in record.source.regions[:3])
        yield f"the addon's own source differs ({places}), but not in a function on this operation's profile"
    if record.builds is not None:
        suspects = record.builds.suspects
        if record.builds.sqlite_object_equal:
            yield "SQLite: sqlite3.o is bit-identical on both sides"
        if record.builds.binary_equal:
            yield "the build: the addon's binary is bit-identical on both sides"
        elif not suspects:
            yield f"the build: same compiler and flags{_but_language(record.builds)}"


def _but_language(builds: BuildComparison) -> str:
    """Flags that differ without deciding machine code by themselves, such as the language's version."""
    flags = [d for d in builds.differences if d.what == "flag" and d.relevance == "language"]
    sides = dict.fromkeys(f"{d.baseline or 'none'} -> {d.candidate or 'none'}" for d in flags)
    return f", but for {', '.join(sides)}" if sides else ""


def _judged(
    folder: RunFolder, swap: SwapRun, op: str, pair: tuple[str, str], functions: Sequence[str]
) -> tuple[SourceCause, ...]:
    return keep_source_cause(swap.regions, functions, _moved(folder, swap, op, pair))


def _moved(folder: RunFolder, swap: SwapRun, op: str, pair: tuple[str, str]) -> Share | None:
    table = _arms(RunFolder(folder.path / swap.folder))
    if table is None or swap.environment is None or swap.direction is None:
        return None
    return moved_share(table, op, *pair, swap.environment.id, swap.direction)


def _binary_cause(folder: RunFolder, swap: SwapRun, op: str, pair: tuple[str, str]) -> Iterator[Cause]:
    moved = _moved(folder, swap, op, pair)
    if moved is not None and moved.at_least(MIN_SHARE):
        yield Cause(
            kind="build",
            name="the binary",
            text="the addon's binary: the baseline's own one, on the candidate's Node, moves "
            f"{moved.text} of the change",
            confirmed=True,
            moved=moved.estimate,
            moved_low=moved.low,
            moved_high=moved.high,
        )


def _binary_in_vain(folder: RunFolder, swap: SwapRun, op: str, pair: tuple[str, str]) -> Iterator[str]:
    moved = _moved(folder, swap, op, pair)
    if moved is not None and not moved.at_least(MIN_SHARE):
        yield f"the addon's binary: one Node-API binary on both versions moves {moved.text} of the change"


def _rebuild_cause(rebuild: SwapRun, moved: Share | None) -> Iterator[Cause]:
    if moved is not None and moved.at_least(MIN_SHARE):
        yield Cause(
            kind="build",
            name=rebuild.what,
            layer=rebuild.layer,
            text=f"the build: {_taken(rebuild)} moves {moved.text} of the change",
            confirmed=True,
            moved=moved.estimate,
            moved_low=moved.low,
            moved_high=moved.high,
        )


def _rebuilt_in_vain(rebuild: SwapRun, moved: Share | None) -> Iterator[str]:
    if moved is not None and not moved.at_least(MIN_SHARE):
        yield f"the build: {_taken(rebuild)} moves {moved.text} of the change"


def _taken(rebuild: SwapRun) -> str:
    return f"{rebuild.what}, taken from the baseline's build into the candidate's,"


def _not_rebuilt(record: CausesRecord) -> Iterator[str]:
    """A difference that could be the cause and that no experiment has tested is told as open."""
    for rebuild in record.rebuilds:
        if rebuild.build is None:
            yield f"the build differs in {rebuild.what}; not tested: {rebuild.reason}"


def _arms(folder: RunFolder) -> Arms | None:
    """Process values of a nested run; None where it has no round."""
    records = measure.read_rounds(folder)
    if not records:
        return None
    plan = folder.read_json("experiment.json", "experiment", CAUSES_SCHEMA, Plan)
    return arms(read_table(folder, plan, records))


def _source_cause(judged: Sequence[SourceCause]) -> Iterator[Cause]:
    """One cause for all regions that one swap exchanges, the longest first."""
    kept = sorted((cause for cause in judged if cause.kept), key=lambda cause: -_lines(cause.region))
    if not kept:
        return
    moved = kept[0].moved
    places = "; ".join(f"{_where(cause.region)} ({', '.join(cause.region.functions[:3])})" for cause in kept)
    conditions = dict.fromkeys(cause.region.condition for cause in kept if cause.region.condition)
    selected = f", selected by {' and '.join(f'`{text}`' for text in conditions)}" if conditions else ""
    yield Cause(
        kind="addon_source",
        name=_where(kept[0].region),
        layer="boundary",
        text=f"the addon's own source: {places}{selected}; {kept[0].why}",
        confirmed=True,
        moved=None if moved is None else moved.estimate,
        moved_low=None if moved is None else moved.low,
        moved_high=None if moved is None else moved.high,
    )


def _where(region: SourceRegion) -> str:
    place = region.candidate or region.baseline
    return region.where if place is None else f"{place.file}:{place.first_line}-{place.last_line}"


def _lines(region: SourceRegion) -> int:
    place = region.candidate or region.baseline
    return 0 if place is None else place.last_line - place.first_line


def _rejected(judged: SourceCause, swap: SwapRun) -> str:
    more = f" ({swap.reason})" if swap.reason else ""
    return f"the addon's own source at {judged.region.where}: {judged.why}{more}"


def _ablations(run: RunFolder, op: str, candidate: str) -> Iterator[AblationReport]:
    for path in sorted(run.path.glob("ablation/*/ablation-result.json")):
        nested = RunFolder(path.parent)
        report = nested.read_json("ablation-result.json", "ablation-result", ABLATION_SCHEMA, AblationReport)
        if (report.op, report.candidate) == (op, candidate):
            yield report


def _flag_causes(report: AblationReport) -> Iterator[Cause]:
    for result in report.closing:
        closed = result.closed
        ablation = result.ablation
        yield Cause(
            kind="v8_flag",
            name=ablation.name,
            layer="gc" if ablation.kind == "gc" else "engine",
            text=f"{ablation.name} ({ablation.subsystem}): closes "
            f"{'' if closed is None else closed.text} of the gap"
            f"{f'; {ablation.note}' if ablation.note else ''}",
            confirmed=True,
            moved=None if closed is None else closed.estimate,
            moved_low=None if closed is None else closed.low,
            moved_high=None if closed is None else closed.high,
        )


def _flags_in_vain(report: AblationReport) -> Iterator[str]:
    if report.failure is not None:
        yield f"ablation failed: {report.failure}"
        return
    others = [r for r in report.results if not r.closes and r.ablation.origin != "control" and r.closed]
    if others:
        shown = ", ".join(f"{r.ablation.name} {r.closed.text if r.closed else ''}" for r in others[:4])
        yield f"V8 flags that close less than half of the gap: {shown}"


def _changed(record: CausesRecord) -> Iterator[str]:
    changes = record.changes
    if changes.same_binary:
        yield "both sides run the same node binary"
    for version in changes.versions[:MOST_VERSIONS]:
        yield f"{version.name} {version.baseline or 'none'} -> {version.candidate or 'none'}"
    for default in changes.defaults[:MOST_VERSIONS]:
        yield f"V8 default {default.name} {default.baseline} -> {default.candidate}"
    decisive = [variable for variable in changes.config if variable.relevance == "code"]
    for variable in decisive[:MOST_VERSIONS]:
        yield (
            f"process.config {variable.subject.removeprefix('variables.')} "
            f"{variable.baseline or 'none'} -> {variable.candidate or 'none'}"
        )
    for difference in () if record.builds is None else record.builds.suspects[:MOST_VERSIONS]:
        sides = f"{difference.baseline} -> {difference.candidate}"
        yield f"build: {difference.what} of {difference.subject} {sides}"


def _one_cpu(folder: RunFolder, op: str, pair: tuple[str, str]) -> Iterator[str]:
    """Collector and compiler use other threads: the change with one processor beside that with all."""
    table = _arms(RunFolder(folder.path / ONE_CPU))
    if table is None:
        return
    low, high = (wall_by_round(table, op, side) for side in pair)
    effect = np.nanmedian(np.log(high / low)) if np.isfinite(high / low).any() else np.nan
    if np.isfinite(effect):
        yield f"with one processor for all threads the change is {np.expm1(effect) * 100:+.0f} %"
