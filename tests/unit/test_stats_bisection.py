"""The search on simulated releases: finds steps, never guesses, copes with skips and several steps."""

import math

import numpy as np
import pytest

from investigator.stats.bisection import (
    MOST_EVIDENCE,
    SEARCH_LOOKS,
    VERIFY_LOOKS,
    Bisection,
    Levels,
    Look,
    Step,
    bisect,
    posterior,
    read,
    usual_most_steps,
)
from investigator.stats.process import FloatArray
from investigator.stats.simulate_bisection import SURELY, simulate, summary

CONFIDENCE = 0.98


class Machine:
    """Releases of known levels, measured with noise; `skipped` cannot be measured."""

    def __init__(
        self, levels: list[float], *, noise: float = 0.005, skipped: tuple[int, ...] = (), seed: int = 1
    ) -> None:
        self.levels, self.noise, self.skipped = levels, noise, skipped
        self.rng = np.random.default_rng(seed)
        self.looks: list[Look] = []
        self.drawn: dict[int, dict[int, FloatArray]] = {}

    def __call__(self, look: Look) -> Levels:
        self.looks.append(look)
        there = [i for i in look.targets if i not in self.skipped]
        if look.targets and not there:
            return {}
        drawn = self.drawn.setdefault(look.step, {})
        for arm in (*look.ends, *there):
            before = drawn.get(arm, np.empty(0))
            fresh = self.levels[arm] + self.rng.normal(0.0, self.noise, look.rounds - len(before))
            drawn[arm] = np.concatenate([before, fresh])
        return {arm: drawn[arm] for arm in (*look.ends, *there)}


def steps_at(count: int, *places: tuple[int, float]) -> list[float]:
    """Levels of `count` releases with steps of so many percent at the places."""
    return [sum(math.log1p(pct / 100.0) for place, pct in places if place <= i) for i in range(count)]


def found(machine: Machine, *, most_steps: int | None = None, direction: int = 0) -> Bisection:
    return bisect(len(machine.levels), machine, most_steps=most_steps, direction=direction)


@pytest.mark.parametrize("place", [1, 2, 17, 31, 50, 51])
def test_the_step_is_found_wherever_it_is(place: int) -> None:
    machine = Machine(steps_at(52, (place, 30.0)))
    outcome = found(machine)
    (change,) = outcome.changes
    assert (change.last, change.first, change.named) == (place - 1, place, True)
    assert change.effect is not None
    assert change.effect.low < math.log(1.3) < change.effect.high
    assert len(outcome.steps) <= 8
    assert outcome.steps[-1].purpose == "verify"
    assert outcome.steps[-1].rounds == VERIFY_LOOKS[0] == 2 * SEARCH_LOOKS[0]


def test_a_step_down_is_found_as_well() -> None:
    (change,) = found(Machine(steps_at(20, (7, -40.0)))).changes
    assert (change.first, change.named) == (7, True)


def test_both_neighbours_are_verified_together() -> None:
    outcome = found(Machine(steps_at(20, (7, 30.0))))
    assert set(outcome.steps[-1].readings) == {6, 7}


def test_ends_that_do_not_differ_end_the_search() -> None:
    machine = Machine(steps_at(20))
    outcome = found(machine)
    assert outcome.changes == ()
    assert len(outcome.steps) == 1
    assert max(look.rounds for look in machine.looks) == SEARCH_LOOKS[-1]


def test_a_change_the_other_way_ends_the_search_at_the_first_look() -> None:
    machine = Machine(steps_at(20, (7, -40.0)))
    assert found(machine, direction=1).changes == ()
    assert [look.rounds for look in machine.looks] == [SEARCH_LOOKS[0]]
    assert found(Machine(steps_at(20, (7, -40.0))), direction=-1).changes[0].first == 7


def test_a_skipped_neighbour_leaves_a_range() -> None:
    outcome = found(Machine(steps_at(20, (7, 30.0)), skipped=(7,)))
    (change,) = outcome.changes
    assert (change.last, change.first, change.named) == (6, 8, False)
    assert "cannot be measured" in change.reason
    assert outcome.skipped == (7,)


def test_skips_far_from_the_step_do_not_matter() -> None:
    outcome = found(Machine(steps_at(40, (7, 30.0)), skipped=tuple(range(15, 25))))
    assert (outcome.changes[0].first, outcome.changes[0].named) == (7, True)


def test_after_skips_in_a_row_the_search_goes_farther_away() -> None:
    machine = Machine(steps_at(60, (3, 30.0)), skipped=tuple(range(20, 40)))
    found(machine)
    asked = [look.targets[0] for look in machine.looks if look.targets and look.targets[0] in machine.skipped]
    assert len(set(asked)) <= 6


def test_bad_and_then_half_fixed_is_told_as_two_changes() -> None:
    outcome = found(Machine(steps_at(40, (9, 60.0), (28, -25.0))))
    assert [(c.first, c.named) for c in outcome.changes] == [(9, True), (28, True)]


