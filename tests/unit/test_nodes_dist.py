import base64
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from investigator import cache
from investigator.errors import HostUnfitError, UsageError
from investigator.nodes import dist, layout
from investigator.nodes.describe import NodeDescription
from investigator.nodes.interface import ResolvedNode
from investigator.nodes.parse import parse_versions
from investigator.nodes.sources import fetch_all, resolve_all
from tests.fakes.dist_site import DistSite, serve

PLATFORM = "linux-x64"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DistSite]:
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    dist._releases.cache_clear()
    dist._sums.cache_clear()
    with serve(tmp_path / "site") as serving:
        yield serving


def resolve(site: DistSite, selector: str) -> ResolvedNode:
    return resolve_all(parse_versions(f"dist:{site.url}@{selector}"), PLATFORM)[0]


def fetch(resolved: ResolvedNode) -> Path:
    description = NodeDescription(
        versions={"node": resolved.version, "v8": "13.6", "modules": "137"}, config_sha256=""
    )
    return fetch_all([resolved], lambda _directory: description, PLATFORM)[0].directory


@pytest.mark.parametrize("suffix", [".tar.gz", ".tar.xz"])
def test_a_release_is_fetched_once(site: DistSite, suffix: str) -> None:
    site.publish("24.11.1", suffix=suffix)
    resolved = resolve(site, "24")
    assert resolved.version == "24.11.1"
    assert resolved.integrity is not None
    assert resolved.integrity.startswith("sha256-")
    directory = fetch(resolved)
    assert (directory / "bin/node").stat().st_mode & 0o111
    assert layout.read_headers(directory, "x").abi == "137"
    assert not (directory / "bin/npm").exists()
    count = len(site.requested)
    assert fetch(resolved) == directory
    assert len(site.requested) == count


def test_the_smaller_archive_is_taken(site: DistSite) -> None:
    site.publish("24.11.1", suffix=".tar.gz")
    site.publish("24.11.1", suffix=".tar.xz")
    fetch(resolve(site, "24.11.1"))
    assert [path for path in site.requested if path.endswith("z")] == [
        "/v24.11.1/node-v24.11.1-linux-x64.tar.xz"
    ]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("24", "24.11.1"),
        ("latest", "25.2.0"),
        ("lts", "24.11.1"),
        ("^24.1", "24.11.1"),
        ("nightly", "26.0.0-nightly20251231ff"),
        ("25-nightly", "25.0.0-nightly20250101aa"),
        ("rc", "25.3.0-rc.1"),
        ("v8-canary", "26.0.0-v8-canary20260101bb"),
        ("26.0.0-nightly20251230ee", "26.0.0-nightly20251230ee"),
    ],
)
def test_selectors_and_channels(site: DistSite, selector: str, expected: str) -> None:
    for version in (
        "22.21.1",
        "24.11.1",
        "25.0.0-nightly20250101aa",
        "25.2.0",
        "25.3.0-rc.1",
        "26.0.0-nightly20251230ee",
        "26.0.0-nightly20251231ff",
        "26.0.0-v8-canary20260101bb",
    ):
        site.publish(version, lts="Krypton" if version == "24.11.1" else False)
    assert resolve(site, selector).version == expected


def test_a_tampered_archive_is_refused_and_leaves_nothing(site: DistSite) -> None:
    archive = site.publish("24.11.1")
    resolved = resolve(site, "24")
    archive.write_bytes(archive.read_bytes()[:-1] + b"x")
    with pytest.raises(UsageError, match="does not have the checksum"):
        fetch(resolved)
    assert cache.entries(layout.CACHE_KIND) == ()


def test_a_promise_that_changed_since_is_refused(site: DistSite) -> None:
    archive = site.publish("24.11.1")
    resolved = resolve(site, "24")
    archive.unlink()
    (archive.parent / "SHASUMS256.txt").unlink()
    site.publish("24.11.1", suffix=".tar.xz")
    dist._sums.cache_clear()
    with pytest.raises(UsageError, match="does not have the checksum"):
        fetch(resolved)


