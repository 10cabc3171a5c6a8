"""What other commands left: reproductions of a finding, bisections of its operation."""

import json
from pathlib import Path

import msgspec
import pytest

from investigator.errors import StoredFileError
from investigator.issue_sources import bisected, reproductions
from investigator.plan import Environment
from investigator.repro.manifest import KIND, REPRO_SCHEMA, Manifest, Program, folder_of
from investigator.store import RunFolder
from tests.unit import issue_synthetic as made
from tests.unit import report_synthetic as synthetic

PAIR: tuple[Environment, Environment] = (made.LOW, made.HIGH)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = tmp_path / "reports" / "run"
    folder.mkdir(parents=True)
    return RunFolder(folder)


def manifest(run: RunFolder, *programs: Program) -> Path:
    folder = folder_of(run, made.OP, made.HIGH.id)
    folder.mkdir(parents=True)
    value = Manifest(
        op=made.OP,
        family="sqlite",
        baseline=made.LOW.id,
        candidate=made.HIGH.id,
        baseline_name="Node 22.21.1",
        candidate_name="Node 24.11.1",
        change_pct=115.0,
        ci_low_pct=110.0,
        ci_high_pct=120.0,
        programs=programs,
    )
    RunFolder(folder).write_json("manifest.json", KIND, REPRO_SCHEMA, value)
    return folder


def program(name: str, *, shipped: bool, files: tuple[str, ...] = ()) -> Program:
    kind = "js" if name == "snippet-js" else "real"
    return Program(
        name=name,
        kind=kind,  # type: ignore[arg-type]
        title=f"title of {name}",
        shipped=shipped,
        reason="it shows 2.1 times",
        files=files,
        output="ratio 2.1\n",
    )


def test_no_reproduction(run: RunFolder) -> None:
    assert reproductions(run, made.OP, made.HIGH) is None


def test_programs_with_their_files(run: RunFolder) -> None:
    folder = manifest(
        run,
        program("real", shipped=True, files=("real.mjs",)),
        program("snippet-js", shipped=True, files=("snippet.mjs", "missing.mjs", "../../secret")),
        program("workload", shipped=False),
    )
    (folder / "real.mjs").write_text("import 'x';")
    (folder / "snippet.mjs").write_text("console.log(1);")
    (folder / "../../secret").write_text("no")
    found = reproductions(run, made.OP, made.HIGH)
    assert found is not None
    assert found.not_shown == ()
    assert found.not_run == ("title of workload",)
    node, addon = found.best(dependency_free=True), found.best(dependency_free=False)
    assert node is not None
    assert addon is not None
    assert (node.name, node.command) == ("snippet-js", "node snippet.mjs")
    assert addon.command == "npm install better-sqlite3-multiple-ciphers@12.11.1 && node real.mjs"
    assert node.files == (("snippet.mjs", "console.log(1);"),)
    assert addon.name == "real"


def test_a_damaged_manifest_is_said(run: RunFolder) -> None:
    (manifest(run) / "manifest.json").write_text("{")
    with pytest.raises(StoredFileError):
        reproductions(run, made.OP, made.HIGH)


def bisection(folder: Path, **changed: object) -> None:
    change = {"last": "23.11.1", "first": "24.0.0", "named": True, "probability": 0.998, "asked": True}
    value = {
        "schema": 1,
        "kind": "bisect",
        "tool": "investigate 0.1.0",
        "headline": f"24.0.0 is the first bad release: {made.OP} +112 % [+108 to +116] against 23.11.1.",
        "op": made.OP,
        "find": "regression",
        "axis": "node",
        "addon": "better-sqlite3-multiple-ciphers 12.11.1",
        "changes": [change],
        "releases": [{"version": "23.11.1", "v8": "12.9"}, {"version": "24.0.0", "v8": "13.6"}],
        "rounds": 60,
        "something_new": 1,
        **changed,
    }
    folder.mkdir(parents=True)
    (folder / "bisect.json").write_text(json.dumps(value))


@pytest.mark.parametrize("place", ["run/bisect-1", "another"])
def test_a_bisection_in_the_run_or_beside_it(run: RunFolder, place: str) -> None:
    bisection(run.path.parent / place)
    found = bisected(run, synthetic.plan(), made.OP, PAIR)
    assert found is not None
    assert (found.last_good, found.first_bad, found.first_fixed) == ("23.11.1", "24.0.0", "")
    assert found.v8 == ("12.9", "13.6")
    assert found.text == (
        "24.0.0 is the first bad release: bind_text_ascii_10k +112 % [+108 to +116] against 23.11.1 "
        "(2 releases, 60 rounds, probability 0.998)"
    )


def test_the_fix_is_joined_to_it(run: RunFolder) -> None:
    bisection(run.path.parent / "a")
    fixed = {"last": "24.18.1", "first": "24.19.0", "named": True, "probability": 0.99, "asked": True}
    bisection(
        run.path.parent / "b", find="fixed", changes=[fixed], headline="24.19.0 is the first fixed release."
    )
    found = bisected(run, synthetic.plan(), made.OP, PAIR)
    assert found is not None
    assert found.first_fixed == "24.19.0"
    assert found.fixed_text.startswith("24.19.0 is the first fixed release (2 releases, 60 rounds")


@pytest.mark.parametrize(
    "changed",
    [
        {"op": "select_range"},
        {"axis": "addon"},
        {"addon": "better-sqlite3-multiple-ciphers 11.10.0"},
        {"changes": []},
        {"find": "fixed"},
        {
            "changes": [
                {"last": "20.1.0", "first": "20.2.0", "named": True, "probability": 1.0, "asked": True}
            ]
        },
        {"changes": [{"last": "x", "first": "y", "named": True, "probability": 1.0, "asked": True}]},
        {"schema": 99},
        {"kind": "plan"},
        {"rounds": "many"},
    ],
)
def test_another_bisection_is_not_taken(run: RunFolder, changed: dict[str, object]) -> None:
    bisection(run.path.parent / "a", **changed)
    assert bisected(run, synthetic.plan(), made.OP, PAIR) is None


def test_addon_releases_are_bisected_too(run: RunFolder) -> None:
    known = made.of_addons()
    change = {"last": "12.11.1", "first": "13.0.0", "named": True, "probability": 0.9, "asked": True}
    name = "better-sqlite3-multiple-ciphers"
    bisection(run.path.parent / "a", axis="addon", addon=name, changes=[change], releases=[])
    found = bisected(run, known.plan, made.OP, (known.baseline, known.candidate))
    assert found is not None
    assert (found.last_good, found.first_bad) == ("12.11.1", "13.0.0")
    assert msgspec.structs.asdict(found)["v8"] == ("", "")


def test_a_fix_is_known_without_a_search_for_the_regression(run: RunFolder) -> None:
    fixed = {"last": "24.18.1", "first": "24.19.0", "named": True, "probability": 0.99, "asked": True}
    bisection(run.path.parent / "b", find="fixed", changes=[fixed], headline="24.19.0 is fixed.")
    found = bisected(run, synthetic.plan(), made.OP, PAIR)
    assert found is not None
    assert (found.first_bad, found.first_fixed) == ("", "24.19.0")
