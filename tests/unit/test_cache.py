import errno
import json
import os
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest

from investigator import cache
from investigator.errors import HostUnfitError, UsageError


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def fill_with(text: str, calls: list[str]) -> Callable[[Path], None]:
    def fill(work: Path) -> None:
        calls.append(text)
        (work / "bin").mkdir()
        (work / "bin/node").write_text(text)

    return fill


def test_an_entry_is_filled_once_and_read_by_everybody(root: Path) -> None:
    calls: list[str] = []
    old = os.umask(0o077)
    try:
        first = cache.filled("nodes", "a-1", fill_with("x", calls), key_files=["bin/node"])
        second = cache.filled("nodes", "a-1", fill_with("y", calls), key_files=["bin/node"])
    finally:
        os.umask(old)
    assert first == second == root / "nodes" / "a-1"
    assert calls == ["x"]
    assert (first / "bin/node").read_text() == "x"
    for directory in (root, root / "nodes", first, first / "bin"):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o755
    assert (first / "bin/node").stat().st_mode & 0o444 == 0o444
    assert cache.entries("nodes") == (first,)


def test_what_fill_raises_leaves_no_entry(root: Path) -> None:
    def fill(work: Path) -> None:
        (work / "half").write_text("half")
        raise UsageError("no such release")

    with pytest.raises(UsageError, match="no such release"):
        cache.filled("nodes", "a", fill)
    assert cache.entries("nodes") == ()
    assert not [path for path in (root / "nodes").iterdir() if path.is_dir()]


@pytest.mark.parametrize("damage", ["tampered", "key file gone", "stamp gone", "stamp torn"])
def test_a_damaged_entry_is_made_again_with_a_note(damage: str) -> None:
    calls: list[str] = []
    notes: list[str] = []
    directory = cache.filled("nodes", "a", fill_with("x", calls), key_files=["bin/node"])
    stamp = directory / cache.STAMP
    damage_by_name: dict[str, Callable[[], object]] = {
        "tampered": lambda: (directory / "bin/node").write_text("evil!"),
        "key file gone": (directory / "bin/node").unlink,
        "stamp gone": stamp.unlink,
        "stamp torn": lambda: stamp.write_text(stamp.read_text()[:9]),
    }
    damage_by_name[damage]()
    assert not cache.is_sound(directory)
    cache.filled("nodes", "a", fill_with("x", calls), key_files=["bin/node"], notify=notes.append)
    assert calls == ["x", "x"]
    assert cache.is_sound(directory)
    assert (directory / "bin/node").read_text() == "x"
    assert len(notes) == 1
    assert "damaged" in notes[0]


def test_the_leftover_of_a_killed_process_is_removed(root: Path) -> None:
    leftover = root / "nodes" / ".tmp-a-~killed"
    other = root / "nodes" / ".tmp-a-1-~alive"
    for directory in (leftover, other):
        directory.mkdir(parents=True)
        (directory / "half").write_text("half")
    cache.filled("nodes", "a", fill_with("x", []))
    assert not leftover.exists()
    assert other.exists(), "another key's work in progress must stay"


def test_a_second_process_waits_and_is_told(root: Path) -> None:
    (root / "nodes").mkdir(parents=True)
    lock = filelock.FileLock(root / "nodes" / ".a.lock")
    told = threading.Event()
    notes: list[str] = []
    calls: list[str] = []

    def notify(sentence: str) -> None:
        notes.append(sentence)
        told.set()

    with lock:
        thread = threading.Thread(
            target=cache.filled, args=("nodes", "a", fill_with("x", calls)), kwargs={"notify": notify}
        )
        thread.start()
        assert told.wait(10)
        assert calls == []
    thread.join(10)
    assert calls == ["x"]
    assert "waiting for another process" in notes[0]


def test_many_threads_fill_once() -> None:
    calls: list[str] = []
    threads = [
        threading.Thread(target=cache.filled, args=("nodes", "a", fill_with("x", calls))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert calls == ["x"]


@pytest.mark.parametrize(
    ("number", "words"), [(errno.ENOSPC, "no space is left"), (errno.EACCES, "Permission denied")]
)
def test_a_tree_that_cannot_be_copied_is_one_sentence(root: Path, number: int, words: str) -> None:
    def fill(_work: Path) -> None:
        why = str(OSError(number, os.strerror(number), "b/x"))
        raise shutil.Error([("a/y", "b/y", "not a regular file"), ("a/x", "b/x", why)])

    with pytest.raises(HostUnfitError, match=words):
        cache.filled("builds", "a", fill)
    assert not (root / "builds/a").exists()


def test_a_full_disk_is_one_sentence_with_the_path(root: Path) -> None:
    def fill(_work: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(HostUnfitError, match="no space is left") as caught:
        cache.filled("nodes", "a", fill)
    assert str(root / "nodes" / "a") in str(caught.value)


def test_a_cache_that_is_a_file_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "file"))
    with pytest.raises(HostUnfitError, match="INVESTIGATE_CACHE"):
        cache.filled("nodes", "a", fill_with("x", []))


@pytest.mark.parametrize(
    ("kind", "key"), [("..", "a"), ("nodes", ".."), ("nodes", "a/b"), ("nodes", "-a"), ("nodes", "")]
)
def test_a_key_is_a_plain_name(kind: str, key: str) -> None:
    with pytest.raises(UsageError):
        cache.entry(kind, key)


def test_a_text_is_written_in_one_step(root: Path) -> None:
    path = root / "npm" / "x.json"
    cache.write_text(path, json.dumps([1]))
    cache.write_text(path, json.dumps([2]))
    assert json.loads(path.read_text()) == [2]
    assert [item.name for item in path.parent.iterdir()] == ["x.json"]
