"""Owners: who left something behind, and whether they still live."""

import os
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from investigator.engine.owner import Owner, current_owner, is_dead, parse_owner


def test_the_living_are_not_dead() -> None:
    owner = current_owner()
    assert owner.pid == os.getpid()
    assert not is_dead(owner)
    assert parse_owner(str(owner)) == owner


def test_a_process_that_has_ended_is_dead_also_before_it_is_reaped() -> None:
    program = "from investigator.engine.owner import current_owner; print(current_owner())"
    with subprocess.Popen((sys.executable, "-c", program), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        owner = parse_owner(process.stdout.read().strip())
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert owner is not None
        assert owner.pid == process.pid
        assert is_dead(owner)
    assert is_dead(owner)


@pytest.mark.parametrize(
    ("change", "dead"),
    [
        ({"start": "1"}, True),  # the pid was given to somebody else
        ({"boot": "another"}, True),  # the machine was started again
        ({"pid": 2**30}, True),
        ({"host": "another/4026531836"}, False),  # nothing can be said
        ({"host": "another/4026531836", "pid": 2**30}, False),
    ],
)
def test_reused_pids_and_other_machines(change: dict[str, str], dead: bool) -> None:
    assert is_dead(msgspec.structs.replace(current_owner(), **change)) is dead


@pytest.mark.parametrize(
    "text", ["", "1", "1:2:3", "1:2:3:4:5", "x:2:3:4", "-1:2:3:4", "¹:2:3:4", "9" * 40 + ":2:3:4"]
)
def test_labels_of_strangers(text: str) -> None:
    assert parse_owner(text) is None


@given(st.text(max_size=80))
def test_any_label_is_read_or_refused(text: str) -> None:
    owner = parse_owner(text)
    assert owner is None or isinstance(owner, Owner)
    if owner is not None:
        is_dead(owner)