def test_an_archive_that_leads_out_is_refused(site: DistSite, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("node/../../../evil"))
    site.publish("24.11.1", content=buffer.getvalue())
    with pytest.raises(UsageError, match="leads out"):
        fetch(resolve(site, "24"))
    assert not list(tmp_path.rglob("evil"))


def test_an_archive_without_headers_is_refused(site: DistSite) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        info = tarfile.TarInfo("node/bin/node")
        info.size = 1
        tar.addfile(info, io.BytesIO(b"x"))
    site.publish("24.11.1", content=buffer.getvalue())
    with pytest.raises(UsageError, match="no headers"):
        fetch(resolve(site, "24"))


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("ftp://127.0.0.1/index.json", "another scheme"),
        ("file:///etc/passwd", "another scheme"),
        ("/index.json", "redirects more than"),
    ],
)
def test_redirects_that_are_not_followed(site: DistSite, target: str, words: str) -> None:
    site.redirects["/index.json"] = target
    with pytest.raises(UsageError, match=words):
        resolve(site, "24")


def test_a_redirect_within_the_scheme_is_followed(site: DistSite) -> None:
    site.publish("24.11.1")
    (site.root / "index.json").rename(site.root / "real.json")
    site.redirects["/index.json"] = "/real.json"
    assert resolve(site, "24").version == "24.11.1"


def test_https_is_never_left() -> None:
    with pytest.raises(UsageError, match="another scheme"):
        dist._redirected("https://x.test/a", "http://x.test/a", "x")
    assert dist._redirected("http://x.test/a", "https://x.test/a", "x") == "https://x.test/a"


@pytest.mark.parametrize(
    ("index", "selector", "words"),
    [
        (None, "24", "does not exist"),
        (b"<html>", "24", "not a list of Node releases"),
        (b"{}", "24", "not a list of Node releases"),
        (b"\xff\xfe", "24", "not a list of Node releases"),
        (b"[]", "24", "no release at all"),
        (b'[{"version": "v24.1.0"}, {"version": "../../x"}]', "24.2.0", "nearest is 24.1.0"),
        (b'[{"version": "v24.1.0"}]', "24.1.0", "SHASUMS256.txt does not exist"),
        (b'[{"version": "v24.01.1"}, {"version": "v24.1.1-a..b"}]', "24", "no release at all"),
        (b'[{"version": "v26.0.0-rc.1"}]', "latest", "pre-releases only: name one"),
        (b"[" * 100_000, "24", "not a list of Node releases"),
    ],
)
def test_an_index_that_cannot_be_used(site: DistSite, index: bytes | None, selector: str, words: str) -> None:
    if index is not None:
        (site.root / "index.json").write_bytes(index)
    with pytest.raises(UsageError, match=words):
        resolve(site, selector)


def test_a_release_without_a_build_for_this_platform(site: DistSite) -> None:
    site.publish("24.11.1", platform="linux-s390x")
    with pytest.raises(UsageError, match=r"no build of Node 24\.11\.1 for"):
        resolve(site, "24")


def test_too_much_is_not_read(site: DistSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dist, "_INDEX_BYTES", 10)
    site.publish("24.11.1")
    with pytest.raises(UsageError, match="larger than 10 bytes"):
        resolve(site, "24")


def test_a_download_that_breaks_off_leaves_nothing(site: DistSite) -> None:
    archive = site.publish("24.11.1")
    resolved = resolve(site, "24")
    site.cut[f"/v24.11.1/{archive.name}"] = 100
    with pytest.raises(HostUnfitError, match=r"broke off .*; try again"):
        fetch(resolved)
    assert cache.entries(layout.CACHE_KIND) == ()
    site.cut.clear()
    assert (fetch(resolved) / "bin/node").is_file()


def test_name_and_password_come_from_netrc(
    site: DistSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.publish("24.11.1")
    site.login = "Basic " + base64.b64encode(b"me:secret").decode()
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with pytest.raises(UsageError, match=r"status 401.*~/\.netrc"):
        resolve(site, "24")
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    assert resolve(site, "24").version == "24.11.1"


def test_a_site_that_is_gone_is_one_sentence(site: DistSite) -> None:
    site.url = "http://127.0.0.1:9"
    with pytest.raises(HostUnfitError, match=r"does not answer \(no connection\)"):
        resolve(site, "24")
