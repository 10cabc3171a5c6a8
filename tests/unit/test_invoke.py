"""One invocation: what hostile, dying and careless workers leave, and what that costs."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from investigator.engine.interface import Outcome, Started, Task
from investigator.errors import HostUnfitError
from investigator.exchange import UnreadableError, exchange, take
from investigator.invoke import Result, invoke, read_events
from investigator.plan import Invocation, Pace
from investigator.protocol import JobMode, Pass
from investigator.samples import columns_from_events, joined
from investigator.workloads import copy_workloads
from tests.fakes.worker_engine import WorkerEngine
from tests.unit.test_measure import BASE, OPS, OTHER, bench_of

Lines = list[dict[str, object]]
Spoil = Callable[[Lines, int], Outcome | None]
"""Changes the events of a process (numbered from 1); an outcome it returns replaces that of the process."""


class SpoiltEngine(WorkerEngine):
    """A simulated worker whose file is changed before the harness sees it."""

    def __init__(self, spoil: Spoil) -> None:
        super().__init__(lambda _environment, _op: 50_000.0)
        self.spoil = spoil

    def run(self, task: Task, started: Started | None = None) -> Outcome:
        outcome = super().run(task)
        path = Path(str(self.jobs[-1]["output"]))
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        replaced = self.spoil(lines, len(self.jobs))
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return replaced or outcome


def invoked(tmp_path: Path, spoil: Spoil, mode: JobMode = "measure") -> tuple[Result, SpoiltEngine]:
    engine = SpoiltEngine(spoil)
    around = bench_of(tmp_path, engine).around
    job = Invocation(round=1, position=0, environment=BASE, twin=False, group="sqlite", operations=OPS)
    paces = {op: Pace(op=op, warmup_calls=3, loops=100) for op in OPS}
    return invoke(engine, around, job, mode=mode, paces=paces, timeout_s=9.0, keep=tmp_path / "kept"), engine


def last_pass(lines: Lines) -> dict[str, object]:
    return [line for line in lines if line["type"] == "pass"][-1]


# -- hostile events -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("op", "not_planned"),
        ("op", "x" * 100_000),
        ("calls", 0),
        ("calls", -1),
        ("calls", 2**64),
        ("wall_ns", 0),
        ("wall_ns", -5),
        ("wall_ns", 2**63),
        ("start_ns", 2**63),
        ("cpu_user_us", -1),
        ("cpu_user_us", 2**62),
        ("cpu_system_us", 2**63),
        ("involuntary_switches", -1),
        ("rss_bytes", 2**65),
        ("heap_used_bytes", -1),
        ("external_bytes", 10**400),
        ("fold", 2**70),
        ("index", -1),
        ("gc", [{"kind": "scavenge", "count": -1, "pause_ns": 1}]),
        ("gc", [{"kind": "scavenge", "count": 1, "pause_ns": 2**63}]),
        ("gc", [{"kind": "scavenge", "count": 1, "pause_ns": 2**52}] * 3000),
        ("calls", 1.5),
        ("wall_ns", None),
    ],
)
def test_a_number_that_no_worker_writes_costs_the_operation_last_begun(
    tmp_path: Path, field: str, value: object
) -> None:
    def spoil(lines: Lines, _process: int) -> None:
        last_pass(lines)[field] = value

    result, _ = invoked(tmp_path, spoil)
    assert result.culprit == OPS[-1]  # the fake begins each operation once
    assert [failure.op for failure in result.failures] == [OPS[-1]]
    assert "of its events file" in result.failures[0].reason
    assert len(result.failures[0].reason) < 500
    rows = joined([columns_from_events(result.invocation, dict.fromkeys(OPS, "sqlite"), result.events, 0.0)])
    assert len(rows) == sum(isinstance(event, Pass) for event in result.events) > 0
    kept, damage = read_events(tmp_path / "kept", OPS)
    assert (kept, damage) == (result.events, None)


def test_the_largest_numbers_allowed_fit_into_the_table(tmp_path: Path) -> None:
    def spoil(lines: Lines, _process: int) -> None:
        most = 2**53 - 1
        last_pass(lines).update(
            calls=most,
            wall_ns=most,
            start_ns=2**62 - 1,
            cpu_user_us=2**43 - 1,
            cpu_system_us=2**43 - 1,
            rss_bytes=most,
            gc=[{"kind": "scavenge", "count": most, "pause_ns": most}] * 64,
        )

    result, _ = invoked(tmp_path, spoil)
    assert result.failures == ()
    rows = joined([columns_from_events(result.invocation, dict.fromkeys(OPS, "sqlite"), result.events, 0.0)])
    assert rows["wall_ns"].max() == 2**53 - 1


@pytest.mark.parametrize("type_", ["begin", "checksum"])
def test_events_about_foreign_operations_are_damage(tmp_path: Path, type_: str) -> None:
    def spoil(lines: Lines, _process: int) -> None:
        next(line for line in reversed(lines) if line["type"] == type_)["op"] = "\x1b[31mother"

    result, _ = invoked(tmp_path, spoil)
    assert result.culprit in OPS
    assert "is about" in result.failures[0].reason
    assert "\x1b" not in result.failures[0].reason


def test_what_comes_before_the_proof_is_damage(tmp_path: Path) -> None:
    def spoil(lines: Lines, _process: int) -> None:
        del lines[0]

    result, _ = invoked(tmp_path, spoil)
    assert [failure.op for failure in result.failures] == [None]
    assert "comes before the proof" in result.failures[0].reason


def test_a_calibration_without_calls_is_damage(tmp_path: Path) -> None:
    def spoil(lines: Lines, _process: int) -> None:
        next(line for line in lines if line["type"] == "calibration")["calls"] = 0

    result, _ = invoked(tmp_path, spoil, "calibrate")
    assert result.culprit == OPS[-1]


def test_a_cache_that_vanished_is_a_failure(tmp_path: Path) -> None:
    def spoil(_lines: Lines, _process: int) -> None:
        for path in tmp_path.glob("nodes/*/bin/node"):
            path.unlink()

    result, _ = invoked(tmp_path, spoil)
    assert "not the file that was planned" in result.failures[0].reason


# -- processes that die early -------------------------------------------------------------------------------


def test_a_process_that_dies_before_its_first_operation_gets_a_second_chance(tmp_path: Path) -> None:
    def spoil(lines: Lines, process: int) -> Outcome | None:
        if process > 1:
            return None
        del lines[1:]
        return Outcome(exit_code=134, stderr="no thread left")

    result, engine = invoked(tmp_path, spoil)
    assert len(engine.jobs) == 2
    assert (result.failures, result.culprit) == ((), None)
    assert any(isinstance(event, Pass) for event in result.events)
    assert "no thread left" in result.remarks[0]


@pytest.mark.parametrize(
    ("mode", "outcome", "processes"),
    [
        ("measure", Outcome(exit_code=134), 2),
        ("measure", Outcome(exit_code=None, timed_out=True), 1),
        ("calibrate", Outcome(exit_code=134), 1),
    ],
)
def test_it_gets_no_third_chance_and_none_for_hanging(
    tmp_path: Path, mode: JobMode, outcome: Outcome, processes: int
) -> None:
    def spoil(lines: Lines, _process: int) -> Outcome:
        del lines[1:]
        return outcome

    result, engine = invoked(tmp_path, spoil, mode)
    assert len(engine.jobs) == processes
    assert [failure.op for failure in result.failures] == [None]


def test_a_full_heap_is_told_with_what_helps(tmp_path: Path) -> None:
    said = "<--- Last few GCs --->\nFATAL ERROR: Reached heap limit - JavaScript heap out of memory"

    def spoil(lines: Lines, _process: int) -> Outcome:
        del lines[3:]
        return Outcome(exit_code=134, stderr=f"{said}\n----- Native stack trace -----\n 1: 0xb7c f [node]\n")

    result, _ = invoked(tmp_path, spoil)
    [failure] = result.failures
    assert failure.op == result.culprit
    assert "ran out of JavaScript heap" in failure.reason
    assert "--max-old-space-size" in failure.reason


def test_an_abort_is_told_by_what_failed_and_not_by_its_stack(tmp_path: Path) -> None:
    said = (
        "\n  #  /node/bin/node[7]: void node::F(v8::Isolate*) at ../src/api/hooks.cc:142\n"
        "  #  Assertion failed: (env) != nullptr\n\n"
        "----- Native stack trace -----\n\n 9: 0x199e0d1  [/node/bin/node]\n"
    )

    def spoil(lines: Lines, _process: int) -> Outcome:
        del lines[2:]
        return Outcome(exit_code=134, stderr=said)

    result, _ = invoked(tmp_path, spoil)
    [failure] = result.failures
    assert "hooks.cc:142 Assertion failed: (env) != nullptr" in failure.reason
    assert "0x199e0d1" not in failure.reason


def test_an_impostor_gets_no_second_chance(tmp_path: Path) -> None:
    def spoil(lines: Lines, _process: int) -> Outcome:
        del lines[1:]
        lines[0]["config_sha256"] = "f" * 64
        return Outcome(exit_code=1)

    result, engine = invoked(tmp_path, spoil)
    assert len(engine.jobs) == 1
    assert "another configuration" in result.failures[0].reason


def test_an_operation_that_kills_its_process_is_not_repeated_here(tmp_path: Path) -> None:
    def spoil(lines: Lines, _process: int) -> Outcome:
        del lines[2:]
        return Outcome(exit_code=139)

    result, engine = invoked(tmp_path, spoil)
    assert (len(engine.jobs), result.culprit) == (1, OPS[0])


# -- teardown -----------------------------------------------------------------------------------------------


def test_a_teardown_that_throws_is_a_remark(tmp_path: Path) -> None:
    def spoil(lines: Lines, _process: int) -> None:
        thrown: dict[str, object] = {
            "type": "op_failed",
            "op": OPS[0],
            "stage": "teardown",
            "message": "Error: bye",
            "stack": "",
        }
        lines.insert(-1, thrown)

    result, _ = invoked(tmp_path, spoil)
    assert result.failures == ()
    assert result.remarks == (f"the teardown of {OPS[0]} failed, its times count: Error: bye",)


# -- files --------------------------------------------------------------------------------------------------


def test_only_small_regular_files_are_taken(tmp_path: Path) -> None:
    good = tmp_path / "good"
    good.write_bytes(b"12345678")
    (tmp_path / "link").symlink_to(good)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    assert take(good, 8) == b"12345678"
    for name, reason in {
        "link": "no regular file",
        "dangling": "no regular file",
        "fifo": "no regular file",
        "directory": "no regular file",
        "absent": "is missing",
        "good": "larger than 7 bytes",
    }.items():
        with pytest.raises(UnreadableError, match=reason):
            take(tmp_path / name, 7)


def test_the_folder_of_a_task_lets_every_user_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with exchange() as folder:
        assert folder.stat().st_mode & 0o777 == 0o755
        assert (folder / "out").is_dir()
    assert not folder.exists()


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(HostUnfitError, match="no space is left"), exchange():
        pass
    with pytest.raises(HostUnfitError, match="no space is left"):
        copy_workloads(("mine.mjs",), tmp_path / "workloads")


def test_variables_of_an_environment_reach_its_processes_and_no_other(tmp_path: Path) -> None:
    engine = WorkerEngine(lambda _environment, _op: 50_000.0)
    around = bench_of(tmp_path, engine).around
    changed = tuple(
        msgspec.structs.replace(e, variables={"SIZE": "10"} if e.id == BASE else {})
        for e in around.plan.environments
    )
    around = msgspec.structs.replace(around, plan=msgspec.structs.replace(around.plan, environments=changed))
    seen: list[Mapping[str, str]] = []
    run = engine.run

    def watched(task: Task) -> Outcome:
        seen.append(task.environment)
        return run(task)

    engine.run = watched  # type: ignore[method-assign, assignment]
    for name in (BASE, OTHER):
        job = Invocation(round=1, position=0, environment=name, twin=False, group="sqlite", operations=OPS)
        paces = {op: Pace(op=op, warmup_calls=3, loops=100) for op in OPS}
        invoke(engine, around, job, mode="measure", paces=paces, timeout_s=9.0, keep=None)
    assert seen == [{"SIZE": "10"}, {}]


@pytest.mark.parametrize(
    ("tail", "kept", "damage"),
    [
        ('{"type":"done","wall_ns":1}\n', 2, None),
        ('{"type":"done","wall_ns":1}', 2, None),
        ('{"type":"done","wall_ns":1}\r\n', 2, None),
        ('{"type":"done","wal', 1, "line 2 of its events file is not an event"),
        ('{"type":"done","wall_ns":1}{"type":"done","wall_ns":1}\n', 1, "line 2"),
        ('{"type":"done",\n"wall_ns":1}\n', 1, "line 2"),
        ('\n{"type":"done","wall_ns":1}\n', 1, "line 2"),
        ('{"type":"done","wall_ns":1}\n{"type":"done"}\n', 2, "line 3"),
    ],
)
def test_an_event_has_a_line_of_its_own(tmp_path: Path, tail: str, kept: int, damage: str | None) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"type":"failed","stage":"load","message":"","stack":""}\n' + tail.encode())
    events, found = read_events(path)
    assert len(events) == kept
    assert found is None if damage is None else str(found).startswith(damage)
