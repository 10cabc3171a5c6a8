"""Issue texts of a run: what the folder knows about each regression, written into one file each. Offline."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import pandas as pd

from investigator import measure
from investigator.ablate import FOLDER as ABLATIONS
from investigator.analysis import Analysis, Comparison
from investigator.arms import arms, arms_of
from investigator.attributed import Target as Explained
from investigator.attributed import folder_of, read_explained
from investigator.attribution.layers import Attribution
from investigator.build import AddonBuild
from investigator.causes.ablation import ABLATION_SCHEMA, AblationReport
from investigator.causes.build import BuildDifference, compare_builds, config_differences, public_config
from investigator.issue_sources import bisected, reproductions
from investigator.plan import Environment, Plan
from investigator.records import analyse_table, read_table
from investigator.report.issue.choose import Chosen, choose
from investigator.report.issue.forms import IssueText, compose
from investigator.report.issue.material import Material, Measured, Side
from investigator.report.issue.target import Target
from investigator.results import Finished
from investigator.store import TOOL, RunFolder


class Issue(msgspec.Struct, frozen=True, kw_only=True):
    """One text, as a file of the run folder."""

    name: str
    """``issue-node-bind_text_ascii_10k--node24.11.1+bsm12.11.1.md``."""
    text: IssueText


class Issues(msgspec.Struct, frozen=True, kw_only=True):
    """The texts of a run for one tracker."""

    issues: tuple[Issue, ...]
    left_out: tuple[str, ...]
    """Sentences: findings that are no regressions."""


def issues(finished: Finished, target: Target, op: str | None = None, candidate: str | None = None) -> Issues:
    """Compose the texts of a run's regressions; with `op` of every finding of that operation.

    Raises:
        UsageError: there is no such operation or candidate, or it has no finding.
        StoredFileError: a record of the run is damaged.
    """
    chosen: Chosen = choose(finished.stored.plan, finished.analysis, op, candidate)
    reader = _Reader(finished)
    composed = [
        Issue(
            name=f"issue-{target}-{_explained(finished.folder, c).path.name}.md",
            text=compose(reader.material(c), target),
        )
        for c in chosen.comparisons
    ]
    return Issues(issues=tuple(composed), left_out=chosen.left_out)


class _Reader:
    """Reads what is needed of a run folder."""

    def __init__(self, finished: Finished) -> None:
        self._finished = finished
        self._folder = finished.folder
        self._plan = finished.stored.plan

    def material(self, comparison: Comparison) -> Material:
        """Everything about one finding."""
        finished, plan = self._finished, self._plan
        op, pair = comparison.op, (comparison.baseline, comparison.candidate)
        found = _attribution(finished.attributions, comparison)
        screened = _pair(finished.screen, op, pair[1]) or comparison
        screen = self._measured(plan, finished.table, finished.screen, screened, alone=False)
        again = None if found is None or not found.recurred else self._again(comparison)
        low, high = (plan.environment(name) for name in pair)
        return Material(
            tool=TOOL,
            started_at=finished.record.started_at,
            plan=plan,
            published=again or screen,
            screen=None if again is None else screen,
            attribution=found,
            others=tuple(_others(finished.analysis, comparison)),
            cold=_pair(finished.screen, op, pair[1], phase="cold"),
            failed=tuple(f.environment for f in finished.stored.failures if f.op is None),
            flags=tuple(self._flags(op, pair)),
            host=finished.record.host,
            platform=finished.record.platform,
            engine=finished.record.engine,
            addon_versions=finished.record.addon_versions.get(pair[1], {}),
            config=_config(finished.record.node_config, low, high),
            build_differences=_differences(finished.stored.builds, low, high),
            reproductions=reproductions(self._folder, op, high),
            bisected=bisected(self._folder, plan, op, (low, high)),
        )

    def _again(self, comparison: Comparison) -> Measured | None:
        """The rounds of the explain phase; None where they have no pair that can be compared."""
        nested = _explained(self._folder, comparison)
        explained = read_explained(nested)
        calibration = nested.read_json(
            "calibration.json", "calibration", measure.CALIBRATION_SCHEMA, measure.Calibration
        )
        records = measure.read_rounds(nested)
        table = read_table(nested, explained.plan, records)
        analysis = analyse_table(explained.plan, calibration, records, table)
        pair = _pair(analysis, comparison.op, comparison.candidate)
        if pair is None or pair.verdict == "invalid" or pair.rounds == 0:
            return None
        return self._measured(explained.plan, table, analysis, pair, alone=True)

    def _measured(
        self, plan: Plan, table: pd.DataFrame, analysis: Analysis, pair: Comparison, *, alone: bool
    ) -> Measured:
        rows = table[(table["op"] == pair.op) & (table["phase"] == "pass") & (table["round"] >= 1)]
        both = rows[rows["environment"].isin((pair.baseline, pair.candidate))]
        twins = (
            c for c in analysis.comparisons if c.kind == "twin" and c.phase == "warm" and c.op == pair.op
        )
        return Measured(
            comparison=pair,
            twin=next(twins, None),
            baseline=self._side(plan.environment(pair.baseline), rows),
            candidate=self._side(plan.environment(pair.candidate), rows),
            alone=alone,
            disturbed=int(both["disturbed"].sum()),
            passes=len(both),
        )

    def _side(self, environment: Environment, rows: pd.DataFrame) -> Side:
        own = rows[rows["environment"] == environment.id]
        op = str(own["op"].iloc[0]) if len(own) else ""
        found = arms_of(arms(own), op, "warm", environment.id)
        values = np.concatenate([arm.wall for arm in found]) if found else np.empty(0)
        values = values[np.isfinite(values)]
        calls, seconds = float(own["calls"].sum()), float(own["wall_ns"].sum()) / 1e9
        return Side(
            environment=environment,
            build=self._finished.stored.builds.get(environment.id),
            ns_per_op=_median(values),
            cpu_user_ns=_per(own["cpu_user_ns"], calls),
            cpu_system_ns=_per(own["cpu_system_ns"], calls),
            gc_pause_ns=_per(own["gc_pause_ns"], calls),
            switches_per_s=_per(own["involuntary_switches"], seconds),
            rss_bytes=_median(own["rss_bytes"].to_numpy(np.float64)),
            processes=len(values),
            by_round=tuple(tuple(float(value) for value in arm.wall) for arm in found),
        )

    def _flags(self, op: str, pair: tuple[str, str]) -> Iterator[AblationReport]:
        for path in sorted(self._folder.path.glob(f"{ABLATIONS}/*/ablation-result.json")):
            nested = RunFolder(path.parent)
            report = nested.read_json(path.name, "ablation-result", ABLATION_SCHEMA, AblationReport)
            if (report.op, report.baseline, report.candidate) == (op, *pair):
                yield report


def _explained(run: RunFolder, comparison: Comparison) -> RunFolder:
    """Where the finding is measured again: ``explain/bind_text_ascii_10k--node24.11.1+bsm12.11.1``."""
    return folder_of(run, Explained(op=comparison.op, candidate=comparison.candidate))


def _attribution(found: Sequence[Attribution], comparison: Comparison) -> Attribution | None:
    wanted = (comparison.op, comparison.candidate)
    return next((a for a in found if (a.op, a.candidate) == wanted), None)


def _pair(analysis: Analysis, op: str, candidate: str, phase: str = "warm") -> Comparison | None:
    return next(
        (
            c
            for c in analysis.comparisons
            if (c.kind, c.phase, c.op, c.candidate) == ("baseline", phase, op, candidate)
        ),
        None,
    )


def _others(analysis: Analysis, comparison: Comparison) -> Iterator[Comparison]:
    for other in analysis.pairs():
        same = (other.op, other.candidate) == (comparison.op, comparison.candidate)
        if not same:
            yield other


def _config(
    recorded: Mapping[str, Mapping[str, str]], low: Environment, high: Environment
) -> tuple[BuildDifference, ...] | None:
    """As recorded; of older runs from the builds, as long as they are in the cache."""
    one, other = (recorded.get(e.id) or public_config(e.node.directory) for e in (low, high))
    if not one or not other:
        return None
    return tuple(sorted(config_differences(one, other), key=lambda d: d.relevance != "code"))


def _differences(
    builds: Mapping[str, AddonBuild], low: Environment, high: Environment
) -> tuple[BuildDifference, ...] | None:
    one, other = builds.get(low.id), builds.get(high.id)
    if one is None or other is None or not one.flags or not other.flags:
        return None
    found = compare_builds(one, other, low.node, high.node).differences
    of_the_build = ("compiler", "flag", "sqlite3.o")
    return tuple(d for d in found if d.what in of_the_build and d.relevance != "none")


def _median(values: np.ndarray) -> float:
    return float(np.median(values)) if len(values) else float("nan")


def _per(total: "pd.Series[float]", count: float) -> float:
    return float(total.sum()) / count if count > 0 else float("nan")
