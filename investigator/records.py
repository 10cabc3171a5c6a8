"""Finished rounds of a run folder to the table of samples, and to verdicts: offline, from the raw events."""

from collections.abc import Iterator, Sequence

import pandas as pd

from investigator import measure, samples
from investigator.analysis import Analysis, analyse
from investigator.errors import StoredFileError
from investigator.invoke import read_events
from investigator.measure import Calibration, Measured, RoundRecord
from investigator.plan import Plan
from investigator.protocol import Event
from investigator.store import TOOL, RunFolder


def read_table(folder: RunFolder, plan: Plan, records: Sequence[RoundRecord]) -> pd.DataFrame:
    """All passes of these rounds: the columns of `samples.Sample`, ``disturbed`` marked over all processes.

    Raises:
        StoredFileError: a file of events is damaged.
    """
    family_of = {operation.name: operation.family for operation in plan.operations}
    parts = []
    for measured, events in _events(folder, records):
        kept = [event for event in events if getattr(event, "op", None) not in measured.superseded]
        parts.append(samples.columns_from_events(measured.invocation, family_of, kept, measured.steal_pct))
    return samples.joined(parts)


def _events(folder: RunFolder, records: Sequence[RoundRecord]) -> Iterator[tuple[Measured, Sequence[Event]]]:
    for record in records:
        path = folder.round_path(record.number)
        for measured in record.invocations:
            events, damage = read_events(path / measured.events, measured.invocation.operations)
            if damage is not None:
                raise StoredFileError(
                    f"{path / measured.events} is damaged ({damage}); remove {path.name} and resume the run."
                )
            yield measured, events


def analyse_records(
    folder: RunFolder, plan: Plan, calibration: Calibration, records: Sequence[RoundRecord]
) -> Analysis:
    """Verdicts after these rounds."""
    return analyse_table(plan, calibration, records, read_table(folder, plan, records))


def analyse_table(
    plan: Plan, calibration: Calibration, records: Sequence[RoundRecord], table: pd.DataFrame
) -> Analysis:
    """Verdicts from the table of samples."""
    cells = measure.cells_left(plan, calibration.failures)
    return analyse(
        plan,
        table,
        failures=(*calibration.failures, *(f for record in records for f in record.failures)),
        host_ns=[reading.ns_per_call for record in records for reading in record.host if reading is not None],
        minutes_per_round=measure.expected_round_s(plan, calibration, cells) / 60,
        tool=TOOL,
    )
