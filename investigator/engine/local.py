"""Plain processes of this machine, for where no container engine answers: as isolated as the kernel allows.

On Linux a task gets namespaces of its own (see `cage`), under root and, where the system lets everybody make
them, without: no network, a read-only root, no capability, its mounts at the same paths as in a container.
Where that is refused, and on macOS, it is a plain process that sees the host. `LocalEngine.facts` says what
is in force, read from inside a task.
"""

import itertools
import os
import platform
import shutil
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath

import msgspec
import psutil

from investigator.engine.cage import Cage, CagedMount
from investigator.engine.files import (
    UNPRIVILEGED_ID,
    fresh_scratch,
    make_scratch,
    prepare_mount,
    sweep_scratch,
)
from investigator.engine.interface import EngineName, Mount, Outcome, Started, Task
from investigator.engine.process import Supervised
from investigator.engine.settings import SCRATCH, TMP_BYTES, task_environment
from investigator.engine.supervise import Request
from investigator.errors import EngineMissingError, HostUnfitError, InvestigateError
from investigator.spec import cpu_numbers

MEMORY = Path("/dev/shm")  # noqa: S108 - shared memory is the purpose; directories in it are private
_PROCESSES_BESIDE = 4096
"""Added to a task's limit of processes: the system counts all of the user's, not only the task's."""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One way to run tasks on this machine."""

    caged: bool
    user_namespace: bool = False
    uid: int
    gid: int


class LocalEngine:
    """Runs tasks as processes of this machine. Thread safe."""

    def __init__(self, *, storage_root: Path, ways: tuple[Way, ...] | None = None) -> None:
        """Find the best way that works here, and remove what dead runs left.

        Args:
            storage_root: where scratch directories are made.
            ways: the ways to try, best first; by default all that the system may have.

        Raises:
            HostUnfitError: not even a plain process runs.
        """
        self._storage_root = storage_root
        self._closed = threading.Event()
        self._running: set[Supervised] = set()
        self._numbers = itertools.count(1)
        self._thread = threading.local()
        sweep_scratch(storage_root)
        sweep_scratch(MEMORY)
        self._home = make_scratch(storage_root, uid=os.geteuid(), gid=os.getegid(), needed_bytes=0)
        try:
            # Passable, not readable: the task's user must reach its own directory below.
            self._home.chmod(0o711)
            (self._home / "root").mkdir()
            self._refused = "this system has none"
            self._way, self._status = self._find_way(ways or possible_ways())
        except BaseException:
            shutil.rmtree(self._home, ignore_errors=True)
            raise

    @property
    def name(self) -> EngineName:
        """``local``."""
        return "local"

    @property
    def scratch(self) -> PurePosixPath:
        """``/scratch`` in a cage; else a path that is the scratch of the calling thread's next task."""
        if self._way.caged:
            return SCRATCH
        if not hasattr(self._thread, "scratch"):
            self._thread.scratch = self._home / f"scratch-{next(self._numbers)}"
        return PurePosixPath(self._thread.scratch)

    def inside(self, mount: Mount) -> PurePosixPath:
        """The mount's target in a cage, its source without."""
        return mount.target if self._way.caged else PurePosixPath(mount.source.absolute())

    def run(self, task: Task, started: Started | None = None) -> Outcome:
        """Run `task`; nothing of it is left afterwards, however it ends.

        Raises:
            EngineMissingError: the engine was closed.
            HostUnfitError: the task cannot be started, no space is left, or a mount is missing.
        """
        with ExitStack() as cleanup:
            self._require_open(f"before {task.purpose} began")
            for mount in task.mounts:
                prepare_mount(mount, self._way.uid, self._way.gid)
            try:
                request = self._caged(task, cleanup) if self._way.caged else self._plain(task, cleanup)
            except OSError as error:
                self._require_open(f"before {task.purpose} began")
                raise HostUnfitError(f"no scratch can be made for {task.purpose}: {error}") from error
            supervised = cleanup.enter_context(self._supervised(request, task.purpose))
            outcome = supervised.finish(task.timeout_s, task.memory_bytes, started)
            self._require_open(f"while {task.purpose} ran")
            return outcome

    def facts(self) -> Mapping[str, str]:
        """What is in force, as seen from inside a task."""
        caged = self._way.caged
        limits = "time and memory watched twice a second; processes and threads by the kernel"
        return {
            "engine": "local",
            "version": platform.release(),
            "base": _base(),
            "isolation": "namespaces" if caged else f"none; namespaces: {self._refused}",
            "network": _network(self._status),
            "root": "read-only, system directories only" if caged else "the host's",
            **_privileges(self._status),
            "scratch_default": self._scratch_place(),
            "limits": limits,
        }

    def close(self) -> None:
        """Kill what runs. Safe to call twice, from other threads and from a signal handler."""
        self._closed.set()
        for supervised in list(self._running):
            supervised.kill()
        for supervised in list(self._running):
            supervised.wait()
        shutil.rmtree(self._home, ignore_errors=True)

    # -- which way -------------------------------------------------------------------------------------------

    def _find_way(self, ways: tuple[Way, ...]) -> tuple[Way, str]:
        """The first way that works, and what a task sees of itself on it."""
        refused = ""
        for way in ways:
            self._way = way
            look = ("cat", "/proc/self/status", "/proc/self/net/dev") if _is_linux() else ("true",)
            probe = Task(command=look, purpose="a first task", timeout_s=30, scratch_bytes=1 << 20)
            try:
                outcome = self.run(probe)
                if outcome.ok:
                    return way, outcome.stdout
                refused = outcome.stderr.strip() or f"a first task ended with {outcome.exit_code}"
            except InvestigateError as error:
                refused = str(error)
            if way.caged:
                self._refused = refused
        raise HostUnfitError(f"no process can be run on this machine ({refused})")

    # -- what a task gets ------------------------------------------------------------------------------------

    def _caged(self, task: Task, cleanup: ExitStack) -> Request:
        mounts = [
            CagedMount(source=str(m.source.resolve()), target=str(m.target), writable=m.writable)
            for m in task.mounts
        ]
        if task.scratch_on_disk:
            directory = self._disk_scratch(task, cleanup)
            mounts.append(CagedMount(source=str(directory), target=str(SCRATCH), writable=True))
        cage = Cage(
            root=str(self._home / "root"),
            user_namespace=self._way.user_namespace,
            mounts=mounts,
            scratch=str(SCRATCH),
            scratch_bytes=0 if task.scratch_on_disk else task.scratch_bytes,
            tmp_bytes=TMP_BYTES,
        )
        return self._request(task, SCRATCH, {}, cage)

    def _plain(self, task: Task, cleanup: ExitStack) -> Request:
        for mount in task.mounts:
            self._require_passage(mount.source)
        link = Path(self.scratch)
        in_memory = not task.scratch_on_disk and _has_space(MEMORY, task.scratch_bytes)
        directory = self._disk_scratch(task, cleanup, MEMORY if in_memory else self._storage_root)
        temporary = self._disk_scratch(task, cleanup)
        link.symlink_to(directory)
        cleanup.callback(link.unlink, missing_ok=True)
        # There is no private /tmp: what compilers leave behind goes away with this one.
        return self._request(task, self.scratch, {"TMPDIR": str(temporary)}, None)

    def _disk_scratch(self, task: Task, cleanup: ExitStack, root: Path | None = None) -> Path:
        scratch = fresh_scratch(
            root or self._storage_root, uid=self._way.uid, gid=self._way.gid, needed_bytes=task.scratch_bytes
        )
        return cleanup.enter_context(scratch)

    def _request(
        self, task: Task, scratch: PurePosixPath, extra: dict[str, str], cage: Cage | None
    ) -> Request:
        return Request(
            command=list(task.command),
            environment={**extra, **task_environment(task, scratch)},
            working_directory=str(task.working_directory or scratch),
            cpus=_cpus(task.cpus),
            uid=self._way.uid,
            gid=self._way.gid,
            processes=task.pids_limit + _PROCESSES_BESIDE,
            cage=cage,
        )

    def _require_passage(self, path: Path) -> None:
        """Check that the unprivileged user may walk to `path`; in a cage nobody has to walk."""
        if os.geteuid() != 0 or self._way.uid == 0:
            return
        for folder in path.resolve().parents:
            if not folder.stat().st_mode & stat.S_IXOTH:
                raise HostUnfitError(
                    f"{path} cannot be reached by the unprivileged user that tasks run as, because {folder} "
                    "is closed to others: move it, or chmod o+x that directory"
                )

    def _require_open(self, when: str) -> None:
        if self._closed.is_set():
            raise EngineMissingError(f"the engine was closed {when}")

    @contextmanager
    def _supervised(self, request: Request, purpose: str) -> Iterator[Supervised]:
        with Supervised(request, purpose) as supervised:
            self._running.add(supervised)
            if self._closed.is_set():
                supervised.kill()
            try:
                yield supervised
            finally:
                self._running.discard(supervised)

    def _scratch_place(self) -> str:
        if self._way.caged:
            return "tmpfs"
        return f"tmpfs ({MEMORY})" if MEMORY.is_dir() else "disk"


