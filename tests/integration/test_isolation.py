"""What a task can see and do, told from inside, and what is left of it when its harness dies."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import docker
import psutil
import pytest

from investigator.base_image import BaseImage
from investigator.engine.daemon import LABEL, OWNER_LABEL, PURPOSE_LABEL, connect, labelled, sweep
from investigator.engine.docker import DockerEngine
from investigator.engine.interface import Engine, Mount, Task
from investigator.engine.local import LocalEngine, possible_ways
from investigator.errors import EngineMissingError, HostUnfitError
from tests.integration.proxy import UnixProxy

LOOK = Path(__file__).with_name("look.py")
PATIENCE_S = 60.0
"""For what takes a second on a quiet machine."""
DOCKER = pytest.param("docker", marks=pytest.mark.container)


@pytest.fixture(params=[DOCKER, "caged", "plain"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """Every engine, and for `local` both with and without namespaces."""
    if request.param == "docker":
        yield request.getfixturevalue("docker_engine")
    elif request.param == "caged":
        yield caged(request.getfixturevalue("local_engine"))
    else:
        ways = tuple(way for way in possible_ways() if not way.caged)
        local = LocalEngine(storage_root=tmp_path / "storage", ways=ways)
        yield local
        local.close()


@pytest.fixture(params=[DOCKER, "caged"])
def shut(request: pytest.FixtureRequest) -> Engine:
    """The engines that shut a task in."""
    if request.param == "docker":
        docker_engine: Engine = request.getfixturevalue("docker_engine")
        return docker_engine
    return caged(request.getfixturevalue("local_engine"))


def caged(local: LocalEngine) -> LocalEngine:
    if local.facts()["isolation"] != "namespaces":
        pytest.skip(f"this machine gives no namespaces: {local.facts()['isolation']}")
    return local


def python(program: str, **settings: Any) -> Task:
    return Task(command=("python3", "-c", program), **{"purpose": "a test", "timeout_s": 60.0, **settings})


def shell(script: str, **settings: Any) -> Task:
    return Task(command=("sh", "-c", script), **{"purpose": "a test", "timeout_s": 60.0, **settings})


def look(engine: Engine, *writes: str, **settings: Any) -> dict[str, Any]:
    """What `look.py` sees inside a task that tries to write the files `writes`."""
    task = Task(command=("python3", "-c", LOOK.read_text(), *writes), purpose="a look around", **settings)
    outcome = engine.run(task)
    assert outcome.ok, outcome.stderr
    seen: dict[str, Any] = json.loads(outcome.stdout)
    return seen


# -- from inside ------------------------------------------------------------------------------------------


def test_there_is_no_network(shut: Engine) -> None:
    seen = look(shut)
    assert seen["interfaces"] == ["lo"]
    assert seen["connect"] == os.strerror(101)  # ENETUNREACH
    assert shut.facts()["network"] == "none"


def test_it_is_nobody_and_stays_nobody(shut: Engine) -> None:
    seen = look(shut)
    assert seen["uid"] != 0
    assert seen["gid"] != 0
    assert 0 not in seen["groups"]
    assert seen["capabilities"] == dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), 0)
    assert seen["no_new_privileges"] == "1"
    # EPERM; EINVAL in a user namespace, where there is no such user.
    assert seen["become_root"] in {os.strerror(1), os.strerror(22)}
    assert shut.facts()["user"] == f"{seen['uid']}:{seen['gid']}"


def test_only_scratch_can_be_written(shut: Engine) -> None:
    mine = f"{shut.scratch}/probe"
    seen = look(shut, mine, "/probe", "/etc/probe", "/usr/bin/probe", "/usr/local/probe")
    writes = dict(seen["writes"])
    assert writes.pop(mine) == "done"
    assert set(writes.values()) <= {os.strerror(30), os.strerror(13)}  # EROFS, EACCES
    assert writes["/probe"] == os.strerror(30)
    assert seen["home_of_root"] != "done"


def test_it_sees_only_its_own_processes(shut: Engine) -> None:
    assert max(look(shut)["processes"]) < 20


def test_scratch_is_fresh_each_time(engine: Engine) -> None:
    for on_disk in (False, True, False):
        seen = look(engine, f"{engine.scratch}/probe", scratch_on_disk=on_disk)
        assert seen["scratch_before"] == []
        assert seen["writes"][f"{engine.scratch}/probe"] == "done"
        assert seen["working_directory_is_scratch"]


def test_environment_is_complete_and_nothing_else(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "x")
    seen = look(engine, environment={"LC_ALL": "C.UTF-8"})
    # Of the task's own place: the container's name, the shell's directory, a plain process's private /tmp.
    places = {"HOSTNAME", "PWD", "TMPDIR"}
    assert {name: value for name, value in seen["environment"].items() if name not in places} == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(engine.scratch),
        "INVESTIGATE_SCRATCH": str(engine.scratch),
        "LC_ALL": "C.UTF-8",
    }
    assert seen["stdin"] == ""


def test_mounts_are_the_files_themselves(engine: Engine, tmp_path: Path) -> None:
    given, out = tmp_path / "given", tmp_path / "out"
    given.mkdir()
    out.mkdir()
    (given / "file").write_text("content")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid():
            folder.chmod(folder.stat().st_mode | 0o011)
    mounts = (
        Mount(source=given, target=PurePosixPath("/given")),
        Mount(source=given / "file", target=PurePosixPath("/single")),
        Mount(source=out, target=PurePosixPath("/out"), writable=True),
    )
    seen = [engine.inside(mount) for mount in mounts]
    script = f"stat -c %i {seen[0]}/file; cat {seen[1]}; echo made > {seen[2]}/new"
    outcome = engine.run(shell(script, mounts=mounts))
    assert outcome.ok, outcome.stderr
    assert outcome.stdout == f"{(given / 'file').stat().st_ino}\ncontent"
    assert (out / "new").read_text() == "made\n"


def test_a_mount_is_read_only_unless_asked(shut: Engine, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "file").write_text("content")
    (tmp_path / "file").chmod(0o666)
    mount = Mount(source=tmp_path, target=PurePosixPath("/given"))
    outcome = shut.run(shell(f"echo changed > {shut.inside(mount)}/file", mounts=(mount,)))
    assert not outcome.ok
    assert "Read-only file system" in outcome.stderr
    assert (tmp_path / "file").read_text() == "content"


def test_a_missing_mount_is_one_sentence(engine: Engine, tmp_path: Path) -> None:
    mount = Mount(source=tmp_path / "gone", target=PurePosixPath("/gone"))
    with pytest.raises(HostUnfitError, match="gone cannot be used"):
        engine.run(shell("true", mounts=(mount,)))


# -- how tasks end ----------------------------------------------------------------------------------------


def test_ends_are_values(engine: Engine) -> None:
    assert engine.run(shell("echo out; echo err >&2; exit 3")).exit_code == 3
    assert engine.run(shell("kill -SEGV $$")).exit_code == 128 + 11
    missing = engine.run(Task(command=("no-such-program",), purpose="a test"))
    assert missing.exit_code == 127
    outcome = engine.run(shell("echo out; echo err >&2"))
    assert (outcome.ok, outcome.stdout, outcome.stderr) == (True, "out\n", "err\n")


def test_arguments_reach_no_shell(engine: Engine) -> None:
    outcome = engine.run(Task(command=("printf", "%s|", "$HOME", "a b", "; echo x", "'"), purpose="a test"))
    assert outcome.stdout == "$HOME|a b|; echo x|'|"


def test_only_the_end_of_the_output_is_kept(engine: Engine) -> None:
    outcome = engine.run(shell("yes | head -c 3000000; echo end"))
    assert len(outcome.stdout) <= 64 << 10
    assert outcome.stdout.endswith("y\nend\n")


def test_time_limit_kills_everything(engine: Engine) -> None:
    marker = uuid.uuid4().hex
    outcome = engine.run(python(_spreading(marker), timeout_s=2.0))
    assert outcome.timed_out
    assert outcome.exit_code is None
    assert not outcome.ok
    assert alive(marker) == []


def test_what_a_task_left_behind_dies_with_it(engine: Engine) -> None:
    marker = uuid.uuid4().hex
    assert engine.run(shell(f"(setsid sh -c 'sleep 600; : {marker}' &); exit 0")).ok
    assert alive(marker) == []


def test_too_much_memory_is_told_apart(engine: Engine) -> None:
    program = "import time\nhog = bytearray(b'x') * (600 << 20)\ntime.sleep(30)"
    outcome = engine.run(python(program, memory_bytes=200 << 20))
    assert outcome.out_of_memory
    assert not outcome.ok
    assert not outcome.timed_out


def test_a_full_scratch_is_the_tasks_own_problem(shut: Engine) -> None:
    outcome = shut.run(shell('head -c 8m /dev/zero > "$INVESTIGATE_SCRATCH/big"', scratch_bytes=4 << 20))
    assert "No space left on device" in outcome.stderr


@pytest.mark.container
def test_number_of_processes_is_limited(docker_engine: DockerEngine) -> None:
    program = "import os,time\nfor _ in range(100):\n  if os.fork() == 0: time.sleep(30); os._exit(0)"
    outcome = docker_engine.run(python(program, pids_limit=30))
    assert "Resource temporarily unavailable" in outcome.stderr


def test_confined_to_one_cpu(engine: Engine) -> None:
    outcome = engine.run(python("import os; print(os.sched_getaffinity(0))", cpus="0"))
    assert outcome.stdout == "{0}\n"


def test_tasks_run_in_parallel(engine: Engine) -> None:
    scratches: list[str] = []

    def task() -> None:
        script = 'echo x > "$INVESTIGATE_SCRATCH/mine" && sleep 1 && ls "$INVESTIGATE_SCRATCH"'
        path = str(engine.scratch)
        outcome = engine.run(shell(f'test "$INVESTIGATE_SCRATCH" = "{path}" && {script}'))
        scratches.append(outcome.stdout)

    threads = [threading.Thread(target=task) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scratches == ["mine\n"] * 3


# -- how the harness ends ---------------------------------------------------------------------------------

HARNESS = """
import sys
from pathlib import Path
from investigator.engine.interface import Task
kind, storage, program = sys.argv[1:4]
if kind == "docker":
    from investigator.base_image import ensure_base_image
    from investigator.engine.daemon import connect
    from investigator.engine.docker import DockerEngine
    client = connect()
    engine = DockerEngine(image=ensure_base_image(client), storage_root=Path(storage))
