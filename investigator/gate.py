"""``--fail-on``: an analysis to an exit code."""

from investigator.analysis import Analysis, Comparison
from investigator.errors import EXIT_GATE_FAILED, EXIT_GATE_UNDECIDED, EXIT_OK
from investigator.spec import Spec


def exit_code(spec: Spec, analysis: Analysis) -> int:
    """0 passed or no gate, 1 something got slower by a finding, 3 it cannot be told.

    A cell that was not measured, is invalid, or is undecided while its interval reaches a finding's size
    could hide one; an undecided cell whose interval ends below that cannot.
    """
    if spec.fail_on == "none":
        return EXIT_OK
    pairs = [c for c in analysis.comparisons if c.kind == "baseline" and c.phase == "warm"]
    if any(c.finding and c.verdict == "slower" for c in pairs):
        return EXIT_GATE_FAILED
    if analysis.failures or not pairs or any(_could_be_slower(c, spec.finding_pct) for c in pairs):
        return EXIT_GATE_UNDECIDED
    return EXIT_OK


def _could_be_slower(pair: Comparison, finding_pct: float) -> bool:
    if pair.verdict == "invalid":
        return True
    return pair.verdict == "undecided" and not pair.wall.ci_high_pct < finding_pct
