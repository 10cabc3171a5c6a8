"""The user's cache directory: entries that are filled once, under a lock, and are never half there.

An entry is a directory ``<root>/<kind>/<key>``. It is made in a temporary sibling, gets a stamp with the
digests of its key files last, and is renamed into place. The lock is the kernel's: it dies with its process.

Whoever takes an entry holds it: a shared lock on its stamp, which also dies with the process, keeps it from
being removed (`cache_limit`), and the stamp's time says when it was used last.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

import filelock
import platformdirs

from investigator.errors import HostUnfitError, UsageError

Notify = Callable[[str], None]
"""Takes one sentence for the screen: who is waited for, what was thrown away."""

STAMP: Final = ".stamp.json"
_KIND: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")
_KEY: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+=-]{0,179}")
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_INNER: Final = re.compile(r"\[Errno (\d+)\]")
_DENIED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST})

_held: dict[Path, int] = {}
"""Descriptors of the stamps that this process holds, by entry."""
_holding: Final = threading.Lock()


def cache_root() -> Path:
    """Directory of all entries: ``$INVESTIGATE_CACHE``, else the platform's cache directory for this user."""
    chosen = os.environ.get("INVESTIGATE_CACHE")
    return (
        Path(chosen).expanduser().absolute() if chosen else Path(platformdirs.user_cache_dir("investigate"))
    )


def entry(kind: str, key: str) -> Path:
    """Where an entry lies, whether it exists or not.

    Raises:
        UsageError: `kind` or `key` is not a plain file name.
    """
    if not _KIND.fullmatch(kind) or not _KEY.fullmatch(key):
        raise UsageError(
            f"{kind[:40]!r}/{key[:200]!r} cannot name a cache entry; use letters, digits and . _ @ + = -"
        )
    return cache_root() / kind / key


def entries(kind: str) -> tuple[Path, ...]:
    """List the complete entries of one kind, by name. Their digests are not looked at."""
    folder = cache_root() / kind
    return tuple(sorted(stamp.parent for stamp in folder.glob(f"[!.]*/{STAMP}")))


def is_sound(directory: Path) -> bool:
    """Whether an entry is complete: its stamp can be read and its key files have the recorded digests."""
    try:
        files = json.loads((directory / STAMP).read_text("utf-8"))["files"]
        return all(sha256_of(directory / name) == digest for name, digest in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def filled(
    kind: str,
    key: str,
    fill: Callable[[Path], object],
    *,
    key_files: Iterable[str] = (),
    notify: Notify | None = None,
) -> Path:
    """Return the entry, made by `fill` where it is missing or damaged; safe between threads and processes.

    `fill` gets an empty directory on the same file system; what it raises is passed on and leaves no entry.
    `key_files` are paths or glob patterns relative to the entry; the digests of these files guard it.
    `notify` is told when another process is waited for and when a damaged entry is made again.

    Raises:
        HostUnfitError: the disk is full, or the cache directory cannot be written.
    """
    directory = entry(kind, key)
    if hold(directory) and is_sound(directory):
        return directory
    tell = notify or _silent
    try:
        _make_open_directory(directory.parent)
        with locked(directory, tell):
            if not (hold(directory) and is_sound(directory)):
                release([directory])
                _refill(directory, fill, tuple(key_files), tell)
                hold(directory)
    except OSError as error:
        raise _unfit(error, directory) from error
    return directory


def hold(directory: Path) -> bool:
    """Take a complete entry into use until `release` or the end of this process; False where there is none.

    Where the file system has no locks the entry is taken without one.
    """
    stamp = directory / STAMP
    with _holding:
        try:
            known = _held.get(directory)
            handle = os.open(stamp, os.O_RDONLY) if known is None else known
        except OSError:
            return False
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH)
        # Between opening and locking it may have been removed, or made anew.
        if not _is_same(handle, stamp):
            _held.pop(directory, None)
            os.close(handle)
            return False
        with contextlib.suppress(OSError):  # somebody else's cache, only read here
            os.utime(handle)
        _held[directory] = handle
        return True


def release(directories: Iterable[Path] | None = None) -> None:
    """Give entries up that this process holds, all of them for None: from now on they may be removed."""
    with _holding:
        for directory in list(_held) if directories is None else list(directories):
            handle = _held.pop(directory, None)
            if handle is not None:
                os.close(handle)


