"""One supervised process tree of this machine: started, its output kept, held to its limits, ended."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Self

import psutil

from investigator.engine.interface import Outcome, Started
from investigator.engine.pids import children, descendants
from investigator.engine.settings import TAIL_BYTES, tail
from investigator.engine.supervise import Request
from investigator.errors import EngineMissingError, HostUnfitError

WATCH_S = 0.5
"""How often memory is looked at while a task runs; a look costs less than a millisecond of CPU."""
GRACE_S = 5.0
"""How long a killed tree may take to disappear before its supervisor is killed as well."""

_PACKAGES = Path(__file__).parents[2]
_SUPERVISOR = "investigator.engine.supervise"
_Channel = Literal["stdout", "stderr", "status"]


class Supervised:
    """A running task; leaving the context kills what still runs of it. Any thread may call `kill`."""

    def __init__(self, request: Request, purpose: str) -> None:
        """Start it.

        Raises:
            HostUnfitError: no process can be made.
        """
        self._purpose = purpose
        self._caged = request["cage"] is not None
        self._started_s = time.monotonic()
        self._output: dict[_Channel, bytes] = {"stdout": b"", "stderr": b"", "status": b""}
        self._status, status = os.pipe()
        try:
            self._process = subprocess.Popen(
                (sys.executable, "-s", "-S", "-m", _SUPERVISOR, str(status)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(status,),
                env=_supervisor_environment(),
                # ^C on the terminal is the harness's to handle.
                start_new_session=True,
            )
        except OSError as error:
            os.close(self._status)
            raise HostUnfitError(f"no process can be started for {purpose} ({error.strerror})") from error
        finally:
            os.close(status)
        # A supervisor that died already says so by its status and its exit.
        with contextlib.suppress(OSError):
            os.write(self._stdin.fileno(), json.dumps(request).encode() + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        os.close(self._status)

    def kill(self) -> None:
        """Give the order to kill the whole tree; does not wait for it."""
        with contextlib.suppress(OSError):
            self._stdin.close()

    def wait(self) -> int:
        """Wait until the tree is gone, by force after `GRACE_S`; the supervisor's return code."""
        try:
            return self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def finish(self, timeout_s: float, memory_bytes: int, started: Started | None = None) -> Outcome:
        """Sleep until the task has ended or goes beyond a limit and is killed.

        `started` is told the process id of the command when it has taken over.

        Raises:
            HostUnfitError: the task could not be started.
            EngineMissingError: somebody killed the supervisor.
        """
        oom_kills = _oom_kills()
        beyond = self._follow(time.monotonic() + timeout_s, memory_bytes, started)
        if beyond:
            self.kill()
        code = self.wait()
        if self._output["status"]:
            reason = tail(self._output["status"])
            raise HostUnfitError(f"{self._purpose} cannot be started on this machine ({reason})")
        if code < 0 and not beyond:
            raise EngineMissingError(
                f"the supervisor of {self._purpose} was killed by signal {-code}: run again, "
                "`investigate resume` continues"
            )
        killed_by_kernel = code == 128 + signal.SIGKILL and _oom_kills() > oom_kills
        return Outcome(
            exit_code={"time": None, "memory": 128 + signal.SIGKILL}.get(beyond, code),
            timed_out=beyond == "time",
            out_of_memory=beyond == "memory" or (not beyond and killed_by_kernel),
            stdout=tail(self._output["stdout"]),
            stderr=tail(self._output["stderr"]),
            elapsed_s=time.monotonic() - self._started_s,
        )

    def _follow(
        self, deadline_s: float, memory_bytes: int, started: Started | None
    ) -> Literal["", "time", "memory"]:
        """Read until all channels end; the limit that was passed, if one was."""
        next_look_s = time.monotonic() + WATCH_S
        with selectors.DefaultSelector() as selector:
            self._register(selector)
            while selector.get_map():
                pause_s = min(deadline_s, next_look_s) - time.monotonic()
                for key, _ in selector.select(max(pause_s, 0)):
                    if not self._read(key.fd, key.data):
                        selector.unregister(key.fd)
                        if key.data == "status":
                            self._tell(started)
                now_s = time.monotonic()
                if now_s >= deadline_s:
                    return "time"
                if now_s >= next_look_s:
                    if self._memory_bytes() > memory_bytes:
                        return "memory"
                    if self._process.poll() is not None:
                        # Somebody who escaped (macOS) holds the channels open.
                        break
                    next_look_s = time.monotonic() + WATCH_S
        return ""

    def _register(self, selector: selectors.BaseSelector) -> None:
        for channel, stream in (("stdout", self._process.stdout), ("stderr", self._process.stderr)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, channel)
        selector.register(self._status, selectors.EVENT_READ, "status")

    def _read(self, descriptor: int, channel: _Channel) -> bool:
        data = os.read(descriptor, 1 << 16)
        self._output[channel] = (self._output[channel] + data)[-TAIL_BYTES:]
        if channel == "status":
            # It closes when the command takes over.
            self._started_s = time.monotonic()
        return bool(data)

    def _tell(self, started: Started | None) -> None:
        """Tell `started` the process id of the command, which has just taken over; not if it failed to."""
        if started is None or self._output["status"]:
            return
        # Below the supervisor: the first process of the cage, if there is one, then the command.
        parents = children(self._process.pid)
        found = [child for parent in parents[:1] for child in children(parent)] if self._caged else parents
        if found:
            started(found[0])

    def _memory_bytes(self) -> int:
        """Resident memory of the tree; a page that two processes share counts twice."""
        total = 0
        for pid in descendants(self._process.pid):
            with contextlib.suppress(psutil.Error):
                total += psutil.Process(pid).memory_info().rss
        return total

    @property
    def _stdin(self) -> IO[bytes]:
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101 - PIPE was asked for
        return stdin


def _supervisor_environment() -> dict[str, str]:
    """What a Python needs to start; the task's own environment travels in the request."""
    keep = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME")
    environment = {name: os.environ[name] for name in keep if name in os.environ}
    return {**environment, "PYTHONPATH": str(_PACKAGES), "PYTHONDONTWRITEBYTECODE": "1"}


def _oom_kills() -> int:
    """How often the kernel has killed for memory since boot; 0 where it does not tell."""
    try:
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
