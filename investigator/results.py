"""Run folder to verdicts and reports: offline, from the raw records alone, as often as one likes."""

import io
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pandas as pd

from investigator import host, measure, samples
from investigator.analysis import ANALYSIS_SCHEMA, Analysis
from investigator.arms import arms
from investigator.attributed import attributions, explained_table, export_profiles, profile_sides
from investigator.attribution.findings import published
from investigator.attribution.layers import ATTRIBUTION_SCHEMA, Attribution, Attributions
from investigator.build import AddonBuild, BuildFailure
from investigator.collector import CollectorFacts, accounting_share, collector_facts
from investigator.errors import StoredFileError
from investigator.invoke import read_events
from investigator.measure import Calibration, RoundRecord
from investigator.nodes.platform import PlatformFacts
from investigator.plan import Plan
from investigator.prepare import PLAN_SCHEMA, StoredPlan
from investigator.protocol import Hello
from investigator.records import analyse_table, read_table
from investigator.report import junit, markdown
from investigator.report.commands import command_line
from investigator.report.page import page
from investigator.report.page.figures import Evidence, Figures, figures
from investigator.report.shapes import ReportFacts, View
from investigator.report.summary import SUMMARY_SCHEMA, Summary, encode_summary, summary
from investigator.report.terminal import TerminalReport
from investigator.report.validation import comment, step_summary
from investigator.report.validation import section as validation_section
from investigator.report.validation_terminal import ValidationReport
from investigator.report.view import build_view
from investigator.repro.manifest import Manifest, read_manifests
from investigator.spec import with_patch, with_paths
from investigator.store import TOOL, RunFolder, read_stored
from investigator.text import clean_text, safe_document
from investigator.validate.judge import judge_fix
from investigator.validate.shapes import VALIDATION_SCHEMA, Validation

RUN_SCHEMA = 1


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """run.json: where, when and on what it ran; names no path of the machine."""

    run_id: str
    started_at: str
    """ISO 8601, UTC."""
    host: host.HostFacts
    engine: dict[str, str]
    fixtures_sha256: str
    mailbox_sha256: str | None
    host_program_sha256: str | None
    workloads_sha256: dict[str, str]
    addon_versions: dict[str, dict[str, str]] = {}
    """What the libraries themselves answered, by environment: SQLite and cipher versions."""
    collectors: dict[str, CollectorFacts] = {}
    """Heap limit, young generation and cost of accounting, by environment."""
    gc_accounting_share: float | None = None
    """Largest share of the warm time of an operation that accounting for its collections took."""
    measuring_s: float | None = None
    """Length of all finished rounds, without the calibration."""
    timed_share: float | None = None
    """Share of the rounds that lay inside timed passes, cold ones included."""
    harness_cpu_share: float | None = None
    """CPU time of this program over the length of the measuring stage."""
    platform: PlatformFacts | None = None
    """What a measured process sees. None in older runs, and where Node did not answer."""
    node_config: dict[str, dict[str, str]] = {}
    """``process.config`` of each environment's Node, flat: ``variables.v8_enable_sandbox`` -> ``0``. Empty in
    older runs. Places of the machine are left out."""


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """A run with everything that reports need."""

    folder: RunFolder
    stored: StoredPlan
    record: RunRecord
    analysis: Analysis
    """With explained findings as the explain phase saw them."""
    screen: Analysis
    """As the screen alone saw it: what is explained is chosen by it."""
    attributions: tuple[Attribution, ...] = ()
    reproductions: tuple[Manifest, ...] = ()
    """What `investigate repro` left."""
    table: pd.DataFrame
    """All passes of the screen: the rows of measurements.csv."""
    validation: Validation | None = None
    """The answer of `investigate validate`; None for other runs."""


