import re
import shutil
import subprocess
from pathlib import Path

import pytest

from investigator import addons, npm_client
from investigator.addons import (
    AddonPackage,
    AddonRequest,
    addon_compatibility,
    engines_accept,
    named_release,
    parse_addon,
    parse_addons,
    refusal,
    select_release,
    usable_packages,
)
from investigator.errors import EngineMissingError, HostUnfitError, UsageError
from investigator.nodes.interface import NodeBuild
from investigator.observer import NullObserver
from tests.fakes.fake_npm import FakeNpm, install_fake_npm, tarball

NAME = "better-sqlite3-multiple-ciphers"
TO_26 = "20.x || 22.x || 23.x || 24.x || 25.x || 26.x"


class Notes(NullObserver):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNpm:
    fake = install_fake_npm(tmp_path, monkeypatch)
    installers = {"bindings": "^1.5.0", "prebuild-install": "^7.1.1"}
    fake.publish("bindings", "1.5.0")
    fake.publish("node-addon-api", "8.5.0")
    fake.publish_addon(NAME, "11.10.0", dependencies=installers)
    fake.publish_addon(NAME, "12.4.1", engines="20.x || 22.x || 23.x || 24.x", dependencies=installers)
    fake.publish_addon(NAME, "12.11.1", engines=TO_26, dependencies=installers)
    fake.publish_addon(NAME, "13.0.3", engines=">=22", napi=10, dependencies={"node-addon-api": "^8.0.0"})
    fake.publish_addon(NAME, "13.0.4-beta.0", engines=">=22", napi=10)
    return fake


def node(version: str, napi: str = "10") -> NodeBuild:
    return NodeBuild(
        version=version,
        source="npm",
        directory=Path("/"),
        node_sha256="",
        versions={"napi": napi},
        config_sha256="",
    )


def first(text: str, *nodes: NodeBuild, patch: str | None = None) -> AddonPackage:
    return next(usable_packages(parse_addon(text, patch), nodes))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NAME, AddonRequest(name=NAME)),
        (f"{NAME}@latest", AddonRequest(name=NAME)),
        (f"{NAME}@12.11.1", AddonRequest(name=NAME, selector="12.11.1")),
        (f"{NAME}@v12.11.1", AddonRequest(name=NAME, selector="12.11.1")),
        (f"{NAME}@^12", AddonRequest(name=NAME, selector="^12")),
        (f"{NAME}@>= 11 <13", AddonRequest(name=NAME, selector=">=11 <13")),
        ("@me/addon@1.x", AddonRequest(name="@me/addon", selector="1.x")),
        ("node:sqlite", AddonRequest(name="node:sqlite")),
        ("path:../mine", AddonRequest(name="path:", selector="../mine")),
    ],
)
def test_the_grammar(text: str, expected: AddonRequest) -> None:
    assert parse_addon(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-x",
        "--registry=x",
        "../x",
        "x@",
        "x@file:..",
        "x@git+ssh://y",
        "x@@",
        "@",
        "@/",
        "path:",
        "X",
        "x y",
    ],
)
def test_what_cannot_be_read_is_one_sentence(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_addon(text)
    assert str(caught.value).isprintable()


def test_node_sqlite_takes_no_patch() -> None:
    with pytest.raises(UsageError, match="node:sqlite"):
        parse_addon("node:sqlite", "x.patch")


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([f"{NAME}@12.11.1", f"{NAME}@13.0.3"], [(None, NAME, "12.11.1"), (None, NAME, "13.0.3")]),
        (
            [f"{NAME}@12.11.1", "13.0.3", "v11.10.0"],
            [(None, NAME, v) for v in ("12.11.1", "13.0.3", "11.10.0")],
        ),
        ([f"a={NAME}@12.11.1", "b=12.11.1"], [("a", NAME, "12.11.1"), ("b", NAME, "12.11.1")]),
        ([f"{NAME}@11.10.0", "^12", "latest "], [(None, NAME, s) for s in ("11.10.0", "^12", None)]),
        ([f"{NAME}@>=11 <12", "=12.4.1"], [(None, NAME, ">=11 <12"), (None, NAME, "=12.4.1")]),
        (["@me/addon@1.0.0", "2"], [(None, "@me/addon", "1.0.0"), (None, "@me/addon", "2")]),
        (["7zip", "node:sqlite"], [(None, "7zip", None), (None, "node:sqlite", None)]),
        (["fix=path:./a=b", "path:c"], [("fix", "path:", "./a=b"), (None, "path:", "c")]),
    ],
)
def test_the_grammar_of_compared_addons(
    items: list[str], expected: list[tuple[str | None, str, str | None]]
) -> None:
    found = parse_addons(items)
    assert [(request.label, request.name, request.selector) for request in found] == expected


