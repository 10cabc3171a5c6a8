"""The parts of the local engine that decide; what it does to processes is tested with real ones."""

import os
from pathlib import Path, PurePosixPath

import pytest

from investigator.engine import local
from investigator.engine.interface import Mount, Task
from investigator.engine.local import LocalEngine, Way, possible_ways
from investigator.errors import EngineMissingError, HostUnfitError

PLAIN = Way(caged=False, uid=os.geteuid(), gid=os.getegid())
STATUS = """Name:\tcat
Uid:\t65532\t65532\t65532\t65532
Gid:\t65532\t65532\t65532\t65532
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapBnd:\t{bounding}
CapAmb:\t0000000000000000
NoNewPrivs:\t{sealed}
Inter-|   Receive                               |  Transmit
 face |bytes packets errs drop fifo frame (...) |bytes packets errs drop fifo colls (...)
    lo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
"""
ETHERNET = "  eth0: 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [(None, []), ("0", [0]), ("0,2", [0, 2]), ("1-3", [1, 2, 3]), ("0,2-3,2", [0, 2, 3])],
)
def test_cpu_lists(text: str | None, numbers: list[int]) -> None:
    assert local._cpus(text) == numbers


def test_ways_by_user_and_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "getegid", lambda: 0)
    assert [(way.caged, way.user_namespace, way.uid) for way in possible_ways()] == [
        (True, False, 65532),
        (False, False, 65532),
        (False, False, 0),
    ]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert [(way.caged, way.user_namespace, way.uid) for way in possible_ways()] == [
        (True, True, 1000),
        (False, False, 1000),
    ]
    monkeypatch.setattr(local, "_is_linux", lambda: False)
    assert [(way.caged, way.uid) for way in possible_ways()] == [(False, 1000)]


def test_facts_are_read_from_inside() -> None:
    shut = STATUS.format(bounding="0" * 16, sealed="1")
    assert local._network(shut) == "none"
    assert local._privileges(shut) == {
        "user": "65532:65532",
        "capabilities": "none",
        "no_new_privileges": "yes",
    }
    assert local._network(shut + ETHERNET) == "the host's"
    assert local._network("") == "the host's"


@pytest.mark.parametrize(
    ("bounding", "sealed", "capabilities"),
    [("1ff", "1", "none"), ("1ff", "0", "the user's own"), ("0", "0", "none")],
)
def test_a_bounding_set_counts_only_where_something_can_be_taken_from_it(
    bounding: str, sealed: str, capabilities: str
) -> None:
    assert local._privileges(STATUS.format(bounding=bounding, sealed=sealed))["capabilities"] == capabilities


def test_a_way_that_fails_is_followed_by_the_next(tmp_path: Path) -> None:
    broken = Way(caged=True, user_namespace=True, uid=os.geteuid(), gid=os.getegid())
    with pytest.MonkeyPatch.context() as patch:
        # Cages cannot be built on a root that is no directory.
        patch.setattr(local, "Cage", lambda **cage: {**cage, "root": str(tmp_path / "nowhere")})
        engine = LocalEngine(storage_root=tmp_path, ways=(broken, PLAIN))
    try:
        facts = engine.facts()
        assert facts["isolation"].startswith("none; namespaces: a first task cannot be started")
        assert facts["root"] == "the host's"
        assert engine.run(Task(command=("true",), purpose="a test")).ok
    finally:
        engine.close()
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_works_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("investigator.engine.process._SUPERVISOR", "no.such.module")
    with pytest.raises((HostUnfitError, EngineMissingError), match="no process can be run on this machine"):
        LocalEngine(storage_root=tmp_path, ways=(PLAIN,))
    assert list(tmp_path.iterdir()) == []


def test_paths_without_a_cage(tmp_path: Path) -> None:
    engine = LocalEngine(storage_root=tmp_path, ways=(PLAIN,))
    try:
        mount = Mount(source=tmp_path / "a", target=PurePosixPath("/a"))
        assert engine.inside(mount) == PurePosixPath(tmp_path / "a")
        assert engine.scratch == engine.scratch
        assert not Path(engine.scratch).exists()
        assert engine.name == "local"
    finally:
        engine.close()
        engine.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops to another user")
def test_a_mount_that_the_unprivileged_user_cannot_reach(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    engine = LocalEngine(storage_root=Path("/var/tmp/investigate-test"), ways=possible_ways()[1:])  # noqa: S108
    try:
        (tmp_path / "given").mkdir(mode=0o755)
        mount = Mount(source=tmp_path / "given", target=PurePosixPath("/given"))
        with pytest.raises(HostUnfitError, match=r"cannot be reached .*chmod o\+x"):
            engine.run(Task(command=("true",), purpose="a test", mounts=(mount,)))
    finally:
        engine.close()
        Path("/var/tmp/investigate-test").rmdir()  # noqa: S108
