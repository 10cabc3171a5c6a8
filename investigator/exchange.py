"""Files that pass between the harness and a task: a folder for both, and a careful look at what was left."""

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from investigator.store import disk_error


class UnreadableError(Exception):
    """A file of a task cannot be used; the text goes on from its name, as in ``is missing``."""


@contextlib.contextmanager
def exchange() -> Iterator[Path]:
    """Make a temporary folder that a task's user may enter, with an empty ``out`` for the task to write into.

    Raises:
        HostUnfitError: it cannot be made: the disk is full, or there is no temporary directory.
    """
    with contextlib.ExitStack() as cleanup:
        try:
            # What a task leaves may resist its removal; that must not cost a run.
            temporary = tempfile.TemporaryDirectory(prefix="investigate-io-", ignore_cleanup_errors=True)
            folder = Path(cleanup.enter_context(temporary))
            folder.chmod(0o755)
            (folder / "out").mkdir()
        except OSError as error:
            place = Path(os.environ.get("TMPDIR", "/tmp"))  # noqa: S108 - only told
            raise disk_error(error, place) from error
        yield folder


def give(path: Path, data: bytes) -> Path:
    """Write a file that a task may read.

    Raises:
        HostUnfitError: the disk is full.
    """
    try:
        path.write_bytes(data)
        path.chmod(0o644)
    except OSError as error:
        raise disk_error(error, path) from error
    return path


def take(path: Path, limit_bytes: int) -> bytes:
    """Read a file that a task wrote. It may be anything: a link to the host's own files, a FIFO, a device.

    Raises:
        UnreadableError: it is no regular file, or larger than `limit_bytes`, or cannot be read.
    """
    try:
        with open(path, "rb", opener=_open_warily) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnreadableError("is no regular file")
            data = file.read(limit_bytes + 1)
    except FileNotFoundError as error:
        raise UnreadableError("is missing") from error
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EISDIR, errno.ENXIO}:
            raise UnreadableError("is no regular file") from error
        raise UnreadableError(f"cannot be read ({error.strerror})") from error
    if len(data) > limit_bytes:
        raise UnreadableError(f"is larger than {limit_bytes:,} bytes")
    return data


def _open_warily(path: str, flags: int) -> int:
    """Not waiting for the other end of a FIFO, and not following a link."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
