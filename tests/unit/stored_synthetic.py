"""Made-up runs as they lie on disk without raw records, for the tests of what reads runs back."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd

from investigator import samples
from investigator.analysis import Analysis
from investigator.operations import Family, Operation
from investigator.plan import Environment, Failure, Plan
from investigator.report.summary import Summary, encode_summary, summary
from investigator.results import RunRecord
from investigator.samples import COLUMN_TYPES, Sample
from investigator.spec import Spec, dump_spec
from investigator.store import RunFolder
from investigator.stored_run import StoredRun
from tests.unit.report_synthetic import HOST, Effect, builds, cell, comparison

RECORD = RunRecord(
    run_id="one",
    started_at="2026-11-30T12:00:00Z",
    host=HOST,
    engine={"engine": "docker", "version": "20.10"},
    fixtures_sha256="f" * 64,
    mailbox_sha256="e" * 64,
    host_program_sha256=None,
    workloads_sha256={},
)
SPEC = Spec(versions=("22", "24"))

Effects = Mapping[str, Mapping[str, Effect]]
"""Operation -> identifier of the candidate -> its effect."""


def run_summary(
    environments: Sequence[Environment],
    effects: Effects,
    *,
    spec: Spec = SPEC,
    run_id: str = "one",
    family: Family = "sqlite",
    failures: Sequence[Failure] = (),
) -> Summary:
    """summary.json of a run whose baseline is the first environment."""
    baseline = environments[0].id
    plan = Plan(
        spec=spec,
        run_id=run_id,
        environments=tuple(environments),
        baseline=baseline,
        operations=tuple(Operation(name=op, family=family, module="x.mjs") for op in effects),
    )
    comparisons, cells = [], []
    for op, by_candidate in effects.items():
        cells.append(cell(op, family, baseline, 1000.0))
        comparisons.append(
            comparison(op, family, baseline, (0.1, 0.6, "no_change", ""), kind="twin", baseline=baseline)
        )
        for candidate, effect in by_candidate.items():
            cells.append(cell(op, family, candidate, 1000.0 * (1 + effect[0] / 100)))
            comparisons.append(comparison(op, family, candidate, effect, baseline=baseline))
    analysis = Analysis(
        run_id=run_id,
        headline="one sentence.",
        baseline=baseline,
        environments=tuple(e.id for e in environments),
        cells=tuple(cells),
        comparisons=tuple(comparisons),
        controls=(),
        failures=tuple(failures),
        undecided_ops=(),
    )
    return summary(plan, analysis, builds(), "investigate 0.1.0")


def passes(environments: Sequence[str], ops: Mapping[str, float], *, rounds: int = 6) -> tuple[Sample, ...]:
    """Cold and warm passes of every round; the first environment, the baseline, has a twin.

    Args:
        environments: identifiers.
        ops: nanoseconds per call of each operation in the baseline; each further environment adds half.
        rounds: how many.
    """
    random = np.random.default_rng(1)
    return tuple(
        _sample(number, environment, twin, op, phase, index, ns * (1 + 0.5 * place), random)
        for number in range(1, rounds + 1)
        for place, environment in enumerate(environments)
        for twin in ((False, True) if place == 0 else (False,))
        for op, ns in ops.items()
        for phase, index in (("cold", 0), ("pass", 0), ("pass", 1), ("pass", 2))
    )


def _sample(
    number: int,
    environment: str,
    twin: bool,
    op: str,
    phase: str,
    index: int,
    ns_per_call: float,
    random: np.random.Generator,
) -> Sample:
    wall_ns = int(1000 * ns_per_call * random.uniform(0.99, 1.01))
    return Sample(
        round=number,
        position=0,
        environment=environment,
        twin=twin,
        family="sqlite",
        op=op,
        phase=phase,
        index=index,
        calls=1000,
        start_ns=1,
        wall_ns=wall_ns,
        cpu_user_ns=wall_ns,
        cpu_system_ns=0,
        gc_pause_ns=0,
        gc_count=0,
        gc_scavenge_count=0,
        gc_mark_sweep_count=0,
        involuntary_switches=0,
        voluntary_switches=0,
        steal_pct=0.0,
        rss_bytes=1,
        heap_used_bytes=1,
        external_bytes=1,
        disturbed=False,
    )


def frame_of(rows: Sequence[Sample]) -> pd.DataFrame:
    """The rows as a table with the types of measurements.csv."""
    return pd.DataFrame(map(msgspec.structs.asdict, rows), columns=list(COLUMN_TYPES)).astype(COLUMN_TYPES)


def stored(
    told: Summary,
    rows: Sequence[Sample] = (),
    *,
    spec: Spec = SPEC,
    record: RunRecord = RECORD,
    folder: Path = Path("one"),
    addon_integrity: Mapping[str, str] | None = None,
) -> StoredRun:
    """A run in memory."""
    return StoredRun(
        folder=RunFolder(folder),
        spec=spec,
        record=msgspec.structs.replace(record, run_id=told.run_id),
        summary=told,
        addon_integrity=addon_integrity or {},
        table=frame_of(rows),
    )


def write_dossier(path: Path, run: StoredRun) -> Path:
    """The same on disk: a run folder without raw records."""
    folder = RunFolder(path)
    folder.write("summary.json", encode_summary(run.summary))
    folder.write("spec.toml", dump_spec(run.spec))
    folder.write_json("run.json", "run", 1, run.record)
    if run.table is not None:
        samples.to_csv(run.table, path / "measurements.csv")
    return path
