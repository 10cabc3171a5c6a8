"""Claims measured on real releases: one that is true, and the published one that is not."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_main_job import investigate, our_containers

pytestmark = [pytest.mark.container, pytest.mark.node]

ADDON = "better-sqlite3-multiple-ciphers"
FEW = ("--engine", "docker", "--rounds", "6", "--budget", "0.5", "--no-explain", "--out", "run", "--json")


@pytest.fixture(autouse=True)
def needs_docker(docker_engine: object) -> Iterator[None]:
    yield
    assert our_containers() == []


def rulings(cwd: Path, *arguments: str) -> list[str]:
    told = json.loads(investigate("audit", *arguments, cwd=cwd).stdout)
    return [ruling["ruling"] for ruling in told["rerun"]["rulings"]]


def test_a_true_claim_is_confirmed_and_its_opposite_reversed(tmp_path: Path) -> None:
    """V8 13.6 converts long strings at half the speed; the claim of the opposite needs no new measurement."""
    bind = ("--baseline", "22.21.1", "--op", "bind_text_ascii_10k")
    true = ("--claim", "24.11.1=-55%", *bind, "--rerun", "--addon", f"{ADDON}@12.11.1", *FEW)
    assert rulings(tmp_path, *true) == ["confirmed"]
    kept = json.loads((tmp_path / "run/audit.json").read_text())
    assert kept["rerun"]["addon"] == f"{ADDON} 12.11.1"
    assert {phase["phase"] for phase in kept["rerun"]["rulings"][0]["phases"]} == {"warm", "cold"}
    false = ("--claim", "24.11.1=+55%", *bind, "--run", "run", "--pass", "warm", "--json")
    assert rulings(tmp_path, *false) == ["reversed"]


def test_the_published_claim_is_not_confirmed(tmp_path: Path) -> None:
    """-57 % on 24.11.1 with the addon release of its lock file; a busy machine may leave it open."""
    published = ("--claim", "24.11.1=-57%", "--baseline", "20.19.5", "--op", "select_range")
    found = rulings(tmp_path, *published, "--rerun", "--addon", f"{ADDON}@11.10.0", *FEW)
    assert found in (["not_reproduced"], ["cannot_tell"])
