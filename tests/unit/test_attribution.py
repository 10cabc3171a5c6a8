"""Attribution on made-up measurements whose layers are known."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from investigator.attribution.layers import LAYERS, LayerShare, Method
from investigator.attribution.methods import Pair, Profiled, pair_terms, profile, subtract
from investigator.attribution.rule import OUTSIDE_CORE, UNDIVIDED, UNEXPLAINED, Ruling, by_experiment, rule
from investigator.attribution.subtraction import TOGETHER

ROUNDS = tuple(range(1, 9))
OP = "select_range"
TWINS = {"native_core": f"core.{OP}", "boundary": f"boundary.{OP}"}
BOTH = {**TWINS, TOGETHER: f"together.{OP}"}
CALLS = 1000
Cost = Mapping[str, float]
BASE: Cost = {"native_core": 12_000.0, "boundary": 9_000.0, "engine": 0.0, "gc": 1_000.0, "os": 500.0}


def plus(cost: Cost, **more: float) -> Cost:
    return {name: value + more.get(name, 0.0) for name, value in cost.items()}


def table_of(
    costs: Mapping[str, Cost],
    *,
    twin_costs: Mapping[str, Cost] | None = None,
    together: Mapping[str, float] | None = None,
    noise: float = 0.01,
) -> pd.DataFrame:
    """Six passes an operation, eight rounds, twice a round; `twin_costs` where twins see something else.

    `together` is what core and boundary cost as one twin.
    """
    rng = np.random.default_rng(3)
    rows = []
    for environment, cost in costs.items():
        seen = (twin_costs or costs)[environment]
        ops = {
            OP: (sum(cost.values()), cost["gc"], cost["os"]),
            TWINS["native_core"]: (seen["native_core"], 0.0, 0.0),
            TWINS["boundary"]: (seen["boundary"], 0.0, 0.0),
        }
        if together is not None:
            ops[BOTH[TOGETHER]] = (together[environment], 0.0, 0.0)
        for op, (total, gc, os) in ops.items():
            for number in ROUNDS:
                for twin in (False, True):
                    level = np.exp(rng.normal(0.0, noise))
                    rows += [
                        {
                            "environment": environment,
                            "op": op,
                            "round": number,
                            "twin": twin,
                            "calls": CALLS,
                            "lap": 0,
                            "wall_ns": total * level * CALLS,
                            "gc_pause_ns": gc * level * CALLS,
                            "cpu_user_ns": (total - os) * level * CALLS,
                            "cpu_system_ns": os * level * CALLS,
                        }
                        for _ in range(6)
                    ]
    return pd.DataFrame(rows)


def pair(family: str = "sqlite", twins: Mapping[str, str] = TWINS) -> Pair:
    return Pair(
        op=OP, family=family, baseline="a", candidate="b", rounds=ROUNDS, twins=twins, without_twin={}
    )


def profiles(costs: Mapping[str, Cost], *, broken: float = 0.0, slowed: float = 1.0) -> list[Profiled]:
    rng = np.random.default_rng(5)
    return [
        Profiled(
            environment=environment,
            round=number,
            layers={
                layer: int(rng.poisson(6000 * cost[layer] / sum(cost.values())))
                for layer in LAYERS
                if cost[layer]
            },
            broken=int(6000 * broken),
            ns_per_call=sum(cost.values()) * slowed,
        )
        for environment, cost in costs.items()
        for number in ROUNDS
    ]


def ruling(
    costs: Mapping[str, Cost],
    *,
    family: str = "sqlite",
    twins: Mapping[str, str] = TWINS,
    twin_costs: Mapping[str, Cost] | None = None,
    profile_costs: Mapping[str, Cost] | None = None,
    noise: float = 0.01,
) -> Ruling:
    chosen = pair(family, twins)
    low, high = pair_terms(chosen, table_of(costs, twin_costs=twin_costs, noise=noise))
    subtraction, _ = subtract(chosen, low, high)
    by_profile, found = profile(chosen, low, high, profiles(profile_costs or costs))
    return rule(subtraction, by_profile, found)


@pytest.mark.parametrize("layer", ["boundary", "native_core", "gc", "os"])
@pytest.mark.parametrize("size", [0.1, 1.0, -0.3])
def test_a_change_in_one_layer_is_named(layer: str, size: float) -> None:
    delta = sum(BASE.values()) * size
    base = {**BASE, layer: BASE[layer] + 8000.0}
    found = ruling({"a": base, "b": plus(base, **{layer: delta})})
    assert (found.layer, found.agree) == (layer, True), found.reason


def test_shares_are_those_that_were_put_in() -> None:
    costs = {"a": BASE, "b": plus(BASE, boundary=4000.0, native_core=1000.0)}
    low, high = pair_terms(pair(), table_of(costs, noise=0.002))
    method, _ = subtract(pair(), low, high)
    assert method.layers["boundary"].share == pytest.approx(0.8, abs=0.03)
    assert method.layers["native_core"].share == pytest.approx(0.2, abs=0.03)
    assert method.layers["boundary"].ns_per_op == pytest.approx(4000.0, rel=0.05)
    assert method.layers["boundary"].ci_low < 0.8 < method.layers["boundary"].ci_high
    assert sum(layer.share for layer in method.layers.values()) == pytest.approx(1.0)


def test_a_core_whose_caches_are_colder_within_the_calls_is_taken_as_it_is_there() -> None:
    """In a loop of its own it takes three quarters: twins beside each other miss 13 % of the operation."""
    costs = {"a": BASE, "b": plus(BASE, native_core=8000.0)}
    warm = {name: {**cost, "native_core": cost["native_core"] * 0.75} for name, cost in costs.items()}
    both = {name: cost["native_core"] + cost["boundary"] for name, cost in costs.items()}
    table = table_of(costs, twin_costs=warm, together=both, noise=0.002)
    without, _ = subtract(pair(), *pair_terms(pair(), table))
    assert without.unavailable is not None
    method, _ = subtract(pair(twins=BOTH), *pair_terms(pair(twins=BOTH), table))
    assert method.layers["native_core"].share == pytest.approx(1.0, abs=0.03)
    assert method.layers["native_core"].baseline_ns_per_op == pytest.approx(12_000.0, rel=0.03)
    assert "inside of the addon's calls" in method.notes[0]


def test_where_the_twins_fit_beside_each_other_they_stay_there() -> None:
    """The shortest calls cost more together than in the operation: each has a crossing of its own."""
    costs = {"a": BASE, "b": plus(BASE, native_core=8000.0)}
    both = {name: 1.3 * (cost["native_core"] + cost["boundary"]) for name, cost in costs.items()}
    table = table_of(costs, together=both, noise=0.002)
    method, _ = subtract(pair(twins=BOTH), *pair_terms(pair(twins=BOTH), table))
    assert method.notes == ()
    assert method.layers["native_core"].share == pytest.approx(1.0, abs=0.03)


def test_what_no_twin_contains_stays_unexplained_however_they_are_put_together() -> None:
    costs = {"a": BASE, "b": plus(BASE, engine=6000.0)}
    both = {name: cost["native_core"] + cost["boundary"] for name, cost in costs.items()}
    table = table_of(costs, together=both)
    method, _ = subtract(pair(twins=BOTH), *pair_terms(pair(twins=BOTH), table))
    assert method.largest == OUTSIDE_CORE


def test_two_layers_alike_are_mixed_and_never_one() -> None:
    found = ruling({"a": BASE, "b": plus(BASE, boundary=4000.0, native_core=4000.0)})
    assert found.layer in {"mixed", "unknown"}


def test_methods_that_disagree_name_nothing() -> None:
    slow = plus(BASE, boundary=6000.0)
    found = ruling({"a": BASE, "b": slow}, profile_costs={"a": BASE, "b": plus(BASE, gc=6000.0)})
    assert found.layer == "unknown"
    assert "subtraction points to" in found.reason


def test_javascript_that_no_twin_contains_is_told_by_the_profile() -> None:
    slow = plus(BASE, engine=6000.0)
    chosen = pair()
    low, high = pair_terms(chosen, table_of({"a": BASE, "b": slow}))
    method, _ = subtract(chosen, low, high)
    assert method.largest == OUTSIDE_CORE
    assert "in none of the twins" in method.notes[0]
    assert ruling({"a": BASE, "b": slow}).layer == "engine"


def test_javascript_that_the_twin_runs_too_is_told_by_the_profile() -> None:
    """The addon's own JavaScript around its calls: the replay has it as well."""
    slow = plus(BASE, engine=6000.0)
    in_twin = {"a": BASE, "b": plus(BASE, boundary=6000.0)}
    found = ruling({"a": BASE, "b": slow}, twin_costs=in_twin)
    assert (found.layer, found.agree) == ("engine", True)