def test_two_equal_steps_are_both_told() -> None:
    outcome = found(Machine(steps_at(40, (9, 40.0), (28, 40.0))))
    assert sorted(c.first for c in outcome.changes) == [9, 28]
    assert all(c.named for c in outcome.changes)
    assert any(
        step.readings.get(i) and step.readings[i].side == "between"
        for step in outcome.steps
        for i in (19, 20)
    )


def test_noise_gets_more_rounds_and_never_a_guess() -> None:
    machine = Machine(steps_at(20, (7, 6.0)), noise=0.05)
    outcome = found(machine)
    assert any(look.rounds == SEARCH_LOOKS[-1] for look in machine.looks)
    for change in outcome.changes:
        assert not change.named or change.first == 7
        assert change.last < 7 <= change.first


def test_a_limit_of_steps_is_kept_and_said() -> None:
    outcome = found(Machine(steps_at(200, (70, 30.0))), most_steps=3)
    assert len(outcome.steps) == 3
    assert not outcome.changes[0].named
    assert "--max-steps" in outcome.changes[0].reason
    assert outcome.changes[0].last < 70 <= outcome.changes[0].first


def test_two_releases_need_no_candidate() -> None:
    outcome = found(Machine(steps_at(2, (1, 30.0))))
    assert (outcome.changes[0].first, outcome.changes[0].named) == (1, True)
    assert [step.purpose for step in outcome.steps] == ["verify"]


def test_each_step_is_told() -> None:
    told: list[tuple[Step, tuple[int, int], int]] = []
    machine = Machine(steps_at(20, (7, 30.0)))
    outcome = bisect(20, machine, tell=lambda *what: told.append(what))
    assert [step for step, _, _ in told] == list(outcome.steps)
    assert told[-1][1] == (6, 7)
    assert told[-1][2] == 0


def test_the_middle_between_two_levels_is_neither_end() -> None:
    rng = np.random.default_rng(1)
    old, new = rng.normal(0.0, 0.01, 14), rng.normal(0.7, 0.01, 14)
    sides = [
        read(old, new, rng.normal(level, 0.01, 14), CONFIDENCE).side
        for level in (0.0, 0.1, 0.35, 0.6, 0.7, 1.4)
    ]
    assert sides == ["old", "old", "between", "new", "new", "new"]


def test_a_middle_that_code_placement_explains_is_undecided() -> None:
    rng = np.random.default_rng(1)
    noise = [rng.normal(0.0, 0.002, 28) for _ in range(3)]
    assert read(noise[0], noise[1] + 0.06, noise[2] + 0.03, CONFIDENCE).side == "undecided"


def test_too_few_rounds_decide_nothing() -> None:
    old, new = np.zeros(4), np.ones(4)
    reading = read(old, new, new, CONFIDENCE)
    assert reading.side == "undecided"
    assert math.isinf(reading.error)
    assert reading.evidence == 0.0


def test_rounds_without_any_value_say_nothing() -> None:
    reading = read(np.zeros(8), np.ones(8), np.full(8, np.nan), CONFIDENCE)
    assert (reading.side, reading.evidence) == ("undecided", 0.0)


def test_missing_rounds_are_left_out() -> None:
    old, new, target = np.zeros(9), np.ones(9), np.ones(9)
    target[2] = np.nan
    reading = read(old, new, target, CONFIDENCE)
    assert (reading.side, reading.change.rounds) == ("new", 8)


def test_evidence_is_bounded() -> None:
    reading = read(np.zeros(9), np.ones(9), np.ones(9), CONFIDENCE)
    assert reading.evidence == MOST_EVIDENCE


def test_posterior_of_nothing_is_uniform() -> None:
    assert posterior({}, 0, 10) == pytest.approx(np.full(10, 0.1))


def test_posterior_moves_to_the_side_of_the_evidence() -> None:
    # Release 5 is new: the step is at 5 or before.
    weights = posterior({5: math.log(9.0)}, 0, 10)
    assert weights[:5].sum() == pytest.approx(0.9)
    assert posterior({5: -math.log(9.0)}, 0, 10)[:5].sum() == pytest.approx(0.1)


def test_usual_limit_grows_with_the_logarithm() -> None:
    assert usual_most_steps(1024) - usual_most_steps(64) == 4


def test_how_often_it_is_wrong() -> None:
    """A smaller version of ``python -m investigator.stats.simulate_bisection``, the table of the README."""
    outcomes = simulate(60, seed=3, sizes=(3, 10, 15, 30, 100))
    surely = summary([o for o in outcomes if o.size_pct >= SURELY])
    assert surely.wrong == 0.0
    assert surely.misled <= 0.05
    assert surely.named >= 0.8
    assert surely.extra_steps <= 1.5
    small = summary([o for o in outcomes if o.size_pct < SURELY])
    assert small.wrong == 0.0
    assert small.narrowed >= 0.8
