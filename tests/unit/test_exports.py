"""`investigate export`: what other tools read, checked with strict readers of their formats.

Besides, the output of real runs went through the tools themselves: node-benchmark-compare, benchstat, the
action's own extract.ts, DuckDB and pyarrow.
"""

import collections
import csv
import importlib
import io
import json
import os
import re
import statistics
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from investigator import cli, samples
from investigator.errors import StoredFileError, UsageError
from investigator.exports.benchstat import benchstat
from investigator.exports.formats import FORMATS
from investigator.exports.github_action import github_action
from investigator.exports.node_csv import node_csv
from investigator.exports.processes import processes
from investigator.exports.tables import csv_table, parquet_table
from investigator.exports.words import printable, word
from investigator.stored_run import StoredRun
from tests.unit.report_synthetic import HOSTILE, environment
from tests.unit.stored_synthetic import Effects, passes, run_summary, stored, write_dossier

LABELLED = (environment("22.21.1"), environment("24.11.1", "a"), environment("24.11.1", "fix"))
IDS = tuple(e.id for e in LABELLED)
OPS = {"select_point": 1000.0, "insert_row": 4000.0}


@pytest.fixture
def run() -> StoredRun:
    """Two operations, the baseline with its twin, and one Node version under two labels; six rounds."""
    effects: Effects = {
        op: {IDS[1]: (50.0, 2.0, "slower", "!"), IDS[2]: (100.0, 2.0, "slower", "!")} for op in OPS
    }
    return stored(run_summary(LABELLED, effects), passes(IDS, OPS))


# -- processes --------------------------------------------------------------------------------------------


def test_a_sample_is_a_process_and_not_a_pass(run: StoredRun) -> None:
    found = processes(run)
    counts = collections.Counter((p.op, p.environment) for p in found)
    assert counts == {(op, e): 12 if e == IDS[0] else 6 for op in OPS for e in IDS}
    assert {p.calls for p in found} == {3000}  # three warm passes, the cold one left out


def test_process_values_are_those_of_the_verdicts(run: StoredRun) -> None:
    values = [p.ns_per_op for p in processes(run) if (p.op, p.environment) == ("insert_row", IDS[2])]
    assert statistics.median(values) == pytest.approx(8000.0, rel=0.01)


def test_a_run_without_a_process_is_refused(run: StoredRun) -> None:
    with pytest.raises(StoredFileError, match="no measured process"):
        processes(stored(run.summary, [s for s in passes(IDS, OPS) if s.phase == "cold"]))


# -- nodejs/node ------------------------------------------------------------------------------------------


def node_rows(data: bytes) -> list[dict[str, str]]:
    lines = data.decode().splitlines()
    assert lines[0] == '"binary","filename","configuration","rate","time"'
    return list(csv.DictReader(lines, strict=True))


def test_node_csv_has_old_and_new_processes_of_every_pair(run: StoredRun) -> None:
    rows = node_rows(node_csv(run))
    sides = collections.Counter((r["filename"], r["configuration"], r["binary"]) for r in rows)
    assert len(sides) == 2 * 3 * 2  # operations, pairs with the twin's, binaries
    pair = f"baseline='{IDS[0]}' candidate='{IDS[2]}'"
    assert sides["sqlite/select_point", pair, "old"] == 12
    assert sides["sqlite/select_point", pair, "new"] == 6
    twin = f"baseline='{IDS[0]}' candidate='twin'"
    assert sides["sqlite/select_point", twin, "old"] == sides["sqlite/select_point", twin, "new"] == 6


def test_node_csv_rate_is_operations_per_second(run: StoredRun) -> None:
    rows = [r for r in node_rows(node_csv(run)) if f"candidate='{IDS[1]}'" in r["configuration"]]
    rate = {
        side: statistics.mean(
            float(r["rate"]) for r in rows if r["binary"] == side and r["filename"] == "sqlite/select_point"
        )
        for side in ("old", "new")
    }
    assert rate["old"] == pytest.approx(1e6, rel=0.01)
    assert rate["new"] == pytest.approx(1e6 / 1.5, rel=0.01)
    assert all(0.002 < float(r["time"]) < 0.1 for r in rows)  # three passes of 1000 calls


# -- benchstat --------------------------------------------------------------------------------------------

_KEY = re.compile(r"([a-z][^\sA-Z:]*):(?:[ \t]+(.*))?")