@pytest.mark.parametrize(
    ("items", "words"),
    [
        (["12.11.1", NAME], "no addon in front of it; write NAME@12.11.1"),
        (["path:a", "latest"], "no addon in front of it"),
        (["node:sqlite", "^24"], "no addon in front of it"),
        ([f"{NAME}@12.11.1", "12.11.1"], f"{NAME}@12.11.1 stands twice"),
        ([NAME, "latest"], f"{NAME} stands twice"),
        ([f"a={NAME}@12.11.1", "a=13.0.3"], "the label a stands twice"),
        (["a b=x"], "may hold 1 to 32 letters"),
        (["="], "not the name of an npm package"),
        ([f"a{'b' * 40}=x"], "may hold 1 to 32 letters"),
        (["a=", "b="], "not the name of an npm package"),
        (["x"] * 33, "lists 33 items"),
        ([f"{NAME}@12.11.1", "13.0.3;rm"], "not the name of an npm package"),
    ],
)
def test_compared_addons_that_cannot_be_read_are_one_sentence(items: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)) as caught:
        parse_addons(items)
    assert str(caught.value).isprintable()


def test_a_patch_is_for_the_compared_packages() -> None:
    assert [r.patch for r in parse_addons([NAME, "node:sqlite"], "x.diff")] == ["x.diff", None]
    with pytest.raises(UsageError, match="patch Node itself"):
        parse_addons(["a=node:sqlite", "b=node:sqlite"], "x.diff")


@pytest.mark.parametrize(
    ("item", "expected"),
    [(f"{NAME}@12.4.1", "12.4.1"), (f"{NAME}@^12", "12.11.1"), (NAME, "13.0.3"), (f"{NAME}@<12", "11.10.0")],
)
def test_a_request_is_bound_to_one_release(registry: FakeNpm, item: str, expected: str) -> None:
    assert named_release(parse_addon(item), ["26.12.1"]) == expected


def test_an_exact_release_is_looked_up_where_the_cache_has_none(registry: FakeNpm) -> None:
    with pytest.raises(UsageError, match=r"npm has no .* 12.5.0; the nearest are 12.4.1 and 12.11.1"):
        named_release(parse_addon(f"{NAME}@12.5.0"), ["24.11.1"])
    first(f"{NAME}@12.11.1", node("24.11.1"))
    registry.go_down()
    addons._releases.cache_clear()
    npm_client._listing.cache_clear()
    assert named_release(parse_addon(f"{NAME}@12.11.1"), ["24.11.1"]) == "12.11.1"
    with pytest.raises(HostUnfitError):
        named_release(parse_addon(f"{NAME}@11.10.0"), ["24.11.1"])


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (["20.20.2", "22.23.5", "24.22.3"], ["12.11.1", "12.4.1", "11.10.0"]),
        (["22.21.1", "24.11.1", "26.12.1"], ["13.0.3", "12.11.1", "11.10.0"]),
        (["24.11.2-pre"], ["13.0.3", "12.11.1", "12.4.1", "11.10.0"]),
        (["18.0.0"], ["11.10.0"]),
    ],
)
def test_the_releases_in_question_come_newest_first(
    registry: FakeNpm, versions: list[str], expected: list[str]
) -> None:
    assert [release.version for release in select_release(parse_addon(NAME), versions)] == expected


