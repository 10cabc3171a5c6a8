"""One ablation from a run's bench to its ranking: the nested run, its rounds, its result. Resumable."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from investigator import measure
from investigator.arms import Arms, arms
from investigator.causes import ablation as experiments
from investigator.causes.ablation import (
    ABLATION_SCHEMA,
    FIRST_ROUNDS,
    LAST_ROUNDS,
    AblationPlan,
    AblationReport,
    AblationResult,
)
from investigator.causes.flags import CONTROL, MAX_ABLATIONS, Ablation, FlagKind, ablations, read_flags
from investigator.errors import UsageError
from investigator.measure import Bench, Calibration, RoundRecord
from investigator.plan import Failure, Plan, schedule
from investigator.prepare import PLAN_SCHEMA, StoredPlan
from investigator.records import read_table
from investigator.rounds import learn_pace
from investigator.store import RunFolder

FOLDER: Final = "ablation"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9.]+")


def ablate(
    bench: Bench,
    op: str,
    candidate: str,
    *,
    baseline: str | None = None,
    kinds: Sequence[FlagKind] = ("gc", "engine"),
) -> AblationReport:
    """Rerun a pair on one operation under V8 flags and rank them by how much of the gap they close.

    About two minutes for one kind. A run that was interrupted goes on with the rounds it has; one that is
    complete is only analysed again.

    Args:
        bench: of the parent run: engine, plan, builds, data, folder.
        op: operation with the finding.
        candidate: environment identifier.
        baseline: the other side; None takes the plan's.
        kinds: which families of flags.

    Raises:
        UsageError: the run has no such operation or environment.
        InvestigateError: engine or disk.
    """
    plan = bench.plan
    baseline = plan.baseline if baseline is None else baseline
    _check(plan, op, (baseline, candidate))
    folder = RunFolder(bench.folder.path / FOLDER / _name(op, candidate, baseline, plan, kinds))
    nested, experiment, left_out = _planned(bench, folder, op, baseline, candidate, kinds)
    inner = _bench(bench, folder, nested)
    # The pace of the pair alone: it must not depend on what a flag does, and thirty arms would take half a
    # minute.
    calibration = learn_pace(_bench(bench, folder, _pair_only(nested, baseline, candidate)), ())
    lost = _lost(calibration, (baseline, candidate))
    if lost is None:
        _rounds(inner, experiment, calibration)
    report = _report(inner, experiment, calibration, left_out, lost)
    folder.write_json("ablation-result.json", "ablation-result", ABLATION_SCHEMA, report)
    return report


def _check(plan: Plan, op: str, sides: Sequence[str]) -> None:
    if op not in {operation.name for operation in plan.operations}:
        known = ", ".join(operation.name for operation in plan.operations)
        raise UsageError(f"this run has no operation {op[:80]!r}; it has {known}.")
    for side in sides:
        if side not in {environment.id for environment in plan.environments}:
            known = ", ".join(environment.id for environment in plan.environments)
            raise UsageError(f"this run has no environment {side[:120]!r}; it has {known}.")
    if sides[0] == sides[1]:
        raise UsageError("an ablation compares two environments; name another candidate than the baseline.")


def _name(op: str, candidate: str, baseline: str, plan: Plan, kinds: Sequence[FlagKind]) -> str:
    against = "" if baseline == plan.baseline else f"-vs-{_UNSAFE.sub('-', baseline)}"
    return f"{op}-{_UNSAFE.sub('-', candidate)}{against}-{'-'.join(sorted(kinds))}"


def _planned(
    bench: Bench, folder: RunFolder, op: str, baseline: str, candidate: str, kinds: Sequence[FlagKind]
) -> tuple[Plan, AblationPlan, int]:
    """The stored plan of the nested run, or a new one."""
    if not (folder.path / "plan.json").exists():
        pair = [bench.plan.environment(side).node for side in (baseline, candidate)]
        known = [read_flags(bench.engine, node) for node in pair]
        wanted = [ablations(kind, known[0], known[1], at_most=10**6) for kind in kinds]
        chosen: dict[str, Ablation] = {
            ablation.name: ablation for kind in wanted for ablation in kind[:MAX_ABLATIONS]
        }
        experiment = AblationPlan(
            op=op,
            baseline=baseline,
            candidate=candidate,
            ablations=tuple(chosen.values()),
            left_out=sum(max(0, len(kind) - MAX_ABLATIONS) for kind in wanted),
        )
        nested = experiments.plan_ablation(bench.plan, op, baseline, candidate, experiment.ablations)
        stored = StoredPlan(
            plan=nested,
            builds=experiments.builds_for(nested, bench.around.builds),
            build_failures={},
            failures=(),
        )
        folder.write_json("ablation.json", "ablation", ABLATION_SCHEMA, experiment)
        # Last: a folder that has it is complete.
        folder.write_json("plan.json", "plan", PLAN_SCHEMA, stored)
    experiment = folder.read_json("ablation.json", "ablation", ABLATION_SCHEMA, AblationPlan)
    plan = folder.read_json("plan.json", "plan", PLAN_SCHEMA, StoredPlan).plan
    return plan, experiment, experiment.left_out


def _bench(bench: Bench, folder: RunFolder, nested: Plan) -> Bench:
    around = msgspec.structs.replace(
        bench.around, plan=nested, builds=experiments.builds_for(nested, bench.around.builds)
    )
    return msgspec.structs.replace(bench, around=around, folder=folder, host_control=lambda: None)


def _pair_only(plan: Plan, *pair: str) -> Plan:
    return msgspec.structs.replace(
        plan, environments=tuple(environment for environment in plan.environments if environment.id in pair)
    )


def _lost(calibration: Calibration, pair: Sequence[str]) -> str | None:
    return next((f"{f.environment}: {f.reason}" for f in calibration.failures if f.environment in pair), None)


# -- rounds -------------------------------------------------------------------------------------------------


def _rounds(bench: Bench, experiment: AblationPlan, calibration: Calibration) -> None:
    """Rounds that halve the arms, then rounds of the finalists; finished ones are kept."""
    for number in range(1, FIRST_ROUNDS + LAST_ROUNDS + 1):
        records = measure.read_rounds(bench.folder)
        if any(record.number == number for record in records):
            continue
        failures = _failures(calibration, records)
        wanted = _arm_ids(bench, experiment, _chosen(bench, experiment, records, number))
        cells = {arm: ops for arm, ops in measure.cells_left(bench.plan, failures).items() if arm in wanted}
        rounds = LAST_ROUNDS if number == FIRST_ROUNDS + 1 else 1
        if number <= FIRST_ROUNDS + 1:
            bench.observer.stage_started("ablate", rounds * len(schedule(bench.plan, number, cells)))
        measure.measure_round(bench, calibration, number, failures, cells)


def _failures(calibration: Calibration, records: Sequence[RoundRecord]) -> list[Failure]:
    return [*calibration.failures, *(failure for record in records for failure in record.failures)]


def _chosen(
    bench: Bench, experiment: AblationPlan, records: Sequence[RoundRecord], number: int
) -> tuple[Ablation, ...]:
    """The experiments of round `number`; decided by the rounds before it alone, as a resumed run does."""
    kept = experiment.ablations
    for done in range(1, min(number, FIRST_ROUNDS + 1)):
        table = _arms(bench, [record for record in records if record.number <= done])
        kept = experiments.best(bench.plan, experiment, table, kept, experiments.kept_after(done, len(kept)))
    return (*kept, CONTROL)


def _arm_ids(bench: Bench, experiment: AblationPlan, chosen: Sequence[Ablation]) -> frozenset[str]:
    sides = (experiments.arm_ids(bench.plan, experiment, ablation) for ablation in chosen)
    return frozenset({experiment.baseline, experiment.candidate}.union(*sides))


def _arms(bench: Bench, records: Sequence[RoundRecord]) -> Arms:
    return arms(read_table(bench.folder, bench.plan, records))


def _report(
    bench: Bench, experiment: AblationPlan, calibration: Calibration, left_out: int, lost: str | None
) -> AblationReport:
    records = measure.read_rounds(bench.folder)
    failures = _failures(calibration, records)
    first = [record for record in records if record.number <= FIRST_ROUNDS]
    last = [record for record in records if record.number > FIRST_ROUNDS]
    results: tuple[AblationResult, ...] = ()
    if first:
        results = experiments.rank(
            bench.plan,
            experiment,
            _arms(bench, first),
            failures,
            final_arms=_arms(bench, last) if last else None,
            chosen=_chosen(bench, experiment, records, FIRST_ROUNDS + 1),
        )
    return AblationReport(
        op=experiment.op,
        baseline=experiment.baseline,
        candidate=experiment.candidate,
        folder=f"{FOLDER}/{bench.folder.name}",
        results=results,
        rounds=len(records),
        elapsed_s=round(sum(record.elapsed_s for record in records), 1),
        left_out=left_out,
        failure=lost,
    )
