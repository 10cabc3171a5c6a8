"""One container per task: no network, read-only root, no capability, not root, bounded in everything."""

import math
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import docker
from docker.models.containers import Container
from docker.types import LogConfig, Ulimit
from docker.types import Mount as BindMount

from investigator.base_image import BaseImage
from investigator.engine.daemon import (
    ENGINE_LABEL,
    LABEL,
    OWNER_LABEL,
    PURPOSE_LABEL,
    TRANSPORT_ERRORS,
    connect,
    daemon_errors,
    labelled,
    remove_quietly,
    sweep,
)
from investigator.engine.files import fresh_scratch, prepare_mount, sweep_scratch, task_identity
from investigator.engine.interface import EngineName, Mount, Outcome, Started, Task
from investigator.engine.owner import current_owner
from investigator.engine.pids import command_below
from investigator.engine.settings import SCRATCH, TMP_BYTES, tail, task_environment
from investigator.errors import EngineMissingError

GUARD = 'exec 3<&0; ( ( cat <&3 >/dev/null; kill -9 -1 ) & ); exec "$0" "$@" 3<&- </dev/null'
"""Ties a container to the harness: its stdin is a connection that the harness holds open. When the harness
dies, even by ``kill -9``, stdin ends, ``cat`` returns and everything in the container is killed. Detached
twice, so that the measured program has no child that it did not start. ``cat`` sleeps; it costs nothing."""


