"""A bisection over real Node releases: a release with a known answer, killed in the middle and resumed."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.integration.tool import ADDON, bisected, command, investigate, surroundings, wait_for

pytestmark = [pytest.mark.container, pytest.mark.node, pytest.mark.usefixtures("containers_end")]

QUESTION = (
    "bisect", "--good", "23.11.1", "--bad", "24.1.0", "--op", "bind_text_ascii_10k",
    "--addon", f"{ADDON}@12.11.1", "--engine", "docker", "--out", "run",
)  # fmt: skip


def finished_rounds(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.glob("steps/*/raw/round-*/round.json")}


def test_the_first_bad_release_killed_and_resumed(tmp_path: Path) -> None:
    """24.0.0 brought V8's slower conversion of strings; 23.11.0 is the last release before it."""
    with subprocess.Popen(
        command(*QUESTION),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=surroundings(),
    ) as process:
        run = tmp_path / "run"
        wait_for(
            lambda: len(finished_rounds(run)) >= 3 or process.poll() is not None, "the third round", 1200
        )
        process.send_signal(signal.SIGKILL)
    before = finished_rounds(run)
    assert len(before) >= 3
    done = investigate(*QUESTION, cwd=tmp_path, code=None)
    after = finished_rounds(tmp_path / "run")
    assert {name: after[name] for name in before} == before
    result = bisected(done, run, "24.0.0", "23.11.0")
    rows = {row["version"]: row for row in result["releases"]}
    assert [row["version"] for row in result["releases"]][:3] == ["23.11.1", "23.11.0", "24.0.0"]
    assert rows["24.1.0"]["effect"]["change_pct"] > 60
    assert (run / "plot.svg").read_text().startswith("<svg")
    shown = investigate("show", "run", cwd=tmp_path, code=done.returncode)
    assert result["headline"].partition(":")[0] in shown.stdout.replace("\n", " ")
    if result["outcome"] == "range":
        return
    assert "24.0.0 is the first bad release" in shown.stdout
    assert rows["24.0.0"]["effect"]["change_pct"] > 60
    assert rows["24.0.0"]["verified"]
    changed = {change["name"]: change for change in result["join"]["node"]["versions"]}
    assert changed["v8"]["baseline"].startswith("12.9")
    assert changed["v8"]["candidate"].startswith("13.6")
