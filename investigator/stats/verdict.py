"""The rule: two intervals, fixed margins, five verdicts (``invalid`` is given by the checksums, not here)."""

import math
from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np

from investigator.stats.intervals import MIN_ROUNDS, Interval, columns, effects, interval
from investigator.stats.process import FloatArray
from investigator.stats.states import States, two_states

Decision = Literal["slower", "faster", "no_change", "undecided"]
Obstacle = Literal["twin", "states", "passes", "contradiction", "cpu", "noise"]
"""Why more rounds would probably not decide: the baseline differs from itself; processes fall into two
states; the typical lap tells something else than the fastest ones; wall and CPU time contradict each other;
only CPU time changed; too much noise for `MAX_ROUNDS`."""

STATES_SHOW_IN_FASTEST = 0.5
STATES_ROUNDS = 8
STATES_LARGEST = math.log(1.3)
STATES_LUCK = 0.01

MAX_ROUNDS = 64
"""No forecast goes further: an operation that needs more is not worth the time."""


class Margins(msgspec.Struct, frozen=True, kw_only=True):
    """Limits in percent, fixed before the run; noise widens the interval, never the margin."""

    margin_pct: float = 2.0
    """Beyond it lies ``slower`` or ``faster``."""
    equivalence_pct: float = 3.0
    """Inside it lies ``no_change``."""

    @property
    def difference(self) -> float:
        """Margin on the log scale: -2 % is the farther end there, so that +2 % is passed as well.

        With one limit for both sides, exchanging baseline and candidate exchanges the verdicts exactly.
        """
        return -math.log1p(-self.margin_pct / 100.0)

    @property
    def equivalence(self) -> float:
        """Equivalence limit on the log scale: +3 % is the nearer end there, so that -3 % is kept as well."""
        return math.log1p(self.equivalence_pct / 100.0)


