"""A claim to a measurement by this tool: which spec measures it, and what its run says."""

from collections.abc import Sequence

import msgspec

from investigator.audit.adjudicate import Adjudication, ClaimPhase, Question, adjudicate
from investigator.audit.book import Book
from investigator.audit.claims import Claim, stated_claim
from investigator.audit.figures import Row, Sheet, version_in
from investigator.audit.judgement import Audit
from investigator.audit.operations import measured_by, operation_for
from investigator.audit.weigh import Weighed
from investigator.errors import UsageError
from investigator.options import Choices, make_spec
from investigator.results import Finished
from investigator.spec import CIPHER_ADDON, Command, Spec


class Rerun(msgspec.Struct, frozen=True, kw_only=True):
    """What this tool's own measurement says to the claims."""

    run: str
    """Run id."""
    addon: str | None
    """Addon that was measured; None in ``js`` runs."""
    rulings: tuple[Adjudication, ...]
    notes: tuple[str, ...]
    """What the measurement assumed beyond the claim, sentences."""


def questions(
    audit: Audit,
    sheets: Sequence[Sheet],
    claims: Sequence[Claim],
    *,
    op: str | None,
    baseline: str | None,
    phase: ClaimPhase | None,
) -> tuple[Question, ...]:
    """What is to be adjudicated: the claims, with what the files tell of them; else what the files suggest.

    Raises:
        UsageError: nothing tells the operation, the baseline or the Node versions.
    """
    weighed = [change.weighed for change in audit.changes]
    told = [w for w in weighed if w.claim is not None]
    if not told and not claims:
        told = [msgspec.structs.replace(w, claim=_suggested(w)) for w in weighed if operation_for(op or w.op)]
    if not told and not claims:
        raise UsageError("there is no claim to measure; name one, for instance --claim 24.11.1=-57%.")
    if told:
        book = Book(sheets)
        return tuple(
            Question(
                claim=w.claim,
                baseline=_release(w.baseline),
                op=measured_by(op or w.op)[1],
                phase=phase or _phase(sheets, w.op),
                other=_other(book.rows(w.baseline), book.rows(w.candidate)),
            )
            for w in told
            if w.claim is not None and _release(w.candidate)
        )
    if baseline is None or version_in(baseline) is None:
        raise UsageError(
            "a claim needs something to be compared with; name a version with --baseline 20.19.5."
        )
    if op is None:
        raise UsageError("a claim needs an operation; name one with --op, for instance --op select_range.")
    return tuple(
        Question(claim=c, baseline=_release(baseline), op=measured_by(op)[1], phase=phase or "unknown")
        for c in claims
    )


def rerun_spec(asked: Sequence[Question], sheets: Sequence[Sheet], choices: Choices) -> Spec:
    """The spec that measures the claims; versions and addon of `choices` win over those of the files.

    Raises:
        UsageError: the claims need both commands, or several baselines.
    """
    commands: set[Command] = {measured_by(question.op)[0] for question in asked}
    baselines = {question.baseline for question in asked}
    if len(commands) > 1 or len(baselines) > 1:
        what = "operations of the addon and pure JavaScript" if len(commands) > 1 else "several baselines"
        raise UsageError(
            f"the claims need {what}, which is more than one run; choose with --op or --baseline."
        )
    (baseline,), (command,) = baselines, commands
    versions = list(dict.fromkeys([baseline, *(question.claim.version for question in asked)]))
    return make_spec(
        command,
        msgspec.structs.replace(
            choices,
            versions=choices.versions or ",".join(versions),
            baseline=baseline,
            ops=",".join(dict.fromkeys(question.op for question in asked)),
            addon=choices.addon if choices.addon != CIPHER_ADDON else _recorded_addon(sheets),
        ),
    )


def rulings(asked: Sequence[Question], finished: Finished, *, phase_known: bool, addon_known: bool) -> Rerun:
    """Adjudicate every claim by a run."""
    plan = finished.stored.plan
    addons = {f"{e.addon.name} {e.addon.version}".rstrip() for e in plan.environments if e.addon is not None}
    notes = []
    if addons and not addon_known:
        notes.append("which addon release the claim was measured with is not known; --addon names one")
    if not phase_known:
        notes.append("the claim does not say whether it is of cold or warm calls; both were looked at")
    return Rerun(
        run=plan.run_id,
        addon=", ".join(sorted(addons)) or None,
        rulings=tuple(
            adjudicate(question, plan, finished.analysis, finished.attributions) for question in asked
        ),
        notes=tuple(notes),
    )


def _suggested(weighed: Weighed) -> Claim | None:
    """The change under the first setting of files that claim nothing themselves."""
    asked_pct = round(weighed.asked_pct, 1)
    return stated_claim(weighed.candidate, weighed.op, asked_pct, weighed.unit, None, "rate")


def _release(version: str) -> str:
    found = version_in(version)
    if found is None:
        raise UsageError(
            f"{version[:80]!r} names no Node release that could be measured; give --claim and --baseline "
            "without the file."
        )
    return found


def _phase(sheets: Sequence[Sheet], op: str) -> ClaimPhase:
    """Figures of the suite are cold passes; no other format says."""
    formats = {s.format for s in sheets if any(f.op == op for f in s.figures)}
    return "cold" if "sqlite-benchmarks" in formats else "unknown"


def _recorded_addon(sheets: Sequence[Sheet]) -> str:
    found = {
        (row.addon, row.addon_version) for s in sheets for row in s.rows if row.addon and row.addon_version
    }
    if len(found) != 1:
        return CIPHER_ADDON
    name, version = next(iter(found))
    return f"{name}@{version}"


def _other(before: Sequence[Row], after: Sequence[Row]) -> str | None:
    """What else the files record to differ between the two versions."""
    for what, old, new in (
        ("addon release", {r.addon_version for r in before}, {r.addon_version for r in after}),
        ("machine", {r.host for r in before}, {r.host for r in after}),
    ):
        if None not in old | new and old and new and not old & new:
            names = "; ".join(", ".join(sorted(map(str, side))) for side in (old, new))
            return f"the published rows differ in {what} ({names})"
    return None
