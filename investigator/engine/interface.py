"""What an engine does: run one command, isolated and bounded, and say how it ended.

One task is one container (or one process tree under `local`): docker can kill a container, not an exec.
"""

from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Literal, Protocol

import msgspec

EngineName = Literal["docker", "local"]

Started = Callable[[int], None]
"""Told the process id, on this host, of a task's command once it runs. Must return soon: nobody watches the
task's limits meanwhile."""


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A host directory or file that the task sees.

    `target` is where a container shows it; under `local` without namespaces the task sees `source` itself,
    therefore callers always ask `Engine.inside` for the path to write into a command or a job file.
    """

    source: Path
    target: PurePosixPath
    writable: bool = False


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One command to run in isolation: no network, read-only root, no capabilities, not root, bounded."""

    command: tuple[str, ...]
    """Argument list; no shell ever sees it."""
    purpose: str
    """Short words for labels, progress and error texts, for instance ``build node24.11.1+bsm12.11.1``."""
    mounts: tuple[Mount, ...] = ()
    environment: Mapping[str, str] = {}
    """The whole environment of the task beside PATH and HOME; nothing of the host's own is passed on."""
    working_directory: PurePosixPath | None = None
    timeout_s: float = 600.0
    scratch_bytes: int = 1 << 30
    """Size of the private scratch directory (`Engine.scratch`): of the tmpfs, or needed on disk."""
    scratch_on_disk: bool = False
    memory_bytes: int = 4 << 30
    pids_limit: int = 512
    cpus: str | None = None
    """cpuset such as ``0,1`` or ``0-3``; None takes all."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a task ended. A task that fails is a value; only a failing engine raises."""

    exit_code: int | None
    """Exit status; 128 + signal for a signal; None where the task was killed for its time limit."""
    timed_out: bool = False
    out_of_memory: bool = False
    stdout: str = ""
    """The last 64 KiB, decoded with replacement."""
    stderr: str = ""
    elapsed_s: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the command ended by itself with status 0."""
        return self.exit_code == 0 and not self.timed_out


class Engine(Protocol):
    """Docker or plain processes, behind the same six names."""

    @property
    def name(self) -> EngineName:
        """Which engine this is; printed and stored."""

    @property
    def scratch(self) -> PurePosixPath:
        """Private, empty, writable directory of every task, as the task sees it; for job files.

        ``/scratch``; under `local` without namespaces a path that belongs to the calling thread: ask for it
        in the thread that calls `run`. Tasks find it in ``INVESTIGATE_SCRATCH`` as well.
        """

    def inside(self, mount: Mount) -> PurePosixPath:
        """Path under which a task sees `mount`."""

    def run(self, task: Task, started: Started | None = None) -> Outcome:
        """Run one task to its end, its time limit or its memory limit. Thread safe.

        `started` is called at most once, in this thread; never where the processes of the engine are not
        processes of this machine (a daemon in a virtual machine), or where the task ended first.

        Raises:
            EngineMissingError: the engine does not answer any more.
            HostUnfitError: no space is left on the host.
        """

    def facts(self) -> Mapping[str, str]:
        """Engine, version, image id and digest, isolation in force: for run.json and the report."""

    def close(self) -> None:
        """Kill what still runs and release the client. Safe to call twice and from a signal handler."""