class Processes(msgspec.Struct, frozen=True, kw_only=True):
    """Process values of one operation for one pair, one row a round, NaN where a process is missing."""

    candidate_wall: FloatArray
    """Shape (rounds,), or (rounds, processes) where the candidate is measured twice a round as well."""
    baseline_wall: FloatArray
    """Shape (rounds, processes): two columns for a twin-averaged baseline."""
    candidate_cpu: FloatArray
    baseline_cpu: FloatArray
    candidate_fastest: FloatArray
    """Fastest laps: the quiet view in which process states are looked for."""
    baseline_fastest: FloatArray
    candidate_typical: FloatArray
    """Median laps: the witness of what happens in some passes only."""
    baseline_typical: FloatArray


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What the rule says about one pair, on the log scale."""

    wall: Interval
    cpu: Interval
    verdict: Decision
    rounds_needed: int | None
    """For ``undecided``: further rounds that would probably decide; None where `obstacle` says why not."""
    obstacle: Obstacle | None = None
    """What stands in the way of a verdict where no number of rounds is given."""
    warnings: tuple[str, ...]


def judge(processes: Processes, *, margins: Margins, confidence: float, veto: str | None = None) -> Judgement:
    """The verdict on one pair.

    `veto` is a reason from outside (a flagged twin) that forbids any verdict. The steps, first match wins: a
    veto or too few rounds; endpoints that contradict each other; a flag that two process states explain as
    well; a typical lap that tells something else; the intervals against the margins.
    """
    wall_effects = effects(processes.candidate_wall, processes.baseline_wall)
    cpu_effects = effects(processes.candidate_cpu, processes.baseline_cpu)
    wall, cpu = interval(wall_effects, confidence), interval(cpu_effects, confidence)
    verdict = decide(wall, cpu, margins)
    warnings = _warnings(wall, cpu, verdict, margins, confidence)
    final: Decision = verdict
    obstacle: Obstacle | None = None
    if veto is not None:
        final, obstacle, warnings = "undecided", "twin", (veto, *warnings)
    elif verdict in {"slower", "faster"}:
        states = _states(processes, wall.estimate, confidence)
        if states is not None:
            final, obstacle = "undecided", "states"
            text = (
                f"processes of both versions fall into two states {math.expm1(states.gap) * 100:.0f} % apart "
                f"({states.mixed_rounds} of {states.rounds} rounds are mixed): not a shift"
            )
            warnings = (text, *warnings)
    if obstacle is None and (otherwise := _typically(processes, final, margins, confidence)) is not None:
        final, obstacle, warnings = "undecided", "passes", (otherwise, *warnings)
    needed = None
    if final == "undecided" and obstacle is None:
        needed = rounds_needed(wall_effects, cpu_effects, margins=margins, confidence=confidence)
        obstacle = None if needed is not None else _obstacle(wall, cpu, margins)
    return Judgement(
        wall=wall, cpu=cpu, verdict=final, rounds_needed=needed, obstacle=obstacle, warnings=warnings
    )


def _obstacle(wall: Interval, cpu: Interval, margins: Margins) -> Obstacle:
    """What keeps the rule from a verdict however many rounds of this kind there were."""
    if _opposite(wall, cpu):
        return "contradiction"
    if _inside(wall, margins.equivalence) and cpu.bounded and not _inside(cpu, margins.equivalence):
        return "cpu"
    return "noise"


def decide(wall: Interval, cpu: Interval, margins: Margins) -> Decision:
    """The intervals against the margins.

    Wall time alone makes ``slower`` and ``faster``: waiting in the operating system costs no CPU time, so CPU
    need not agree, it must only not contradict (exclude zero on the other side). CPU alone makes neither:
    more work on helper threads at equal wall time is ``undecided``, with a warning. ``no_change`` needs both.
    """
    if not wall.bounded or _opposite(wall, cpu):
        return "undecided"
    if wall.low > margins.difference:
        return "slower"
    if wall.high < -margins.difference:
        return "faster"
    if _inside(wall, margins.equivalence) and _inside(cpu, margins.equivalence):
        return "no_change"
    return "undecided"


def _states(processes: Processes, effect: float, confidence: float) -> States | None:
    """Process states that explain `effect` as well as a shift between the versions would.

    States of processes show in every pass, so they are looked for in the fastest passes. An effect that those
    show by less than half (collections, for instance, fall into some passes only) is looked at as it is.

    Where no process of one version ever came near those of the other, no state is shared and nothing is
    vetoed: passes of one process that differ among themselves (collections of external memory: 100 kB blobs,
    +100 %, 14 to 17 us against 26 to 39) must not be taken for states of processes. States further apart than
    any seen in practice count only where luck could have dealt them so: one process of 24 that a busy machine
    halves must not hide that all others are twice as slow.
    """
    if _apart(processes, effect):
        return None
    quiet = interval(effects(processes.candidate_fastest, processes.baseline_fastest), confidence).estimate
    if quiet / effect >= STATES_SHOW_IN_FASTEST:
        states = two_states(processes.candidate_fastest, processes.baseline_fastest, quiet)
    else:
        states = two_states(processes.candidate_wall, processes.baseline_wall, effect)
    if states is not None and states.gap > STATES_LARGEST and states.luck < STATES_LUCK:
        return None
    return states


def _typically(processes: Processes, verdict: Decision, margins: Margins, confidence: float) -> str | None:
    """What the median passes say against `verdict`, which rests on the fastest ones; None where nothing.

    They must be sure of it themselves, beyond the margin: on a busy machine they are sure of little, and
    then forbid nothing.
    """
    if verdict == "undecided":
        return None
    typical = interval(effects(processes.candidate_typical, processes.baseline_typical), confidence)
    slower, faster = typical.low > margins.difference, typical.high < -margins.difference
    if (slower and verdict != "slower") or (faster and verdict != "faster"):
        low, middle, high = (math.expm1(v) * 100 for v in (typical.low, typical.estimate, typical.high))
        return (
            f"the median lap changed by {middle:+.1f} % ({low:+.1f} to {high:+.1f}), the fastest ones did "
            "not change so: the versions differ in some of the laps only"
        )
    return None


def _apart(processes: Processes, effect: float) -> bool:
    """Whether all processes of one version lie beyond all of the other, too often to be luck.

    States with odds of 1 to 4 all fall this way in 0.5 % of 8 rounds; with fewer rounds luck is likelier, so
    the effect must also be larger than the states seen in practice (26 % apart at most).
    """
    sign = math.copysign(1.0, effect)
    candidate, baseline = sign * processes.candidate_wall, sign * processes.baseline_wall
    if not np.isfinite(candidate).any() or not np.isfinite(baseline).any():
        return False
    rounds = int(np.isfinite(columns(candidate)).any(axis=1).sum())
    return bool(np.nanmin(candidate) > np.nanmax(baseline)) and (
        rounds >= STATES_ROUNDS or abs(effect) > STATES_LARGEST
    )


def rounds_needed(
    wall_effects: FloatArray, cpu_effects: FloatArray, *, margins: Margins, confidence: float
) -> int | None:
    """Further rounds after which the rule would probably decide, up to `MAX_ROUNDS` in all; else None.

    The rule itself is run on more rounds of the same distribution: N evenly spaced quantiles of the effects
    seen. An outlying round weighs there as it will in the real interval: much among 8, little among 16.
    """
    rounds = len(wall_effects)
    if rounds == 0 or len(cpu_effects) == 0:
        return None

    def decided(total: int) -> bool:
        shares = (np.arange(total) + 0.5) / total
        wall = interval(np.quantile(wall_effects, shares), confidence)
        cpu = interval(np.quantile(cpu_effects, shares), confidence)
        return decide(wall, cpu, margins) != "undecided"

    total = _first(decided, max(rounds + 1, MIN_ROUNDS), MAX_ROUNDS)
    return None if total is None else total - rounds


def _first(accepts: Callable[[int], bool], low: int, high: int) -> int | None:
    """Smallest number from `low` to `high` that `accepts`, given that all after it do too."""
    if low > high or not accepts(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if accepts(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _inside(value: Interval, limit: float) -> bool:
    return value.bounded and -limit < value.low and value.high < limit


def _opposite(wall: Interval, cpu: Interval) -> bool:
    return (wall.low > 0.0 and cpu.high < 0.0) or (wall.high < 0.0 and cpu.low > 0.0)


def _warnings(
    wall: Interval, cpu: Interval, verdict: Decision, margins: Margins, confidence: float
) -> tuple[str, ...]:
    if not wall.bounded:
        counted = f"{wall.rounds} round{'' if wall.rounds == 1 else 's'}"
        return (f"only {counted}, an interval needs at least {MIN_ROUNDS} (--rounds)",)
    found: list[str] = []
    if wall.confidence < confidence - 1e-9:
        found.append(
            f"{wall.rounds} rounds give {wall.confidence * 100:.1f} % confidence at most, "
            f"less than the {confidence * 100:.1f} % of the rule"
        )
    if _opposite(wall, cpu):
        found.append("wall time and CPU time point in opposite directions")
    elif verdict == "undecided" and cpu.low > max(margins.difference, wall.high):
        extra = math.expm1(cpu.estimate - wall.estimate) * 100.0
        found.append(f"uses {extra:.0f} % more CPU on other threads")
    elif verdict in {"slower", "faster"} and _inside(cpu, margins.equivalence):
        found.append("CPU time is unchanged: the difference is time spent waiting")
    return tuple(found)
