"""The self-test without a machine: what is planted, which trials there are, how they are judged and shown."""

import re
from pathlib import Path

import msgspec
import pytest

from investigator.analysis import Analysis, Comparison, Interval, Verdict
from investigator.attribution.layers import LAYERS, Attribution, Named
from investigator.errors import UsageError
from investigator.operations import find
from investigator.patches import check_patch
from investigator.plan import Failure
from investigator.selftest.judge import Outcome, judge
from investigator.selftest.pilot import Rate
from investigator.selftest.places import (
    FOLDER,
    NOTHING,
    PLACES,
    SIZED,
    UNSIZED,
    VARIABLE,
    VARIABLES,
    Place,
    variables,
)
from investigator.selftest.report import (
    SelftestReport,
    criteria,
    detection_table,
    layer_table,
    render_markdown,
    render_text,
    verdict_lines,
)
from investigator.selftest.trials import SIZES, SUBSETS, TOGETHER, Options, Trial, checked, screens

ROOT = Path(__file__).resolve().parents[2]
CANDIDATE = "core_step-10:node24.11.1+bsm12.11.1"


# -- places -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_places_name_what_exists(place: Place) -> None:
    assert place.operations
    for op in place.operations:
        operation = find(op)
        assert operation is not None
        assert operation.family == place.command
    assert place.layer in LAYERS
    assert (ROOT / FOLDER / f"{place.patch}.patch").is_file()


def test_every_layer_is_planted() -> None:
    assert {place.layer for place in PLACES} == set(LAYERS)


def test_sized_places_have_a_variable_and_unsized_ones_something_that_works() -> None:
    assert all(place.variable and place.patch == "sized" for place in SIZED)
    assert all(
        (place.variable is not None) == (place.millionths > 0)
        and (place.variable or place.node_flags or place.patch == "o1")
        for place in UNSIZED
    )


def test_the_patch_reads_every_variable_and_no_other() -> None:
    text = (ROOT / FOLDER / "sized.patch").read_text(encoding="latin-1")
    assert set(re.findall(rf"\b{VARIABLE}([A-Z]+)\b", text)) == set(VARIABLES)


@pytest.mark.parametrize("name", ["sized", "o1"])
def test_patches_are_diffs_of_files_inside_the_package(name: str) -> None:
    text = (ROOT / FOLDER / f"{name}.patch").read_bytes().decode("latin-1")
    check_patch(text, name)
    # The addon's own sources end their lines with CR LF: a tool that normalises them breaks the patch.
    assert "\r\n" in text


def test_environments_differ_in_values_of_equal_length_only() -> None:
    step, none = variables(SIZED[0], 1_234), variables(NOTHING, 0)
    assert list(step) == list(none)
    assert {len(value) for value in (*step.values(), *none.values())} == {15}
    assert {name for name in step if step[name] != none[name]} == {f"{VARIABLE}STEP"}
    assert int(step[f"{VARIABLE}STEP"]) == 1_234


def test_a_rate_scales_what_the_pilot_planted() -> None:
    rate = Rate(
        place="core_step",
        op="select_range",
        millionths=20_000,
        change_pct=40.0,
        ci_low_pct=38,
        ci_high_pct=42,
    )
    assert rate.millionths_for(40.0) == 20_000
    assert rate.millionths_for(3.0) == 1_500
    assert rate.millionths_for(0.000_01) == 1


# -- trials -----------------------------------------------------------------------------------------------


def test_the_full_set_has_a_hundred_sized_trials_of_every_size_and_place() -> None:
    trials = [trial for screen in screens(Options()) for trial in screen.trials]
    sized = [trial for trial in trials if trial.size_pct is not None]
    assert len(sized) >= 100
    assert {(t.place, t.size_pct) for t in sized} == {(p.name, size) for p in SIZED for size in SIZES}
    assert {t.place for t in trials} == {p.name for p in (*PLACES, NOTHING)}


@pytest.mark.parametrize("subset", SUBSETS)
def test_trials_of_a_screen_have_names_of_their_own_and_a_nothing(subset: str) -> None:
    planned = screens(Options(subset=subset))  # type: ignore[arg-type]
    assert [screen.number for screen in planned] == list(range(1, len(planned) + 1))
    for screen in planned:
        labels = [trial.label for trial in screen.trials]
        assert len(set(labels)) == len(labels) <= TOGETHER
        assert labels[-1] == "nothing"
        assert {(trial.op, trial.seed) for trial in screen.trials} == {(screen.op, screen.seed)}


