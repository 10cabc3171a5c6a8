"""Runs read back: with raw records they are computed anew, and a dossier of the same run says the same."""

import shutil
from pathlib import Path

import pytest

from investigator import measure, results
from investigator.errors import StoredFileError
from investigator.exports.formats import FORMATS
from investigator.prepare import PLAN_SCHEMA, StoredPlan
from investigator.results import RUN_SCHEMA
from investigator.spec import dump_spec
from investigator.store import RunFolder
from investigator.stored_run import load
from tests.fakes.worker_engine import WorkerEngine
from tests.unit.stored_synthetic import RECORD
from tests.unit.test_explain import screened
from tests.unit.test_measure import BASE, bench_of, cost


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of simulated workers with everything it writes."""
    bench = bench_of(tmp_path_factory.mktemp("stored"), WorkerEngine(cost))
    screened(bench)
    run = bench.folder
    stored = StoredPlan(plan=bench.plan, builds=dict(bench.around.builds), build_failures={}, failures=())
    run.write("spec.toml", dump_spec(bench.plan.spec))
    run.write_json("plan.json", "plan", PLAN_SCHEMA, stored)
    calibration = measure.calibrate(bench, ())
    run.write_json("calibration.json", "calibration", measure.CALIBRATION_SCHEMA, calibration)
    run.write_json("run.json", "run", RUN_SCHEMA, RECORD)
    results.regenerate(run, write=True, draw=False)
    return run


def test_a_run_with_raw_records_is_computed_anew(folder: RunFolder, tmp_path: Path) -> None:
    copy = RunFolder(Path(shutil.copytree(folder.path, tmp_path / "copy")))
    for name in ("summary.json", "measurements.csv"):
        (copy.path / name).write_text("damaged")
    run = load(copy, measurements=True)
    assert run.summary == load(folder, measurements=False).summary
    assert run.summary.baseline == BASE
    assert len(run.passes) > 0
    assert set(run.addon_integrity) == {e.id for e in run.summary.environments if e.addon}


@pytest.mark.parametrize("kind", [name for name in FORMATS if name != "parquet"])
def test_a_dossier_gives_the_same_export(folder: RunFolder, tmp_path: Path, kind: str) -> None:
    dossier = RunFolder(tmp_path)
    for name in ("summary.json", "spec.toml", "run.json", "measurements.csv"):
        shutil.copy(folder.path / name, tmp_path / name)
    exported = [FORMATS[kind](load(each, measurements=True)) for each in (folder, dossier)]
    assert exported[0] == exported[1]
    assert len(exported[0].splitlines()) > 10


def test_a_run_without_results_is_refused(folder: RunFolder, tmp_path: Path) -> None:
    shutil.copy(folder.path / "spec.toml", tmp_path / "spec.toml")
    with pytest.raises(StoredFileError, match=r"run\.json is missing"):
        load(RunFolder(tmp_path), measurements=False)


def test_measurements_nobody_loaded_cannot_be_read(folder: RunFolder) -> None:
    with pytest.raises(ValueError, match="without its measurements"):
        _ = load(folder, measurements=False).passes


def test_a_dossier_is_shown_without_what_would_speak_to_the_terminal(tmp_path: Path) -> None:
    text = "# Réport\n\n- a\u200b@b\t\x1b[31mred\x1b]0;owned\x07 \u202eevil\x9b2J\x08\n"
    (tmp_path / "report.md").write_text(text)
    assert results.stored_text(RunFolder(tmp_path), json=False) == "# Réport\n\n- a\u200b@b\tred evil\n"


@pytest.mark.parametrize(
    ("name", "data", "word"),
    [
        ("report.md", b"\xff\xfe", "no UTF-8"),
        ("summary.json", b'{"schema": 1, "kind": "summary", "tool', "damaged"),
        ("summary.json", b'{"schema": 9, "kind": "summary", "tool": "investigate 7"}', "7 or newer"),
        ("summary.json", b'{"schema": 1, "kind": "run", "tool": "t"}', "expected 'summary'"),
    ],
)
def test_a_damaged_dossier_is_not_shown(tmp_path: Path, name: str, data: bytes, word: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(StoredFileError, match=word):
        results.stored_text(RunFolder(tmp_path), json=name == "summary.json")


@pytest.mark.parametrize("name", ["round-9999", "round-007x"])
def test_a_copied_round_does_not_count_twice(folder: RunFolder, tmp_path: Path, name: str) -> None:
    copy = RunFolder(Path(shutil.copytree(folder.path, tmp_path / "copy")))
    shutil.copytree(copy.round_path(1), copy.raw / name)
    with pytest.raises(StoredFileError, match=f"{name} holds round 1; it is a copy"):
        load(copy, measurements=False)
