"""What `investigate validate` answers: validation.json, and `validation` in summary.json.

Percentages of change are changes in time per operation: +50 means half as slow again. Recovered is a share
of the loss in percent, on the log scale: 100 is all of it, 0 nothing, below 0 it grew, above 100 the fix is
faster than the baseline. A value that does not exist is null.
"""

from typing import Literal

import msgspec

from investigator.analysis import Verdict
from investigator.spec import FixKind

VALIDATION_SCHEMA = 1

Outcome = Literal["pass", "fail", "invalid", "cannot_tell"]
OtherOutcome = Literal["ok", "slower", "below_floor", "undecided", "invalid", "failed", "not_measured"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change in time per operation in percent, with its interval; null where there is none."""

    change_pct: float | None
    ci_low_pct: float | None
    ci_high_pct: float | None


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """One operation whose loss must come back."""

    op: str
    """Name of the operation."""
    family: str
    """sqlite, js, ..."""
    outcome: Outcome
    """Whether its loss came back."""
    reason: str
    """One sentence without a full stop."""
    loss: Change
    """Regressed against baseline."""
    loss_verdict: Verdict | None
    """slower where there is a loss at all."""
    recovered_pct: float | None
    """Share of the loss that came back."""
    recovered_low_pct: float | None
    """Lower end of its interval: this is what must reach the wanted share."""
    recovered_high_pct: float | None
    """Upper end of its interval."""
    confidence: float | None
    """Exact coverage of that interval for one look."""
    remaining: Change
    """Fix against baseline."""
    against_regressed: Change
    """Fix against regressed."""
    baseline_ns_per_op: float | None
    """Wall time per operation, ns."""
    regressed_ns_per_op: float | None
    """Wall time per operation, ns."""
    fix_ns_per_op: float | None
    """Wall time per operation, ns."""
    rounds: int
    """Rounds that the share rests on."""
    rounds_needed: int | None
    """Where more rounds would probably decide: how many more."""
    warnings: tuple[str, ...]
    """What weakens this, sentences."""


class Other(msgspec.Struct, frozen=True, kw_only=True):
    """One of the other operations: the fix against the regressed side."""

    op: str
    """Name of the operation."""
    family: str
    """sqlite, js, ..."""
    outcome: OtherOutcome
    """slower, invalid and failed fail the fix; below_floor and undecided are only listed."""
    reason: str
    """One sentence without a full stop; empty where it is ok."""
    change: Change
    """Fix against regressed."""
    verdict: Verdict | None
    """Verdict of the comparison; null where nothing was measured."""
    rounds: int
    """Rounds that it rests on."""


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    """The answer as a whole."""

    outcome: Outcome
    """pass, fail, invalid (the fix does other work), cannot_tell."""
    headline: str
    """The one sentence."""
    criterion: str
    """What a pass needed, one sentence."""
    fix_kind: FixKind
    """node, addon or patch."""
    fix: str
    """The fix, for people."""
    baseline: str
    """The baseline, for people."""
    regressed: str
    """The regressed side, for people."""
    v8: dict[str, str]
    """Version of V8 by label, as the binaries report it."""
    addon: str
    """The addon of the regressed side, for people; empty in ``js`` runs."""
    environments: dict[str, str]
    """Identifiers of the environments by label: baseline, regressed, fix."""
    problems: tuple[str, ...]
    """What fails the fix, or keeps it from being judged, sentences without full stops."""
    targets: tuple[Recovery, ...]
    """Operations whose loss must come back."""
    others: tuple[Other, ...]
    """All other operations."""

    @property
    def listed(self) -> tuple[Other, ...]:
        """Other operations that do not fail the fix, but could not be cleared either."""
        return tuple(o for o in self.others if o.outcome in {"undecided", "below_floor", "not_measured"})
