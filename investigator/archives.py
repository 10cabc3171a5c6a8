"""Unpack archives and copy trees of strangers: plain files only, nothing outside the target, bounded."""

import errno
import lzma
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from investigator.errors import HostUnfitError, UsageError
from investigator.text import clean_text

MAX_FILES: Final = 50_000
MAX_BYTES: Final = 4 << 30
"""An unpacked Node release is 0.2 GB, the addon 14 MB; a debug build of Node may come near 2 GB."""

Place = Callable[[PurePosixPath], PurePosixPath | None]
"""Where below the target a member goes, or None to leave it out."""


def below_top(path: PurePosixPath) -> PurePosixPath | None:
    """Place everything without its first folder: ``package/lib/index.js`` becomes ``lib/index.js``."""
    return PurePosixPath(*path.parts[1:]) if len(path.parts) > 1 else None


def unpack(
    archive: Path,
    target: Path,
    *,
    place: Place = below_top,
    max_bytes: int = MAX_BYTES,
    max_files: int = MAX_FILES,
) -> tuple[PurePosixPath, ...]:
    """Unpack the placed regular files of a tar archive (plain, gz, bz2, xz) and return their paths.

    Modes become 0755 or 0644, owners and times are not kept. Links and devices among the placed members are
    refused: no release of Node or of an addon needs one.

    Raises:
        UsageError: not a complete archive, a member that leads out of it or is no plain file, or too much.
        OSError: the disk.
    """
    written: dict[PurePosixPath, None] = {}
    total = 0
    try:
        with tarfile.open(archive, "r:*") as tar:
            for count, member in enumerate(tar, start=1):
                if count > max_files:
                    raise UsageError(
                        f"{archive.name} holds more than {max_files:,} files; it is not unpacked"
                    )
                path = _placed(member, place, archive)
                if path is None:
                    continue
                total += member.size
                if total > max_bytes:
                    raise UsageError(f"{archive.name} unpacks to more than {max_bytes:,} bytes")
                _write(tar, member, target / path)
                written[path] = None
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise UsageError(
            f"{archive.name} is not a complete tar archive ({clean_text(str(error), 100)}); fetch it again"
        ) from error
    return tuple(written)


def copy_tree(
    source: Path, target: Path, *, ignore: Callable[[str, list[str]], Iterable[str]] | None = None
) -> None:
    """Copy a directory, links as what they point to, into a new or existing one.

    Raises:
        UsageError: something in it cannot be read, or is neither file nor directory.
        HostUnfitError: the disk is full.
    """
    try:
        shutil.copytree(source, target, ignore=ignore, dirs_exist_ok=True)
    except OSError as error:
        # Several at once come as a list of (source, target, text).
        first = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror or error
        shown = clean_text(str(first), 200)
        if os.strerror(errno.ENOSPC) in shown or os.strerror(errno.EDQUOT) in shown:
            raise HostUnfitError(f"no space is left on the disk for a copy of {source}; free some") from error
        raise UsageError(f"{clean_text(str(source), 200)} cannot be copied: {shown}") from error


def _placed(member: tarfile.TarInfo, place: Place, archive: Path) -> PurePosixPath | None:
    """Decide where a member goes; None for a folder or one that is not wanted."""
    raw = PurePosixPath(member.name)
    shown = clean_text(member.name, 120)
    if raw.is_absolute() or ".." in raw.parts or "\0" in member.name:
        raise UsageError(f"{archive.name} has a member that leads out of it ({shown}); it is not unpacked")
    if member.isdir():
        return None
    path = place(raw)
    if path is None:
        return None
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise UsageError(f"{archive.name} has a member without a usable name ({shown}); it is not unpacked")
    if not member.isreg():
        raise UsageError(f"{archive.name} has a link or device where a plain file belongs ({shown})")
    return path


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    source = tar.extractfile(member)
    if source is None:
        raise tarfile.ReadError("a member without content")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Made new, never opened: a second member of the same name cannot write through anything.
        path.unlink(missing_ok=True)
        with source, path.open("xb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise UsageError(
            f"an archive has a file where it also has a folder ({clean_text(member.name, 120)})"
        ) from error
    if path.stat().st_size != member.size:
        raise tarfile.ReadError("a member is shorter than it says")
    path.chmod(0o755 if member.mode & 0o111 else 0o644)
