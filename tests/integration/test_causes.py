"""Causes on real releases: what two sides compile, whether the other path builds, what flags V8 has."""

from collections.abc import Mapping

import pytest

from investigator import addons, build, resources
from investigator.build import AddonBuild, BuildFailure
from investigator.causes.build import compare_builds
from investigator.causes.changes import changes_between
from investigator.causes.flags import ablations, read_flags
from investigator.causes.rebuild import plan_rebuilds
from investigator.causes.source import compare_sources
from investigator.causes.swap import NoSwap, PathSwap, groups, plan_swap, shared_binary
from investigator.engine.docker import DockerEngine
from investigator.nodes.interface import NodeBuild
from investigator.plan import Environment
from tests.integration.tool import ADDON, environment_of, nodes_of

pytestmark = [pytest.mark.container, pytest.mark.node]

NODES = ("20.19.5", "22.21.1", "24.11.1")
ROW_BUILDER = "!defined(NODE_MODULE_VERSION) || NODE_MODULE_VERSION < 127"


@pytest.fixture(scope="module")
def nodes(docker_engine: DockerEngine) -> Mapping[str, NodeBuild]:
    return {node.version: node for node in nodes_of(docker_engine, *NODES)}


def pair_of(
    engine: DockerEngine, nodes: Mapping[str, NodeBuild], one: tuple[str, str], other: tuple[str, str]
) -> tuple[Environment, Environment, dict[str, AddonBuild]]:
    environments = (environment_of(nodes[one[0]], one[1]), environment_of(nodes[other[0]], other[1]))
    made = build.build_all(engine, environments)
    assert not [result for result in made.values() if isinstance(result, BuildFailure)]
    return *environments, {name: b for name, b in made.items() if isinstance(b, AddonBuild)}


def test_the_row_builder_of_12_11_1_is_chosen_by_the_abi(
    docker_engine: DockerEngine, nodes: Mapping[str, NodeBuild]
) -> None:
    old, new, builds = pair_of(docker_engine, nodes, ("20.19.5", "12.11.1"), ("22.21.1", "12.11.1"))
    found = compare_sources(docker_engine, old, new, builds)
    by_place = {region.where: region for region in found.regions}
    rows = by_place["src/util/data.cpp:99"]
    assert rows.condition == ROW_BUILDER
    assert {"Data::GetFlatRowJS", "Data::GetRowJS"} <= set(rows.functions)
    assert "Statement::JS_all" in rows.callers
    assert rows.baseline is not None
    assert rows.candidate is not None
    assert rows.baseline.last_line < rows.candidate.first_line
    assert by_place["src/objects/statement.cpp:186"].functions == ("Statement::JS_all",)
    assert "RowBuilder::GetRowJS" in by_place["src/better_sqlite3.cpp:27"].functions
    (linked,) = groups(found.regions)
    assert len(linked) == 4


def test_11_10_0_builds_rows_the_same_way_everywhere(
    docker_engine: DockerEngine, nodes: Mapping[str, NodeBuild]
) -> None:
    old, new, builds = pair_of(docker_engine, nodes, ("20.19.5", "11.10.0"), ("22.21.1", "11.10.0"))
    found = compare_sources(docker_engine, old, new, builds)
    assert found.functions > 100
    touched = {name for region in found.regions for name in region.functions}
    assert touched == {"SetPrototypeGetter"}


def test_from_22_to_24_the_source_differs_but_not_where_text_is_bound(
    docker_engine: DockerEngine, nodes: Mapping[str, NodeBuild]
) -> None:
    old, new, builds = pair_of(docker_engine, nodes, ("22.21.1", "12.11.1"), ("24.11.1", "12.11.1"))
    found = compare_sources(docker_engine, old, new, builds)
    assert {region.macros for region in found.regions} == {("GET_PROTOTYPE",), ("PROPERTY_HOLDER",)}
    touched = {name for region in found.regions for name in region.functions}
    assert "Binder::BindValue" not in touched
    assert "Data::BindValueFromJS" not in touched
    compared = compare_builds(builds[old.id], builds[new.id], old.node, new.node)
    assert compared.sqlite_object_equal


