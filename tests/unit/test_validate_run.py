"""A validation on simulated workers: rounds, looks, resumption, files, exit codes."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from rich.console import Console

from investigator import gate, results, validating
from investigator.build import BuildFailure
from investigator.engine.interface import Outcome
from investigator.errors import EXIT_GATE_FAILED, EXIT_GATE_UNDECIDED, EXIT_OK
from investigator.host import host_facts
from investigator.measure import Bench, read_rounds
from investigator.observer import NullObserver
from investigator.plan import Environment, Failure, environment_id
from investigator.prepare import PLAN_SCHEMA, StoredPlan
from investigator.report import junit
from investigator.report.validation import comment, step_summary
from investigator.report.validation_terminal import ValidationReport
from investigator.results import RUN_SCHEMA, Finished, RunRecord
from investigator.rounds import learn_pace, run_rounds
from investigator.spec import ARMS, Fix, Spec, dump_spec
from investigator.validate.shapes import Validation
from tests.fakes.worker_engine import WorkerEngine
from tests.unit.report_synthetic import HOSTILE
from tests.unit.test_measure import OPS, bench_of

VERSIONS = {"baseline": "22.21.1", "regressed": "24.11.1", "fix": "24.19.0"}
Cost = Callable[[str, str], float]


def cost(environment: str, op: str) -> float:
    """The regressed side takes twice as long for one operation; the fix repairs it."""
    return 100_000.0 if (environment.partition(":")[0], op) == ("regressed", "select_range") else 50_000.0


def validation_bench(tmp_path: Path, engine: WorkerEngine, fix: Fix | None = None) -> Bench:
    bench = bench_of(tmp_path, engine)
    first = bench.plan.environments[0]
    environments, builds = [], {}
    for label in ARMS:
        directory = tmp_path / "nodes" / VERSIONS[label]
        (directory / "bin").mkdir(parents=True, exist_ok=True)
        (directory / "bin/node").touch()
        (directory / "x.node").touch()
        node = msgspec.structs.replace(
            first.node,
            version=VERSIONS[label],
            directory=directory,
            label=label,
            versions={"node": VERSIONS[label]},
        )
        made = Environment(
            id=environment_id(node, first.addon, "source"), label=label, node=node, addon=first.addon
        )
        environments.append(made)
        builds[made.id] = msgspec.structs.replace(bench.around.builds[first.id], directory=directory)
    spec = Spec(
        versions=tuple(f"{label}={version}" for label, version in VERSIONS.items()),
        baseline="regressed",
        passes=4,
        explain="none",
        fix=fix or Fix(kind="node", ops=("select_range",)),
    )
    plan = msgspec.structs.replace(
        bench.plan, spec=spec, environments=tuple(environments), baseline=environments[1].id
    )
    around = msgspec.structs.replace(bench.around, plan=plan, builds=builds)
    return msgspec.structs.replace(bench, around=around)


def measured(bench: Bench, failures: tuple[Failure, ...] = ()) -> Finished:
    """What the workflow does after the builds."""
    plan = bench.plan
    lost = {f.environment: BuildFailure(reason=f.reason) for f in failures}
    stored = StoredPlan(
        plan=plan,
        builds={name: build for name, build in bench.around.builds.items() if name not in lost},
        build_failures=lost,
        failures=failures,
    )
    bench.folder.write("spec.toml", dump_spec(plan.spec))
    bench.folder.write_json("plan.json", "plan", PLAN_SCHEMA, stored)
    record = RunRecord(
        run_id=plan.run_id,
        started_at="2026-12-01T03:00:00Z",
        host=host_facts(),
        engine={"engine": "fake"},
        fixtures_sha256="",
        mailbox_sha256=None,
        host_program_sha256=None,
        workloads_sha256={},
    )
    bench.folder.write_json("run.json", "run", RUN_SCHEMA, record)
    run_rounds(bench, learn_pace(bench, failures))
    return results.regenerate(bench.folder, write=True, draw=False)


def answer_of(finished: Finished) -> Validation:
    assert finished.validation is not None
    return finished.validation


def exit_of(finished: Finished) -> int:
    return gate.exit_code(finished.stored.plan.spec, finished.analysis, finished.validation)


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return measured(validation_bench(tmp_path_factory.mktemp("passed"), WorkerEngine(cost)))


def test_a_pass_from_rounds_to_files(passed: Finished) -> None:
    finished = passed
    answer = answer_of(finished)
    assert (answer.outcome, exit_of(finished)) == ("pass", EXIT_OK)
    assert len(read_rounds(finished.folder)) == 8
    folder = finished.folder.path
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["headline"] == answer.headline
    assert summary["validation"]["outcome"] == "pass"
    assert summary["validation"]["targets"][0]["op"] == "select_range"
    stored = json.loads((folder / "validation.json").read_text())
    assert (stored["kind"], stored["schema"], stored["fix_kind"]) == ("validation", 1, "node")
    assert "came back" in (folder / "comment.md").read_text()
    assert (folder / "step-summary.md").read_text().startswith("## investigate validate: pass\n")
    report = (folder / "report.md").read_text()
    assert report.index("## Does the fix bring it back") < report.index("## Result")
    suite = ET.parse(folder / "junit.xml").getroot()  # noqa: S314 - our own file
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "0", "0")
    assert [case.get("name") for case in suite.iter("testcase")] == ["the fix as a whole", *OPS]


def test_all_three_sides_run_in_every_round_and_the_regressed_one_twice(passed: Finished) -> None:
    for record in read_rounds(passed.folder):
        sides = [m.invocation.environment.partition(":")[0] for m in record.invocations]
        assert sorted(sides) == ["baseline", "fix", "regressed", "regressed"]


def test_a_fix_that_repairs_nothing_fails_and_is_not_measured_longer(tmp_path: Path) -> None:
    engine = WorkerEngine(
        lambda environment, op: 50_000.0 if environment.startswith("baseline") else 100_000.0
    )
    finished = measured(validation_bench(tmp_path, engine))
    assert exit_of(finished) == EXIT_GATE_FAILED
    assert len(read_rounds(finished.folder)) == 8


def test_what_is_undecided_gets_more_rounds(tmp_path: Path) -> None:
    def near(environment: str, op: str) -> float:
        slow = environment.startswith("fix") and op == "insert_row"
        return cost(environment, op) * (1.035 if slow else 1.0)

    finished = measured(validation_bench(tmp_path, WorkerEngine(near, noise=0.02)))
    records = read_rounds(finished.folder)
    assert len(records) > 8
    later = {op for record in records[8:] for m in record.invocations for op in m.invocation.operations}
    assert later == {"insert_row"}
    assert answer_of(finished).outcome == "pass"
    assert exit_of(finished) == EXIT_OK


def test_other_work_is_invalid_and_no_round_is_spent_on_it(tmp_path: Path) -> None:
    engine = WorkerEngine(
        cost,
        checksum=lambda environment, op, _n: (
            "fewer columns" if environment.startswith("fix") and op == "select_range" else op
        ),
    )
    finished = measured(validation_bench(tmp_path, engine))
    assert answer_of(finished).outcome == "invalid"
    assert "select_range: it computes something else" in answer_of(finished).headline
    assert exit_of(finished) == EXIT_GATE_FAILED
    assert read_rounds(finished.folder) == ()
    assert results.stored_text(finished.folder, json=False) is None
    assert answer_of(results.regenerate(finished.folder, write=False)) == answer_of(finished)


def test_a_fix_that_does_not_build_fails_with_the_reason(tmp_path: Path) -> None:
    bench = validation_bench(tmp_path, WorkerEngine(cost))
    fix = bench.plan.environments[2].id
    lost = Failure(environment=fix, op=None, stage="build", reason="expected ';' before '}' token")
    finished = measured(bench, (lost,))
    assert exit_of(finished) == EXIT_GATE_FAILED
    assert "expected ';'" in answer_of(finished).headline
    assert read_rounds(finished.folder) == ()
    assert (finished.folder.path / "junit.xml").exists()


def test_a_crash_in_another_operation_fails_the_fix_and_what_came_back_is_told(tmp_path: Path) -> None:
    bench = validation_bench(tmp_path, WorkerEngine(cost))
    aborted = Outcome(
        exit_code=134, stderr="Assertion `object->InternalFieldCount() > 0' failed.", elapsed_s=1.0
    )
    bench = msgspec.structs.replace(
        bench,
        engine=WorkerEngine(cost, crash_ops={(bench.plan.environments[2].id, "insert_row"): aborted}),
    )
    finished = measured(bench)
    assert exit_of(finished) == EXIT_GATE_FAILED
    assert len(read_rounds(finished.folder)) == 8
    headline = answer_of(finished).headline
    assert headline.startswith("Fail: Node 24.19.0. insert_row: it fails with the fix: ")
    assert "InternalFieldCount" in headline
    assert re.search(r"select_range: \d+ % \[.+\] of the loss came back\.$", headline)


def test_without_a_loss_it_cannot_be_told(tmp_path: Path) -> None:
    finished = measured(validation_bench(tmp_path, WorkerEngine(lambda _environment, _op: 50_000.0)))
    assert answer_of(finished).outcome == "cannot_tell"
    assert exit_of(finished) == EXIT_GATE_UNDECIDED
    suite = ET.parse(finished.folder.path / "junit.xml").getroot()  # noqa: S314 - our own file
    assert suite.get("errors") == "2"


def test_a_killed_validation_goes_on_without_measuring_a_round_again(tmp_path: Path) -> None:
    engine = WorkerEngine(cost)
    bench = validation_bench(tmp_path, engine)

    def kill(_job: dict[str, object], number: int) -> None:
        if number == 16:
            raise KeyboardInterrupt

    engine.before = kill
    with pytest.raises(KeyboardInterrupt):
        measured(bench)
    engine.before = None
    kept = {r.number: r.started_at_s for r in read_rounds(bench.folder)}
    assert 0 < len(kept) < 8
    finished = measured(bench)
    again = {r.number: r.started_at_s for r in read_rounds(bench.folder)}
    assert again | kept == again
    assert answer_of(finished).outcome == "pass"


# -- what people and programs read --------------------------------------------------------------------------


def hostile_answer(finished: Finished) -> Validation:
    """An answer whose every text is an attack."""
    answer = answer_of(finished)
    return msgspec.structs.replace(
        answer,
        headline=HOSTILE,
        fix=HOSTILE,
        problems=(HOSTILE, f"a\x00b\x0bc\ufffe {HOSTILE}"),
        targets=tuple(
            msgspec.structs.replace(t, op=HOSTILE, reason=HOSTILE, outcome="fail") for t in answer.targets
        ),
        others=tuple(
            msgspec.structs.replace(o, op=HOSTILE, reason=HOSTILE, outcome="undecided") for o in answer.others
        ),
    )


def test_hostile_texts_stay_texts_in_every_form(passed: Finished) -> None:
    answer = hostile_answer(passed)
    for text in (comment(answer, "tool", HOSTILE, HOSTILE), step_summary(answer)):
        assert "<script" not in text
        assert "<img" not in text
        assert not re.search(r"(?<!\\)\[x\]\(", re.sub(r"`{4,}.*?`{4,}", "", text))
        assert "\x1b" not in text
        assert "@root" not in text
    xml = junit.render(answer, run_id=HOSTILE, started_at="now", measuring_s=1.0)
    root = ET.fromstring(xml)  # noqa: S314 - our own text
    shown = "".join(root.itertext()) + "".join(v for e in root.iter() for v in e.attrib.values())
    assert "<script>alert(1)</script>" in shown
    assert not set(shown) & {"\x00", "\x0b", "\x1b", "\ufffe"}
    console = Console(width=150, record=True, markup=False, file=None)
    with console.capture() as captured:
        console.print(ValidationReport(answer, "reports/x"))
    assert "\x1b]8" not in captured.get()


def test_the_page_begins_with_the_answer(passed: Finished) -> None:
    hostile = msgspec.structs.replace(passed, validation=hostile_answer(passed))
    for finished in (passed, hostile):
        text = results.html_report(finished).partition('<script type="application/json"')[0]
        assert text.index("Does the fix bring it back") < text.index('id="result"')
        assert "came back" in text
        assert "<script>alert" not in text
        assert "<img" not in text


def test_the_step_summary_goes_where_github_wants_it(
    passed: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = answer_of(passed)
    target = tmp_path / "summary.md"
    target.write_text("what another step wrote\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(target))
    validating.tell_github(answer, NullObserver())
    validating.tell_github(answer, NullObserver())
    assert target.read_text().startswith("what another step wrote\n## investigate validate: pass")
    assert target.read_text().count("## investigate validate: pass") == 2
    told: list[str] = []
    observer = NullObserver()
    monkeypatch.setattr(observer, "warning", told.append)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    validating.tell_github(answer, observer)
    assert "cannot be written" in told[0]
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    validating.tell_github(answer, observer)
    assert len(told) == 1
