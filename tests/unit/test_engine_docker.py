"""What the engine asks of docker, and what it makes of docker's answers."""

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, cast

import docker
import docker.errors
import msgspec
import pytest
import requests

from investigator.base_image import BaseImage
from investigator.engine.daemon import LABEL, OWNER_LABEL, connect, daemon_errors, sweep
from investigator.engine.docker import DockerEngine
from investigator.engine.interface import Mount, Task
from investigator.engine.owner import current_owner
from investigator.errors import EngineMissingError, HostUnfitError
from tests.fakes.docker_client import FakeContainer, FakeDocker, api_error

IMAGE = BaseImage(reference="base:1", image_id="sha256:12", digest="", how="present")
TASK = Task(command=("node", "x.mjs"), purpose="round 1: a")


def engine_of(client: FakeDocker, storage_root: Path) -> DockerEngine:
    connector = cast(Callable[[], docker.DockerClient], lambda: client)
    return DockerEngine(image=IMAGE, storage_root=storage_root, connector=connector)


def test_every_container_is_shut_in(tmp_path: Path) -> None:
    client = FakeDocker()
    engine = engine_of(client, tmp_path)
    given = tmp_path / "given"
    given.mkdir(mode=0o755)
    outcome = engine.run(
        msgspec.structs.replace(
            TASK,
            mounts=(Mount(source=given, target=PurePosixPath("/given")),),
            environment={"A": "b", "HOME": "/elsewhere"},
            cpus="0,1",
            memory_bytes=1 << 30,
            pids_limit=7,
        )
    )
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (0, "out", "err")
    container = client.created[-1]
    settings = container.settings
    assert container.calls == ["attach ['stdin', 'stream']", "start", "detach", "remove"]
    assert settings["image"] == "sha256:12"
    assert settings["command"] == ["node", "x.mjs"]
    assert settings["network_mode"] == "none"
    assert settings["read_only"] is True
    assert settings["cap_drop"] == ["ALL"]
    assert settings["security_opt"] == ["no-new-privileges"]
    assert settings["pids_limit"] == 7
    assert settings["mem_limit"] == settings["memswap_limit"] == 1 << 30
    assert settings["cpuset_cpus"] == "0,1"
    assert settings["user"].split(":")[0] != "0"
    assert settings["environment"] == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/elsewhere",
        "INVESTIGATE_SCRATCH": "/scratch",
        "A": "b",
    }
    assert [(m["Source"], m["Target"], m["ReadOnly"]) for m in settings["mounts"]] == [
        (str(given.resolve()), "/given", True)
    ]
    assert set(settings["tmpfs"]) == {"/tmp", "/scratch"}  # noqa: S108
    assert "size=1073741824" in settings["tmpfs"]["/scratch"]
    assert settings["labels"][OWNER_LABEL] == str(current_owner())
    assert client.living == []


def test_scratch_on_disk_is_a_mount_and_gone_afterwards(tmp_path: Path) -> None:
    client = FakeDocker()
    engine_of(client, tmp_path).run(msgspec.structs.replace(TASK, scratch_on_disk=True, scratch_bytes=1))
    settings = client.created[-1].settings
    assert set(settings["tmpfs"]) == {"/tmp"}  # noqa: S108
    assert [m["Target"] for m in settings["mounts"]] == ["/scratch"]
    assert list(tmp_path.iterdir()) == []


def test_selinux_and_rootless_daemons(tmp_path: Path) -> None:
    client = FakeDocker(
        {"SecurityOptions": ["name=seccomp,profile=default", "name=selinux", "name=rootless"]}
    )
    engine_of(client, tmp_path).run(TASK)
    settings = client.created[-1].settings
    assert settings["security_opt"] == ["no-new-privileges", "label=disable"]
    assert settings["user"] == "0:0"


def test_ends_are_read_from_the_state(tmp_path: Path) -> None:
    client = FakeDocker()
    client.on_reload = lambda c: c.attrs.update(State={"ExitCode": 137, "OOMKilled": True})
    outcome = engine_of(client, tmp_path).run(TASK)
    assert (outcome.exit_code, outcome.out_of_memory, outcome.timed_out) == (137, True, False)


