"""The schedule: seeded, interleaved, the baseline twice, operations in one order for all arms of a round."""

from hashlib import sha256
from pathlib import Path

import pytest

from investigator.addons import AddonPackage
from investigator.errors import UsageError
from investigator.nodes.interface import NodeBuild
from investigator.operations import Operation
from investigator.plan import Environment, Plan, environment_id, find_baseline, schedule
from investigator.spec import Spec


def environment(version: str, label: str | None = None) -> Environment:
    node = NodeBuild(
        version=version,
        source="npm",
        directory=Path("/nowhere"),
        node_sha256="0" * 64,
        versions={"v8": "1"},
        config_sha256="1" * 64,
        label=label,
    )
    addon = AddonPackage(name="better-sqlite3-multiple-ciphers", version="12.11.1")
    return Environment(id=environment_id(node, addon, "source"), label=label, node=node, addon=addon)


def plan_of(*environments: Environment, seed: int = 1) -> Plan:
    groups = {"select_range": "sqlite", "insert_row": "sqlite", "json_parse": "js", "mine": "workload:mine"}
    return Plan(
        spec=Spec(versions=("20", "24"), seed=seed),
        run_id="r",
        environments=environments,
        baseline=environments[0].id,
        operations=tuple(
            Operation(name=name, family="js" if group == "js" else "sqlite", module="m", group=group)
            for name, group in groups.items()
        ),
    )


PLAN = plan_of(environment("20.19.5"), environment("24.11.1"))
CELLS = {e.id: tuple(o.name for o in PLAN.operations) for e in PLAN.environments}


@pytest.mark.parametrize(
    ("variables", "suffix"),
    [
        ({}, ""),
        ({"B": "x", "A": "10"}, "-A=10-B=x"),
        ({"A": "two words"}, f"-A={sha256(b'two words').hexdigest()[:8]}"),
        ({"A": "x" * 25}, f"-A={sha256(b'x' * 25).hexdigest()[:8]}"),
    ],
)
def test_variables_are_part_of_an_identifier(variables: dict[str, str], suffix: str) -> None:
    known = environment("24.11.1")
    identifier = environment_id(known.node, known.addon, "source", variables=variables)
    assert identifier == f"node24.11.1+bsm12.11.1{suffix}"


def test_identifiers() -> None:
    assert environment("24.11.1").id == "node24.11.1+bsm12.11.1"
    assert environment("24.11.1", "a").id == "a:node24.11.1+bsm12.11.1"


def test_every_arm_and_group_once_a_round_and_both_of_two_environments_twice() -> None:
    jobs = schedule(PLAN, 1, CELLS)
    arms = sorted((j.environment, j.twin, j.group) for j in jobs)
    base, other = (e.id for e in PLAN.environments)
    assert arms == sorted(
        (environment, twin, group)
        for environment, twin in ((base, False), (base, True), (other, False), (other, True))
        for group in ("sqlite", "js", "workload:mine")
    )
    assert [j.position for j in jobs] == list(range(12))


def test_of_three_environments_only_the_baseline_is_measured_twice() -> None:
    base, other = (e.id for e in PLAN.environments)
    jobs = schedule(PLAN, 1, {**CELLS, "third": CELLS[other]})
    assert {j.environment for j in jobs if j.twin} == {base}


def test_operations_have_one_order_for_all_arms_of_a_round() -> None:
    for number in range(1, 20):
        orders = {j.operations for j in schedule(PLAN, number, CELLS) if j.group == "sqlite"}
        assert len(orders) == 1


def test_order_comes_from_the_seed_and_changes_between_rounds() -> None:
    assert schedule(PLAN, 3, CELLS) == schedule(PLAN, 3, CELLS)
    orders = {tuple((j.environment, j.twin, j.group) for j in schedule(PLAN, n, CELLS)) for n in range(1, 9)}
    assert len(orders) > 4
    other = plan_of(*PLAN.environments, seed=2)
    assert any(schedule(PLAN, n, CELLS) != schedule(other, n, CELLS) for n in range(1, 9))
    sqlite_orders = {
        next(j.operations for j in schedule(PLAN, n, CELLS) if j.group == "sqlite") for n in range(1, 20)
    }
    assert len(sqlite_orders) == 2