def test_the_old_path_builds_on_the_new_node_and_the_new_one_not_on_the_old(
    docker_engine: DockerEngine, nodes: Mapping[str, NodeBuild], tmp_path_factory: pytest.TempPathFactory
) -> None:
    old, new, builds = pair_of(docker_engine, nodes, ("20.19.5", "12.11.1"), ("22.21.1", "12.11.1"))
    (regions,) = groups(compare_sources(docker_engine, old, new, builds).regions)
    folder = tmp_path_factory.mktemp("swap")
    back = plan_swap(regions, "old_on_new", new, "baseline", folder)
    forth = plan_swap(regions, "new_on_old", old, "candidate", folder)
    assert isinstance(back, PathSwap)
    assert isinstance(forth, PathSwap)
    made = build.build_all(docker_engine, (back.environment, forth.environment))
    swapped = made[back.environment.id]
    assert isinstance(swapped, AddonBuild)
    assert swapped.binding_sha256 != builds[new.id].binding_sha256
    assert swapped.sqlite3_object_sha256 == builds[new.id].sqlite3_object_sha256
    assert build.load_test(docker_engine, new.node, swapped) is None
    failed = made[forth.environment.id]
    assert isinstance(failed, BuildFailure)
    assert "LocalVector" in failed.reason
    # The swapped package compiles what the old Node compiles: nothing differs any more.
    again = compare_sources(
        docker_engine, back.environment, new, {back.environment.id: swapped, new.id: builds[new.id]}
    )
    assert again.axis == "addon"
    assert "Statement::JS_all" in {name for region in again.regions for name in region.functions}


def test_two_releases_are_compared_by_function(
    docker_engine: DockerEngine, nodes: Mapping[str, NodeBuild]
) -> None:
    old, new, builds = pair_of(docker_engine, nodes, ("24.11.1", "11.10.0"), ("24.11.1", "12.11.1"))
    found = compare_sources(docker_engine, old, new, builds)
    assert found.axis == "addon"
    changed = {region.functions[0]: region for region in found.regions}
    builder = changed["Statement::JS_all"]
    assert builder.baseline is not None
    assert builder.candidate is not None
    assert builder.baseline.file == "src/better_sqlite3.cpp"
    assert builder.candidate.file == "src/objects/statement.cpp"
    assert changed["RowBuilder::GetRowJS"].baseline is None


def test_one_node_api_binary_runs_on_both(
    docker_engine: DockerEngine, nodes: Mapping[str, NodeBuild]
) -> None:
    old, new, builds = pair_of(docker_engine, nodes, ("22.21.1", "13.0.3"), ("24.11.1", "13.0.3"))
    shared = shared_binary(old, new, builds)
    if isinstance(shared, NoSwap):
        assert "same binary already" in shared.reason
        assert compare_sources(docker_engine, old, new, builds).identical
    assert build.load_test(docker_engine, new.node, builds[old.id]) is None


def test_v8s_flags_name_the_young_generation_among_what_changed(
    docker_engine: DockerEngine, nodes: Mapping[str, NodeBuild]
) -> None:
    old, new = nodes["22.21.1"], nodes["24.11.1"]
    known = (read_flags(docker_engine, old), read_flags(docker_engine, new))
    assert len(known[0].flags) > 500
    names = {ablation.name for ablation in ablations("gc", *known)}
    assert "--scavenger-max-new-space-capacity-mb=8" in names
    assert "--single-threaded-gc" in names
    changes = changes_between(old, new, known)
    assert {"v8", "modules"} <= {version.name for version in changes.versions}
    assert "--scavenger-max-new-space-capacity-mb" in {default.name for default in changes.defaults}


def test_the_candidate_is_rebuilt_with_the_baselines_flags_and_with_its_sqlite(
    docker_engine: DockerEngine, nodes: Mapping[str, NodeBuild]
) -> None:
    """The patch compiles everything with -O1: flags and SQLite's object differ, and nothing else does."""
    node, plain = nodes["24.11.1"], addons.fetch_addon(ADDON, "12.11.1")
    slow = addons.patched(plain, str(resources.root() / "node_fixtures/planted/o1.patch"))
    made = [build.build_addon(docker_engine, node, package, "source") for package in (plain, slow)]
    fast, slowed = (found for found in made if isinstance(found, AddonBuild))
    compared = compare_builds(fast, slowed, node, node)
    assert {d.what for d in compared.suspects} == {"flag", "sqlite3.o"}
    flags, sqlite = plan_rebuilds(fast, slowed, compared)
    one, other = (
        build.build_addon(docker_engine, node, slow, "source", substitution=wanted.attempts[0].substitution)
        for wanted in (flags, sqlite)
    )
    assert isinstance(one, AddonBuild)
    assert isinstance(other, AddonBuild)
    # C++ as on the baseline, SQLite as it was; and the reverse.
    assert "-O3" in one.flags["better_sqlite3.cpp"].split()
    assert one.sqlite3_object_sha256 == slowed.sqlite3_object_sha256
    assert "-O1" in other.flags["better_sqlite3.cpp"].split()
    assert other.sqlite3_object_sha256 == fast.sqlite3_object_sha256
    assert len({fast.binding_sha256, slowed.binding_sha256, one.binding_sha256, other.binding_sha256}) == 4
    assert build.load_test(docker_engine, node, one) is None
    assert build.load_test(docker_engine, node, other) is None
