"""Processes below a known one, and the command of a container."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from investigator.engine import pids
from investigator.engine.pids import children, command_below, descendants

pytestmark = pytest.mark.skipif(not Path("/proc/self/cgroup").exists(), reason="needs Linux")


@pytest.fixture
def parent() -> Iterator[int]:
    """A process that has one child, which sleeps."""
    with subprocess.Popen(
        ("/bin/sh", "-c", "sleep 30 & echo; wait"), stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (child,) = children(process.pid)
        while "sleep" not in Path(f"/proc/{child}/cmdline").read_text().split("\0"):
            time.sleep(0.001)
        yield process.pid
        os.killpg(process.pid, 9)


def test_children_and_their_children_are_found(parent: int) -> None:
    (sleeping,) = children(parent)
    assert parent in children(os.getpid())
    assert {parent, sleeping} <= set(descendants(os.getpid()))
    assert descendants(sleeping) == []


def test_the_command_of_a_container_is_the_first_child_of_its_first_process(parent: int) -> None:
    # Every control group has a slash in its path.
    assert command_below(parent, "/", "the guard") == children(parent)[0]


def test_the_guard_is_not_yet_the_command(parent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pids, "_APPEARS_S", 0.05)
    assert command_below(parent, "/", "30") is None


def test_a_process_of_another_container_has_no_command(parent: int) -> None:
    assert command_below(parent, "0123456789abcdef", "") is None
    assert command_below(2**22 + 1, "/", "") is None