else:
    from investigator.engine.local import LocalEngine, possible_ways
    ways = tuple(way for way in possible_ways() if way.caged == (kind == "caged"))
    engine = LocalEngine(storage_root=Path(storage), ways=ways)
try:
    engine.run(Task(command=("python3", "-c", program), purpose="a test"))
finally:
    engine.close()
"""


def _spreading(marker: str) -> str:
    """A task that spreads over sessions and keeps a CPU busy; `marker` is on every command line of it."""
    return f"""
import os, subprocess, sys
for _ in range(2):
    subprocess.Popen(["sh", "-c", "sleep 600; : {marker}"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: pass
    os._exit(0)
while True: pass
"""


def alive(marker: str) -> list[int]:
    """Processes of this machine, those in containers too, that carry `marker` on their command line."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any(marker in word for word in process.info["cmdline"] or ())
        and process.pid != os.getpid()
    ]


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.1)


@pytest.fixture(params=[DOCKER, "caged", "plain"])
def kind(request: pytest.FixtureRequest) -> str:
    """As `engine`, by name, for harnesses that are processes of their own."""
    if request.param == "docker":
        request.getfixturevalue("docker_client")
    if request.param == "caged":
        caged(request.getfixturevalue("local_engine"))
    return str(request.param)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "ctrl-c"])
