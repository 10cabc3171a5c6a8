"""Addon builds: what the cache key covers, what is taken out of a build, and how a failing one is told."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from investigator import build, cache, protocol, resources
from investigator.addons import AddonPackage
from investigator.build import (
    AddonBuild,
    BuildFailure,
    build_addon,
    build_all,
    build_key,
    compiler_of,
    load_test,
)
from investigator.build_log import commands, first_error
from investigator.engine.interface import Outcome, Started, Task
from investigator.nodes.interface import NodeBuild
from investigator.spec import Flavor
from tests.fakes.build_engine import COMPILER, BuildEngine, compiled, failed


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    node: NodeBuild
    addon: AddonPackage | None
    flavor: Flavor = "source"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def node_build(tmp_path: Path, version: str = "24.11.1", modules: str = "137", napi: str = "10") -> NodeBuild:
    directory = tmp_path / "nodes" / version
    (directory / "bin").mkdir(parents=True, exist_ok=True)
    (directory / "bin/node").write_bytes(b"\x7fELF /lib64/ld-linux-x86-64.so.2")
    return NodeBuild(
        version=version,
        source="npm",
        directory=directory,
        node_sha256=version,
        versions={"node": version, "modules": modules, "napi": napi},
        config_sha256="c",
    )


def addon_package(tmp_path: Path, version: str = "12.11.1", napi: int | None = None) -> AddonPackage:
    directory = tmp_path / "addons" / version
    for name, text in {
        "package.json": '{"main": "lib/index.js"}',
        "lib/index.js": "module.exports = 1;",
        "lib/build/inner.js": "// a folder named build below the top is part of the package",
        "deps/sqlite3/sqlite3.c": "int sqlite3;",
        "build/Release/stale.node": "left by its author",
        "prebuilds/linux-x64.node": "shipped\0",
    }.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return AddonPackage(
        name="better-sqlite3-multiple-ciphers",
        version=version,
        directory=directory,
        integrity="sha512-x",
        napi=napi,
    )


def made(result: AddonBuild | BuildFailure) -> AddonBuild:
    assert isinstance(result, AddonBuild), result
    return result


def reason(result: AddonBuild | BuildFailure) -> str:
    assert isinstance(result, BuildFailure), result
    return result.reason


def contents(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


# -- from source --------------------------------------------------------------------------------------------


def test_a_build_keeps_package_binary_object_and_log_and_nothing_else(tmp_path: Path) -> None:
    addon = addon_package(tmp_path)
    before = contents(tmp_path / "addons")
    result = made(build_addon(BuildEngine(), node_build(tmp_path), addon, "source"))
    assert set(contents(result.directory)) == {
        ".stamp.json",
        "better_sqlite3.node",
        "build.json",
        "build.log",
        "package/deps/sqlite3/sqlite3.c",
        "package/lib/build/inner.js",
        "package/lib/index.js",
        "package/package.json",
        "package/prebuilds/linux-x64.node",
        "sqlite3.o",
    }
    assert (result.directory / result.binding).read_bytes() == b"for 24.11.1"
    assert (result.directory / result.entry).read_text() == "module.exports = 1;"
    assert result.binding_sha256 == cache.sha256_of(result.directory / result.binding)
    assert result.sqlite3_object_sha256 == cache.sha256_of(result.directory / "sqlite3.o")
    assert result.compiler == COMPILER
    assert result.elapsed_s == 1.5
    assert contents(tmp_path / "addons") == before


def test_binaries_of_others_stay_out_of_the_build(tmp_path: Path) -> None:
    seen: list[set[str]] = []

    def compile_(tree: Path, task: Task) -> Outcome:
        seen.append(set(contents(tree / "package")))
        return compiled(tree, task)

    made(build_addon(BuildEngine(compile_), node_build(tmp_path), addon_package(tmp_path), "source"))
    assert seen == [{"deps/sqlite3/sqlite3.c", "lib/build/inner.js", "lib/index.js", "package.json"}]


def test_flags_have_the_same_names_on_every_machine(tmp_path: Path) -> None:
    result = made(build_addon(BuildEngine(), node_build(tmp_path), addon_package(tmp_path), "source"))
    assert set(result.flags) == {"sqlite3.c", "better_sqlite3.cpp", "better_sqlite3.node"}
    assert "-I/node/include/node" in result.flags["sqlite3.c"]
    assert not any(str(tmp_path) in line for line in result.flags.values())


def test_a_second_build_compiles_nothing(tmp_path: Path) -> None:
    engine = BuildEngine()
    node, addon = node_build(tmp_path), addon_package(tmp_path)
    first = build_addon(engine, node, addon, "source")
    assert build_addon(engine, node, addon, "source") == first
    assert len(engine.builds) == 1


@pytest.mark.parametrize("name", ["better_sqlite3.node", "sqlite3.o", "build.json"])
def test_a_corrupt_entry_is_built_again(tmp_path: Path, name: str) -> None:
    engine = BuildEngine()
    node, addon = node_build(tmp_path), addon_package(tmp_path)
    first = made(build_addon(engine, node, addon, "source"))
    (first.directory / name).write_bytes(b"damaged beyond repair")
    told: list[str] = []
    assert build_addon(engine, node, addon, "source", notify=told.append) == first
    assert len(engine.builds) == 2
    assert "damaged" in told[0]


def test_nothing_of_the_hosts_environment_gets_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("npm_config_nodedir", "CFLAGS", "CC", "CXXFLAGS", "NODE_OPTIONS", "SHARED_OBJECTS"):
        monkeypatch.setenv(name, "of the host")
    engine = BuildEngine()
    build_addon(engine, node_build(tmp_path), addon_package(tmp_path), "source")
    task = engine.builds[0]
    assert "of the host" not in task.environment.values()
    assert any(word.startswith("--nodedir=") for word in task.command)
    writable = {str(mount.target) for mount in task.mounts if mount.writable}
    assert writable == {"/build", "/objects"}


@pytest.mark.parametrize("plant", ["binding", "folder", "log"])
def test_a_link_left_by_the_build_is_not_followed(tmp_path: Path, plant: str) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    for name in ("better_sqlite3.node", "build.log"):
        (secret / name).write_text("of the host")

    def compile_(tree: Path, task: Task) -> Outcome:
        outcome = compiled(tree, task)
        release = tree / "package/build/Release"
        if plant == "folder":
            release.rename(release.with_name("moved"))
            release.symlink_to(secret)
        else:
            path = tree / "build.log" if plant == "log" else release / "better_sqlite3.node"
            path.unlink()
            path.symlink_to(secret / path.name)
        return outcome

    result = build_addon(BuildEngine(compile_), node_build(tmp_path), addon_package(tmp_path), "source")
    assert "link" in reason(result)
    assert b"of the host" not in b"".join(contents(tmp_path / "cache").values())


def test_a_build_without_a_binary_is_a_failure(tmp_path: Path) -> None:
    def compile_(tree: Path, task: Task) -> Outcome:
        (tree / "build.log").write_text("gyp info ok")
        return Outcome(exit_code=0)

    result = build_addon(BuildEngine(compile_), node_build(tmp_path), addon_package(tmp_path), "source")
    assert "left 0 binaries" in reason(result)


@pytest.mark.parametrize("main", ["../../../etc/passwd", "/etc/passwd", "nowhere.js", 5])
def test_a_main_file_outside_the_package_is_not_taken(tmp_path: Path, main: object) -> None:
    addon = addon_package(tmp_path)
    assert addon.directory is not None
    (addon.directory / "package.json").write_bytes(msgspec.json.encode({"main": main}))
    result = made(build_addon(BuildEngine(), node_build(tmp_path), addon, "source"))
    assert result.entry == "package/lib/index.js"


# -- the key ------------------------------------------------------------------------------------------------


def test_everything_that_can_change_a_build_changes_its_key(tmp_path: Path) -> None:
    node, addon = node_build(tmp_path), addon_package(tmp_path)
    engine = BuildEngine()
    tools = compiler_of(engine)
    change = msgspec.structs.replace
    keys = {
        build_key(engine, tools, node, addon, "source"),
        build_key(engine, tools, node, addon, "prebuilt"),
        build_key(engine, tools, change(node, node_sha256="other"), addon, "source"),
        build_key(engine, tools, change(node, config_sha256="other"), addon, "source"),
        build_key(engine, tools, node, change(addon, integrity="other"), "source"),
        build_key(engine, tools, node, change(addon, patch_sha256="p"), "source"),
        build_key(engine, tools, node, change(addon, dependencies={"node-addon-api": "8.0.0"}), "source"),
        build_key(engine, "g++ 13", node, addon, "source"),
        build_key(BuildEngine(base="sha256:other"), tools, node, addon, "source"),
    }
    assert len(keys) == 9


def test_labels_and_places_do_not_change_the_key(tmp_path: Path) -> None:
    node, addon, engine = node_build(tmp_path), addon_package(tmp_path), BuildEngine()
    tools = compiler_of(engine)
    moved = msgspec.structs.replace(node, label="fix", directory=tmp_path / "elsewhere", source="path")
    assert build_key(engine, tools, moved, addon, "source") == build_key(engine, tools, node, addon, "source")


# -- many ---------------------------------------------------------------------------------------------------


def three(tmp_path: Path) -> list[Wanted]:
    addon = addon_package(tmp_path)
    return [
        Wanted(id=version, node=node_build(tmp_path, version), addon=addon)
        for version in ("20.19.5", "22.21.1", "24.11.1")
    ]


def test_the_first_build_runs_alone_then_the_others_find_its_objects(tmp_path: Path) -> None:
    alone: list[tuple[str, int]] = []
    engine = BuildEngine()

    def compile_(tree: Path, task: Task) -> Outcome:
        alone.append((task.purpose, engine.running))
        return compiled(tree, task)

    engine.compile = compile_
    results = build_all(engine, three(tmp_path), jobs=2)
    assert list(results) == ["20.19.5", "22.21.1", "24.11.1"]
    assert alone[0] == ("build better-sqlite3-multiple-ciphers 12.11.1 for Node 20.19.5", 1)
    shared = {m.source for task in engine.builds for m in task.mounts if str(m.target) == "/objects"}
    assert len(shared) == 1
    assert len({made(each).sqlite3_object_sha256 for each in results.values()}) == 1
    assert len({made(each).binding_sha256 for each in results.values()}) == 3


def test_a_second_run_builds_nothing(tmp_path: Path) -> None:
    engine = BuildEngine()
    first = build_all(engine, three(tmp_path), jobs=2)
    assert build_all(engine, three(tmp_path), jobs=2) == first
    assert len(engine.builds) == 3


def test_labels_share_one_build(tmp_path: Path) -> None:
    node, addon = node_build(tmp_path), addon_package(tmp_path)
    engine = BuildEngine()
    pair = [Wanted(id="a:x", node=node, addon=addon), Wanted(id="b:x", node=node, addon=addon)]
    results = build_all(engine, pair)
    assert results["a:x"] == results["b:x"]
    assert len(engine.builds) == 1


def test_each_package_has_a_compiler_cache_of_its_own(tmp_path: Path) -> None:
    node, engine = node_build(tmp_path), BuildEngine()
    packages = [addon_package(tmp_path, version) for version in ("12.11.0", "12.11.1")]
    build_all(engine, [Wanted(id=p.version, node=node, addon=p) for p in packages])
    shared = {m.source for task in engine.builds for m in task.mounts if str(m.target) == "/objects"}
    assert len(shared) == 2


def test_a_failing_build_costs_only_its_own_environment(tmp_path: Path) -> None:
    def compile_(tree: Path, task: Task) -> Outcome:
        bad = "22.21.1" in task.purpose
        return (failed("x.cpp:1:2: error: no") if bad else compiled)(tree, task)

    results = build_all(BuildEngine(compile_), three(tmp_path))
    assert [isinstance(each, AddonBuild) for each in results.values()] == [True, False, True]


def test_an_interrupt_does_not_wait_for_the_other_builds(tmp_path: Path) -> None:
    started, released, ended = threading.Event(), threading.Event(), threading.Event()

    def compile_(tree: Path, task: Task) -> Outcome:
        if "22.21.1" in task.purpose:
            started.wait(30)
            raise KeyboardInterrupt
        if "24.11.1" in task.purpose:
            started.set()
            released.wait(30)
            ended.set()
        return compiled(tree, task)

    with pytest.raises(KeyboardInterrupt):
        build_all(BuildEngine(compile_), three(tmp_path), jobs=2)
    assert not ended.is_set()
    released.set()
    assert ended.wait(30)


def test_what_needs_no_build_is_left_out(tmp_path: Path) -> None:
    engine = BuildEngine()
    sqlite = AddonPackage(name="node:sqlite", version="", kind="node:sqlite")
    old = msgspec.structs.replace(node_build(tmp_path, "20.19.5"))
    wanted = [
        Wanted(id="js", node=node_build(tmp_path), addon=None),
        Wanted(id="new", node=node_build(tmp_path), addon=sqlite),
        Wanted(id="old", node=old, addon=sqlite),
    ]
    results = build_all(engine, wanted)
    assert list(results) == ["old"]
    assert "has no node:sqlite" in reason(results["old"])
    assert engine.tasks == []


# -- sharing the amalgamation -------------------------------------------------------------------------------

COMPILER_SCRIPT = """\
import sys
words = sys.argv[1:]
if words == ["--version"]:
    print("cc", open("version").read())
