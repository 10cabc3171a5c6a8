"""A bisection on simulated workers: the answer, skips, resumption, what is written, what is refused."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from investigator import addons, cache, cache_limit, cli, npm_client, prepare, resolve
from investigator.addons import AddonPackage
from investigator.bisect import candidates as candidates_module
from investigator.bisect import render, run
from investigator.bisect import request as request_module
from investigator.bisect.commits import LIKELY, check_clone, commits_between
from investigator.bisect.request import Request, Wanted, make_request
from investigator.bisect.result import Result
from investigator.build import AddonBuild, BuildFailure
from investigator.engine.interface import Engine
from investigator.errors import HostUnfitError, StoredFileError, UsageError
from investigator.invoke import Surroundings
from investigator.measure import Bench, Calibration, calibrate, read_rounds
from investigator.nodes import dist, sources
from investigator.nodes.history import Release
from investigator.nodes.interface import NodeBuild, NodeRequest, ResolvedNode
from investigator.nodes.npm import NpmNodes
from investigator.observer import NullObserver, Observer
from investigator.operations import Operation
from investigator.options import Choices, make_spec
from investigator.plan import Environment, Plan, environment_id
from investigator.spec import Spec, dump_spec
from investigator.stats import bisection
from investigator.store import RunFolder
from tests.fakes.dist_site import DistSite, serve
from tests.fakes.worker_engine import WorkerEngine

OP = "select_range"
VERSIONS = ("23.9.0", "23.10.0", "23.11.0", "24.0.0", "24.1.0", "24.2.0", "24.3.0")
ADDON = AddonPackage(name="better-sqlite3-multiple-ciphers", version="12.11.1")


def node(tmp_path: Path, version: str) -> NodeBuild:
    directory = tmp_path / "nodes" / version
    (directory / "bin").mkdir(parents=True, exist_ok=True)
    (directory / "bin/node").touch()
    (directory / "x.node").touch()
    return NodeBuild(
        version=version,
        source="npm",
        directory=directory,
        node_sha256="0" * 64,
        versions={"node": version, "v8": f"13.{version[:2]}.1", "modules": version.split(".", maxsplit=1)[0]},
        config_sha256="1" * 64,
    )


def environment_of(build: NodeBuild) -> Environment:
    return Environment(id=environment_id(build, ADDON, "source"), label=None, node=build, addon=ADDON)


def build_of(build: NodeBuild) -> AddonBuild:
    return AddonBuild(
        key=f"k{build.version}",
        directory=build.directory,
        entry="package/lib/index.js",
        binding="x.node",
        binding_sha256="",
        sqlite3_object_sha256=None,
        compiler="",
        flags={},
        elapsed_s=0.0,
    )


def version_of(environment: str) -> str:
    return environment.removeprefix("node").partition("+")[0]


LOOKS = (8,)


@pytest.fixture(autouse=True)
def _one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers here are quiet: more looks would only take time."""
    monkeypatch.setattr(bisection, "SEARCH_LOOKS", LOOKS)
    monkeypatch.setattr(bisection, "VERIFY_LOOKS", LOOKS)