def test_twins_that_do_not_make_up_the_operation_are_not_used() -> None:
    twins = {name: plus(BASE, native_core=8000.0) for name in "ab"}
    found = ruling({"a": BASE, "b": plus(BASE, boundary=6000.0)}, twin_costs=twins)
    assert found.layer == "unknown"
    assert "twins miss the operation by" in found.reason


def test_pure_javascript_has_engine_gc_and_os() -> None:
    base = {**BASE, "engine": 20_000.0, "boundary": 0.0, "native_core": 0.0}
    assert ruling({"a": base, "b": plus(base, engine=5000.0)}, family="js", twins={}).layer == "engine"
    assert ruling({"a": base, "b": plus(base, gc=5000.0)}, family="js", twins={}).layer == "gc"


def test_a_workload_without_twins_can_only_blame_gc_and_os() -> None:
    slow = plus(BASE, boundary=6000.0)
    found = ruling({"a": BASE, "b": slow}, twins={})
    assert found.layer == "unknown"
    assert "no twins" in found.reason
    assert ruling({"a": BASE, "b": plus(BASE, gc=6000.0)}, twins={}).layer == "gc"
    chosen = pair(twins={})
    low, high = pair_terms(chosen, table_of({"a": BASE, "b": slow}))
    assert subtract(chosen, low, high)[0].largest == UNDIVIDED


