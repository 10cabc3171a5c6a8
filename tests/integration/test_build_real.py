"""Real addon builds in containers, whether they load, and the host program on their amalgamation."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import pytest

from investigator.addons import fetch_addon
from investigator.build import AddonBuild, BuildFailure, build_all, load_test
from investigator.engine.docker import DockerEngine
from investigator.engine.interface import Engine, Mount, Outcome, Started, Task
from investigator.native import (
    NativeFailure,
    NativeReading,
    compile_host_program,
    run_host_control,
    run_native,
    run_node_control,
)
from investigator.nodes.interface import NodeBuild
from investigator.spec import Flavor
from sqlcipher_bench.profiles import PRODUCTION, VARIATIONS, Profile
from tests.integration.tool import ADDON, environment_of, nodes_of

pytestmark = [pytest.mark.container, pytest.mark.node]


class Recorder:
    """Passes everything on and keeps the purposes of the tasks."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.purposes: list[str] = []
        self.name, self.scratch = engine.name, engine.scratch
        self.inside, self.facts, self.close = engine.inside, engine.facts, engine.close

    def run(self, task: Task, started: Started | None = None) -> Outcome:
        self.purposes.append(task.purpose)
        return self.engine.run(task, started)


def built(
    engine: Engine, versions: Sequence[str], release: str, flavor: Flavor = "source"
) -> tuple[tuple[NodeBuild, ...], dict[str, AddonBuild | BuildFailure]]:
    found = nodes_of(engine, *versions)
    wanted = [environment_of(node, release, flavor) for node in found]
    made = build_all(engine, wanted)
    return found, {environment.node.version: made[environment.id] for environment in wanted}


@pytest.fixture(scope="module")
def pair(docker_engine: DockerEngine) -> Mapping[str, AddonBuild]:
    _, results = built(docker_engine, ("22.21.1", "24.11.1"), "12.11.1")
    builds = {version: each for version, each in results.items() if isinstance(each, AddonBuild)}
    assert builds == results
    return builds


def test_the_amalgamation_is_the_same_object_and_the_addon_is_not(pair: Mapping[str, AddonBuild]) -> None:
    first, second = pair.values()
    assert first.sqlite3_object_sha256 == second.sqlite3_object_sha256 is not None
    assert first.binding_sha256 != second.binding_sha256
    assert first.flags["sqlite3.c"] == second.flags["sqlite3.c"]
    assert " -O3 " in first.flags["better_sqlite3.cpp"]
    assert first.flags["sqlite3.c"].startswith("gcc -o Release/obj.target/")
    assert "g++" in first.compiler


def test_symbols_are_kept(pair: Mapping[str, AddonBuild]) -> None:
    build = pair["24.11.1"]
    binary = (build.directory / build.binding).read_bytes()
    assert all(name in binary for name in (b"sqlite3VdbeExec\0", b"chacha20_block\0"))


def test_a_second_run_builds_nothing(docker_engine: DockerEngine, pair: Mapping[str, AddonBuild]) -> None:
    recorder = Recorder(docker_engine)
    _, again = built(recorder, ("22.21.1", "24.11.1"), "12.11.1")
    assert again == pair
    assert [purpose for purpose in recorder.purposes if purpose.startswith("build")] == []


def test_they_load(docker_engine: DockerEngine, pair: Mapping[str, AddonBuild]) -> None:
    for node in nodes_of(docker_engine, "22.21.1", "24.11.1"):
        assert load_test(docker_engine, node, pair[node.version]) is None


def test_one_for_another_abi_does_not_load(
    docker_engine: DockerEngine, pair: Mapping[str, AddonBuild]
) -> None:
    (node,) = nodes_of(docker_engine, "24.11.1")
    assert "NODE_MODULE_VERSION" in (load_test(docker_engine, node, pair["22.21.1"]) or "it loads")


def test_a_shipped_binary_loads_where_it_can_and_is_refused_elsewhere(docker_engine: DockerEngine) -> None:
    found, results = built(docker_engine, ("20.19.5", "24.11.1"), "13.0.3", "prebuilt")
    refused, taken = results["20.19.5"], results["24.11.1"]
    assert isinstance(refused, BuildFailure)
    assert "needs Node-API 10, Node 20.19.5 offers 9" in refused.reason
    assert isinstance(taken, AddonBuild)
    assert load_test(docker_engine, found[1], taken) is None


def test_a_release_that_ships_no_binary(docker_engine: DockerEngine) -> None:
    _, results = built(docker_engine, ("24.11.1",), "12.11.1", "prebuilt")
    assert "ships no binary" in getattr(results["24.11.1"], "reason", "")