def regenerate(folder: RunFolder, *, write: bool, draw: bool = True) -> Finished:
    """Compute analysis, tables and reports anew from the raw records of a run, and store them if wanted.

    Args:
        folder: the run.
        write: store everything that can be made again.
        draw: report.html as well, which takes some seconds.

    Raises:
        StoredFileError: the run has no plan or calibration yet, lost its rounds, or a record is damaged.
    """
    stored = folder.read_json("plan.json", "plan", PLAN_SCHEMA, StoredPlan)
    record = folder.read_json("run.json", "run", RUN_SCHEMA, RunRecord)
    calibration = folder.read_json("calibration.json", "calibration", measure.CALIBRATION_SCHEMA, Calibration)
    records = measure.read_rounds(folder)
    table = read_table(folder, stored.plan, records)
    if not records and (folder.path / "summary.json").exists() and not calibration.failures:
        raise StoredFileError(
            f"{folder.raw} has no finished round although the run has results; restore it, or read "
            f"{folder.path / 'report.md'}."
        )
    screen = analyse_table(stored.plan, calibration, records, table)
    found = attributions(folder, screen)
    analysis = published(stored.plan, screen, found)
    # Arms of a million passes take a second: only a run that asks for this answer pays for them.
    fixed = stored.plan.spec.fix is not None
    validation = judge_fix(stored.plan, arms(table), screen) if fixed else None
    if validation is not None:
        analysis = msgspec.structs.replace(analysis, headline=validation.headline)
    finished = Finished(
        folder=folder,
        stored=stored,
        record=record,
        analysis=analysis,
        screen=screen,
        attributions=found,
        reproductions=read_manifests(folder),
        table=table,
        validation=validation,
    )
    if write:
        write_reports(finished, draw=draw)
    return finished


def stored_text(folder: RunFolder, *, json: bool) -> str | None:
    """What a dossier without raw records says: its summary or its report; None with records.

    Raises:
        StoredFileError: it has neither, or what it has is damaged or newer than this tool.
    """
    # A fix that does not build, or does other work, has its answer without a round.
    judged = folder.raw.is_dir() and (folder.path / "validation.json").exists()
    if (folder.path / "plan.json").exists() and (folder.finished_rounds() or judged):
        return None
    path = folder.path / ("summary.json" if json else "report.md")
    if not path.exists():
        raise StoredFileError(
            f"{folder.path} has no finished round and no {path.name}; go on with `investigate resume`."
        )
    if json:
        folder.read_json(path.name, "summary", SUMMARY_SCHEMA, Summary)
    try:
        # A dossier comes from anybody, and this goes to a terminal.
        return safe_document(read_stored(path).decode())
    except UnicodeDecodeError as error:
        raise StoredFileError(f"{path} is damaged: it is no UTF-8 text; restore it.") from error


def write_reports(finished: Finished, *, draw: bool = True) -> None:
    """Write everything that can be made again: table, analysis, summary, reports."""
    folder = finished.folder
    text = io.StringIO()
    samples.to_csv(finished.table, text)
    folder.write("measurements.csv", text.getvalue().encode())
    folder.write_json("analysis.json", "analysis", ANALYSIS_SCHEMA, finished.analysis)
    if finished.attributions:
        stored = Attributions(attributions=finished.attributions)
        folder.write_json("attribution.json", "attribution", ATTRIBUTION_SCHEMA, stored)
        export_profiles(folder, finished.attributions)
    folder.write("summary.json", summary_text(finished).encode())
    folder.write("report.md", markdown_report(finished).encode())
    if finished.validation is not None:
        _write_validation(finished, finished.validation)
    if draw:
        folder.write("report.html", _page(finished).encode())


def _write_validation(finished: Finished, validation: Validation) -> None:
    """Write the answer for programs, for an issue, for GitHub Actions and for other CI systems."""
    folder, record = finished.folder, finished.record
    folder.write_json("validation.json", "validation", VALIDATION_SCHEMA, validation)
    # For strangers: no place of this machine.
    shared = with_paths(finished.stored.plan.spec, lambda name: Path(name).name)
    again = command_line(with_patch(shared, lambda name: (shared.fix and shared.fix.name) or name))
    where = f"{record.host.cpu_model}, {record.host.distribution}"
    folder.write("comment.md", comment(validation, TOOL, again, where).encode())
    folder.write("step-summary.md", step_summary(validation).encode())
    xml = junit.render(
        validation,
        run_id=record.run_id,
        started_at=record.started_at,
        measuring_s=sum(r.elapsed_s for r in measure.read_rounds(folder)),
    )
    folder.write("junit.xml", xml)


