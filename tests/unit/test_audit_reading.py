"""Other people's files: every number comes out as written, with its place, or is left out and noted."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from investigator.audit import cells
from investigator.audit.figures import Notes, Sheet, usable, version_in
from investigator.audit.markdown import MAX_CHARACTERS, read_markdown
from investigator.audit.reading import MAX_BYTES, read_file, read_files
from investigator.errors import UsageError
from tests.unit.published_figures import SELECTS, compare_csv, hyperfine, suite, suite_files, write_json

NBSP, MINUS = "\u00a0", "\u2212"


def markdown(text: str) -> Sheet:
    return read_markdown(text, "m.md", Notes("m.md"))


def said(sheet: Sheet) -> set[tuple[str, str, float]]:
    return {(f.version, f.op, round(f.value, 9)) for f in sheet.figures}


def test_the_suite_is_read_with_the_field_of_every_figure(tmp_path: Path) -> None:
    old, new = read_files(suite_files(tmp_path))
    selects = [f for f in old.figures if f.op == "select"]
    assert [f.value for f in selects] == list(SELECTS["20.1.0"])
    assert selects[1].place.at == "results.In Memory.select_ops_per_sec"
    assert {f.unit for f in selects} == {"rate"}
    assert [f.value for f in old.figures if f.op == "setup"] == [0.1] * 5
    assert [f.op for f in old.figures if f.op == "vacuum"] == []
    assert new.rows[0].version == "24.0.1"
    assert new.rows[0].measured_at is not None
    assert (new.rows[0].platform, new.rows[0].addon, new.rows[0].host) == ("linux x64", None, None)


def test_another_library_in_the_same_file_is_another_operation(tmp_path: Path) -> None:
    plain = {"Plain": {"library": "other", "select_ops_per_sec": 9000}}
    path = write_json(tmp_path, "a.json", suite("24.0.1", [1, 2], library="ours", extra=plain))
    sheet = read_file(path, "a.json")
    assert [f.value for f in sheet.figures if f.op == "select"] == [1, 2]
    assert [f.value for f in sheet.figures if f.op == "select (other)"] == [9000]
    assert sheet.rows[0].addon == "ours"


def test_what_is_no_measurement_is_left_out_and_noted(tmp_path: Path) -> None:
    bad = ["7", -1, 0, True, 5.5]
    path = tmp_path / "a.json"
    text = json.dumps(suite("24.0.1", bad, extra={"Broken": {"error": "boom"}, "Odd": 7}))
    path.write_text(text.replace("5.5", "NaN"))
    sheet = read_file(str(path), "a.json")
    assert [f for f in sheet.figures if f.op == "select"] == []
    noted = {(r.place.at, r.text) for r in sheet.remarks}
    assert ("results.Usual.select_ops_per_sec", "is no positive number and was left out") in noted
    assert ("results.Broken.error", "failed: boom") in noted
    assert ("results.Odd", "is no configuration and was left out") in noted
    assert ("a value", "NaN is no number") in noted


def test_a_key_given_twice_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    text = json.dumps(suite("24.0.1", [100]))
    path.write_text(
        text.replace('"select_ops_per_sec": 100', '"select_ops_per_sec": 1, "select_ops_per_sec": 2')
    )
    sheet = read_file(str(path), "a.json")
    assert [f.value for f in sheet.figures if f.op == "select"] == [2]
    assert any("twice" in r.text and "select_ops_per_sec" in r.place.at for r in sheet.remarks)


def test_hyperfine_finds_the_version_in_command_or_parameters(tmp_path: Path) -> None:
    data = hyperfine(
        {"/opt/node-v20.1.0/bin/node a.js": [1.0, 1.1], "/opt/node-v24.0.1/bin/node a.js": [2.0, 2.1]}
    )
    sheet = read_file(write_json(tmp_path, "h.json", data), "h.json")
    assert [(f.version, f.value, f.samples) for f in sheet.figures] == [
        ("20.1.0", 1.05, (1.0, 1.1)),
        ("24.0.1", 2.05, (2.0, 2.1)),
    ]
    assert len({f.op for f in sheet.figures}) == 1
    entry = data["results"][0]  # type: ignore[index]
    entry["command"], entry["parameters"] = "node a.js", {"version": "22.3.4"}
    sheet = read_file(write_json(tmp_path, "h.json", data), "h.json")
    assert [f.version for f in sheet.figures] == ["22.3.4", "24.0.1"]


def test_hyperfine_notes_failed_runs_and_bad_times(tmp_path: Path) -> None:
    data = hyperfine({"node20 a": [1.0, 1.1], "b": [2.0, 2.1]})
    results: Any = data["results"]
    results[0]["exit_codes"], results[1]["times"] = [0, 1], [2.0, None, -3]
    sheet = read_file(write_json(tmp_path, "h.json", data), "h.json")
    assert [f.samples for f in sheet.figures] == [(1.0, 1.1), (2.0,)]
    assert {r.place.at for r in sheet.remarks} == {
        "results[0].exit_codes",
        "results[1].times[1]",
        "results[1].times[2]",
    }


def test_compare_js_keeps_every_run_and_its_line(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(compare_csv([10, 11], [20, 21]) + '"new", "x", "y"\n"new", "x", "y", nan, 1\n')
    sheet = read_file(str(path), "c.csv")
    assert [(f.version, f.op, f.samples, f.order) for f in sheet.figures] == [
        ("old", 'buffers/x.js n=10 type="a"', (10.0, 11.0), (2, 4)),
        ("new", 'buffers/x.js n=10 type="a"', (20.0, 21.0), (3, 5)),
    ]
    assert {r.place.at for r in sheet.remarks} == {"line 6", "line 7"}


def test_a_table_with_versions_in_rows() -> None:
    sheet = markdown(
        "| Node.js Version | SELECT ops/sec | vs v20 LTS |\n|---|---:|---|\n"
        f"| v20.1.0 (LTS) | 2,000 | baseline |\n| v24.0.1 | ~800 | **{MINUS}60%** |\n"
    )
    assert said(sheet) == {("20.1.0", "select", 2000.0), ("24.0.1", "select", 800.0)}
    (stated,) = sheet.stated
    assert (stated.version, stated.op, stated.change_pct, stated.place.at) == (
        "24.0.1",
        "select",
        -60.0,
        "line 4, vs v20 LTS",
    )
    assert [r.text for r in sheet.remarks] == ["select of 24.0.1 is only given as about 800"]


def test_a_table_with_versions_in_columns() -> None:
    sheet = markdown(
        "| op | Node 20 | node v22.1.0 | v24.0.1 | change |\n|--|--|--|--|--|\n"
        "| select (µs) | 52.1 ± 0.5 | 50 ± 2 % | 1.2 ms | +3 % |\n"
        "| insert ops/s | 17.2k (-3%) | 18k | - | |\n"
    )
    assert said(sheet) == {
        ("20", "select", 52.1e-6),
        ("22.1.0", "select", 50e-6),
        ("24.0.1", "select", 1.2e-3),
        ("20", "insert", 17200.0),
        ("22.1.0", "insert", 18000.0),
    }
    first, second = sheet.figures[:2]
    assert (first.low, first.high) == pytest.approx((51.6e-6, 52.6e-6))
    assert (second.low, second.high) == pytest.approx((49e-6, 51e-6))
    assert [(s.version, s.change_pct) for s in sheet.stated] == [("20", -3.0)]


def test_a_table_of_hyperfine_has_its_spread() -> None:
    sheet = markdown(
        "| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |\n|:---|---:|---:|---:|---:|\n"
        "| `node-v20.1.0 b.js` | 12.1 ± 0.4 | 11 | 14 | 1.00 |\n"
        "| `node-v24.0.1 b.js` | 15.1 ± 0.4 | 14 | 18.5 | 1.25 ± 0.06 |\n"
    )
    assert [f.version for f in sheet.figures] == ["20.1.0", "24.0.1"]
    assert [f.value for f in sheet.figures] == pytest.approx([0.0121, 0.0151])
    assert [f.low for f in sheet.figures] == pytest.approx([0.011, 0.014])
    assert [f.high for f in sheet.figures] == pytest.approx([0.014, 0.0185])


def test_addon_host_and_runs_of_a_row() -> None:
    sheet = markdown(
        "| Node | Addon version | Host | runs | select/s | V8 | DB Size (MB) |\n|--|--|--|--|--|--|--|\n"
        "| 20.1.0 | 11.10.0 | a1 | 30 | 10 | 11.3 | 3.98 |\n| 24.0.1 | 12.4.1 | a2 | 30 | 9 | 13.6 | 3.98 |\n"
    )
    assert [(r.addon_version, r.host) for r in sheet.rows] == [("11.10.0", "a1"), ("12.4.1", "a2")]
    assert [(f.op, f.value, f.count) for f in sheet.figures] == [("select", 10.0, 30), ("select", 9.0, 30)]


def test_headings_tell_tables_of_one_shape_apart() -> None:
    table = "| Node | Select/sec |\n|--|--|\n| v20.1.0 | {} |\n| v24.0.1 | {} |\n\n"
    sheet = markdown("#### Usual\n\n" + table.format(10, 9) + "#### Mapped\n\n" + table.format(20, 19))
    assert [(f.setting, f.value) for f in sheet.figures] == [
        ("Usual", 10),
        ("Usual", 9),
        ("Mapped", 20),
        ("Mapped", 19),
    ]


def test_a_table_inside_a_quotation_and_one_without_versions() -> None:
    sheet = markdown(
        "> | Node | op/s |\n> |--|--|\n> | v20.1.0 | 10 |\n> | v24.0.1 | 9 |\n\n"
        "| a | b |\n|--|--|\n| c | 1 |\n"
    )
    assert len(sheet.figures) == 2
    assert [r.place.at for r in sheet.remarks] == ["line 6"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18,383", 18383.0),
        ("1,234,567.8", 1234567.8),
        ("1.234.567,8", 1234567.8),
        ("1.234.567", 1234567.0),
        ("17,5", 17.5),
        ("18 383", 18383.0),
        (f"18{NBSP}383", 18383.0),
        ("18'383", 18383.0),
        ("18_383", 18383.0),
        ("1.5e3", 1500.0),
        ("0.25", 0.25),
        ("**7,497**", 7497.0),
        ("`7`", 7.0),
        ("[7,497](https://example.org/x)", 7497.0),
        ("12.5k", 12500.0),
        ("1.2M", 1.2e6),
        ("~7,900", 7900.0),
    ],
)
def test_numbers_as_people_write_them(text: str, value: float) -> None:
    read = cells.read_cell(text, "rate", 1.0)
    assert read is not None
    assert read.value == pytest.approx(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "baseline",
        "-57%",
        "57 %",
        "1.25x",
        "3.98 MB",
        "20 runs",
        "2025-11-14",
        "NaN",
        "inf",
        "0",
        "-5",
        "1e999",
    ],
)
def test_what_is_no_measurement_in_a_cell(text: str) -> None:
    assert cells.read_cell(text, "rate", 1.0) is None


@pytest.mark.parametrize(
    ("text", "unit", "seconds"),
    [
        ("52 µs", "time", 52e-6),
        ("1.2 ms", "time", 1.2e-3),
        ("3 s", "time", 3.0),
        ("250 ns", "time", 250e-9),
        ("5 ops/s", "rate", 5.0),
    ],
)
def test_a_unit_in_the_cell_comes_first(text: str, unit: str, seconds: float) -> None:
    read = cells.read_cell(text, "unknown", 1.0)
    assert read is not None
    assert read.unit == unit
    assert read.value == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("SELECT ops/sec", ("rate", 1.0)),
        ("Insert/sec", ("rate", 1.0)),
        ("kops", ("rate", 1e3)),
        ("Mean [ms]", ("time", 1e-3)),
        ("time (s)", ("time", 1.0)),
        ("latency µs", ("time", 1e-6)),
        ("Reads", ("unknown", 1.0)),
        ("score", ("unknown", 1.0)),
    ],
)
def test_units_of_headings(heading: str, expected: tuple[str, float]) -> None:
    assert cells.unit_of(heading) == expected


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v24.11.1", "24.11.1"),
        ("node24.11.1", "24.11.1"),
        ("/opt/node-v24.11.1/bin/node", "24.11.1"),
        ("Node 22", "22"),
        ("node.js 22.x", "22"),
        ("v20 (LTS)", "20"),
        ("select", None),
        ("3 rows", None),
        ("1.2.3.4", None),
    ],
)
def test_versions_in_texts(text: str, version: str | None) -> None:
    assert version_in(text) == version


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "no valid JSON"),
        (b"[1]", "JSON of no known kind"),
        (b"{}", "JSON of no known kind"),
        (b'{"results": {}, "node_version": "v1.2.3"}', "holds no figure"),
        (b'{"results": [{"command": 1}]}', "holds no figure"),
        (b"[" * 200_000, "nested deeper"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested deeper"),
        (b"plain text", "holds no table"),
        (b"", "holds no table"),
        (b"\xff\xfe\xff", "is no UTF-16 text"),
        (b"caf\xe9 | 1", "is no UTF-8 text (byte 3)"),
        (b"a\0b", "NUL"),
        (
            b'"binary", "filename", "configuration", "rate", "time"\n' + b'"' + b"x" * 200_000,
            "cannot be read as CSV",
        ),
        (b"x" * (MAX_CHARACTERS + 1), "too long for Markdown"),
        (b" " * (MAX_BYTES + 1), "larger than 16 MiB"),
        (b'{"node_version": "v1.1.1", "results": ' + b"9" * 5000 + b"}", "JSON of no known kind"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(UsageError) as caught:
        read_file(str(path), "x")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_files_that_are_none(tmp_path: Path) -> None:
    for name, words in (("none", "No such file"), (".", "it is no file"), ("a\0b", "cannot be read")):
        with pytest.raises(UsageError, match=words):
            read_file(str(tmp_path / name), name)
    files = suite_files(tmp_path)
    with pytest.raises(UsageError, match="named twice"):
        read_files([files[0], files[0]])


def test_names_are_as_long_as_it_takes_to_tell_them_apart(tmp_path: Path) -> None:
    paths = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        paths += suite_files(tmp_path / folder)
    assert [s.name for s in read_files(paths)] == [
        "one/v20.1.0.json",
        "one/v24.0.1.json",
        "two/v20.1.0.json",
        "two/v24.0.1.json",
    ]


def test_other_encodings_that_name_themselves(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for codec in ("utf-16", "utf-8-sig"):
        path.write_bytes(json.dumps(suite("24.0.1", [5])).encode(codec))
        assert [f.value for f in read_file(str(path), "a").figures if f.op == "select"] == [5]


def test_a_megabyte_in_one_name_stays_short(tmp_path: Path) -> None:
    data = suite("24.0.1", [5], extra={"<b>" * 300_000 + "\x1b[31m": {"select_ops_per_sec": 4}})
    sheet = read_file(write_json(tmp_path, "a.json", data), "a.json")
    assert max(len(f.setting) for f in sheet.figures) <= 80
    assert "\x1b" not in "".join(f.setting for f in sheet.figures)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    ["select_ops_per_sec", "setup_time", "vacuum_time", "library", "error", "command", "times", "mean"]
)
RESULTS = st.dictionaries(
    st.text(max_size=8), st.dictionaries(FIELDS, JSON_VALUES, max_size=5) | JSON_VALUES, max_size=4
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.fixed_dictionaries(
        {
            "node_version": JSON_VALUES,
            "timestamp": JSON_VALUES,
            "platform": JSON_VALUES,
            "results": RESULTS | st.lists(st.dictionaries(FIELDS, JSON_VALUES, max_size=5), max_size=3),
        }
    )
)
def test_any_json_is_read_or_refused(tmp_path: Path, data: dict[str, object]) -> None:
    path = tmp_path / "fuzz.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with contextlib.suppress(UsageError):
        sheet = read_file(str(path), "fuzz.json")
        assert all(usable(f.value) is not None for f in sheet.figures)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=300)
    | st.text(alphabet="|-: \n0123456789.,k%±()msv[]`*<>e", max_size=400).map(str.encode)
)
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "fuzz"
    path.write_bytes(data)
    with contextlib.suppress(UsageError):
        assert read_file(str(path), "fuzz").figures


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.lists(st.text(alphabet="0123456789.,-+±%kms v~e()", max_size=14), min_size=3, max_size=3),
        min_size=1,
        max_size=5,
    )
)
def test_any_table_of_numbers_is_read(rows: list[list[str]]) -> None:
    body = "\n".join(f"| v{i}.1.1 | {' | '.join(row)} |" for i, row in enumerate(rows, 20))
    sheet = markdown(f"| Node | a/s | b [ms] | c |\n|--|--|--|--|\n{body}\n")
    assert all(usable(f.value) is not None for f in sheet.figures)
    assert all(f.low is None or (f.high is not None and 0 < f.low <= f.high) for f in sheet.figures)