def test_beyond_the_time_limit_it_is_killed(tmp_path: Path) -> None:
    client = FakeDocker()

    def too_long(_container: str, _timeout: float) -> None:
        raise requests.exceptions.ReadTimeout

    client.on_wait = too_long
    outcome = engine_of(client, tmp_path).run(msgspec.structs.replace(TASK, timeout_s=0.0))
    assert (outcome.exit_code, outcome.timed_out) == (None, True)
    assert client.created[-1].calls == ["attach ['stdin', 'stream']", "start", "kill", "detach", "remove"]


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (requests.exceptions.ConnectionError("x"), EngineMissingError, "stopped answering while"),
        (docker.errors.NotFound("x"), EngineMissingError, "the container vanished"),
        (api_error("write /x: no space left on device"), HostUnfitError, "docker's disk is full"),
        (api_error("Conflict.\n Whatever"), EngineMissingError, "docker refused to .*: Conflict. Whatever"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_one_sentence(
    tmp_path: Path, error: Exception, kind: type[Exception], sentence: str
) -> None:
    client = FakeDocker()

    def fail(_container: str, _timeout: float) -> None:
        raise error

    client.on_wait = fail
    with pytest.raises(kind, match=sentence) as raised:
        engine_of(client, tmp_path).run(TASK)
    assert "\n" not in str(raised.value)
    assert client.living == []


def test_interrupted_it_leaves_no_container(tmp_path: Path) -> None:
    client = FakeDocker()

    def interrupt(_container: str, _timeout: float) -> None:
        raise KeyboardInterrupt

    client.on_wait = interrupt
    with pytest.raises(KeyboardInterrupt):
        engine_of(client, tmp_path).run(TASK)
    assert client.created[-1].calls[-1] == "remove"
    assert client.living == []


def test_closed_while_a_task_runs(tmp_path: Path) -> None:
    client = FakeDocker()
    engine = engine_of(client, tmp_path)
    client.on_wait = lambda _container, _timeout: engine.close()
    with pytest.raises(EngineMissingError, match="the engine was closed while round 1: a ran"):
        engine.run(TASK)
    assert client.living == []
    assert client.closed
    engine.close()
    with pytest.raises(EngineMissingError, match="closed before"):
        engine.run(TASK)


def test_a_daemon_that_sees_other_files_is_noticed_at_once(tmp_path: Path) -> None:
    client = FakeDocker()

    def refuse(settings: dict[str, Any]) -> None:
        sources = [Path(mount["Source"]) for mount in settings["mounts"]]
        assert all(source.is_dir() for source in sources)
        raise api_error(f"invalid mount config for type bind: bind source path does not exist: {sources[0]}")

    client.on_create = refuse
    with pytest.raises(EngineMissingError, match=r"does not see the files of this machine .*--engine local"):
        engine_of(client, tmp_path)
    assert client.closed
    assert list(tmp_path.iterdir()) == []


def test_only_containers_of_dead_runs_are_swept() -> None:
    client = FakeDocker()
    me = current_owner()
    owners = {
        "living": str(me),
        "dead": str(msgspec.structs.replace(me, start="1")),
        "elsewhere": str(msgspec.structs.replace(me, host="elsewhere/1", pid=2**30)),
        "forged": "rm -rf /",
    }
    for owner in owners.values():
        client.create(labels={LABEL: "1", OWNER_LABEL: owner})
    client.create(labels={})
    assert sweep(cast(docker.DockerClient, client)) == 1
    assert [c.labels.get(OWNER_LABEL) for c in client.living] == [
        owners["living"],
        owners["elsewhere"],
        owners["forged"],
        None,
    ]


def test_a_container_that_is_gone_already_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeDocker()
    client.create(labels={LABEL: "1", OWNER_LABEL: str(msgspec.structs.replace(current_owner(), start="1"))})

    def gone(_self: FakeContainer, *, force: bool, v: bool) -> None:
        raise docker.errors.NotFound("removal is already in progress")

    monkeypatch.setattr(FakeContainer, "remove", gone)
    assert sweep(cast(docker.DockerClient, client)) == 1


# -- connecting -------------------------------------------------------------------------------------------


def test_no_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(EngineMissingError) as raised:
        connect()
    assert str(raised.value) == (
        "no docker daemon answers (No such file or directory): install it (Debian: `apt install docker.io`), "
        "start it (`systemctl start docker`), point DOCKER_HOST to it, or use --engine local"
    )


def test_a_closed_socket_says_how_to_open_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_url: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setenv("DOCKER_HOST", "unix:///var/run/docker.sock")
    monkeypatch.setattr("investigator.engine.daemon._knock", closed)
    with pytest.raises(EngineMissingError, match=r"closed to you: join its group \(`sudo usermod -aG docker"):
        connect()


@pytest.mark.parametrize("host", ["garbage", "ssh://a@b.invalid", "npipe:////./pipe/x", "tcp://127.0.0.1:1"])
def test_whatever_docker_host_says(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    with pytest.raises(EngineMissingError, match="no docker daemon answers"):
        connect()


def test_our_own_errors_pass_unchanged() -> None:
    with pytest.raises(HostUnfitError, match=r"^mine$"), daemon_errors("do something"):
        raise HostUnfitError("mine")
