"""``--keep``: least recently used entries go first, and never one that somebody uses."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from investigator import cache, cache_limit, housekeeping, options, units
from investigator.errors import EngineMissingError, UsageError

KIB = 1024


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cache.release()
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def make(key: str, *, age_s: float, kib: int = 10) -> Path:
    directory = cache.filled("nodes", key, lambda work: (work / "node").write_bytes(b"x" * kib * KIB))
    cache.release()
    then = time.time() - age_s
    os.utime(directory / cache.STAMP, (then, then))
    return directory


def trim(kib: float, *, dry_run: bool = False) -> tuple[cache_limit.Trimmed, list[str]]:
    told: list[str] = []
    return cache_limit.keep_within(int(kib * KIB), told.append, dry_run=dry_run), told


def test_the_least_recently_used_go_first_and_only_as_many_as_needed() -> None:
    old, older, new = make("old", age_s=200), make("older", age_s=300), make("new", age_s=100)
    trimmed, told = trim(25)
    assert [entry.split(" ")[0] for entry in trimmed.removed] == ["nodes/older"]
    assert (older.exists(), old.exists(), new.exists()) == (False, True, True)
    assert trimmed.after_bytes <= 25 * KIB < trimmed.before_bytes
    assert len(told) == 2
    assert "nodes/older" in told[0]
    assert cache.entries("nodes") == (new, old)
    assert not list(old.parent.glob(".tmp-*"))


def test_taking_an_entry_makes_it_the_last_to_go() -> None:
    first, second = make("first", age_s=300), make("second", age_s=200)
    assert cache.filled("nodes", "first", lambda _work: pytest.fail("it is there")) == first
    cache.release()
    trim(15)
    assert (first.exists(), second.exists()) == (True, False)


def test_what_is_in_use_stays_here_and_in_another_process() -> None:
    mine, theirs, nobodys = (make(key, age_s=age) for key, age in (("a", 400), ("b", 300), ("c", 200)))
    assert cache.hold(mine)
    script = (
        "import sys, pathlib; from investigator import cache; "
        "print(cache.hold(pathlib.Path(sys.argv[1])), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(theirs)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        trimmed, told = trim(0)
        assert (mine.exists(), theirs.exists(), nobodys.exists()) == (True, True, False)
        assert trimmed.in_use == 2
        assert "2 in use" in told[-1]
        other.communicate()
    trim(0)
    assert (mine.exists(), theirs.exists()) == (True, False)  # its lock died with it
    cache.release([mine])
    assert trim(0)[0].in_use == 0
    assert not mine.exists()


def test_a_dry_run_removes_nothing_and_tells_the_same() -> None:
    entry = make("a", age_s=100)
    would, _ = trim(1, dry_run=True)
    assert entry.exists()
    did, _ = trim(1)
    assert would == did
    assert not entry.exists()


def test_an_entry_that_went_is_made_again_and_the_old_hold_does_not_count() -> None:
    entry = make("a", age_s=100)
    assert cache.hold(entry)
    cache.remove(entry)  # as `clean --cache` does
    assert not cache.hold(entry)
    made: list[Path] = []
    cache.filled("nodes", "a", made.append)
    assert len(made) == 1


def test_only_old_shared_objects_go(root: Path) -> None:
    young, old = root / "objects/young", root / "objects/old"
    for folder, age_s in ((young, 60.0), (old, 3 * 24 * 3600.0)):
        folder.mkdir(parents=True)
        (folder / "sqlite3.o").write_bytes(b"x" * KIB)
        then = time.time() - age_s
        for path in (folder / "sqlite3.o", folder):
            os.utime(path, (then, then))
    trim(0)
    assert (young.exists(), old.exists()) == (True, False)


def test_clean_takes_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise EngineMissingError("no daemon")

    monkeypatch.setattr(housekeeping, "connect", refuse)
    monkeypatch.setattr(housekeeping, "MEMORY", tmp_path / "memory")
    old, new = make("old", age_s=200), make("new", age_s=100)
    lines = housekeeping.clean(cache=False, dry_run=False, keep_bytes=15 * KIB)
    assert [line.split(" ")[0] for line in lines] == ["nodes/old"]
    assert (old.exists(), new.exists()) == (False, True)
    with pytest.raises(UsageError, match="one of them"):
        housekeeping.clean(cache=True, dry_run=True, keep_bytes=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10GB", 10 * 10**9),
        ("10g", 10 * 10**9),
        ("2.5 GiB", int(2.5 * 2**30)),
        ("500MB", 500 * 10**6),
        ("0", 0),
        ("4096", 4096),
        ("4096B", 4096),
        ("ten", None),
        ("-1GB", None),
        ("1iB", None),
        ("10GBs", None),
        ("", None),
        ("1e9", None),
    ],
)
def test_sizes(text: str, expected: int | None) -> None:
    assert units.parse_bytes(text) == expected


def test_a_size_that_is_none_is_told() -> None:
    assert options.keep_bytes(None) is None
    assert options.keep_bytes("1KB") == 1000
    with pytest.raises(UsageError, match="--keep 'much' is no size"):
        options.keep_bytes("much")