class Laboratory:
    """A bench whose releases are as slow as `cost` says; some do not build, some cannot be fetched."""

    def __init__(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        cost: Callable[[str], float],
        *,
        broken: tuple[str, ...] = (),
        missing: tuple[str, ...] = (),
    ) -> None:
        self.tmp_path, self.broken, self.missing = tmp_path, broken, missing
        self.built: list[tuple[str, bool]] = []
        self.engine = WorkerEngine(
            lambda environment, _op: cost(environment[4:].partition("+")[0]), noise=0.004
        )
        monkeypatch.setattr(candidates_module, "node_at", self.node_at)
        monkeypatch.setattr(prepare, "fetch", self.fetch)
        monkeypatch.setattr(prepare, "one_environment", self.one_environment)
        monkeypatch.setattr("investigator.bisect.result._join", lambda *_: None)

    def bench(self) -> Bench:
        (self.tmp_path / "run/raw").mkdir(parents=True, exist_ok=True)
        folder = RunFolder(self.tmp_path / "run")
        ends = tuple(environment_of(node(self.tmp_path, v)) for v in (VERSIONS[0], VERSIONS[-1]))
        plan = Plan(
            spec=Spec(versions=(VERSIONS[0], VERSIONS[-1]), passes=4),
            run_id="r",
            environments=ends,
            baseline=ends[0].id,
            operations=(Operation(name=OP, family="sqlite", module="m.mjs", group="sqlite"),),
        )
        around = Surroundings(
            plan=plan,
            builds={e.id: build_of(e.node) for e in ends},
            fixtures=self.tmp_path,
            workloads=self.tmp_path,
            mailbox=None,
        )
        return Bench(
            engine=self.engine,
            around=around,
            folder=folder,
            observer=NullObserver(),
            host_control=lambda: None,
        )

    def search(self, find: str = "regression", most_steps: int | None = None) -> Result:
        bench = self.bench()
        return run.search(bench, self.calibration(bench), request_of(find, most_steps), OP)

    def calibration(self, bench: Bench) -> Calibration:
        return calibrate(bench, ())

    def node_at(self, _request: Request, version: str, _engine: str, _observer: Observer) -> ResolvedNode:
        if version in self.missing:
            raise UsageError(f"npm has no Node {version} for linux-x64")
        return ResolvedNode(
            request=NodeRequest(source="npm", selector=version), version=version, integrity=None
        )

    def fetch(self, resolved: resolve.Resolved, *_: object) -> tuple[NodeBuild, ...]:
        return tuple(node(self.tmp_path, wanted.version) for wanted in resolved.nodes)

    def one_environment(
        self,
        _spec: Spec,
        build: NodeBuild,
        _package: AddonPackage | None,
        _engine: Engine,
        _observer: Observer,
        *,
        borrowed: AddonBuild | None = None,
    ) -> tuple[Environment, AddonBuild | BuildFailure | None]:
        self.built.append((build.version, borrowed is not None))
        if build.version in self.broken:
            return environment_of(build), BuildFailure(reason="error: no member named GetPrototype")
        return environment_of(build), borrowed or build_of(build)


def request_of(find: str = "regression", most_steps: int | None = None) -> Request:
    old, new = VERSIONS[0], VERSIONS[-1]
    return Request(
        find="regression" if find == "regression" else "fixed",
        axis="node",
        good=old if find == "regression" else new,
        bad=new if find == "regression" else old,
        op=OP,
        source=NodeRequest(source="npm", selector="24"),
        addon=None,
        releases=tuple(Release(version=version) for version in VERSIONS),
        left_out=3,
        share_builds=True,
        most_steps=most_steps,
        git=None,
    )


def slow_from(first: str, factor: float = 1.5) -> Callable[[str], float]:
    return lambda version: 50_000.0 * (factor if VERSIONS.index(version) >= VERSIONS.index(first) else 1.0)


def rows(result: Result) -> dict[str, str]:
    return {row.version: row.place for row in result.releases}


def test_the_first_bad_release_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = Laboratory(tmp_path, monkeypatch, slow_from("24.0.0")).search()
    assert (result.outcome, result.first, result.last) == ("found", "24.0.0", "23.11.0")
    assert result.headline.startswith("24.0.0 is the first bad release: select_range +5")
    effect = result.changes[0].effect
    assert effect is not None
    assert effect.change_pct == pytest.approx(50.0, abs=3.0)
    assert rows(result)["24.0.0"] == "bad"
    assert rows(result)["23.11.0"] == "good"
    assert rows(result)["24.2.0"] == "not measured"
    assert result.steps <= 4


def test_the_first_fixed_release_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = Laboratory(tmp_path, monkeypatch, slow_from("24.1.0", 0.6)).search("fixed")
    assert (result.first, result.last) == ("24.1.0", "24.0.0")
    assert rows(result)["24.1.0"] == "good"
    assert rows(result)["24.0.0"] == "bad"
    assert "first fixed" in result.headline


