"""A fix on real releases: a regression of V8 that is known, the release that repaired it, patches."""

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from investigator.engine.docker import DockerEngine
from tests.integration.tool import ADDON, investigate, nodes_of

pytestmark = [pytest.mark.container, pytest.mark.node, pytest.mark.usefixtures("containers_end")]

PATCHES = Path(__file__).parent / "patches"
RELEASE = f"{ADDON}@12.11.1"
"""The patches are made for the sources of this release."""


def judge(cwd: Path, fix: str, right: str, addon: str = RELEASE) -> dict[str, Any]:
    """Judge a fix of the text conversion that Node 24.0.0 to 24.18.1 have; its answer.

    It is the right one, or on a busy machine "cannot tell"; never another, and the exit code says the same.
    """
    done = investigate(
        "validate", "--baseline", "22.21.1", "--regressed", "24.11.1", "--fix", fix, "--addon", addon,
        "--op", "bind_text_ascii_10k", "--ops", "select_range", "--engine", "docker", "--budget", 3,
        "--out", "run", cwd=cwd, code=None,
    )  # fmt: skip
    answer: dict[str, Any] = json.loads((cwd / "run/summary.json").read_text())["validation"]
    assert answer["outcome"] in {right, "cannot_tell"}, answer["headline"]
    assert done.returncode == {"pass": 0, "fail": 1, "invalid": 1, "cannot_tell": 3}[answer["outcome"]]
    return answer


def target(answer: dict[str, Any]) -> dict[str, Any]:
    (found,) = answer["targets"]
    assert found["op"] == "bind_text_ascii_10k"
    return dict(found)


def test_the_release_that_repaired_it_passes(tmp_path: Path) -> None:
    # 12.11.1 compiled for 24.19.0 aborts while it is measured; 13.0.3 does not.
    answer = judge(tmp_path, "24.19.0", "pass", f"{ADDON}@13.0.3")
    assert target(answer)["recovered_pct"] > 50
    assert target(answer)["loss"]["change_pct"] > 50
    suite = ET.parse(tmp_path / "run/junit.xml").getroot()  # noqa: S314 - our own file
    assert suite.get("failures") == "0"
    shown = investigate("show", "run", cwd=tmp_path, code=None)
    assert shown.stdout.replace("\n", " ").startswith(answer["headline"])


def test_a_directory_with_a_release_that_still_has_it_fails(
    docker_engine: DockerEngine, tmp_path: Path
) -> None:
    (released,) = nodes_of(docker_engine, "24.18.1")
    for name in ("bin", "include"):
        shutil.copytree(released.directory / name, tmp_path / "build" / name)
    answer = judge(tmp_path, str(tmp_path / "build"), "fail")
    assert (answer["fix_kind"], answer["fix"]) == ("node", "Node 24.18.1 (a build of one's own)")
    assert target(answer)["recovered_pct"] < 50


def test_a_patch_that_repairs_it_and_costs_elsewhere_fails_and_names_the_operation(tmp_path: Path) -> None:
    answer = judge(tmp_path, str(PATCHES / "repairs-binding-costs-rows.patch"), "fail")
    assert target(answer)["recovered_pct"] > 50
    if answer["outcome"] == "fail":
        assert [o["op"] for o in answer["others"] if o["outcome"] == "slower"] == ["select_range"]
        assert "select_range: slower" in answer["headline"]


def test_a_patch_that_returns_fewer_columns_is_invalid(tmp_path: Path) -> None:
    answer = judge(tmp_path, f"patch:{PATCHES / 'repairs-binding-drops-a-column.patch'}", "invalid")
    assert answer["outcome"] == "invalid"
    assert "select_range: it computes something else" in answer["headline"]
    assert not list((tmp_path / "run/raw").glob("round-*"))
