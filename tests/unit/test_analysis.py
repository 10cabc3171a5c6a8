"""A table of samples to verdicts, controls and the headline; the truth of every table is known."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest

from investigator.addons import AddonPackage
from investigator.analysis import Analysis, Comparison, PairKind, analyse
from investigator.arms import Phase
from investigator.nodes.interface import NodeBuild
from investigator.operations import Family, Operation
from investigator.plan import Environment, Failure, Plan
from investigator.samples import COLUMN_TYPES
from investigator.spec import Spec

ADDON = AddonPackage(name="better-sqlite3-multiple-ciphers", version="12.11.1")
N20, N22, N24 = (f"node{v}+bsm12.11.1" for v in ("20.19.5", "22.21.1", "24.11.1"))
Level = Callable[[str, str, int], float]
"""Operation, environment and round to the true factor on its time."""


def environment(identifier: str) -> Environment:
    label, _, rest = identifier.rpartition(":")
    version = rest.removeprefix("node").partition("+")[0]
    node = NodeBuild(
        version=version,
        source="npm",
        directory=Path("/cache"),
        node_sha256="0" * 64,
        versions={},
        config_sha256="0" * 64,
        label=label or None,
    )
    return Environment(id=identifier, label=label or None, node=node, addon=ADDON)


def plan(
    *environments: str,
    ops: Mapping[str, Family] | None = None,
    baseline: str | None = None,
    spec: Spec | None = None,
) -> Plan:
    return Plan(
        spec=spec or Spec(versions=("22", "24")),
        run_id="test",
        environments=tuple(environment(identifier) for identifier in environments),
        baseline=baseline or environments[0],
        operations=tuple(
            Operation(name=name, family=family, module=f"{name}.mjs")
            for name, family in (ops or {"select_point": "sqlite"}).items()
        ),
    )


def table(of: Plan, level: Level, *, rounds: int = 8, passes: int = 6, sd: float = 0.004) -> pd.DataFrame:
    """One row a pass, cold passes three times as slow, seeded noise on passes and processes."""
    rng = np.random.default_rng(5)
    rows = [
        (number, identifier, twin, operation.name, operation.family, index)
        for number in range(1, rounds + 1)
        for identifier in (e.id for e in of.environments)
        for twin in ((False, True) if identifier == of.baseline else (False,))
        for operation in of.operations
        for index in range(-1, passes)
    ]
    columns = zip(*rows, strict=True)
    names = ("round", "environment", "twin", "op", "family", "index")
    frame = pd.DataFrame({name: list(column) for name, column in zip(names, columns, strict=True)})
    cold = frame["index"] < 0
    factor = np.array([level(op, where, number) for number, where, _, op, _, _ in rows])
    process = np.exp(np.repeat(rng.normal(0.0, sd, len(rows) // (passes + 1)), passes + 1))
    wall = 40e6 * factor * process * np.exp(rng.normal(0.0, sd / 2, len(rows))) * np.where(cold, 3.0, 1.0)
    frame = frame.assign(
        phase=np.where(cold, "cold", "pass"),
        index=np.maximum(frame["index"], 0),
        position=0,
        calls=np.where(cold, 1, 1000),
        wall_ns=np.where(cold, wall / 1000, wall).astype(np.int64),
        disturbed=False,
        steal_pct=0.0,
    )
    frame["cpu_user_ns"] = frame["wall_ns"]
    for name, kind in COLUMN_TYPES.items():
        if name not in frame:
            frame[name] = np.zeros(len(frame), dtype=kind)
    return frame[list(COLUMN_TYPES)]


def flat(_op: str, _where: str, _round: int) -> float:
    return 1.0


def pick(
    analysis: Analysis, op: str, candidate: str, kind: PairKind = "baseline", phase: Phase = "warm"
) -> Comparison:
    found = [
        c
        for c in analysis.comparisons
        if (c.op, c.candidate, c.kind, c.phase) == (op, candidate, kind, phase)
    ]
    assert len(found) == 1
    return found[0]


def test_an_equal_pair_is_no_change_and_a_large_one_a_finding() -> None:
    of = plan(N22, N24, ops={"select_point": "sqlite", "bind_text_ascii_10k": "sqlite"})
    level: Level = lambda op, where, _: 2.14 if (op, where) == ("bind_text_ascii_10k", N24) else 1.0  # noqa: E731
    analysis = analyse(of, table(of, level))
    equal, slow = pick(analysis, "select_point", N24), pick(analysis, "bind_text_ascii_10k", N24)
    assert (equal.verdict, equal.finding, equal.published_rule) == ("no_change", False, "within noise")
    assert (slow.verdict, slow.finding, slow.below_layout_floor) == ("slower", True, False)
    assert slow.published_rule == "slower"
    assert slow.wall.change_pct == pytest.approx(114, abs=2)
    assert slow.ratio == pytest.approx(1 + slow.wall.change_pct / 100)
    assert slow.wall.confidence == pytest.approx(1 - 6 / 256)
    assert slow.rounds == 8
    assert 0.0 < slow.noise_floor_pct < 2.0
    assert analysis.undecided_ops == ()


def test_cold_passes_are_compared_on_their_own() -> None:
    of = plan(N22, N24)
    frame = table(of, flat)
    frame.loc[(frame["phase"] == "cold") & (frame["environment"] == N24), "wall_ns"] *= 2
    analysis = analyse(of, frame)
    assert pick(analysis, "select_point", N24).verdict == "no_change"
    cold = pick(analysis, "select_point", N24, phase="cold")
    assert (cold.verdict, cold.finding) == ("slower", False)  # findings are warm
    assert cold.wall.change_pct == pytest.approx(100, abs=3)


def test_a_small_flag_stays_below_the_layout_floor() -> None:
    of = plan(N22, N24)
    small = pick(analyse(of, table(of, lambda _o, w, _r: 1.035 if w == N24 else 1.0)), "select_point", N24)
    assert (small.verdict, small.finding, small.below_layout_floor) == ("slower", False, True)


def test_pairs_stand_once_and_follow_the_list() -> None:
    level: Level = lambda _o, where, _r: 2.2 if where == N20 else 1.0  # noqa: E731
    of = plan(N20, N22, N24, baseline=N22)
    analysis = analyse(of, table(of, level))
    warm = [(c.kind, c.baseline, c.candidate) for c in analysis.comparisons if c.phase == "warm"]
    assert warm == [
        ("twin", N22, N22),
        ("baseline", N22, N20),
        ("predecessor", N20, N22),
        ("baseline", N22, N24),
    ]
    back = pick(analysis, "select_point", N22, "predecessor")
    assert back.wall.change_pct == pytest.approx(100 / 2.2 - 100, abs=1)
    assert (back.verdict, back.finding) == ("faster", False)


def test_predecessors_of_a_first_listed_baseline() -> None:
    of = plan(N20, N22, N24)
    warm = [
        (c.kind, c.baseline, c.candidate)
        for c in analyse(of, table(of, flat)).comparisons
        if c.phase == "warm"
    ]
    assert warm == [
        ("twin", N20, N20),
        ("baseline", N20, N22),
        ("baseline", N20, N24),
        ("predecessor", N22, N24),
    ]


def test_a_flagged_twin_forbids_every_verdict_on_the_operation() -> None:
    of = plan(N22, N24, ops={"select_point": "sqlite", "open_key": "sqlite"})
    frame = table(of, flat)
    frame.loc[frame["twin"] & (frame["op"] == "open_key"), "wall_ns"] *= 2
    frame.loc[frame["environment"] == N24, "wall_ns"] *= 4
    analysis = analyse(of, frame)
    judged = pick(analysis, "open_key", N24)
    assert (judged.verdict, judged.finding, judged.rounds_needed) == ("undecided", False, None)
    assert judged.warnings[0].startswith("the baseline differs from itself (+")
    assert pick(analysis, "select_point", N24).verdict == "slower"
    assert analysis.undecided_ops == ("open_key",)  # the twin may come clean
    twin = next(c for c in analysis.controls if c.name == "twin")
    assert twin.values["flagged"] == 1
    assert "1 of 2 operations are flagged: open_key" in twin.text


def test_different_results_are_invalid_with_and_without_times() -> None:
    of = plan(N22, N24, ops={"select_point": "sqlite", "open_key": "sqlite"})
    frame = table(of, flat)
    frame = frame[~((frame["op"] == "open_key") & (frame["environment"] == N24))]
    failures = [
        Failure(environment=N24, op=op, stage="checksum", reason="differs")
        for op in ("select_point", "open_key")
    ]
    analysis = analyse(of, frame, failures=[*failures, *failures])
    for op, rounds in (("select_point", 8), ("open_key", 0)):
        judged = pick(analysis, op, N24)
        assert (judged.verdict, judged.finding, judged.rounds) == ("invalid", False, rounds)
        assert judged.warnings == ("the results differ from those of the baseline: the times mean nothing",)
    assert math.isnan(pick(analysis, "open_key", N24).ratio)
    assert analysis.failures == tuple(failures)  # each once
    assert analysis.headline == (
        "Cannot tell whether Node 24.11.1 differs from 22.21.1: of 2 SQLite operations 2 invalid."
    )


def test_failed_cells_cost_only_themselves() -> None:
    of = plan(N20, N22, N24, ops={"select_point": "sqlite", "open_key": "sqlite"}, baseline=N22)
    frame = table(of, flat)
    gone = (frame["environment"] == N20) | ((frame["op"] == "open_key") & (frame["environment"] == N24))
    analysis = analyse(of, frame[~gone])
    assert {(c.op, c.candidate) for c in analysis.comparisons if c.kind == "baseline"} == {
        ("select_point", N24)
    }
    assert {(c.op, c.environment) for c in analysis.cells} == {
        ("select_point", N22),
        ("select_point", N24),
        ("open_key", N22),
    }
    assert analysis.headline == (
        "Node 20.19.5 could not be compared with 22.21.1. No finding for "
        "Node 24.11.1 against 22.21.1: of 2 SQLite operations 1 unchanged, 1 not measured."
    )


def test_rounds_are_paired_strictly() -> None:
    # Twice as slow from round 5 on; the candidate lacks two early rounds, the twin two late ones.
    of = plan(N22, N24)
    frame = table(of, lambda _o, _w, number: 2.0 if number > 4 else 1.0)
    gone = ((frame["environment"] == N24) & (frame["round"] <= 2)) | (frame["twin"] & (frame["round"] >= 7))
    judged = pick(analyse(of, frame[~gone]), "select_point", N24)
    assert judged.rounds == 6
    assert judged.wall.change_pct == pytest.approx(0.0, abs=1.0)
    assert judged.verdict == "no_change"


def test_operations_may_have_different_numbers_of_rounds() -> None:
    of = plan(N22, N24, ops={"select_point": "sqlite", "open_key": "sqlite"})
    frame = table(of, flat, rounds=16)
    analysis = analyse(of, frame[(frame["op"] == "open_key") | (frame["round"] <= 8)])
    assert pick(analysis, "select_point", N24).rounds == 8
    assert pick(analysis, "open_key", N24).rounds == 16


def test_noise_is_undecided_with_a_forecast_and_measured_again() -> None:
    of = plan(N22, N24, ops={"select_point": "sqlite", "open_key": "sqlite"})
    rng = np.random.default_rng(4)
    noisy = {
        (where, number): math.exp(rng.normal(0.0, 0.03)) for where in (N22, N24) for number in range(1, 9)
    }
    level: Level = lambda op, where, number: noisy[where, number] if op == "open_key" else 1.0  # noqa: E731
    analysis = analyse(of, table(of, level), minutes_per_round=0.25)
    judged = pick(analysis, "open_key", N24)
    assert judged.verdict == "undecided"
    assert judged.rounds_needed is not None
    assert judged.minutes_needed == pytest.approx(judged.rounds_needed * 0.25)
    assert analysis.undecided_ops == ("open_key",)


def test_the_calibration_is_no_round() -> None:
    of = plan(N22, N24)
    frame = table(of, flat)
    wrong = frame[frame["round"] == 1].assign(round=0, wall_ns=10**9)
    assert analyse(of, pd.concat([frame, wrong])) == analyse(of, frame)


def test_order_of_rows_does_not_matter() -> None:
    of = plan(N22, N24)
    frame = table(of, flat)
    assert analyse(of, frame.sample(frac=1.0, random_state=1)) == analyse(of, frame)


def test_passes_of_a_repeated_invocation_join_the_first() -> None:
    of = plan(N22, N24)
    frame = table(of, flat)
    extra = frame[(frame["round"] == 2) & (frame["environment"] == N24)].assign(position=9)
    analysis = analyse(of, pd.concat([frame, extra]))
    assert pick(analysis, "select_point", N24).rounds == 8
    assert next(c for c in analysis.cells if c.environment == N24).passes == 8 * 6 + 6


def test_cells_pool_both_arms_and_follow_the_published_rule() -> None:
    of = plan(N22, N24)
    frame = table(of, lambda _o, _w, number: 1.0 + number / 10, sd=0.0)
    cells = analyse(of, frame).cells
    assert [c.environment for c in cells] == [N22, N24]
    cell = cells[0]
    assert (cell.rounds, cell.passes, cell.disturbed_passes) == (8, 2 * 8 * 6, 0)
    assert cell.best_ns_per_op == pytest.approx(44_000)
    assert cell.spread_pct == pytest.approx((1.8 / 1.1 - 1) * 100)
    assert cell.ns_per_op == pytest.approx(40_000 * 1.45)
    assert cell.ops_per_s == pytest.approx(1e9 / cell.ns_per_op)
    assert cell.cold_ns_per_op == pytest.approx(3 * cell.ns_per_op)


def test_the_collector_counts_with_the_mean() -> None:
    of = plan(N22, N24)
    frame = table(of, flat)
    hit = (frame["environment"] == N24) & (frame["phase"] == "pass") & (frame["index"] == 5)
    frame.loc[hit, ["wall_ns", "gc_pause_ns", "cpu_user_ns"]] += 24_000_000  # one pass of six: 10 % in all
    judged = pick(analyse(of, frame), "select_point", N24)
    assert (judged.verdict, judged.finding) == ("slower", True)
    assert judged.wall.change_pct == pytest.approx(10, abs=1)


def test_two_process_states_are_no_finding() -> None:
    of = plan(N22, N24)
    slow = {(N24, number) for number in range(1, 9)} | {(N22, 3), (N22, 6)}
    frame = table(of, lambda _o, where, number: 1.1 if (where, number) in slow and where == N24 else 1.0)
    late = frame["twin"] & frame["round"].isin([3, 6])
    for column in ("wall_ns", "cpu_user_ns"):
        frame.loc[late, column] = (frame.loc[late, column] * 1.1).astype("int64")
    judged = pick(analyse(of, frame), "select_point", N24)
    assert (judged.verdict, judged.finding) == ("undecided", False)
    assert "two states 10 % apart" in judged.warnings[0]


def test_disturbed_passes_are_told() -> None:
    of = plan(N22, N24)
    frame = table(of, flat).assign(disturbed=True)
    assert (
        "144 of 144 laps were disturbed from outside"
        in pick(analyse(of, frame), "select_point", N24).warnings
    )


def test_a_missing_twin_is_told() -> None:
    of = plan(N22, N24)
    frame = table(of, flat)
    judged = pick(analyse(of, frame[~frame["twin"]]), "select_point", N24)
    assert judged.verdict == "no_change"
    assert judged.warnings == ("the A/A twin of this operation is missing",)
    assert judged.noise_floor_pct == math.inf


@pytest.mark.parametrize("rounds", [1, 4])
def test_the_first_rounds_have_estimates_but_no_verdicts(rounds: int) -> None:
    of = plan(N22, N24)
    analysis = analyse(of, table(of, flat, rounds=rounds))
    judged = pick(analysis, "select_point", N24)
    assert judged.wall.change_pct == pytest.approx(0.0, abs=2)
    assert (judged.verdict, judged.wall.ci_high_pct) == ("undecided", math.inf)
    assert judged.wall.ci_low_pct == -100.0
    assert msgspec.json.encode(analysis)


def test_an_empty_table_is_an_analysis_without_numbers() -> None:
    of = plan(N22, N24)
    analysis = analyse(of, table(of, flat).iloc[:0])
    assert (analysis.comparisons, analysis.cells, analysis.controls) == ((), (), ())
    assert analysis.headline == "Node 24.11.1 could not be compared with 22.21.1."


def test_a_run_of_crossings_alone_has_its_sentence() -> None:
    of = plan(N22, N24, ops={"row_bulk_50x4": "boundary"})
    assert analyse(of, table(of, flat)).headline == (
        "No finding for Node 24.11.1 against 22.21.1: of 1 boundary operation 1 unchanged."
    )


def test_looks_of_the_spec_set_the_confidence() -> None:
    of = plan(N22, N24, spec=Spec(versions=("22", "24"), rounds=8, max_rounds=32))
    assert pick(analyse(of, table(of, flat)), "select_point", N24).wall.confidence >= 0.9833


# -- controls ---------------------------------------------------------------------------------------------


def test_host_control_tells_drift_and_changes_no_verdict() -> None:
    of = plan(N22, N24)
    frame = table(of, flat)
    readings = [100.0 * 1.01**step for step in range(16)]
    analysis = analyse(of, frame, host_ns=readings)
    host = next(c for c in analysis.controls if c.name == "host")
    assert host.values["drift_pct"] == pytest.approx((1.01**15 - 1) * 100)
    assert "drifted by +16.1 % over the session; its 16 readings lie within 16.1 %" in host.text
    assert analysis.comparisons == analyse(of, frame).comparisons


def test_engine_control_is_the_median_of_pure_js() -> None:
    of = plan(N22, N24, ops={"json_parse": "js", "json_stringify": "js", "regex_emails": "js"})
    factors = {"json_parse": 1.0, "json_stringify": 0.8, "regex_emails": 0.9}
    analysis = analyse(of, table(of, lambda op, where, _: factors[op] if where == N24 else 1.0))
    engine = next(c for c in analysis.controls if c.name == "engine")
    assert engine.values == {f"{N24}_change_pct": pytest.approx(-10, abs=1)}
    assert engine.text.startswith("Pure JS against Node 22.21.1, median change: -10.")


# -- headline ---------------------------------------------------------------------------------------------

OPS: dict[str, Family] = {
    "bind_text_ascii_10k": "sqlite",
    "bind_text_twobyte_2k": "sqlite",
    "select_point": "sqlite",
    "select_range": "sqlite",
    "json_parse": "js",
    "json_stringify": "js",
}


def headline_of(factors: Mapping[str, float], *environments: str, spec: Spec | None = None) -> str:
    of = plan(*(environments or (N22, N24)), ops=OPS, spec=spec)
    last = of.environments[-1].id
    return analyse(
        of, table(of, lambda op, where, _: factors.get(op, 1.0) if where == last else 1.0)
    ).headline


def test_headline_with_findings() -> None:
    assert headline_of({"bind_text_ascii_10k": 2.14, "select_range": 0.5, "json_stringify": 0.75}) == (
        "Node 24.11.1 is slower than 22.21.1 on 1 of 4 SQLite operations (bind_text_ascii_10k +114 %), "
        "faster on 1 (select_range -50 %); 2 unchanged; "
        "of 2 JS operations 1 faster, 1 unchanged."
    )


def test_headline_with_faster_only_and_a_small_flag() -> None:
    assert headline_of({"select_range": 0.5, "select_point": 1.035}) == (
        "Node 24.11.1 is faster than 22.21.1 on 1 of 4 SQLite operations (select_range -50 %), "
        "slower on none; 2 unchanged, 1 too small to tell from code placement; "
        "of 2 JS operations 2 unchanged."
    )


def test_headline_names_the_largest_two() -> None:
    text = headline_of(
        {"bind_text_ascii_10k": 2, "bind_text_twobyte_2k": 3, "select_point": 4, "json_parse": 5}
    )
    assert text.startswith("Node 24.11.1 is slower than 22.21.1 on 3 of 4 SQLite operations (select_point +")
    assert "bind_text" not in text
    assert ", ...), faster on none; 1 unchanged; of 2 JS operations 1 slower (json_parse +" in text


def test_headline_without_findings() -> None:
    assert headline_of({}) == (
        "No finding for Node 24.11.1 against 22.21.1: "
        "of 4 SQLite operations 4 unchanged; of 2 JS operations 2 unchanged."
    )


def test_headline_with_findings_in_the_other_family_only() -> None:
    assert headline_of({"json_parse": 1.5}) == (
        "Node 24.11.1 against 22.21.1: of 4 SQLite operations 4 unchanged; "
        "of 2 JS operations 1 slower (json_parse +50 %), 1 unchanged."
    )


def test_headline_of_a_js_run_and_of_several_candidates() -> None:
    assert headline_of({"json_parse": 1.5}, N20, N22, N24, spec=Spec(command="js", versions=("20",))) == (
        "No finding for Node 22.21.1 against 20.19.5: "
        "of 2 JS operations 2 unchanged; of 4 SQLite operations 4 unchanged. "
        "Node 24.11.1 is slower than 20.19.5 on 1 of 2 JS operations (json_parse +50 %), faster on none; "
        "1 unchanged; of 4 SQLite operations 4 unchanged."
    )


def test_headline_uses_labels_where_there_are_any() -> None:
    a, b = "a:node24.11.1+bsm12.11.1", "b:node24.11.1+bsm12.11.1"
    assert "No finding for b (Node 24.11.1) against a (Node 24.11.1):" in headline_of({}, a, b)


def test_headline_of_a_single_version() -> None:
    assert headline_of({}, N22) == "Only Node 22.21.1 was measured: there is nothing to compare it with."


def test_headline_is_silent_about_families_that_were_not_planned() -> None:
    of = plan(N22, N24, ops={"json_parse": "js"})
    assert analyse(of, table(of, flat)).headline == (
        "No finding for Node 24.11.1 against 22.21.1: of 1 JS operation 1 unchanged."
    )


def test_a_sentence_of_the_headline_stays_short_whatever_is_found() -> None:
    factors = {"bind_text_ascii_10k": 2.14, "bind_text_twobyte_2k": 2.5, "select_range": 0.5}
    text = headline_of({**factors, "select_point": 1.035, "json_stringify": 0.75, "json_parse": 1.5})
    assert len(text) <= 220, text


def test_a_finding_lies_beyond_code_placement_with_its_whole_interval() -> None:
    of = plan(N22, N24, ops={"select_point": "sqlite", "open_key": "sqlite"})

    def slower(_op: str, where: str, _round: int) -> float:
        return 1.06 if where == N24 else 1.0

    def unsteady(_op: str, where: str, number: int) -> float:
        return (1.03, 1.075)[number % 2] if where == N24 else 1.0

    sure = pick(analyse(of, table(of, slower)), "open_key", N24)
    assert (sure.verdict, sure.finding, sure.below_layout_floor) == ("slower", True, False)
    doubtful = pick(analyse(of, table(of, unsteady)), "open_key", N24)
    assert doubtful.wall.change_pct > 5.0
    assert doubtful.wall.ci_low_pct < 4.0
    assert (doubtful.verdict, doubtful.finding, doubtful.below_layout_floor) == ("slower", False, True)


# -- addons on one Node version -----------------------------------------------------------------------------


def addon_plan(*releases: str, labels: Sequence[str | None] = ()) -> Plan:
    """Environments of one Node that differ in the addon's release."""
    made = []
    for release, label in zip(releases, labels or [None] * len(releases), strict=True):
        known = environment(N24)
        prefix = f"{label}:" if label else ""
        made.append(
            msgspec.structs.replace(
                known,
                id=f"{prefix}node24.11.1+bsm{release}",
                label=label,
                addon=msgspec.structs.replace(ADDON, version=release),
            )
        )
    spec = Spec(axis="addon", versions=("24",), addons=releases)
    of = plan(N24, ops=OPS, spec=spec)
    return msgspec.structs.replace(of, environments=tuple(made), baseline=made[0].id)


