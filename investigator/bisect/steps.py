"""One step of the search, measured in a nested run folder: both ends and the candidates in rounds."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from investigator import cache_limit, measure
from investigator.arms import Arm, arms, arms_of
from investigator.bisect.candidates import Candidate, Candidates
from investigator.bisect.request import Request
from investigator.errors import NothingBuiltError
from investigator.measure import Bench, Calibration, RoundRecord
from investigator.plan import ONCE, Failure, Plan
from investigator.prepare import PLAN_SCHEMA, StoredPlan
from investigator.records import read_table
from investigator.stats.bisection import Levels, Look
from investigator.stats.process import FloatArray
from investigator.store import RunFolder

STEPS: Final = "steps"
STEP_FILE: Final = "step.json"
STEP_SCHEMA: Final = 1
ALONE: Final = f"{ONCE}bisect"
"""Group: one process a release and round; the ends take part in every round of every step."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9.]+")


class StepRecord(msgspec.Struct, frozen=True, kw_only=True):
    """step.json: what a step measured, beside its plan."""

    environments: dict[str, str]
    """Identifier of the environment of each release."""
    built_for: dict[str, str]
    """Release for whose headers each one's addon was compiled; empty where there is none."""


class Stepper:
    """Carries out the looks of a search, whatever of them has not been measured yet."""

    def __init__(
        self,
        bench: Bench,
        calibration: Calibration,
        request: Request,
        candidates: Candidates,
        op: str,
        keep_bytes: int | None = None,
    ) -> None:
        self._bench, self._calibration, self._request = bench, calibration, request
        self._candidates, self._op = candidates, op
        self._keep_bytes, self._step = keep_bytes, 0

    def __call__(self, look: Look) -> Levels:
        """Measure what is missing of a look and return all its rounds; see `stats.bisection.Measure`.

        Raises:
            NothingBuiltError: an end can no longer be measured.
            InvestigateError: engine, registry or disk.
        """
        folder = self._folder(look)
        finished = self._finished(folder, look)
        if finished is not None:
            return finished
        self._make_room(look)
        own = look.purpose == "verify"
        there = {i: made for i in look.targets if (made := self._get(i, own=own)) is not None}
        if look.targets and not there:
            return {}
        ends = {i: made for i in look.ends if (made := self._get(i, own=own)) is not None}
        if len(ends) < len(look.ends):
            return {}
        everything = {**ends, **there}
        nested = self._nested(folder, everything)
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

    def _finished(self, folder: RunFolder, look: Look) -> Levels | None:
        """The rounds of a look that was measured whole before; None where something is missing.

        Nothing is fetched or built for it.
        """
        if not (folder.path / STEP_FILE).exists() or len(folder.finished_rounds()) < look.rounds:
            return None
        stored = folder.read_json("plan.json", "plan", PLAN_SCHEMA, StoredPlan)
        step = folder.read_json(STEP_FILE, "bisect-step", STEP_SCHEMA, StepRecord)
        records = measure.read_rounds(folder)
        if _failures(records) or any(record.number > len(records) for record in records):
            return None
        levels = levels_of(folder, stored.plan, records[: look.rounds], self._op)
        found = {}
        for index in (*look.ends, *look.targets):
            version = self._version(index)
            if version in step.environments:
                environment = stored.plan.environment(step.environments[version])
                self._candidates.remember(
                    version,
                    Candidate(
                        environment=environment,
                        build=stored.builds.get(environment.id),
                        built_for=step.built_for[version],
                    ),
                )
                found[index] = levels[environment.id]
        return found

    def _make_room(self, look: Look) -> None:
        """Before a new step, let the cache shrink to its bound: releases of earlier steps may go."""
        if self._keep_bytes is not None and look.step != self._step:
            self._candidates.give_up({self._version(i) for i in (*look.ends, *look.targets)})
            cache_limit.keep_within(self._keep_bytes, self._bench.observer.note)
        self._step = look.step

    def _get(self, index: int, *, own: bool) -> Candidate | None:
        return self._candidates.get(self._version(index), own_build=own)

    def _version(self, index: int) -> str:
        return self._request.releases[index].version

    def _folder(self, look: Look) -> RunFolder:
        names = "-".join(self._version(i) for i in look.targets) or "ends"
        name = f"{look.step:02d}-{look.purpose}-{_UNSAFE.sub('_', names)[:60]}"
        return RunFolder(self._bench.folder.path / STEPS / name)

    def _nested(self, folder: RunFolder, everything: dict[int, Candidate]) -> Bench:
        """The run folder of the step, with its plan: its records can be read without the search."""
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
        step = StepRecord(
            environments={self._version(i): c.environment.id for i, c in everything.items()},
            built_for={self._version(i): c.built_for for i, c in everything.items()},
        )
        folder.write_json(STEP_FILE, "bisect-step", STEP_SCHEMA, step)
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
    table = arms(read_table(folder, plan, records))
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