def test_the_newest_that_all_nodes_can_load(registry: FakeNpm) -> None:
    package = first(NAME, node("20.20.2", "9"), node("22.23.5"), node("24.22.3"))
    assert (package.version, package.engines, package.napi, package.encrypted) == (
        "12.11.1",
        TO_26,
        None,
        True,
    )
    assert package.integrity.startswith("sha512-")
    assert package.directory is not None
    assert (package.directory / "lib/index.js").is_file()
    assert package.short == "bsm12.11.1"


def test_a_node_api_that_is_not_offered_is_known_without_trying(registry: FakeNpm) -> None:
    watcher = Notes()
    nodes = (node("22.12.0", "9"), node("24.11.1"))
    package = next(usable_packages(parse_addon(NAME), nodes, watcher))
    assert package.version == "12.11.1"
    assert "13.0.3 needs Node-API 10, Node 22.12.0 offers 9" in watcher.notes[0]


def test_where_all_are_passed_over_the_one_that_fails_least_is_left(registry: FakeNpm) -> None:
    registry.publish_addon(NAME, "13.1.0", engines=">=22", napi=11)
    nodes = (node("22.12.0", "9"), node("24.11.1", "10"))
    packages = list(usable_packages(parse_addon(f"{NAME}@^13"), nodes, Notes()))
    assert [package.version for package in packages] == ["13.0.3"]
    assert [refusal(packages[0], each) is None for each in nodes] == [False, True]


def test_an_exact_version_is_taken_and_the_refusal_is_per_node(registry: FakeNpm) -> None:
    old, new = node("20.20.2", "9"), node("24.11.1")
    package = first(f"{NAME}@13.0.3", old, new)
    assert package.version == "13.0.3"
    assert package.napi == 10
    reason = refusal(package, old)
    assert reason is not None
    assert "needs Node-API 10, Node 20.20.2 offers 9" in reason
    assert refusal(package, new) is None
    assert first(f"{NAME}@13.0.4-beta.0", new).version == "13.0.4-beta.0"


def test_node_sqlite_is_refused_where_it_does_not_exist() -> None:
    package = first("node:sqlite", node("20.20.2"))
    assert package.directory is None
    assert "came with 22.5.0" in (refusal(package, node("20.20.2")) or "")
    assert refusal(package, node("24.0.0-nightly2025")) is None


