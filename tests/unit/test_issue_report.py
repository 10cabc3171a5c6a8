"""Issue texts from a run folder and from the command line, on simulated workers."""

import io
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from investigator import cli, issue_report, measure, results
from investigator import explain as phase
from investigator.attributed import targets
from investigator.build import BuildFailure
from investigator.console import Console
from investigator.errors import UsageError
from investigator.explain import explain
from investigator.host import host_facts
from investigator.issue_report import Asked
from investigator.prepare import PLAN_SCHEMA, StoredPlan
from investigator.profiling.profiler import Profiler
from investigator.report.issue.forms import compose
from investigator.results import RUN_SCHEMA, RunRecord, regenerate
from investigator.store import RunFolder
from tests.fakes.worker_engine import WorkerEngine
from tests.unit import issue_synthetic as made
from tests.unit.test_explain import screened
from tests.unit.test_issue_gh import called, install
from tests.unit.test_measure import BASE, OTHER, bench_of, cost

COMMANDS = re.compile(r"`(investigate [^`]+)`|^(investigate .+)$", re.MULTILINE)
NAME = f"issue-node-select_range--{OTHER}.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of eight rounds with one finding, which was measured again: no probe, no profiler."""
    bench = bench_of(tmp_path_factory.mktemp("issue"), WorkerEngine(cost))
    screen = screened(bench)
    with pytest.MonkeyPatch.context() as patch:
        none = Profiler(kind="none", reason="profiles cannot be taken here.")
        failed = BuildFailure(reason="no compiler")
        patch.setattr(phase, "choose_profiler", lambda _engine: none)
        patch.setattr(phase, "build_probes", lambda _e, pair, _b, _o: {e.id: failed for e in pair})
        patch.setattr(phase, "find_causes", lambda *_: None)
        explain(bench, screen, targets(screen, "all"))
    run = bench.folder
    stored = StoredPlan(plan=bench.plan, builds=dict(bench.around.builds), build_failures={}, failures=())
    run.write_json("plan.json", "plan", PLAN_SCHEMA, stored)
    run.write_json(
        "calibration.json", "calibration", measure.CALIBRATION_SCHEMA, measure.calibrate(bench, ())
    )
    record = RunRecord(
        run_id="r",
        started_at="2026-11-30T12:00:00Z",
        host=host_facts(),
        engine={"engine": "fake"},
        fixtures_sha256="",
        mailbox_sha256=None,
        host_program_sha256=None,
        workloads_sha256={},
        node_config={BASE: {"variables.v8_enable_maglev": "0"}, OTHER: {"variables.v8_enable_maglev": "1"}},
    )
    run.write_json("run.json", "run", RUN_SCHEMA, record)
    return run


def call_report(folder: RunFolder, *arguments: str) -> Result:
    return CliRunner().invoke(cli.app, ["report", str(folder.path), *arguments])


def test_a_text_for_each_regression_in_the_run_folder(folder: RunFolder) -> None:
    result = call_report(folder, "--format", "issue", "--for", "node")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split() == [str(folder.path / NAME)]
    assert "title: better-sqlite3-multiple-ciphers: reading 50 rows" in result.stderr
    assert f"investigate repro {folder.path} --op select_range" in " ".join(result.stderr.split())
    text = (folder.path / NAME).read_text()
    found = regenerate(folder, write=False).attributions[0]
    assert f"{found.change_pct:+.1f} %" in text
    assert "16 and 16 independent processes, interleaved in 8 rounds" in text
    assert "Measured twice: an earlier 8 rounds" in text
    assert "`variables.v8_enable_maglev` | `0` | `1`" in text
    assert "The layer is not known" in text
    assert "profiles cannot be taken here" in text
    assert str(folder.path.parent) not in text


