"""Processes of this machine that belong to a task: those below a known one."""

import contextlib
import time
from pathlib import Path

import psutil

_APPEARS_S = 2.0
"""How long the first process of a container may take to start the command."""


def children(pid: int) -> list[int]:
    """Child processes of `pid`, oldest first; adopted ones come after its own.

    Where the kernel lists the children of a thread, that is read: psutil looks at every process of the
    machine, which on a busy one costs more CPU than a harness may take while others are timed.
    """
    if not Path(f"/proc/{pid}/task/{pid}/children").exists():
        with contextlib.suppress(psutil.Error):
            return [process.pid for process in psutil.Process(pid).children()]
        return []
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            found += map(int, (thread / "children").read_text(encoding="ascii").split())
    return found


def descendants(pid: int) -> list[int]:
    """All processes below `pid`."""
    found, new = [], [pid]
    while new:
        new = [child for parent in new for child in children(parent)]
        found += new
    return found


def command_below(init: int, container: str, guard: str) -> int | None:
    """The command that `init`, the first process of a container, has started, once `guard` has become it.

    None where `init` is no process of that container on this machine: the daemon runs in a virtual machine or
    on another host, so that its process ids mean nothing here.
    """
    deadline_s = time.monotonic() + _APPEARS_S
    while _in_container(init, container):
        # What the guard detaches is adopted: it comes after the command.
        if (below := children(init)) and guard not in _arguments(below[0]):
            return below[0]
        if time.monotonic() > deadline_s:
            break
        time.sleep(0.002)
    return None


def _arguments(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    except OSError:
        return []


def _in_container(pid: int, container: str) -> bool:
    try:
        return container in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