@pytest.mark.parametrize(
    ("text", "versions", "words"),
    [
        (f"{NAME}@13.0.2", ["24.1.0"], "nearest are 12.11.1 and 13.0.3"),
        (f"{NAME}@^14", ["24.1.0"], r"\^14 accepts; the newest is 13.0.3"),
        (f"{NAME}@^13", ["20.1.0", "24.1.0"], "13.0.3 does not for 20.1.0"),
        ("no-such-addon", ["24.1.0"], "the npm registry has no no-such-addon"),
    ],
)
def test_no_release_is_one_sentence(registry: FakeNpm, text: str, versions: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        select_release(parse_addon(text), versions)


def test_dependencies_come_along_but_not_the_installers(registry: FakeNpm) -> None:
    package = first(f"{NAME}@12.11.1", node("24.1.0"))
    assert package.dependencies == {"bindings": "1.5.0"}
    assert package.directory is not None
    assert (package.directory / "node_modules/bindings/package.json").is_file()
    assert not (package.directory / "node_modules/prebuild-install").exists()
    assert all("--ignore-scripts" in call["argv"] for call in registry.calls)


@pytest.mark.parametrize(
    "wanted", ["git+https://x.test/y", "file:../..", "https://x.test/y.tgz", "npm:other@1"]
)
def test_a_dependency_from_elsewhere_is_refused(registry: FakeNpm, wanted: str) -> None:
    registry.publish_addon("odd", "1.0.0", dependencies={"bindings": wanted})
    with pytest.raises(UsageError, match="no version range"):
        first("odd@1.0.0", node("24.1.0"))
    assert not [call for call in registry.calls if call["argv"][0] == "install"]


def test_a_fetched_release_needs_no_registry(registry: FakeNpm) -> None:
    before = first(f"{NAME}@12.11.1", node("24.1.0"))
    registry.go_down()
    addons._releases.cache_clear()
    npm_client._listing.cache_clear()
    assert first(f"{NAME}@12.11.1", node("24.1.0")) == before
    with pytest.raises(HostUnfitError, match=r"in the cache.*12\.11\.1"):
        first(NAME, node("24.1.0"))


def test_a_package_that_says_it_is_another_is_refused(registry: FakeNpm) -> None:
    registry.publish("odd", "1.0.0", {"package.json": b'{"name": "even", "version": "1.0.0"}'})
    with pytest.raises(UsageError, match="says it is even"):
        first("odd@1.0.0", node("24.1.0"))


@pytest.mark.parametrize(
    "manifest", [b"", b"[]", b"{", b'{"name": "../x", "version": "1.0.0"}', b'{"name": "odd"}']
)
def test_a_manifest_that_cannot_be_used_is_one_sentence(registry: FakeNpm, manifest: bytes) -> None:
    registry.publish("odd", "1.0.0", {"package.json": manifest})
    with pytest.raises(UsageError):
        first("odd@1.0.0", node("24.1.0"))


def test_a_directory_and_a_tarball_of_ones_own(registry: FakeNpm, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "deps/sqlite3").mkdir(parents=True)
    (folder / "build").mkdir()
    (folder / "build/big.o").write_text("object")
    (folder / "package.json").write_text('{"name": "mine", "version": "1.2.3", "engines": {"node": ">=20"}}')
    (folder / "deps/sqlite3/sqlite3.c").write_text("/* sqlite3mc */")
    package = first(f"path:{folder}", node("24.1.0"))
    assert (package.name, package.version, package.engines, package.encrypted) == (
        "mine",
        "1.2.3",
        ">=20",
        True,
    )
    assert package.directory is not None
    assert not (package.directory / "build").exists()
    (folder / "package.json").write_text('{"name": "mine", "version": "1.2.4"}')
    changed = first(f"path:{folder}", node("24.1.0"))
    assert changed.directory != package.directory
    (tmp_path / "mine.tgz").write_bytes(
        tarball({"package/package.json": b'{"name": "better-sqlite3", "version": "9.0.0"}'})
    )
    packed = first(f"path:{tmp_path / 'mine.tgz'}", node("24.1.0"))
    assert (packed.short, packed.encrypted) == ("bs3-9.0.0", False)


def test_a_path_that_is_no_package_is_one_sentence(registry: FakeNpm, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a directory nor"):
        first("path:./nowhere", node("24.1.0"))
    with pytest.raises(UsageError, match=r"no package\.json"):
        first(f"path:{tmp_path}", node("24.1.0"))
    (tmp_path / "package.json").write_text('{"name": "mine", "version": "1.0.0"}')
    (tmp_path / "secret").symlink_to("/etc/hostname")
    with pytest.raises(UsageError, match="leads out"):
        first(f"path:{tmp_path}", node("24.1.0"))


PATCH = """\
diff --git a/src/addon.cpp b/src/addon.cpp
--- a/src/addon.cpp
+++ b/src/addon.cpp
@@ -1,3 +1,3 @@
 one
-two
+zwei
 three
"""


@pytest.mark.parametrize("program", ["git", "patch"])
def test_a_patch_is_applied_to_a_copy(
    registry: FakeNpm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    which = shutil.which
    if which(program) is None:
        pytest.skip(f"{program} is not installed")
    monkeypatch.setattr(
        "investigator.patches.shutil.which",
        lambda name: None if name in {"git", "patch"} - {program} else which(name),
    )
    (tmp_path / "fix.patch").write_text(PATCH)
    plain = first(f"{NAME}@12.11.1", node("24.1.0"))
    package = first(f"{NAME}@12.11.1", node("24.1.0"), patch=str(tmp_path / "fix.patch"))
    assert plain.directory is not None
    assert package.directory is not None
    assert (plain.directory / "src/addon.cpp").read_text() == "one\ntwo\nthree\n"
    assert (package.directory / "src/addon.cpp").read_text() == "one\nzwei\nthree\n"
    assert package.patch_sha256 is not None
    assert package.version == plain.version
    (tmp_path / "odd.patch").write_text(PATCH.replace("-two", "-deux"))
    with pytest.raises(UsageError, match=r"odd\.patch does not apply.*(addon\.cpp|Hunk #1)"):
        first(f"{NAME}@12.11.1", node("24.1.0"), patch=str(tmp_path / "odd.patch"))


def test_a_cache_inside_a_repository_makes_no_difference(registry: FakeNpm, tmp_path: Path) -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    subprocess.run([git, "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "fix.patch").write_text(PATCH)
    package = first(f"{NAME}@12.11.1", node("24.1.0"), patch=str(tmp_path / "fix.patch"))
    assert package.directory is not None
    assert "zwei" in (package.directory / "src/addon.cpp").read_text()


def test_a_package_with_a_repository_inside_is_not_patched(registry: FakeNpm, tmp_path: Path) -> None:
    manifest = b'{"name": "odd", "version": "1.0.0"}'
    registry.publish(
        "odd", "1.0.0", {"package.json": manifest, ".git/config": b"[core]\n\tfsmonitor = evil\n"}
    )
    (tmp_path / "fix.patch").write_text(PATCH)
    with pytest.raises(UsageError, match=r"\.git folder"):
        first("odd@1.0.0", node("24.1.0"), patch=str(tmp_path / "fix.patch"))


def test_without_git_and_patch_there_is_advice(
    registry: FakeNpm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fix.patch").write_text(PATCH)
    monkeypatch.setattr("investigator.patches.shutil.which", lambda _name: None)
    monkeypatch.setattr("investigator.npm_client.client", lambda: (str(registry.root / "bin/npm"),))
    with pytest.raises(EngineMissingError, match="git or patch"):
        first(f"{NAME}@12.11.1", node("24.1.0"), patch=str(tmp_path / "fix.patch"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "no unified diff"),
        (PATCH.replace("src/addon.cpp", "../../evil"), "leads out"),
        (PATCH.replace("a/src/addon.cpp", "/etc/passwd"), "leads out"),
        (PATCH.replace("b/src/addon.cpp", '"b/\\056\\056/evil"'), "leads out"),
        (PATCH.replace("src/addon.cpp", ".git/config"), "leads out"),
        ("diff --git a/x b/x\nnew file mode 120000\n" + PATCH, "link"),
        ("diff --git a/x b/x\nrename from x\nrename to ../x\n" + PATCH, "leads out"),
    ],
)
def test_a_patch_that_leads_out_is_refused(registry: FakeNpm, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "odd.patch").write_text(text)
    with pytest.raises(UsageError, match=words):
        first(f"{NAME}@12.11.1", node("24.1.0"), patch=str(tmp_path / "odd.patch"))
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize(
    ("engines", "version", "expected"),
    [
        ("*", "20.1.0", True),
        (">=22", "22.0.0", True),
        (">= 22", "20.1.0", False),
        ("20.x || 22.x", "23.1.0", False),
        (">=22", "22.0.0-nightly2025", True),
        ("what ever", "20.1.0", True),
    ],
)
def test_engines(engines: str, version: str, expected: bool) -> None:
    assert engines_accept(engines, version) is expected


def test_the_table_of_releases(registry: FakeNpm) -> None:
    rows = addon_compatibility(NAME, ["20.20.2", "26.12.1"])
    assert [(row.release, row.accepts["20.20.2"], row.accepts["26.12.1"]) for row in rows] == [
        ("13.0.3", False, True),
        ("12.11.1", True, True),
        ("12.4.1", True, False),
        ("11.10.0", True, True),
    ]
    assert rows[0].published == "2026-01-02"
