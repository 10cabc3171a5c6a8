"""The measuring stage: calibration, rounds, extension rounds. One invocation at a time, nothing else running.

A round is a block of the statistics: it is kept whole or measured again whole. Everything that decides what
comes next is a pure function of the finished rounds, so a resumed run continues as the killed one would have.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import msgspec

from investigator import protocol
from investigator.engine.interface import Engine
from investigator.errors import StoredFileError
from investigator.invoke import Result, Surroundings, invoke
from investigator.native import HostReading
from investigator.observer import Observer
from investigator.plan import Failure, Invocation, Pace, Plan, schedule
from investigator.samples import clean_passes, columns_from_events
from investigator.store import RunFolder

ROUND_SCHEMA = 1
CALIBRATION_SCHEMA = 1

LAPS = 3
"""Readings of the clock in a pass; fewer where it has fewer calls, up to five where few calls divide better.
Each is a value of its own: laps of a third of the time have more chances to miss a burst
(`stats.process.process_values`). Passes of a third would have too, but a pass begins with an emptied young
generation, which short ones never leave: 100 kB blobs on Node 24, 12 passes of 12 ms, took 17 us in one
process and 45 in the next."""
WARMUP_NS_PER_PASS = 12_000_000
"""Aim of the warm-up on the fastest environment for each pass that follows, as a fixed number of calls."""
MIN_WARMUP_CALLS = 1
"""Beside those of the cold pass and the checksum."""
CALIBRATION_TIMEOUT_S = 60.0
CALIBRATION_TIMEOUT_PER_OPERATION_S = 6.0
MIN_CLEAN_PASSES = 3
BURST_SHARE = 0.25


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """calibration.json: what was learnt before the first round."""

    paces: tuple[Pace, ...]
    invocation_s: dict[str, float]
    """Expected length of an invocation for each ``environment|group``."""
    failures: tuple[Failure, ...]
    checksums: dict[str, str]
    """Digest of early calls of each operation in the baseline: every other process must reproduce it."""
    gc_accounting_ns: dict[str, float] = {}
    """What observing adds to one collection, by environment: median over its processes."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One invocation of a finished round."""

    invocation: Invocation
    events: str
    """Name of the events file beside round.json."""
    superseded: tuple[str, ...]
    """Operations that a burst hit and that were measured again in this round: kept raw, not analysed."""
    steal_pct: float
    elapsed_s: float


class RoundRecord(msgspec.Struct, frozen=True, kw_only=True):
    """round.json: written last; a folder that has it is a finished round."""

    number: int
    started_at_s: float
    """Unix time."""
    elapsed_s: float
    invocations: tuple[Measured, ...]
    failures: tuple[Failure, ...]
    host: tuple[HostReading | None, HostReading | None]
    """The host control before and after the round."""


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """The means of measuring: engine, what is measured, where it goes, who listens."""

    engine: Engine
    around: Surroundings
    folder: RunFolder
    observer: Observer
    host_control: Callable[[], HostReading | None]

    @property
    def plan(self) -> Plan:
        """The plan that is carried out."""
        return self.around.plan


Cells = Mapping[str, tuple[str, ...]]
"""Operations still to measure, by environment identifier."""


def cells_left(plan: Plan, failures: Sequence[Failure], wanted: Sequence[str] | None = None) -> Cells:
    """Every cell that has not failed, optionally only of the operations `wanted`."""
    gone = {(failure.environment, failure.op) for failure in failures}
    names = [o.name for o in plan.operations if wanted is None or o.name in wanted]
    left = {
        environment.id: tuple(
            name
            for name in names
            if (environment.id, name) not in gone and (environment.id, None) not in gone
        )
        for environment in plan.environments
    }
    return {identifier: ops for identifier, ops in left.items() if ops}


# -- calibration ------------------------------------------------------------------------------------------


