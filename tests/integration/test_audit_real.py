"""Claims measured on real releases: one that is true, and the published one that is not."""

import json
from pathlib import Path

import pytest

from tests.integration.tool import ADDON, investigate

pytestmark = [pytest.mark.container, pytest.mark.node, pytest.mark.usefixtures("containers_end")]


def rulings(cwd: Path, *arguments: str) -> list[str]:
    told = json.loads(investigate("audit", *arguments, "--json", cwd=cwd).stdout)
    return [ruling["ruling"] for ruling in told["rerun"]["rulings"]]


def test_a_true_claim_is_confirmed_and_its_opposite_reversed(regression: Path, tmp_path: Path) -> None:
    """V8 13.6 converts long strings at half the speed; a busy machine may leave either open."""
    asked = ("--baseline", "22.21.1", "--op", "bind_text_ascii_10k", "--run", str(regression))
    assert rulings(tmp_path, "--claim", "24.11.1=-55%", *asked) in (["confirmed"], ["cannot_tell"])
    opposite = rulings(tmp_path, "--claim", "24.11.1=+55%", *asked, "--pass", "warm")
    assert opposite in (["reversed"], ["cannot_tell"])


def test_the_published_claim_is_measured_and_not_confirmed(tmp_path: Path) -> None:
    """-57 % on 24.11.1 with the addon release of its lock file; at most a few percent are there."""
    (found,) = rulings(
        tmp_path, "--claim", "24.11.1=-57%", "--baseline", "20.19.5", "--op", "select_range", "--rerun",
        "--addon", f"{ADDON}@11.10.0", "--engine", "docker", "--rounds", "6", "--budget", "0.5",
        "--no-explain", "--out", "run",
    )  # fmt: skip
    assert found in {"not_reproduced", "reversed", "cannot_tell"}
    kept = json.loads((tmp_path / "run/audit.json").read_text())
    assert kept["rerun"]["addon"] == f"{ADDON} 11.10.0"
    assert {phase["phase"] for phase in kept["rerun"]["rulings"][0]["phases"]} == {"warm", "cold"}
