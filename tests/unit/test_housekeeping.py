"""`investigate clean` removes what dead runs left, nothing else, and with a dry run nothing at all."""

import os
import tempfile
import time
from pathlib import Path

import pytest

from investigator import housekeeping
from investigator.cache import cache_root
from investigator.engine.choose import SCRATCH_FOLDER
from investigator.errors import EngineMissingError

DAY_S = 24 * 3600


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()

    def refuse() -> None:
        raise EngineMissingError("no daemon")

    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(housekeeping, "MEMORY", tmp_path / "memory")
    monkeypatch.setattr(housekeeping, "connect", refuse)
    return folder


def make(path: Path, *, age_s: float = 2 * DAY_S) -> Path:
    path.mkdir(parents=True)
    (path / "file").write_text("x")
    then = time.time() - age_s
    os.utime(path, (then, then))
    return path


def test_only_what_dead_runs_left_goes(temporary: Path) -> None:
    dead = cache_root() / SCRATCH_FOLDER / "investigate-1+1++elsewhere-abc"
    gone = [make(temporary / f"investigate-{kind}-abcd_123") for kind in ("io", "load", "host")]
    kept = [
        make(temporary / "investigate-io-abcd_124", age_s=60),
        make(temporary / "investigate-notes"),
        make(temporary / "investigate-io-of-mine"),
        make(dead),
    ]
    (temporary / "investigate-io-abcd_125").symlink_to(kept[1])
    told = ("3 temporary folders older than a day",)
    assert housekeeping.clean(cache=False, dry_run=True) == told
    assert all(path.exists() for path in gone)
    assert housekeeping.clean(cache=False, dry_run=False) == told
    assert not any(path.exists() for path in gone)
    assert all((path / "file").exists() for path in kept)
    assert (temporary / "investigate-io-abcd_125").is_symlink()
    assert housekeeping.clean(cache=False, dry_run=False) == ()


def test_scratch_of_a_dead_process(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("investigator.engine.files.is_dead", lambda _owner: True)
    left = make(cache_root() / SCRATCH_FOLDER / "investigate-1+1++here-abc")
    assert housekeeping.clean(cache=False, dry_run=True) == ("1 scratch folder of dead runs",)
    assert left.exists()
    assert housekeeping.clean(cache=False, dry_run=False) == ("1 scratch folder of dead runs",)
    assert not left.exists()
