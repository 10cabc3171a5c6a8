"""Real releases from npm, a real image, and what they say of themselves."""

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient

from investigator import cache, npm_client
from investigator.addons import parse_addon, refusal, usable_packages
from investigator.errors import UsageError
from investigator.nodes import layout
from investigator.nodes.describe import describe_node
from investigator.nodes.image import ImageNodes
from investigator.nodes.interface import NodeBuild
from investigator.nodes.parse import parse_versions
from investigator.nodes.sources import fetch_all, platform_for, resolve_all
from tests.fakes.fake_npm import node_release
from tests.fakes.plain_engine import PlainEngine

ADDON = "better-sqlite3-multiple-ciphers"


def builds(text: str) -> tuple[NodeBuild, ...]:
    platform = platform_for("local")
    resolved = resolve_all(parse_versions(text), platform)
    return fetch_all(resolved, lambda directory: describe_node(PlainEngine(), directory), platform)


@pytest.mark.node
def test_releases_say_what_they_are() -> None:
    facts = [
        (build.version, build.versions["v8"][:4], build.versions["modules"], build.versions["napi"])
        for build in builds("20.19.5,22.21.1,24.11.1")
    ]
    assert facts == [
        ("20.19.5", "11.3", "115", "9"),
        ("22.21.1", "12.4", "127", "10"),
        ("24.11.1", "13.6", "137", "10"),
    ]


@pytest.mark.node
def test_headers_agree_with_the_binary() -> None:
    for build in builds("22.21.1,24.11.1"):
        headers = layout.read_headers(build.directory, build.version)
        assert headers.version == build.versions["node"]
        assert build.versions["v8"].startswith(f"{headers.v8}.")
        assert (headers.abi, headers.napi) == (build.versions["modules"], build.versions["napi"])


@pytest.mark.node
def test_majors_and_aliases_resolve() -> None:
    platform = platform_for("docker")
    versions = [node.version for node in resolve_all(parse_versions("20,22,24,^23.3,lts"), platform)]
    assert [version.split(".")[0] for version in versions[:4]] == ["20", "22", "24", "23"]
    assert int(versions[4].split(".")[0]) % 2 == 0


@pytest.mark.node
def test_an_unknown_release_names_both_neighbours() -> None:
    with pytest.raises(UsageError, match=r"no Node 23\.99\.0; the nearest are 23\.11\.1 and 24\.0\.0"):
        resolve_all(parse_versions("23.99.0"), platform_for("docker"))


@pytest.mark.node
def test_the_default_addon_for_20_22_24() -> None:
    nodes = builds("20.19.5,22.21.1,24.11.1")
    package = next(usable_packages(parse_addon(ADDON), nodes))
    assert package.version == "12.11.1"
    assert [refusal(package, node) for node in nodes] == [None, None, None]


@pytest.mark.node
def test_the_node_api_release_is_refused_on_20_with_the_reason() -> None:
    old, new = builds("20.19.5,24.11.1")
    package = next(usable_packages(parse_addon(f"{ADDON}@13.0.3"), (old, new)))
    assert "needs Node-API 10" in (refusal(package, old) or "")
    assert refusal(package, new) is None


@pytest.mark.node
def test_the_packaged_npm_works_without_a_node_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    npm_client.client.cache_clear()
    try:
        assert len(npm_client.client()) == 2
        tarball, integrity = npm_client.pack("bindings", "1.5.0", tmp_path)
    finally:
        npm_client.client.cache_clear()
    assert tarball.is_file()
    assert integrity.startswith("sha512-")


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    docker = pytest.importorskip("docker")
    try:
        client = docker.from_env()
        client.ping()
    except docker.errors.DockerException as error:
        if os.environ.get("INVESTIGATE_REQUIRE_DOCKER") == "1":
            pytest.fail(f"no Docker daemon answers: {error}")
        pytest.skip("no Docker daemon answers")
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    yield client
    client.close()


def import_image(client: DockerClient, name: str, files: dict[str, bytes], links: dict[str, str]) -> str:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(content), 0o755
            tar.addfile(info, io.BytesIO(content))
        for path, target in links.items():
            info = tarfile.TarInfo(path)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    client.api.import_image_from_data(buffer.getvalue(), repository=name, tag="1")
    return f"{name}:1"


@pytest.mark.container
@pytest.mark.parametrize("layout_name", ["official", "distribution", "linked"])
def test_node_comes_out_of_an_image_that_is_never_started(daemon: DockerClient, layout_name: str) -> None:
    prefix = {"official": "usr/local", "distribution": "usr", "linked": "usr"}[layout_name]
    files = {f"{prefix}/{name}": data for name, data in node_release("24.12.0", top="").items()}
    links = {}
    if layout_name == "linked":
        files["opt/node"] = files.pop("usr/bin/node")
        links["usr/bin/node"] = "../../opt/node"
    name = import_image(daemon, f"investigate-test-{layout_name}", files, links)
    before = {container.id for container in daemon.containers.list(all=True)}
    try:
        platform = platform_for("docker")
        resolved = resolve_all(parse_versions(f"i=image:{name}"), platform)
        build = fetch_all(resolved, lambda directory: describe_node(PlainEngine(), directory), platform)[0]
        assert (build.label, build.version, build.source) == ("i", "24.12.0", "image")
        assert (build.directory / "bin/node").read_bytes() == node_release("24.12.0")["package/bin/node"]
        assert (build.directory / "include/node/uv/unix.h").is_file()
        assert resolved[0].integrity == daemon.images.get(name).id
    finally:
        daemon.images.remove(name, force=True)
    left = {container.id for container in daemon.containers.list(all=True)} - before
    assert not [
        c for c in left if "image" in daemon.containers.get(str(c)).labels.get("investigate.purpose", "")
    ]
    # The image is gone, the build stays.
    source = ImageNodes(platform=platform_for("docker"))
    assert source.fetch(resolved[0]) == build.directory
    assert cache.is_sound(build.directory)


@pytest.mark.container
@pytest.mark.parametrize("says", ["its release", "nothing"])
def test_an_image_without_headers_is_known_by_its_binary(daemon: DockerClient, says: str) -> None:
    told = b"# https://nodejs.org/download/release/v24.12.0/node-v24.12.0.tar.gz\n"
    files = {"usr/local/bin/node": b"#!/bin/sh\n" + (told if says == "its release" else b"")}
    name = import_image(daemon, "investigate-test-slim", files, {})
    request, platform = parse_versions(f"image:{name}"), platform_for("docker")
    try:
        if says == "nothing":
            with pytest.raises(UsageError, match=r"has no headers .* does not say which release it is"):
                resolve_all(request, platform)
            return
        [resolved] = resolve_all(request, platform)
        directory = ImageNodes(platform=platform).fetch(resolved)
    finally:
        daemon.images.remove(name, force=True)
    assert resolved.version == "24.12.0"
    assert not layout.has_headers(directory)


@pytest.mark.container
def test_an_image_that_is_not_there_is_one_sentence(daemon: DockerClient) -> None:
    with pytest.raises(UsageError, match="not on this machine and cannot be pulled"):
        resolve_all(parse_versions("image:investigate-test-nowhere:1"), platform_for("docker"))
