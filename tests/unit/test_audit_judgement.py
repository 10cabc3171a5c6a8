"""What published figures can and cannot support: every finding on figures whose truth is known."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from investigator.audit.claims import Claim, parse_claim
from investigator.audit.evidence import Finding
from investigator.audit.figures import Figure, Notes, Place, Row, Sheet
from investigator.audit.judgement import Audit, audit
from investigator.audit.markdown import read_markdown
from investigator.audit.operations import measured_by, operation_for
from investigator.audit.reading import read_file, read_files
from investigator.audit.weigh import alike
from investigator.errors import UsageError
from tests.unit.published_figures import SELECTS, compare_csv, hyperfine, suite, suite_files, write_json

TABLE = """
| Node | SELECT ops/sec | vs 20 |
|--|--|--|
| v20.1.0 | 2,000 | baseline |
| v24.0.1 | 805 | -60% |
"""


def claim(text: str = "24.0.1=-60%") -> Claim:
    return parse_claim(text, "rate")


def of(found: Audit, check: str) -> list[Finding]:
    return [finding for finding in found.findings if finding.check == check]


def one(found: Audit, check: str) -> Finding:
    (finding,) = of(found, check)
    return finding


def table(text: str) -> Sheet:
    return read_markdown(text, "m.md", Notes("m.md"))


@pytest.fixture
def claimed(tmp_path: Path) -> Audit:
    return audit(read_files(suite_files(tmp_path)), [claim()])


def test_the_conclusion_names_what_the_same_figures_also_give(claimed: Audit) -> None:
    assert claimed.conclusion == (
        "The figures cannot tell -60 % from +90.0 % for select per second on 24.0.1 against 20.1.0: the same "
        "data give -60.0 % to +90.0 % over 5 settings, best against best -5.0 %."
    )
    (change,) = claimed.changes
    assert change.weighed.support == "not_told"
    assert (change.weighed.op, change.weighed.baseline) == ("select", "20.1.0")


def test_one_cold_pass(claimed: Audit) -> None:
    finding = one(claimed, "one_cold_pass")
    assert finding.kind == "against"
    assert "1,000 select calls once" in finding.text
    assert len(finding.places) == 10


def test_spread_inside_single_runs(claimed: Audit) -> None:
    finding = one(claimed, "spread_inside_run")
    assert "20.1.0 2.00x (1,000/s to 2,000/s), 24.0.1 2.38x (800/s to 1,900/s)" in finding.text
    assert [p.at for p in finding.places] == [
        "results.No Sync.select_ops_per_sec",
        "results.Usual.select_ops_per_sec",
        "results.Usual.select_ops_per_sec",
        "results.No Sync.select_ops_per_sec",
    ]


def test_best_against_best(claimed: Audit) -> None:
    finding = one(claimed, "best_against_best")
    assert finding.text.startswith(
        "select, 24.0.1 against 20.1.0: best against best only -5.0 % (2,000/s under Usual"
    )
    assert [(p.file, p.at) for p in finding.places] == [
        ("v20.1.0.json", "results.Usual.select_ops_per_sec"),
        ("v24.0.1.json", "results.No Sync.select_ops_per_sec"),
    ]
    assert "sign depends" in one(claimed, "settings_disagree").text


def test_versions_one_after_the_other(claimed: Audit) -> None:
    finding = one(claimed, "one_after_the_other")
    assert "20.1.0 at 2025-03-01 10:00, 24.0.1 1 h 30 min later" in finding.text
    assert [p.at for p in finding.places] == ["timestamp", "timestamp"]


def test_what_is_not_recorded(claimed: Audit) -> None:
    missing = {f.check for f in claimed.findings if f.kind == "missing"}
    assert missing == {"addon_not_recorded", "host_not_recorded", "no_interval", "no_control"}
    assert one(claimed, "addon_not_recorded").places[0].at == "results.*.library"


def test_the_claim_is_found_in_the_figures(claimed: Audit) -> None:
    finding = one(claimed, "claim_located")
    assert "-60 % is 800 over 2,000 under Usual (1 of 5 settings give it)" in finding.text
    assert finding.kind == "for"


def test_a_claim_that_no_figures_give(tmp_path: Path) -> None:
    found = audit(read_files(suite_files(tmp_path)), [claim("24.0.1=-75%")], op="select")
    assert "no two figures under the same setting give -75 %" in one(found, "claim_not_located").text
    assert found.changes[0].weighed.support == "contradicted"
    assert found.conclusion.startswith("The figures contradict -75 %")


def test_settings_that_agree_still_do_not_exclude_the_machine(tmp_path: Path) -> None:
    files = [
        write_json(tmp_path, "a.json", suite("20.1.0", [1000, 1010, 990])),
        write_json(tmp_path, "b.json", suite("24.0.1", [505, 500, 495], timestamp="2025-03-01T10:05:00Z")),
    ]
    found = audit(read_files(files), [claim("24.0.1=-50%")])
    assert found.changes[0].weighed.support == "within_session"
    assert "cannot tell a change of Node from whatever else changed" in found.conclusion


def test_without_a_claim_every_change_is_weighed_largest_first(tmp_path: Path) -> None:
    found = audit(read_files(suite_files(tmp_path)), [])
    assert [c.weighed.op for c in found.changes] == ["select", "insert"]
    assert found.changes[0].weighed.published_pct == pytest.approx(-60.0)
    assert found.changes[1].weighed.published_pct == 0.0
    assert found.conclusion.startswith("Of 2 changes that the figures suggest they support none")
    assert "best against best only -5.0 %" in of(found, "best_against_best")[0].text


def test_a_version_measured_twice_is_its_own_control(tmp_path: Path) -> None:
    files = [
        *suite_files(tmp_path),
        write_json(
            tmp_path,
            "c.json",
            suite("20.1.0", [1500, 1500, 1500, 1500, 1500], timestamp="2025-04-01T10:00:00Z"),
        ),
    ]
    found = audit(read_files(files), [claim("24.0.1=-60%")], op="select", baseline="20.1.0")
    finding = one(found, "version_against_itself")
    assert "20.1.0 against itself under Usual differs by 1.33x (1,500/s and 2,000/s)" in finding.text
    assert finding.kind == "against"
    assert not of(found, "no_control")
    assert "31 days apart" in one(found, "different_days").text
    assert one(found, "interleaved").kind == "for"


def test_a_suite_that_changed_between_rows(tmp_path: Path) -> None:
    files = [
        write_json(tmp_path, "a.json", suite("20.1.0", [1000])),
        write_json(tmp_path, "b.json", suite("24.0.1", [2000], library="bsm")),
    ]
    found = audit(read_files(files), [])
    assert "some rows name the addon (bsm), others do not" in one(found, "addon_changes").text
    assert "named (bsm) but its release is not recorded" in one(found, "addon_not_recorded").text


def test_addon_and_host_that_change_between_rows() -> None:
    text = (
        "| Node | Addon version | Host | select/s |\n|--|--|--|--|\n"
        "| 20.1.0 | 11.10.0 | a1 | 10 |\n| 24.0.1 | 12.4.1 | a2 | 9 |\n"
    )
    found = audit([table(text)], [])
    assert "11.10.0, 12.4.1" in one(found, "addon_changes").text
    assert "a1, a2" in one(found, "host_changes").text
    assert not of(found, "addon_not_recorded")
    assert not of(found, "host_not_recorded")


def test_a_single_figure_a_side_tells_nothing() -> None:
    found = audit([table(TABLE)], [])
    assert found.conclusion == (
        "The figures cannot tell -60 % from no change for select per second on 24.0.1 against 20.1.0: each "
        "side is one figure, and nothing says how far one version differs from itself."
    )
    assert one(found, "claim_located").places[0].at == "line 5, vs 20"
    assert one(found, "number_of_runs").kind == "missing"
    assert one(found, "order_not_recorded").kind == "missing"


def test_a_table_whose_change_is_not_that_of_its_figures() -> None:
    found = audit([table(TABLE.replace("805", "1,500"))], [])
    assert "they give -25.0 % to -25.0 %" in one(found, "claim_not_located").text
    assert found.changes[0].weighed.support == "contradicted"


def test_stated_spreads_that_overlap_and_that_do_not() -> None:
    text = "| op | v20.1.0 | v24.0.1 |\n|--|--|--|\n| a (ms) | 10 ± 1 | {} ± 1 |\n"
    overlapping = audit([table(text.format("10.5"))], []).changes[0].weighed
    apart = audit([table(text.format("20"))], []).changes[0].weighed
    assert overlapping.span is not None
    assert overlapping.span.method == "stated spread"
    assert (overlapping.support, apart.support) == ("not_told", "within_session")


def test_a_unit_that_is_not_written() -> None:
    found = audit([table("| Node | score |\n|--|--|\n| 20.1.0 | 10 |\n| 24.0.1 | 9 |\n")], [])
    assert one(found, "unit_not_recorded").places[0].at == "line 3, score"


def test_a_published_figure_is_traced_to_the_raw_files(tmp_path: Path) -> None:
    text = "| Node | select/s | vs |\n|--|--|--|\n| 20.1.0 | 1,800 | |\n| 24.0.1 | 790 | -56% |\n"
    found = audit([*read_files(suite_files(tmp_path)), table(text)], [])
    texts = [f.text for f in of(found, "figure_origin")]
    assert texts == [
        "select, 20.1.0: 1,800/s in the table is that of Big Cache",
        "select, 24.0.1: 790/s in the table is in no file; the nearest is 800/s in Usual",
    ]
    assert {f.kind for f in of(found, "figure_origin")} == {"against"}
    assert found.changes[0].weighed.settings == 5
    assert found.changes[0].weighed.located[0].places[0].file == "m.md"


RATES = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100.0]


def test_interleaved_runs_support_a_change(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(compare_csv(RATES, [rate * 0.8 for rate in RATES[1:] + RATES[:1]]))
    found = audit([read_file(str(path), "c.csv")], [])
    (change,) = found.changes
    assert (change.weighed.baseline, change.weighed.candidate) == ("old", "new")
    assert change.weighed.support == "supported"
    assert change.weighed.span is not None
    assert change.weighed.span.method == "interleaved samples"
    assert change.weighed.span.low_pct < -20.0 < change.weighed.span.high_pct
    assert one(found, "interleaved").kind == "for"
    assert "which Node versions old and new are is not recorded" in one(found, "version_not_recorded").text
    assert [f.kind for f in of(found, "samples")] == ["for", "for"]


def test_runs_in_blocks_do_not(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(compare_csv(RATES, [rate * 0.8 for rate in RATES], interleaved=False))
    found = audit([read_file(str(path), "c.csv")], [])
    assert found.changes[0].weighed.support == "within_session"
    assert one(found, "one_after_the_other").kind == "against"


def test_runs_without_a_difference(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(compare_csv(RATES, RATES[5:] + RATES[:5]))
    found = audit([read_file(str(path), "c.csv")], [])
    assert found.changes[0].weighed.support == "not_told"
    assert found.conclusion.startswith("The figures show no change for")
    assert "their noise allows -0.7 to +0.7 %" in found.conclusion


def test_runs_that_are_all_equal_have_no_interval(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(compare_csv([5.0] * 3, [5.0] * 3))
    assert audit([read_file(str(path), "c.csv")], []).changes[0].weighed.span is None


def test_hyperfine_is_sequential_and_its_first_run_may_be_cold(tmp_path: Path) -> None:
    data = hyperfine(
        {"node-v20.1.0 a": [3.0, 1.0, 1.01, 0.99, 1.0], "node-v24.0.1 a": [2.0, 2.01, 1.99, 2.0, 2.02]}
    )
    found = audit(
        [read_file(write_json(tmp_path, "h.json", data), "h.json")], [claim("24.0.1=+100%")], measure="time"
    )
    assert "hyperfine does all runs of one command" in one(found, "one_after_the_other").text
    assert "the first run took 3.00 times" in one(found, "first_run_cold").text
    assert not of(found, "addon_not_recorded")


def test_only_a_claim() -> None:
    found = audit([], [claim()], baseline="20.1.0", op="select_range")
    assert found.conclusion.startswith("A change alone (-60 % on 24.0.1 for select_range against 20.1.0)")
    assert one(found, "claim_only").kind == "missing"


@pytest.mark.parametrize(
    ("claims", "op", "baseline", "words"),
    [
        (["24.9.9=-5%"], None, None, "--claim names '24.9.9', but the files have 20.1.0, 24.0.1"),
        (["24.0.1=-5%"], None, "22", "--baseline names '22'"),
        (["24.0.1=-5%"], "vacuum", None, "--op 'vacuum' is not in these files"),
    ],
)
def test_names_that_the_files_do_not_have(
    tmp_path: Path, claims: list[str], op: str | None, baseline: str | None, words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        audit(read_files(suite_files(tmp_path)), [claim(c) for c in claims], op=op, baseline=baseline)
    assert words in str(caught.value)


def test_our_name_of_an_operation_finds_theirs(tmp_path: Path) -> None:
    found = audit(read_files(suite_files(tmp_path)), [claim("24=-60%")], op="select_range", baseline="20")
    assert [(c.weighed.op, c.weighed.candidate) for c in found.changes] == [("select", "24.0.1")]


def test_many_versions_are_compared_with_the_oldest_and_their_predecessor() -> None:
    rows = "".join(f"| v{major}.0.0 | {major} |\n" for major in range(10, 26))
    found = audit([table(f"| Node | a/s |\n|--|--|\n{rows}")], [])
    pairs = {(c.weighed.baseline, c.weighed.candidate) for c in found.changes}
    assert len(found.changes) == len(pairs) == 15 + 14
    assert ("10.0.0", "25.0.0") in pairs
    assert ("24.0.0", "25.0.0") in pairs


def test_one_version_is_nothing_to_compare(tmp_path: Path) -> None:
    path = write_json(tmp_path, "a.json", suite("20.1.0", SELECTS["20.1.0"]))
    with pytest.raises(UsageError, match="nothing to compare"):
        audit(read_files([path]), [])


@pytest.mark.parametrize(
    ("text", "measure", "time_pct"),
    [
        ("24.11.1=-57%", "rate", 132.558),
        ("v24.11.1 = -57 %", "rate", 132.558),
        ("24.11.1=\u221257%", "rate", 132.558),
        ("24=57% slower", "rate", 132.558),
        ("24=57% slower", "time", 57.0),
        ("24=+133%", "time", 133.0),
        ("24=10% faster", "rate", -9.0909),
        ("24=10% faster", "time", -10.0),
        ("24=2.3x slower", "rate", 130.0),
        ("24=2x faster", "time", -50.0),
        ("24=0%", "rate", 0.0),
    ],
)
def test_claims(text: str, measure: str, time_pct: float) -> None:
    found = parse_claim(text, "rate" if measure == "rate" else "time")
    assert found.change_pct("time") == pytest.approx(time_pct, abs=1e-3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "24.11.1",
        "=-5%",
        "24=",
        "24=57%",
        "24=-100%",
        "24=-250%",
        "24=-5% slower",
        "24=2x",
        "24=0.5x slower",
        "x=-5%",
        "24=nan%",
        "24=-" + "9" * 400 + "%",
        "24=1e9%",
        "<b>=-5%",
    ],
)
def test_claims_that_cannot_be_read(text: str) -> None:
    with pytest.raises(UsageError, match="--claim"):
        parse_claim(text, "rate")


def test_operations_by_other_names() -> None:
    assert operation_for("SELECT") == "select_range"
    assert operation_for("bind_text_ascii_10k") == "bind_text_ascii_10k"
    assert measured_by("stringify") == ("js", "json_stringify")
    with pytest.raises(UsageError, match="no operation of this tool measures 'vacuum'"):
        measured_by("vacuum")


@given(st.floats(-95, 900), st.floats(-95, 900))
def test_alike_never_joins_opposite_signs(one_pct: float, other_pct: float) -> None:
    if alike(one_pct, other_pct) and abs(one_pct) > 5:
        assert (one_pct > 0) == (other_pct > 0)


VALUES = st.floats(1e-9, 1e12)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=9),
    st.lists(st.tuples(VALUES, VALUES), max_size=12),
    st.sampled_from(["rate", "time", "unknown"]),
    st.one_of(st.none(), st.floats(-99, 5000)),
)
def test_any_figures_get_a_conclusion(
    pairs: list[tuple[float, float]], runs: list[tuple[float, float]], unit: str, change: float | None
) -> None:
    place = Place(file="f", at="x")
    figures = [
        Figure(
            version=version,
            op="a",
            setting=str(index) if len(pairs) > 1 else "",
            value=pair[side],
            unit=unit,  # type: ignore[arg-type]
            samples=tuple(run[side] for run in runs) if len(pairs) == 1 else (),
            order=tuple(2 * i + side for i in range(len(runs))) if len(pairs) == 1 else (),
            place=place,
        )
        for index, pair in enumerate(pairs)
        for side, version in enumerate(("20.1.0", "24.0.1"))
    ]
    rows = tuple(Row(version=v, place=place) for v in ("20.1.0", "24.0.1"))
    sheet = Sheet(name="f", format="compare.js", figures=tuple(figures), rows=rows)
    claims = [] if change is None else [claim(f"24.0.1={change:+.3f}%")]
    found = audit([sheet], claims, baseline="20.1.0")
    assert found.conclusion.endswith(".")
    assert all(f.places for f in found.findings)
    assert "nan" not in found.conclusion


def test_new_is_newer_than_old_whichever_was_printed_first(tmp_path: Path) -> None:
    lines = compare_csv(RATES, RATES).splitlines()
    path = tmp_path / "c.csv"
    path.write_text("\n".join([lines[0], *reversed(lines[1:])]))
    (change,) = audit([read_file(str(path), "c.csv")], []).changes
    assert (change.weighed.baseline, change.weighed.candidate) == ("old", "new")


def test_no_change_is_said_as_such() -> None:
    found = audit([table("| Node | a/s |\n|--|--|\n| 20.1.0 | 100 |\n| 24.0.1 | 100.5 |\n")], [])
    assert (
        found.conclusion == "The figures show no change for a per second on 24.0.1 against 20.1.0 (+0.5 %)."
    )


def test_more_versions_than_anyone_compares() -> None:
    rows = "".join(f"| v1.1.{minor} | 10 |\n" for minor in range(201))
    with pytest.raises(UsageError, match="201 versions"):
        audit([table(f"| Node | a/s |\n|--|--|\n{rows}")], [])


def test_many_operations_get_a_few_findings_and_all_changes() -> None:
    rows = "".join(f"| op{i} | {100 + i} | 90 |\n" for i in range(40))
    found = audit([table(f"| op/s | v20.1.0 | v24.0.1 |\n|--|--|--|\n{rows}")], [])
    assert len(found.changes) == 40
    assert len(of(found, "no_interval")) == 8