def calibrate(bench: Bench, failures: Sequence[Failure]) -> Calibration:
    """Run every cell once to learn the pace, find broken cells early, and compare what they compute."""
    plan = bench.plan
    found: list[Failure] = list(failures)
    results: list[Result] = []
    cells = cells_left(plan, found)
    jobs = [
        (environment, group, ops)
        for environment in plan.environments
        for group in dict.fromkeys(o.group for o in plan.operations)
        if (ops := _of_group(plan, cells.get(environment.id, ()), group))
    ]
    bench.observer.stage_started("calibrate", len(jobs))
    for position, (environment, group, ops) in enumerate(jobs):
        bench.observer.activity(f"calibrating {environment.id} {group}")
        job = Invocation(
            round=0, position=position, environment=environment.id, twin=False, group=group, operations=ops
        )
        done, lost = _until_whole(bench, job, "calibrate", {}, _calibration_timeout_s(job), None)
        results.append(done)
        found += lost
        bench.observer.step("calibrate", f"{environment.id} {group}")
    checksums, mismatches = _compare_checksums(bench, results)
    found += mismatches
    paces = _paces(plan, results)
    return Calibration(
        paces=tuple(paces.values()),
        invocation_s={
            f"{r.invocation.environment}|{r.invocation.group}": _expected_s(plan, r, paces) for r in results
        },
        failures=tuple(found),
        checksums=checksums,
        gc_accounting_ns=_accounting_ns(results),
    )


def _accounting_ns(results: Sequence[Result]) -> dict[str, float]:
    told: dict[str, list[int]] = {}
    for result in results:
        for event in result.events:
            if isinstance(event, protocol.Hello) and event.gc_accounting_ns is not None:
                told.setdefault(result.invocation.environment, []).append(event.gc_accounting_ns)
    return {identifier: float(median(costs)) for identifier, costs in told.items()}


def _calibration_timeout_s(job: Invocation) -> float:
    return CALIBRATION_TIMEOUT_S + CALIBRATION_TIMEOUT_PER_OPERATION_S * len(job.operations)


def _of_group(plan: Plan, names: Sequence[str], group: str) -> tuple[str, ...]:
    return tuple(o.name for o in plan.operations if o.group == group and o.name in names)


def _per_call_ns(results: Sequence[Result]) -> dict[tuple[str, str], float]:
    return {
        (result.invocation.environment, event.op): event.wall_ns / max(event.calls, 1)
        for result in results
        for event in result.events
        if isinstance(event, protocol.Calibration)
    }


