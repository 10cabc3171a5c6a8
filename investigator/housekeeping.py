"""``investigate clean``: what killed runs left behind, and on request everything in the cache."""

import shutil
from pathlib import Path

from investigator import units
from investigator.cache import cache_root
from investigator.engine.choose import SCRATCH_FOLDER
from investigator.engine.daemon import connect, sweep
from investigator.engine.files import sweep_scratch
from investigator.engine.local import MEMORY
from investigator.errors import EngineMissingError
from investigator.store import single_process


def clean(*, cache: bool, dry_run: bool) -> tuple[str, ...]:
    """Remove leftovers; returns one line for each kind of thing removed.

    Raises:
        HostUnfitError: another process is measuring, and its containers and cache are in use.
    """
    with single_process(cache_root() / "measuring.lock", "this machine"):
        lines = [] if dry_run else [*_containers(), *_scratch()]
        if cache:
            lines += _cache(dry_run=dry_run)
        return tuple(lines)


def _containers() -> list[str]:
    try:
        client = connect()
    except EngineMissingError:
        return []
    try:
        swept = sweep(client)
    finally:
        client.close()
    return [f"{swept} containers of dead runs"] if swept else []


def _scratch() -> list[str]:
    swept = sum(sweep_scratch(root) for root in (cache_root() / SCRATCH_FOLDER, MEMORY))
    return [f"{swept} scratch folders of dead runs"] if swept else []


def _cache(*, dry_run: bool) -> list[str]:
    lines = []
    for folder in sorted(p for p in cache_root().glob("*") if p.is_dir()):
        lines.append(f"{folder.name} of the cache ({units.format_bytes(_size_bytes(folder))})")
        if not dry_run:
            shutil.rmtree(folder, ignore_errors=True)
    return lines


def _size_bytes(folder: Path) -> int:
    return sum(p.lstat().st_size for p in folder.rglob("*") if not p.is_dir())
