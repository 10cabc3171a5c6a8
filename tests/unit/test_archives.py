import errno
import io
import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from investigator.archives import copy_tree, unpack
from investigator.errors import HostUnfitError, UsageError


def member(name: str, *, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info


def archive(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w:bz2", "w:"])
def test_plain_files_are_unpacked_below_the_top_folder(tmp_path: Path, mode: str) -> None:
    path = archive(
        tmp_path / "a.tar",
        (member("package", kind=tarfile.DIRTYPE), b""),
        (member("package/bin/node", mode=0o4777), b"node"),
        (member("package/lib/x.js", mode=0o600), b"x"),
        (member("stray"), b"stray"),
        mode=mode,
    )
    written = unpack(path, tmp_path / "out")
    assert written == (PurePosixPath("bin/node"), PurePosixPath("lib/x.js"))
    assert (tmp_path / "out/bin/node").read_bytes() == b"node"
    assert (tmp_path / "out/bin/node").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "out/lib/x.js").stat().st_mode & 0o7777 == 0o644


@pytest.mark.parametrize(
    "bad",
    [
        member("package/../../evil"),
        member("/etc/evil"),
        member("../evil"),
        member("package/link", kind=tarfile.SYMTYPE, link="/etc/passwd"),
        member("package/link", kind=tarfile.LNKTYPE, link="../../etc/passwd"),
        member("package/device", kind=tarfile.CHRTYPE),
        member("package/pipe", kind=tarfile.FIFOTYPE),
    ],
    ids=lambda info: f"{info.name}-{info.type.decode()}",
)
def test_a_member_that_leads_out_is_refused(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    path = archive(tmp_path / "a.tgz", (bad, b""))
    with pytest.raises(UsageError, match=r"a\.tgz"):
        unpack(path, tmp_path / "deep" / "out")
    assert not list(tmp_path.rglob("evil"))


def test_links_that_nobody_wants_do_no_harm(tmp_path: Path) -> None:
    path = archive(
        tmp_path / "a.tgz",
        (member("node/bin/npm", kind=tarfile.SYMTYPE, link="../lib/npm"), b""),
        (member("node/bin/node"), b"node"),
    )
    written = unpack(
        path,
        tmp_path / "out",
        place=lambda p: PurePosixPath("bin/node") if p.name == "node" else None,
    )
    assert written == (PurePosixPath("bin/node"),)


@pytest.mark.parametrize("mode", ["w:gz", "w:xz"])
def test_a_torn_archive_is_one_sentence(tmp_path: Path, mode: str) -> None:
    path = archive(tmp_path / "a.tgz", (member("p/x"), bytes(range(256)) * 4096), mode=mode)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UsageError, match="not a complete tar archive"):
        unpack(path, tmp_path / "out")


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", b"\x1f\x8b", b"\xfd7zXZ\x00rest"])
def test_what_is_no_archive_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.tgz"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="not a complete tar archive"):
        unpack(path, tmp_path / "out")


def test_number_and_size_are_bounded(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tgz", *[(member(f"p/{i}"), b"0123456789") for i in range(10)])
    with pytest.raises(UsageError, match="more than 5 files"):
        unpack(path, tmp_path / "out", max_files=5)
    with pytest.raises(UsageError, match="more than 50 bytes"):
        unpack(path, tmp_path / "out", max_bytes=50)


def test_a_file_where_a_folder_is_cannot_be_written_through(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tgz", (member("p/a"), b"file"), (member("p/a/b"), b"below"))
    with pytest.raises(UsageError, match="folder"):
        unpack(path, tmp_path / "out")


def test_a_tree_that_cannot_be_copied_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    os.mkfifo(tmp_path / "in" / "pipe")
    with pytest.raises(UsageError, match="cannot be copied"):
        copy_tree(tmp_path / "in", tmp_path / "out")


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")]),
    ],
)
def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    def full(*_arguments: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(HostUnfitError, match="no space is left"):
        copy_tree(tmp_path, tmp_path / "out")