def go_benchmarks(text: str) -> list[tuple[dict[str, str], str, int, dict[str, float]]]:
    """Configuration, name, iterations and values of each result line.

    Stricter than the format (https://golang.org/design/14313-benchmark-format): what its readers would ignore
    as noise is an error here, comments and blank lines apart.
    """
    configuration: dict[str, str] = {}
    found = []
    for line in text.splitlines():
        if not line or line.startswith("# "):
            continue
        if line.startswith("Unit "):
            unit, *settings = line.split()[1:]
            assert unit in {"ns/op", "cpu-ns/op"}
            assert dict(s.split("=") for s in settings) == {"assume": "nothing", "better": "lower"}
        elif line.startswith("Benchmark"):
            name, iterations, *measured = line.split()
            assert re.fullmatch(r"Benchmark[A-Z]\S*", name)
            assert len(measured) % 2 == 0
            values = {unit: float(value) for value, unit in zip(measured[::2], measured[1::2], strict=True)}
            found.append((dict(configuration), name.removeprefix("Benchmark"), int(iterations), values))
        else:
            key = _KEY.fullmatch(line)
            assert key is not None, line
            configuration[key.group(1)] = key.group(2) or ""
    return found


def test_benchstat_lines_are_processes_in_their_environment(run: StoredRun) -> None:
    found = go_benchmarks(benchstat(run).decode())
    counts = collections.Counter((c["environment"], name) for c, name, _, _ in found)
    assert counts == {(e, f"Sqlite/op={op}"): 12 if e == IDS[0] else 6 for e in IDS for op in OPS}
    assert found[0][0]["environment"] == IDS[0]  # the first column is what benchstat compares with
    for configuration, name, iterations, values in found:
        expected = OPS[name.partition("=")[2]] * (1 + 0.5 * IDS.index(configuration["environment"]))
        assert values["ns/op"] == pytest.approx(expected, rel=0.02)
        assert values["cpu-ns/op"] == pytest.approx(expected, rel=0.02)
        assert iterations == 3000


def test_benchstat_tables_are_split_by_the_environment_alone(run: StoredRun) -> None:
    found = go_benchmarks(benchstat(run).decode())
    others = {tuple((k, v) for k, v in c.items() if k != "environment") for c, *_ in found}
    assert len(others) == 1
    assert dict(others.pop()) == {
        "goos": "linux",
        "goarch": "amd64",
        "cpu": "AMD EPYC",
        "tool": "investigate 0.1.0",
        "cipher": "chacha20",
        "storage": "tmpfs",
    }


# -- github-action-benchmark ------------------------------------------------------------------------------


def test_github_action_has_times_and_changes_within_the_run(run: StoredRun) -> None:
    entries = {e["name"]: e for e in json.loads(github_action(run))}
    assert len(entries) == 2 * 3 + 2 * 2
    assert entries["select_point, fix"]["unit"] == "ns/op"
    assert entries["select_point, fix"]["value"] == pytest.approx(2000.0, rel=0.01)
    change = entries[f"select_point, fix against {IDS[0]}"]
    assert change["unit"] == "percent of baseline"
    assert change["value"] == pytest.approx(200.0)
    assert change["range"] == "198.0 to 202.0"
    assert set(change) == {"name", "unit", "value", "range", "extra"}


def test_github_action_leaves_out_what_has_no_number() -> None:
    effects: Effects = {"select_point": {IDS[1]: (0.0, 0.0, "invalid", "")}}
    told = run_summary(LABELLED[:2], effects)
    entries = json.loads(github_action(stored(told, passes(IDS[:2], {"select_point": 1000.0}))))
    assert {e["unit"] for e in entries} == {"ns/op"}
    assert all(e["value"] > 0 for e in entries)


# -- tables -----------------------------------------------------------------------------------------------


def test_csv_is_the_table_of_the_run(run: StoredRun) -> None:
    again = samples.from_csv(io.StringIO(csv_table(run).decode()))
    assert again.equals(run.passes)
    assert len(again) == 6 * 4 * 2 * 4  # rounds, processes, operations, passes with the cold one


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "=cmd|'/C calc'!A0"])
def test_no_cell_of_the_csv_is_a_formula(name: str) -> None:
    data = csv_table(stored(run_summary(LABELLED, {}), passes([name], {name: 1000.0}, rounds=1)))
    for row in list(csv.reader(io.StringIO(data.decode()), strict=True))[1:]:
        cells = dict(zip(samples.COLUMN_TYPES, row, strict=True))
        assert cells["op"] == cells["environment"] == f"'{name}"


