"""An engine that runs commands on this machine as they are: for our own code and released Node only."""

import subprocess
from collections.abc import Mapping
from pathlib import PurePosixPath

from investigator.engine.interface import EngineName, Mount, Outcome, Started, Task


class PlainEngine:
    """No isolation and no limits; the isolation of real engines has tests of its own."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    @property
    def name(self) -> EngineName:
        return "local"

    @property
    def scratch(self) -> PurePosixPath:
        return PurePosixPath("/nonexistent")

    def inside(self, mount: Mount) -> PurePosixPath:
        return PurePosixPath(mount.source)

    def run(self, task: Task, started: Started | None = None) -> Outcome:
        self.tasks.append(task)
        done = subprocess.run(task.command, capture_output=True, text=True, check=False)
        return Outcome(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def facts(self) -> Mapping[str, str]:
        return {"engine": "plain"}

    def close(self) -> None:
        return
