"""JSON for the github-action-benchmark action, tool ``customSmallerIsBetter``.

The action charts each name over commits and alerts on the quotient of two values of a name. Between two CI
jobs the machine changes, so times alone would pool hosts. Hence two kinds of entries: ``time`` of an
operation in an environment, for machines that stay the same, and ``percent of baseline``, measured within
one run and therefore what to alert on. Names use labels where there are any (``main=24``): a name without
label changes with the release.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from investigator import units
from investigator.exports.processes import Process, processes
from investigator.exports.words import printable
from investigator.report.summary import SummaryComparison
from investigator.stats.intervals import FAMILY_CONFIDENCE, interval
from investigator.store import encode_json
from investigator.stored_run import StoredRun


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One point of one chart."""

    name: str
    unit: str
    value: float
    range: str
    """The interval, in the unit of `value`."""
    extra: str
    """Shown beside the point, lines of plain text."""


def github_action(run: StoredRun) -> bytes:
    """A JSON array of `Entry`, one for each operation and environment, and one for each comparison.

    Raises:
        StoredFileError: the run has no measured process.
    """
    names = _names(run)
    entries = [*_times(run, names), *_ratios(run, names)]
    return encode_json([msgspec.to_builtins(entry) for entry in entries])


def _times(run: StoredRun, names: Mapping[str, str]) -> Iterator[Entry]:
    cells: dict[tuple[str, str], list[Process]] = {}
    for process in processes(run):
        cells.setdefault((process.op, process.environment), []).append(process)
    for (op, environment), found in cells.items():
        values = [process.ns_per_op for process in found]
        yield Entry(
            name=printable(f"{op}, {names.get(environment, environment)}"),
            unit="ns/op",
            value=float(np.median(values)),
            range=_range(values),
            extra=f"{printable(environment)}\n{_processes(len(found))}",
        )


def _range(values: Sequence[float]) -> str:
    logs = interval(np.log(values), FAMILY_CONFIDENCE)
    return f"{math.exp(logs.low):,.1f} to {math.exp(logs.high):,.1f}" if logs.bounded else ""


def _ratios(run: StoredRun, names: Mapping[str, str]) -> Iterator[Entry]:
    for pair in run.summary.comparisons:
        if pair.verdict == "invalid" or units.finite(pair.ratio) is None:
            continue  # null would be read as zero: infinitely fast
        candidate, baseline = (names.get(name, name) for name in (pair.candidate, pair.baseline))
        yield Entry(
            name=printable(f"{pair.op}, {candidate} against {baseline}"),
            unit="percent of baseline",
            value=100.0 * (pair.ratio or math.nan),
            range=_percent_range(pair),
            extra=f"{pair.verdict}\n{printable(pair.candidate)}\n{pair.rounds} rounds",
        )


def _percent_range(pair: SummaryComparison) -> str:
    if pair.ci_low_pct is None or pair.ci_high_pct is None:
        return ""
    return f"{100 + pair.ci_low_pct:.1f} to {100 + pair.ci_high_pct:.1f}"


def _processes(count: int) -> str:
    return f"{count} process{'' if count == 1 else 'es'}"


def _names(run: StoredRun) -> dict[str, str]:
    """Label or, without one, identifier: never the same name for two environments."""
    labels = [e.label for e in run.summary.environments]
    return {
        e.id: e.label if e.label and labels.count(e.label) == 1 else e.id for e in run.summary.environments
    }