elif "-E" in words:
    source = next(word for word in words if word.endswith(".c"))
    print([word for word in words if word.startswith("-D")], open(source).read())
else:
    with open("calls", "a") as calls:
        calls.write(words[-1] + " ")
    with open(words[words.index("-o") + 1], "w") as made:
        made.write("object of " + words[-1])
"""


class SharedCompiler:
    """Runs cc.mjs with a compiler that counts its calls; the source is the last word."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "cc.py").write_text(COMPILER_SCRIPT)
        (folder / "cc").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{folder}/cc.py" "$@"\n')
        (folder / "cc").chmod(0o755)
        (folder / "version").write_text("12")
        (folder / "sqlite3.c").write_text("int x;")
        (folder / "other.c").write_text("int y;")

    def compile(self, *words: str, source: str = "sqlite3.c") -> int:
        (self.folder / "out.o").unlink(missing_ok=True)
        node = resources.node_tools() / "bin/node"
        script = resources.root() / "node_fixtures/compile/cc.mjs"
        return subprocess.run(
            [node, script, self.folder / "cc", "-o", "out.o", *words, "-c", source],
            cwd=self.folder,
            env={"SHARED_OBJECTS": str(self.folder / "objects")},
            check=False,
        ).returncode

    @property
    def calls(self) -> int:
        path = self.folder / "calls"
        return len(path.read_text().split()) if path.exists() else 0