def _paces(plan: Plan, results: Sequence[Result]) -> dict[str, Pace]:
    """Calls of warm-up and pass for each operation, from the fastest environment, then equal for all."""
    per_call = _per_call_ns(results)
    paces = {}
    for operation in plan.operations:
        times = [ns for (_, op), ns in per_call.items() if op == operation.name]
        if times:
            fastest = max(min(times), 1.0)
            calls = max(1, math.ceil(plan.spec.pass_ms * 1_000_000 / fastest))
            loops = math.ceil(calls / LAPS) if calls > LAPS**2 else max(1, calls // LAPS)
            paces[operation.name] = Pace(
                op=operation.name,
                warmup_calls=max(
                    MIN_WARMUP_CALLS,
                    operation.least_warmup_calls,
                    math.ceil(operation.warmup_factor * plan.spec.passes * WARMUP_NS_PER_PASS / fastest),
                ),
                loops=loops,
                laps=math.ceil(calls / loops),
            )
    return paces


def _expected_s(plan: Plan, result: Result, paces: Mapping[str, Pace]) -> float:
    """Length to expect of a measuring invocation: fixed part as calibrated, plus warm-up and passes."""
    per_call = _per_call_ns([result])
    work_ns = sum(
        ns * (paces[op].warmup_calls + plan.spec.passes * paces[op].pass_calls)
        for (_, op), ns in per_call.items()
    )
    calibrated_ns = sum(
        event.wall_ns * event.total_calls / max(event.calls, 1)
        for event in result.events
        if isinstance(event, protocol.Calibration)
    )
    return max(0.3, result.elapsed_s - calibrated_ns / 1e9) + work_ns / 1e9


def expected_round_s(plan: Plan, calibration: Calibration, cells: Cells) -> float:
    """Length to expect of a round over `cells`, from what the calibration saw."""
    sizes = {g: sum(o.group == g for o in plan.operations) for g in {o.group for o in plan.operations}}
    return sum(
        calibration.invocation_s.get(f"{job.environment}|{job.group}", 1.0)
        * len(job.operations)
        / sizes[job.group]
        for job in schedule(plan, 1, cells)
    )


def _checksums(result: Result, when: str) -> dict[str, str]:
    return {
        event.op: event.value
        for event in result.events
        if isinstance(event, protocol.Checksum) and event.when == when
    }


def _compare_checksums(bench: Bench, results: Sequence[Result]) -> tuple[dict[str, str], list[Failure]]:
    """The baseline's digests, and a failure for every cell that computes something else."""
    plan = bench.plan
    expected: dict[str, str] = {}
    for result in results:
        if result.invocation.environment == plan.baseline:
            expected |= _checksums(result, "before")
    suspects = [
        (result, op)
        for result in results
        for op, value in _checksums(result, "before").items()
        if op in expected and value != expected[op]
    ]
    unstable = _unstable(bench, results, {op for _, op in suspects}, expected) if suspects else set()
    failures = [
        Failure(
            environment=result.invocation.environment,
            op=op,
            stage="checksum",
            reason=_checksum_reason(op, plan.baseline, unstable=op in unstable),
        )
        for result, op in suspects
    ]
    failures += [
        Failure(
            environment=plan.baseline,
            op=op,
            stage="checksum",
            reason=_checksum_reason(op, plan.baseline, unstable=True),
        )
        for op in sorted(unstable)
    ]
    return expected, failures


def _checksum_reason(op: str, baseline: str, *, unstable: bool) -> str:
    if unstable:
        return (
            f"{op} computes something else in every process; make it deterministic (use ctx.seed, "
            "no clock, no Math.random), or its times cannot be compared."
        )
    return f"{op} computes something else here than on {baseline}, so the times compare different work."


def _unstable(
    bench: Bench, results: Sequence[Result], ops: set[str], expected: Mapping[str, str]
) -> set[str]:
    """Operations that differ even between two processes of the baseline."""
    unstable: set[str] = set()
    for result in results:
        job = result.invocation
        suspects = tuple(op for op in job.operations if op in ops)
        if job.environment == bench.plan.baseline and suspects:
            again, _ = _until_whole(
                bench,
                msgspec.structs.replace(job, operations=suspects),
                "calibrate",
                {},
                _calibration_timeout_s(job),
                None,
            )
            unstable |= {op for op, value in _checksums(again, "before").items() if value != expected[op]}
    return unstable


# -- rounds -----------------------------------------------------------------------------------------------


def measure_round(
    bench: Bench,
    calibration: Calibration,
    number: int,
    failures: Sequence[Failure],
    cells: Cells,
    *,
    host_before: HostReading | None = None,
    again: bool = True,
) -> RoundRecord:
    """Measure one round and store it; an interruption leaves nothing that counts.

    `host_before` is the host control just read at the end of the round before, where there was one; `again`
    tells whether cells that a burst hit are measured once more at its end.
    """
    plan = bench.plan
    started, clock = time.time(), time.monotonic()
    results: list[Result] = []
    found: list[Failure] = []

    def carry_out(job: Invocation, draft: Path) -> None:
        left = _without_failed(job, [*failures, *found])
        if left.operations:
            result, lost = _measure_job(bench, calibration, left, draft / _events_name(job))
            results.append(result)
            found.extend(lost)

    with bench.folder.round_folder(number) as draft:
        host_before = host_before or bench.host_control()
        for job in schedule(plan, number, cells):
            carry_out(job, draft)
            bench.observer.step("measure", job.environment)
        once = tuple(results)
        for job in repetitions(plan, once) if again else ():
            carry_out(job, draft)
        found += _round_checksums(plan, calibration, results)
        record = RoundRecord(
            number=number,
            started_at_s=started,
            elapsed_s=time.monotonic() - clock,
            invocations=_measured(once, results[len(once) :]),
            failures=tuple(found),
            host=(host_before, bench.host_control()),
        )
        _write_record(draft, record)
    return record


def _events_name(job: Invocation) -> str:
    return f"{job.position:03d}.jsonl"


def _measure_job(
    bench: Bench, calibration: Calibration, job: Invocation, keep: Path
) -> tuple[Result, list[Failure]]:
    bench.observer.activity(f"{job.environment}{' (twin)' if job.twin else ''} {job.group}")
    paces = {pace.op: pace for pace in calibration.paces}
    return _until_whole(bench, job, "measure", paces, _timeout_s(calibration, job), keep)


def repetitions(plan: Plan, results: Sequence[Result]) -> tuple[Invocation, ...]:
    """Invocations of a round to measure again because a burst hit them: fewer than three clean passes.

    Only where at most `BURST_SHARE` of the round's cells were hit: a host that is busy all the time would be
    just as busy again, so that repeating would cost time and gain nothing.
    """
    cells = sum(len(result.invocation.operations) for result in results)
    if plan.spec.passes <= MIN_CLEAN_PASSES:
        return ()  # --quick: every single disturbed pass would cost a process
    hit = [(result, ops) for result in results if (ops := _disturbed_ops(plan, result))]
    if sum(len(ops) for _, ops in hit) > BURST_SHARE * cells:
        return ()
    return tuple(
        msgspec.structs.replace(result.invocation, position=len(results) + number, operations=ops)
        for number, (result, ops) in enumerate(hit)
    )


def _disturbed_ops(plan: Plan, result: Result) -> tuple[str, ...]:
    clean = _clean_passes(plan, result)
    return tuple(op for op in result.invocation.operations if 0 <= clean.get(op, -1) < MIN_CLEAN_PASSES)


def _clean_passes(plan: Plan, result: Result) -> dict[str, int]:
    families = {operation.name: operation.family for operation in plan.operations}
    return clean_passes(columns_from_events(result.invocation, families, result.events, result.steal_pct))


def _measured(first: Sequence[Result], again: Sequence[Result]) -> tuple[Measured, ...]:
    """All invocations; an operation that was repeated counts where it was measured last."""
    repeated = {
        (r.invocation.environment, r.invocation.twin, op) for r in again for op in r.invocation.operations
    }
    return tuple(
        Measured(
            invocation=result.invocation,
            events=_events_name(result.invocation),
            superseded=tuple(
                op
                for op in result.invocation.operations
                if number < len(first)
                and (result.invocation.environment, result.invocation.twin, op) in repeated
            ),
            steal_pct=result.steal_pct,
            elapsed_s=result.elapsed_s,
        )
        for number, result in enumerate((*first, *again))
    )


def _write_record(draft: Path, record: RoundRecord) -> None:
    RunFolder(draft).write_json("round.json", "round", ROUND_SCHEMA, record)


def _without_failed(job: Invocation, failures: Sequence[Failure]) -> Invocation:
    gone = {failure.op for failure in failures if failure.environment == job.environment}
    left = () if None in gone else tuple(op for op in job.operations if op not in gone)
    return msgspec.structs.replace(job, operations=left)


def _timeout_s(calibration: Calibration, job: Invocation) -> float:
    """Far above what the calibration saw: a busy host must not look like a hang."""
    expected = calibration.invocation_s.get(f"{job.environment}|{job.group}", 30.0)
    return 30.0 + 6.0 * expected


def _until_whole(
    bench: Bench,
    job: Invocation,
    mode: protocol.JobMode,
    paces: Mapping[str, Pace],
    timeout_s: float,
    keep: Path | None,
) -> tuple[Result, list[Failure]]:
    """Repeat an invocation without each operation that takes the process down; the others lose nothing."""
    failures: list[Failure] = []
    while True:
        result = invoke(
            bench.engine, bench.around, job, mode=mode, paces=paces, timeout_s=timeout_s, keep=keep
        )
        failures += [f for f in result.failures if f not in failures]
        for remark in result.remarks:
            bench.observer.warning(f"{job.environment}: {remark}")
        for failure in result.failures:
            cell = failure.environment if failure.op is None else f"{failure.environment} {failure.op}"
            bench.observer.warning(f"{cell}: {failure.reason}")
        job = msgspec.structs.replace(
            job, operations=tuple(op for op in job.operations if op != result.culprit)
        )
        if result.culprit is None or not job.operations:
            return result, failures


def _round_checksums(plan: Plan, calibration: Calibration, results: Sequence[Result]) -> list[Failure]:
    """Cells whose digest differs from the baseline's, before the passes or after them."""
    after: dict[str, str] = {}
    for result in results:
        if result.invocation.environment == plan.baseline and not result.invocation.twin:
            after |= _checksums(result, "after")
    failures = []
    for result in results:
        wrong = {
            op
            for expected, when in ((calibration.checksums, "before"), (after, "after"))
            for op, value in _checksums(result, when).items()
            if expected.get(op, value) != value
        }
        failures += [
            Failure(
                environment=result.invocation.environment,
                op=op,
                stage="checksum",
                reason=_checksum_reason(
                    op, plan.baseline, unstable=result.invocation.environment == plan.baseline
                ),
            )
            for op in sorted(wrong)
        ]
    return failures


def read_rounds(folder: RunFolder) -> tuple[RoundRecord, ...]:
    """The finished rounds of a run in order.

    Raises:
        StoredFileError: a record is damaged, or lies in the folder of another round.
    """
    return tuple(_read_round(folder, path) for path in folder.finished_rounds())


def _read_round(folder: RunFolder, path: Path) -> RoundRecord:
    record = RunFolder(path).read_json("round.json", "round", ROUND_SCHEMA, RoundRecord)
    if folder.round_path(record.number) != path:
        # A copied round would count twice.
        raise StoredFileError(
            f"{path} holds round {record.number}; it is a copy or was renamed: remove it, or give it back "
            f"the name {folder.round_path(record.number).name}."
        )
    return record