def test_parquet_keeps_rows_and_types(run: StoredRun, tmp_path: Path) -> None:
    duckdb = importlib.import_module("duckdb")
    path = tmp_path / "x.parquet"
    path.write_bytes(parquet_table(run))
    with duckdb.connect(":memory:") as connection:
        relation = connection.read_parquet(str(path))
        kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
        rows = relation.fetchall()
    names = {"int64": "BIGINT", "float64": "DOUBLE", "bool": "BOOLEAN", "str": "VARCHAR"}
    assert kinds == {column: names[kind] for column, kind in samples.COLUMN_TYPES.items()}
    assert rows == [tuple(row) for row in run.passes.itertuples(index=False, name=None)]


def test_parquet_without_duckdb_says_what_to_install(run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(UsageError, match=r"pip install duckdb.*--format csv"):
        parquet_table(run)


# -- hostile names ----------------------------------------------------------------------------------------


def test_words_are_one_word_and_stay_different() -> None:
    names = [HOSTILE, HOSTILE + "x", "a b", "a\tb", "a\\b", 'a"b', "a'b", "a=b", "ä", "a%20b", "\ud800"]
    words = [word(name) for name in names]
    assert len(set(words)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_.:+@,~%-]+", each) for each in words)
    assert word("fix:node24.11.1+bsm12.11.1") == "fix:node24.11.1+bsm12.11.1"
    assert printable("a=b c") == "a=b c"
    assert printable("a\x1b[31mb") != printable("ab")


@pytest.mark.parametrize("kind", [name for name in FORMATS if name != "parquet"])
def test_hostile_names_stay_inside_their_field(kind: str) -> None:
    environments = [IDS[0], HOSTILE, f"{HOSTILE}\x00"]
    hostile = stored(run_summary(LABELLED[:1], {}, run_id=HOSTILE), passes(environments, {HOSTILE: 1000.0}))
    text = FORMATS[kind](hostile).decode()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2066]", text)
    if kind == "node-csv":
        assert len({r["configuration"] for r in node_rows(text.encode())}) == 3
    elif kind == "benchstat":
        assert len({c["environment"] for c, *_ in go_benchmarks(text)}) == 3
    elif kind == "csv":
        assert samples.from_csv(io.StringIO(text))["environment"].nunique() == 3
    else:
        assert len({e["name"] for e in json.loads(text)}) == 3


# -- the command ------------------------------------------------------------------------------------------


@pytest.fixture
def dossier(run: StoredRun, tmp_path: Path) -> Path:
    return write_dossier(tmp_path / "dossier", run)


def call(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli.app, ["export", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_export_goes_to_stdout_or_into_a_file(dossier: Path, run: StoredRun, tmp_path: Path) -> None:
    code, out, _ = call(str(dossier), "--format", "benchstat")
    assert (code, out.encode()) == (0, benchstat(run))
    target = tmp_path / "x.parquet"
    assert call(str(dossier), "--format", "parquet", "--out", str(target)) == (0, f"{target}\n", "")
    assert target.read_bytes()[:4] == b"PAR1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--format", "xml"), "there is no format 'xml'; take node-csv, benchstat"),
        (("--format", "parquet"), "parquet is no text; name a file for it with --out"),
        (("--format", "csv", "--out", "."), "is a folder; name a file in it"),
    ],
)
def test_wrong_options_are_one_sentence(dossier: Path, options: tuple[str, ...], message: str) -> None:
    code, out, err = call(str(dossier), *options)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())


def test_a_pipe_is_no_file_to_export_into(dossier: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code, out, err = call(str(dossier), "--format", "csv", "--out", str(pipe))
    assert (code, out) == (2, "")
    assert "is a device or a pipe" in " ".join(err.split())
    assert pipe.is_fifo()


def test_stored_files_that_cannot_be_read_end_with_8(dossier: Path) -> None:
    summary = (dossier / "summary.json").read_text()
    (dossier / "summary.json").write_text(summary.replace('"schema": 1', '"schema": 99', 1))
    code, _, err = call(str(dossier), "--format", "csv")
    assert code == 8
    assert "schema 99" in err
    (dossier / "summary.json").write_text(summary[:100])
    assert call(str(dossier), "--format", "csv")[0] == 8
    (dossier / "summary.json").write_text(summary)
    (dossier / "measurements.csv").unlink()
    assert call(str(dossier), "--format", "csv")[0] == 8
    (dossier / "spec.toml").write_text("versions = 3")
    assert call(str(dossier), "--format", "csv")[0] == 8