def test_the_amalgamation_is_compiled_once(tmp_path: Path) -> None:
    compiler = SharedCompiler(tmp_path)
    for include in ("-I/node20", "-I/node24"):
        assert compiler.compile("-O3", include) == 0
        assert (tmp_path / "out.o").read_text() == "object of sqlite3.c"
    assert compiler.calls == 1


def test_what_decides_the_object_decides_the_sharing(tmp_path: Path) -> None:
    compiler = SharedCompiler(tmp_path)
    compiler.compile("-O3")
    compiler.compile("-O2")
    compiler.compile("-O3", "-DSQLITE_DQS=0")
    (tmp_path / "sqlite3.c").write_text("int z;")
    compiler.compile("-O3")
    (tmp_path / "version").write_text("13")
    compiler.compile("-O3")
    assert compiler.calls == 5


def test_other_files_and_debug_information_are_not_shared(tmp_path: Path) -> None:
    compiler = SharedCompiler(tmp_path)
    for _ in range(2):
        compiler.compile("-O3", source="other.c")
        compiler.compile("-O3", "-g")
    assert compiler.calls == 4
    assert not (tmp_path / "objects").exists()


# -- failures -----------------------------------------------------------------------------------------------

GYP_LOG = """\
gyp info it worked if it ends with ok
make: Entering directory '/build/package/build'
  g++ -o better_sqlite3.o ../src/better_sqlite3.cpp '-DERROR_LEVEL=1' -c
In file included from ../src/better_sqlite3.cpp:11:
/node/include/node/node.h:1264:7: warning: cast between incompatible function types [-Wcast-function-type]
./src/util/binder.lzz:40:37: error: 'class v8::Object' has no member named 'GetPrototype'
./src/util/binder.lzz:41:37: error: 'class v8::Object' has no member named 'Other'
make: *** [better_sqlite3.target.mk:122: Release/obj.target/better_sqlite3.o] Error 1
gyp ERR! build error
gyp ERR! stack Error: `make` failed with exit code: 2
"""


