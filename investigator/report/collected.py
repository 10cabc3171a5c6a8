"""The accounts of the collector as tables of texts, the same in every format."""

from collections.abc import Iterator, Sequence

from investigator import units
from investigator.report.layers_view import LayersView
from investigator.report.shapes import View

Row = Sequence[str]

MEMORY_HEADER: Row = (
    "version",
    "heap limit",
    "semi-space, start to largest",
    "external memory, largest",
    "accounting of one collection",
)
EXPLAINED_HEADER: Row = (
    "collector, this operation alone",
    "pauses per call",
    "scavenges per million calls",
    "full collections per million calls",
    "other threads' CPU per call",
    "external memory",
)
NOTE = (
    "Collections on the main thread by kind, with their pauses, and the CPU time of all other threads "
    "(collector and compiler): of one warm lap of every operation, the mean over its laps; all versions "
    "make the same calls. Shares are of the wall time of those laps"
)


def kinds_header(view: View) -> Row:
    """Version, kinds of collections, and what they cost together."""
    kinds = (kind.replace("_", " ") for kind in _kinds(view))
    return ("version", "operations", *kinds, "all pauses", "other threads' CPU")


def kinds_rows(view: View) -> Iterator[Row]:
    """Number and pauses by kind."""
    for e in view.environments:
        own = e.collected
        # Where something was counted, a kind that is missing never came.
        nothing = units.MISSING if own.operations == units.MISSING else "none"
        by_kind = (own.kinds.get(kind, nothing) for kind in _kinds(view))
        yield (e.short, own.operations, *by_kind, own.pauses, own.helpers)


def _kinds(view: View) -> tuple[str, ...]:
    return tuple(dict.fromkeys(kind for e in view.environments for kind in e.collected.kinds))


def memory_rows(view: View) -> Iterator[Row]:
    """Limits and sizes."""
    for e in view.environments:
        yield (e.short, e.heap_limit, e.semi_space, e.collected.external, e.accounting)


def explained_rows(found: LayersView) -> Iterator[Row]:
    """The collector in the rounds of one explained finding."""
    return ((c.environment, c.pause, c.scavenges, c.full, c.helpers, c.external) for c in found.collector)
