"""A fix on real releases: a regression of V8 that is known, the release that repaired it, patches."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from investigator import cache
from tests.integration.test_main_job import investigate, our_containers

pytestmark = [pytest.mark.container, pytest.mark.node]

PATCHES = Path(__file__).parent / "patches"
ADDON = "better-sqlite3-multiple-ciphers@12.11.1"
"""The patches are made for the sources of this release."""


@pytest.fixture(autouse=True)
def needs_docker(docker_engine: object) -> Iterator[None]:
    yield
    assert our_containers() == []


def judge(cwd: Path, fix: str, code: int, *more: object) -> dict[str, Any]:
    """Judge a fix of the text conversion that Node 24.0.0 to 24.18.1 have; its answer."""
    investigate(
        "validate", "--baseline", "22.21.1", "--regressed", "24.11.1", "--fix", fix, "--addon", ADDON,
        "--op", "bind_text_ascii_10k", "--ops", "select_range", "--engine", "docker", "--out", "run", *more,
        cwd=cwd, code=code,
    )  # fmt: skip
    answer: dict[str, Any] = json.loads((cwd / "run/summary.json").read_text())["validation"]
    return answer


def target(answer: dict[str, Any]) -> dict[str, Any]:
    (found,) = answer["targets"]
    assert found["op"] == "bind_text_ascii_10k"
    return dict(found)


def test_the_release_that_repaired_it_passes_also_as_a_directory(tmp_path: Path) -> None:
    answer = judge(tmp_path, "24.19.0", 0)
    assert answer["outcome"] == "pass"
    assert target(answer)["recovered_low_pct"] >= 80
    assert target(answer)["loss"]["change_pct"] > 50
    shown = investigate("show", "run", cwd=tmp_path)
    assert shown.stdout.startswith("Pass: Node 24.19.0.")
    suite = ET.parse(tmp_path / "run/junit.xml").getroot()  # noqa: S314 - our own file
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    (released,) = cache.cache_root().glob("nodes/npm-node-*-24.19.0")
    for name in ("bin", "include"):
        shutil.copytree(released / name, tmp_path / "build" / name)
    (tmp_path / "again").mkdir()
    own = judge(tmp_path / "again", str(tmp_path / "build"), 0)
    assert (own["outcome"], own["fix_kind"]) == ("pass", "node")
    assert own["fix"] == "Node 24.19.0 (a build of one's own)"


def test_a_release_that_still_has_it_fails(tmp_path: Path) -> None:
    answer = judge(tmp_path, "24.18.1", 1)
    assert answer["outcome"] == "fail"
    assert target(answer)["recovered_high_pct"] < 80


def test_a_patch_that_repairs_it_and_costs_elsewhere_fails_and_names_the_operation(tmp_path: Path) -> None:
    answer = judge(tmp_path, str(PATCHES / "repairs-binding-costs-rows.patch"), 1)
    assert target(answer)["outcome"] == "pass"
    assert [o["op"] for o in answer["others"] if o["outcome"] == "slower"] == ["select_range"]
    assert "select_range: slower" in answer["headline"]


def test_a_patch_that_returns_fewer_columns_is_invalid(tmp_path: Path) -> None:
    answer = judge(tmp_path, f"patch:{PATCHES / 'repairs-binding-drops-a-column.patch'}", 1)
    assert answer["outcome"] == "invalid"
    assert "select_range: it computes something else" in answer["headline"]
    assert not list((tmp_path / "run/raw").glob("round-*"))
