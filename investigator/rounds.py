"""Which rounds are measured: up to the first look, then extensions for what is undecided."""

from collections.abc import Sequence

from investigator import measure
from investigator.analysis import Analysis
from investigator.arms import arms
from investigator.measure import Bench, Calibration, RoundRecord
from investigator.naming import short_names
from investigator.observer import Estimate
from investigator.plan import Failure, Plan, schedule
from investigator.records import analyse_records, analyse_table, read_table
from investigator.spec import Spec
from investigator.store import RunFolder
from investigator.validate.judge import is_final, open_operations


def learn_pace(bench: Bench, failures: Sequence[Failure]) -> Calibration:
    """The calibration, kept for the whole run, resumed or not."""
    if (bench.folder.path / "calibration.json").exists():
        return bench.folder.read_json(
            "calibration.json", "calibration", measure.CALIBRATION_SCHEMA, Calibration
        )
    calibration = measure.calibrate(bench, failures)
    bench.folder.write_json("calibration.json", "calibration", measure.CALIBRATION_SCHEMA, calibration)
    return calibration


def run_rounds(bench: Bench, calibration: Calibration) -> int:
    """Rounds up to the first look, then extensions for what is undecided, within the budget.

    Returns how many were measured now; a resumed run has others already.

    The extension of a look is decided by the rounds before it alone, so a resumed run decides the same.
    """
    spec, folder = bench.plan.spec, bench.folder
    records = list(measure.read_rounds(folder))
    measured = 0
    last: RoundRecord | None = None
    for look, rounds in enumerate(spec.looks):
        decided_by = [r for r in records if look > 0 and r.number <= spec.looks[look - 1]]
        wanted = _wanted(folder, bench.plan, calibration, decided_by)
        # A round that was removed because it was damaged is measured again under its own number.
        todo = sorted(set(range(1, rounds + 1)) - {r.number for r in records})
        for number in todo:
            failures = [*calibration.failures, *(f for r in records for f in r.failures)]
            cells = measure.cells_left(bench.plan, failures, wanted)
            if not cells or (look > 0 and not _affordable(spec, calibration, records, bench.plan, cells)):
                return measured
            if number == todo[0]:
                _announce(bench, cells, wanted, len(todo))
            last = measure.measure_round(
                bench,
                calibration,
                number,
                failures,
                cells,
                host_before=last.host[1] if last else None,
                again=ahead(spec, records),
            )
            records = sorted([*records, last], key=lambda record: record.number)
            measured += 1
            analysis = analyse_records(folder, bench.plan, calibration, records)
            bench.observer.round_finished(number, rounds, _estimates(bench.plan, analysis))
    return measured


def _wanted(
    folder: RunFolder, plan: Plan, calibration: Calibration, records: Sequence[RoundRecord]
) -> tuple[str, ...] | None:
    """Operations that further rounds are for, None for all of them; decided by the rounds given alone."""
    if plan.spec.fix is not None:
        frame = read_table(folder, plan, records)
        table, analysis = arms(frame), analyse_table(plan, calibration, records, frame)
        if records:
            return open_operations(plan, table, analysis)
        # A fix that cannot be built, or does other work, has its answer before the first round.
        return () if is_final(plan, table, analysis) else None
    return analyse_records(folder, plan, calibration, records).undecided_ops if records else None


def _announce(bench: Bench, cells: measure.Cells, wanted: tuple[str, ...] | None, rounds: int) -> None:
    if wanted is not None:
        bench.observer.note(f"undecided, measured again within the budget: {', '.join(wanted)}")
    bench.observer.stage_started("measure", rounds * len(schedule(bench.plan, 1, cells)))


def ahead(spec: Spec, records: Sequence[RoundRecord]) -> bool:
    """Whether there is time to measure disturbed cells again: the first look does not run over for them.

    Each of its rounds has an equal part of the budget; where they need more, the host is slow or busy, and
    whole rounds are worth more than repetitions.
    """
    spent_s = sum(record.elapsed_s for record in records)
    return spent_s <= spec.budget_min * 60 * len(records) / spec.looks[0]


def _affordable(
    spec: Spec,
    calibration: Calibration,
    records: Sequence[RoundRecord],
    plan: Plan,
    cells: measure.Cells,
) -> bool:
    """Whether one more extension round ends within the budget."""
    spent_s = sum(record.elapsed_s for record in records)
    return spent_s + measure.expected_round_s(plan, calibration, cells) <= spec.budget_min * 60


def _estimates(plan: Plan, analysis: Analysis) -> tuple[Estimate, ...]:
    names = short_names(plan.environments, plan.spec.axis)
    pairs = sorted(analysis.pairs(), key=lambda c: -abs(c.wall.change_pct))
    return tuple(
        Estimate(op=c.op, candidate=names.get(c.candidate, c.candidate), change_pct=c.wall.change_pct)
        for c in pairs
    )
