"""Linux perf on this machine, recording one process.

With frame pointers (the builds of Node and of the addons keep them), by the clock of ``process.hrtime``, all
threads. Build ids are left out: perf would copy every binary into the user's home for them.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

from investigator.profiling.perfdata import UnusableError
from investigator.text import clean_text

FREQUENCY_HZ = 4999
"""Odd and near 5 kHz: no common divisor with timers, and 1.2 s of passes give 6,000 samples."""
MAX_DATA = "512M"
_END_S = 20.0


def program() -> str | None:
    """Path of perf, if this machine has it."""
    return shutil.which("perf")


class Recording:
    """A running ``perf record``, attached to one process."""

    def __init__(self, pid: int, data: Path) -> None:
        """Attach; perf needs some 50 ms for that, and this does not wait.

        Raises:
            UnusableError: it cannot be started.
        """
        self._data = data
        command = (
            program() or "perf", "record", "--quiet", "--pid", str(pid), "--freq", str(_frequency_hz()),
            "--call-graph", "fp", "--clockid", "CLOCK_MONOTONIC", "--no-buildid", "--no-buildid-cache",
            "--max-size", MAX_DATA, "--output", str(data),
        )  # fmt: skip
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=_environment(),
                # ^C on the terminal is the harness's to handle.
                start_new_session=True,
            )
        except OSError as error:
            raise UnusableError(f"perf cannot be started ({error.strerror})") from error

    def finish(self) -> None:
        """Wait until perf has written its data; it ends with the process.

        Raises:
            UnusableError: perf refused or failed.
        """
        try:
            _, said = self._process.communicate(timeout=_END_S)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.communicate(timeout=_END_S)
            self.abandon()
            raise UnusableError("perf did not end with the process") from None
        if not self._data.is_file() or self._data.stat().st_size == 0:
            raise UnusableError(f"perf could not attach ({_last_words(said)})")

    def abandon(self) -> None:
        """Kill it, whatever it has."""
        self._process.kill()
        self._process.communicate()


def _frequency_hz() -> int:
    try:
        limit = int(Path("/proc/sys/kernel/perf_event_max_sample_rate").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return FREQUENCY_HZ
    # Odd as well.
    return FREQUENCY_HZ if limit > FREQUENCY_HZ else max((limit - 1) | 1, 99)


def _environment() -> dict[str, str]:
    """Neither the user's settings nor language change what perf writes."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent", "LC_ALL": "C", "PAGER": "cat"}


def _last_words(said: bytes) -> str:
    lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    return clean_text(lines[0], 200) if lines else "it said nothing"
