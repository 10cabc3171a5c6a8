"""Every source of Node builds with a real release, by the command line, from the look-up to the figures."""

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient

from investigator import cache
from investigator.nodes.parse import parse_versions
from investigator.nodes.sources import platform_for, resolve_all, source_of
from investigator.observer import NullObserver
from tests.fakes.dist_site import DistSite, serve
from tests.integration import tool
from tests.integration.tool import investigate

pytestmark = [pytest.mark.container, pytest.mark.node]

VERSION = "24.11.1"
STEM = f"node-v{VERSION}-{platform_for('docker')}"
ADDON = f"{tool.ADDON}@12.11.1"
SHORT = ("--quick", "--rounds", "1", "--budget", "0.1")
SHARED = ("addons", "builds", "host-programs", "mailbox", "npm-listings", "objects")
"""Cache entries that do not depend on where Node came from: a build costs more than all tests here."""


@pytest.fixture(scope="module")
def release(docker_engine: object) -> Path:
    """The released build as npm gives it."""
    platform = platform_for("docker")
    resolved = resolve_all(parse_versions(VERSION), platform)[0]
    return source_of("npm", platform, NullObserver()).fetch(resolved)


@pytest.fixture(scope="module")
def own_cache(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with that release and no other Node; compiled things are shared with the user's."""
    root = tmp_path_factory.mktemp("cache")
    shutil.copytree(release, root / "nodes" / release.name)
    for kind in SHARED:
        (cache.cache_root() / kind).mkdir(parents=True, exist_ok=True)
        (root / kind).symlink_to(cache.cache_root() / kind)
    return root


@pytest.fixture(scope="module")
def archive(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release in the layout of the download site: what is in npm's package, and npm's links."""
    path = tmp_path_factory.mktemp("archive") / f"{STEM}.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        for name in ("LICENSE", "bin", "include"):
            tar.add(release / name, arcname=f"{STEM}/{name}")
        link = tarfile.TarInfo(f"{STEM}/bin/npm")
        link.type, link.linkname = tarfile.SYMTYPE, "../lib/node_modules/npm/bin/npm-cli.js"
        tar.addfile(link)
    return path


@pytest.fixture(scope="module")
def site(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DistSite]:
    with serve(tmp_path_factory.mktemp("site")) as serving:
        serving.publish(VERSION, lts="Krypton", content=archive.read_bytes())
        yield serving


@pytest.fixture(scope="module")
def image(release: Path, docker_client: DockerClient) -> Iterator[str]:
    """An image with node and its headers where the official ones have them."""
    with make_image(docker_client, "real", {"bin/node": release, "include/node": release}) as name:
        yield name


@pytest.fixture(scope="module")
def checkout(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make` leaves in a checkout of Node, as far as an addon needs it."""
    root, headers = tmp_path_factory.mktemp("checkout"), release / "include/node"
    (root / "out/Release").mkdir(parents=True)
    shutil.copy(release / "bin/node", root / "out/Release/node")
    for found in sorted(headers.iterdir()):
        target = root / _place_in_checkout(found.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(found, target) if found.is_dir() else shutil.copy(found, target)
    openssl = root / "deps/openssl"
    (openssl / "config").mkdir()
    (openssl / "openssl/include/openssl/archs").rename(openssl / "config/archs")
    return root


def _place_in_checkout(name: str) -> str:
    if name.endswith(".gypi"):
        return name
    if name.startswith(("node", "js_native_api")):
        return f"src/{name}"
    folders = {"uv": "uv/include", "openssl": "openssl/openssl/include", "zlib": "zlib", "zconf": "zlib"}
    return f"deps/{folders.get(name.removesuffix('.h'), 'v8/include')}/{name}"


class make_image:  # noqa: N801 - used like a function
    """Import an image with parts of a release below /usr/local, for as long as a block takes."""

    def __init__(self, client: DockerClient, name: str, parts: dict[str, Path]) -> None:
        self.client, self.name, self.parts = client, f"investigate-test-{name}", parts

    def __enter__(self) -> str:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("etc/hostname"))
            for part, release in self.parts.items():
                tar.add(release / part, arcname=f"usr/local/{part}")
        self.client.api.import_image_from_data(buffer.getvalue(), repository=self.name, tag="1")
        return f"{self.name}:1"

    def __exit__(self, *_: object) -> None:
        self.client.images.remove(f"{self.name}:1", force=True)


def by_source(cwd: Path, own_cache: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the tool with a cache of its own, past any proxy."""
    return investigate(*arguments, cwd=cwd, code=code, INVESTIGATE_CACHE=str(own_cache), NO_PROXY="127.0.0.1")


def measured(run: Path) -> dict[str, dict[str, Any]]:
    """Environments of a run by identifier, all of which must have figures."""
    summary = json.loads((run / "summary.json").read_text())
    assert summary["failures"] == []
    baseline = {row["baseline"] for row in summary["comparisons"]}
    timed = {row["candidate"] for row in summary["comparisons"] if row["candidate_ns_per_op"] > 0}
    environments = {environment["id"]: environment for environment in summary["environments"]}
    assert baseline | timed == set(environments)
    return environments


def test_one_release_from_every_source_is_one_build(
    tmp_path: Path, own_cache: Path, release: Path, site: DistSite, image: str, archive: Path
) -> None:
    (tmp_path / "installed").symlink_to(release)
    shutil.copy(archive, tmp_path / "own.tar.gz")
    versions = f"{VERSION},mirror=dist:{site.url}@24,i=image:{image},fix=path:./installed,tar=path:own.tar.gz"
    by_source(
        tmp_path, own_cache, "js", "--versions", versions, "--ops", "string_concat", *SHORT, "--out", "run"
    )
    environments = measured(tmp_path / "run")
    assert list(environments) == [
        f"node{VERSION}", *(f"{label}:node{VERSION}" for label in ("mirror", "i", "fix", "tar"))
    ]  # fmt: skip
    digests = {environment["node_sha256"] for environment in environments.values()}
    assert digests == {hashlib.sha256((release / "bin/node").read_bytes()).hexdigest()}
    for name in ("spec.toml", "plan.json", "report.md", "summary.json"):
        assert str(tmp_path) not in (tmp_path / "run" / name).read_text(), name


def test_an_addon_is_built_and_measured_on_builds_of_every_source(
    tmp_path: Path, own_cache: Path, site: DistSite, image: str, checkout: Path
) -> None:
    (tmp_path / "node").symlink_to(checkout)
    versions = f"{VERSION},mirror=dist:{site.url},i=image:{image},fix=path:node/out"
    by_source(
        tmp_path, own_cache, "sqlite", "--versions", versions, "--addon", ADDON, "--ops", "select_point",
        *SHORT, "--out", "run",
    )  # fmt: skip
    environments = measured(tmp_path / "run")
    assert [name.partition(":")[0] for name in environments][1:] == ["mirror", "i", "fix"]
    assert len({environment["binding_sha256"] for environment in environments.values()}) == 1
    assert None not in {environment["sqlite3_object_sha256"] for environment in environments.values()}


@pytest.mark.parametrize(
    ("trouble", "code", "words"),
    [
        ("tampered", 2, "does not have the checksum that SHASUMS256.txt promises"),
        ("missing", 2, f"{STEM}.tar.gz does not exist"),
        ("truncated", 6, "broke off"),
        ("loop", 2, "redirects more than 5 times"),
        ("huge", 2, "index.json is larger than"),
        ("mislabelled", 2, f"should be Node 25.0.0-nightly20250101aa, but says that it is {VERSION}"),
    ],
)
def test_a_mirror_that_is_wrong_is_one_sentence(
    tmp_path: Path, archive: Path, trouble: str, code: int, words: str
) -> None:
    version = "25.0.0-nightly20250101aa" if trouble == "mislabelled" else VERSION
    with serve(tmp_path / "site") as site:
        served = site.publish(version, content=archive.read_bytes())
        path = f"/v{version}/{served.name}"
        if trouble == "tampered":
            with served.open("r+b") as file:
                file.seek(1000)
                file.write(b"tampered")
        elif trouble == "missing":
            served.unlink()
        elif trouble == "truncated":
            site.cut[path] = served.stat().st_size // 2
        elif trouble == "loop":
            site.redirects["/index.json"] = "/index.json"
        elif trouble == "huge":
            with (site.root / "index.json").open("r+b") as file:
                file.truncate(1 << 30)
        # The right archive may be in the cache by its digest: what is refused here must not profit from that.
        fresh = tmp_path / "cache"
        done = by_source(
            tmp_path, fresh, "js", "--versions", f"m=dist:{site.url}@{version}", *SHORT, "--out", "run",
            code=code,
        )  # fmt: skip
    assert words in done.stderr
    assert [line.partition(":")[0] for line in done.stderr.splitlines()][-1] == "error"
    assert trouble == "mislabelled" or not list(fresh.glob("nodes/[!.]*"))
    assert not (tmp_path / "run/summary.json").exists()


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (("include/node/node.h",), "has no node in /usr/local/bin or /usr/bin"),
        ((), "cannot be pulled"),
    ],
)
def test_an_image_that_cannot_be_used_is_one_sentence(
    tmp_path: Path,
    own_cache: Path,
    release: Path,
    docker_client: DockerClient,
    parts: tuple[str, ...],
    words: str,
) -> None:
    versions = f"{VERSION},i=image:investigate-test-partial:1"
    arguments = ("js", "--versions", versions, *SHORT, "--out", "run")
    if parts:
        with make_image(docker_client, "partial", dict.fromkeys(parts, release)):
            done = by_source(tmp_path, own_cache, *arguments, code=2)
    else:
        done = by_source(tmp_path, own_cache, *arguments, code=2)
    assert words in done.stderr
    assert not (tmp_path / "run").exists()


def test_an_image_without_headers_runs_where_nothing_is_compiled(
    tmp_path: Path, own_cache: Path, release: Path, docker_client: DockerClient
) -> None:
    with make_image(docker_client, "headless", {"bin/node": release}):
        versions = f"{VERSION},i=image:investigate-test-headless:1"
        by_source(tmp_path, own_cache, "js", "--versions", versions, *SHORT, "--out", "run")
    assert len(measured(tmp_path / "run")) == 2


def test_a_build_for_another_c_library_is_told_from_a_wrong_one(
    tmp_path: Path, own_cache: Path, release: Path
) -> None:
    # What an alpine image has: the same program, asking for a loader that is not there.
    shutil.copytree(release, tmp_path / "musl")
    binary = (tmp_path / "musl/bin/node").read_bytes()
    loader = b"/lib64/ld-linux-x86-64.so.2\0"
    if loader not in binary:
        pytest.skip("another loader on this processor")
    (tmp_path / "musl/bin/node").write_bytes(binary.replace(loader, b"/lib/ld-musl-x86_64.so.1\0\0\0\0"))
    done = by_source(tmp_path, own_cache, "js", "--versions", "m=path:musl", *SHORT, "--out", "run", code=2)
    assert "m=path:musl (Node 24.11.1) cannot be used" in done.stderr
    assert "another processor or C library, musl for instance?" in done.stderr