def analysed(of: Plan, factors: Mapping[str, float]) -> Analysis:
    last = of.environments[-1].id
    return analyse(of, table(of, lambda op, where, _: factors.get(op, 1.0) if where == last else 1.0))


def test_headline_names_the_releases_and_the_node_they_ran_on() -> None:
    slower = analysed(addon_plan("12.11.1", "13.0.3"), {"bind_text_twobyte_2k": 1.5})
    assert slower.headline == (
        "better-sqlite3-multiple-ciphers 13.0.3 is slower than 12.11.1 on Node 24.11.1 in 1 of 4 SQLite "
        "operations (bind_text_twobyte_2k +50 %), faster in none; 3 unchanged; "
        "of 2 JS operations 2 unchanged."
    )
    equal = analysed(addon_plan("12.11.1", "12.11.1", labels=["a", "b"]), {})
    assert equal.headline == (
        "No finding for b (better-sqlite3-multiple-ciphers 12.11.1) against "
        "a (better-sqlite3-multiple-ciphers 12.11.1) on Node 24.11.1: "
        "of 4 SQLite operations 4 unchanged; of 2 JS operations 2 unchanged."
    )


def test_pure_js_on_one_node_is_a_null_control_and_says_nothing_about_v8() -> None:
    of = addon_plan("12.11.1", "13.0.3")
    engine = next(c for c in analysed(of, {"json_parse": 1.1}).controls if c.name == "engine")
    assert engine.text.startswith("Pure JS on the same Node 24.11.1 against 12.11.1, median change: +")
    assert "% with 13.0.3 (2 operations); 1 of 2 comparisons are flagged." in engine.text
    assert "not of V8" in engine.text
    assert "moved" not in engine.text
    assert engine.values["flagged"] == 1.0
