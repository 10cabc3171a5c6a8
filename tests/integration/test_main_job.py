"""The main job on real Node releases, real addon builds and real containers."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from investigator.cache import cache_root
from tests.integration.tool import (
    ADDON,
    command,
    investigate,
    is_finding,
    our_containers,
    surroundings,
    wait_for,
)

pytestmark = [pytest.mark.container, pytest.mark.node, pytest.mark.usefixtures("containers_end")]

VERSIONS = "22.21.1,24.11.1"


def rows(run: Path) -> dict[str, dict[str, Any]]:
    comparisons = json.loads((run / "summary.json").read_text())["comparisons"]
    return {row["op"]: row for row in comparisons if row["kind"] == "baseline"}


@pytest.fixture
def finding(regression: Path) -> Path:
    """The same run for tests of what is made of a finding, of which a very noisy machine has none."""
    if not is_finding(rows(regression)["bind_text_ascii_10k"], "slower"):
        pytest.skip("this machine is too noisy: the known regression cannot be told on it")
    return regression


def test_the_known_regression_is_found_and_the_short_string_is_not_doubled(regression: Path) -> None:
    long, short = rows(regression)["bind_text_ascii_10k"], rows(regression)["bind_text_ascii_20"]
    is_finding(long, "slower")
    assert 60 < long["change_pct"] < 180
    assert short["change_pct"] < 50


def test_the_run_folder_is_complete_and_names_no_place_of_the_machine(regression: Path) -> None:
    for name in ("spec.toml", "plan.json", "run.json", "calibration.json", "analysis.json", "report.md"):
        text = (regression / name).read_text()
        assert text
        assert str(cache_root()) not in text, name
        assert str(regression.parent) not in text, name
    frame = pd.read_csv(regression / "measurements.csv")
    assert set(frame["op"]) == {"bind_text_ascii_20", "bind_text_ascii_10k"}
    assert frame["twin"].any()
    assert set(frame["phase"]) == {"cold", "pass"}


def test_builds_are_recorded_and_share_the_amalgamation(regression: Path) -> None:
    environments = json.loads((regression / "summary.json").read_text())["environments"]
    assert len({e["sqlite3_object_sha256"] for e in environments}) == 1
    assert len({e["binding_sha256"] for e in environments}) == 2
    builds = json.loads((regression / "plan.json").read_text())["builds"]
    assert all("-O3" in b["flags"]["sqlite3.c"] for b in builds.values())


def test_the_known_regression_lies_in_the_boundary(finding: Path) -> None:
    """A busy machine may leave it open; nothing may put it elsewhere."""
    explained = json.loads((finding / "summary.json").read_text())["attributions"]
    found = {each["op"]: each for each in explained}["bind_text_ascii_10k"]
    assert found["recurred"]
    assert found["layer"] in {"boundary", "mixed", "unknown"}, found["reason"]
    subtraction, profile = found["methods"][:2]
    assert subtraction["unavailable"] is not None or subtraction["layers"]["boundary"]["share"] > 0.5
    assert profile["unavailable"] is not None or any("Utf8" in s["name"] for s in found["symbols"][:5])
    assert found["causes"] == [] or found["causes"][0]["kind"] != "addon_source"
    for name in found["evidence"]:
        assert any((finding / name).iterdir())
    for path in finding.glob("explain/*/*.json"):
        assert str(cache_root()) not in path.read_text(), path
    assert json.loads(next(finding.glob("explain/*/profiles/*.speedscope.json")).read_text())["profiles"]


def test_the_known_regression_can_be_filed(finding: Path, tmp_path: Path) -> None:
    done = investigate(
        "report", finding, "--format", "issue", "--for", "node", "--op", "bind_text_ascii_10k",
        "--out", tmp_path, cwd=tmp_path,
    )  # fmt: skip
    (path,) = tmp_path.glob("issue-node-bind_text_ascii_10k--*.md")
    assert str(path) in done.stdout
    text = path.read_text()
    assert "ASCII characters takes" in text.splitlines()[0]
    assert "on v24.11.1" in text.splitlines()[0]
    assert "### Platform\n\n`Linux " in text
    assert "; glibc " in text
    assert "memory 4.00 GiB, processes 512" in text
    assert "| `variables.v8_enable_maglev` | `0` | `1` |" in text
    assert "better-sqlite3-multiple-ciphers 12.11.1" in text
    assert len(text.partition("<details>")[0].splitlines()) <= 60
    assert str(cache_root()) not in text
    assert str(finding.parent) not in text


def test_show_says_the_same_offline(regression: Path) -> None:
    before = (regression / "summary.json").read_bytes()
    shown = investigate("show", regression, "--json", cwd=regression.parent)
    assert shown.stdout.encode() == before
    assert "bind_text_ascii_10k" in investigate("show", regression, cwd=regression.parent).stdout


def test_a_shipped_binary_that_cannot_load_costs_its_own_environment(tmp_path: Path) -> None:
    investigate(
        "sqlite", "--versions", "20.19.5,24.11.1", "--addon", f"{ADDON}@13.0.3", "--prebuilt",
        "--ops", "select_point", "--rounds", 1, "--budget", 0.1, "--out", "run", cwd=tmp_path,
    )  # fmt: skip
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    failures = [f for f in summary["failures"] if "node20.19.5" in f["environment"]]
    assert len(failures) == 1
    assert "Node-API 10" in failures[0]["reason"]
    assert "9" in failures[0]["reason"]
    frame = pd.read_csv(tmp_path / "run" / "measurements.csv")
    assert {e.partition("+")[0] for e in frame["environment"]} == {"node24.11.1"}


def test_killed_and_resumed(tmp_path: Path) -> None:
    arguments = command(
        "sqlite", "--versions", VERSIONS, "--addon", f"{ADDON}@12.11.1",
        "--ops", "select_point,string_concat", "--rounds", 3, "--budget", 0.1, "--no-explain", "--out", "run",
    )  # fmt: skip
    first = tmp_path / "run/raw/round-001/round.json"
    with subprocess.Popen(
        arguments, cwd=tmp_path, env=surroundings(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        wait_for(lambda: first.exists() or process.poll() is not None, "the first round")
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "run/summary.json").exists()
    plan, kept = (tmp_path / "run/plan.json").read_bytes(), first.read_bytes()
    wait_for(lambda: our_containers(running=True) == [], "the end of the containers")
    investigate("resume", "run", cwd=tmp_path)
    assert (tmp_path / "run/plan.json").read_bytes() == plan
    assert first.read_bytes() == kept
    frame = pd.read_csv(tmp_path / "run/measurements.csv")
    cells = frame.groupby(["round", "environment", "twin", "op", "phase"])
    passes = cells["index"].nunique().unstack("phase")
    assert (passes["pass"] == 4).all()
    assert (passes["cold"] == 1).all()
    laps = cells.size().unstack("phase")["pass"].groupby("op").unique()
    assert all(len(counts) == 1 and counts[0] in {12, 16, 20} for counts in laps), "equal in every process"
    assert set(frame["round"]) == {1, 2, 3}
    # Two versions are measured twice a round each.
    assert len(passes) == 3 * 4 * 2


def test_interrupted_leaves_nothing_and_says_how_to_go_on(tmp_path: Path) -> None:
    arguments = command(
        "js", "--versions", VERSIONS, "--ops", "string_concat", "--rounds", 8, "--no-explain", "--out", "run"
    )
    with subprocess.Popen(
        arguments,
        cwd=tmp_path,
        env=surroundings(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        first = tmp_path / "run/raw/round-001/round.json"
        wait_for(lambda: first.exists() or process.poll() is not None, "the first round")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "investigate resume" in said
    assert "Traceback" not in said
    assert our_containers() == []


SETUP = "export function setup() { return []; }\n"
HOSTILE = {
    "throws": f"{SETUP}export function run() {{ throw new Error('boom [bold]'); }}",
    "hungry": f"{SETUP}export function run(s) {{ for (;;) s.push(Buffer.alloc(64 << 20, 1)); }}",
    "leaves": f"{SETUP}export function run() {{ process.exit(3); }}",
    "chatty": f"{SETUP}export function run(s, i) {{ console.log('{{}}'); return i; }}",
    "random": f"{SETUP}export function run() {{ return Math.random(); }}",
    "never": f"{SETUP}export function run() {{ return new Promise(() => {{}}); }}",
    "fine": """
