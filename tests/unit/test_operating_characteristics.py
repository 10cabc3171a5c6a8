"""How often the rule is wrong, in small; ``python -m investigator.stats.simulate`` prints it in full.

The seeds are fixed, so nothing here is left to chance; the limits are far enough from the figures of the long
simulation that another seed would pass as well.
"""

import numpy as np
import pytest

from investigator.stats.simulate import GAP, HARSH, QUIET, Noise, main, one_cell, simulate

CELLS = 150


@pytest.mark.parametrize("noise", [Noise(), QUIET, HARSH], ids=["recorded", "quiet", "harsh"])
def test_nothing_is_flagged_where_nothing_differs(noise: Noise) -> None:
    outcome = simulate(CELLS, noise=noise)
    assert outcome.share("slower", "faster") == 0.0
    assert outcome.share("no_change") > 0.4


def test_a_quiet_machine_decides_nearly_everything() -> None:
    assert simulate(CELLS, noise=QUIET).share("no_change") > 0.95


@pytest.mark.parametrize(("effect", "power"), [(0.05, 0.85), (0.1, 0.95), (0.2, 0.95)])
def test_real_changes_are_found_in_both_directions(effect: float, power: float) -> None:
    slower, faster = simulate(CELLS, effect=effect), simulate(CELLS, effect=1 / (1 + effect) - 1)
    assert slower.share("slower") >= power
    assert faster.share("faster") >= power
    assert slower.share("faster") == faster.share("slower") == 0.0


def test_ten_percent_is_found_at_the_first_look_on_a_quiet_machine() -> None:
    assert simulate(CELLS, effect=0.1, noise=QUIET, looks=(8,)).share("slower") >= 0.98


def test_process_states_make_no_finding() -> None:
    outcome = simulate(2 * CELLS, noise=Noise(state_gap=GAP))
    assert outcome.share("slower", "faster") == 0.0


def test_process_states_of_unequal_frequency_make_hardly_any_finding() -> None:
    """Most candidates slow, most baselines fast: half a percent draws only slow against only fast ones."""
    noise = Noise(state_gap=GAP, slow_baseline=0.2, slow_candidate=0.8)
    assert simulate(2 * CELLS, noise=noise).share("slower", "faster") <= 0.02


def test_process_states_do_not_hide_a_change_of_another_size() -> None:
    assert simulate(CELLS // 2, effect=1.0, noise=Noise(state_gap=GAP)).share("slower") == 1.0


def test_the_plain_mean_of_cpu_time_would_decide_little() -> None:
    robust, mean = simulate(CELLS // 2), simulate(CELLS // 2, mean_cpu=True)
    assert robust.share("no_change") > mean.share("no_change") + 0.4


def test_the_noise_is_like_the_recorded_one() -> None:
    """Ratio of two equal processes by their fastest passes: a standard deviation of 1.8 % was recorded."""
    cell = one_cell(np.random.default_rng(1), 0.0, Noise(wrecked_share=0.0), 4000, 15)
    ratios = np.log(cell.fastest[:, 1] / cell.fastest[:, 2])
    assert 0.016 < ratios.std() < 0.021


def test_the_script_prints_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--cells", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2 cells a line")
    assert sum(line.startswith("| two states") for line in lines) == 2


def test_states_stay_cannot_tell_where_both_versions_run_twice_a_round() -> None:
    noise = Noise(state_gap=GAP, slow_baseline=0.2, slow_candidate=0.8)
    outcome = simulate(CELLS, noise=noise, candidates=2)
    assert outcome.share("slower", "faster") <= 0.02


def test_a_second_process_of_the_candidate_decides_more() -> None:
    one, two = (simulate(CELLS, noise=HARSH, candidates=count, seed=4) for count in (1, 2))
    assert two.share("no_change") > one.share("no_change")
