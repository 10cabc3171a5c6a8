"""The tool as its users run it, and what may be demanded of its answers on a machine that is never quiet."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import docker
import pytest

from investigator.addons import fetch_addon
from investigator.engine.interface import Engine
from investigator.nodes.describe import describe_node
from investigator.nodes.interface import NodeBuild
from investigator.nodes.parse import parse_versions
from investigator.nodes.sources import fetch_all, platform_for, resolve_all
from investigator.plan import Environment, environment_id
from investigator.spec import Flavor

ADDON = "better-sqlite3-multiple-ciphers"
LAYOUT_PCT = 4.0
"""`Spec.layout_pct`: no interval that reaches below it makes a finding."""


def command(*arguments: object) -> list[str]:
    """The command line of the tool."""
    return [sys.executable, "-m", "investigator", *map(str, arguments)]


def surroundings(**variables: str) -> dict[str, str]:
    """The environment of a process that runs this checkout."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **variables}


def investigate(
    *arguments: object, cwd: Path, code: int | None = 0, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the tool; `code` is its exit code, None leaves that to the caller."""
    done = subprocess.run(
        command(*arguments),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
        env=surroundings(**variables),
    )
    assert code in {None, done.returncode}, f"{done.args}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def nodes_of(engine: Engine, *versions: str) -> tuple[NodeBuild, ...]:
    """Released builds of Node, described by running them in the engine."""
    platform = platform_for(engine.name)
    resolved = resolve_all(parse_versions(versions), platform)
    return fetch_all(resolved, partial(describe_node, engine), platform)


def environment_of(node: NodeBuild, release: str, flavor: Flavor = "source") -> Environment:
    """One release of the addon on a Node build."""
    package = fetch_addon(ADDON, release)
    return Environment(
        id=environment_id(node, package, flavor), label=None, node=node, addon=package, flavor=flavor
    )


def our_containers(*, running: bool = False) -> list[str]:
    """Containers that this tool made: all of them, or those that run."""
    client = docker.from_env()
    try:
        found = client.containers.list(all=not running, filters={"label": "investigate=1"})
        return [str(container.id) for container in found]
    finally:
        client.close()


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = 400.0) -> None:
    """Wait until `condition` holds; `what` did not happen where it never does."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            pytest.fail(f"{what} did not happen within {timeout_s:.0f} s")
        time.sleep(0.1)


def is_finding(row: Mapping[str, Any], verdict: str) -> bool:
    """Whether a row of summary.json is a finding with its only right verdict.

    Noise may leave it open: then the interval reaches what makes no finding, or a warning says what stood in
    the way. Another verdict, or a doubt without a reason, is a failure wherever it runs.
    """
    if row["finding"]:
        assert row["verdict"] == verdict, row
        return True
    assert row["verdict"] in {verdict, "undecided"}, row
    ends = (row["ci_low_pct"], row["ci_high_pct"])
    nearest = None if None in ends else min(ends) if verdict == "slower" else -max(ends)
    assert row["warnings"] or nearest is None or nearest <= LAYOUT_PCT, row
    return False


def bisected(done: subprocess.CompletedProcess[str], run: Path, right: str, last: str) -> dict[str, Any]:
    """The answer of a bisection: the right release, or under noise a range that holds it; never another."""
    assert done.returncode in {0, 3}, done.stderr
    result: dict[str, Any] = json.loads((run / "bisect.json").read_text())
    assert (result["outcome"], done.returncode) in {("found", 0), ("range", 3)}, result["headline"]
    if result["outcome"] == "found":
        assert (result["first"], result["last"]) == (right, last)
    (asked,) = [change for change in result["changes"] if change["asked"]]
    assert right in {asked["first"], *asked["between"]}
    return result