def test_half_a_fix_on_the_way_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(version: str) -> float:
        place = VERSIONS.index(version)
        return 50_000.0 * (1.0 if place < 2 else 2.0 if place < 5 else 1.4)

    result = Laboratory(tmp_path, monkeypatch, cost).search()
    assert (result.first, len(result.changes)) == ("23.11.0", 2)
    other = result.changes[1]
    assert (other.first, other.named, other.asked) == ("24.2.0", True, False)
    assert "1 other change on the way" in result.headline
    assert "Other changes on the way" in render.markdown(result)


def test_the_wrong_question_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = Laboratory(tmp_path, monkeypatch, slow_from("24.1.0", 0.6)).search()
    assert (result.outcome, result.first, result.changes) == ("reversed", None, ())
    assert "a fix" in result.headline


def test_equal_ends_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = Laboratory(tmp_path, monkeypatch, lambda _version: 50_000.0).search()
    assert (result.outcome, result.steps) == ("no_difference", 1)
    assert "nothing to bisect" in result.headline


def test_a_release_that_does_not_build_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = Laboratory(tmp_path, monkeypatch, slow_from("24.0.0"), broken=("23.11.0",))
    result = laboratory.search()
    assert (result.outcome, result.first) == ("range", None)
    assert (result.changes[0].last, result.changes[0].first) == ("23.10.0", "24.0.0")
    assert "cannot narrow further than 23.10.0..24.0.0" in result.headline
    skipped = next(row for row in result.releases if row.version == "23.11.0")
    assert (skipped.place, "GetPrototype" in skipped.reason) == ("skipped", True)
    stored = json.loads((tmp_path / "run/skipped.json").read_text())
    assert list(stored["reasons"]) == ["23.11.0"]


def test_a_release_without_a_build_for_the_platform_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = Laboratory(tmp_path, monkeypatch, slow_from("24.0.0"), missing=("24.1.0",)).search()
    assert (result.first, rows(result)["24.1.0"]) in {("24.0.0", "skipped"), ("24.0.0", "not measured")}


def test_a_release_that_crashes_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = Laboratory(tmp_path, monkeypatch, slow_from("24.1.0"))
    laboratory.engine.fail_ops = {(environment_of(node(tmp_path, "24.0.0")).id, OP): "boom"}
    result = laboratory.search()
    assert rows(result)["24.0.0"] == "skipped"
    assert (result.changes[0].last, result.changes[0].first) == ("23.11.0", "24.1.0")


def test_a_registry_that_does_not_answer_skips_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laboratory = Laboratory(tmp_path, monkeypatch, slow_from("24.0.0"))

    def offline(*_: object) -> None:
        raise HostUnfitError("the registry does not answer")

    monkeypatch.setattr(candidates_module, "node_at", offline)
    with pytest.raises(HostUnfitError):
        laboratory.search()
    assert not (tmp_path / "run/skipped.json").exists()


