"""The explain phase as the self-test calls it: one finding of a screen, measured again and attributed."""

from collections.abc import Sequence

from investigator.analysis import Comparison
from investigator.attributed import Target, attributions
from investigator.attribution.layers import Attribution
from investigator.explain import explain
from investigator.measure import Bench
from investigator.results import Finished


def attribute(bench: Bench, finished: Finished, wanted: Sequence[Comparison]) -> Sequence[Attribution]:
    """Explain findings of a screen; what was measured before is kept.

    Raises:
        InvestigateError: with what was measured until then in the folder of the screen.
    """
    explain(bench, finished.analysis, [Target(op=c.op, candidate=c.candidate) for c in wanted])
    pairs = {(c.op, c.candidate) for c in wanted}
    told = attributions(bench.folder, finished.analysis)
    return [a for a in told if (a.op, a.candidate) in pairs]