def possible_ways() -> tuple[Way, ...]:
    """The ways that this user may have on this system, best first. The last one is no isolation at all."""
    uid, gid = os.geteuid(), os.getegid()
    plain = Way(caged=False, uid=uid, gid=gid)
    if not _is_linux():
        return (plain,)
    if uid != 0:
        return (Way(caged=True, user_namespace=True, uid=uid, gid=gid), plain)
    other = UNPRIVILEGED_ID
    return (Way(caged=True, uid=other, gid=other), Way(caged=False, uid=other, gid=other), plain)


def _is_linux() -> bool:
    return sys.platform == "linux"


def _cpus(text: str | None) -> list[int]:
    """Read ``0,2-3``; where the system cannot pin a process (macOS), no restriction."""
    if text is None or not hasattr(os, "sched_setaffinity"):
        return []
    return list(cpu_numbers(text))


def _has_space(root: Path, needed_bytes: int) -> bool:
    # Beside the file system's own limit: what fills it is the machine's memory.
    try:
        free_bytes = shutil.disk_usage(root).free
    except OSError:
        return False
    return free_bytes >= needed_bytes and psutil.virtual_memory().available >= needed_bytes


def _base() -> str:
    """What stands for the base image in a build's cache key: system and C library."""
    try:
        system = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        system = platform.platform()
    return " ".join(("local", system, *platform.libc_ver(), platform.machine()))


def _fields(status: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in status.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _network(status: str) -> str:
    """From /proc/self/status followed by /proc/self/net/dev, as a task has printed them."""
    fields = _fields(status)
    if "lo" not in fields:
        return "the host's"
    # Counters stand behind the interfaces' names only: receive and transmit, 16 numbers.
    others = [name for name, value in fields.items() if name != "lo" and len(value.split()) == 16]
    return "the host's" if others else "none"


def _privileges(status: str) -> dict[str, str]:
    """User, capabilities and no-new-privileges of a task."""
    fields = _fields(status)
    # Without new privileges nothing can be taken from the bounding set any more.
    names = ["CapInh", "CapPrm", "CapEff", "CapAmb"] + ["CapBnd"] * (fields.get("NoNewPrivs") != "1")
    sets = [int(fields.get(name, "1"), 16) for name in names]
    uid = fields.get("Uid", str(os.geteuid())).split()[0]
    gid = fields.get("Gid", str(os.getegid())).split()[0]
    return {
        "user": f"{uid}:{gid}",
        "capabilities": "none" if not any(sets) else "the user's own",
        "no_new_privileges": "yes" if fields.get("NoNewPrivs") == "1" else "no",
    }
