"""An engine whose tasks are simulated workers of known behaviour: same files, no process."""

import hashlib
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from investigator.engine.interface import EngineName, Mount, Outcome, Started, Task

Behaviour = Callable[[dict[str, object]], Outcome | None]
"""Looks at the job before the simulated worker runs; an outcome it returns replaces the run."""


class WorkerEngine:
    """Simulates the worker: `cost_ns` gives the time of one call of (environment, operation)."""

    def __init__(
        self,
        cost_ns: Callable[[str, str], float],
        *,
        noise: float = 0.01,
        seed: int = 1,
        fail_ops: Mapping[tuple[str, str], str] | None = None,
        crash_ops: Mapping[tuple[str, str], Outcome] | None = None,
        checksum: Callable[[str, str, int], str] | None = None,
        hello: Mapping[str, object] | None = None,
        before: Callable[[dict[str, object], int], None] | None = None,
    ) -> None:
        self.cost_ns = cost_ns
        self.noise = noise
        self.rng = random.Random(seed)  # noqa: S311
        self.fail_ops = fail_ops or {}
        self.crash_ops = crash_ops or {}
        self.checksum = checksum or (lambda _environment, op, _n: op)
        self.hello = hello or {}
        self.before = before
        self.jobs: list[dict[str, object]] = []
        self.closed = False

    @property
    def name(self) -> EngineName:
        return "local"

    @property
    def scratch(self) -> PurePosixPath:
        return PurePosixPath("/scratch")

    def inside(self, mount: Mount) -> PurePosixPath:
        return PurePosixPath(mount.source)

    def facts(self) -> Mapping[str, str]:
        return {"engine": "fake"}

    def close(self) -> None:
        self.closed = True

    def run(self, task: Task, started: Started | None = None) -> Outcome:
        job = json.loads(Path(task.command[-1]).read_text())
        node = next(m.source for m in task.mounts if str(m.target) == "/node")
        binding = job["addon"]["binding"] if job["addon"] else None
        self.jobs.append(job)
        if self.before is not None:
            self.before(job, len(self.jobs))
        lines: list[object] = [self._hello(job, node, binding)]
        outcome = self._operations(job, lines)
        Path(job["output"]).write_text("".join(json.dumps(line) + "\n" for line in lines))
        return outcome

    def _hello(self, job: dict[str, object], node: Path, binding: str | None) -> dict[str, object]:
        return {
            "type": "hello",
            "protocol": 1,
            "environment": job["environment"],
            "versions": {"node": node.name},
            "config_sha256": "1" * 64,
            "exec_path": str(node / "bin/node"),
            "exec_argv": [],
            "node_inode": (node / "bin/node").stat().st_ino,
            "node_build_id": None,
            "binding_path": binding,
            "binding_inode": Path(binding).stat().st_ino if binding else None,
            "binding_build_id": None,
            "addon_versions": {},
        } | dict(self.hello)

    def _operations(self, job: dict[str, object], lines: list[object]) -> Outcome:
        environment = str(job["environment"])
        operations: list[dict[str, object]] = job["operations"]  # type: ignore[assignment]
        healthy = []
        for operation in operations:
            op = str(operation["name"])
            lines.append({"type": "begin", "op": op, "stage": "setup", "index": 0})
            if (environment, op) in self.crash_ops:
                return self.crash_ops[environment, op]
            if (environment, op) in self.fail_ops:
                lines.append(
                    {"type": "op_failed", "op": op, "stage": "setup", "stack": "",
                     "message": self.fail_ops[environment, op]}
                )  # fmt: skip
                continue
            healthy.append(operation)
            lines.append(self._pass(environment, operation, "cold", 0, int(operation["cold_calls"])))  # type: ignore[call-overload]
            lines.append(self._checksum(environment, op, "before"))
        for operation in healthy:
            op = str(operation["name"])
            if job["mode"] == "calibrate":
                cost = self.cost_ns(environment, op)
                calls = max(3, int(150e6 / cost))
                lines.append(
                    {"type": "calibration", "op": op, "calls": calls, "total_calls": 2 * calls,
                     "wall_ns": int(calls * cost)}
                )  # fmt: skip
        if job["mode"] == "measure":
            states = {str(o["name"]): self.rng.gauss(0.0, self.noise) for o in healthy}
            for index in range(int(job["passes"])):  # type: ignore[call-overload]
                for operation in healthy:
                    loops = int(operation["loops"])  # type: ignore[call-overload]
                    state = states[str(operation["name"])]
                    lines.append(self._pass(environment, operation, "pass", index, loops, state))
            lines.extend(self._checksum(environment, str(o["name"]), "after") for o in healthy)
        lines.append({"type": "done", "wall_ns": 1})
        return Outcome(exit_code=0, elapsed_s=0.01)

    def _checksum(self, environment: str, op: str, when: str) -> dict[str, object]:
        value = hashlib.sha256(self.checksum(environment, op, len(self.jobs)).encode()).hexdigest()
        return {"type": "checksum", "op": op, "when": when, "value": value}

    def _pass(
        self, environment: str, operation: dict[str, object], phase: str, index: int, calls: int,
        state: float = 0.0,
    ) -> dict[str, object]:  # fmt: skip
        factor = 1.0 + state + abs(self.rng.gauss(0.0, self.noise / 4))
        wall_ns = int(calls * self.cost_ns(environment, str(operation["name"])) * factor)
        return {
            "type": "pass",
            "op": operation["name"],
            "phase": phase,
            "index": index,
            "calls": calls,
            "start_ns": 1000,
            "wall_ns": wall_ns,
            "cpu_user_us": wall_ns // 1000,
            "cpu_system_us": 0,
            "gc": [],
            "involuntary_switches": 0,
            "voluntary_switches": 0,
            "rss_bytes": 50_000_000,
            "heap_used_bytes": 5_000_000,
            "external_bytes": 1_000_000,
            "fold": 1,
        }
