"""The worker on the oldest Node that is not refused: every pure-JS operation, with its collections."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from investigator import prepare, protocol, resources
from investigator.invoke import read_events
from investigator.nodes.parse import parse_versions
from investigator.nodes.sources import platform_for, resolve_all, source_of
from investigator.observer import NullObserver
from investigator.operations import JS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def oldest() -> Path:
    version = ".".join(map(str, prepare.OLDEST_NODE))
    platform = platform_for("local")
    [resolved] = resolve_all(parse_versions(version), platform)
    return source_of("npm", platform, NullObserver()).fetch(resolved) / "bin/node"


@pytest.mark.node
@pytest.mark.parametrize("mode", ["calibrate", "measure"])
def test_every_js_operation_runs_there(oldest: Path, tmp_path: Path, mode: protocol.JobMode) -> None:
    job = protocol.Job(
        mode=mode,
        environment="old",
        family="js",
        addon=None,
        operations=tuple(
            protocol.JobOperation(
                name=operation.name,
                module=str(resources.root() / operation.module),
                workload=operation.workload,
                cold_calls=operation.cold_calls,
                warmup_calls=1,
                loops=1,
            )
            for operation in JS
        ),
        passes=2,
        seed=1,
        params={},
        cipher="none",
        mailbox=None,
        scratch=str(tmp_path),
        output=str(tmp_path / "events.jsonl"),
        calibrate_ns=1_000_000,
    )
    (tmp_path / "job.json").write_bytes(msgspec.json.encode(job))
    worker = resources.root() / "node_fixtures/worker/main.mjs"
    ended = subprocess.run([oldest, worker, tmp_path / "job.json"], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    events, damage = read_events(tmp_path / "events.jsonl")
    assert damage is None
    assert not [event for event in events if isinstance(event, protocol.OperationFailed)]
    told = protocol.Calibration if mode == "calibrate" else protocol.Pass
    assert {event.op for event in events if isinstance(event, told)} == {operation.name for operation in JS}
    if mode == "measure":
        passes = [event for event in events if isinstance(event, protocol.Pass)]
        assert {gc.kind for one in passes for gc in one.gc} & {"scavenge", "mark_sweep_compact"}


@pytest.mark.node
def test_all_that_is_known_of_the_worker_holds_there(oldest: Path) -> None:
    environment = {**os.environ, "INVESTIGATE_TEST_NODE": str(oldest)}
    command = [sys.executable, "-m", "pytest", "-q", "tests/unit/test_worker.py", "-k", "not behind_a_flag"]
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert ended.returncode == 0, ended.stdout[-2000:]