def test_a_release_too_old_for_its_node_tells_the_compilers_first_error(docker_engine: DockerEngine) -> None:
    _, results = built(docker_engine, ("26.12.1",), "11.10.0")
    failure = results["26.12.1"]
    assert isinstance(failure, BuildFailure)
    assert "binder.lzz:40:37: error: " in failure.reason
    assert "GetPrototype" in failure.reason
    assert failure.log is not None
    assert "make: ***" in failure.log.read_text()


# -- without Node -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def program(docker_engine: DockerEngine, pair: Mapping[str, AddonBuild]) -> Path:
    path = compile_host_program(docker_engine, pair["22.21.1"])
    assert isinstance(path, Path), path
    return path


def test_all_builds_share_one_host_program(
    docker_engine: DockerEngine, pair: Mapping[str, AddonBuild], program: Path
) -> None:
    assert compile_host_program(docker_engine, pair["24.11.1"]) == program


@pytest.mark.parametrize("cipher", ["chacha20", "sqlcipher", "none"])
def test_the_host_control_reads_the_host(
    docker_engine: DockerEngine, program: Path, mailbox: Path, cipher: str
) -> None:
    told: list[str] = []
    reading = run_host_control(docker_engine, program, mailbox, cipher=cipher, notify=told.append)
    assert told == []
    assert reading is not None
    assert len(reading.wall_ns) == len(reading.cpu_ns) == len(reading.calls) == 5
    assert all(wall_ns >= 40_000_000 for wall_ns in reading.wall_ns)


def test_the_integer_loop_reads_the_host_too(docker_engine: DockerEngine) -> None:
    (node,) = nodes_of(docker_engine, "24.11.1")
    reading = run_node_control(docker_engine, node)
    assert reading is not None
    assert all(calls > 0 for calls in reading.calls)


@pytest.mark.parametrize("damage", ["cut", "empty"])
def test_a_damaged_mailbox_is_told(
    docker_engine: DockerEngine, program: Path, mailbox: Path, tmp_path: Path, damage: str
) -> None:
    bad = tmp_path / "mailbox"
    bad.write_bytes(b"" if damage == "empty" else mailbox.read_bytes()[:100_000])
    told: list[str] = []
    assert run_host_control(docker_engine, program, bad, notify=told.append) is None
    assert "host: " in told[0]


def test_an_unknown_cipher_is_told_by_the_library(
    docker_engine: DockerEngine, program: Path, mailbox: Path
) -> None:
    result = run_native(docker_engine, program, mailbox, Profile(name="mine", cipher="rot13"))
    assert isinstance(result, NativeFailure)
    assert "rot13" in result.reason


def test_native_measures_every_operation_under_the_profile_that_was_asked_for(
    docker_engine: DockerEngine, program: Path, mailbox: Path
) -> None:
    result = run_native(docker_engine, program, mailbox, PRODUCTION, passes=2)
    assert isinstance(result, NativeReading), result
    assert [each.op for each in result.operations] == [
        "select_range",
        "open_key",
        "select_point",
        "insert_row",
        "insert_batch",
        "update_row",
        "delete_row",
    ]
    answers = {"auto_vacuum": "1", "journal_mode": "wal", "secure_delete": "1", "synchronous": "1"}
    assert answers.items() <= result.pragmas.items()
    assert result.cipher == "chacha20"
    assert result.database_bytes > 5_000_000
    assert result.wal_bytes > 0


def test_variations_take_effect(docker_engine: DockerEngine, program: Path, mailbox: Path) -> None:
    by_name = {profile.name: profile for profile in VARIATIONS}
    none = run_native(docker_engine, program, mailbox, by_name["auto_vacuum_none"], passes=1)
    plain = run_native(docker_engine, program, mailbox, by_name["no_encryption"], passes=1)
    assert isinstance(none, NativeReading), none
    assert isinstance(plain, NativeReading), plain
    assert none.pragmas["auto_vacuum"] == "0"
    assert plain.cipher == "none"


def test_the_program_compiles_without_a_warning(docker_engine: DockerEngine) -> None:
    sources = Path(__file__).parents[2] / "sqlcipher_bench/native"
    header = fetch_addon(ADDON, "12.11.1").directory
    assert header is not None
    outcome = docker_engine.run(
        Task(
            command=(
                *("gcc", "-std=c11", "-O3", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-fsyntax-only"),
                *("-I/sqlite", "/native/host.c", "/native/bench.c"),
            ),
            purpose="look for warnings",
            mounts=(
                Mount(source=sources, target=PurePosixPath("/native")),
                Mount(source=header / "deps/sqlite3", target=PurePosixPath("/sqlite")),
            ),
        )
    )
    assert outcome.stderr == ""
    assert outcome.ok