def test_a_failing_build_tells_the_first_error_and_keeps_its_log(tmp_path: Path) -> None:
    engine = BuildEngine(failed(GYP_LOG))
    result = build_addon(engine, node_build(tmp_path, "26.1.0"), addon_package(tmp_path), "source")
    assert isinstance(result, BuildFailure)
    assert result.reason == (
        "better-sqlite3-multiple-ciphers 12.11.1 does not build on Node 26.1.0: ./src/util/binder.lzz:40:37: "
        "error: 'class v8::Object' has no member named 'GetPrototype'"
    )
    assert result.log is not None
    assert result.log.read_text() == GYP_LOG
    assert cache.entries("builds") == ()


@pytest.mark.parametrize(
    ("how", "log", "expected"),
    [
        ({"exit_code": None, "timed_out": True}, GYP_LOG, "did not end within 1800 s"),
        ({"out_of_memory": True, "exit_code": 137}, "", "more memory"),
        ({}, "g++: fatal error: Killed signal terminated program cc1plus\n", "more memory"),
        ({"exit_code": 3}, "", "status 3"),
        ({"stderr": "exec failed: no such file\n"}, "", "exec failed: no such file"),
    ],
)
def test_other_ends_have_reasons_too(tmp_path: Path, how: dict[str, object], log: str, expected: str) -> None:
    result = build_addon(
        BuildEngine(failed(log, **how)), node_build(tmp_path), addon_package(tmp_path), "source"
    )
    assert expected in reason(result)


