"""The schedule: seeded, interleaved, the baseline twice, operations in one order for all arms of a round."""

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


def test_identifiers() -> None:
    assert environment("24.11.1").id == "node24.11.1+bsm12.11.1"
    assert environment("24.11.1", "a").id == "a:node24.11.1+bsm12.11.1"


def test_every_arm_and_group_once_a_round_and_the_baseline_twice() -> None:
    jobs = schedule(PLAN, 1, CELLS)
    arms = sorted((j.environment, j.twin, j.group) for j in jobs)
    base, other = (e.id for e in PLAN.environments)
    assert arms == sorted(
        (environment, twin, group)
        for environment, twin in ((base, False), (base, True), (other, False))
        for group in ("sqlite", "js", "workload:mine")
    )
    assert [j.position for j in jobs] == list(range(9))


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
    assert len(jobs) == 3
    assert {j.operations for j in jobs} == {("insert_row",)}
    assert {j.environment for j in schedule(PLAN, 9, {base: ("insert_row",)})} == {base}


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
