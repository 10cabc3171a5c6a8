"""Rulings on a claim: each of the five where its definition says, on intervals that are known."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from investigator.analysis import Analysis, Comparison, Verdict
from investigator.attribution.layers import Attribution, Cause, CauseKind
from investigator.audit.adjudicate import LAYOUT, Adjudication, ClaimPhase, Question, Ruling, adjudicate, rule
from investigator.audit.claims import Claim, parse_claim
from investigator.audit.figures import Notes, Sheet
from investigator.audit.judgement import audit
from investigator.audit.markdown import read_markdown
from investigator.audit.rerun import questions, rerun_spec
from investigator.errors import UsageError
from investigator.options import Choices
from investigator.plan import Plan
from investigator.stats.verdict import Obstacle
from tests.unit import report_synthetic as synthetic

CANDIDATE = "node24.11.1+bsm12.11.1"
DOUBLE = math.log(2.0)


def pair(
    low: float,
    high: float,
    verdict: Verdict,
    *,
    floor: float = 0.5,
    obstacle: Obstacle | None = None,
    small: bool = False,
) -> Comparison:
    middle = (low + high) / 2
    made = synthetic.comparison(
        "select_range", "sqlite", CANDIDATE, (middle, (high - low) / 2, verdict, "~" if small else "")
    )
    return msgspec.structs.replace(made, noise_floor_pct=floor, obstacle=obstacle)


def found(low: float, high: float, verdict: Verdict, claimed: float = DOUBLE, **rest: Any) -> Ruling:
    return rule(claimed, pair(low, high, verdict, **rest), None, None)[0]


def cause(kind: CauseKind, *, confirmed: bool) -> Attribution:
    made = Cause(kind=kind, name="x", text="the addon's own row builder moves 91 %.", confirmed=confirmed)
    return msgspec.structs.replace(synthetic.attribution(), causes=(made,))


@pytest.mark.parametrize(
    ("low", "high", "verdict", "expected"),
    [
        (95.0, 105.0, "slower", "confirmed"),
        (60.0, 64.0, "slower", "confirmed"),  # 2/3 of ln 2 is +58.7 %
        (50.0, 70.0, "slower", "confirmed"),
        (50.0, 57.0, "slower", "not_reproduced"),
        (140.0, 150.0, "slower", "confirmed"),  # 4/3 of ln 2 is +152 %
        (155.0, 170.0, "slower", "not_reproduced"),
        (10.0, 12.0, "slower", "not_reproduced"),
        (10.0, 120.0, "slower", "cannot_tell"),
        (-2.0, 1.0, "no_change", "not_reproduced"),
        (-8.0, 6.0, "undecided", "not_reproduced"),
        (-8.0, 60.0, "undecided", "cannot_tell"),
        (-3.5, -2.5, "faster", "not_reproduced"),
        (-30.0, -20.0, "faster", "reversed"),
        (math.nan, math.nan, "invalid", "cannot_tell"),
        (-math.inf, math.inf, "undecided", "cannot_tell"),
    ],
)
def test_rulings_on_twice_the_time(low: float, high: float, verdict: Verdict, expected: Ruling) -> None:
    assert found(low, high, verdict) == expected


def test_a_twin_that_differs_from_itself_widens_the_interval() -> None:
    assert found(-8.0, 50.0, "undecided", floor=20.0, obstacle="noise") == "not_reproduced"
    assert found(-8.0, 50.0, "undecided", floor=20.0, obstacle="twin") == "cannot_tell"


def test_a_claim_of_faster_is_the_mirror_image() -> None:
    assert found(-52.0, -48.0, "faster", -DOUBLE) == "confirmed"
    assert found(95.0, 105.0, "slower", -DOUBLE) == "reversed"
    assert found(-1.0, 1.0, "no_change", -DOUBLE) == "not_reproduced"


def test_a_claim_of_no_change() -> None:
    assert found(-1.0, 1.0, "no_change", 0.0) == "confirmed"
    assert found(20.0, 25.0, "slower", 0.0) == "not_reproduced"
    assert found(-4.0, 4.0, "undecided", 0.0) == "cannot_tell"


def test_a_confirmed_change_that_is_the_addons_own() -> None:
    measured = pair(95.0, 105.0, "slower")
    ruling, reason = rule(DOUBLE, measured, cause("addon_source", confirmed=True), None)
    assert ruling == "other_cause"
    assert "row builder moves 91 %" in reason
    assert rule(DOUBLE, measured, cause("build", confirmed=True), None)[0] == "other_cause"
    assert rule(DOUBLE, measured, cause("addon_source", confirmed=False), None)[0] == "confirmed"
    assert rule(DOUBLE, measured, cause("v8_flag", confirmed=True), None)[0] == "confirmed"


def test_what_is_gone_with_all_else_equal_had_another_cause_where_the_rows_record_one() -> None:
    other = "the published rows differ in addon release (11.10.0; 12.4.1)"
    ruling, reason = rule(DOUBLE, pair(-1.0, 1.0, "no_change"), None, other)
    assert (ruling, other in reason) == ("other_cause", True)
    assert rule(DOUBLE, pair(95.0, 105.0, "slower"), None, other)[0] == "confirmed"
    assert rule(DOUBLE, pair(-8.0, 60.0, "undecided"), None, other)[0] == "cannot_tell"


def test_a_small_confirmed_change_says_that_placement_could_do_it() -> None:
    ruling, reason = rule(math.log(1.03), pair(2.5, 3.5, "slower", small=True), None, None)
    assert (ruling, "code placement" in reason) == ("confirmed", True)


@given(
    st.floats(-2, 2),
    st.floats(-60, 200),
    st.floats(0, 50),
    st.sampled_from(["slower", "faster", "no_change", "undecided"]),
)
def test_mirrored_measurements_get_mirrored_rulings(
    claimed: float, low: float, width: float, verdict: Verdict
) -> None:
    high = low + width
    ends = [math.log1p(end / 100) for end in (low, high)]
    limits = [LAYOUT, *(abs(claimed) * part / 3 for part in (1, 2, 4))]
    # Exactly on a limit the last digit of the percentage decides.
    assume(all(abs(abs(end) - limit) > 1e-9 for end in ends for limit in limits))
    mirror: dict[str, Verdict] = {"slower": "faster", "faster": "slower"}
    other_low, other_high = (100 / (1 + end / 100) - 100 for end in (high, low))
    mirrored = pair(other_low, other_high, mirror.get(verdict, verdict), floor=0.0)
    assert found(low, high, verdict, claimed, floor=0.0) == rule(-claimed, mirrored, None, None)[0]


def answer(
    claim: Claim, *, phase: ClaimPhase, warm: Comparison | None, cold: Comparison | None
) -> Adjudication:
    pairs = tuple(
        msgspec.structs.replace(p, phase=name)
        for name, p in (("warm", warm), ("cold", cold))
        if p is not None
    )
    analysis: Analysis = msgspec.structs.replace(synthetic.analysis(), comparisons=pairs)
    question = Question(claim=claim, baseline="22.21.1", op="select_range", phase=phase)
    return adjudicate(question, synthetic.plan(), analysis, ())


SLOWER, SAME = pair(95.0, 105.0, "slower"), pair(-1.0, 1.0, "no_change")
OPEN = pair(-8.0, 150.0, "undecided")
CLAIM = parse_claim("24.11.1=-50%", "rate")


@pytest.mark.parametrize(
    ("phase", "warm", "cold", "expected"),
    [
        ("cold", SLOWER, SAME, "not_reproduced"),
        ("warm", SLOWER, SAME, "confirmed"),
        ("unknown", SLOWER, SAME, "confirmed"),
        ("unknown", SAME, SLOWER, "confirmed"),
        ("unknown", SAME, SAME, "not_reproduced"),
        ("unknown", SAME, OPEN, "cannot_tell"),
        ("cold", SAME, None, "cannot_tell"),
        ("unknown", None, None, "cannot_tell"),
    ],
)
def test_cold_claims_are_compared_with_the_cold_pass(
    phase: ClaimPhase, warm: Comparison | None, cold: Comparison | None, expected: Ruling
) -> None:
    assert answer(CLAIM, phase=phase, warm=warm, cold=cold).ruling == expected


def test_the_sentence_has_claim_figures_and_addon() -> None:
    assert answer(CLAIM, phase="unknown", warm=SAME, cold=SAME).text == (
        "-50 % on 24.11.1 against 22.21.1 (+100 % time per call): not reproduced; select_range takes "
        "0.0 % [-1.0 to +1.0] warm, 0.0 % [-1.0 to +1.0] cold under better-sqlite3-multiple-ciphers 12.11.1 "
        "(the interval excludes a change of that size)."
    )


def test_a_failed_cell_is_told_with_its_reason() -> None:
    question = Question(
        claim=parse_claim("20.19.5=-50%", "rate"), baseline="22", op="open_key", phase="unknown"
    )
    analysis = msgspec.structs.replace(synthetic.analysis(), comparisons=())
    told = adjudicate(question, synthetic.plan(), analysis, ())
    assert told.ruling == "cannot_tell"
    assert "because the process ended with signal 11" in told.text


@pytest.mark.parametrize(
    ("claim", "baseline", "op", "words"),
    [
        ("26.1.1=-5%", "22.21.1", "select_range", "the run has no Node 26.1.1"),
        ("24.11.1=-5%", "18", "select_range", "the run has no Node 18"),
        ("24.11.1=-5%", "22.21.1", "select_blob_3k", "did not measure select_blob_3k"),
    ],
)
def test_a_run_that_does_not_hold_the_claim(claim: str, baseline: str, op: str, words: str) -> None:
    question = Question(claim=parse_claim(claim, "rate"), baseline=baseline, op=op, phase="unknown")
    plan: Plan = synthetic.plan()
    with pytest.raises(UsageError, match=words):
        adjudicate(question, plan, synthetic.analysis(), ())


# -- what is measured ----------------------------------------------------------------------------------------

ROWS = (
    "| Node | Addon | Addon version | select/s |\n|--|--|--|--|\n"
    "| 20.1.0 | better-sqlite3-multiple-ciphers | {} | 10 |\n"
    "| 24.0.1 | better-sqlite3-multiple-ciphers | {} | 5 |\n"
)


def sheet(text: str) -> Sheet:
    return read_markdown(text, "m.md", Notes("m.md"))


def asked(sheets: list[Sheet], claims: list[Claim], **rest: Any) -> tuple[Question, ...]:
    wanted: dict[str, Any] = {"op": None, "baseline": None, **rest}
    return questions(audit(sheets, claims, **wanted), sheets, claims, phase=None, **wanted)


def test_the_claim_alone_makes_the_spec() -> None:
    claims = [parse_claim("24.11.1=-57%", "rate"), parse_claim("22.21.1=-7%", "rate")]
    found_questions = asked([], claims, op="SELECT", baseline="20.19.5")
    spec = rerun_spec(found_questions, [], Choices(quick=True, explain="none"))
    assert (spec.versions, spec.baseline, spec.ops) == (
        ("20.19.5", "24.11.1", "22.21.1"),
        "20.19.5",
        ("select_range",),
    )
    assert (spec.command, spec.explain, spec.rounds, {q.phase for q in found_questions}) == (
        "sqlite",
        "none",
        6,
        {"unknown"},
    )


def test_pure_javascript_is_measured_by_the_other_command() -> None:
    spec = rerun_spec(
        asked([], [parse_claim("24=+25%", "rate")], op="stringify", baseline="22"), [], Choices()
    )
    assert (spec.command, spec.ops, spec.versions) == ("js", ("json_stringify",), ("22", "24"))


def test_addon_and_versions_of_the_options_come_first() -> None:
    sheets = [sheet(ROWS.format("11.10.0", "11.10.0"))]
    found_questions = asked(sheets, [parse_claim("24.0.1=-50%", "rate")])
    assert rerun_spec(found_questions, sheets, Choices()).addon == "better-sqlite3-multiple-ciphers@11.10.0"
    chosen = Choices(addon="better-sqlite3@12.4.1", versions="20.1.0,22,24.0.1")
    spec = rerun_spec(found_questions, sheets, chosen)
    assert (spec.addon, spec.versions) == ("better-sqlite3@12.4.1", ("20.1.0", "22", "24.0.1"))


def test_rows_of_different_addons_are_remembered() -> None:
    sheets = [sheet(ROWS.format("11.10.0", "12.4.1"))]
    (question,) = asked(sheets, [parse_claim("24.0.1=-50%", "rate")])
    assert question.other == "the published rows differ in addon release (11.10.0; 12.4.1)"
    assert rerun_spec([question], sheets, Choices()).addon == "better-sqlite3-multiple-ciphers"


def test_files_without_a_claim_are_measured_by_what_they_suggest() -> None:
    sheets = [
        sheet("| Node | select/s | vacuum/s |\n|--|--|--|\n| 20.1.0 | 30 | 2 |\n| 24.0.1 | 17.7 | 1 |\n")
    ]
    (question,) = asked(sheets, [])  # nothing here measures a VACUUM
    assert (question.op, question.baseline, question.claim.version) == ("select_range", "20.1.0", "24.0.1")
    assert question.claim.text == "-41 %"
    assert math.exp(question.claim.log_time) == pytest.approx(30 / 17.7)


def test_files_of_what_nothing_here_measures_suggest_nothing() -> None:
    with pytest.raises(UsageError, match="no claim to measure"):
        asked([sheet("| Node | vacuum/s |\n|--|--|\n| 20.1.0 | 30 |\n| 24.0.1 | 17 |\n")], [])


@pytest.mark.parametrize(
    ("claims", "rest", "words"),
    [
        ([], {"op": "select"}, "no claim to measure"),
        (["24=-5%"], {"op": "select"}, "--baseline 20.19.5"),
        (["24=-5%"], {"baseline": "20"}, "--op select_range"),
        (["24=-5%"], {"baseline": "20", "op": "vacuum"}, "no operation of this tool measures 'vacuum'"),
    ],
)
def test_a_claim_that_lacks_something(claims: list[str], rest: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        asked([], [parse_claim(text, "rate") for text in claims], **rest)


def test_old_and_new_are_no_releases() -> None:
    text = "| Node | select/s |\n|--|--|\n| old | 10 |\n| 24.0.1 | 5 |\n"
    with pytest.raises(UsageError, match="'old' names no Node release"):
        asked([sheet(text)], [parse_claim("24.0.1=-50%", "rate")], baseline="old")