def _page(finished: Finished) -> str:
    try:
        return html_report(finished)
    except Exception as error:  # whatever it is: hours of measuring do not end in a traceback over a picture
        return page.without_figures(_view(finished), clean_text(str(error) or type(error).__name__, 300))


def summary_text(finished: Finished) -> str:
    """The text of summary.json."""
    stored = finished.stored
    builds: dict[str, AddonBuild | BuildFailure] = {**stored.builds, **stored.build_failures}
    text = summary(
        stored.plan,
        finished.analysis,
        builds,
        TOOL,
        finished.attributions,
        finished.validation,
        finished.record.collectors,
    )
    return encode_summary(text).decode()


def markdown_report(finished: Finished) -> str:
    """The text of report.md."""
    answer = () if finished.validation is None else validation_section(finished.validation)
    return markdown.render(_view(finished), answer)


def run_figures(finished: Finished) -> Figures:
    """All plots of a run, not drawn yet."""
    return figures(
        finished.stored.plan,
        finished.analysis,
        arms(finished.table),
        finished.attributions,
        lambda found: Evidence(
            arms=arms(explained_table(finished.folder, found)),
            profiles=profile_sides(finished.folder, found),
        ),
    )


def html_report(finished: Finished) -> str:
    """The text of report.html."""
    return page.render(_view(finished), run_figures(finished), finished.validation)


def terminal_report(finished: Finished) -> TerminalReport | ValidationReport:
    """What the console prints at the end."""
    if finished.validation is not None:
        return ValidationReport(finished.validation, _shown(finished.folder.path))
    return TerminalReport(_view(finished))


def _view(finished: Finished) -> View:
    record = msgspec.to_builtins(finished.record)
    host_facts, engine_facts = record.pop("host"), record.pop("engine")
    record.pop("node_config")  # hundreds of variables; the issue texts tell those that differ
    record.pop("collectors")
    return build_view(
        finished.stored.plan,
        finished.analysis,
        ReportFacts(
            tool=TOOL,
            folder=_shown(finished.folder.path),
            engine=engine_facts,
            host=host_facts,
            run=record,
            builds={**finished.stored.builds, **finished.stored.build_failures},
            collectors=finished.record.collectors,
        ),
        finished.attributions,
        finished.reproductions,
    )


def _shown(path: Path) -> str:
    """A path as the user would type it; never an absolute one of this machine where a relative one does."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return path.name


def with_costs(record: RunRecord, folder: RunFolder, plan: Plan, harness_cpu_share: float) -> RunRecord:
    """Add what the measuring itself cost; `harness_cpu_share` is of this process, of its own rounds."""
    records = measure.read_rounds(folder)
    table = read_table(folder, plan, records)
    rounds_s = sum(r.elapsed_s for r in records)
    calibration = folder.read_json("calibration.json", "calibration", measure.CALIBRATION_SCHEMA, Calibration)
    collectors = collector_facts(folder, calibration, records)
    share = accounting_share(collectors, table)
    return msgspec.structs.replace(
        record,
        addon_versions=_library_versions(folder, records),
        collectors=collectors,
        gc_accounting_share=None if share is None else round(share, 6),
        measuring_s=round(rounds_s, 1),
        timed_share=round(float(table["wall_ns"].sum()) / 1e9 / rounds_s, 3) if rounds_s else None,
        harness_cpu_share=round(harness_cpu_share, 4),
    )


def _library_versions(folder: RunFolder, records: Sequence[RoundRecord]) -> dict[str, dict[str, str]]:
    versions: dict[str, dict[str, str]] = {}
    for record in records:
        path = folder.round_path(record.number)
        for measured in record.invocations:
            environment = measured.invocation.environment
            if environment not in versions:
                events, _ = read_events(path / measured.events)
                hello = next((event for event in events if isinstance(event, Hello)), None)
                if hello is not None and hello.addon_versions:
                    versions[environment] = hello.addon_versions
    return versions