def test_nothing_runs_on_without_the_harness(kind: str, number: signal.Signals, tmp_path: Path) -> None:
    marker = uuid.uuid4().hex
    harness = subprocess.Popen(
        (sys.executable, "-c", HARNESS, kind, str(tmp_path), _spreading(marker)),
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
    )
    try:
        # Two shells, the task and its busy grandchild; the harness carries the marker as well.
        wait_for(lambda: len(set(alive(marker)) - {harness.pid}) >= 4, "the task did not start")
    finally:
        harness.send_signal(number)
        harness.wait(PATIENCE_S)
    wait_for(lambda: alive(marker) == [], "processes are left")
    if kind == "docker":
        left = _containers_of(harness.pid)
        assert len(left) == (1 if number == signal.SIGKILL else 0)
    if number == signal.SIGINT:
        assert list(tmp_path.glob("investigate-*")) == []


@pytest.mark.container
def test_containers_of_dead_runs_are_swept(
    docker_client: docker.DockerClient, docker_engine: DockerEngine
) -> None:
    # Left by the kill -9 above, or by anybody else; after it, only the living have containers.
    sweep(docker_client)
    owners = {container.labels[OWNER_LABEL] for container in labelled(docker_client, f"{LABEL}=1")}
    for owner in owners:
        assert psutil.pid_exists(int(owner.split(":")[0]))