def test_the_set_for_ci_is_one_screen() -> None:
    (screen,) = screens(Options(subset="ci"))
    assert [trial.label for trial in screen.trials] == [
        "core_step-25",
        "boundary_row-25",
        "engine_wrapper-25",
        "os_read-25",
        "nothing",
    ]


def test_nothing_alone_is_measured_where_it_is_asked_for() -> None:
    (screen,) = screens(Options(places=("nothing",), ops=("select_point",), seeds=1))
    assert [(t.place, t.op) for t in screen.trials] == [("nothing", "select_point")]


def test_what_is_asked_for_is_what_is_planted() -> None:
    planned = screens(Options(places=("os_read",), sizes=(7.5,), ops=("select_range",), seeds=3))
    assert [(s.seed, [t.label for t in s.trials]) for s in planned] == [
        (seed, ["os_read-7.5"]) for seed in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (Options(places=("gc_storm",)), "gc_storm"),
        (Options(sizes=(0.1,)), "0.1"),
        (Options(sizes=(float("nan"),)), "nan"),
        (Options(ops=("regex_emails",)), "regex_emails"),
        (Options(seeds=0), "seeds"),
        (Options(places=("core_cipher",), ops=("select_point",)), "no trial"),
    ],
)
def test_what_cannot_be_planted_is_refused(options: Options, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        checked(options)


# -- judgement --------------------------------------------------------------------------------------------


def comparison(change: float, verdict: Verdict) -> Comparison:
    interval = Interval(change_pct=change, ci_low_pct=change - 1, ci_high_pct=change + 1, confidence=0.975)
    return Comparison(
        op="select_range",
        family="sqlite",
        kind="baseline",
        phase="warm",
        baseline="unchanged:node24.11.1+bsm12.11.1",
        candidate=CANDIDATE,
        rounds=8,
        ratio=1 + change / 100,
        wall=interval,
        cpu=interval,
        verdict=verdict,
        finding=verdict == "slower" and change >= 5,
        below_layout_floor=False,
        noise_floor_pct=1.0,
        published_rule="within noise",
        rounds_needed=None,
        minutes_needed=None,
    )


def analysis(*comparisons: Comparison, failures: tuple[Failure, ...] = ()) -> Analysis:
    return Analysis(
        run_id="screen",
        headline="",
        baseline="unchanged:node24.11.1+bsm12.11.1",
        environments=(),
        cells=(),
        comparisons=comparisons,
        controls=(),
        failures=failures,
        undecided_ops=(),
    )


def attribution(layer: Named, change: float = 10.5, *, recurred: bool = True) -> Attribution:
    return Attribution(
        op="select_range",
        family="sqlite",
        baseline="unchanged:node24.11.1+bsm12.11.1",
        candidate=CANDIDATE,
        recurred=recurred,
        rounds=8,
        change_pct=change,
        ci_low_pct=change - 1,
        ci_high_pct=change + 1,
        confidence=0.99,
        delta_ns_per_op=1.0,
        layer=layer,
        reason="because",
        methods=(),
        methods_agree=True,
    )


def outcome(
    change: float = 10.0,
    verdict: Verdict = "slower",
    told: Attribution | None = None,
    *,
    place: str = "core_step",
    size: float | None = 10.0,
) -> Outcome:
    trial = Trial(place=place, op="select_range", size_pct=size, seed=1)
    attributions = () if told is None else (told,)
    return judge(1, trial, CANDIDATE, analysis(comparison(change, verdict)), attributions, elapsed_s=14.0)


def test_a_found_and_named_plant_is_right() -> None:
    seen = outcome(told=attribution("native_core"))
    assert (seen.detected, seen.layer_outcome, seen.size_right) == (True, "right", True)
    assert seen.measured_pct == 10.5
    assert seen.size_ratio == pytest.approx(1.05)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (attribution("os"), "wrong"),
        (attribution("mixed"), "unknown"),
        (attribution("unknown"), "unknown"),
        (attribution("os", recurred=False), "not_explained"),
        (None, "not_explained"),
    ],
)
def test_layers_are_judged(told: Attribution | None, expected: str) -> None:
    assert outcome(told=told).layer_outcome == expected


