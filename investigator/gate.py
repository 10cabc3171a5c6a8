"""An answer to an exit code: ``--fail-on``, `investigate validate`, and a run that has none at all."""

from collections.abc import Sequence

from investigator.analysis import Analysis, Comparison
from investigator.errors import EXIT_GATE_FAILED, EXIT_GATE_UNDECIDED, EXIT_OK
from investigator.plan import Failure
from investigator.spec import Spec
from investigator.text import clean_text
from investigator.validate.shapes import Outcome, Validation

_EXIT_OF: dict[Outcome, int] = {
    "pass": EXIT_OK,
    "fail": EXIT_GATE_FAILED,
    "invalid": EXIT_GATE_FAILED,
    "cannot_tell": EXIT_GATE_UNDECIDED,
}


def exit_code(spec: Spec, analysis: Analysis, validation: Validation | None = None) -> int:
    """0 passed or no gate, 1 something got slower by a finding, 3 it cannot be told.

    Of a validation: 0 the fix passes, 1 it fails or does other work, 3 it cannot be told.

    A cell that was not measured, is invalid, or is undecided while its interval reaches a finding's size
    could hide one; an undecided cell whose interval ends below that cannot.
    """
    if validation is not None:
        return _EXIT_OF[validation.outcome]
    if spec.fail_on == "none":
        return EXIT_OK
    pairs = analysis.pairs()
    if any(c.finding and c.verdict == "slower" for c in pairs):
        return EXIT_GATE_FAILED
    if analysis.failures or not pairs or any(_could_be_slower(c, spec.finding_pct) for c in pairs):
        return EXIT_GATE_UNDECIDED
    return EXIT_OK


def no_answer(analysis: Analysis) -> str | None:
    """Say why a run measured nothing at all; None where it has figures, however few.

    Such a run ends like one of which nothing could be built: nobody may take its silence for "no change".
    Where a side is missing the others were measured, and the headline says that nothing is compared.
    """
    if analysis.cells:
        return None
    return f"nothing could be measured{_first([f for f in analysis.failures if f.stage != 'checksum'])}"


def _first(failures: Sequence[Failure]) -> str:
    if not failures:
        return "."
    first = failures[0]
    cell = first.environment if first.op is None else f"{first.op} on {first.environment}"
    more = f"; report.md has all {len(failures)} reasons" if len(failures) > 1 else ""
    return f": {clean_text(cell, 120)} failed because {clean_text(first.reason, 300).rstrip('.')}{more}."


def _could_be_slower(pair: Comparison, finding_pct: float) -> bool:
    if pair.verdict == "invalid":
        return True
    return pair.verdict == "undecided" and not pair.wall.ci_high_pct < finding_pct