def _containers_of(pid: int) -> list[str]:
    client = connect()
    try:
        found = labelled(client, f"{LABEL}=1")
        return [str(c.id) for c in found if c.labels[OWNER_LABEL].startswith(f"{pid}:")]
    finally:
        client.close()


def test_close_from_another_thread_ends_the_run(kind: str, tmp_path: Path, request: Any) -> None:
    marker = uuid.uuid4().hex
    if kind == "docker":
        image: BaseImage = request.getfixturevalue("base_image")
        engine: Engine = DockerEngine(image=image, storage_root=tmp_path)
    else:
        ways = tuple(way for way in possible_ways() if way.caged == (kind == "caged"))
        engine = LocalEngine(storage_root=tmp_path, ways=ways)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            engine.run(python(_spreading(marker)))
        except EngineMissingError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(lambda: len(alive(marker)) >= 4, "the task did not start")
    engine.close()
    engine.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert [str(error) for error in errors] == ["the engine was closed while a test ran"]
    assert alive(marker) == []
    with pytest.raises(EngineMissingError):
        engine.run(shell("true"))


@pytest.mark.container
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_vanished_daemon_is_one_sentence(
    docker_client: docker.DockerClient, base_image: BaseImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon is behind a socket of our own, which we cut: the real one serves others."""
    marker = uuid.uuid4().hex
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'proxy'}")
    with UnixProxy(tmp_path / "proxy", Path("/var/run/docker.sock")) as proxy:
        engine = DockerEngine(image=base_image, storage_root=tmp_path / "storage")
        errors: list[str] = []

        def run() -> None:
            try:
                engine.run(python(_spreading(marker), purpose=marker))
            except EngineMissingError as error:
                errors.append(str(error))

        thread = threading.Thread(target=run)
        thread.start()
        wait_for(lambda: len(alive(marker)) >= 4, "the task did not start")
        mine = labelled(docker_client, f"{PURPOSE_LABEL}={marker}")
        assert len(mine) == 1
        proxy.cut()
        thread.join(PATIENCE_S)
        engine.close()
    wait_for(lambda: alive(marker) == [], "the container outlived the connection")
    mine[0].remove(force=True)
    gc.collect()  # The SDK drops sockets that cannot connect; they belong to this test.
    assert len(errors) == 1
    assert errors[0].startswith(f"the docker daemon stopped answering while it was to wait for {marker}")