def test_another_folder(folder: RunFolder, tmp_path: Path) -> None:
    result = call_report(folder, "--format", "issue", "--for", "addon", "--out", str(tmp_path))
    assert result.exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == [NAME.replace("-node-", "-addon-")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "issue"], "needs the tracker: add --for node or --for v8 or --for addon"),
        (["--for", "node"], "--for goes with --format issue"),
        (["--op", "select_range", "--gh"], "--op, --gh goes with --format issue"),
        (
            ["--format", "issue", "--for", "node", "--op", "insert_row"],
            "insert_row is no finding of this run",
        ),
        (["--format", "issue", "--for", "node", "--op", "x"], "no operation 'x'"),
        (["--format", "issue", "--for", "node", "--candidate", "18"], "--candidate 18 is not among"),
        (["--format", "issue", "--for", "node", "--gh"], "here is no terminal to ask"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(folder: RunFolder, arguments: list[str], words: str) -> None:
    before = sorted(path.name for path in folder.path.iterdir())
    result = call_report(folder, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.output
    assert sorted(path.name for path in folder.path.iterdir()) == before


def test_a_run_without_a_regression_says_so(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    finished = regenerate(folder, write=False)
    quiet = msgspec.structs.replace(finished.analysis, comparisons=())
    nothing = msgspec.structs.replace(finished, analysis=quiet)
    monkeypatch.setattr(results, "regenerate", lambda _folder, write: nothing)
    result = call_report(folder, "--format", "issue", "--for", "node")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "No issue is written: this run has no regression." in result.stderr


def test_a_tracker_that_does_not_fit_is_warned_about(folder: RunFolder, tmp_path: Path) -> None:
    finished = regenerate(folder, write=False)
    engine = tuple(msgspec.structs.replace(a, layer="engine") for a in finished.attributions)
    with pytest.MonkeyPatch.context() as patch:
        told = msgspec.structs.replace(finished, attributions=engine)
        patch.setattr(results, "regenerate", lambda _folder, write: told)
        result = call_report(folder, "--format", "issue", "--for", "addon", "--out", str(tmp_path))
    assert result.exit_code == 0
    assert "warning: the evidence speaks against this tracker" in result.stderr
    (path,) = tmp_path.iterdir()
    assert "**The evidence speaks against this tracker.**" in path.read_text()


def test_gh_shows_the_whole_text_before_it_asks(folder: RunFolder, tmp_path: Path) -> None:
    out = io.StringIO()
    console = Console(stdout=out, stderr=io.StringIO(), environment={})
    seen: list[str] = []

    def confirm(_question: str) -> bool:
        seen.append(out.getvalue())
        return False

    with pytest.MonkeyPatch.context() as patch:
        install(tmp_path, "")
        patch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        issue_report.write(folder, Asked(target="node", gh=True), tmp_path / "out", console, confirm)
    text = (tmp_path / "out" / NAME).read_text()
    assert text in seen[0]
    assert called(tmp_path) is None


def test_gh_asks_at_a_real_terminal(folder: RunFolder, tmp_path: Path) -> None:
    install(tmp_path, "print('https://github.com/nodejs/node/issues/1')")
    controller, terminal = pty.openpty()
    os.write(controller, b"y\n")
    words = [
        "report",
        str(folder.path),
        "--format",
        "issue",
        "--for",
        "node",
        "--gh",
        "--out",
        str(tmp_path / "o"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "investigator", *words],
        stdin=terminal,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=False,
    )
    os.close(controller)
    os.close(terminal)
    assert done.returncode == 0, done.stderr
    assert "Open this issue at nodejs/node? [y/N]" in done.stderr
    assert "opened: https://github.com/nodejs/node/issues/1" in done.stderr
    assert called(tmp_path) is not None


def test_without_a_tracker_nothing_is_written(folder: RunFolder) -> None:
    with pytest.raises(UsageError):
        issue_report.write(folder, Asked(), None, Console(), lambda _question: False)


def test_every_command_in_the_texts_exists() -> None:
    """What a text tells others to type is known to the command line, option by option."""
    commands = get_command(cli.app).commands  # type: ignore[attr-defined]
    said: set[str] = set()
    for material in (made.material(), made.pure_js(), made.of_addons(), made.material("unknown")):
        bare = msgspec.structs.replace(material, attribution=None)
        for known in (material, bare):
            text = compose(known, "node").body
            said |= {span or line for span, line in COMMANDS.findall(text)}
    names = {shlex.split(line)[1] for line in said}
    assert names >= {"sqlite", "bisect", "ablate", "explain", "validate", "repro"}
    for line in said:
        _, name, *words = shlex.split(line)
        options = {option for parameter in commands[name].params for option in parameter.opts}
        given = {word for word in words if word.startswith("--")}
        assert given <= options, line
