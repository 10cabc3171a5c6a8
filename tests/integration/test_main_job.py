"""The main job on real Node releases, real addon builds and real containers."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pandas as pd
import pytest

from investigator.cache import cache_root

pytestmark = [pytest.mark.container, pytest.mark.node]

ADDON = "better-sqlite3-multiple-ciphers@12.11.1"
VERSIONS = "22.21.1,24.11.1"


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "investigator", *map(str, arguments)]


def investigate(
    *arguments: object, cwd: Path, code: int | None = 0, timeout_s: float = 900
) -> subprocess.CompletedProcess[str]:
    """Run the tool; `code` is its exit code, None leaves that to the caller."""
    done = subprocess.run(
        command(*arguments),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert code in {None, done.returncode}, f"{done.args}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def our_containers() -> list[str]:
    client = docker.from_env()
    try:
        return [str(c.id) for c in client.containers.list(all=True, filters={"label": "investigate=1"})]
    finally:
        client.close()


@pytest.fixture(autouse=True)
def needs_docker(docker_engine: object) -> Iterator[None]:
    """Every test here takes the engine that the session checked, and leaves nothing running."""
    yield
    assert our_containers() == []


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, docker_engine: object) -> Path:
    """One run of the known string conversion regression, made once."""
    folder = tmp_path_factory.mktemp("main")
    investigate(
        "sqlite", "--versions", VERSIONS, "--addon", ADDON, "--engine", "docker",
        "--ops", "bind_text_ascii_20,bind_text_ascii_10k", "--rounds", 7, "--budget", 2,
        "--explain", 1, "--out", "run",
        cwd=folder,
    )  # fmt: skip
    return folder / "run"


def rows(run: Path) -> dict[str, dict[str, object]]:
    comparisons = json.loads((run / "summary.json").read_text())["comparisons"]
    return {row["op"]: row for row in comparisons if row["kind"] == "baseline"}


def test_the_known_regression_is_found_and_the_short_string_is_not_doubled(finished: Path) -> None:
    long, short = rows(finished)["bind_text_ascii_10k"], rows(finished)["bind_text_ascii_20"]
    assert (long["verdict"], long["finding"]) == ("slower", True)
    assert 60 < float(str(long["change_pct"])) < 180
    assert float(str(short["change_pct"])) < 50


def test_the_run_folder_is_complete_and_names_no_place_of_the_machine(finished: Path) -> None:
    for name in ("spec.toml", "plan.json", "run.json", "calibration.json", "analysis.json", "report.md"):
        text = (finished / name).read_text()
        assert text
        assert str(cache_root()) not in text, name
        assert str(finished.parent) not in text, name
    frame = pd.read_csv(finished / "measurements.csv")
    assert set(frame["op"]) == {"bind_text_ascii_20", "bind_text_ascii_10k"}
    assert frame["twin"].any()
    assert set(frame["phase"]) == {"cold", "pass"}


def test_builds_are_recorded_and_share_the_amalgamation(finished: Path) -> None:
    environments = json.loads((finished / "summary.json").read_text())["environments"]
    assert len({e["sqlite3_object_sha256"] for e in environments}) == 1
    assert len({e["binding_sha256"] for e in environments}) == 2
    builds = json.loads((finished / "plan.json").read_text())["builds"]
    assert all("-O3" in b["flags"]["sqlite3.c"] for b in builds.values())


def test_the_known_regression_lies_in_the_boundary(finished: Path) -> None:
    """A busy machine may leave it unknown; nothing may put it elsewhere."""
    explained = json.loads((finished / "summary.json").read_text())["attributions"]
    found = {each["op"]: each for each in explained}["bind_text_ascii_10k"]
    assert found["recurred"]
    assert found["layer"] in {"boundary", "unknown"}, found["reason"]
    subtraction, profile = found["methods"][:2]
    assert subtraction["unavailable"] is not None or subtraction["layers"]["boundary"]["share"] > 0.8
    assert profile["unavailable"] is not None or any("Utf8" in s["name"] for s in found["symbols"][:5])
    assert found["causes"] == [] or found["causes"][0]["kind"] != "addon_source"
    for name in found["evidence"]:
        assert any((finished / name).iterdir())
    for path in finished.glob("explain/*/*.json"):
        assert str(cache_root()) not in path.read_text(), path
    assert json.loads(next(finished.glob("explain/*/profiles/*.speedscope.json")).read_text())["profiles"]


def test_the_known_regression_can_be_filed(finished: Path, tmp_path: Path) -> None:
    done = investigate(
        "report", finished, "--format", "issue", "--for", "node", "--op", "bind_text_ascii_10k",
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
    assert str(finished.parent) not in text


def test_show_says_the_same_offline(finished: Path) -> None:
    before = (finished / "summary.json").read_bytes()
    shown = investigate("show", finished, "--json", cwd=finished.parent)
    assert shown.stdout.encode() == before
    assert "bind_text_ascii_10k" in investigate("show", finished, cwd=finished.parent).stdout


def test_a_shipped_binary_that_cannot_load_costs_its_own_environment(tmp_path: Path) -> None:
    investigate(
        "sqlite", "--versions", "20.19.5,24.11.1", "--addon", "better-sqlite3-multiple-ciphers@13.0.3",
        "--prebuilt", "--ops", "select_point", "--rounds", 1, "--budget", 0.1, "--out", "run", cwd=tmp_path,
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
        "sqlite", "--versions", VERSIONS, "--addon", ADDON, "--ops", "select_point,string_concat",
        "--rounds", 5, "--budget", 0.1, "--no-explain", "--out", "run",
    )  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        arguments, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        wait_for(lambda: (tmp_path / "run/raw/round-002/round.json").exists() or process.poll() is not None)
        os.kill(process.pid, signal.SIGKILL)
    assert not (tmp_path / "run/summary.json").exists()
    plan = (tmp_path / "run/plan.json").read_bytes()
    kept = (tmp_path / "run/raw/round-001/round.json").read_bytes()
    wait_for(lambda: running_containers() == 0)
    investigate("resume", "run", cwd=tmp_path)
    assert (tmp_path / "run/plan.json").read_bytes() == plan
    assert (tmp_path / "run/raw/round-001/round.json").read_bytes() == kept
    frame = pd.read_csv(tmp_path / "run/measurements.csv")
    counts = frame.groupby(["round", "environment", "twin", "op", "phase"]).size().unstack("phase")
    assert (counts["pass"] == 4).all()
    assert (counts["cold"] == 1).all()
    assert len(counts) >= 5 * 3 * 2


def test_interrupted_leaves_nothing_and_says_how_to_go_on(tmp_path: Path) -> None:
    arguments = command(
        "js", "--versions", VERSIONS, "--ops", "string_concat", "--rounds", 8, "--no-explain", "--out", "run"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        arguments, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: (tmp_path / "run/raw/round-001/round.json").exists() or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
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


def running_containers() -> int:
    client = docker.from_env()
    try:
        return len(client.containers.list(filters={"label": "investigate=1"}))
    finally:
        client.close()


def wait_for(condition: object, timeout_s: float = 400.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("waited too long")
