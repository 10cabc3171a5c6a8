"""`investigate audit` at the command line: what people see, what programs read, and hostile input."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from investigator import cli
from investigator.audit import command
from investigator.observer import Observer
from investigator.results import Finished
from investigator.spec import Spec
from investigator.store import RunFolder
from tests.unit import report_synthetic as synthetic
from tests.unit.published_figures import compare_csv, hyperfine, suite, suite_files, write_json


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def call(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli.app, ["audit", *arguments], input=stdin)


def words(result: Result) -> str:
    return " ".join(result.stdout.split())


def test_what_people_see(elsewhere: Path) -> None:
    result = call(*suite_files(elsewhere), "--claim", "24.0.1=-60%")
    assert result.exit_code == 0
    text = words(result)
    assert text.startswith("The figures cannot tell -60 % from +90.0 %")
    for expected in (
        "each figure is one cold pass",
        "20.1.0 2.00x",
        "24.0.1 2.38x",
        "best against best only -5.0 %",
        "versions were timed one after the other",
        "the addon is not recorded",
        "[v20.1.0.json: timestamp; v24.0.1.json: timestamp]",
    ):
        assert expected in text


def test_what_programs_read(elsewhere: Path) -> None:
    result = call(*suite_files(elsewhere), "--claim", "24.0.1=-60%", "--json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert (told["schema"], told["kind"], told["rerun"]) == (1, "audit", None)
    change = told["audit"]["changes"][0]["weighed"]
    assert (change["op"], change["support"], round(change["best_pct"], 6)) == ("select", "not_told", -5.0)
    assert all(finding["places"] for finding in told["audit"]["findings"])
    assert {place["file"] for f in told["audit"]["findings"] for place in f["places"]} == {
        "v20.1.0.json",
        "v24.0.1.json",
    }


def test_a_table_from_standard_input() -> None:
    result = call("-", stdin="| Node | select/s |\n|--|--|\n| 20.1.0 | 10 |\n| 24.0.1 | 5 |\n")
    assert result.exit_code == 0
    assert "cannot tell -50.0 % from no change" in words(result)
    assert "standard input: line 3" in words(result)


def test_every_format_at_once(elsewhere: Path) -> None:
    Path("c.csv").write_text(compare_csv([10, 11, 12], [5, 6, 5]))
    data = hyperfine({"node-v20.1.0 a": [1, 1.1], "node-v24.0.1 a": [2, 2.1]})
    result = call(*suite_files(elsewhere), "c.csv", write_json(elsewhere, "h.json", data), "--json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)["audit"]
    assert [s["format"] for s in told["sources"]] == [
        "sqlite-benchmarks",
        "sqlite-benchmarks",
        "compare.js",
        "hyperfine",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "there is nothing to audit"),
        (["none.json"], "none.json cannot be read: No such file"),
        (["bad.json"], "bad.json is no valid JSON"),
        (["--claim", "24"], "--claim '24' cannot be read"),
        (["a.json", "b.json", "--claim", "26.1.1=-5%"], "--claim names '26.1.1'"),
        (["a.json", "b.json", "--op", "vacuum"], "--op 'vacuum' is not in these files"),
        (
            ["a.json", "b.json", "--op", "select", "--baseline", "21.0.0", "--rerun"],
            "--baseline names '21.0.0'",
        ),
        (["--claim", "24=-5%", "--rerun"], "--baseline 20.19.5"),
        (["--claim", "24=-5%", "--rerun", "--run", "x"], "give one of them"),
        (["--claim", "24=-5%", "--quick"], "go with --rerun only"),
        (["--claim", "24=-5%", "--out", "x"], "go with --rerun only"),
        (
            ["--claim", "24=-5%", "--baseline", "22", "--op", "select", "--run", "none"],
            "there is no run 'none'",
        ),
        (
            ["--claim", "24=-5%", "--baseline", "22", "--op", "select", "--rerun", "--rounds", "0"],
            "--rounds is 0",
        ),
    ],
)
def test_wrong_input_is_one_sentence(arguments: list[str], said: str, elsewhere: Path) -> None:
    write_json(elsewhere, "a.json", suite("20.1.0", [10]))
    write_json(elsewhere, "b.json", suite("24.0.1", [5]))
    Path("bad.json").write_text("{")
    result = call(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_markup_and_control_characters_are_harmless(elsewhere: Path) -> None:
    extra = {f"{synthetic.HOSTILE}{i}": {"select_ops_per_sec": i + 1} for i in range(3)}
    files = [
        write_json(elsewhere, f"{name}.json", suite(version, [10, 20], extra=extra))
        for name, version in (("[bold]x", "20.1.0"), ("<b>", f"24{synthetic.HOSTILE}"))
    ]
    result = call(*files)
    assert result.exit_code == 0
    for bad in ("\x1b", "\x00", "\x9b", "\u202e", "\x07"):
        assert bad not in result.stdout
    assert "[bold]x.json" in result.stdout


def test_a_line_of_a_megabyte(elsewhere: Path) -> None:
    Path("t.md").write_text(f"| Node | {'x' * 400_000}/s |\n|--|--|\n| 20.1.0 | 10 |\n| 24.0.1 | 5 |\n")
    result = call("t.md")
    assert result.exit_code == 0
    assert len(result.stdout) < 10_000


# -- the measurement is faked: what it asks for, and what becomes of its result ------------------------------


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, elsewhere: Path) -> list[Spec]:
    seen: list[Spec] = []

    def finished(folder: RunFolder) -> Any:
        class Stored:
            plan = synthetic.plan()

        class Run:
            stored = Stored()
            analysis = synthetic.analysis()
            attributions = ()

        run: Any = Run()
        run.folder = folder
        return run

    def investigate(spec: Spec, out: Path | None, _observer: Observer) -> Finished:
        seen.append(spec)
        folder: Finished = finished(RunFolder(out or elsewhere / "run"))
        return folder

    monkeypatch.setattr(command, "investigate", investigate)
    return seen


def test_a_claim_is_measured_and_the_ruling_kept_in_the_run(measured: list[Spec], elsewhere: Path) -> None:
    result = call(
        "--claim", "24.11.1=-54%", "--baseline", "22.21.1", "--op", "bind_text_ascii_10k", "--rerun",
        "--pass", "warm",
        "--addon", "better-sqlite3-multiple-ciphers@12.11.1", "--out", "kept", "--no-explain",
    )  # fmt: skip
    assert result.exit_code == 0
    (spec,) = measured
    assert (spec.versions, spec.ops, spec.explain) == (
        ("22.21.1", "24.11.1"),
        ("bind_text_ascii_10k",),
        "none",
    )
    assert spec.addon == "better-sqlite3-multiple-ciphers@12.11.1"
    text = words(result)
    assert text.startswith("-54 % on 24.11.1 against 22.21.1 (+117 % time per call): confirmed")
    kept = json.loads((elsewhere / "kept" / "audit.json").read_text())
    assert (kept["schema"], kept["kind"]) == (1, "audit")
    assert [r["ruling"] for r in kept["rerun"]["rulings"]] == ["confirmed"]
    assert kept["rerun"]["notes"] == []


def test_cold_figures_are_compared_with_the_cold_pass(measured: list[Spec], elsewhere: Path) -> None:
    files = [
        write_json(elsewhere, "a.json", suite("22.21.1", [1000, 900], timestamp="2025-03-01T10:00:00Z")),
        write_json(elsewhere, "b.json", suite("20.19.5", [457, 890], timestamp="2025-03-01T11:00:00Z")),
    ]
    result = call(*files, "--claim", "20.19.5=-54%", "--baseline", "22.21.1", "--rerun", "--json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)["rerun"]
    (ruling,) = told["rulings"]
    # The made-up run has select_range 119 % slower warm and unchanged cold.
    assert {p["phase"]: p["ruling"] for p in ruling["phases"]} == {
        "warm": "confirmed",
        "cold": "not_reproduced",
    }
    assert (ruling["claimed_phase"], ruling["ruling"]) == ("cold", "not_reproduced")
    assert told["notes"] == [
        "which addon release the claim was measured with is not known; --addon names one"
    ]
    assert measured[0].addon == "better-sqlite3-multiple-ciphers"
