"""What was found against what was planted: pure functions over verdicts and attributions."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from investigator.analysis import Analysis, Verdict
from investigator.attribution.layers import Attribution, Named
from investigator.selftest.places import NOTHING, PLACES, Place
from investigator.selftest.trials import Trial

SIZE_TOLERANCE = 0.2
"""A measured size is right when it lies within a fifth of the planted one."""

LayerOutcome = Literal["right", "wrong", "unknown", "not_explained"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one trial."""

    screen: int
    """Number of the screen it was measured in."""
    trial: Trial
    planted_layer: str | None
    verdict: Verdict
    """Of the screen."""
    finding: bool
    """Whether the screen made a finding of it, which is what is explained."""
    rounds: int
    screen_pct: float | None
    """Change in time per operation in percent; None where nothing could be compared."""
    ci_low_pct: float | None
    ci_high_pct: float | None
    named: Named | None
    """The layer that was named, ``mixed`` or ``unknown``; None where nothing was explained."""
    explained_pct: float | None
    """The published change, of the explain rounds."""
    withdrawn: bool
    """Whether the explain rounds took the flag back."""
    reason: str
    """The sentence of the attribution, or why there is no comparison."""
    elapsed_s: float
    """This trial's part of its screen, without explanation."""

    @property
    def detected(self) -> bool:
        """Whether a change is shown: a flag, and not taken back."""
        return self.verdict in {"slower", "faster"} and not self.withdrawn

    @property
    def measured_pct(self) -> float | None:
        """The published figure: of the explain rounds where there are any, else of the screen."""
        return self.screen_pct if self.explained_pct is None else self.explained_pct

    @property
    def size_ratio(self) -> float | None:
        """Measured over planted size; None where no size was chosen."""
        size, measured = self.trial.size_pct, self.measured_pct
        return None if size is None or measured is None else measured / size

    @property
    def size_right(self) -> bool | None:
        """Whether the measured size lies within a fifth of the planted one; None without a planted size."""
        ratio = self.size_ratio
        return None if ratio is None else abs(ratio - 1.0) <= SIZE_TOLERANCE

    @property
    def layer_outcome(self) -> LayerOutcome:
        """How the layer was judged. Of a planted nothing any named layer is wrong."""
        if self.named is None or self.withdrawn:
            return "not_explained"
        if self.named in {"mixed", "unknown"}:
            return "unknown"
        return "right" if self.named == self.planted_layer else "wrong"


def place_of(trial: Trial) -> Place:
    """The place of a trial."""
    return next(place for place in (*PLACES, NOTHING) if place.name == trial.place)


def judge(
    screen: int,
    trial: Trial,
    candidate: str,
    analysis: Analysis,
    attributions: Sequence[Attribution],
    *,
    elapsed_s: float = 0.0,
) -> Outcome:
    """Compare one trial with what its screen and, where there is one, its explanation say.

    Args:
        screen: number of its screen.
        trial: what was planted.
        candidate: identifier of its environment.
        analysis: of the screen.
        attributions: of the screen's findings; others are passed over.
        elapsed_s: what the trial cost.
    """
    found = analysis.pair(trial.op, candidate)
    told = next((a for a in attributions if (a.op, a.candidate) == (trial.op, candidate)), None)
    failed = next((f.reason for f in analysis.failures if f.environment == candidate), "")
    planted = place_of(trial).layer
    if found is None or found.verdict == "invalid":
        return Outcome(
            screen=screen,
            trial=trial,
            planted_layer=planted,
            verdict="invalid",
            finding=False,
            rounds=0,
            screen_pct=None,
            ci_low_pct=None,
            ci_high_pct=None,
            named=None,
            explained_pct=None,
            withdrawn=False,
            reason=failed or "it was not measured",
            elapsed_s=elapsed_s,
        )
    return Outcome(
        screen=screen,
        trial=trial,
        planted_layer=planted,
        verdict=found.verdict,
        finding=found.finding,
        rounds=found.rounds,
        screen_pct=found.wall.change_pct,
        ci_low_pct=found.wall.ci_low_pct,
        ci_high_pct=found.wall.ci_high_pct,
        named=None if told is None else told.layer,
        explained_pct=None if told is None or told.rounds == 0 else told.change_pct,
        withdrawn=told is not None and not told.recurred and told.rounds > 0,
        reason="" if told is None else told.reason,
        elapsed_s=elapsed_s,
    )
