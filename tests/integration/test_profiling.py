"""Profiles of real workers: in an unprivileged container and as a local process, by perf and by V8."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import psutil
import pytest

from investigator import prepare, resolve
from investigator.engine.docker import DockerEngine
from investigator.engine.interface import Engine, Task
from investigator.engine.local import LocalEngine
from investigator.invoke import Surroundings
from investigator.measure import Bench, calibrate
from investigator.observer import NullObserver
from investigator.plan import Invocation, Pace
from investigator.profiling.profiler import Profiler, ProfilerKind, choose_profiler
from investigator.profiling.reading import ProfileReading, profile_invocation, read_profile
from investigator.spec import Spec
from investigator.store import RunFolder, create_run

pytestmark = [pytest.mark.container]

VERSION = "24.11.1"
ADDON = "better-sqlite3-multiple-ciphers@12.11.1"
OPS = ("bind_text_ascii_10k", "select_uncached", "json_parse")


@pytest.fixture(params=["docker", "local"])
def engine(request: pytest.FixtureRequest) -> Engine:
    found: DockerEngine | LocalEngine = request.getfixturevalue(f"{request.param}_engine")
    return found


def test_the_command_of_a_task_is_known_by_its_process_on_this_host(engine: Engine) -> None:
    seen: list[tuple[list[str], int]] = []

    def started(pid: int) -> None:
        process = psutil.Process(pid)
        seen.append((process.cmdline(), process.uids().real))

    outcome = engine.run(Task(command=("sleep", "0.3"), purpose="a test"), started)
    assert outcome.ok
    assert [command for command, _ in seen] == [["sleep", "0.3"]]
    assert f"{seen[0][1]}:" in engine.facts()["user"]


def test_a_command_that_cannot_start_is_told_as_before(engine: Engine) -> None:
    outcome = engine.run(Task(command=("no-such-program",), purpose="a test"), lambda _pid: None)
    assert outcome.exit_code == 127


@pytest.fixture(scope="module")
def bench(docker_engine: DockerEngine, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return prepared(docker_engine, "docker", tmp_path_factory.mktemp("profiles") / "run")


def prepared(engine: Engine, choice: str, path: Path) -> Bench:
    spec = Spec(versions=(VERSION,), addon=ADDON, ops=OPS, engine="docker" if choice == "docker" else "local")
    observer = NullObserver()
    folder: RunFolder = create_run(path)
    stored = prepare.prepare(spec, resolve.resolve(spec, observer, engine.name), folder, engine, observer)
    around = Surroundings(
        plan=stored.plan,
        builds=stored.builds,
        fixtures=prepare.fixtures(),
        workloads=path / "workloads",
        mailbox=prepare.mailbox(spec.seed),
    )
    return Bench(engine=engine, around=around, folder=folder, observer=observer, host_control=lambda: None)


@pytest.fixture(scope="module")
def paces(bench: Bench) -> Mapping[str, Pace]:
    return paces_of(bench)


def paces_of(bench: Bench) -> Mapping[str, Pace]:
    calibration = calibrate(bench, ())
    assert calibration.failures == ()
    return {pace.op: pace for pace in calibration.paces}


def profiled(
    bench: Bench, paces: Mapping[str, Pace], profiler: Profiler, op: str, keep: Path
) -> ProfileReading:
    environment = bench.plan.environments[0].id
    job = Invocation(
        round=1, position=0, environment=environment, twin=False, group="explain", operations=(op,)
    )
    return profile_invocation(
        bench.engine,
        bench.around,
        job,
        paces=paces,
        passes=12,
        profiler=profiler,
        keep=keep,
    )


@pytest.fixture(scope="module")
def profiler(docker_engine: DockerEngine) -> Profiler:
    return choose_profiler(docker_engine)


@pytest.mark.node
@pytest.mark.parametrize("kind", ["perf", "v8"])
def test_the_layer_of_known_operations(
    bench: Bench, paces: Mapping[str, Pace], profiler: Profiler, kind: ProfilerKind, tmp_path: Path
) -> None:
    if kind == "perf" and profiler.kind != "perf":
        pytest.skip(profiler.reason)
    forced = msgspec.structs.replace(profiler, kind=kind)
    binding = profiled(bench, paces, forced, "bind_text_ascii_10k", tmp_path / "bind")
    assert binding.unavailable is None
    assert binding.shares["boundary"] > 0.5
    writing = [
        stack for stack in binding.stacks if stack.frames[-1].symbol == "v8::internal::String::WriteUtf8"
    ]
    assert writing
    if kind == "perf":
        # V8 itself sees only the innermost function of C++.
        assert any(frame.symbol == "Statement::JS_get" for stack in writing for frame in stack.frames)
    assert any(frame.symbol.startswith("JS:") for stack in writing for frame in stack.frames)
    assert binding.file is not None
    assert read_profile(binding.file).stacks == binding.stacks
    assert b"/root" not in binding.file.read_bytes()
    ciphering = profiled(bench, paces, forced, "select_uncached", tmp_path / "uncached")
    assert ciphering.shares["native_core"] > 0.8
    parsing = profiled(bench, paces, forced, "json_parse", tmp_path / "parse")
    assert parsing.shares["engine"] > 0.8


@pytest.mark.node
def test_plain_processes_are_profiled_as_well(local_engine: LocalEngine, tmp_path: Path) -> None:
    chosen = choose_profiler(local_engine)
    bench = prepared(local_engine, "local", tmp_path / "run")
    reading = profiled(bench, paces_of(bench), chosen, "json_parse", tmp_path / "p")
    assert reading.unavailable is None
    assert reading.shares["engine"] > 0.8
