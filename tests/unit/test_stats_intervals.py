"""The exact interval: against enumeration, by its symmetries, and by the figures published for it."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats as scipy_stats

from investigator.stats.intervals import (
    MIN_ROUNDS,
    confidence_per_look,
    critical_value,
    effects,
    interval,
    signed_rank_distribution,
    walsh_averages,
)

EFFECTS = hnp.arrays(
    np.float64, st.integers(MIN_ROUNDS, 20), elements=st.floats(-2.0, 2.0, allow_subnormal=False, width=32)
)


@pytest.mark.parametrize("rounds", range(1, 13))
def test_distribution_equals_enumeration_of_all_signs(rounds: int) -> None:
    counts = np.zeros(rounds * (rounds + 1) // 2 + 1)
    for signs in itertools.product((0, 1), repeat=rounds):
        counts[sum(rank for rank, sign in enumerate(signs, start=1) if sign)] += 1
    np.testing.assert_array_equal(signed_rank_distribution(rounds), counts / 2**rounds)


@pytest.mark.parametrize("rounds", [32, 64])
def test_distribution_stays_exact_for_many_rounds(rounds: int) -> None:
    probabilities = signed_rank_distribution(rounds)
    assert probabilities[0] == 2.0**-rounds
    assert math.fsum(probabilities) == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_array_equal(probabilities, probabilities[::-1])


@pytest.mark.parametrize(
    ("rounds", "wanted", "dropped", "achieved"),
    [
        (5, 0.975, 0, 0.9375),
        (6, 0.975, 0, 0.96875),
        (7, 0.975, 0, 0.984375),  # the cap of design.md section 7: 98.4 % at n = 7
        (7, 0.9833, 0, 0.984375),
        (8, 0.975, 2, 1 - 2 * 3 / 256),
        (8, 0.99, 0, 1 - 2 / 256),
        (8, 1 - 2 * 3 / 256, 2, 1 - 2 * 3 / 256),
    ],
)
def test_critical_values(rounds: int, wanted: float, dropped: int, achieved: float) -> None:
    found, confidence = critical_value(rounds, wanted)
    assert found == dropped
    assert confidence == pytest.approx(achieved, abs=1e-15)


@pytest.mark.parametrize("rounds", [5, 7, 8, 10, 12])
def test_p_value_and_interval_agree_with_scipy(rounds: int) -> None:
    rng = np.random.default_rng(rounds)
    effect = rng.normal(0.3, 1.0, rounds)
    found = interval(effect, 0.9)
    for shift, inside in ((found.low - 1e-9, False), (found.low + 1e-9, True), (found.high + 1e-9, False)):
        p_value = scipy_stats.wilcoxon(effect - shift, method="exact").pvalue
        assert (p_value > 1 - found.confidence + 1e-12) == inside


def test_coverage_is_what_is_claimed() -> None:
    rng = np.random.default_rng(1)
    covered = [
        found.low <= 0.0 <= found.high
        for found in (interval(rng.standard_t(3, 8), 0.975) for _ in range(4000))
    ]
    claimed = critical_value(8, 0.975)[1]
    assert np.mean(covered) == pytest.approx(claimed, abs=0.008)


@given(EFFECTS)
def test_interval_contains_the_estimate_and_has_at_least_the_confidence(effect: np.ndarray) -> None:
    found = interval(effect, 0.9)
    assert found.low <= found.estimate <= found.high
    assert found.confidence >= 0.9


@given(EFFECTS, st.randoms())
def test_order_of_rounds_does_not_matter(effect: np.ndarray, random: object) -> None:
    shuffled = effect.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert interval(shuffled, 0.975) == interval(effect, 0.975)


@given(EFFECTS)
def test_exchanging_the_sides_mirrors_the_interval(effect: np.ndarray) -> None:
    found, mirrored = interval(effect, 0.975), interval(-effect, 0.975)
    assert (mirrored.low, mirrored.high) == (-found.high, -found.low)
    assert mirrored.estimate == pytest.approx(-found.estimate)


@given(EFFECTS)
def test_more_confidence_is_never_narrower(effect: np.ndarray) -> None:
    narrow, wide = interval(effect, 0.9), interval(effect, 0.99)
    assert wide.low <= narrow.low <= narrow.high <= wide.high


@given(
    hnp.arrays(np.float64, (8, 3), elements=st.floats(1.0, 1e9)),
    st.floats(1e-6, 1e6),
)
def test_effects_do_not_depend_on_the_unit(values: np.ndarray, unit: float) -> None:
    plain = effects(values[:, 0], values[:, 1:])
    np.testing.assert_allclose(effects(values[:, 0] * unit, values[:, 1:] * unit), plain, atol=1e-9)


def test_effect_of_a_round_takes_the_mean_of_the_logs_of_both_baselines() -> None:
    found = effects(np.array([200.0]), np.array([[100.0, 400.0]]))
    assert found == pytest.approx([0.0])


def test_rounds_are_paired_strictly_and_missing_ones_left_out() -> None:
    nan = np.nan
    candidate = np.array([110.0, nan, 120.0, 130.0])
    baseline = np.array([[100.0, 100.0], [100.0, 100.0], [100.0, nan], [nan, nan]])
    np.testing.assert_allclose(effects(candidate, baseline), np.log([1.1, 1.2]))


@pytest.mark.parametrize("rounds", range(MIN_ROUNDS))
def test_too_few_rounds_have_no_interval(rounds: int) -> None:
    found = interval(np.full(rounds, 0.5), 0.975)
    assert not found.bounded
    assert (found.low, found.high, found.rounds) == (-math.inf, math.inf, rounds)


def test_hodges_lehmann_by_hand() -> None:
    # Averages of 1, 2, 6: 1, 1.5, 2, 3.5, 4, 6.
    np.testing.assert_array_equal(walsh_averages(np.array([6.0, 1.0, 2.0])), [1, 1.5, 2, 3.5, 4, 6])
    assert interval(np.array([6.0, 1.0, 2.0]), 0.9).estimate == 2.75


def test_looks_share_five_percent() -> None:
    assert confidence_per_look(1) == pytest.approx(0.95)
    assert confidence_per_look(2) == pytest.approx(0.975)
    assert confidence_per_look(3) == pytest.approx(0.98333, abs=1e-5)
