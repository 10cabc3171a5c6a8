"""Plain processes, for machines without a container engine."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from investigator.engine.interface import EngineName, Mount, Outcome, Task
from investigator.errors import EngineMissingError


class LocalEngine:
    """Runs tasks as plain processes."""

    def __init__(self, *, storage_root: Path) -> None:
        """`storage_root` is where scratch directories on disk are made."""
        self._storage_root = storage_root

    @property
    def name(self) -> EngineName:
        """``local``."""
        return "local"

    @property
    def scratch(self) -> PurePosixPath:
        """The literal that stands for the scratch directory."""
        return PurePosixPath("$INVESTIGATE_SCRATCH")

    def inside(self, mount: Mount) -> PurePosixPath:
        """The source itself."""
        return PurePosixPath(mount.source)

    def run(self, task: Task) -> Outcome:
        """Not there yet."""
        raise EngineMissingError(f"--engine local cannot run {task.purpose} yet: use --engine docker")

    def facts(self) -> Mapping[str, str]:
        """Engine and isolation."""
        return {"engine": "local"}

    def close(self) -> None:
        """Nothing runs."""
