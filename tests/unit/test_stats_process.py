"""Passes to process values: robust to bursts, blind for nothing that recurs."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from investigator.stats.process import (
    FloatArray,
    cpu_values,
    fastest_values,
    mean_cpu_values,
    mean_values,
    process_values,
    typical_values,
)

PASSES = 8


def one(function: Callable[..., FloatArray], **columns: list[float]) -> float:
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in columns.items()}
    length = len(next(iter(arrays.values())))
    return float(function(np.zeros(length, dtype=np.int64), 1, **arrays)[0])


def wall_value(wall: list[float], gc: list[float] | None = None) -> float:
    return one(process_values, wall_ns=wall, gc_pause_ns=gc or [0.0] * len(wall), calls=[10.0] * len(wall))


def cpu_value(wall: list[float], cpu: list[float], gc: list[float] | None = None) -> float:
    return one(
        cpu_values, wall_ns=wall, cpu_ns=cpu, gc_pause_ns=gc or [0.0] * len(wall), calls=[10.0] * len(wall)
    )


def test_process_value_is_the_fastest_pass_per_call_plus_the_mean_pause() -> None:
    wall, pauses = [100.0, 110.0, 120.0, 130.0, 140.0, 150.0], [0.0, 0.0, 0.0, 0.0, 0.0, 60.0]
    assert wall_value(wall, pauses) == pytest.approx(90.0 / 10 + 1.0)


def test_the_fastest_pass_is_put_together_lap_by_lap() -> None:
    group, lap = np.repeat([0, 1], 6), np.tile([0, 1, 2], 4)
    wall = np.array([47.0, 69.0, 17.0, 60.0, 66.0, 90.0, 10.0, 30.0, 20.0, 15.0, 10.0, 20.0])
    columns = {"wall_ns": wall, "gc_pause_ns": np.zeros(12), "calls": np.ones(12)}
    expected = [(66 + 17) / 2, (10 + 20) / 2]  # the first lap only settles
    np.testing.assert_allclose(process_values(group, 2, lap=lap, **columns), expected)
    np.testing.assert_allclose(fastest_values(group, 2, lap=lap, **columns), expected)
    cpu = cpu_values(group, 2, lap=lap, cpu_ns=wall, **columns)
    np.testing.assert_allclose(cpu, expected)
    np.testing.assert_allclose(process_values(group, 2, **columns), [17.0, 10.0])


def test_typical_value_is_the_median_pass_per_call_plus_the_mean_pause() -> None:
    wall, pauses = [100.0, 110.0, 120.0, 130.0, 140.0, 150.0], [0.0, 0.0, 0.0, 0.0, 0.0, 60.0]
    value = one(typical_values, wall_ns=wall, gc_pause_ns=pauses, calls=[10.0] * 6)
    assert value == pytest.approx(np.median([100.0, 110.0, 120.0, 130.0, 140.0, 90.0]) / 10 + 1.0)


def test_a_burst_that_spares_a_pass_does_not_move_the_value_but_the_mean() -> None:
    quiet, burst = [100.0] * 6, [100.0] + [200.0] * 5
    assert wall_value(burst) == wall_value(quiet)
    assert cpu_value(burst, burst) == cpu_value(quiet, quiet)
    mean = one(mean_cpu_values, cpu_ns=burst, calls=[10.0] * 6)
    assert mean > 1.3 * cpu_value(burst, burst)


def test_the_collector_cannot_hide_in_one_pass() -> None:
    assert wall_value([100.0] * 5 + [700.0], [0.0] * 5 + [600.0]) == pytest.approx(20.0)


def test_helper_threads_cannot_hide_in_one_pass() -> None:
    wall = [100.0] * 6
    assert cpu_value(wall, [100.0] * 5 + [160.0]) == pytest.approx(11.0)


def test_helpers_that_clean_up_after_the_harness_do_not_count() -> None:
    wall, lap = np.full(6, 100.0), np.tile([0, 1, 2], 2)
    columns = {"wall_ns": wall, "gc_pause_ns": np.zeros(6), "calls": np.full(6, 10.0)}
    group = np.zeros(6, dtype=np.int64)
    in_first = cpu_values(group, 1, cpu_ns=wall + 40.0 * (lap == 0), lap=lap, **columns)
    in_last = cpu_values(group, 1, cpu_ns=wall + 40.0 * (lap == 2), lap=lap, **columns)
    assert (float(in_first[0]), float(in_last[0])) == pytest.approx((10.0, 12.0))
    single = cpu_values(group, 1, cpu_ns=wall + 60.0, lap=np.zeros(6, dtype=np.int64), **columns)
    assert float(single[0]) == pytest.approx(16.0)


def test_waiting_is_no_cpu_time() -> None:
    assert cpu_value([500.0] * 6, [100.0] * 6) == pytest.approx(10.0)


def test_fastest_pass_leaves_the_pause_out() -> None:
    fastest = one(fastest_values, wall_ns=[120.0, 90.0], gc_pause_ns=[40.0, 0.0], calls=[10.0, 10.0])
    assert fastest == 8.0


@given(hnp.arrays(np.float64, (5, PASSES), elements=st.floats(1.0, 1e9)), st.randoms())
def test_many_processes_at_once_equal_one_at_a_time(wall: np.ndarray, random: object) -> None:
    order = list(range(wall.size))
    random.shuffle(order)  # type: ignore[attr-defined]
    group = np.repeat(np.arange(5), PASSES)[order]
    calls, none = np.full(wall.size, 10.0), np.zeros(wall.size)
    together = process_values(group, 5, wall_ns=wall.ravel()[order], gc_pause_ns=none, calls=calls)
    np.testing.assert_allclose(together, wall.min(axis=1) / 10.0)
    typical = typical_values(group, 5, wall_ns=wall.ravel()[order], gc_pause_ns=none, calls=calls)
    np.testing.assert_allclose(typical, np.median(wall, axis=1) / 10.0)


@given(hnp.arrays(np.float64, PASSES, elements=st.floats(1.0, 1e6)), st.floats(1e-3, 1e3))
def test_values_scale_with_the_unit(wall: np.ndarray, unit: float) -> None:
    assert wall_value(list(wall * unit)) == pytest.approx(wall_value(list(wall)) * unit)


def test_processes_without_usable_passes_are_nan() -> None:
    group = np.array([0, 2], dtype=np.int64)
    wall, gc, calls = np.array([10.0, 0.0]), np.zeros(2), np.array([0.0, 5.0])
    assert np.isnan(process_values(group, 3, wall_ns=wall, gc_pause_ns=gc, calls=calls)).all()
    assert np.isnan(cpu_values(group, 3, wall_ns=wall, cpu_ns=wall, gc_pause_ns=gc, calls=calls)).all()
    assert np.isnan(typical_values(group, 3, wall_ns=wall, gc_pause_ns=gc, calls=calls)).all()
    assert np.isnan(fastest_values(group, 3, wall_ns=wall, gc_pause_ns=gc, calls=calls)).all()
    np.testing.assert_array_equal(mean_values(group, 3, total_ns=wall, calls=calls), [np.nan, np.nan, 0.0])
