"""Which figures a run has."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from investigator.analysis import Analysis
from investigator.arms import Arms
from investigator.attributed import ProfileSide
from investigator.attribution.layers import Attribution
from investigator.naming import short_names
from investigator.plan import Plan
from investigator.report import wording
from investigator.report.page.flame import Side, flame_figures
from investigator.report.page.forest import forest_figure
from investigator.report.page.layers import layers_figure, symbols_figure
from investigator.report.page.rounds import rounds_figure
from investigator.report.page.shapes import Figure


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured to explain one finding."""

    arms: Arms
    """Process values of the new rounds."""
    profiles: tuple[ProfileSide, ...]
    """Baseline, candidate; fewer where there are none."""


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one explained finding, in the order of the attributions."""

    rounds: Figure | None
    layers: Figure | None
    symbols: Figure | None
    flames: tuple[Figure, ...]
    """Before, after, difference; or none."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of a report."""

    changes: tuple[Figure, ...]
    """A forest plot for each family."""
    explained: tuple[Explained, ...]
    rounds: tuple[Figure, ...]
    """One for each operation that was measured."""

    def __iter__(self) -> Iterator[Figure]:
        """In the order of the page."""
        yield from self.changes
        for each in self.explained:
            own = (each.rounds, each.layers, each.symbols, *each.flames)
            yield from (figure for figure in own if figure is not None)
        yield from self.rounds


def figures(
    plan: Plan,
    analysis: Analysis,
    arms: Arms,
    attributions: Sequence[Attribution],
    evidence: Callable[[Attribution], Evidence],
) -> Figures:
    """Make the specs of all figures of a run; nothing is drawn yet.

    Args:
        plan: what was compared.
        analysis: its comparisons, as published.
        arms: process values of the screen.
        attributions: explained findings.
        evidence: what was measured for one of them.
    """
    short = short_names(plan.environments, plan.spec.axis)
    order = [plan.baseline, *(environment.id for environment in plan.candidates)]
    names = {environment: short.get(environment, environment) for environment in order}
    pairs = analysis.pairs()
    families = wording.family_order(pair.family for pair in pairs)
    forests = (
        forest_figure(family, [p for p in pairs if p.family == family], names, plan.spec.margin_pct)
        for family in families
    )
    rounds = (rounds_figure(operation.name, arms, order, names) for operation in plan.operations)
    return Figures(
        changes=tuple(figure for figure in forests if figure is not None),
        explained=tuple(_explained(found, evidence(found), names) for found in attributions),
        rounds=tuple(figure for figure in rounds if figure is not None),
    )


def _explained(found: Attribution, evidence: Evidence, names: dict[str, str]) -> Explained:
    before = names.get(found.baseline, found.baseline)
    after = names.get(found.candidate, found.candidate)
    sides = [
        Side(names.get(side.environment, side.environment), side.stacks, side.ns_per_call)
        for side in (evidence.profiles if found.recurred else ())
    ]
    pair = (found.baseline, found.candidate)
    return Explained(
        rounds=rounds_figure(found.op, evidence.arms, pair, names, name=f"explained-rounds-{after}"),
        layers=layers_figure(found, before, after),
        symbols=symbols_figure(found, after),
        flames=flame_figures(found.op, sides[0], sides[1]) if len(sides) == 2 else (),
    )
