"""Finished rounds of a run folder to the table of samples, and to verdicts: offline, from the raw events."""

from collections.abc import Sequence

import pandas as pd

from investigator import measure, samples
from investigator.analysis import Analysis, analyse
from investigator.errors import StoredFileError
from investigator.invoke import read_events
from investigator.measure import Calibration, RoundRecord
from investigator.plan import Plan
from investigator.store import TOOL, RunFolder


def read_samples(folder: RunFolder, plan: Plan, records: Sequence[RoundRecord]) -> tuple[samples.Sample, ...]:
    """All passes of all finished rounds."""
    family_of = {operation.name: operation.family for operation in plan.operations}
    rows: list[samples.Sample] = []
    for record in records:
        path = folder.round_path(record.number)
        for measured in record.invocations:
            events, damage = read_events(path / measured.events, measured.invocation.operations)
            if damage is not None:
                raise StoredFileError(
                    f"{path / measured.events} is damaged ({damage}); remove {path.name} and resume the run."
                )
            table = samples.samples_from_events(measured.invocation, family_of, events, measured.steal_pct)
            rows += [row for row in table if row.op not in measured.superseded]
    return tuple(rows)


def analyse_records(
    folder: RunFolder, plan: Plan, calibration: Calibration, records: Sequence[RoundRecord]
) -> Analysis:
    """Verdicts after these rounds."""
    return analyse_table(
        plan, calibration, records, samples.remark(samples.to_frame(read_samples(folder, plan, records)))
    )


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
