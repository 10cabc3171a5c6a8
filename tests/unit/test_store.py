"""The run folder: whole files, whole rounds, one writer, and clear words for damaged ones."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from investigator.errors import HostUnfitError, StoredFileError, UsageError
from investigator.store import (
    MAX_STORED_BYTES,
    RunFolder,
    create_run,
    disk_error,
    open_run,
    read_json,
    single_process,
    write_atomic,
)


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    where: Path


def test_json_starts_with_schema_kind_tool_and_names_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    folder = RunFolder(tmp_path)
    thing = Thing(name="x", where=tmp_path / "cache" / "nodes" / "a")
    path = folder.write_json("thing.json", "thing", 3, thing)
    text = path.read_text()
    assert list(json.loads(text))[:3] == ["schema", "kind", "tool"]
    assert str(tmp_path) not in text
    assert folder.read_json("thing.json", "thing", 3, Thing) == thing


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "damaged"),
        ('{"schema": 1, "kind": "thing", "tool": "t"', "damaged"),
        ('{"schema": 1, "kind": "thing", "tool": "t"}', "damaged"),
        ('{"schema": 9, "kind": "thing", "tool": "investigate 7"}', "investigate 7 or newer"),
        ('{"schema": 1, "kind": "other", "tool": "t"}', "expected 'thing'"),
        ("[1]", "damaged"),
        ('{"schema": 1, "kind": "thing", "tool": "t", "more": ' + "[" * 100_000, "damaged"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "thing.json").write_text(text)
    with pytest.raises(StoredFileError, match=word):
        read_json(tmp_path / "thing.json", "thing", 1, Thing)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoredFileError, match="is missing"):
        read_json(tmp_path / "thing.json", "thing", 1, Thing)


@pytest.mark.parametrize("place", ["fifo", "folder", "endless"])
def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path: Path, place: str) -> None:
    path = tmp_path / "thing.json"
    if place == "fifo":
        os.mkfifo(path)
    elif place == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(StoredFileError, match=r"thing\.json cannot be read"):
        read_json(path, "thing", 1, Thing)


def test_a_file_larger_than_any_stored_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "thing.json"
    path.touch()
    os.truncate(path, MAX_STORED_BYTES + 1)
    with pytest.raises(StoredFileError, match="larger than"):
        read_json(path, "thing", 1, Thing)


def test_a_device_or_pipe_is_never_replaced_by_a_file(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    os.mkfifo(path)
    with pytest.raises(HostUnfitError, match="a device or a pipe; name a file"):
        write_atomic(path, b"x")
    assert [p.name for p in tmp_path.iterdir() if p.is_fifo()] == ["report.md"]
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("~nobody-of-that-name/run", "home directory of a user"),
        ("x" * 5000, "longer than a path can be"),
        ("x" * 300, "longer than a path can be"),
    ],
)
def test_a_run_that_no_path_can_name_is_a_sentence(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        open_run(name)


def test_a_run_that_may_not_be_looked_at_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "is_file", refused)
    with pytest.raises(UsageError, match="cannot be read: Permission denied"):
        open_run(str(tmp_path))


def test_an_interrupted_round_leaves_nothing_that_counts(tmp_path: Path) -> None:
    folder = create_run(tmp_path / "run")
    with folder.round_folder(1) as draft:
        (draft / "round.json").write_text("{}")

    def interrupted() -> None:
        with folder.round_folder(2) as draft:
            (draft / "round.json").write_text("{}")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [p.name for p in folder.finished_rounds()] == ["round-001"]
    with folder.round_folder(2) as draft:
        assert not list(draft.iterdir())
        (draft / "round.json").write_text("{}")
    assert [p.name for p in folder.finished_rounds()] == ["round-001", "round-002"]


def test_a_finished_round_is_never_overwritten(tmp_path: Path) -> None:
    folder = create_run(tmp_path / "run")
    with folder.round_folder(1) as draft:
        (draft / "round.json").write_text("{}")
    with pytest.raises(StoredFileError, match="not overwritten"), folder.round_folder(1):
        pass
    assert (folder.round_path(1) / "round.json").read_text() == "{}"


def test_a_used_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("data")
    with pytest.raises(UsageError, match="not empty"):
        create_run(tmp_path)
    assert (tmp_path / "precious").read_text() == "data"


def test_open_run_by_id_path_and_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, age in (("old", 100), ("new", 10)):
        folder = create_run(tmp_path / "reports" / name)
        spec = folder.write("spec.toml", b"")
        stamp = 1_700_000_000 - age
        os.utime(spec, (stamp, stamp))
    assert open_run("old").name == "old"
    assert open_run(str(tmp_path / "reports" / "old")).name == "old"
    assert open_run("last").name == "new"
    with pytest.raises(UsageError, match="there is no run"):
        open_run("../../etc")


def test_a_second_process_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from investigator.store import single_process\n"
        "from investigator.errors import HostUnfitError\n"
        "try:\n"
        "    with single_process(Path(sys.argv[1]), 'this machine'): print('got it')\n"
        "except HostUnfitError as error: print(error)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "lock")]
    with single_process(tmp_path / "lock", "this machine"):
        refused = subprocess.run(command, capture_output=True, text=True, check=True)
    allowed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"process {os.getpid()}" in refused.stdout
    assert allowed.stdout == "got it\n"


def test_full_disk_is_one_sentence_with_advice(tmp_path: Path) -> None:
    error = disk_error(OSError(errno.ENOSPC, "No space left on device"), tmp_path / "x")
    assert isinstance(error, HostUnfitError)
    assert "investigate resume" in str(error)
