"""`investigate slopes`: lines and planes over the sizes of a run, compared between versions."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from investigator import cli
from investigator.errors import UsageError
from investigator.operations import JS, SQLITE, choose, offered, sized
from investigator.samples import Sample
from investigator.slopes import texts
from investigator.slopes.series import Compared, measured_series
from investigator.stored_run import StoredRun
from tests.unit.report_synthetic import environment
from tests.unit.stored_synthetic import passes, run_summary, stored, write_dossier

BASE, NEW = environment("22.21.1"), environment("24.11.1")
TEXTS = {
    f"utf8_value_ascii_{name}": size
    for name, size in (("20", 20), ("200", 200), ("2k", 2000), ("10k", 10_000))
}
GRID = {f"row_bulk_{r}x{c}": (r, c) for r in (1, 50, 200) for c in (1, 4, 12)}


def run_of(baseline: Mapping[str, float], candidate: Mapping[str, float], rounds: int = 8) -> StoredRun:
    """A run with these times per call, within a percent."""
    rows = [
        *passes([BASE.id], baseline, rounds=rounds),
        *(of(sample, NEW.id) for sample in passes([NEW.id], candidate, rounds=rounds) if not sample.twin),
    ]
    return stored(run_summary((BASE, NEW), {}), rows)


def of(sample: Sample, environment_id: str) -> Sample:
    return msgspec.structs.replace(sample, environment=environment_id)


def texts_of(call: float, character: float) -> dict[str, float]:
    return {op: call + character * size for op, size in TEXTS.items()}


def grid_of(call: float, row: float, cell: float) -> dict[str, float]:
    return {op: call + row * r + cell * r * c for op, (r, c) in GRID.items()}


def only(run: StoredRun) -> Compared:
    (found,) = measured_series(run)
    return found


def test_sizes_are_read_from_names() -> None:
    assert [
        (s.series, s.size, s.columns)
        for n in ("row_bulk_50x4", "napi.utf8_value_ascii_2k", "select_blob_100k")
        if (s := sized(n))
    ] == [
        ("row_bulk", 50, 4),
        ("napi.utf8_value_ascii", 2000, None),
        ("select_blob", 100_000, None),
    ]
    assert [sized(op.name) for op in JS] == [None] * len(JS)
    assert sized("sha256_8mb") is sized("call_noop") is None


def test_a_series_can_be_asked_for_by_its_name() -> None:
    names = [operation.name for operation in choose(["row_bulk", "buffer_copy"], offered("js"))]
    assert set(names) == {*GRID, "buffer_copy_3k", "buffer_copy_30k", "buffer_copy_100k"}
    ascii_texts = {op.name for op in SQLITE if op.name.startswith("bind_text_ascii")}
    assert {op.name for op in choose(["bind_text_ascii"], offered("sqlite"))} == ascii_texts
    with pytest.raises(UsageError, match="no operation 'bind_text_twobyte'"):
        choose(["bind_text_twobyte"], offered("sqlite"))  # one size only is no series


def test_a_longer_string_that_costs_more_is_found_in_its_slope() -> None:
    found = only(run_of(texts_of(100.0, 0.5), texts_of(100.0, 1.0)))
    call, character = found.changes
    assert (call.name, character.name) == ("call", "character")
    assert character.baseline_ns.estimate == pytest.approx(0.5, rel=0.03)
    assert character.candidate_ns.estimate == pytest.approx(1.0, rel=0.03)
    assert character.difference_ns.low > 0.4
    assert character.most_pct.estimate == pytest.approx(98.0, rel=0.05)  # 5,000 of 5,100 ns
    assert (call.marked, character.marked) == (False, True)
    assert found.holds
    assert found.rounds == 8
    assert found.sizes == ("20", "200", "2k", "10k")


def test_a_cell_that_costs_more_is_found_in_the_plane() -> None:
    found = only(run_of(grid_of(300.0, 150.0, 40.0), grid_of(300.0, 150.0, 60.0)))
    marks = {change.name: change.marked for change in found.changes}
    assert marks == {"call": False, "column": False, "row": False, "cell": True}
    assert found.changes[3].difference_ns.estimate == pytest.approx(20.0, rel=0.1)


def test_names_of_columns_are_paid_once_a_call() -> None:
    times = {op: ns + 70.0 * GRID[op][1] for op, ns in grid_of(240.0, 170.0, 120.0).items()}
    found = only(run_of(times, times))
    assert [c.baseline_ns.estimate for c in found.changes] == pytest.approx([240, 70, 170, 120], rel=0.1)
    assert found.worst_residual < 0.01


def test_no_difference_gets_no_mark_and_neither_does_the_twin() -> None:
    found = only(run_of(grid_of(300.0, 150.0, 40.0), grid_of(300.0, 150.0, 40.0)))
    for change in found.changes:
        assert not change.marked
        assert change.twin_ns is not None
        assert change.difference_ns.low < 0.0 < change.difference_ns.high


def test_what_is_on_no_line_gets_no_mark() -> None:
    bent = {op: 100.0 + 0.5 * size + (4000.0 if size == 200 else 0.0) for op, size in TEXTS.items()}
    found = only(run_of(texts_of(100.0, 0.5), bent))
    assert not found.holds
    assert not any(change.marked for change in found.changes)


def test_a_round_without_all_sizes_is_left_out() -> None:
    run = run_of(texts_of(100.0, 0.5), texts_of(100.0, 1.0))
    rows = run.passes
    missing = (rows["round"] == 3) & (rows["op"] == "utf8_value_ascii_2k") & (rows["environment"] == NEW.id)
    assert only(msgspec.structs.replace(run, table=rows[~missing])).rounds == 7


def test_too_few_rounds_give_no_interval() -> None:
    found = only(run_of(texts_of(100.0, 0.5), texts_of(100.0, 1.0), rounds=4))
    assert not found.changes[1].marked
    assert math.isinf(found.changes[1].difference_ns.high)


@pytest.fixture
def dossier(tmp_path: Path) -> Callable[[StoredRun], str]:
    return lambda run: str(write_dossier(tmp_path / "run", run))


def call(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli.app, ["slopes", *arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.stdout, result.stderr


def test_the_command_prints_model_and_coefficients(dossier: Callable[[StoredRun], str]) -> None:
    path = dossier(run_of(texts_of(100.0, 0.5), texts_of(100.0, 1.0)))
    code, out, _ = call(path)
    assert code == 0
    assert out.startswith("utf8_value_ascii: each character costs ")
    assert "time = call + character x characters" in out
    told = json.loads(call(path, "--json")[1])
    assert (told["kind"], told["schema"]) == ("slopes", 1)
    assert [change["name"] for change in told["series"][0]["changes"]] == ["call", "character"]


def test_json_has_no_infinite_numbers(dossier: Callable[[StoredRun], str]) -> None:
    out = call(dossier(run_of(texts_of(100.0, 0.5), texts_of(100.0, 1.0), rounds=4)), "--json")[1]
    assert json.loads(out)["series"][0]["changes"][1]["difference_ns"]["high"] is None


def test_a_run_without_a_series_says_how_to_get_one(dossier: Callable[[StoredRun], str]) -> None:
    code, _, err = call(dossier(run_of({"select_point": 100.0}, {"select_point": 100.0})))
    assert code == 2
    assert "--ops row_bulk,utf8_value_ascii" in " ".join(err.split())


def test_figures_have_three_digits() -> None:
    assert [texts._ns(value, "+") for value in (0.4567, -1.234, 12.34, 1234.4)] == [
        "+0.457",
        "-1.23",
        "+12.3",
        "+1,234",
    ]