def test_noise_as_large_as_the_change_names_nothing() -> None:
    found = ruling({"a": BASE, "b": plus(BASE, boundary=300.0)}, noise=0.05)
    assert found.layer in {"unknown", "mixed"}


@pytest.mark.parametrize(
    ("change", "said"),
    [({"broken": 0.1}, "broken"), ({"slowed": 1.2}, "under the profiler")],
)
def test_a_profile_that_shows_something_else_is_not_used(change: dict[str, float], said: str) -> None:
    costs = {"a": BASE, "b": plus(BASE, boundary=6000.0)}
    low, high = pair_terms(pair(), table_of(costs))
    method, found = profile(pair(), low, high, profiles(costs, **change))
    assert found is None
    assert said in (method.unavailable or "")
    subtraction, _ = subtract(pair(), low, high)
    assert rule(subtraction, method, found).layer == "unknown"


def test_too_few_rounds_give_no_shares() -> None:
    chosen = Pair(
        op=OP, family="sqlite", baseline="a", candidate="b", rounds=(1, 2, 3), twins=TWINS, without_twin={}
    )
    costs = {"a": BASE, "b": plus(BASE, boundary=6000.0)}
    low, high = pair_terms(chosen, table_of(costs))
    method, found = subtract(chosen, low, high)
    assert found is None
    assert "rounds" in (method.unavailable or "")


def test_unexplained_is_what_no_part_holds() -> None:
    low, _ = pair_terms(pair(), table_of({"a": BASE, "b": BASE}, noise=0.0))
    assert np.allclose(low[UNEXPLAINED], 0.0, atol=0.002 * sum(BASE.values()))


def test_waiting_inside_collections_is_gc_and_not_os() -> None:
    """The main thread waits for helper threads in a pause: off the processor, and no matter of the system."""
    slow = plus(BASE, gc=6000.0)
    table = table_of({"a": BASE, "b": slow}, noise=0.002)
    own = (table["op"] == OP) & (table["environment"] == "b")
    waited = 5000.0 * CALLS
    table["main_user_ns"] = table["cpu_user_ns"] - np.where(own, waited, 0.0)
    table["main_system_ns"] = table["cpu_system_ns"]
    table["main_gc_cpu_ns"] = table["gc_pause_ns"] - np.where(own, waited, 0.0)
    low, high = pair_terms(pair(), table)
    method, _ = subtract(pair(), low, high)
    assert method.largest == "gc"
    assert method.layers["gc"].share == pytest.approx(1.0, abs=0.05)
    assert method.layers["os"].share == pytest.approx(0.0, abs=0.05)


def test_an_experiment_confirms_a_layer_where_there_are_no_twins() -> None:
    shares = {"gc": share_of(0.45), "engine": share_of(0.35)}
    subtraction = Method(name="subtraction", layers=shares, largest="gc")
    profile_says = Method(name="profile", layers=shares, largest="engine")
    unknown = Ruling(layer="unknown", reason="", agree=False)
    closes = Method(name="ablation", layers={"gc": share_of(0.9)}, largest="gc", notes=("--semi-space=8",))
    found = by_experiment(unknown, subtraction, profile_says, closes)
    assert (found.layer, found.agree) == ("gc", True)
    assert "--semi-space=8, which acts on it, closes 90 %" in found.reason
    hardly = Method(name="ablation", layers={"gc": share_of(0.45)}, largest="gc", notes=("--x",))
    other = Method(name="ablation", layers={"os": share_of(0.9)}, largest="os", notes=("--x",))
    for experiment in (None, hardly, other):
        assert by_experiment(unknown, subtraction, profile_says, experiment) == unknown


def share_of(share: float) -> LayerShare:
    return LayerShare(
        baseline_ns_per_op=1.0,
        candidate_ns_per_op=2.0,
        ns_per_op=1.0,
        share=share,
        ci_low=share - 0.05,
        ci_high=share + 0.05,
    )
