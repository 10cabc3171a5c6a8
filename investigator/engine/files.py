"""What the engines do on the host's disk: hand writable mounts to the task's user, scratch."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from investigator.engine.interface import Mount
from investigator.engine.owner import current_owner, is_dead, parse_owner
from investigator.errors import HostUnfitError

UNPRIVILEGED_ID = 65532
"""User and group of the tasks when the harness is root: no account of any distribution has this number."""

_SCRATCH_PREFIX = "investigate-"
# No character that a path list, make or a shell would take for its own.
_TO_NAME = str.maketrans(":/", "+~")
_FROM_NAME = str.maketrans("+~", ":/")


def task_identity() -> tuple[int, int]:
    """User and group id that tasks run as: the harness's own, so that written files belong to the user."""
    if os.geteuid() == 0:
        return UNPRIVILEGED_ID, UNPRIVILEGED_ID
    return os.geteuid(), os.getegid()


def prepare_mount(mount: Mount, uid: int, gid: int) -> None:
    """Make `mount` usable for `uid`: hand a writable one over, check that a read-only one can be read.

    Raises:
        HostUnfitError: it is missing, or the task's user could not read or write it.
    """
    try:
        info = mount.source.stat()
    except OSError as error:
        raise HostUnfitError(
            f"{mount.source} cannot be used ({error.strerror}): something removed it while the run needed "
            "it; run again"
        ) from error
    if os.geteuid() == 0:
        # Also back to root: without capabilities it cannot write what an earlier run gave away.
        if mount.writable:
            hand_over(mount.source, uid, gid)
        else:
            _require_readable(mount.source, info, uid, gid)
    elif not os.access(mount.source, os.R_OK | (os.W_OK if mount.writable else 0)):
        kind = "written" if mount.writable else "read"
        raise HostUnfitError(f"{mount.source} cannot be {kind} by you: change its owner or its mode")


def hand_over(path: Path, uid: int, gid: int) -> None:
    """Give `path` and everything below it to `uid`. Only root can.

    Walks by directory descriptors and never follows a link: earlier tasks may have planted links to the
    host's own files, or may swap a directory for a link at this moment.
    """
    os.chown(path, uid, gid, follow_symlinks=False)
    if not path.is_dir():
        return
    for _, directories, files, descriptor in os.fwalk(path, follow_symlinks=False):
        for name in (*directories, *files):
            try:
                os.chown(name, uid, gid, dir_fd=descriptor, follow_symlinks=False)
            except FileNotFoundError:
                continue


def _require_readable(path: Path, info: os.stat_result, uid: int, gid: int) -> None:
    wanted = 0o5 if stat.S_ISDIR(info.st_mode) else 0o4
    if info.st_uid == uid:
        granted = info.st_mode >> 6
    elif info.st_gid == gid:
        granted = info.st_mode >> 3
    else:
        granted = info.st_mode
    if granted & wanted != wanted:
        raise HostUnfitError(
            f"{path} cannot be read by the unprivileged user that tasks run as: chmod -R a+rX {path}"
        )


@contextmanager
def fresh_scratch(root: Path, *, uid: int, gid: int, needed_bytes: int) -> Iterator[Path]:
    """A private empty directory below `root`, gone afterwards whatever happens.

    Raises:
        HostUnfitError: `root` cannot be written, or has less than `needed_bytes` left.
    """
    path = make_scratch(root, uid=uid, gid=gid, needed_bytes=needed_bytes)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def make_scratch(root: Path, *, uid: int, gid: int, needed_bytes: int) -> Path:
    """Like `fresh_scratch`, for callers that remove it themselves."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        free_bytes = shutil.disk_usage(root).free
        if free_bytes < needed_bytes:
            raise HostUnfitError(
                f"{root} has {free_bytes >> 20} MiB left and {needed_bytes >> 20} MiB are needed: "
                "make room there"
            )
        owner = str(current_owner()).translate(_TO_NAME)
        path = Path(tempfile.mkdtemp(prefix=f"{_SCRATCH_PREFIX}{owner}-", dir=root))
        if os.geteuid() == 0 and uid != 0:
            os.chown(path, uid, gid)
    except OSError as error:
        raise HostUnfitError(f"no scratch directory can be made in {root}: {error.strerror}") from error
    return path


def sweep_scratch(root: Path, *, dry_run: bool = False) -> int:
    """Remove (with `dry_run` only count) the scratch below `root` whose owner is dead; returns how many."""
    swept = 0
    for path in root.glob(f"{_SCRATCH_PREFIX}*"):
        label = path.name.removeprefix(_SCRATCH_PREFIX).rpartition("-")[0].translate(_FROM_NAME)
        owner = parse_owner(label)
        if owner is not None and is_dead(owner):
            if not dry_run:
                shutil.rmtree(path, ignore_errors=True)
            swept += 1
    return swept