def test_releases_of_one_abi_share_a_build_until_the_verification(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laboratory = Laboratory(tmp_path, monkeypatch, slow_from("24.0.0"))
    result = laboratory.search()
    assert ("24.0.0", True) in laboratory.built
    assert ("24.0.0", False) in laboratory.built
    row = next(row for row in result.releases if row.version == "24.0.0")
    assert (row.build, row.verified) == ("24.3.0", True)
    assert any("same ABI" in note for note in result.notes)


def test_nightlies_share_a_build_only_with_one_v8(tmp_path: Path) -> None:
    """Main takes a new V8 without a new ABI number."""

    def of(version: str, v8: str) -> Environment:
        build = node(tmp_path, version)
        return environment_of(msgspec.structs.replace(build, versions={**build.versions, "v8": v8}))

    shared = candidates_module._abi
    assert shared(of("24.0.0", "13.6.233.8")) == shared(of("24.0.1", "13.6.233.10"))
    first, second = (of(f"25.0.0-nightly2025060{day}abc", f"13.{day}.1.1") for day in (6, 7))
    assert first.node.versions["modules"] == second.node.versions["modules"]
    assert shared(first) != shared(second)
    assert shared(first) == shared(of("25.0.0-nightly20250609abc", "13.6.1.1"))


def test_each_step_measures_the_ends_and_the_release_interleaved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Laboratory(tmp_path, monkeypatch, slow_from("24.0.0")).search()
    first = sorted((tmp_path / "run/steps").iterdir())[0]
    records = read_rounds(RunFolder(first))
    assert len(records) == LOOKS[0]
    for record in records:
        versions = [version_of(m.invocation.environment) for m in record.invocations]
        assert sorted(versions) == sorted({VERSIONS[0], VERSIONS[-1], first.name.split("-")[2]})


@pytest.mark.parametrize("killed_at", [1, 60])
def test_killed_anywhere_it_goes_on_without_measuring_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    whole = Laboratory(tmp_path / "whole", monkeypatch, slow_from("24.0.0"))
    expected = whole.search()
    laboratory = Laboratory(tmp_path / "killed", monkeypatch, slow_from("24.0.0"))
    bench = laboratory.bench()
    calibration = laboratory.calibration(bench)
    start = len(laboratory.engine.jobs)

    def kill(_job: dict[str, object], number: int) -> None:
        if number == start + killed_at:
            raise KeyboardInterrupt

    laboratory.engine.before = kill
    with pytest.raises(KeyboardInterrupt):
        run.search(bench, calibration, request_of(), OP)
    laboratory.engine.before = None
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "killed").rglob("round.json")}
    measured = len(laboratory.engine.jobs)
    result = run.search(laboratory.bench(), calibration, request_of(), OP)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (result.first, result.steps) == (expected.first, expected.steps)
    processes = len(laboratory.engine.jobs) - measured
    assert processes == sum(
        len(record.invocations)
        for path in (tmp_path / "killed").rglob("plan.json")
        for record in read_rounds(RunFolder(path.parent))
        if RunFolder(path.parent).round_path(record.number) / "round.json" not in before
    )


def test_what_is_finished_is_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = Laboratory(tmp_path, monkeypatch, slow_from("24.0.0"))
    bench = laboratory.bench()
    calibration = laboratory.calibration(bench)
    first = run.search(bench, calibration, request_of(), OP)
    measured = len(laboratory.engine.jobs)
    laboratory.built.clear()
    assert run.search(laboratory.bench(), calibration, request_of(), OP) == first
    assert len(laboratory.engine.jobs) == measured
    assert laboratory.built == []


def test_with_a_bounded_cache_earlier_releases_give_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laboratory = Laboratory(tmp_path, monkeypatch, slow_from("24.0.0"))
    released: list[Path] = []
    bounds: list[int] = []
    monkeypatch.setattr(cache, "release", released.extend)
    monkeypatch.setattr(cache_limit, "keep_within", lambda limit_bytes, _notify: bounds.append(limit_bytes))
    bench = laboratory.bench()
    result = run.search(bench, laboratory.calibration(bench), request_of(), OP, 10**9)
    assert result.first == "24.0.0"
    assert bounds == [10**9] * result.steps
    versions = {path.name for path in released}
    assert versions
    assert versions.isdisjoint({VERSIONS[0], VERSIONS[-1]})
    assert all(row.v8 for row in result.releases if row.place != "not measured")


def test_a_workload_is_bisected_like_an_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = Laboratory(tmp_path, monkeypatch, slow_from("24.0.0"))
    bench = laboratory.bench()
    mine = Operation(name="mine", family="sqlite", module="mine.mjs", group="workload:mine.mjs")
    plan = msgspec.structs.replace(bench.plan, operations=(mine,))
    around = msgspec.structs.replace(bench.around, plan=plan)
    bench = msgspec.structs.replace(bench, around=around)
    result = run.search(bench, calibrate(bench, ()), request_of(), "mine")
    assert (result.first, result.op) == ("24.0.0", "mine")


# -- what is written ----------------------------------------------------------------------------------------


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    return Laboratory(tmp_path, monkeypatch, slow_from("24.0.0"), broken=("24.2.0",)).search()


