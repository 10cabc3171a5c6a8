"""First process of a local task: shuts it in, starts it, ends with it, and ends it with the harness.

Run as a program of its own (``python -S -m investigator.engine.supervise STATUS_FD``) on nothing but the
standard library: the harness shall not be loaded a second time on the machine that is being measured. It
sleeps while the task runs.

``stdin``      one line, the `Request` as JSON; afterwards silence. Its end is the order to kill everything,
               and comes by itself when the harness dies, even by ``kill -9``.
``STATUS_FD``  one sentence if the task could not be started; empty otherwise.
exit status    the task's own; 128 + signal where a signal ended it; 127 where the command was not found.

With a `Cage` everything ends with the first process of the pid namespace. Without, orphans of the task are
adopted (Linux) and killed one by one.
"""

import contextlib
import json
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn, TypedDict

from investigator.engine import linux
from investigator.engine.cage import Cage, build_root, enter_namespaces

KILLED = 128 + signal.SIGKILL
_MAX_REQUEST_BYTES = 1 << 20


class Request(TypedDict):
    """What to run and how."""

    command: list[str]
    environment: dict[str, str]
    working_directory: str
    cpus: list[int]
    """Empty for all."""
    uid: int
    gid: int
    processes: int
    """Limit for the user's processes and threads (no limit binds root)."""
    cage: Cage | None


def main() -> NoReturn:
    """Read the request, carry it out, exit with the task's status."""
    status = int(sys.argv[1])
    os.set_inheritable(status, False)
    os.umask(0o022)
    request = _read_request()
    try:
        _supervise(request, status)
    except Exception as error:
        _report(status, error)
    os._exit(1)


def _read_request() -> Request:
    text = b""
    while not text.endswith(b"\n"):
        part = os.read(0, 1 << 16)
        text += part
        if not part or len(text) > _MAX_REQUEST_BYTES:
            # The harness died before it had said what to do.
            os._exit(KILLED)
    request: Request = json.loads(text)
    return request


def _report(status: int, error: Exception) -> None:
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    with contextlib.suppress(OSError):
        os.write(status, text.encode(errors="replace")[:4000])


def _supervise(request: Request, status: int) -> NoReturn:
    cage = request["cage"]
    if cage is None:
        # Orphans of the task come to us instead of init: nothing gets away by forking twice.
        linux.adopt_orphans()
        task = _start(request, status)
        code = _watch(task)
        _kill_descendants(task)
        os._exit(code)
    enter_namespaces(cage["user_namespace"])
    init = os.fork()
    if init == 0:
        try:
            # When this process ends, the kernel kills all others of the pid namespace.
            linux.die_with_parent(signal.SIGKILL)
            build_root(cage)
            os._exit(_watch(_start(request, status)))
        except Exception as error:
            _report(status, error)
        finally:
            os._exit(1)
    os.close(status)
    os._exit(_code(os.waitpid(init, 0)[1]))


def _start(request: Request, status: int) -> int:
    task = os.fork()
    if task == 0:
        try:
            _become(request)
        except Exception as error:
            _report(status, error)
        finally:
            os._exit(1)
    os.close(status)
    return task


def _watch(task: int) -> int:
    """Sleep until `task` ends or stdin does; its exit status, 128 + signal for a signal."""
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    poller = select.poll()
    poller.register(0, select.POLLIN)
    poller.register(wake, select.POLLIN)
    while True:
        code = _reap(task)
        if code is not None:
            return code
        if any(descriptor == 0 for descriptor, _ in poller.poll()):
            return KILLED
        os.read(wake, 4096)


def _reap(task: int) -> int | None:
    """Collect all ended children, adopted ones too; the exit status of `task` if it is among them."""
    while True:
        try:
            pid, wait_status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid == task:
            return _code(wait_status)
        if pid == 0:
            return None


def _code(wait_status: int) -> int:
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else 128 - code


def _kill_descendants(task: int) -> None:
    """Kill whatever the task left, again until nothing is left: it may fork meanwhile."""
    while True:
        with contextlib.suppress(OSError):
            os.killpg(task, signal.SIGKILL)
        for pid in _descendants():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found, new = [], [os.getpid()]
    while new:
        new = [child for parent in new for child in children.get(parent, ())]
        found += new
    return found


def _become(request: Request) -> NoReturn:
    """Drop every privilege and execute the command."""
    os.setsid()
    _restore_signals()
    if request["cage"] is not None:
        os.chroot(request["cage"]["root"])
    if request["cpus"]:
        os.sched_setaffinity(0, request["cpus"])
    _limit(request["processes"])
    linux.drop_privileges(request["uid"], request["gid"])
    os.chdir(request["working_directory"])
    # stdin is the harness's line to the supervisor.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    command = request["command"]
    try:
        os.execvpe(command[0], command, request["environment"])  # noqa: S606 - that is the purpose
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _restore_signals() -> None:
    # Python ignores these two, and an ignored signal stays ignored in the command.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def _limit(processes: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    if hard == resource.RLIM_INFINITY or hard > processes:
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))


if __name__ == "__main__":
    main()
