"""The host program: how it is compiled and asked, and what happens when it does not answer well."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

import pytest

from investigator import native, resources
from investigator.addons import AddonPackage
from investigator.build import AddonBuild, BuildFailure
from investigator.engine.interface import EngineName, Mount, Outcome, Started, Task
from investigator.native import (
    PASSPHRASE,
    HostReading,
    NativeFailure,
    NativeReading,
    compile_host_program,
    run_host_control,
    run_native,
    run_node_control,
)
from investigator.nodes.interface import NodeBuild
from sqlcipher_bench.profiles import VARIATIONS, Profile

HELLO: dict[str, object] = {
    "type": "hello",
    "protocol": 1,
    "sqlite": "3.50.0",
    "cipher": "chacha20",
    "pragmas": {"journal_mode": "wal"},
}
VALUES = ("setup_ns", "wal_bytes", "database_bytes", "vacuum_ns", "database_after_vacuum_bytes")
DONE = {"type": "done", "wall_ns": 9, "fold": 7}


def passes(op: str = "select_range", calls: int = 100) -> list[dict[str, object]]:
    return [
        {"type": "pass", "op": op, "index": i, "calls": calls, "wall_ns": 1000 * (i + 1), "cpu_ns": 900}
        for i in range(3)
    ]


class HostEngine:
    """Compiles by leaving a file, runs by writing the given lines into the output file of the command."""

    name: EngineName = "docker"
    scratch = PurePosixPath("/scratch")

    def __init__(self, *lines: object, outcome: Outcome | None = None, leave: bool = True) -> None:
        self.lines = lines
        self.outcome = outcome or Outcome(exit_code=0)
        self.leave = leave
        self.tasks: list[Task] = []

    def inside(self, mount: Mount) -> PurePosixPath:
        return PurePosixPath(mount.source)

    def facts(self) -> Mapping[str, str]:
        return {"base": "sha256:image"}

    def close(self) -> None:
        pass

    def run(self, task: Task, started: Started | None = None) -> Outcome:
        self.tasks.append(task)
        out = next((mount.source for mount in task.mounts if str(mount.target) == "/out"), None)
        if task.command[0] == "gcc" and self.leave:
            Path(task.command[task.command.index("-o") + 1]).write_text("program")
        elif out is not None and self.leave:
            (out / "lines.jsonl").write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return self.outcome


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))


def addon_build(
    tmp_path: Path, *, shipped: bool = False, gypi: str = "{'defines': ['A=1', 'B']}"
) -> AddonBuild:
    sources = tmp_path / "build/package/deps/sqlite3"
    sources.mkdir(parents=True, exist_ok=True)
    (sources / "sqlite3.c").write_text("int sqlite3;")
    (sources / "sqlite3.h").write_text("extern int sqlite3;")
    (tmp_path / "build/package/deps/defines.gypi").write_text(f"# made by a script\n{gypi}\n")
    return AddonBuild(
        key="k",
        directory=tmp_path / "build",
        entry="package/lib/index.js",
        binding="better_sqlite3.node",
        binding_sha256="b",
        sqlite3_object_sha256=None if shipped else "o",
        compiler="g++ 12",
        flags={}
        if shipped
        else {
            "sqlite3.c": "gcc -o x.o '-DSQLITE_DQS=0' -I/node -fPIC -pthread -Wall -std=c99 -m64 -O3 -O3 -c"
        },
        elapsed_s=1.0,
    )


def a_node(tmp_path: Path) -> NodeBuild:
    return NodeBuild(
        version="24.11.1", source="npm", directory=tmp_path, node_sha256="", versions={}, config_sha256=""
    )


# -- compiling ----------------------------------------------------------------------------------------------


def test_the_program_gets_the_flags_of_the_addons_own_build(tmp_path: Path) -> None:
    engine = HostEngine()
    program = compile_host_program(engine, addon_build(tmp_path))
    assert isinstance(program, Path)
    assert program.read_text() == "program"
    command = engine.tasks[0].command
    assert command[:5] == ("gcc", "-fPIC", "-pthread", "-m64", "-O3")
    assert str(tmp_path / "build/sqlite3.o") in command
    assert {"-Wall", "-Wextra"} <= set(command)


def test_it_is_compiled_once(tmp_path: Path) -> None:
    engine = HostEngine()
    assert compile_host_program(engine, addon_build(tmp_path)) == compile_host_program(
        engine, addon_build(tmp_path)
    )
    assert len(engine.tasks) == 1


def test_a_shipped_binary_gets_its_amalgamation_compiled_with_the_packages_options(tmp_path: Path) -> None:
    engine = HostEngine()
    assert isinstance(compile_host_program(engine, addon_build(tmp_path, shipped=True)), Path)
    first, second = (task.command for task in engine.tasks)
    assert {"-DA=1", "-DB", "-DNDEBUG", "-O3", "-c"} <= set(first)
    assert first[first.index("-o") + 1] in second


@pytest.mark.parametrize(
    "gypi", ["{", "[]", "{}", "{'defines': 5}", "__import__('os').getcwd()", "{'defines': [" + "(" * 5000]
)
def test_a_build_file_that_is_no_literal_is_a_failure(tmp_path: Path, gypi: str) -> None:
    result = compile_host_program(HostEngine(), addon_build(tmp_path, shipped=True, gypi=gypi))
    assert isinstance(result, BuildFailure)
    assert "deps/defines.gypi of the addon cannot be read" in result.reason


def test_an_addon_without_sqlite_is_a_failure(tmp_path: Path) -> None:
    build = addon_build(tmp_path)
    (tmp_path / "build/package/deps/sqlite3/sqlite3.h").unlink()
    result = compile_host_program(HostEngine(), build)
    assert isinstance(result, BuildFailure)
    assert "has no deps/sqlite3/sqlite3.h" in result.reason


def test_a_compiler_that_fails_is_quoted(tmp_path: Path) -> None:
    stderr = "/native/host.c:1:1: error: what is this\ncompilation terminated."
    engine = HostEngine(outcome=Outcome(exit_code=1, stderr=stderr), leave=False)
    result = compile_host_program(engine, addon_build(tmp_path))
    assert isinstance(result, BuildFailure)
    assert result.reason.endswith("/native/host.c:1:1: error: what is this")


# -- measuring ----------------------------------------------------------------------------------------------


def test_the_host_control_gives_its_passes(tmp_path: Path) -> None:
    engine = HostEngine(HELLO, *passes(), DONE)
    reading = run_host_control(engine, tmp_path / "host", tmp_path / "mailbox", cpus="0")
    assert reading == HostReading(
        op="select_range", calls=(100,) * 3, wall_ns=(1000, 2000, 3000), cpu_ns=(900,) * 3
    )
    assert reading.ns_per_call == 10.0
    assert engine.tasks[0].cpus == "0"


def test_the_key_is_in_the_environment_and_never_in_the_arguments(tmp_path: Path) -> None:
    engine = HostEngine(HELLO, *passes(), DONE)
    run_host_control(engine, tmp_path / "host", tmp_path / "mailbox")
    run_host_control(engine, tmp_path / "host", tmp_path / "mailbox", cipher="none")
    with_cipher, without = engine.tasks
    assert with_cipher.environment == {"INVESTIGATE_KEY": PASSPHRASE}
    assert without.environment == {}
    assert not any(PASSPHRASE in word for task in engine.tasks for word in task.command)


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        (
            HostEngine(outcome=Outcome(exit_code=1, stderr="host: PRAGMA key: wrong\n")),
            "host: PRAGMA key: wrong",
        ),
        (HostEngine(outcome=Outcome(exit_code=None, timed_out=True)), "did not end within 120 s"),
        (HostEngine(outcome=Outcome(exit_code=137, out_of_memory=True)), "memory"),
        (HostEngine(HELLO, *passes()), "incomplete"),
        (HostEngine(), "incomplete"),
        (HostEngine(leave=False), "is missing"),
        (HostEngine({"type": "strange"}), "cannot be read"),
        (HostEngine(HELLO, *passes(calls=0), DONE), "no usable pass"),
        (HostEngine(HELLO, DONE), "no usable pass"),
    ],
)
def test_a_host_control_that_fails_is_told_and_missing(
    tmp_path: Path, engine: HostEngine, reason: str
) -> None:
    told: list[str] = []
    assert run_host_control(engine, tmp_path / "host", tmp_path / "mailbox", notify=told.append) is None
    assert reason in told[0]


def test_a_js_run_takes_an_integer_loop(tmp_path: Path) -> None:
    engine = HostEngine({"type": "hello", "protocol": 1, "node": "v24.11.1"}, *passes("integer_loop"), DONE)
    reading = run_node_control(engine, a_node(tmp_path))
    assert reading is not None
    assert reading.op == "integer_loop"
    assert engine.tasks[0].command[0] == str(tmp_path / "bin/node")


# -- the choice ---------------------------------------------------------------------------------------------

BSM = AddonPackage(name="better-sqlite3-multiple-ciphers", version="12.11.1")
PLAIN = AddonPackage(name="better-sqlite3", version="12.11.1", encrypted=False)
NODE_SQLITE = AddonPackage(name="node:sqlite", version="", kind="node:sqlite", encrypted=False)


def chosen(
    tmp_path: Path,
    engine: HostEngine,
    package: AddonPackage | None,
    build: AddonBuild | None,
    told: list[str],
    *,
    cipher: str = "chacha20",
) -> tuple[Callable[[], HostReading | None], Path | None]:
    return native.host_control(
        engine,
        plan_cipher=cipher,
        package=package,
        build=build,
        mailbox=None if package is None else tmp_path / "mailbox",
        node=a_node(tmp_path),
        cpus="1",
        notify=told.append,
    )


@pytest.mark.parametrize("shipped", [False, True])
@pytest.mark.parametrize(
    ("package", "cipher", "used"), [(BSM, "sqlcipher", "sqlcipher"), (PLAIN, "chacha20", "none")]
)
def test_the_native_program_runs_with_the_cipher_of_the_addon(
    tmp_path: Path, package: AddonPackage, cipher: str, used: str, *, shipped: bool
) -> None:
    engine, told = HostEngine(HELLO, *passes(), DONE), list[str]()
    read, program = chosen(
        tmp_path, engine, package, addon_build(tmp_path, shipped=shipped), told, cipher=cipher
    )
    reading = read()
    assert reading is not None
    assert reading.op == "select_range"
    assert program is not None
    assert program.read_text() == "program"
    command = engine.tasks[-1].command
    assert command[command.index("--cipher") + 1] == used
    assert engine.tasks[-1].cpus == "1"
    assert told == []


@pytest.mark.parametrize(("package", "words"), [(None, ""), (NODE_SQLITE, "node:sqlite brings no SQLite")])
def test_the_integer_loop_stands_in_where_there_is_no_amalgamation(
    tmp_path: Path, package: AddonPackage | None, words: str
) -> None:
    engine, told = HostEngine(HELLO, *passes("integer_loop"), DONE), list[str]()
    read, program = chosen(tmp_path, engine, package, None, told)
    reading = read()
    assert program is None
    assert reading is not None
    assert reading.op == "integer_loop"
    assert words in "".join(told)
    assert len(told) == bool(words)


def test_the_integer_loop_stands_in_where_the_program_does_not_compile(tmp_path: Path) -> None:
    engine, told = (
        HostEngine(outcome=Outcome(exit_code=1, stderr="x.c:1: error: no"), leave=False),
        list[str](),
    )
    _, program = chosen(tmp_path, engine, BSM, addon_build(tmp_path), told)
    assert program is None
    assert "error: no; an integer loop in Node stands in" in told[0]


def test_readings_that_fail_are_told_once(tmp_path: Path) -> None:
    engine, told = HostEngine(), list[str]()
    read, _ = chosen(tmp_path, engine, BSM, addon_build(tmp_path), told)
    assert [read(), read(), read()] == [None] * 3
    assert len(told) == 1


def test_native_rows(tmp_path: Path) -> None:
    values = [{"type": "value", "name": name, "value": number} for number, name in enumerate(VALUES)]
    engine = HostEngine(HELLO, *values, *passes(), *passes("open_key"), DONE)
    reading = run_native(engine, tmp_path / "host", tmp_path / "mailbox", VARIATIONS[2])
    assert isinstance(reading, NativeReading)
    assert [each.op for each in reading.operations] == ["select_range", "open_key"]
    assert (reading.sqlite, reading.cipher, reading.vacuum_ns) == ("3.50.0", "chacha20", 3)
    command = engine.tasks[0].command
    assert command[command.index("--pragma") + 1] == "synchronous=EXTRA"


def test_native_without_a_value_is_a_failure(tmp_path: Path) -> None:
    engine = HostEngine(HELLO, *passes(), DONE)
    result = run_native(engine, tmp_path / "host", tmp_path / "mailbox", Profile(name="mine"))
    assert result == NativeFailure(reason="profile mine: the output has no 'setup_ns'")


# -- one copy of everything ---------------------------------------------------------------------------------


def test_every_section_that_the_program_asks_for_exists() -> None:
    program = (resources.root() / "sqlcipher_bench/native/bench.c").read_text()
    queries = (resources.root() / "sqlcipher_bench/queries.sql").read_text()
    asked = set(re.findall(r'(?:execute|prepare)_section\(bench, (?:bench->)?db, "(\w+)"\)', program))
    asked |= set(re.findall(r'execute_section\(loop->bench, loop->db, "(\w+)"\)', program))
    asked |= set(re.findall(r'section\(bench->queries, "(\w+)"\)', program))
    asked |= set(re.findall(r'\.(?:name|undo_section) = "(\w+)"', program))
    assert {"select_range", "open_key", "pragmas", "load_message", "undo_inserts", "checkpoint"} <= asked
    assert asked <= set(re.findall(r"^-- name: (\w+)$", queries, re.MULTILINE))


def test_javascript_and_c_use_the_same_passphrase() -> None:
    javascript = (resources.root() / "sqlcipher_bench/operations/lib/database.mjs").read_text()
    assert f"'{PASSPHRASE}'" in javascript


def test_a_control_pass_has_the_length_of_a_measured_one() -> None:
    assert native.PASS_MS * native.CONTROL_PASSES <= 300