def test_the_result_is_stored_and_read_back(result: Result, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write_json("bisect.json", "bisect", 1, result)
    assert run.stored(folder) == result


def test_a_bisection_is_no_run_with_verdicts_also_without_its_request(result: Result, tmp_path: Path) -> None:
    RunFolder(tmp_path).write_json("bisect.json", "bisect", 1, result)
    (tmp_path / "spec.toml").touch()
    for command in (["compare", str(tmp_path), str(tmp_path)], ["slopes", str(tmp_path)]):
        outcome = CliRunner().invoke(cli.app, command)
        assert (outcome.exit_code, outcome.stdout) == (2, "")
        assert "is a bisection" in " ".join(outcome.stderr.split())
    with pytest.raises(StoredFileError, match=r"request\.json is missing"):
        request_module.read_request(RunFolder(tmp_path))


def test_the_table_names_every_release_that_was_tried(result: Result) -> None:
    text = render.markdown(result)
    tried = [row for row in result.releases if row.place != "not measured"]
    for row in tried:
        assert f"| {row.version} |" in text
    assert "plot.svg" in text


def test_the_pictures_show_every_measured_release(result: Result) -> None:
    spec = render.chart(result)
    measured = [row.version for row in result.releases if row.effect is not None]
    assert [value["release"] for value in spec["data"]["values"]] == measured
    pictures = render.pictures(result)
    assert pictures["plot.svg"].startswith(b"<svg")
    assert pictures["plot.png"].startswith(b"\x89PNG")


def test_hostile_names_are_escaped(result: Result) -> None:
    evil = msgspec.structs.replace(result, op="<script>alert(1)</script>|x", headline="<b>\x1b[31m")
    assert "<script>" not in render.markdown(evil)
    assert "\x1b" not in render.markdown(evil)
    assert "\x1b" not in json.dumps(render.chart(evil))


# -- the question -------------------------------------------------------------------------------------------


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry with the releases of this file."""

    def resolve_all(requests: tuple[NodeRequest, ...], *_: object) -> tuple[ResolvedNode, ...]:
        return tuple(ResolvedNode(request=r, version=r.selector, integrity=None) for r in requests)

    monkeypatch.setattr(sources, "resolve_all", resolve_all)
    monkeypatch.setattr(
        NpmNodes,
        "releases",
        lambda _self, _request: tuple(Release(version=version) for version in VERSIONS),
    )
    monkeypatch.setattr(request_module, "_addon_for_all", lambda text, *_: text)
    listing = npm_client.Listing(
        versions=("12.9.0", "12.10.0", "12.11.1", "13.0.0-rc.1", "13.0.3"), published={}
    )
    monkeypatch.setattr(npm_client, "versions", lambda _name: listing.versions)
    monkeypatch.setattr(addons, "named_release", lambda request, _nodes: request.selector)


BASE = make_spec("sqlite", Choices(versions="lts", ops="none", workload=["w.mjs"], no_explain=True))
PLAIN = msgspec.structs.replace(BASE, workloads=())


def asked(**changes: object) -> tuple[Request, Spec]:
    wanted = Wanted(good="23.9.0", bad="24.3.0", op=OP, find="regression")
    return make_request(msgspec.structs.replace(wanted, **changes), PLAIN, "docker", NullObserver())


@pytest.mark.usefixtures("registry")
def test_the_request_lists_the_releases_between() -> None:
    request, spec = asked()
    assert [release.version for release in request.releases] == list(VERSIONS)
    assert (spec.versions, spec.ops, spec.command) == (("23.9.0", "24.3.0"), (OP,), "sqlite")


@pytest.mark.usefixtures("registry")
def test_a_fix_is_looked_for_from_the_bad_release_on() -> None:
    request, spec = asked(find="fixed", good="24.3.0", bad="24.0.0")
    assert (request.old, request.new) == ("24.0.0", "24.3.0")
    assert spec.versions == ("24.0.0", "24.3.0")


@pytest.mark.usefixtures("registry")
def test_operations_of_javascript_need_no_addon() -> None:
    assert asked(op="json_parse")[1].command == "js"
    assert asked(addon="none", op="json_parse")[1].command == "js"


@pytest.mark.usefixtures("registry")
def test_addon_releases_on_one_node() -> None:
    request, spec = asked(axis="addon", node="24.11.1", good="12.9.0", bad="13.0.3")
    assert [r.version for r in request.releases] == ["12.9.0", "12.10.0", "12.11.1", "13.0.3"]
    assert spec.addons == (
        "better-sqlite3-multiple-ciphers@12.9.0",
        "better-sqlite3-multiple-ciphers@13.0.3",
    )
    assert (spec.axis, spec.versions) == ("addon", ("24.11.1",))


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"good": "24.3.0", "bad": "23.9.0"}, "--find fixed"),
        ({"find": "fixed"}, "leave out --find fixed"),
        ({"bad": "23.9.0"}, "--good and --bad are both 23.9.0; name two releases"),
        ({"good": "path:./out"}, "not one release"),
        ({"good": "a=23.9.0"}, "not one release"),
        ({"good": "23.9.0,23.10.0"}, "not one release"),
        ({"op": "no_such_operation"}, "no operation"),
        ({"op": "all"}, "names"),
        ({"op": None}, "nothing to measure"),
        ({"lines": "24;rm"}, "--lines"),
        ({"most_steps": 0}, "--max-steps"),
        ({"node": "24"}, "--axis addon"),
        ({"axis": "addon"}, "--node"),
        ({"axis": "addon", "node": "24", "addon": "path:./x"}, "plain name"),
        ({"axis": "addon", "node": "24", "lines": "24"}, "leave it out"),
        ({"good": "--upload-pack=x"}, "cannot be read"),
    ],
)
def test_a_wrong_question_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        asked(**changes)


def test_the_command_line_says_what_is_wrong() -> None:
    done = CliRunner().invoke(cli.app, ["bisect", "--good", "24.11.1", "--bad", "path:./x", "--op", OP])
    assert done.exit_code == 2


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DistSite]:
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    dist._releases.cache_clear()
    dist._sums.cache_clear()
    with serve(tmp_path / "site") as serving:
        yield serving


def test_nightlies_of_a_site_are_bisected_by_date(site: DistSite) -> None:
    names = [f"25.0.0-nightly2025060{day}{str(day) * 10}" for day in (1, 2, 3, 4)]
    for name in ("24.9.0", *names):
        site.publish(name, platform=sources.platform_for("docker"))
    wanted = Wanted(
        good=f"dist:{site.url}@{names[0]}",
        bad=f"dist:{site.url}@{names[3]}",
        op="json_parse",
        find="regression",
    )
    request, spec = make_request(wanted, PLAIN, "docker", NullObserver())
    assert [release.version for release in request.releases] == names
    assert spec.versions == (f"dist:{site.url}@{names[0]}", f"dist:{site.url}@{names[3]}")
    found = request_module.node_at(request, names[1], "docker", NullObserver())
    assert (found.version, found.request.location) == (names[1], site.url)


def test_the_index_of_the_nightlies_as_it_is(site: DistSite) -> None:
    """Sorted by version, not by date, with fields that are missing, and builds that lack a platform."""
    platform = sources.platform_for("docker")
    names = (
        "24.0.0-nightly20250302ffaa00bb11",
        "24.0.0-nightly20250411a0b1c2d3e4",
        "25.0.0-nightly202504129876543210",
        "25.0.0-nightly20250601deadbeef00",
    )
    for name in (names[0], names[1], names[3]):
        site.publish(name, platform=platform)
    site.publish(names[2], platform="aix-ppc64")
    usual = {"npm": "11.3.0", "v8": "13.6.233.8", "uv": "1.50.0", "zlib": "1.3.0.1", "openssl": "3.0.16"}
    index: list[dict[str, object]] = [
        {
            "version": f"v{name}",
            "date": f"{(day := name.partition('nightly')[2])[:4]}-{day[4:6]}-{day[6:8]}",
            "files": ["aix-ppc64", "headers", "linux-x64", "src"],
            **usual,
            "modules": "137",
            "lts": False,
            "security": False,
        }
        for name in (*reversed(names), "24.0.0-v8-canary20250401c0ffee0000")
    ]
    index[1] |= {"lts": None, "modules": None}
    del index[2]["lts"]
    (site.root / "index.json").write_text(json.dumps(index))
    ends = [f"dist:{site.url}@{name}" for name in (names[0], names[3])]
    wanted = Wanted(good=ends[0], bad=ends[1], op="json_parse", find="regression")
    request, _spec = make_request(wanted, PLAIN, "docker", NullObserver())
    assert [release.version for release in request.releases] == list(names)
    assert [release.published for release in request.releases][1:3] == ["2025-04-11", "2025-04-12"]
    with pytest.raises(UsageError, match=f"no build of Node 25.0.0-nightly202504129876543210 for {platform}"):
        request_module.node_at(request, names[2], "docker", NullObserver())


def test_the_first_bad_nightly_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = tuple(
        f"{major}.0.0-nightly2025{month:02}15{month:010x}"
        for major, month in ((24, 1), (24, 2), (24, 3), (24, 4), (25, 5), (25, 6), (25, 7))
    )
    monkeypatch.setitem(globals(), "VERSIONS", names)
    laboratory = Laboratory(tmp_path, monkeypatch, slow_from(names[4]), missing=(names[5],))
    result = laboratory.search()
    assert (result.outcome, result.first, result.last) == ("found", names[4], names[3])
    assert rows(result)[names[5]] in {"skipped", "not measured"}
    assert f"{names[4]} is the first bad release" in render.markdown(result).replace("\\", "")


def test_a_site_and_npm_do_not_mix(site: DistSite) -> None:
    wanted = Wanted(good="24.9.0", bad=f"dist:{site.url}@24.10.0", op="json_parse", find="regression")
    with pytest.raises(UsageError, match="two places"):
        make_request(wanted, PLAIN, "docker", NullObserver())


@pytest.mark.usefixtures("registry")
def test_a_folder_goes_on_with_the_same_question_only(tmp_path: Path) -> None:
    request, spec = asked()
    folder = RunFolder(tmp_path)
    folder.write_json("request.json", "bisect-request", 1, request)
    folder.write("spec.toml", dump_spec(spec))
    run._refuse_other(folder, msgspec.structs.replace(request, most_steps=3, git="x"), spec)
    for other, others in (
        (msgspec.structs.replace(request, op="insert_row"), spec),
        (request, msgspec.structs.replace(spec, cipher="aes256cbc")),
    ):
        with pytest.raises(UsageError, match="another bisection"):
            run._refuse_other(folder, other, others)


# -- commits ------------------------------------------------------------------------------------------------


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    path = tmp_path / "clone"

    def git(*arguments: str) -> None:
        subprocess.run(
            ("git", "-c", "user.name=n", "-c", "user.email=n@example.org", "-C", str(path), *arguments),  # noqa: S607
            check=True,
            capture_output=True,
        )

    path.mkdir()
    git("init", "-q")
    for number, subject in enumerate(("start", "deps: update V8 to 13.6", "src: <b>|x")):
        git("commit", "-q", "--allow-empty", "-m", subject)
        git("tag", f"v24.{number}.0")
    return path


def test_commits_between_two_tags(clone: Path) -> None:
    check_clone(clone)
    found = commits_between(clone, "24.0.0", "24.2.0")
    assert [commit.subject for commit in found.commits] == ["src: <b>|x", "deps: update V8 to 13.6"]
    assert (found.total, found.reason) == (2, "")
    assert commits_between(clone, "24.0.0", "24.2.0", LIKELY["node"]).total == 0


def test_a_missing_tag_is_a_reason(clone: Path) -> None:
    found = commits_between(clone, "24.0.0", "24.9.0")
    assert found.total == 0
    assert "git fetch --tags" in found.reason


def test_versions_that_are_options_reach_no_git(clone: Path) -> None:
    assert commits_between(clone, "--output=x", "24.1.0").range == ""


def test_a_configuration_of_the_clone_starts_nothing(clone: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    script = tmp_path / "evil"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    config = clone / ".git/config"
    config.write_text(
        config.read_text()
        + f"[core]\n\tfsmonitor = {script}\n\tpager = {script}\n[diff]\n\texternal = {script}\n"
    )
    check_clone(clone)
    assert commits_between(clone, "24.0.0", "24.2.0").total == 2
    assert not marker.exists()


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_what_is_no_clone_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="--git"):
        check_clone(tmp_path / name)
