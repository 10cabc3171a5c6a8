"""Reproductions in real containers: what shows its finding is kept and works alone, the rest is removed."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import msgspec
import pytest

from investigator import addons, npm_client, resources
from investigator.analysis import Comparison, Interval
from investigator.engine.docker import DockerEngine
from investigator.engine.interface import Mount, Task
from investigator.measure import CALIBRATION_SCHEMA, Calibration
from investigator.nodes import sources
from investigator.nodes.interface import NodeBuild
from investigator.observer import NullObserver
from investigator.operations import Operation, find
from investigator.plan import Environment, Pace, Plan
from investigator.repro.make import reproduce
from investigator.repro.manifest import folder_of, read_manifests
from investigator.spec import Spec
from investigator.store import RunFolder
from investigator.workloads import own_operation
from tests.integration.tool import ADDON, nodes_of

pytestmark = [pytest.mark.container, pytest.mark.node]

NODES = ("22.21.1", "24.11.1")
SIZED = """
export function setup() { return Number(process.env.SIZE); }
export function run(size) {
  let sum = 0;
  for (let i = 0; i < size; i++) sum = (Math.imul(sum, 31) + i) | 0;
  return sum;
}
"""


@pytest.fixture(scope="module")
def nodes(docker_engine: DockerEngine) -> Mapping[str, NodeBuild]:
    return {node.version: node for node in nodes_of(docker_engine, *NODES)}


def finding(op: str, family: str, plan: Plan, change_pct: float) -> Comparison:
    interval = Interval(
        change_pct=change_pct, ci_low_pct=change_pct - 1, ci_high_pct=change_pct + 1, confidence=0.98
    )
    return Comparison(
        op=op,
        family=family,
        kind="baseline",
        phase="warm",
        baseline=plan.environments[0].id,
        candidate=plan.environments[1].id,
        rounds=8,
        ratio=1 + change_pct / 100,
        wall=interval,
        cpu=interval,
        verdict="slower",
        finding=True,
        below_layout_floor=False,
        noise_floor_pct=1.0,
        published_rule="slower",
        rounds_needed=None,
        minutes_needed=None,
    )


def run_of(
    tmp_path: Path,
    command: str,
    sides: tuple[Environment, Environment],
    *ops: tuple[Operation, Pace],
) -> tuple[RunFolder, Plan]:
    spec = msgspec.convert({"command": command, "versions": NODES, "cipher": "chacha20"}, Spec)
    plan = Plan(
        spec=spec,
        run_id="r",
        environments=sides,
        baseline=sides[0].id,
        operations=tuple(operation for operation, _ in ops),
    )
    run = RunFolder(tmp_path / "run")
    paces = tuple(pace for _, pace in ops)
    calibration = Calibration(paces=paces, invocation_s={}, failures=(), checksums={})
    run.write_json("calibration.json", "calibration", CALIBRATION_SCHEMA, calibration)
    return run, plan


def test_a_workload_is_kept_only_where_it_shows_its_finding(
    docker_engine: DockerEngine, nodes: Mapping[str, NodeBuild], tmp_path: Path
) -> None:
    node = nodes["22.21.1"]
    sides = tuple(
        Environment(id=name, label=name, node=node, addon=None, variables={"SIZE": size})
        for name, size in (("one", "20000"), ("two", "40000"))
    )
    operations = [own_operation(f"{name}.mjs", "js") for name in ("shown", "claimed")]
    paces = [Pace(op=o.name, warmup_calls=400, loops=1000) for o in operations]
    run, plan = run_of(tmp_path, "js", (sides[0], sides[1]), *zip(operations, paces, strict=True))
    for operation in operations:
        run.write(f"workloads/{operation.module}", SIZED.encode())
    found = [finding("shown", "js", plan, 100.0), finding("claimed", "js", plan, 30.0)]
    made = {manifest.op: manifest for manifest in reproduce(run, plan, found, docker_engine, NullObserver())}
    (shown,) = made["shown"].programs
    assert shown.shipped, shown.reason
    (claimed,) = made["claimed"].programs
    assert not claimed.shipped
    assert claimed.change_pct is not None
    assert claimed.change_pct > 50, claimed.reason
    left = {path.name for path in folder_of(run, "claimed", "two").iterdir()}
    assert left == {"RESULT.txt", "manifest.json"}
    assert {manifest.op for manifest in read_manifests(run)} == {"shown", "claimed"}
    _works_in_an_empty_folder(docker_engine, folder_of(run, "shown", "two"), tmp_path)


def _works_in_an_empty_folder(engine: DockerEngine, made: Path, tmp_path: Path) -> None:
    """A copy with what its lock file pins; beside it only npm and Node, at another place than in our run."""
    copy = tmp_path / "copy"
    shutil.copytree(made, copy)
    npm_client.install_locked(copy, sources.platform_for(engine.name))
    tools = tmp_path / "tools"
    tools.mkdir()
    npm = "/usr/local/nodejs/lib/node_modules/npm/bin/npm-cli.js"
    (tools / "npm").write_text(f'#!/bin/sh\nexec node {npm} "$@"\n')
    (tools / "npm").chmod(0o755)
    tool = Mount(source=resources.node_tools(), target=PurePosixPath("/usr/local/nodejs"))
    names = Mount(source=tools, target=PurePosixPath("/usr/local/names"))
    repro = Mount(source=copy, target=PurePosixPath("/repro"), writable=True)
    outcome = engine.run(
        Task(
            command=("/repro/run.sh", "--rounds", "3", "--json", "/repro/result.json"),
            purpose="run a copied reproduction",
            mounts=(tool, names, repro),
            environment={"PATH": "/usr/local/names:/usr/local/nodejs/bin:/usr/bin:/bin"},
            timeout_s=300,
        )
    )
    assert outcome.ok, outcome.stderr
    (result,) = json.loads((copy / "result.json").read_text())
    assert result["change_pct"] > 30
    assert "ratio" in outcome.stdout


def test_the_string_conversion_is_shown_by_an_addon_of_a_few_lines(
    docker_engine: DockerEngine, nodes: Mapping[str, NodeBuild], tmp_path: Path
) -> None:
    package = addons.fetch_addon(ADDON, "12.11.1")
    sides = tuple(
        Environment(id=f"node{version}", label=None, node=nodes[version], addon=package) for version in NODES
    )
    operation = find("bind_text_ascii_10k")
    assert operation is not None
    pace = Pace(op=operation.name, warmup_calls=8000, loops=5000)
    run, plan = run_of(tmp_path, "sqlite", (sides[0], sides[1]), (operation, pace))
    (made,) = reproduce(
        run, plan, [finding(operation.name, "sqlite", plan, 110.0)], docker_engine, NullObserver()
    )
    programs = {program.name: program for program in made.programs}
    assert set(programs) == {"snippet-js", "snippet-v8", "real"}
    # The size depends on the machine's memory; that it is slower by far does not.
    for program in programs.values():
        assert program.change_pct is not None, program.output
        assert program.change_pct > 40, program.output
    assert any(program.shipped for program in programs.values()), [p.reason for p in programs.values()]
    lock = json.loads((folder_of(run, made.op, made.candidate) / "package-lock.json").read_text())
    assert all("resolved" not in facts for facts in lock["packages"].values())
    pinned = lock["packages"]["node_modules/better-sqlite3-multiple-ciphers-12.11.1"]
    assert pinned["version"] == "12.11.1"
    assert pinned["integrity"] == package.integrity
