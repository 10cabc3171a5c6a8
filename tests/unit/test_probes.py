"""Probe builds: what they are made of, what may be missing, and what the key covers."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from investigator import probes, resources
from investigator.addons import AddonPackage
from investigator.build import AddonBuild, BuildFailure
from investigator.engine.interface import Outcome, Started, Task
from investigator.nodes.interface import NodeBuild
from investigator.probes import ProbeBuild, build_probes, dialect_of, napi_version, row_builder_of
from investigator.spec import Flavor
from tests.fakes.build_engine import BuildEngine

ADDON_FLAGS = "g++ -o x.o ../src/better_sqlite3.cpp -I/node/include/node -O3 -std=c++20 -c"
V8_BINARY = b"\x7fELF\0_ZN2v86Object3NewEPNS_7IsolateE\0"
BULK_BINARY = V8_BINARY + b"\0_ZN2v86Object3NewEPNS_7IsolateENS_5LocalINS_5ValueEEEPNS3_INS_4NameEEEPS5_m\0"
NAPI_BINARY = b"\x7fELF\0napi_create_object\0napi_wrap\0"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    node: NodeBuild
    addon: AddonPackage | None
    flavor: Flavor = "source"


class ProbeEngine(BuildEngine):
    """Compiles as the tests say; loads the replay, or says why it does not."""

    def __init__(
        self,
        compile_: Callable[[Path, Task], Outcome] | None = None,
        *,
        loads: Outcome | None = None,
        compiler: str = "g++ 12",
    ) -> None:
        super().__init__(compile_ or compiled, compiler=compiler)
        self.loads = loads or Outcome(exit_code=0)
        self.checks: list[Task] = []

    def run(self, task: Task, started: Started | None = None) -> Outcome:
        if task.purpose.startswith("load the replay"):
            self.checks.append(task)
            return self.loads
        return super().run(task, started)


def compiled(tree: Path, task: Task, replay: bytes = BULK_BINARY, addon_flags: str = ADDON_FLAGS) -> Outcome:
    """What node-gyp leaves: of the probe's own build, or of the addon's on another SQLite."""
    if is_replay(task):
        release = tree / "package/build/Release"
        release.mkdir(parents=True)
        (release / "better_sqlite3.node").write_bytes(replay)
        node = next(str(mount.source) for mount in task.mounts if str(mount.target) == "/node")
        (tree / "build.log").write_text(f"  {addon_flags.replace('/node', node)}\n")
    else:
        release = tree / "probe/build/Release"
        release.mkdir(parents=True)
        names = ["boundary"]
        names += ["boundary_napi"] if "--napi_version=0" not in task.command else []
        names += ["core"] if asks_for_core(task) else []
        for name in names:
            (release / f"{name}.node").write_bytes(name.encode())
        (tree / "build.log").write_text("  g++ -o v8_dialect.o ../v8_dialect.cc -O3 -c\n")
    return Outcome(exit_code=0, elapsed_s=2.0)


def is_replay(task: Task) -> bool:
    return any(word.startswith("--sqlite3=") for word in task.command)


def asks_for_core(task: Task) -> bool:
    return any(word.startswith("--sqlite_object=") for word in task.command)


def failing(when: Callable[[Task], bool], log: str) -> Callable[[Path, Task], Outcome]:
    def compile_(tree: Path, task: Task) -> Outcome:
        if not when(task):
            return compiled(tree, task)
        (tree / "build.log").write_text(log)
        return Outcome(exit_code=1)

    return compile_


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))


def node_build(tmp_path: Path, version: str = "24.11.1", napi: str = "10") -> NodeBuild:
    directory = tmp_path / "nodes" / version
    directory.mkdir(parents=True, exist_ok=True)
    return NodeBuild(
        version=version,
        source="npm",
        directory=directory,
        node_sha256=version,
        versions={"node": version, "modules": "137", "napi": napi},
        config_sha256="c",
    )


def addon_build(tmp_path: Path, **changes: object) -> AddonBuild:
    directory = tmp_path / "build"
    for name in ("package/deps/sqlite3/sqlite3.h", "package/lib/index.js", "sqlite3.o"):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    whole = AddonBuild(
        key="k",
        directory=directory,
        entry="package/lib/index.js",
        binding="better_sqlite3.node",
        binding_sha256="b",
        sqlite3_object_sha256="o",
        compiler="g++ 12",
        flags={"sqlite3.c": "gcc", "better_sqlite3.cpp": ADDON_FLAGS, "better_sqlite3.node": "g++ -shared"},
        elapsed_s=1.0,
    )
    return msgspec.structs.replace(whole, **changes)


def environment(tmp_path: Path, **changes: object) -> Wanted:
    package = tmp_path / "addon"
    for name in ("package.json", "src/addon.cpp", "prebuilds/linux-x64.node", "build/Release/stale.node"):
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    addon = AddonPackage(name="better-sqlite3", version="12.11.1", directory=package, integrity="x")
    whole = Wanted(id="node24.11.1+bs12.11.1", node=node_build(tmp_path), addon=addon)
    return msgspec.structs.replace(whole, **changes)


def one(
    tmp_path: Path, engine: ProbeEngine, *, build: AddonBuild | str | None = "usual", **changes: object
) -> ProbeBuild | BuildFailure:
    wanted = environment(tmp_path, **changes)
    found = addon_build(tmp_path) if isinstance(build, str) else build
    builds = {} if found is None else {wanted.id: found}
    return build_probes(engine, [wanted], builds)[wanted.id]


def made(result: ProbeBuild | BuildFailure) -> ProbeBuild:
    assert isinstance(result, ProbeBuild), result
    return result


def test_everything_is_built_beside_an_addon(tmp_path: Path) -> None:
    engine = ProbeEngine()
    probe = made(one(tmp_path, engine))
    assert (probe.boundary, probe.boundary_napi) == ("boundary.node", "boundary_napi.node")
    assert (probe.core, probe.replay) == ("core.node", "replay.node")
    assert (probe.dialect, probe.row_builder) == ("v8", "bulk")
    assert (probe.reason, probe.core_reason) == ("", "")
    assert (probe.directory / "core.node").read_bytes() == b"core"
    assert (probe.directory / "replay.node").read_bytes() == BULK_BINARY
    assert set(probe.sha256) == {"boundary.node", "boundary_napi.node", "core.node", "replay.node"}
    assert probe.flags["replay:better_sqlite3.cpp"] == ADDON_FLAGS
    assert probe.elapsed_s == 4.0
    assert not (probe.directory / "tree").exists()


def test_the_replay_is_the_addon_on_another_sqlite(tmp_path: Path) -> None:
    seen: dict[str, bytes] = {}

    def compile_(tree: Path, task: Task) -> Outcome:
        if is_replay(task):
            seen.update({str(p.relative_to(tree)): p.read_bytes() for p in tree.rglob("*") if p.is_file()})
        return compiled(tree, task)

    made(one(tmp_path, ProbeEngine(compile_)))
    assert set(seen) == {
        "package/package.json",
        "package/src/addon.cpp",
        "sqlite/sqlite3.c",
        "sqlite/sqlite3.h",
    }
    own = resources.root() / "node_fixtures/boundary_probe/replay/sqlite3.c"
    assert seen["sqlite/sqlite3.c"] == own.read_bytes()
    assert seen["sqlite/sqlite3.h"] == b"package/deps/sqlite3/sqlite3.h"


def test_the_replay_is_loaded_with_every_name_resolved(tmp_path: Path) -> None:
    engine = ProbeEngine()
    made(one(tmp_path, engine))
    [check] = engine.checks
    assert check.environment == {"LD_BIND_NOW": "1"}
    assert not any(mount.writable for mount in check.mounts)


def test_without_an_addon_there_are_only_primitives(tmp_path: Path) -> None:
    probe = made(one(tmp_path, ProbeEngine(), build=None, addon=None))
    assert probe.boundary == "boundary.node"
    assert (probe.core, probe.replay, probe.dialect, probe.row_builder) == (None, None, None, None)
    assert "no addon" in probe.reason
    assert "no addon" in probe.core_reason


def test_a_shipped_binary_has_neither_core_nor_replay(tmp_path: Path) -> None:
    build = addon_build(tmp_path, sqlite3_object_sha256=None, flags={})
    probe = made(one(tmp_path, ProbeEngine(), build=build, flavor="prebuilt"))
    assert (probe.core, probe.replay) == (None, None)
    assert "shipped" in probe.reason
    assert "shipped" in probe.core_reason


def test_an_old_node_has_no_node_api_probe(tmp_path: Path) -> None:
    probe = made(one(tmp_path, ProbeEngine(), node=node_build(tmp_path, "12.0.0", napi="4")))
    assert probe.boundary_napi is None


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        (ProbeEngine(failing(is_replay, "src/addon.cpp:3:1: error: no such option\n")), "no such option"),
        (
            ProbeEngine(loads=Outcome(exit_code=1, stderr="undefined symbol: sqlite3_blob_open\n")),
            "undefined symbol: sqlite3_blob_open",
        ),
        (
            ProbeEngine(
                lambda tree, task: compiled(tree, task, addon_flags=ADDON_FLAGS.replace("-O3", "-O1"))
            ),
            "not compiled as it is in the addon",
        ),
    ],
    ids=["does not compile", "misses a function", "other flags"],
)
def test_a_replay_that_is_not_the_addon_is_none(tmp_path: Path, engine: ProbeEngine, reason: str) -> None:
    probe = made(one(tmp_path, engine))
    assert probe.replay is None
    assert probe.dialect is None
    assert reason in probe.reason
    assert not (probe.directory / "replay.node").exists()
    assert probe.core == "core.node"


def test_a_core_that_does_not_compile_costs_only_itself(tmp_path: Path) -> None:
    probe = made(one(tmp_path, ProbeEngine(failing(asks_for_core, "bench.c:1:1: error: nothing\n"))))
    assert probe.core is None
    assert "bench.c:1:1: error: nothing" in probe.core_reason
    assert (probe.boundary, probe.replay) == ("boundary.node", "replay.node")


def test_primitives_that_do_not_compile_are_a_failure(tmp_path: Path) -> None:
    engine = ProbeEngine(failing(lambda task: not is_replay(task), "v8_dialect.cc:1:1: error: nothing\n"))
    failure = one(tmp_path, engine)
    assert isinstance(failure, BuildFailure)
    assert "v8_dialect.cc:1:1: error: nothing" in failure.reason
    assert failure.log is not None
    assert "nothing" in failure.log.read_text()


def test_no_compiler_is_a_failure(tmp_path: Path) -> None:
    failure = one(tmp_path, ProbeEngine(compiler=""))
    assert isinstance(failure, BuildFailure)
    assert "no C++ compiler" in failure.reason


def test_equal_environments_share_a_build_and_it_is_kept(tmp_path: Path) -> None:
    engine = ProbeEngine()
    first = environment(tmp_path, id="a:node24.11.1")
    second = environment(tmp_path, id="b:node24.11.1")
    builds = {wanted.id: addon_build(tmp_path) for wanted in (first, second)}
    found = build_probes(engine, [first, second], builds)
    assert found[first.id] == found[second.id]
    assert len(engine.builds) == 2
    again = ProbeEngine()
    assert build_probes(again, [first], builds)[first.id] == found[first.id]
    assert again.builds == []


def test_the_key_covers_node_addon_and_compiler(tmp_path: Path) -> None:
    engine = ProbeEngine()
    node, build = node_build(tmp_path), addon_build(tmp_path)
    keys = {
        probes.probe_key(engine, "g++ 12", node, build),
        probes.probe_key(engine, "g++ 13", node, build),
        probes.probe_key(engine, "g++ 12", node_build(tmp_path, "22.21.1"), build),
        probes.probe_key(engine, "g++ 12", node, addon_build(tmp_path, binding_sha256="other")),
        probes.probe_key(engine, "g++ 12", node, None),
    }
    assert len(keys) == 5


@pytest.mark.parametrize(
    ("binary", "dialect", "builder"),
    [
        (V8_BINARY, "v8", "set"),
        (BULK_BINARY, "v8", "bulk"),
        (NAPI_BINARY, "napi", "factory"),
        (V8_BINARY + NAPI_BINARY, None, None),
        (b"\x7fELF", None, None),
    ],
)
def test_a_binary_tells_its_dialect(binary: bytes, dialect: str | None, builder: str | None) -> None:
    assert (dialect_of(binary), row_builder_of(binary)) == (dialect, builder)


@pytest.mark.parametrize(
    ("offered", "version"),
    [("8", 8), ("9", 9), ("10", 10), ("11", 10), ("7", 0), ("", 0), ("x", 0), ("99999", 0)],
)
def test_the_newest_node_api_that_both_know(tmp_path: Path, offered: str, version: int) -> None:
    assert napi_version(node_build(tmp_path, napi=offered)) == version


def test_the_catalogue_and_the_module_of_the_primitives_agree() -> None:
    text = (resources.root() / "node_fixtures/boundary_probe/primitives.mjs").read_text()
    for name in (
        "call_noop",
        "call_args",
        "utf8_value_",
        "string_new_",
        "row_set_",
        "buffer_copy_",
        "unwrap",
    ):
        assert name in text