def test_a_flag_that_was_taken_back_is_not_detected() -> None:
    assert not outcome(told=attribution("unknown", 1.0, recurred=False)).detected
    assert not outcome(verdict="undecided").detected


@pytest.mark.parametrize(("change", "right"), [(8.0, True), (12.0, True), (7.9, False), (12.1, False)])
def test_a_size_is_right_within_a_fifth(change: float, right: bool) -> None:
    assert outcome(change).size_right is right


def test_a_layer_named_for_nothing_is_wrong() -> None:
    assert outcome(told=attribution("gc"), place="nothing", size=None).layer_outcome == "wrong"
    assert outcome(told=attribution("unknown"), place="nothing", size=None).layer_outcome == "unknown"
    assert outcome(place="nothing", size=None).size_right is None


def test_a_trial_without_a_comparison_says_why() -> None:
    trial = Trial(place="core_step", op="select_range", size_pct=10.0, seed=1)
    broken = Failure(environment=CANDIDATE, op=None, stage="load", reason="does not load")
    seen = judge(1, trial, CANDIDATE, analysis(failures=(broken,)), ())
    assert (seen.verdict, seen.detected, seen.reason) == ("invalid", False, "does not load")
    assert seen.size_right is None


# -- report -----------------------------------------------------------------------------------------------

OUTCOMES = (
    outcome(9.5, told=attribution("native_core")),
    outcome(14.0, told=attribution("boundary", 14.0)),
    outcome(26.0, told=attribution("unknown", 26.0), size=25.0),
    outcome(5.2, size=5.0),
    outcome(4.0, "undecided", size=5.0),
    outcome(0.1, "no_change", place="nothing", size=None),
)
REPORT = SelftestReport(options=Options(), rates=(), planned=8, outcomes=OUTCOMES)


def test_criteria_count_what_they_say() -> None:
    counted = {c.text: (c.good, c.of, c.met) for c in criteria(OUTCOMES)}
    assert counted == {
        "10 % and more: detected": (3, 3, True),
        "10 % and more: layer right": (1, 3, False),
        "planted: no wrong layer": (2, 3, False),
        "10 % and more: size within 20 %": (2, 3, False),
        "5 %: detected": (1, 2, False),
        "nothing planted: nothing detected": (1, 1, True),
        "nothing planted: no layer named": (1, 1, True),
    }
    assert {c.met for c in criteria(())} == {None}


def test_the_matrix_has_every_trial_once() -> None:
    head, core, none = layer_table(OUTCOMES)
    assert dict(zip(head, core, strict=True)) == {
        "planted": "native_core",
        "boundary": "1",
        "engine": "0",
        "gc": "0",
        "native_core": "1",
        "os": "0",
        "mixed": "0",
        "unknown": "1",
        "not explained": "1",
        "not detected": "1",
    }
    assert none[0] == "none"
    assert sum(map(int, none[1:])) == 1


def test_the_table_goes_by_place_and_size() -> None:
    _, five, ten, twenty, nothing = detection_table(OUTCOMES)
    assert five[:5] == ("core_step", "native_core", "5 %", "2", "1 of 2")
    assert five[5:] == ("0", "0", "0", "2", "0.92 (0.80 to 1.04)", "2 of 2")
    assert ten[4:9] == ("2 of 2", "1", "1", "0", "0")
    assert twenty[9] == "1.04"
    assert nothing == ("nothing", "none", "", "1", "0 of 1", "0", "0", "0", "1", "+0.1 %", "")


def test_reports_hold_what_was_found() -> None:
    assert verdict_lines(REPORT)[-1] == "6 of 8 trials, 14 s each without explanation"
    assert "MISSED: 10 % and more: layer right, 1 of 3 (wanted: 95 %)" in render_text(REPORT)
    page = render_markdown(REPORT)
    assert page.count("\n| core_step-10 |") == 2
    assert "arithmetic in every sqlite3_step" in page
    widths = {line.count("|") for line in page.split("## Trials")[1].splitlines() if line.startswith("|")}
    assert len(widths) == 1


def test_a_report_reads_back_equal() -> None:
    assert msgspec.json.decode(msgspec.json.encode(REPORT), type=SelftestReport) == REPORT
