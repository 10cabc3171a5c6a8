"""How often a bisection names the wrong release: ``python -m investigator.stats.simulate_bisection``.

Synthetic histories of 8 to 80 releases with a step of known size and place, the noise of `simulate`
(processes, passes, bursts), releases whose code lies otherwise (a level of their own, 1.5 % standard
deviation: two builds of equal code differ by 1 to 4 %), releases that cannot be built (in 30 % of the
histories one of ten, or a whole stretch), and in 25 % a second step, up or half way down again.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from investigator.stats.bisection import Bisection, Levels, Look, bisect
from investigator.stats.process import FloatArray
from investigator.stats.simulate import Noise, wall_logs

SIZES: Final = (3, 5, 7, 10, 15, 20, 30, 50, 100)
"""Percent."""
PASSES: Final = 4
RELEASE_SD: Final = 0.015
SKIPS: Final = 0.3
"""Histories with releases that cannot be measured."""
TWO_STEPS: Final = 0.25
SURELY: Final = 10
"""Percent from which the wrong release is an error of the method, not of the machine."""


class History(msgspec.Struct, frozen=True, kw_only=True):
    """What is true."""

    levels: FloatArray
    """Log of the time of each release."""
    places: tuple[int, ...]
    """First release after each step."""
    skipped: frozenset[int]
    size_pct: float
    """Of the first step."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one bisection ended."""

    size_pct: float
    releases: int
    steps: int
    two_steps: bool
    named: bool
    right: bool
    """The named release has a step; or the range that is given instead holds one."""
    second: bool
    """Of two steps: whether the other one was told as well."""
    invented: bool
    """Whether a further release was named that has no step."""


def history(rng: np.random.Generator, size_pct: float) -> History:
    """Draw a history of releases."""
    count = int(rng.integers(8, 81))
    step = math.log1p(size_pct / 100.0)
    place = int(rng.integers(1, count))
    levels = rng.normal(0.0, RELEASE_SD, count)
    levels[place:] += step
    places = [place]
    if rng.random() < TWO_STEPS and place < count - 2:
        second = int(rng.integers(place + 1, count))
        levels[second:] += -step / 2.0 if rng.random() < 0.5 else step
        places.append(second)
    return History(levels=levels, places=tuple(places), skipped=_unbuildable(rng, count), size_pct=size_pct)


def _unbuildable(rng: np.random.Generator, count: int) -> frozenset[int]:
    if rng.random() >= SKIPS:
        return frozenset()
    if rng.random() < 0.5:
        return frozenset((1 + np.flatnonzero(rng.random(count - 2) < 0.1)).tolist())
    start = int(rng.integers(1, count - 1))
    return frozenset(range(start, min(count - 1, start + max(1, count // 6))))


def run(rng: np.random.Generator, truth: History, noise: Noise, passes: int = PASSES) -> Bisection:
    """Bisect one history on simulated processes."""
    drawn: dict[int, FloatArray] = {}

    def measure(look: Look) -> Levels:
        there = [i for i in look.targets if i not in truth.skipped]
        if look.targets and not there:
            return {}
        arms = [*look.ends, *there]
        before = drawn.get(look.step, np.empty((0, len(arms))))
        levels = np.broadcast_to(truth.levels[arms], (look.rounds - len(before), len(arms)))
        drawn[look.step] = np.vstack([before, wall_logs(rng, levels, noise, passes)])
        return {arm: drawn[look.step][:, column] for column, arm in enumerate(arms)}

    return bisect(len(truth.levels), measure)


def judge(truth: History, found: Bisection) -> Outcome:
    """Compare what was found with what is true."""
    first = found.changes[0] if found.changes else None
    told = [change for change in found.changes if any(change.last < p <= change.first for p in truth.places)]
    named = first is not None and first.named
    right = first is None or any(first.last < place <= first.first for place in truth.places)
    return Outcome(
        size_pct=truth.size_pct,
        releases=len(truth.levels),
        steps=len(found.steps),
        two_steps=len(truth.places) > 1,
        named=named,
        right=right,
        second=all(any(change.last < p <= change.first for change in told) for p in truth.places),
        invented=any(change.named and change not in told for change in found.changes[1:]),
    )


def simulate(
    histories: int, *, seed: int = 1, noise: Noise | None = None, sizes: Sequence[float] = SIZES
) -> tuple[Outcome, ...]:
    """Bisect so many histories, the sizes in turn."""
    outcomes = []
    for number in range(histories):
        rng = np.random.default_rng([seed, number])
        truth = history(rng, sizes[number % len(sizes)])
        outcomes.append(judge(truth, run(rng, truth, noise or Noise())))
    return tuple(outcomes)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Outcomes of one kind, shares from 0 to 1."""

    histories: int
    named: float
    """A release was named, and it was the right one."""
    wrong: float
    """A release was named that has no step."""
    narrowed: float
    """Only a range was given, and it holds a step."""
    misled: float
    """Only a range was given, and it holds none."""
    extra_steps: float
    """Mean of steps beyond log2 of the releases, in histories with one step; the verification counts."""
    second: float
    """Of histories with two steps: both were told."""
    invented: float
    """A further release was named that has no step."""


def summary(outcomes: Sequence[Outcome]) -> Summary:
    """Count outcomes."""
    count = max(len(outcomes), 1)
    single = [o.steps - math.log2(o.releases) for o in outcomes if not o.two_steps]
    double = [o.second for o in outcomes if o.two_steps]
    return Summary(
        histories=len(outcomes),
        named=sum(o.named and o.right for o in outcomes) / count,
        wrong=sum(o.named and not o.right for o in outcomes) / count,
        narrowed=sum(not o.named and o.right for o in outcomes) / count,
        misled=sum(not o.named and not o.right for o in outcomes) / count,
        extra_steps=float(np.mean(single)) if single else math.nan,
        second=float(np.mean(double)) if double else math.nan,
        invented=sum(o.invented for o in outcomes) / count,
    )


def main(arguments: list[str] | None = None) -> None:
    """Print the table of the README."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    outcomes = simulate(chosen.histories, seed=chosen.seed)
    out = sys.stdout.write
    out(
        "| step | histories | right release | wrong release | right range only | wrong range | "
        "further wrong one | steps beyond log2 | both of two steps |\n|---|---|---|---|---|---|---|---|---|\n"
    )
    groups = [(f"{size} %", [o for o in outcomes if o.size_pct == size]) for size in SIZES]
    groups.append((f"{SURELY} % and more", [o for o in outcomes if o.size_pct >= SURELY]))
    for name, group in groups:
        if group:
            found = summary(group)
            shares = (found.named, found.wrong, found.narrowed, found.misled, found.invented)
            cells = " | ".join(f"{share * 100:.1f} %" for share in shares)
            both = f"{found.second * 100:.0f} %"
            out(f"| {name} | {found.histories} | {cells} | {found.extra_steps:+.2f} | {both} |\n")


if __name__ == "__main__":
    main()