def test_no_compiler_is_one_sentence(tmp_path: Path) -> None:
    result = build_addon(BuildEngine(compiler=""), node_build(tmp_path), addon_package(tmp_path), "source")
    assert "no C++ compiler" in reason(result)


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (
            GYP_LOG,
            "./src/util/binder.lzz:40:37: error: 'class v8::Object' has no member named 'GetPrototype'",
        ),
        (
            "make: *** [x] Error 1\na.c:3:10: fatal error: x.h: No such file\n",
            "a.c:3:10: fatal error: x.h: No such file",
        ),
        ("/usr/bin/ld: x.o: undefined reference to `f'\n", "/usr/bin/ld: x.o: undefined reference to `f'"),
        ("ModuleNotFoundError: No module named 'shlex'\n", "ModuleNotFoundError: No module named 'shlex'"),
        ("gyp: binding.gyp not found\ngyp ERR! stack Error: x\n", "gyp: binding.gyp not found"),
        ("gyp ERR! stack Error: not found: make\n", "gyp ERR! stack Error: not found: make"),
        ("a.c:1:1: error: \x1b[31mred\x07\n", "a.c:1:1: error: red"),
        ("all is well\n", None),
        ("", None),
    ],
)
def test_first_error(log: str, expected: str | None) -> None:
    assert first_error(log) == expected


def test_first_error_is_short_and_one_line() -> None:
    assert len(first_error("a.c:1:1: error: " + "x" * 10_000) or "") < 400


def test_commands_skip_everything_that_is_not_one() -> None:
    log = "gyp info spawn gcc\n  touch x.c\ng++ says 'unbalanced -o x.cpp -c\n gcc\n"
    log += "  /t/node /r/cc.mjs gcc -o /b/x.o /b/x.c -O3 -c\n"
    assert commands(log, {"/b": "/build"}) == {"x.c": "gcc -o /build/x.o /build/x.c -O3 -c"}


# -- shipped ------------------------------------------------------------------------------------------------


@pytest.fixture
def linux_x64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "platform_for", lambda _engine: "linux-x64")


@pytest.mark.usefixtures("linux_x64")
def test_the_shipped_binary_is_taken_as_it_is(tmp_path: Path) -> None:
    engine = BuildEngine()
    result = made(build_addon(engine, node_build(tmp_path), addon_package(tmp_path), "prebuilt"))
    assert (result.directory / result.binding).read_text() == "shipped\0"
    assert (result.sqlite3_object_sha256, result.compiler, result.flags) == (None, "", {})
    assert engine.builds == []


@pytest.mark.usefixtures("linux_x64")
def test_a_release_that_ships_nothing_says_so(tmp_path: Path) -> None:
    addon = addon_package(tmp_path)
    assert addon.directory is not None
    (addon.directory / "prebuilds/linux-x64.node").unlink()
    result = build_addon(BuildEngine(), node_build(tmp_path), addon, "prebuilt")
    assert reason(result) == (
        "release 12.11.1 of better-sqlite3-multiple-ciphers ships no binary for linux-x64 in its package; "
        "leave out --prebuilt"
    )


