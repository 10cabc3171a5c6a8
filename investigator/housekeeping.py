"""``investigate clean``: what killed runs left behind, and on request everything in the cache."""

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from investigator import units
from investigator.cache import cache_root
from investigator.cache_limit import keep_within, size_bytes
from investigator.engine.choose import SCRATCH_FOLDER
from investigator.engine.daemon import connect, sweep
from investigator.engine.files import sweep_scratch
from investigator.engine.local import MEMORY
from investigator.errors import EngineMissingError, UsageError
from investigator.store import single_process

_TEMPORARY = re.compile(r"investigate-(?:addon|base|host|io|load|node|npm|profile)-[a-z0-9_]{8}")
"""Names that `tempfile` makes for the prefixes used in this program."""
_TEMPORARY_AGE_S = 24 * 3600


def clean(*, cache: bool, dry_run: bool, keep_bytes: int | None = None) -> tuple[str, ...]:
    """Remove leftovers, or with `dry_run` only look; returns one line for each kind of thing.

    Args:
        cache: everything in the cache as well.
        dry_run: only look.
        keep_bytes: bound for the cache, least recently used entries out first.

    Raises:
        UsageError: both `cache` and `keep_bytes`.
        HostUnfitError: another process is measuring, and its containers and cache are in use.
    """
    if cache and keep_bytes is not None:
        raise UsageError("--cache removes everything, --keep keeps a part; give one of them.")
    # A look disturbs nobody: what a living process owns is not counted.
    alone = single_process(cache_root() / "measuring.lock", "this machine")
    with contextlib.nullcontext() if dry_run else alone:
        lines = [*_containers(dry_run=dry_run), *_scratch(dry_run=dry_run), *_temporary(dry_run=dry_run)]
        if cache:
            lines += _cache(dry_run=dry_run)
        if keep_bytes is not None:
            trimmed = keep_within(keep_bytes, lambda _sentence: None, dry_run=dry_run)
            lines += [f"{entry} of the cache" for entry in trimmed.removed]
        return tuple(lines)


def _containers(*, dry_run: bool) -> list[str]:
    try:
        client = connect()
    except EngineMissingError:
        return []
    try:
        return _counted(sweep(client, dry_run=dry_run), "container", "of dead runs")
    finally:
        client.close()


def _scratch(*, dry_run: bool) -> list[str]:
    roots = (cache_root() / SCRATCH_FOLDER, MEMORY)
    swept = sum(sweep_scratch(root, dry_run=dry_run) for root in roots)
    return _counted(swept, "scratch folder", "of dead runs")


def _temporary(*, dry_run: bool) -> list[str]:
    """What killed runs left where the system keeps temporary files; nothing of a run is a day old there."""
    found = list(_old_temporary(Path(tempfile.gettempdir())))
    if not dry_run:
        for path in found:
            shutil.rmtree(path, ignore_errors=True)
    return _counted(len(found), "temporary folder", "older than a day")


def _old_temporary(root: Path) -> Iterator[Path]:
    for path in root.glob("investigate-*"):
        try:
            facts = path.lstat()
        except OSError:
            continue
        mine = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()
        if mine and _TEMPORARY.fullmatch(path.name) and time.time() - facts.st_mtime > _TEMPORARY_AGE_S:
            yield path


def _counted(number: int, what: str, which: str) -> list[str]:
    return [f"{number} {what}{'' if number == 1 else 's'} {which}"] if number else []


def _cache(*, dry_run: bool) -> list[str]:
    lines = []
    for folder in sorted(p for p in cache_root().glob("*") if p.is_dir()):
        lines.append(f"{folder.name} of the cache ({units.format_bytes(size_bytes(folder))})")
        if not dry_run:
            shutil.rmtree(folder, ignore_errors=True)
    return lines
