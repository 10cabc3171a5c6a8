"""What both engines give every task: environment, places, and how much of its output is kept."""

from pathlib import PurePosixPath

from investigator.engine.interface import Task

SCRATCH = PurePosixPath("/scratch")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TAIL_BYTES = 64 << 10
TMP_BYTES = 256 << 20
"""Size of a private /tmp: compilers write there."""


def task_environment(task: Task, scratch: PurePosixPath) -> dict[str, str]:
    """The whole environment of `task`; its own entries win."""
    return {
        "PATH": PATH,
        "HOME": str(scratch),
        "INVESTIGATE_SCRATCH": str(scratch),
        **task.environment,
    }


def tail(output: bytes) -> str:
    """The end of what a task printed."""
    return output[-TAIL_BYTES:].decode(errors="replace")
