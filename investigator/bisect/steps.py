"""One step of the search, measured in a nested run folder: both ends and the candidates in rounds."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from investigator import measure, samples
from investigator.arms import Arm, arms, arms_of
from investigator.bisect.candidates import Candidate, Candidates
from investigator.bisect.request import Request
from investigator.errors import NothingBuiltError
from investigator.measure import Bench, Calibration, RoundRecord
from investigator.plan import ONCE, Failure, Plan
from investigator.prepare import PLAN_SCHEMA, StoredPlan
from investigator.records import read_samples
from investigator.stats.bisection import Levels, Look
from investigator.stats.process import FloatArray
from investigator.store import RunFolder

STEPS: Final = "steps"
ALONE: Final = f"{ONCE}bisect"
"""Group: one process a release and round; the ends take part in every round of every step."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9.]+")


class Stepper:
    """Carries out the looks of a search, whatever of them has not been measured yet."""

    def __init__(
        self, bench: Bench, calibration: Calibration, request: Request, candidates: Candidates, op: str
    ) -> None:
        self._bench, self._calibration, self._request = bench, calibration, request
        self._candidates, self._op = candidates, op

    def __call__(self, look: Look) -> Levels:
        """Measure what is missing of a look and return all its rounds; see `stats.bisection.Measure`.

        Raises:
            NothingBuiltError: an end can no longer be measured.
            InvestigateError: engine, registry or disk.
        """
        own = look.purpose == "verify"
        there = {i: made for i in look.targets if (made := self._get(i, own=own)) is not None}
        if look.targets and not there:
            return {}
        ends = {i: made for i in look.ends if (made := self._get(i, own=own)) is not None}
        if len(ends) < len(look.ends):
            return {}
        everything = {**ends, **there}
        nested = self._nested(look, everything)
        records = self._rounds(nested, look, list(everything.values()))
        lost = {f.environment: f.reason for f in _failures(records)}
        for index, made in ends.items():
            if made.environment.id in lost:
                raise NothingBuiltError(
                    f"{self._version(index)} could be measured before and now cannot: "
                    f"{lost[made.environment.id]}"
                )
        for index in [i for i, made in there.items() if made.environment.id in lost]:
            self._candidates.skip(self._version(index), lost[there.pop(index).environment.id])
        if look.targets and not there:
            return {}
        levels = levels_of(nested.folder, nested.plan, records, self._op)
        return {i: levels[made.environment.id] for i, made in {**ends, **there}.items()}

    def _get(self, index: int, *, own: bool) -> Candidate | None:
        return self._candidates.get(self._version(index), own_build=own)

    def _version(self, index: int) -> str:
        return self._request.releases[index].version

    def _nested(self, look: Look, everything: dict[int, Candidate]) -> Bench:
        """A run folder for the step, with its plan: its records can be read without the search."""
        names = "-".join(self._version(i) for i in look.targets) or "ends"
        folder = RunFolder(
            self._bench.folder.path / STEPS / f"{look.step:02d}-{look.purpose}-{_UNSAFE.sub('_', names)[:60]}"
        )
        folder.path.mkdir(parents=True, exist_ok=True)
        operation = self._bench.plan.operation(self._op)
        made = list(everything.values())
        baseline = self._bench.plan.baseline
        if not operation.group.startswith("workload:"):
            operation = msgspec.structs.replace(operation, group=ALONE)
        plan = msgspec.structs.replace(
            self._bench.plan,
            environments=tuple(candidate.environment for candidate in made),
            baseline=baseline if baseline in {c.environment.id for c in made} else made[0].environment.id,
            operations=(operation,),
        )
        builds = {c.environment.id: c.build for c in made if c.build is not None}
        stored = StoredPlan(plan=plan, builds=builds, build_failures={}, failures=())
        folder.write_json("plan.json", "plan", PLAN_SCHEMA, stored)
        around = msgspec.structs.replace(self._bench.around, plan=plan, builds=builds)
        return msgspec.structs.replace(self._bench, around=around, folder=folder, host_control=lambda: None)

    def _rounds(self, bench: Bench, look: Look, everything: Sequence[Candidate]) -> list[RoundRecord]:
        """The rounds of the look; a round that is there is never measured again."""
        calibration = self._paced(bench)
        records = {record.number: record for record in measure.read_rounds(bench.folder)}
        todo = [number for number in range(1, look.rounds + 1) if number not in records]
        if todo:
            shown = ", ".join(self._version(i) for i in look.targets) or "the ends"
            what = "verifying" if look.purpose == "verify" else "measuring"
            bench.observer.note(
                f"step {look.step}: {what} {shown}, rounds {todo[0]} to {todo[-1]} of at most "
                f"{look.most_rounds}"
            )
            bench.observer.stage_started("measure", len(todo) * len(everything))
        for number in todo:
            failures = _failures(list(records.values()))
            cells = measure.cells_left(bench.plan, failures)
            if len(cells) < len(everything):
                break  # a release that fails is skipped
            records[number] = measure.measure_round(bench, calibration, number, failures, cells)
            bench.observer.round_finished(number, look.rounds)
        return [records[number] for number in sorted(records) if number <= look.rounds]

    def _paced(self, bench: Bench) -> Calibration:
        """The pace that the ends were given, for all: calls a pass must be equal everywhere."""
        slowest_s = max(self._calibration.invocation_s.values(), default=5.0)
        groups = {operation.group for operation in bench.plan.operations}
        expected = {f"{e.id}|{group}": slowest_s for e in bench.plan.environments for group in groups}
        return msgspec.structs.replace(self._calibration, invocation_s=expected)


def _failures(records: Sequence[RoundRecord]) -> list[Failure]:
    return [failure for record in records for failure in record.failures]


def levels_of(
    folder: RunFolder, plan: Plan, records: Sequence[RoundRecord], op: str
) -> dict[str, FloatArray]:
    """Log of the time per operation by environment, one value a round; NaN where a process is missing."""
    table = arms(samples.remark(samples.to_frame(read_samples(folder, plan, records))))
    count = len(records)
    return {e.id: _mean_log(arms_of(table, op, "warm", e.id), count) for e in plan.environments}


def _mean_log(processes: Sequence[Arm], rounds: int) -> FloatArray:
    if not processes:
        return np.full(rounds, np.nan)
    logs = np.log(np.array([arm.wall for arm in processes]))
    present = np.isfinite(logs)
    sums, counts = np.where(present, logs, 0.0).sum(axis=0), present.sum(axis=0)
    return np.asarray(
        np.divide(sums, counts, out=np.full(logs.shape[1], np.nan), where=counts > 0), dtype=np.float64
    )


def step_folders(folder: RunFolder) -> tuple[Path, ...]:
    """Folders of the steps in order."""
    return tuple(sorted(p.parent for p in (folder.path / STEPS).glob("*/plan.json")))