export function setup(ctx) { return { seed: ctx.seed, k: Number(ctx.params.k) }; }
export function run(s, i) {
  let x = s.seed;
  for (let j = 0; j < 1000; j++) x = (x * 31 + j + i) | 0;
  return x + s.k;
}
""",
}


def test_workloads_of_all_kinds_cost_their_own_cells(tmp_path: Path) -> None:
    arguments: list[object] = []
    for name, text in HOSTILE.items():
        (tmp_path / f"{name}.mjs").write_text(text)
        arguments += ["--workload", f"{name}.mjs"]
    investigate(
        "js", "--versions", "24.11.1", "--ops", "none", "--param", "k=7", "--rounds", 1, "--budget", 0.1,
        "--out", "run", *arguments, cwd=tmp_path,
    )  # fmt: skip
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    failed = {f["op"]: f["reason"] for f in summary["failures"]}
    assert set(failed) == set(HOSTILE) - {"fine", "chatty"} - ({"random"} - set(failed))
    assert "boom" in failed["throws"]
    assert "memory" in failed["hungry"]
    assert "never settle" in failed["never"]
    frame = pd.read_csv(tmp_path / "run/measurements.csv")
    assert {"fine", "chatty"} <= set(frame["op"])


def test_a_release_that_does_not_exist_is_named_before_anything_is_built(tmp_path: Path) -> None:
    done = investigate("sqlite", "--versions", "24.99.0", cwd=tmp_path, code=2)
    assert "24.99.0" in done.stderr
    assert "25.0.0" in done.stderr
    assert not (tmp_path / "reports").exists()
