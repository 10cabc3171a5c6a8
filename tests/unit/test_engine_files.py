"""Scratch directories, and mounts handed to the task's user."""

import os
from pathlib import Path, PurePosixPath

import msgspec
import pytest

from investigator.engine.files import (
    fresh_scratch,
    hand_over,
    make_scratch,
    prepare_mount,
    sweep_scratch,
)
from investigator.engine.interface import Mount
from investigator.engine.owner import Owner, current_owner
from investigator.errors import HostUnfitError

ME = {"uid": os.geteuid(), "gid": os.getegid()}
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def test_scratch_is_empty_private_and_gone_afterwards(tmp_path: Path) -> None:
    with fresh_scratch(tmp_path / "made", **ME, needed_bytes=1) as scratch:
        assert list(scratch.iterdir()) == []
        assert scratch.stat().st_mode & 0o777 == 0o700
        # No character that PATH, make or a shell would take for its own.
        assert not set(scratch.name) & set(" :;,$'\"()[]{}*?\\/")
        (scratch / "deep").mkdir()
        (scratch / "deep/file").write_text("x")
    assert list((tmp_path / "made").iterdir()) == []


def test_scratch_that_does_not_fit_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(HostUnfitError, match=r"MiB left and .* MiB are needed: make room"):
        make_scratch(tmp_path, **ME, needed_bytes=1 << 62)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(HostUnfitError, match="no scratch directory can be made"):
        make_scratch(tmp_path / "file/below", **ME, needed_bytes=1)


def test_only_what_dead_runs_left_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    living = make_scratch(tmp_path, **ME, needed_bytes=1)
    for change in ({"pid": 2**30}, {"start": "1"}):
        dead: Owner = msgspec.structs.replace(current_owner(), **change)
        with monkeypatch.context() as patch:
            patch.setattr("investigator.engine.files.current_owner", lambda dead=dead: dead)
            left = make_scratch(tmp_path, **ME, needed_bytes=1)
            (left / "file").touch()
    (tmp_path / "investigate-stranger").mkdir()
    (tmp_path / "other").mkdir()
    assert sweep_scratch(tmp_path) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [living.name, "investigate-stranger", "other"]
    )
    assert sweep_scratch(tmp_path / "nowhere") == 0


def test_a_missing_mount(tmp_path: Path) -> None:
    with pytest.raises(HostUnfitError, match=r"gone cannot be used .*run again"):
        prepare_mount(Mount(source=tmp_path / "gone", target=PurePosixPath("/x")), **ME)


@as_root
def test_a_closed_mount_says_how_to_open_it(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    mount = Mount(source=tmp_path / "closed", target=PurePosixPath("/x"))
    with pytest.raises(HostUnfitError, match=r"chmod -R a\+rX"):
        prepare_mount(mount, 65532, 65532)
    (tmp_path / "closed").chmod(0o755)
    prepare_mount(mount, 65532, 65532)


@as_root
def test_handing_over_never_follows_a_link(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    (mine / "file").touch()
    (theirs / "deep").mkdir(parents=True)
    (theirs / "deep/file").touch()
    (theirs / "link").symlink_to(mine / "file")
    (theirs / "folder").symlink_to(mine)
    hand_over(theirs, 65532, 65532)
    assert {path.lstat().st_uid for path in (theirs, *theirs.rglob("*"))} == {65532}
    assert {path.stat().st_uid for path in (mine, mine / "file")} == {0}
    prepare_mount(Mount(source=theirs, target=PurePosixPath("/x"), writable=True), 0, 0)
    assert (theirs / "deep/file").stat().st_uid == 0