def _is_same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False


def write_text(path: Path, text: str) -> None:
    """Write a small file below the cache root in one step: readers see the old text or the new one.

    Raises:
        HostUnfitError: the disk is full, or the directory cannot be written.
    """
    try:
        _make_open_directory(path.parent)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".tmp-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).chmod(0o644)
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise _unfit(error, path) from error


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of a file; remembered in this process while size, time and inode stay the same."""
    facts = path.stat()
    return _sha256(path, facts.st_size, facts.st_mtime_ns, facts.st_ino)


def tree_sha256(directory: Path) -> str:
    """Hexadecimal SHA-256 over the names and contents of all files below `directory`, in sorted order."""
    digest = hashlib.sha256()
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        digest.update(
            f"{path.relative_to(directory).as_posix()}\0{sha256_of(path)}\n".encode(errors="surrogateescape")
        )
    return digest.hexdigest()


@lru_cache(maxsize=16384)
def _sha256(path: Path, _size: int, _mtime_ns: int, _inode: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def locked(directory: Path, tell: Notify) -> Iterator[None]:
    """Be the only one who makes or removes an entry; waits, and says so, while somebody else does."""
    lock = filelock.FileLock(directory.parent / f".{directory.name}.lock", mode=0o644)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        tell(f"waiting for another process that is making {directory}")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _refill(
    directory: Path, fill: Callable[[Path], object], key_files: tuple[str, ...], tell: Notify
) -> None:
    # Nobody else works under this key's lock, so whatever lies here was left by a killed process.
    for stale in directory.parent.glob(f".tmp-{directory.name}-~*"):
        remove(stale)
    if directory.exists():
        tell(f"the cache entry {directory} is damaged and is made again")
        remove(directory)
    work = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".tmp-{directory.name}-~"))
    try:
        fill(work)
        files = sorted({path for pattern in key_files for path in work.glob(pattern) if path.is_file()})
        stamp = {"schema": 1, "files": {str(path.relative_to(work)): sha256_of(path) for path in files}}
        (work / STAMP).write_text(json.dumps(stamp, indent=1), "utf-8")
        _open_to_all(work)
        work.replace(directory)
    finally:
        if work.exists():
            remove(work)


def remove(directory: Path) -> None:
    """Delete a tree, also one whose directories are read-only (packages may contain such)."""
    for folder, _names, _files in os.walk(directory):
        Path(folder).chmod(0o755)
    shutil.rmtree(directory)


def _open_to_all(directory: Path) -> None:
    """Let an unprivileged user inside a container read the entry, whatever the umask was."""
    for folder, _names, files in os.walk(directory):
        Path(folder).chmod(0o755)
        for name in files:
            path = Path(folder, name)
            if not path.is_symlink():
                path.chmod((path.stat().st_mode & 0o777) | 0o444)


def _make_open_directory(directory: Path) -> None:
    root = cache_root()
    directory.mkdir(parents=True, exist_ok=True)
    for folder in (root, *[d for d in (directory, *directory.parents) if root in d.parents]):
        if folder.stat().st_uid == os.getuid():
            folder.chmod(0o755)


def _unfit(error: OSError, path: Path) -> Exception:
    """Give the sentence for an error of the disk; another one (of `fill`, say) comes back as it is."""
    numbers = _errnos(error)
    if numbers & _FULL:
        return HostUnfitError(
            f"no space is left on the disk for {path}; free some, run `investigate clean`, "
            "or point INVESTIGATE_CACHE at another disk"
        )
    if denied := numbers & _DENIED:
        return HostUnfitError(
            f"the cache cannot write {path} ({os.strerror(min(denied))}); "
            "point INVESTIGATE_CACHE at another directory"
        )
    return error


def _errnos(error: OSError) -> frozenset[int]:
    """Number of an error, or those in it: `shutil.Error` of a copied tree holds a text for each file."""
    if isinstance(error, shutil.Error):
        return frozenset(map(int, _INNER.findall(str(error))))
    return frozenset() if error.errno is None else frozenset({error.errno})


def _silent(_sentence: str) -> None:
    pass
