"""How often the rule is wrong, on noise like the recorded one: ``python -m investigator.stats.simulate``.

The noise: every round drifts as a whole; every process has an offset of its own (1.25 %, so that the ratio of
two processes by their fastest passes scatters by 1.8 %, as recorded); passes scatter a little; bursts of +20
to +100 % hit 7 % of the passes, a burst going on to the next pass with 44 %; one process of 200 is hit from
end to end. Half of the bursts take the processor away (wall time only), half slow it down (CPU time as well).
The rule looks after 8 rounds and, where it cannot decide, again after 16, at 97.5 % each.
"""

import argparse
import sys
from collections import Counter

import msgspec
import numpy as np

from investigator.stats.intervals import confidence_per_look
from investigator.stats.process import (
    FloatArray,
    cpu_values,
    fastest_values,
    mean_cpu_values,
    process_values,
    typical_values,
)
from investigator.stats.verdict import Margins, Processes, judge

CALL_NS = 1000.0
CALLS = 40_000


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """What disturbs a measurement; standard deviations on the log scale."""

    round_sd: float = 0.03
    process_sd: float = 0.0125
    pass_sd: float = 0.01
    burst_share: float = 0.07
    burst_goes_on: float = 0.44
    wrecked_share: float = 0.005
    """Processes that lie in a long burst: four of five passes are hit."""
    burst_low: float = 0.2
    burst_high: float = 1.0
    helper_share: float = 0.02
    """CPU time of helper threads over wall time, spent in one pass of two."""
    state_gap: float = 0.0
    """Distance of two process states; 0 for none."""
    slow_baseline: float = 0.5
    """Probability that a process of the baseline is in the slow state."""
    slow_candidate: float = 0.5


class Outcomes(msgspec.Struct, frozen=True, kw_only=True):
    """Verdicts of many simulated cells."""

    cells: int
    counts: dict[str, int]
    rounds: float
    """Mean number of rounds used."""

    def share(self, *verdicts: str) -> float:
        """Share of cells that ended with one of `verdicts`."""
        return sum(self.counts.get(verdict, 0) for verdict in verdicts) / self.cells


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """Process values, each of shape (rounds, 3 or 4): baseline, its twin, and the candidate's one or two."""

    wall: FloatArray
    cpu: FloatArray
    fastest: FloatArray
    typical: FloatArray

    def pair(self, rounds: int, candidate: slice, baseline: slice) -> Processes:
        """The first `rounds` rounds of some columns against others."""
        return Processes(
            candidate_wall=self.wall[:rounds, candidate],
            baseline_wall=self.wall[:rounds, baseline],
            candidate_cpu=self.cpu[:rounds, candidate],
            baseline_cpu=self.cpu[:rounds, baseline],
            candidate_fastest=self.fastest[:rounds, candidate],
            baseline_fastest=self.fastest[:rounds, baseline],
            candidate_typical=self.typical[:rounds, candidate],
            baseline_typical=self.typical[:rounds, baseline],
        )


def simulate(
    cells: int,
    *,
    effect: float = 0.0,
    noise: Noise | None = None,
    looks: tuple[int, ...] = (8, 16),
    passes: int = 4,
    seed: int = 1,
    margins: Margins | None = None,
    mean_cpu: bool = False,
    candidates: int = 1,
) -> Outcomes:
    """Judge `cells` simulated cells whose candidate is slower by `effect` (0.05 for 5 %).

    `candidates` processes of the candidate run in each round: 2 in a run of two versions.
    """
    rng = np.random.default_rng(seed)
    noise, margins = noise or Noise(), margins or Margins()
    counts: Counter[str] = Counter()
    used = 0
    for _ in range(cells):
        cell = one_cell(rng, effect, noise, max(looks), passes, mean_cpu=mean_cpu, candidates=candidates)
        verdict, rounds = _run_looks(cell, margins, looks)
        counts[verdict] += 1
        used += rounds
    return Outcomes(cells=cells, counts=dict(counts), rounds=used / cells)


def one_cell(
    rng: np.random.Generator,
    effect: float,
    noise: Noise,
    rounds: int,
    passes: int,
    *,
    mean_cpu: bool = False,
    candidates: int = 1,
) -> Cell:
    """Process values of one cell in `rounds` rounds."""
    shape = (rounds, 2 + candidates)
    is_candidate = np.arange(shape[1]) >= 2
    slow = rng.random(shape) < np.where(is_candidate, noise.slow_candidate, noise.slow_baseline)
    level = (
        rng.normal(0.0, noise.round_sd, (rounds, 1))
        + rng.normal(0.0, noise.process_sd, shape)
        + noise.state_gap * slow
        + np.log1p(effect) * is_candidate
    )
    clean = CALL_NS * CALLS * np.exp(level[..., None] + rng.normal(0.0, noise.pass_sd, (*shape, passes)))
    burst = _bursts(rng, noise, (*shape, passes))
    slows_processor = rng.random(burst.shape) < 0.5
    wall = clean * (1.0 + burst)
    main_cpu = np.where(slows_processor, wall, clean)
    helpers = wall * noise.helper_share * 2.0 * (rng.random(burst.shape) < 0.5)
    return _reduce(wall, main_cpu + helpers, mean_cpu=mean_cpu)


def wall_logs(rng: np.random.Generator, levels: FloatArray, noise: Noise, passes: int) -> FloatArray:
    """Log process values, one process an arm and round; `levels` (rounds, arms) are the true logs."""
    drift = rng.normal(0.0, noise.round_sd, (len(levels), 1))
    disturbed = levels + drift + rng.normal(0.0, noise.process_sd, levels.shape)
    shape = (*levels.shape, passes)
    wall = CALL_NS * CALLS * np.exp(disturbed[..., None] + rng.normal(0.0, noise.pass_sd, shape))
    wall *= 1.0 + _bursts(rng, noise, shape)
    groups = levels.size
    group = np.repeat(np.arange(groups), passes)
    flat = wall.ravel()
    calls, none = np.full(group.shape, float(CALLS)), np.zeros(group.shape)
    values = process_values(group, groups, wall_ns=flat, gc_pause_ns=none, calls=calls)
    return np.asarray(np.log(values).reshape(levels.shape), dtype=np.float64)


