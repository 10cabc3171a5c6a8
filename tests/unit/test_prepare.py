"""From a spec to environments that work: what is refused early, and what one failure may cost."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from investigator import addons, build, host, inputs, measure, prepare, resolve, selection, workloads
from investigator.addons import AddonPackage, AddonRequest
from investigator.build import AddonBuild, BuildFailure
from investigator.engine.interface import Outcome, Task
from investigator.errors import EngineMissingError, NothingBuiltError, StoredFileError, UsageError
from investigator.nodes import sources
from investigator.nodes.interface import NodeBuild, NodeRequest, ResolvedNode
from investigator.observer import NullObserver, Observer
from investigator.operations import Family
from investigator.plan import Environment
from investigator.spec import ARMS, Fix, Spec, dump_spec, load_spec
from investigator.store import RunFolder, create_run
from tests.fakes.engine import FakeEngine

NAME = "better-sqlite3-multiple-ciphers"
Broken = Callable[[str, str], bool]
"""Whether an addon release (first) breaks on a Node version (second)."""


class Told(NullObserver):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warning(self, text: str) -> None:
        self.warnings.append(text)


def node(version: str, napi: str = "10") -> NodeBuild:
    return NodeBuild(
        version=version,
        source="npm",
        directory=Path("/nodes") / version,
        node_sha256="",
        versions={"napi": napi},
        config_sha256="",
    )


def package(version: str, napi: int | None = None) -> AddonPackage:
    return AddonPackage(name=NAME, version=version, napi=napi)


def built(environment: Environment) -> AddonBuild:
    return AddonBuild(
        key="0",
        directory=Path("/builds"),
        entry="package/lib/index.js",
        binding="a.node",
        binding_sha256=environment.id,
        sqlite3_object_sha256="0",
        compiler="g++",
        flags={},
        elapsed_s=1.0,
    )


def fake_builds(
    monkeypatch: pytest.MonkeyPatch,
    releases: Sequence[AddonPackage],
    broken: Broken,
    log: Path | None = None,
) -> list[str]:
    """Releases newest first, and a compiler that answers at once; returns the releases that were tried."""
    tried: list[str] = []

    def offer(_request: AddonRequest, _nodes: object, _observer: object) -> Iterator[AddonPackage]:
        yield from releases

    def build_all(
        _engine: object, environments: Sequence[Environment], *, observer: Observer
    ) -> dict[str, AddonBuild | BuildFailure]:
        tried.append(environments[0].addon.version if environments[0].addon else "")
        return {
            e.id: BuildFailure(reason=f"{e.addon.version} breaks on {e.node.version}", log=log)
            if broken(e.addon.version, e.node.version)
            else built(e)
            for e in environments
            if e.addon is not None and e.addon.kind == "package"
        }

    def loads(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(addons, "usable_packages", offer)
    monkeypatch.setattr(build, "build_all", build_all)
    monkeypatch.setattr(build, "load_test", loads)
    return tried


def engine(*, without: Sequence[str] = (), name: str = "docker") -> FakeEngine:
    def answer(task: Task) -> Outcome:
        missing = task.command[0] in without
        return Outcome(exit_code=127 if missing else 0, stdout="" if missing else f"{task.command[0]} 12.2")

    return FakeEngine(default=answer, name="local" if name == "local" else "docker")


def make(
    nodes: Sequence[NodeBuild], observer: Observer | None = None, addon: str = NAME
) -> tuple[tuple[Environment, ...], dict[str, AddonBuild], dict[str, BuildFailure]]:
    spec = Spec(versions=("20", "24"), addon=addon)
    return prepare.make_environments(spec, nodes, engine(), observer or NullObserver())


# -- which release ------------------------------------------------------------------------------------------


def test_an_older_release_that_works_everywhere_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    releases = [package(v) for v in ("3.0.0", "2.0.0", "1.0.0")]
    tried = fake_builds(monkeypatch, releases, lambda release, _node: release == "3.0.0")
    told = Told()
    environments, builds, broken = make([node("20.0.0"), node("24.0.0")], told)
    assert tried == ["3.0.0", "2.0.0"]
    assert [e.id for e in environments] == list(builds) == ["node20.0.0+bsm2.0.0", "node24.0.0+bsm2.0.0"]
    assert not broken
    assert not told.warnings, "what is not measured needs no warning"


def test_one_environment_that_always_breaks_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    releases = [package(f"{n}.0.0") for n in (9, 8, 7, 6, 5, 4)]
    tried = fake_builds(
        monkeypatch, releases, lambda release, version: version == "20.0.0" or release == "9.0.0"
    )
    told = Told()
    _, builds, broken = make([node("20.0.0"), node("24.0.0")], told)
    assert tried == ["9.0.0", "8.0.0", "7.0.0", "6.0.0"]
    assert list(builds) == ["node24.0.0+bsm8.0.0"], "the fewest broken, the newest of equals"
    assert list(broken) == ["node20.0.0+bsm8.0.0"]
    assert told.warnings == ["node20.0.0+bsm8.0.0: 8.0.0 breaks on 20.0.0"]


def test_an_exact_release_is_the_only_one_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = fake_builds(monkeypatch, [package("3.0.0"), package("2.0.0")], lambda *_: True)
    _, builds, broken = make([node("20.0.0")], addon=f"{NAME}@3.0.0")
    assert tried == ["3.0.0"]
    assert (len(builds), len(broken)) == (0, 1)


def test_no_release_at_all_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_builds(monkeypatch, [], lambda *_: False)
    with pytest.raises(NothingBuiltError, match="no release of"):
        make([node("20.0.0")])


@pytest.mark.parametrize(
    ("name", "without", "words"),
    [
        ("local", ["g++", "python3"], "no g.. and python3: install g.., make and python3"),
        ("local", ["make"], "no make"),
        ("docker", ["g++"], "--base-image"),
    ],
)
def test_without_a_compiler_no_release_is_tried(
    monkeypatch: pytest.MonkeyPatch, name: str, without: list[str], words: str
) -> None:
    tried = fake_builds(monkeypatch, [package("3.0.0")], lambda *_: False)
    spec = Spec(versions=("24",))
    with pytest.raises(EngineMissingError, match=words):
        prepare.make_environments(spec, [node("24.0.0")], engine(without=without, name=name), NullObserver())
    assert not tried
    shipped = msgspec.structs.replace(spec, prebuilt=True)
    bare = engine(without=without, name=name)
    assert prepare.make_environments(shipped, [node("24.0.0")], bare, NullObserver())[1]


# -- a whole plan -------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return create_run(Path("reports/run"))


def plan(
    monkeypatch: pytest.MonkeyPatch, folder: RunFolder, spec: Spec, nodes: Sequence[NodeBuild]
) -> prepare.StoredPlan:
    monkeypatch.setattr(prepare, "fetch", lambda *_: tuple(nodes))
    return prepare.prepare(spec, resolve.Resolved(nodes=()), folder, engine(), Told())


def test_where_nothing_builds_the_log_is_kept_and_named(
    monkeypatch: pytest.MonkeyPatch, folder: RunFolder, tmp_path: Path
) -> None:
    log = tmp_path / "build.log"
    log.write_text("error: no")
    fake_builds(monkeypatch, [package("3.0.0")], lambda *_: True, log)
    with pytest.raises(NothingBuiltError, match=r"breaks on 20.0.0 \(log: reports/run/builds/failed-0.log"):
        plan(monkeypatch, folder, Spec(versions=("20",)), [node("20.0.0")])
    assert (folder.path / "builds/failed-0.log").read_text() == "error: no"
    assert not (folder.path / "plan.json").exists()


def test_node_sqlite_that_no_version_has_is_nothing_built(
    monkeypatch: pytest.MonkeyPatch, folder: RunFolder
) -> None:
    fake_builds(
        monkeypatch, [AddonPackage(name="node:sqlite", version="", kind="node:sqlite")], lambda *_: False
    )
    spec = Spec(versions=("20",), addon="node:sqlite")
    with pytest.raises(NothingBuiltError, match="it came with"):
        plan(monkeypatch, folder, spec, [node("20.0.0")])


def test_a_baseline_that_was_asked_for_must_work(monkeypatch: pytest.MonkeyPatch, folder: RunFolder) -> None:
    fake_builds(monkeypatch, [package("3.0.0")], lambda _release, version: version == "20.0.0")
    nodes = [node("20.0.0"), node("24.0.0")]
    with pytest.raises(NothingBuiltError, match=r"the baseline node20.* does not work.*--baseline"):
        plan(monkeypatch, folder, Spec(versions=("20", "24"), baseline="20"), nodes)
    stored = plan(monkeypatch, folder, Spec(versions=("20", "24")), nodes)
    assert stored.plan.baseline == "node24.0.0+bsm3.0.0"
    assert [failure.environment for failure in stored.failures] == ["node20.0.0+bsm3.0.0"]


@pytest.mark.parametrize("command", ["sqlite", "js"])
def test_a_node_that_nothing_runs_on_costs_its_own_cells(
    monkeypatch: pytest.MonkeyPatch, folder: RunFolder, command: Literal["sqlite", "js"]
) -> None:
    built_for: list[str] = []

    def breaks(_release: str, version: str) -> bool:
        built_for.append(version)
        return False

    fake_builds(monkeypatch, [package("3.0.0")], breaks)
    slim = msgspec.structs.replace(node("22.0.0"), source="image")
    nodes = [node("10.24.1"), slim, node("24.0.0"), node("14.13.1")]
    stored = plan(monkeypatch, folder, Spec(command=command, versions=("10", "22", "24", "14")), nodes)
    lost = {failure.environment[:6]: failure.reason for failure in stored.failures}
    assert "14.13.1 is the oldest that can be measured" in lost.pop("node10")
    if command == "js":
        assert not lost, "pure JavaScript needs no headers"
        assert stored.plan.baseline == "node22.0.0"
    else:
        assert "has no headers (include/node)" in lost.pop("node22")
        assert not lost
        assert stored.plan.baseline == "node24.0.0+bsm3.0.0"
        assert built_for == ["24.0.0", "14.13.1"]


OWN = workloads.own_operation


def refuse_files(
    monkeypatch: pytest.MonkeyPatch, refused: Mapping[str, str], defined: Mapping[str, Sequence[str]] = {}
) -> None:
    """Files answer with their operations (default: the one named after them), some with a refusal."""

    def read(
        _engine: object, _nodes: object, _fixtures: object, _folder: object, file: str, family: Family
    ) -> object:
        if file in refused:
            return workloads.Refusal(reason=refused[file])
        return tuple(OWN(file, family, name) for name in defined.get(file, ())) or (OWN(file, family),)

    monkeypatch.setattr(workloads, "read_workload", read)
    monkeypatch.setattr(prepare, "fixtures", Path)


def test_a_file_that_does_not_load_costs_its_own_cells(
    monkeypatch: pytest.MonkeyPatch, folder: RunFolder
) -> None:
    fake_builds(monkeypatch, [package("3.0.0")], lambda _release, version: version == "20.0.0")
    refuse_files(monkeypatch, {"bad.mjs": "bad.mjs cannot be loaded: SyntaxError"})
    spec = Spec(versions=("20", "22", "24"), ops=("select_point",), workloads=("good.mjs", "w/bad.mjs"))
    stored = plan(monkeypatch, folder, spec, [node("20.0.0"), node("22.0.0"), node("24.0.0")])
    assert [operation.name for operation in stored.plan.operations] == ["select_point", "good", "bad"]
    assert [(f.environment[:6], f.op, f.stage) for f in stored.failures] == [
        ("node20", None, "build"),
        ("node22", "bad", "load"),
        ("node24", "bad", "load"),
    ]
    assert stored.failures[-1].reason == "bad.mjs cannot be loaded: SyntaxError"
    left = measure.cells_left(stored.plan, stored.failures)
    assert left == {e.id: ("select_point", "good") for e in stored.plan.environments[1:]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ops": ("nowhere",)}, r"--ops names 'nowhere', which is neither built in nor in .* \(one, other\)"),
        ({"workloads": ("many.mjs", "one.mjs")}, "two workloads define the operation one"),
        ({"workloads": ("twice.mjs",)}, "select_point has the name of a built-in operation; rename it"),
    ],
)
def test_what_only_the_files_tell_is_refused_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch, folder: RunFolder, changes: dict[str, object], words: str
) -> None:
    tried = fake_builds(monkeypatch, [package("3.0.0")], lambda *_: False)
    refuse_files(monkeypatch, {}, {"many.mjs": ["one", "other"], "twice.mjs": ["select_point"]})
    spec = msgspec.structs.replace(Spec(versions=("24",), workloads=("many.mjs",)), **changes)
    with pytest.raises(UsageError, match=words):
        plan(monkeypatch, folder, spec, [node("24.0.0")])
    assert not tried


# -- files of the user --------------------------------------------------------------------------------------


def test_stored_inputs_are_found_from_everywhere(
    monkeypatch: pytest.MonkeyPatch, folder: RunFolder, tmp_path: Path
) -> None:
    (tmp_path / "mine.mjs").write_text("export const run = () => 1;")
    (tmp_path / "a.diff").write_text("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
    (tmp_path / "addon").mkdir()
    typed = Spec(
        versions=("20", "fix=path:./out", "path:/opt/node"),
        baseline="path:./out",
        addon="path:addon",
        patch="a.diff",
        workloads=("mine.mjs",),
    )
    stored = inputs.keep_inputs(typed, folder)
    assert stored.versions == ("20", "fix=path:../../out", "path:/opt/node")
    assert stored.baseline == "path:../../out"
    assert stored.addon == "path:../../addon"
    assert (stored.workloads, stored.patch) == (("workloads/mine.mjs",), "addon.patch")
    spec_file = folder.write("spec.toml", dump_spec(stored))
    again = load_spec(spec_file)
    inputs.check_inputs(again)
    assert Path(again.addon.removeprefix("path:")).resolve() == tmp_path / "addon"

    seen: list[Spec] = []

    def look(spec: Spec, *_: object) -> tuple[tuple[Environment, ...], Mapping[str, AddonBuild], object]:
        seen.append(spec)
        raise NothingBuiltError("enough")

    monkeypatch.setattr(prepare, "make_environments", look)
    nothing = selection.Selection(operations=(), refused={})
    monkeypatch.setattr(prepare, "_selection", lambda *_: nothing)
    for given in (stored, again):
        with pytest.raises(NothingBuiltError, match="enough"):
            plan(monkeypatch, folder, given, [node("20.0.0")])
        assert seen[-1].versions == ("20", "fix=path:out", "path:/opt/node")
        assert seen[-1].baseline == "path:out"
        assert seen[-1].addon == "path:addon"
        assert seen[-1].patch == "reports/run/addon.patch"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workloads": ("none.mjs",)}, "--workload none.mjs cannot be read"),
        ({"workloads": ("notes.txt",)}, "must be a .mjs"),
        ({"patch": "none.diff"}, "--patch none.diff cannot be read"),
        ({"patch": "notes.txt"}, "no unified diff"),
        ({"patch": "."}, "--patch . cannot be read"),
        ({"addon": "path:./nowhere"}, "does not exist"),
        ({"cpus": "0,777"}, "names CPU 777.*it can use 0,1"),
        ({"ops": ("wlx",), "workloads": ("wl.mjs",)}, r"'wlx', which is neither built in nor in .* \(wl\)"),
        ({"workloads": ("json_parse.mjs",)}, "json_parse has the name of a built-in operation; rename it"),
        ({"command": "js", "ops": ("boundary.select_range",)}, "works on an addon, which this command"),
        ({"ops": ("none",)}, "nothing would be measured"),
    ],
)
def test_missing_inputs_are_refused_before_there_is_a_run(
    changes: dict[str, object], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(host, "usable_cpus", lambda: (0, 1))
    Path("notes.txt").write_text("no diff\n")
    for name in ("wl.mjs", "json_parse.mjs"):
        Path(name).write_text("export const run = () => 1;")
    spec = msgspec.structs.replace(Spec(versions=("24",)), **changes)
    with pytest.raises(UsageError, match=words):
        resolve.resolve(spec, NullObserver(), "docker")
    assert {path.name for path in tmp_path.iterdir()} == {"notes.txt", "wl.mjs", "json_parse.mjs"}


# -- what would be run --------------------------------------------------------------------------------------


@pytest.fixture
def releases(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every request gives the version that it names; returns the platforms that were asked for."""
    platforms: list[str] = []

    def answer(requests: Sequence[NodeRequest], platform: str, _observer: object) -> tuple[ResolvedNode, ...]:
        platforms.append(platform)
        return tuple(ResolvedNode(request=r, version=f"{r.selector}.1.0", integrity=None) for r in requests)

    monkeypatch.setattr(sources, "resolve_all", answer)
    return platforms


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [
        (None, "20"),
        ("24", "24"),
        ("b", "24"),
        ("v24.1.0", "24"),
        ("b:node24.1.0+bsm12.11.1", "24"),
        ("b=24", "24"),
    ],
)
def test_the_baseline_is_known_before_anything_is_fetched(
    releases: list[str], baseline: str | None, expected: str
) -> None:
    spec = Spec(versions=("20", "b=24"), baseline=baseline)
    resolved = resolve.resolve(spec, NullObserver(), "docker")
    assert resolve.baseline_sketch(spec, resolved).node.version == f"{expected}.1.0"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (Spec(versions=("20", "24"), baseline="22"), "--baseline 22 is not among.*20.1.0, 24.1.0"),
        (Spec(versions=("24",), ops=("none",)), "nothing would be measured"),
        (Spec(versions=("24",), ops=()), "nothing would be measured"),
        (Spec(versions=("24",), ops=("selct_range",)), "select_range"),
    ],
)
def test_usage_errors_come_first(releases: list[str], spec: Spec, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolve.resolve(spec, NullObserver(), "docker")


def test_the_platform_is_that_of_the_engine(releases: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    resolve.resolve(Spec(versions=("24",)), NullObserver(), "docker")
    resolve.resolve(Spec(versions=("24",)), NullObserver(), "local")
    assert releases == ["linux-arm64", "darwin-arm64"]


# -- addons on one Node version -----------------------------------------------------------------------------

PAIR = Spec(axis="addon", versions=("24",), addons=(f"{NAME}@1.0.0", "new=2.0.0"))


@pytest.fixture
def published(releases: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry that has 1.0.0 and 2.0.0 of everything; `releases` gives the Node versions."""

    def look(request: AddonRequest, _versions: Sequence[str]) -> str:
        version = request.selector or "2.0.0"
        if version not in {"1.0.0", "2.0.0"}:
            raise UsageError(f"npm has no {request.name} {version}; the nearest is 2.0.0")
        return version

    monkeypatch.setattr(addons, "named_release", look)


def offer_what_is_asked(monkeypatch: pytest.MonkeyPatch, *, encrypted: bool = True) -> None:
    """Packages as requested, fetched by nobody."""

    def offer(request: AddonRequest, *_: object) -> Iterator[AddonPackage]:
        plain = request.name == "node:sqlite"
        yield AddonPackage(
            name=request.name,
            version="" if plain else request.selector or "",
            kind="node:sqlite" if plain else "package",
            encrypted=encrypted and not plain,
        )

    monkeypatch.setattr(addons, "usable_packages", offer)


def compared(*items: tuple[str | None, str]) -> tuple[resolve.ResolvedAddon, ...]:
    return tuple(resolve.ResolvedAddon(label=label, name=NAME, version=version) for label, version in items)


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize(
    ("baseline", "expected"),
    [(None, "1"), ("2.0.0", "2"), ("new", "2"), ("1", "1"), ("new:node24.1.0+bsm2.0.0-patch01234567", "2")],
)
def test_compared_addons_are_bound_to_releases_and_one_is_the_baseline(
    baseline: str | None, expected: str
) -> None:
    spec = msgspec.structs.replace(PAIR, baseline=baseline)
    resolved = resolve.resolve(spec, NullObserver(), "docker")
    assert resolved.addons == compared((None, "1.0.0"), ("new", "2.0.0"))
    assert [e.id for e in resolve.sketches(spec, resolved)] == [
        "node24.1.0+bsm1.0.0",
        "new:node24.1.0+bsm2.0.0",
    ]
    found = resolve.baseline_sketch(spec, resolved)
    assert found.addon is not None
    assert found.addon.version == f"{expected}.0.0"


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"addons": (f"{NAME}@1.0.0", "3.0.0")}, "npm has no .* 3.0.0; the nearest"),
        ({"axis": "node", "addons": (), "addon": f"{NAME}@3.0.0"}, "npm has no .* 3.0.0; the nearest"),
        ({"addons": (f"{NAME}@2.0.0", NAME)}, "two items of --addon are .* 2.0.0; give them labels"),
        (
            {"addons": (NAME, "node:sqlite")},
            "encrypt the database with chacha20 and node:sqlite has no ciphers",
        ),
        ({"addons": (NAME, "better-sqlite3")}, "better-sqlite3 2.0.0 has no ciphers.*--cipher none"),
        ({"addons": (NAME, "path:./nowhere")}, "--addon path:./nowhere does not exist"),
        ({"baseline": "24.1.0"}, "--baseline 24.1.0 is not among the addons"),
    ],
)
def test_addons_that_cannot_be_compared_are_refused_first(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolve.resolve(msgspec.structs.replace(PAIR, **changes), NullObserver(), "docker")


@pytest.mark.usefixtures("published")
def test_without_a_cipher_all_addons_do_the_same_work() -> None:
    spec = msgspec.structs.replace(PAIR, addons=(NAME, "better-sqlite3", "node:sqlite"), cipher="none")
    resolved = resolve.resolve(spec, NullObserver(), "docker")
    assert [addon.shown for addon in resolved.addons] == [
        f"{NAME} 2.0.0",
        "better-sqlite3 2.0.0",
        "node:sqlite",
    ]


@pytest.mark.usefixtures("published")
def test_a_package_of_ones_own_is_known_by_its_own_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    own = AddonPackage(name="mine", version="9.0.0", encrypted=False)
    monkeypatch.setattr(addons, "path_addon", lambda *_: own)
    spec = msgspec.structs.replace(PAIR, addons=("better-sqlite3", "path:mine"))
    resolved = resolve.resolve(spec, NullObserver(), "docker")
    assert resolved.addons[1] == resolve.ResolvedAddon(label=None, name="mine", version="9.0.0")
    with pytest.raises(UsageError, match=r"mine 9.0.0 has no ciphers"):
        resolve.resolve(msgspec.structs.replace(spec, addons=(NAME, "path:mine")), NullObserver(), "docker")


def made_of(
    spec: Spec, addons_: Sequence[resolve.ResolvedAddon]
) -> tuple[tuple[Environment, ...], dict[str, AddonBuild], dict[str, BuildFailure]]:
    return prepare.make_environments(spec, [node("24.1.0")], engine(), NullObserver(), addons_)


def test_an_addon_that_does_not_build_is_lost_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_builds(monkeypatch, [], lambda release, _node: release == "2.0.0")
    offer_what_is_asked(monkeypatch)
    spec = msgspec.structs.replace(PAIR, addons=(*PAIR.addons, "1.5.0"))
    environments, builds, broken = made_of(spec, compared((None, "1.0.0"), ("new", "2.0.0"), (None, "1.5.0")))
    assert [(e.id, e.label) for e in environments] == [
        ("node24.1.0+bsm1.0.0", None),
        ("new:node24.1.0+bsm2.0.0", "new"),
        ("node24.1.0+bsm1.5.0", None),
    ]
    assert list(builds) == ["node24.1.0+bsm1.0.0", "node24.1.0+bsm1.5.0"]
    assert broken["new:node24.1.0+bsm2.0.0"].reason == "2.0.0 breaks on 24.1.0"


def test_one_addon_against_itself_under_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_builds(monkeypatch, [], lambda *_: False)
    offer_what_is_asked(monkeypatch)
    spec = msgspec.structs.replace(PAIR, addons=(f"a={NAME}@1.0.0", "b=1.0.0"))
    _, builds, _ = made_of(spec, compared(("a", "1.0.0"), ("b", "1.0.0")))
    assert list(builds) == ["a:node24.1.0+bsm1.0.0", "b:node24.1.0+bsm1.0.0"]


def test_what_a_range_meant_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_builds(monkeypatch, [], lambda *_: False)
    offer_what_is_asked(monkeypatch)
    spec = msgspec.structs.replace(PAIR, addons=(f"{NAME}@^1", NAME))
    environments, _, _ = made_of(spec, compared((None, "1.9.0"), (None, "2.0.0")))
    assert [e.addon.version for e in environments if e.addon is not None] == ["1.9.0", "2.0.0"]


def test_node_sqlite_is_never_a_shipped_binary(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_builds(monkeypatch, [], lambda *_: False)
    offer_what_is_asked(monkeypatch)
    spec = msgspec.structs.replace(
        PAIR, addons=(f"{NAME}@1.0.0", "node:sqlite"), prebuilt=True, cipher="none"
    )
    resolved = (*compared((None, "1.0.0")), resolve.ResolvedAddon(label=None, name="node:sqlite", version=""))
    environments, _, broken = made_of(spec, resolved)
    assert [e.id for e in environments] == ["node24.1.0+bsm1.0.0-prebuilt", "node24.1.0+nodesqlite"]
    assert not broken


def test_ciphers_of_other_packages_are_known_when_they_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_builds(monkeypatch, [], lambda *_: False)
    offer_what_is_asked(monkeypatch)
    spec = msgspec.structs.replace(PAIR, addons=("fork@1.0.0", "node:sqlite"))
    fork = resolve.ResolvedAddon(label=None, name="fork", version="1.0.0")
    inside = resolve.ResolvedAddon(label=None, name="node:sqlite", version="")
    with pytest.raises(UsageError, match=r"fork 1.0.0 would encrypt"):
        made_of(spec, (fork, inside))
    offer_what_is_asked(monkeypatch, encrypted=False)
    assert len(made_of(spec, (fork, inside))[0]) == 2


def test_a_changed_spec_does_not_go_with_the_stored_releases() -> None:
    with pytest.raises(StoredFileError, match="names other addons"):
        made_of(PAIR, compared((None, "1.0.0")))


def test_releases_of_an_older_run_can_be_read(folder: RunFolder) -> None:
    folder.write_json("resolved.json", "resolved", resolve.RESOLVED_SCHEMA, {"nodes": []})
    read = folder.read_json("resolved.json", "resolved", resolve.RESOLVED_SCHEMA, resolve.Resolved)
    assert read == resolve.Resolved(nodes=())


# -- a fix that is judged -----------------------------------------------------------------------------------

DIFF = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
JUDGED = Spec(
    versions=("baseline=20.0.0", "regressed=24.0.0", "fix=24.0.0"),
    baseline="regressed",
    addon=NAME,
    fix=Fix(kind="node"),
)


def sides(*versions: str) -> list[NodeBuild]:
    return [
        msgspec.structs.replace(node(version), label=label)
        for label, version in zip(ARMS, versions, strict=True)
    ]


def patch_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patches that apply to everything, and are known by their file."""

    def patched(package: AddonPackage, patch: str | None, _shown: str | None = None) -> AddonPackage:
        digest = None if patch is None else Path(patch).name * 4
        return msgspec.structs.replace(package, patch_sha256=digest)

    monkeypatch.setattr(addons, "patched", patched)


def judged(spec: Spec, *versions: str) -> tuple[tuple[Environment, ...], dict[str, BuildFailure]]:
    environments, _, broken = prepare.make_environments(spec, sides(*versions), engine(), NullObserver())
    return environments, broken


def test_a_patch_is_on_the_fix_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = fake_builds(monkeypatch, [package("2.0.0"), package("1.0.0")], lambda *_: False)
    patch_by_name(monkeypatch)
    spec = msgspec.structs.replace(JUDGED, fix=Fix(kind="patch", build="fix.patch"))
    environments, broken = judged(spec, "20.0.0", "24.0.0", "24.0.0")
    assert [(e.label, e.node.version) for e in environments] == [
        ("baseline", "20.0.0"),
        ("regressed", "24.0.0"),
        ("fix", "24.0.0"),
    ]
    assert [e.addon.patch_sha256 for e in environments if e.addon] == [None, None, "fix.patch" * 4]
    assert {e.addon.version for e in environments if e.addon} == {"2.0.0"}
    assert (tried, broken) == (["2.0.0", "2.0.0"], {})


def test_a_patch_that_does_not_apply_is_refused_before_anything_is_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried = fake_builds(monkeypatch, [package("2.0.0")], lambda *_: False)

    def refuse(_package: AddonPackage, patch: str | None, shown: str | None = None) -> AddonPackage:
        raise UsageError(f"{shown} does not apply to this release of the addon") if patch else AssertionError

    monkeypatch.setattr(addons, "patched", refuse)
    fix = Fix(kind="patch", build="fix.patch", name="mine.diff")
    spec = msgspec.structs.replace(JUDGED, fix=fix)
    with pytest.raises(UsageError, match=r"--fix mine.diff does not apply.* 2.0.0; name the release"):
        judged(spec, "20.0.0", "24.0.0", "24.0.0")
    assert tried == []


def test_an_addon_is_on_the_fix_alone_and_its_failure_chooses_no_other_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = fake_builds(monkeypatch, [], lambda release, _node: release == "3.0.0-mine")
    offer_what_is_asked(monkeypatch)
    spec = msgspec.structs.replace(
        JUDGED, addon=f"{NAME}@1.0.0", fix=Fix(kind="addon", build=f"{NAME}@3.0.0-mine")
    )
    environments, broken = judged(spec, "20.0.0", "24.0.0", "24.0.0")
    assert [e.addon.version for e in environments if e.addon] == ["1.0.0", "1.0.0", "3.0.0-mine"]
    assert list(broken) == [environments[2].id]
    assert tried == ["1.0.0", "3.0.0-mine"]


def test_a_node_fix_is_like_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_builds(monkeypatch, [package("2.0.0")], lambda *_: False)
    environments, _ = judged(JUDGED, "20.0.0", "24.0.0", "24.1.0")
    assert [e.id.partition(":")[0] for e in environments] == list(ARMS)
    assert environments[2].node.version == "24.1.0"


def test_a_patch_on_the_newer_of_two_addons(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_builds(monkeypatch, [], lambda *_: False)
    offer_what_is_asked(monkeypatch)
    patch_by_name(monkeypatch)
    spec = msgspec.structs.replace(
        JUDGED,
        axis="addon",
        versions=("24.1.0",),
        addons=(f"baseline={NAME}@1.0.0", f"regressed={NAME}@2.0.0", f"fix={NAME}@2.0.0"),
        fix=Fix(kind="patch", build="fix.patch"),
    )
    made = compared(("baseline", "1.0.0"), ("regressed", "2.0.0"), ("fix", "2.0.0"))
    environments, _, _ = made_of(spec, made)
    assert [(e.label, e.addon.version, e.addon.patch_sha256) for e in environments if e.addon] == [
        ("baseline", "1.0.0", None),
        ("regressed", "2.0.0", None),
        ("fix", "2.0.0", "fix.patch" * 4),
    ]


def test_an_addon_without_ciphers_is_no_fix_for_one_with(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_builds(monkeypatch, [package("2.0.0")], lambda *_: False)
    spec = msgspec.structs.replace(JUDGED, fix=Fix(kind="addon", build="node:sqlite"))
    plain = AddonPackage(name="node:sqlite", version="", kind="node:sqlite", encrypted=False)
    offers = iter([[package("2.0.0")], [plain]])
    monkeypatch.setattr(addons, "usable_packages", lambda *_: iter(next(offers)))
    with pytest.raises(UsageError, match="has no ciphers"):
        judged(spec, "20.0.0", "24.0.0", "24.0.0")


def test_files_of_the_fix_go_into_the_run_folder(folder: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "mine.diff").write_text(DIFF)
    (tmp_path / "addon").mkdir()
    patch = msgspec.structs.replace(JUDGED, fix=Fix(kind="patch", build="mine.diff", name="mine.diff"))
    inputs.check_inputs(patch)
    stored = inputs.keep_inputs(patch, folder)
    assert stored.fix == Fix(kind="patch", build="fix.patch", name="mine.diff")
    assert (folder.path / "fix.patch").read_text() == DIFF
    addon = msgspec.structs.replace(JUDGED, fix=Fix(kind="addon", build="path:addon"))
    inputs.check_inputs(addon)
    kept = inputs.keep_inputs(addon, folder)
    assert kept.fix is not None
    assert kept.fix.build == "path:../../addon"
    missing = msgspec.structs.replace(JUDGED, fix=Fix(kind="addon", build="path:./nowhere"))
    with pytest.raises(UsageError, match=r"--fix path:./nowhere does not exist"):
        inputs.check_inputs(missing)
    gone = msgspec.structs.replace(JUDGED, fix=Fix(kind="patch", build="gone.diff"))
    with pytest.raises(UsageError, match=r"--fix gone.diff cannot be read"):
        inputs.check_inputs(gone)


@pytest.mark.usefixtures("published")
def test_a_release_of_the_fix_that_does_not_exist_is_refused_first() -> None:
    spec = msgspec.structs.replace(JUDGED, fix=Fix(kind="addon", build=f"{NAME}@3.0.0"))
    with pytest.raises(UsageError, match=r"npm has no .* 3.0.0"):
        resolve.resolve(spec, NullObserver(), "docker")


def test_an_operation_that_is_not_measured_has_no_fix(
    monkeypatch: pytest.MonkeyPatch, folder: RunFolder
) -> None:
    fix = Fix(kind="node", ops=("select_blob_3k",))
    spec = msgspec.structs.replace(JUDGED, fix=fix, ops=("select_range",))
    with pytest.raises(UsageError, match=r"--op 'select_blob_3k' is not among"):
        plan(monkeypatch, folder, spec, sides("20.0.0", "24.0.0", "24.1.0"))


def test_without_a_working_baseline_nothing_is_judged(
    monkeypatch: pytest.MonkeyPatch, folder: RunFolder
) -> None:
    fake_builds(monkeypatch, [package("2.0.0")], lambda _release, version: version == "20.0.0")
    with pytest.raises(NothingBuiltError, match=r"the baseline does not work: 2.0.0 breaks on 20.0.0"):
        plan(monkeypatch, folder, JUDGED, sides("20.0.0", "24.0.0", "24.1.0"))