@pytest.mark.usefixtures("linux_x64")
def test_a_musl_node_takes_the_musl_binary(tmp_path: Path) -> None:
    node = node_build(tmp_path)
    (node.directory / "bin/node").write_bytes(b"\x7fELF /lib/ld-musl-x86_64.so.1")
    result = build_addon(BuildEngine(), node, addon_package(tmp_path), "prebuilt")
    assert "linuxmusl-x64" in reason(result)


@pytest.mark.usefixtures("linux_x64")
def test_a_binary_for_another_abi_is_refused(tmp_path: Path) -> None:
    addon = addon_package(tmp_path)
    assert addon.directory is not None
    (addon.directory / "prebuilds/linux-x64.node").write_bytes(b"..\0node_register_module_v115\0..")
    result = build_addon(BuildEngine(), node_build(tmp_path), addon, "prebuilt")
    assert "built for ABI 115, Node 24.11.1 has 137" in reason(result)


@pytest.mark.parametrize("flavor", ["source", "prebuilt"])
def test_what_would_crash_for_its_node_api_is_never_tried(tmp_path: Path, flavor: Flavor) -> None:
    engine = BuildEngine()
    node = node_build(tmp_path, "20.19.5", modules="115", napi="9")
    result = build_addon(engine, node, addon_package(tmp_path, "13.0.3", napi=10), flavor)
    assert "needs Node-API 10, Node 20.19.5 offers 9" in reason(result)
    assert engine.tasks == []


# -- does it load -------------------------------------------------------------------------------------------


class LoadEngine(BuildEngine):
    def __init__(self, outcome: Outcome, *events: object) -> None:
        super().__init__()
        self.outcome = outcome
        self.events = events
        self.job: protocol.Job | None = None

    def run(self, task: Task, started: Started | None = None) -> Outcome:
        self.job = msgspec.json.decode(Path(task.command[-1]).read_bytes(), type=protocol.Job)
        lines = b"".join(msgspec.json.encode(event) + b"\n" for event in self.events)
        Path(self.job.output).write_bytes(lines)
        return self.outcome


def loaded(tmp_path: Path, engine: LoadEngine) -> str | None:
    node = node_build(tmp_path)
    return load_test(engine, node, made(build_addon(BuildEngine(), node, addon_package(tmp_path), "source")))


def test_an_addon_that_loads(tmp_path: Path) -> None:
    engine = LoadEngine(Outcome(exit_code=0), protocol.Done(wall_ns=1))
    assert loaded(tmp_path, engine) is None
    assert engine.job is not None
    assert engine.job.mode == "load"
    assert engine.job.addon is not None
    assert engine.job.addon.binding.endswith("better_sqlite3.node")


@pytest.mark.parametrize(
    ("outcome", "events", "expected"),
    [
        (Outcome(exit_code=139), (), "crashed with signal 11 while loading"),
        (Outcome(exit_code=None, timed_out=True), (), "does not load within 60 s"),
        (Outcome(exit_code=137, out_of_memory=True), (), "memory"),
        (
            Outcome(exit_code=1),
            (protocol.Failed(stage="load", message="wrong\nNODE_MODULE_VERSION", stack=""),),
            "does not load: wrong NODE_MODULE_VERSION",
        ),
        (Outcome(exit_code=0), (), "ended with status 0 while loading"),
        (Outcome(exit_code=0), ({"type": "rubbish"},), "ended with status 0 while loading"),
    ],
)
def test_an_addon_that_does_not(
    tmp_path: Path, outcome: Outcome, events: tuple[object, ...], expected: str
) -> None:
    assert expected in (loaded(tmp_path, LoadEngine(outcome, *events)) or "it loads")


# -- resources ----------------------------------------------------------------------------------------------


def test_the_packaged_folders_are_found() -> None:
    assert (resources.root() / "node_fixtures/compile/gyp.mjs").is_file()
    assert (resources.root() / "sqlcipher_bench/native/host.c").is_file()
    assert (resources.node_tools() / "lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js").is_file()
    assert os.access(resources.node_tools() / "bin/node", os.X_OK)


def test_the_digest_covers_names_and_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "root", lambda: tmp_path)
    digests = set()
    for name, text in (("a.c", "1"), ("a.c", "2"), ("b.c", "2"), ("__pycache__/x.pyc", "3")):
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        digests.add(resources.digest("folder"))
    assert len(digests) == 3
