"""Findings to folders without a container: what is asked of the engine, what is kept, what is said."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from investigator import npm_client
from investigator.analysis import Comparison, Interval
from investigator.engine.interface import Outcome, Task
from investigator.errors import HostUnfitError
from investigator.measure import CALIBRATION_SCHEMA, Calibration
from investigator.nodes.interface import NodeBuild
from investigator.observer import NullObserver
from investigator.operations import Operation, find
from investigator.plan import Environment, Pace, Plan
from investigator.repro.make import reproduce
from investigator.repro.manifest import Manifest, folder_of, read_manifests
from investigator.spec import Spec
from investigator.store import RunFolder
from tests.fakes.engine import FakeEngine


def environment(version: str, tmp_path: Path, source: str = "npm") -> Environment:
    node = NodeBuild(
        version=version,
        source="path" if source == "path" else "npm",
        directory=tmp_path / f"node-{version}",
        node_sha256="0",
        versions={},
        config_sha256="0",
    )
    return Environment(id=f"node{version}", label=None, node=node, addon=None)


def finding(op: str, change_pct: float) -> Comparison:
    interval = Interval(
        change_pct=change_pct, ci_low_pct=change_pct - 2, ci_high_pct=change_pct + 2, confidence=0.98
    )
    return Comparison(
        op=op,
        family="js",
        kind="baseline",
        phase="warm",
        baseline="node22.21.1",
        candidate="node24.11.1",
        rounds=8,
        ratio=1 + change_pct / 100,
        wall=interval,
        cpu=interval,
        verdict="slower",
        finding=True,
        below_layout_floor=False,
        noise_floor_pct=1.0,
        published_rule="slower",
        rounds_needed=None,
        minutes_needed=None,
    )


def answers(*changes: float) -> Callable[[Task], Outcome]:
    """An engine's answer: the runner's result file with the next of `changes`."""
    left = list(changes)

    def answer(task: Task) -> Outcome:
        change = left.pop(0)
        name, _, place = task.command[2:5]
        result = {
            "program": name,
            "ns_per_call": {"baseline": 100.0, "candidate": 100.0 + change},
            "change_pct": change,
            "interval_pct": [change - 1, change + 1],
            "range_pct": [change - 3, change + 3],
            "rounds": 10,
        }
        work = next(mount.source for mount in task.mounts if mount.writable)
        (work / Path(place).name).write_text(json.dumps([result]))
        return Outcome(exit_code=0, stdout=f"{name} printed this\n")

    return answer


@pytest.fixture(autouse=True)
def npm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """npm as far as it is used here; what was installed, by platform."""
    installed: list[str] = []

    def lock(directory: Path) -> None:
        wanted = json.loads((directory / "package.json").read_text())
        (directory / "package-lock.json").write_text(json.dumps({"packages": wanted["optionalDependencies"]}))

    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(npm_client, "lock", lock)
    monkeypatch.setattr(npm_client, "install_locked", lambda _, platform: installed.append(platform))
    monkeypatch.setattr(npm_client, "versions", lambda _: ("22.21.1", "24.11.1"))
    return installed


def run_of(
    tmp_path: Path, *operations: Operation, sides: tuple[Environment, Environment] | None = None
) -> tuple[RunFolder, Plan]:
    pair = sides or (environment("22.21.1", tmp_path), environment("24.11.1", tmp_path))
    plan = Plan(
        spec=Spec(command="js", versions=("22.21.1", "24.11.1")),
        run_id="r",
        environments=pair,
        baseline=pair[0].id,
        operations=operations,
    )
    run = RunFolder(tmp_path / "run")
    paces = tuple(Pace(op=o.name, warmup_calls=40, loops=30) for o in operations)
    calibration = Calibration(paces=paces, invocation_s={}, failures=(), checksums={})
    run.write_json("calibration.json", "calibration", CALIBRATION_SCHEMA, calibration)
    return run, plan


def built_in(name: str) -> Operation:
    operation = find(name)
    assert operation is not None
    return operation


def made_by(run: RunFolder, plan: Plan, engine: FakeEngine, *findings: Comparison) -> dict[str, Manifest]:
    return {m.op: m for m in reproduce(run, plan, findings, engine, NullObserver())}


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_what_shows_its_finding_is_kept_with_what_it_printed(tmp_path: Path, npm: list[str]) -> None:
    run, plan = run_of(tmp_path, built_in("json_parse"))
    engine = FakeEngine(default=answers(28.0))
    (program,) = made_by(run, plan, engine, finding("json_parse", 30.0))["json_parse"].programs
    assert program.shipped
    assert program.files == ("snippet-js/snippet.mjs",)
    folder = folder_of(run, "json_parse", "node24.11.1")
    assert files_in(folder) == {
        ".dockerignore",
        "Dockerfile",
        "README.md",
        "RESULT.txt",
        "manifest.json",
        "package-lock.json",
        "package.json",
        "repro.json",
        "run.mjs",
        "run.sh",
        "snippet-js/snippet.mjs",
    }
    assert (folder / "run.sh").stat().st_mode & 0o111
    assert "snippet-js printed this" in (folder / "RESULT.txt").read_text()
    assert "warmup: 40, calls: 30" in (folder / "snippet-js/snippet.mjs").read_text()
    assert len(npm) == 1
    assert read_manifests(run)[0].programs == (program,)


def test_what_does_not_is_removed_and_replaces_what_was_kept_before(tmp_path: Path) -> None:
    run, plan = run_of(tmp_path, built_in("json_parse"))
    made_by(run, plan, FakeEngine(default=answers(28.0)), finding("json_parse", 30.0))
    made_by(run, plan, FakeEngine(default=answers(12.0)), finding("json_parse", 30.0))
    folder = folder_of(run, "json_parse", "node24.11.1")
    assert files_in(folder) == {"RESULT.txt", "manifest.json"}
    assert "not shipped" in (folder / "RESULT.txt").read_text()


def test_what_is_undecided_has_one_more_look_with_more_rounds(tmp_path: Path) -> None:
    run, plan = run_of(tmp_path, built_in("json_parse"))
    # 19.5 is just below two thirds of 30, its interval reaches them.
    engine = FakeEngine(default=answers(19.5, 29.0))
    (program,) = made_by(run, plan, engine, finding("json_parse", 30.0))["json_parse"].programs
    assert program.shipped
    assert program.change_pct == 29.0
    assert "--rounds" not in engine.tasks[0].command
    assert engine.tasks[1].command[-2:] == ("--rounds", "20")
    assert "measured once more" in program.output
    engine = FakeEngine(default=answers(19.5, 19.5))
    (program,) = made_by(run, plan, engine, finding("json_parse", 30.0))["json_parse"].programs
    assert not program.shipped
    assert len(engine.tasks) == 2


def test_a_task_that_fails_or_lies_is_a_reason(tmp_path: Path) -> None:
    run, plan = run_of(tmp_path, built_in("json_parse"), built_in("map_fill"))

    def lying(task: Task) -> Outcome:
        work = next(mount.source for mount in task.mounts if mount.writable)
        (work / "result-snippet-js.json").symlink_to("/etc/passwd")
        return Outcome(exit_code=0)

    engine = FakeEngine([Outcome(exit_code=1, stderr="error: no compiler\n"), lying])
    made = made_by(run, plan, engine, finding("json_parse", 30.0), finding("map_fill", 30.0))
    assert "no compiler" in made["json_parse"].programs[0].reason
    assert not made["map_fill"].programs[0].shipped
    assert "could not be run" in made["map_fill"].programs[0].reason


def test_tasks_see_the_shipped_files_read_only_and_run_the_shipped_command(tmp_path: Path) -> None:
    run, plan = run_of(tmp_path, built_in("json_parse"))
    engine = FakeEngine(default=answers(28.0))
    made_by(run, plan, engine, finding("json_parse", 30.0))
    (task,) = engine.tasks
    assert task.command[:3] == ("/bin/sh", "/repro/run.sh", "snippet-js")
    assert [str(mount.target) for mount in task.mounts if mount.writable] == ["/work"]


def test_a_build_of_ones_own_is_given_as_an_argument(tmp_path: Path) -> None:
    own = (environment("22.21.1", tmp_path), environment("24.11.1", tmp_path, source="path"))
    run, plan = run_of(tmp_path, built_in("json_parse"), sides=own)
    engine = FakeEngine(default=answers(28.0))
    made = made_by(run, plan, engine, finding("json_parse", 30.0))["json_parse"]
    assert engine.tasks[0].command[-2:] == ("--candidate-node", "/given/candidate-node")
    assert "--candidate-node DIR" in made.needs[0]
    folder = folder_of(run, "json_parse", "node24.11.1")
    assert "24.11.1" not in (folder / "package.json").read_text()
    assert str(tmp_path) not in "".join((folder / name).read_text() for name in files_in(folder)), (
        "a place of this machine"
    )


def test_flags_of_node_are_told_and_used(tmp_path: Path) -> None:
    plain = environment("22.21.1", tmp_path)
    flagged = msgspec.structs.replace(environment("24.11.1", tmp_path), node_flags=("--no-opt",))
    run, plan = run_of(tmp_path, built_in("json_parse"), sides=(plain, flagged))
    made = made_by(run, plan, FakeEngine(default=answers(28.0)), finding("json_parse", 30.0))["json_parse"]
    assert made.notes == ("Node of the candidate runs with --no-opt.",)
    folder = folder_of(run, "json_parse", "node24.11.1")
    sides = json.loads((folder / "repro.json").read_text())["sides"]
    assert (sides["baseline"]["flags"], sides["candidate"]["flags"]) == ([], ["--no-opt"])
    assert "runs with" in (folder / "README.md").read_text()


def test_an_operation_of_the_probes_has_no_program_and_says_so(tmp_path: Path) -> None:
    run, plan = run_of(tmp_path, built_in("call_noop"))
    engine = FakeEngine()
    made = made_by(run, plan, engine, finding("call_noop", 30.0))["call_noop"]
    assert made.programs == ()
    assert "probes" in made.notes[0]
    assert engine.tasks == []


def test_a_run_without_its_number_of_calls_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    run, plan = run_of(tmp_path, built_in("json_parse"))
    empty = Calibration(paces=(), invocation_s={}, failures=(), checksums={})
    run.write_json("calibration.json", "calibration", CALIBRATION_SCHEMA, empty)
    with pytest.raises(HostUnfitError, match="measure it again"):
        made_by(run, plan, FakeEngine(), finding("json_parse", 30.0))
