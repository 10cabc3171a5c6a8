"""`investigate compare`: what recurs, what contradicts, and what is another question."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from investigator import cli
from investigator.compare import texts
from investigator.compare.match import Row, compare
from investigator.errors import UsageError
from investigator.plan import Environment, Failure
from investigator.report.summary import Summary
from investigator.results import RunRecord
from investigator.spec import Spec
from investigator.stored_run import StoredRun
from tests.unit.report_synthetic import HOST, HOSTILE, Effect, environment
from tests.unit.stored_synthetic import (
    RECORD,
    SPEC,
    Effects,
    run_summary,
    stored,
    write_dossier,
)

BASE, NEW = environment("22.21.1"), environment("24.11.1")
SLOWER: Effect = (20.0, 2.0, "slower", "!")
FASTER: Effect = (-20.0, 2.0, "faster", "!")
SAME: Effect = (0.2, 0.9, "no_change", "")
DARK: Effect = (3.0, 9.0, "undecided", "")
SMALL: Effect = (3.0, 0.5, "slower", "~")
INVALID: Effect = (0.0, 0.0, "invalid", "")


def one(effect: Effect, name: str = "one", **changes: object) -> StoredRun:
    """A run of one operation, ``select_point`` 22.21.1 to 24.11.1."""
    return several({"select_point": {NEW.id: effect}}, name, **changes)  # type: ignore[arg-type]


def several(
    effects: Effects,
    name: str,
    *,
    spec: Spec = SPEC,
    record: RunRecord = RECORD,
    environments: tuple[Environment, ...] = (BASE, NEW),
    **more: object,
) -> StoredRun:
    told = run_summary(environments, effects, spec=spec, run_id=name, **more)  # type: ignore[arg-type]
    return stored(told, spec=spec, record=record)


def only(*runs: StoredRun) -> Row:
    rows = compare(runs).rows
    assert len(rows) == 1
    return rows[0]


# -- outcomes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        (SLOWER, SLOWER, "recurs"),
        (FASTER, FASTER, "recurs"),
        (SLOWER, SMALL, "recurs"),
        (SLOWER, FASTER, "contradicts"),
        (SLOWER, SAME, "some_only"),
        (DARK, FASTER, "some_only"),
        (SAME, SAME, "no_change"),
        (SAME, DARK, "undecided"),
        (SLOWER, INVALID, "not_compared"),
        (INVALID, SLOWER, "not_compared"),
    ],
)
def test_outcome_of_two_runs(first: Effect, second: Effect, outcome: str) -> None:
    row = only(one(first), one(second, "two"))
    assert row.outcome == outcome
    assert row.finding == (SLOWER in (first, second) or FASTER in (first, second))


def test_three_runs_must_all_agree_to_recur() -> None:
    assert only(one(SLOWER), one(SLOWER, "two"), one(SLOWER, "three")).outcome == "recurs"
    assert only(one(SLOWER), one(SLOWER, "two"), one(SAME, "three")).outcome == "some_only"
    assert only(one(SLOWER), one(SAME, "two"), one(FASTER, "three")).outcome == "contradicts"
    row = only(one(INVALID), one(SLOWER, "two"), one(SLOWER, "three"))
    assert (row.outcome, row.seen[0]) == ("recurs", None)


def test_sizes_are_quotients_with_both_intervals() -> None:
    row = only(one(SLOWER), one((50.0, 5.0, "slower", "!"), "two"))
    (size,) = row.sizes
    assert size.run == 2
    assert size.factor == pytest.approx(1.5 / 1.2)
    assert (size.low, size.high) == pytest.approx((1.45 / 1.22, 1.55 / 1.18))
    assert not size.overlap
    (near,) = only(one(SLOWER), one((21.0, 2.0, "slower", "!"), "two")).sizes
    assert near.overlap


# -- which pairs are the same -----------------------------------------------------------------------------


def test_pairs_match_by_release_and_not_by_label() -> None:
    labelled = (environment("22.21.1", "old"), environment("24.11.1", "new"))
    other = several({"select_point": {labelled[1].id: SLOWER}}, "two", environments=labelled)
    row = only(one(SLOWER), other)
    assert row.outcome == "recurs"
    assert row.pair == "22.21.1 to 24.11.1, bsm12.11.1"
    assert row.seen[1] is not None
    assert row.seen[1].candidate == "new:node24.11.1+bsm12.11.1"


def test_the_same_label_on_other_releases_matches_nothing() -> None:
    first = (environment("22.21.1", "a"), environment("24.11.1", "b"))
    second = (environment("20.19.5", "a"), environment("22.21.1", "b"))
    rows = compare(
        [
            several({"select_point": {first[1].id: SLOWER}}, "one", environments=first),
            several({"select_point": {second[1].id: SLOWER}}, "two", environments=second),
        ]
    ).rows
    assert [row.outcome for row in rows] == ["not_compared", "not_compared"]
    assert rows[0].missing[1] == "it has no Node 24.11.1"
    assert rows[1].missing[0] == "it has no Node 20.19.5"


def with_environment(run: StoredRun, place: int, **changes: object) -> StoredRun:
    """A run one of whose environments is told otherwise, its identifier in all places included."""
    told = run.summary
    before = told.environments[place]
    after = msgspec.structs.replace(before, **changes)
    text = msgspec.json.encode(msgspec.structs.replace(told, environments=()))
    text = text.replace(before.id.encode(), after.id.encode())
    environments = (*told.environments[:place], after, *told.environments[place + 1 :])
    summary = msgspec.structs.replace(msgspec.json.decode(text, type=Summary), environments=environments)
    return msgspec.structs.replace(run, summary=summary)


def test_another_addon_release_is_another_question() -> None:
    other = one(SLOWER, "two")
    for place, version in enumerate(("22.21.1", "24.11.1")):
        other = with_environment(other, place, id=f"node{version}+bsm11.10.0")
    rows = compare([one(SLOWER), other]).rows
    assert [row.outcome for row in rows] == ["not_compared"] * 2
    assert rows[0].missing == (None, "on Node 22.21.1 it has bsm11.10.0, not bsm12.11.1")


def test_another_build_of_the_same_version_is_another_question() -> None:
    other = with_environment(one(SLOWER, "two"), 1, node_sha256="9" * 64)
    rows = compare([one(SLOWER), other]).rows
    assert [row.outcome for row in rows] == ["not_compared"] * 2
    assert rows[0].missing[1] == "another build of Node 24.11.1 (its binary has another sha256)"


def test_releases_of_another_platform_may_have_other_digests() -> None:
    arm = msgspec.structs.replace(RECORD, host=msgspec.structs.replace(HOST, architecture="aarch64"))
    other = with_environment(one(SLOWER, "two", record=arm), 1, node_sha256="9" * 64)
    assert only(one(SLOWER), other).outcome == "recurs"


def test_flags_of_node_belong_to_the_environment() -> None:
    other = with_environment(one(SLOWER, "two"), 1, node_flags=("--no-maglev",))
    assert {row.outcome for row in compare([one(SLOWER), other]).rows} == {"not_compared"}


def test_addons_of_the_same_version_with_other_contents_are_another_question() -> None:
    first = msgspec.structs.replace(one(SLOWER), addon_integrity={BASE.id: "x", NEW.id: "x"})
    second = msgspec.structs.replace(one(SLOWER, "two"), addon_integrity={BASE.id: "y", NEW.id: "y"})
    rows = compare([first, second]).rows
    assert rows[0].missing[1] == "another content of bsm12.11.1 under the same version"


def test_an_addon_out_of_a_folder_is_not_known_by_its_version() -> None:
    spec = msgspec.structs.replace(SPEC, addon="path:./addon")
    rows = compare([one(SLOWER), one(SLOWER, "two", spec=spec)]).rows
    assert "an addon out of a folder" in str(rows[0].missing[1])


def test_two_environments_of_one_release_are_told_apart_by_nothing() -> None:
    twice = (BASE, environment("24.11.1", "a"), environment("24.11.1", "b"))
    other = several({"select_point": {twice[1].id: SLOWER, twice[2].id: FASTER}}, "two", environments=twice)
    row = only(one(SLOWER), other)
    assert row.outcome == "not_compared"
    assert "more than one of its environments is that release" in str(row.missing[1])


def test_pure_javascript_does_not_depend_on_the_addon() -> None:
    first = several({"json_parse": {NEW.id: SLOWER}}, "one", family="js")
    second = several({"json_parse": {NEW.id: SLOWER}}, "two", family="js")
    for place, version in enumerate(("22.21.1", "24.11.1")):
        second = with_environment(second, place, id=f"node{version}", addon=None)
    row = only(first, second)
    assert (row.outcome, row.pair) == ("recurs", "22.21.1 to 24.11.1")


def test_what_is_absent_has_a_reason() -> None:
    reverse = several({"select_point": {BASE.id: FASTER}}, "two", environments=(NEW, BASE))
    rows = compare([one(SLOWER), reverse]).rows
    assert "the other way round" in str(rows[0].missing[1])
    other_op = several({"insert_row": {NEW.id: SLOWER}}, "two")
    assert compare([one(SLOWER), other_op]).rows[0].missing[1] == "the operation was not measured"
    failure = Failure(environment=NEW.id, op=None, stage="build", reason="no compiler.")
    failed = several({"select_point": {}}, "two", failures=(failure,))
    assert compare([one(SLOWER), failed]).rows[0].missing[1] == "node24.11.1+bsm12.11.1 failed there (build)"


# -- conditions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"seed": 2}, "other data (seed 1 and 2)"),
        ({"cipher": "sqlcipher"}, "another cipher (chacha20 and sqlcipher)"),
        ({"storage": "disk"}, "other storage (tmpfs and disk)"),
        ({"margin_pct": 3.0}, "other margins (2 % / 3 % / 5 % / 4 % and 3 % / 3 % / 5 % / 4 %)"),
        ({"params": {"cache_size": "100"}}, "other parameters (none and cache_size=100)"),
    ],
)
def test_other_conditions_are_another_question(changes: dict[str, object], reason: str) -> None:
    other = one(SLOWER, "two", spec=msgspec.structs.replace(SPEC, **changes))
    row = only(one(SLOWER), other)
    assert row.outcome == "not_compared"
    assert row.missing == (None, reason)
    assert row.finding


def test_the_cipher_means_nothing_to_pure_javascript() -> None:
    other = msgspec.structs.replace(SPEC, cipher="sqlcipher", storage="disk")
    effects: Effects = {"json_parse": {NEW.id: SLOWER}}
    row = only(several(effects, "one", family="js"), several(effects, "two", family="js", spec=other))
    assert row.outcome == "recurs"


def test_a_workload_is_known_by_its_file_and_not_by_its_name() -> None:
    effects: Effects = {"mine": {NEW.id: SLOWER}}
    record = msgspec.structs.replace(RECORD, workloads_sha256={"mine.mjs": "1"})
    other = msgspec.structs.replace(RECORD, workloads_sha256={"mine.mjs": "2"})
    row = only(several(effects, "one", record=record), several(effects, "two", record=other))
    assert "another workload under the same name" in str(row.missing[1])


def test_other_machines_and_rounds_are_told_and_compared() -> None:
    host = msgspec.structs.replace(HOST, cpu_model="Xeon")
    other = one(
        SLOWER,
        "two",
        record=msgspec.structs.replace(RECORD, host=host),
        spec=msgspec.structs.replace(SPEC, rounds=6, max_rounds=6),
    )
    compared = compare([one(SLOWER), other])
    assert compared.rows[0].outcome == "recurs"
    assert {d.what: d.values for d in compared.differences} == {
        "processor": ("AMD EPYC", "Xeon"),
        "rounds": ("8 to 16", "6 to 6"),
    }


def test_one_run_or_a_copy_of_it_proves_nothing() -> None:
    with pytest.raises(UsageError, match="name two or more"):
        compare([one(SLOWER)])
    with pytest.raises(UsageError, match="are the same run"):
        compare([one(SLOWER), one(SLOWER)])


# -- what is printed --------------------------------------------------------------------------------------


def test_the_sentence_counts_findings_and_names_them() -> None:
    first = several(
        {"a": {NEW.id: SLOWER}, "b": {NEW.id: SLOWER}, "c": {NEW.id: SLOWER}, "d": {NEW.id: SAME}}, "one"
    )
    second = several(
        {"a": {NEW.id: SLOWER}, "b": {NEW.id: SAME}, "c": {NEW.id: FASTER}, "d": {NEW.id: SAME}}, "two"
    )
    assert texts.headline(compare([first, second])) == (
        "1 of 3 findings recurs (a 22.21.1 to 24.11.1 +20.0 % and +20.0 %); "
        "1 shows in some runs only (b 22.21.1 to 24.11.1 +20.0 % and +0.2 %); "
        "1 contradicts another run (c 22.21.1 to 24.11.1 +20.0 % and -20.0 %)."
    )


def test_the_sentence_says_when_there_is_nothing() -> None:
    assert texts.headline(compare([one(SAME), one(SAME, "two")])) == (
        "No finding among the 1 pair that could be compared."
    )
    other = one(SLOWER, "two", spec=msgspec.structs.replace(SPEC, seed=2))
    assert texts.headline(compare([one(SLOWER), other])) == (
        "Nothing could be compared: of 1 pair none is the same in two runs."
    )


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    host = msgspec.structs.replace(HOST, cpu_model=HOSTILE)
    hostile = one(SLOWER, HOSTILE, record=msgspec.structs.replace(RECORD, host=host))
    return (
        write_dossier(tmp_path / "one", one(SLOWER)),
        write_dossier(tmp_path / "two", hostile),
    )


def call(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli.app, ["compare", *arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.stdout, result.stderr


def test_the_command_prints_table_and_differences(folders: tuple[Path, Path]) -> None:
    code, out, _ = call(*map(str, folders))
    assert code == 0
    assert out.startswith("1 of 1 finding recurs (select_point")
    assert "slower +20.0 % [+18.0 to +22.0]" in out
    assert "processor" in out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "[bold red]boo[/bold red]" in " ".join(out.split())


def test_the_json_has_every_row(folders: tuple[Path, Path]) -> None:
    code, out, _ = call(*map(str, folders), "--json")
    assert not re.search(r"[\x1b\x9b\u202e\u2066]", out)
    told = json.loads(out)
    assert (code, told["kind"], told["schema"]) == (0, "compare", 1)
    assert told["counts"]["recurs"] == 1
    (row,) = told["rows"]
    assert (row["op"], row["outcome"], row["finding"]) == ("select_point", "recurs", True)
    assert [seen["change_pct"] for seen in row["seen"]] == pytest.approx([20.0, 20.0])
    assert row["sizes"][0]["overlap"] is True


def test_wrong_runs_end_with_their_exit_code(folders: tuple[Path, Path], tmp_path: Path) -> None:
    assert call(str(folders[0]))[0] == 2
    assert call(str(folders[0]), str(tmp_path / "none"))[0] == 2
    assert call(str(folders[0]), str(folders[0]))[0] == 2
    (folders[1] / "run.json").write_text('{"schema": 99, "kind": "run", "tool": "x"}')
    code, _, err = call(*map(str, folders))
    assert code == 8
    assert "schema 99" in err
