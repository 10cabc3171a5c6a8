"""The sqlite3 calls of the addon against those of the core loop: the judgement, and what is compiled."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

import msgspec
import pytest

from investigator import sqlite_calls
from investigator.build import AddonBuild
from investigator.engine.interface import EngineName, Mount, Outcome, Task
from investigator.nodes.interface import NodeBuild
from investigator.operations import CORE, SQLITE
from investigator.sqlite_calls import (
    CallCounts,
    SqliteCalls,
    SqliteCallsFailure,
    addon_words,
    count_sqlite_calls,
)

NAMES = ("sqlite3_column_name", "sqlite3_reset", "sqlite3_step")
COMMAND = (
    "g++ -o Release/obj.target/x/src/better_sqlite3.o ../src/better_sqlite3.cpp '-DNAPI_VERSION=10' "
    "-I/node/include/node -I/build/package/node_modules/node-addon-api -I./Release/obj/gen/sqlite3 -fPIC "
    "-pthread -Wall -m64 -O3 -fno-omit-frame-pointer -flto -fplugin=x -std=c++20 -MMD -MF ./x.d.raw -c"
)


def counts(addon: list[int], **core: list[int]) -> dict[str, object]:
    return {"addon": addon, "core": core}


def result(**special: object) -> dict[str, object]:
    """What the counting process writes: equal counts with `bulk` only, but for some operations."""
    usual = counts([4, 1, 9], set=[36, 1, 9], bulk=[4, 1, 9], factory=[0, 1, 9])
    return {operation.name: special.get(operation.name, usual) for operation in SQLITE}


class CountingEngine:
    """Leaves object files that name functions, then the given result; keeps the tasks and the job."""

    name: EngineName = "docker"
    scratch = PurePosixPath("/scratch")

    def __init__(self, written: object, outcome: Outcome | None = None, symbols: bytes | None = None) -> None:
        self.written = written
        self.outcome = outcome or Outcome(exit_code=0)
        self.symbols = symbols or b"\0" + b"\0".join(name.encode() for name in NAMES) + b"\0sqlite3_own\0"
        self.tasks: list[Task] = []
        self.job: dict[str, object] = {}
        self.counted = ""

    def inside(self, mount: Mount) -> PurePosixPath:
        return PurePosixPath(mount.source)

    def facts(self) -> Mapping[str, str]:
        return {"base": "sha256:image"}

    def close(self) -> None:
        pass

    def run(self, task: Task, started: Callable[[int], None] | None = None) -> Outcome:
        self.tasks.append(task)
        if "-c" in task.command:
            Path(task.command[task.command.index("-o") + 1]).write_bytes(self.symbols)
        elif task.command[0] == "g++":
            folder = next(word[2:] for word in task.command if word.startswith("-I"))
            self.counted = Path(folder, "counted.h").read_text()
        else:
            self.job = json.loads(Path(task.command[-1]).read_text())
            text = self.written if isinstance(self.written, str) else json.dumps(self.written)
            Path(str(self.job["output"])).write_text(text)
        return self.outcome


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))


def a_build(tmp_path: Path, *, shipped: bool = False) -> AddonBuild:
    directory = tmp_path / "build"
    directory.mkdir(exist_ok=True)
    (directory / "sqlite3.o").write_bytes(b"\0" + b"\0".join(name.encode() for name in NAMES) + b"\0")
    return AddonBuild(
        key="k",
        directory=directory,
        entry="package/lib/index.js",
        binding="better_sqlite3.node",
        binding_sha256="b",
        sqlite3_object_sha256=None if shipped else "o",
        compiler="g++ 12",
        flags={} if shipped else {"better_sqlite3.cpp": COMMAND, "sqlite3.c": "gcc x", "x.node": "g++ -o x"},
        elapsed_s=1.0,
    )


def count(
    tmp_path: Path, engine: CountingEngine, *, shipped: bool = False
) -> SqliteCalls | SqliteCallsFailure:
    mailbox = tmp_path / "mailbox"
    mailbox.write_text("mail")
    node = NodeBuild(
        version="24.11.1", source="npm", directory=tmp_path, node_sha256="", versions={}, config_sha256=""
    )
    return count_sqlite_calls(engine, node, a_build(tmp_path, shipped=shipped), mailbox)


# -- the judgement ------------------------------------------------------------------------------------------


def test_the_row_builder_with_which_the_calls_agree_is_told(tmp_path: Path) -> None:
    calls = count(tmp_path, CountingEngine(result()))
    assert isinstance(calls, SqliteCalls)
    assert calls.row_builder == "bulk"
    assert calls.same
    assert calls.operations["select_range"].table == {
        "sqlite3_column_name": (4, 4),
        "sqlite3_reset": (1, 1),
        "sqlite3_step": (9, 9),
    }
    assert [calls.difference(operation.name) for operation in SQLITE] == [None] * len(SQLITE)


def test_a_difference_is_told_for_its_operation_only(tmp_path: Path) -> None:
    other = counts([0, 1, 9], set=[36, 2, 9], bulk=[0, 2, 9], factory=[0, 2, 9])
    calls = count(tmp_path, CountingEngine(result(select_point=other)))
    assert isinstance(calls, SqliteCalls)
    assert not calls.same
    assert calls.operations["select_point"].differences == {"sqlite3_reset": (1, 2)}
    assert calls.difference("select_point") == (
        "in 8 calls of select_point the addon and the core loop differ in their sqlite3 calls: "
        "sqlite3_reset 1 and 2"
    )
    assert calls.difference("select_range") is None


def test_an_operation_that_failed_or_was_never_run_is_not_the_same(tmp_path: Path) -> None:
    written = result(open_key={"error": "the core loop reads other values"}, select_udf=counts([1], set=[1]))
    del written["update_row"]
    calls = count(tmp_path, CountingEngine(written))
    assert isinstance(calls, SqliteCalls)
    assert not calls.same
    assert "other values" in str(calls.difference("open_key"))
    assert "incomplete" in str(calls.difference("select_udf"))
    assert "it was not run" in str(calls.difference("update_row"))
    assert "were not counted" in str(calls.difference("mine"))


def test_many_differences_are_shortened() -> None:
    addon = {f"sqlite3_{letter}": 1 for letter in "abcde"}
    calls = SqliteCalls(row_builder="set", operations={"x": CallCounts(addon=addon, core={})})
    assert str(calls.difference("x")).endswith("sqlite3_c 1 and 0 and 2 more")


# -- the process --------------------------------------------------------------------------------------------


def test_it_is_counted_once(tmp_path: Path) -> None:
    engine = CountingEngine(result())
    first = count(tmp_path, engine)
    tasks = len(engine.tasks)
    assert count(tmp_path, engine) == first
    assert len(engine.tasks) == tasks


def test_every_function_that_both_sides_know_is_counted(tmp_path: Path) -> None:
    engine = CountingEngine(result())
    count(tmp_path, engine)
    assert engine.counted.splitlines() == [f"COUNTED({index}, {name})" for index, name in enumerate(NAMES)]
    links = [task.command for task in engine.tasks if "-shared" in task.command]
    assert len(links) == 2
    for link in links:
        assert [word for word in link if "--wrap" in word] == [f"-Wl,--wrap={name}" for name in NAMES]
        assert "-Wl,-Bsymbolic" in link
    assert engine.job["names"] == len(NAMES)
    operations = engine.job["operations"]
    assert isinstance(operations, list)
    assert [each["name"] for each in operations] == [operation.name for operation in SQLITE]
    assert [each["core"]["workload"] for each in operations] == [operation.workload for operation in CORE]


@pytest.mark.parametrize(
    ("written", "reason"),
    [("{", "cannot be read"), ("[]", "cannot be read"), ('{"open_key": {"addon": ["x"]}}', "cannot be read")],
)
def test_a_result_that_is_none_is_a_failure(tmp_path: Path, written: str, reason: str) -> None:
    calls = count(tmp_path, CountingEngine(written))
    assert isinstance(calls, SqliteCallsFailure)
    assert reason in calls.reason


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Outcome(exit_code=1, stderr="/a/x.cpp:3:1: error: no\n"), "/a/x.cpp:3:1: error: no"),
        (Outcome(exit_code=None, timed_out=True), "did not end within 600 s"),
        (Outcome(exit_code=139), "status 139"),
    ],
)
def test_a_compiler_that_fails_is_quoted(tmp_path: Path, outcome: Outcome, reason: str) -> None:
    calls = count(tmp_path, CountingEngine(result(), outcome))
    assert isinstance(calls, SqliteCallsFailure)
    assert calls.reason.startswith("the sqlite3 calls of the addon cannot be counted: compile the addon")
    assert reason in calls.reason


def test_an_addon_that_calls_no_sqlite_is_a_failure(tmp_path: Path) -> None:
    calls = count(tmp_path, CountingEngine(result(), symbols=b"\0nothing\0"))
    assert isinstance(calls, SqliteCallsFailure)
    assert "0 functions" in calls.reason


def test_a_shipped_binary_is_not_counted(tmp_path: Path) -> None:
    engine = CountingEngine(result())
    calls = count(tmp_path, engine, shipped=True)
    assert isinstance(calls, SqliteCallsFailure)
    assert "shipped" in calls.reason
    assert engine.tasks == []


def test_the_addon_is_compiled_with_what_decides_its_meaning() -> None:
    words = addon_words(COMMAND, {"/node": "/n", "/build": "/addon"})
    assert words == (
        "/addon/package/src/better_sqlite3.cpp",
        "-DNAPI_VERSION=10",
        "-I/n/include/node",
        "-I/addon/package/node_modules/node-addon-api",
        "-I./Release/obj/gen/sqlite3",
        "-fPIC",
        "-pthread",
        "-m64",
        "-std=c++20",
        "-I/addon/package/deps/sqlite3",
    )


def test_the_comparison_survives_its_file() -> None:
    calls = SqliteCalls(row_builder="set", operations={"x": CallCounts(addon={"a": 1}, core={})})
    assert msgspec.json.decode(msgspec.json.encode(calls), type=SqliteCalls) == calls
    assert sqlite_calls.CALLS % 4 == 0