def test_only_the_cells_that_are_left() -> None:
    base, other = (e.id for e in PLAN.environments)
    jobs = schedule(PLAN, 9, {base: ("insert_row",), other: ("insert_row",)})
    assert len(jobs) == 4
    assert {j.operations for j in jobs} == {("insert_row",)}
    assert {j.environment for j in schedule(PLAN, 9, {base: ("insert_row",)})} == {base}


def release(
    version: str, label: str | None = None, name: str = "better-sqlite3-multiple-ciphers"
) -> Environment:
    """An environment of a run that compares addons."""
    node = environment("24.11.1").node
    addon = AddonPackage(name=name, version=version)
    identifier = environment_id(node, addon, "source", label=label)
    return Environment(id=identifier, label=label, node=node, addon=addon)


def test_identifiers_where_addons_are_compared() -> None:
    assert release("13.0.3").id == "node24.11.1+bsm13.0.3"
    assert release("13.0.3", "new").id == "new:node24.11.1+bsm13.0.3"


def test_baseline_by_addon_release() -> None:
    environments = (
        release("12.11.1"),
        release("12.4.1"),
        release("13.0.3", "new"),
        release("", name="node:sqlite"),
        release("12.4.1", name="better-sqlite3"),
    )
    ids = [e.id for e in environments]

    def found(wanted: str | None) -> int:
        return ids.index(find_baseline(environments, wanted, "addon"))

    assert found(None) == 0
    assert found("v12.11.1") == 0
    assert found("13") == found("new") == found(ids[2]) == found("13.0.3") == 2
    assert found("node:sqlite") == 3
    assert found("better-sqlite3@12.4.1") == found("better-sqlite3") == 4
    with pytest.raises(UsageError, match=r"12.4.1 fits 2 of the addons; give it a label .*NAME@"):
        found("12.4.1")
    with pytest.raises(
        UsageError, match=r"not among the addons of this run .*12.11.1, 12.4.1, new, node:sqlite"
    ):
        found("24.11.1")


@pytest.mark.parametrize(
    ("wanted", "place"),
    [
        ("lts", 0),
        ("24.x", 1),
        ("image:mine/node", 2),
        ("fix=path:./out", 3),
        ("path:./out", 3),
        (">=18 <19", 4),
        (">=18  <19", 4),
        ("fix", 3),
        ("24.11.1", 2),
    ],
)
def test_baseline_as_it_was_typed(wanted: str, place: int) -> None:
    items = ("lts", "24.x", "image:mine/node", "fix=path:./out", ">=18 <19")
    environments = (
        environment("24.19.0", "z"),
        environment("24.18.0"),
        environment("24.11.1"),
        environment("24.11.1", "fix"),
        environment("18.20.0"),
    )
    assert find_baseline(environments, wanted, items=items) == environments[place].id


def test_what_was_typed_twice_is_no_baseline() -> None:
    environments = (environment("24.11.1", "a"), environment("24.11.1", "b"))
    assert find_baseline(environments, "a=24", items=("a=24", "b=24")) == environments[0].id
    with pytest.raises(UsageError, match=r"24 fits 2 of the versions; give it a label"):
        find_baseline(environments, "24", items=("a=24", "b=24"))


def test_baseline_by_version_major_label_and_default() -> None:
    environments = (environment("20.19.5"), environment("24.11.1", "a"), environment("24.19.0"))
    assert find_baseline(environments, None) == environments[0].id
    assert find_baseline(environments, "24.19.0") == environments[2].id
    assert find_baseline(environments, "v20") == environments[0].id
    assert find_baseline(environments, "a") == environments[1].id
    with pytest.raises(UsageError, match="fits 2 of the versions"):
        find_baseline(environments, "24")
    with pytest.raises(UsageError, match="not among the versions"):
        find_baseline(environments, "18")