class DockerEngine:
    """Runs tasks in containers of one base image. Thread safe."""

    def __init__(
        self,
        *,
        image: BaseImage,
        storage_root: Path,
        connector: Callable[[], docker.DockerClient] = connect,
    ) -> None:
        """Connect and remove what dead runs left.

        `storage_root` is where on-disk scratch directories are made (`Task.scratch_on_disk`).

        Raises:
            EngineMissingError: no daemon answers, or it does not see the files of this machine.
        """
        self._image = image
        self._storage_root = storage_root
        self._connector = connector
        self._client = connector()
        self._closed = threading.Event()
        self._owner = str(current_owner())
        self._id = uuid.uuid4().hex
        try:
            with daemon_errors("describe itself"):
                self._info: dict[str, Any] = self._client.info()
            self._uid, self._gid = self._identity()
            sweep(self._client)
            sweep_scratch(storage_root)
            self._require_shared_files()
        except BaseException:
            self._client.close()
            raise

    @property
    def name(self) -> EngineName:
        """``docker``."""
        return "docker"

    @property
    def scratch(self) -> PurePosixPath:
        """``/scratch`` in every container."""
        return SCRATCH

    def inside(self, mount: Mount) -> PurePosixPath:
        """The mount's target."""
        return mount.target

    def run(self, task: Task, started: Started | None = None) -> Outcome:
        """Run `task` in a container of its own and remove the container, however it ends.

        Raises:
            EngineMissingError: the daemon or the container vanished, or refuses the task.
            HostUnfitError: no space is left, or a mount is missing.
        """
        with ExitStack() as cleanup:
            binds = [self._bind(mount) for mount in task.mounts]
            if task.scratch_on_disk:
                directory = cleanup.enter_context(
                    fresh_scratch(
                        self._storage_root, uid=self._uid, gid=self._gid, needed_bytes=task.scratch_bytes
                    )
                )
                binds.append(BindMount(str(SCRATCH), str(directory), type="bind"))
            container = cleanup.enter_context(self._container(task, binds))
            return self._run(container, task, started)

    def facts(self) -> Mapping[str, str]:
        """Engine, version, image and the isolation in force."""
        return {
            "engine": "docker",
            "version": str(self._info.get("ServerVersion", "unknown")),
            "image": self._image.reference,
            "image_id": self._image.image_id,
            "image_digest": self._image.digest,
            "image_origin": self._image.how,
            "base": self._image.image_id,
            "network": "none",
            "root": "read-only",
            "capabilities": "none",
            "no_new_privileges": "yes",
            "user": f"{self._uid}:{self._gid}",
            "scratch_default": "tmpfs",
            "storage_driver": str(self._info.get("Driver", "unknown")),
            "cgroup_version": str(self._info.get("CgroupVersion", "unknown")),
        }

    def close(self) -> None:
        """Kill and remove every container of this engine. Safe to call twice, and from a signal handler."""
        if self._closed.is_set():
            return
        self._closed.set()
        try:
            # A client of its own: the interrupted thread may hold locks of the other one's connection pool.
            client = self._connector()
            for container in labelled(client, f"{ENGINE_LABEL}={self._id}"):
                remove_quietly(container)
            client.close()
        except (EngineMissingError, *TRANSPORT_ERRORS):
            return
        finally:
            self._client.close()

    def _identity(self) -> tuple[int, int]:
        # Under a rootless daemon id 0 of a container *is* the user on the host, without any privilege; any
        # other id would be a subordinate one that could not write the user's directories.
        if any("rootless" in option for option in self._info.get("SecurityOptions") or ()):
            return 0, 0
        return task_identity()

    def _require_shared_files(self) -> None:
        """Create, and never start, a container with fresh directories of this machine.

        A remote daemon does not have them; one that is confined to a part of the file system (a snap, a
        desktop's virtual machine) does not see them. Better one sentence now than a failed cell for each
        build.
        """
        with (
            tempfile.TemporaryDirectory(prefix="investigate-") as temporary,
            fresh_scratch(self._storage_root, uid=self._uid, gid=self._gid, needed_bytes=0) as scratch,
        ):
            binds = [
                BindMount(target, str(Path(source).resolve()), type="bind", read_only=True)
                for target, source in (("/a", temporary), ("/b", scratch))
            ]
            task = Task(command=("true",), purpose="a look at this machine's files")
            with self._container(task, binds):
                pass

    def _bind(self, mount: Mount) -> BindMount:
        prepare_mount(mount, self._uid, self._gid)
        return BindMount(
            str(mount.target), str(mount.source.resolve()), type="bind", read_only=not mount.writable
        )

    @contextmanager
    def _container(self, task: Task, binds: list[BindMount]) -> Iterator[Container]:
        with daemon_errors(f"create the container of {task.purpose}"):
            container = self._client.containers.create(**self._settings(task, binds))
        try:
            yield container
        finally:
            remove_quietly(container)

    def _run(self, container: Container, task: Task, started: Started | None) -> Outcome:
        with self._tether(container, task):
            if self._closed.is_set():
                raise EngineMissingError(f"the engine was closed before {task.purpose} began")
            with daemon_errors(f"start {task.purpose}"):
                container.start()
            started_s = time.monotonic()
            if started is not None and (pid := self._pid(container, task)) is not None:
                started(pid)
            ended = self._wait(container, task)
            elapsed_s = time.monotonic() - started_s
            with daemon_errors(f"tell how {task.purpose} ended"):
                if not ended:
                    container.kill()
                container.reload()
                state: dict[str, Any] = container.attrs["State"]
                return Outcome(
                    exit_code=int(state["ExitCode"]) if ended else None,
                    timed_out=not ended,
                    out_of_memory=bool(state.get("OOMKilled")),
                    stdout=tail(container.logs(stdout=True, stderr=False)),
                    stderr=tail(container.logs(stdout=False, stderr=True)),
                    elapsed_s=elapsed_s,
                )

    @contextmanager
    def _tether(self, container: Container, task: Task) -> Iterator[None]:
        """Hold the container's stdin open; see `GUARD`."""
        with daemon_errors(f"attach to {task.purpose}"):
            connection = container.attach_socket(params={"stdin": 1, "stream": 1})
        try:
            yield
        finally:
            # Closing the socket alone would leave the HTTP response open on a closed descriptor.
            getattr(connection, "_response", connection).close()

    def _pid(self, container: Container, task: Task) -> int | None:
        """Process id of the command on this host, if the daemon's processes are processes of this machine."""
        with daemon_errors(f"tell the process of {task.purpose}"):
            container.reload()
        init = int(container.attrs["State"].get("Pid") or 0)
        return command_below(init, str(container.id), GUARD) if init > 0 else None

    def _wait(self, container: Container, task: Task) -> bool:
        """Sleep in one request until the container ends (True) or its time is up (False)."""
        deadline_s = time.monotonic() + task.timeout_s
        try:
            self._client.api.wait(str(container.id), timeout=math.ceil(task.timeout_s))
        except TRANSPORT_ERRORS:
            if time.monotonic() < deadline_s - 0.05:
                with daemon_errors(f"wait for {task.purpose}"):
                    raise
            return False
        if self._closed.is_set():
            raise EngineMissingError(f"the engine was closed while {task.purpose} ran")
        return True

    def _settings(self, task: Task, binds: list[BindMount]) -> dict[str, Any]:
        security = ["no-new-privileges"]
        if any("selinux" in option for option in self._info.get("SecurityOptions") or ()):
            # Else bind mounts would need relabelling, which changes the user's own files.
            security.append("label=disable")
        tmpfs = {"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={TMP_BYTES}"}  # noqa: S108
        if not task.scratch_on_disk:
            # By owner, not by mode: the runtime gives a mount point that it had to make (the working
            # directory) its own mode back, 0755.
            owner = f"uid={self._uid},gid={self._gid},mode=0700"
            tmpfs[str(SCRATCH)] = f"rw,exec,nosuid,nodev,{owner},size={task.scratch_bytes}"
        return {
            "image": self._image.image_id,
            "entrypoint": ["/bin/sh", "-c", GUARD],
            "command": list(task.command),
            "environment": task_environment(task, SCRATCH),
            "working_dir": str(task.working_directory or SCRATCH),
            "labels": {
                LABEL: "1",
                OWNER_LABEL: self._owner,
                ENGINE_LABEL: self._id,
                PURPOSE_LABEL: task.purpose,
            },
            "user": f"{self._uid}:{self._gid}",
            "network_mode": "none",
            "read_only": True,
            "cap_drop": ["ALL"],
            "security_opt": security,
            "pids_limit": task.pids_limit,
            "mem_limit": task.memory_bytes,
            # Equal: no swap, so that too much memory is one clear kill instead of a slow machine.
            "memswap_limit": task.memory_bytes,
            "cpuset_cpus": task.cpus,
            "ulimits": [Ulimit(name="core", soft=0, hard=0)],
            "mounts": binds,
            "tmpfs": tmpfs,
            "init": True,
            # Together with `detach=False` this sets StdinOnce: stdin ends with the one attached connection.
            "stdin_open": True,
            "detach": False,
            # Two files: with one, a rotation would throw the tail away.
            "log_config": LogConfig(type="json-file", config={"max-size": "1m", "max-file": "2"}),
        }