def _reduce(wall: FloatArray, cpu: FloatArray, *, mean_cpu: bool) -> Cell:
    shape, passes = wall.shape[:-1], wall.shape[-1]
    groups = int(np.prod(shape))
    group = np.repeat(np.arange(groups), passes)
    flat_wall, flat_cpu = wall.ravel(), cpu.ravel()
    calls, none = np.full(group.shape, float(CALLS)), np.zeros(group.shape)
    if mean_cpu:
        cpu_table = mean_cpu_values(group, groups, cpu_ns=flat_cpu, calls=calls)
    else:
        cpu_table = cpu_values(
            group, groups, wall_ns=flat_wall, cpu_ns=flat_cpu, gc_pause_ns=none, calls=calls
        )
    wall_table = process_values(group, groups, wall_ns=flat_wall, gc_pause_ns=none, calls=calls)
    fastest = fastest_values(group, groups, wall_ns=flat_wall, gc_pause_ns=none, calls=calls)
    typical = typical_values(group, groups, wall_ns=flat_wall, gc_pause_ns=none, calls=calls)
    return Cell(
        wall=wall_table.reshape(shape),
        cpu=cpu_table.reshape(shape),
        fastest=fastest.reshape(shape),
        typical=typical.reshape(shape),
    )


def _bursts(rng: np.random.Generator, noise: Noise, shape: tuple[int, ...]) -> FloatArray:
    """Relative extra time of each pass, 0 for most; a Markov chain along the last axis."""
    starts = noise.burst_share * (1.0 - noise.burst_goes_on) / (1.0 - noise.burst_share)
    draw = rng.random(shape)
    hit = np.zeros(shape, dtype=bool)
    hit[..., 0] = draw[..., 0] < noise.burst_share
    for index in range(1, shape[-1]):
        hit[..., index] = draw[..., index] < np.where(hit[..., index - 1], noise.burst_goes_on, starts)
    wrecked = rng.random((*shape[:-1], 1)) < noise.wrecked_share
    hit |= wrecked & (rng.random(shape) < 0.8)
    return np.where(hit, rng.uniform(noise.burst_low, noise.burst_high, shape), 0.0)


def _run_looks(cell: Cell, margins: Margins, looks: tuple[int, ...]) -> tuple[str, int]:
    confidence = confidence_per_look(len(looks))
    verdict = "undecided"
    for rounds in looks:
        twin = judge(cell.pair(rounds, slice(1, 2), slice(0, 1)), margins=margins, confidence=confidence)
        veto = "the twin is flagged" if twin.verdict in {"slower", "faster"} else None
        pair = cell.pair(rounds, slice(2, None), slice(0, 2))
        verdict = judge(pair, margins=margins, confidence=confidence, veto=veto).verdict
        if verdict != "undecided":
            return verdict, rounds
    return verdict, looks[-1]


VERDICTS = ("slower", "faster", "no_change", "undecided")
RECORDED = Noise()
QUIET = Noise(round_sd=0.01, process_sd=0.008, pass_sd=0.005, burst_share=0.01, wrecked_share=0.0)
HARSH = Noise(process_sd=0.018, wrecked_share=0.02)
GAP = float(np.log(1.1))
CASES = (
    ("no change", 0.0, RECORDED, False),
    ("no change, quiet machine", 0.0, QUIET, False),
    ("no change, harsh machine", 0.0, HARSH, False),
    ("no change, plain mean as CPU endpoint", 0.0, RECORDED, True),
    ("3 % slower", 0.03, RECORDED, False),
    ("5 % slower", 0.05, RECORDED, False),
    ("5 % slower, quiet machine", 0.05, QUIET, False),
    ("5 % slower, harsh machine", 0.05, HARSH, False),
    ("10 % slower", 0.1, RECORDED, False),
    ("10 % slower, harsh machine", 0.1, HARSH, False),
    ("10 % faster", -0.1, RECORDED, False),
    ("two states 10 % apart, half and half", 0.0, Noise(state_gap=GAP), False),
    (
        "two states 10 % apart, 20 % slow against 80 % slow",
        0.0,
        Noise(state_gap=GAP, slow_baseline=0.2, slow_candidate=0.8),
        False,
    ),
    ("twice as slow and two states 10 % apart", 1.0, Noise(state_gap=GAP), False),
)


def main(arguments: list[str] | None = None) -> None:
    """Print the table of the README."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--cells", type=int, default=2000, help="simulated cells per line")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--candidates", type=int, default=1, choices=(1, 2), help="processes a round")
    chosen = parser.parse_args(arguments)
    out = sys.stdout.write
    out(f"{chosen.cells} cells a line, 8 then 16 rounds of 4 passes at 97.5 % each\n\n")
    out("| case | slower | faster | no_change | undecided | mean rounds |\n|---|---|---|---|---|---|\n")
    for name, effect, noise, mean_cpu in CASES:
        result = simulate(
            chosen.cells,
            effect=effect,
            noise=noise,
            mean_cpu=mean_cpu,
            seed=chosen.seed,
            candidates=chosen.candidates,
        )
        shares = (f"{result.share(verdict) * 100:.2f} %" for verdict in VERDICTS)
        out(f"| {name} | {' | '.join(shares)} | {result.rounds:.1f} |\n")


if __name__ == "__main__":
    main()
