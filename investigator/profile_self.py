"""``--self-profile``: py-spy records this program itself, to show what it does while workers are timed."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from investigator.errors import UsageError
from investigator.observer import Observer

PROFILE_NAME = "self-profile.speedscope.json"
_RATE_HZ = 20
"""Low, and not blocking: the recorder must not become the disturbance it looks for."""

Keep = Callable[[Path, Observer], None]


@contextlib.contextmanager
def self_profile(*, enabled: bool) -> Iterator[Keep]:
    """Record until the block ends; the function it gives then moves the profile into a run folder.

    Raises:
        UsageError: py-spy is not installed beside this Python.
    """
    if not enabled:
        yield lambda _folder, _observer: None
        return
    program = Path(sys.executable).with_name("py-spy")
    found = str(program) if program.exists() else shutil.which("py-spy")
    if found is None:
        raise UsageError(
            "--self-profile needs py-spy, which is missing here; install py-spy beside this tool."
        )
    with tempfile.TemporaryDirectory(prefix="investigate-profile-") as name:
        file = Path(name) / PROFILE_NAME
        recorder = subprocess.Popen(
            [found, "record", "--nonblocking", "--rate", str(_RATE_HZ), "--format", "speedscope",
             "--output", str(file), "--pid", str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )  # fmt: skip

        def keep(folder: Path, observer: Observer) -> None:
            _stop(recorder)
            if file.exists():
                shutil.copyfile(file, folder / PROFILE_NAME)
            else:
                said = (recorder.stderr.read() if recorder.stderr else b"").decode(errors="replace").strip()
                observer.warning(f"py-spy left no profile: {said[-300:]}")

        try:
            yield keep
        finally:
            _stop(recorder)


def _stop(recorder: subprocess.Popen[bytes]) -> None:
    """SIGINT makes py-spy write its file."""
    if recorder.poll() is None:
        recorder.send_signal(signal.SIGINT)
        try:
            recorder.wait(timeout=20)
        except subprocess.TimeoutExpired:
            recorder.kill()
            recorder.wait()
