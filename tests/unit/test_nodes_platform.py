"""What a measured process sees of the machine: asked of a real Node, and of engines that answer badly."""

from pathlib import Path

import pytest

from investigator import resources
from investigator.engine.interface import Outcome
from investigator.nodes.platform import describe_platform
from tests.fakes.engine import FakeEngine
from tests.fakes.plain_engine import PlainEngine

GOOD = '{"uname":"Linux 6.1 #1 x86_64","libc":"glibc 2.36","cpus":2,"memory_limit":"max",'
GOOD += '"cpu_quota":"max 100000","pids_limit":"512"}'


def test_a_real_node_tells_kernel_and_libc_but_not_the_name_of_the_host() -> None:
    facts = describe_platform(PlainEngine(), resources.node_tools(), None)
    assert facts is not None
    kernel, release, _, _, machine = (*facts.uname.split(" ", 3)[:3], "", facts.uname.rsplit(" ", 1)[1])
    assert kernel in {"Linux", "Darwin"}
    assert release[0].isdigit()
    assert machine in {"x86_64", "aarch64", "arm64"}
    assert facts.cpus >= 1


def test_it_is_asked_with_the_limits_of_what_is_measured() -> None:
    engine = FakeEngine([Outcome(exit_code=0, stdout=GOOD)])
    facts = describe_platform(engine, Path("/nodes/24"), "0")
    assert facts is not None
    assert (facts.libc, facts.memory_limit, facts.pids_limit) == ("glibc 2.36", "max", "512")
    (task,) = engine.tasks
    assert task.cpus == "0"
    assert task.command[0] == "/node/bin/node"


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(exit_code=1, stderr="boom"),
        Outcome(exit_code=0, stdout="not JSON"),
        Outcome(exit_code=0, stdout='{"uname": 1}'),
        Outcome(exit_code=None, timed_out=True),
    ],
)
def test_no_answer_is_no_error(outcome: Outcome) -> None:
    assert describe_platform(FakeEngine([outcome]), Path("/nodes/24"), None) is None


def test_what_it_answers_is_bounded() -> None:
    engine = FakeEngine([Outcome(exit_code=0, stdout=GOOD.replace("Linux 6.1", "\\u001b[31m" + "x" * 5_000))])
    facts = describe_platform(engine, Path("/nodes/24"), None)
    assert facts is not None
    assert "\x1b" not in facts.uname
    assert len(facts.uname) < 300
