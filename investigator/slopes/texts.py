"""What `investigate slopes` prints: a table of coefficients for each series."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from investigator import units
from investigator.report.plain import plain
from investigator.report.wording import FINDING_MARK
from investigator.slopes.series import WORST_RESIDUAL, Change, Compared
from investigator.stats.intervals import Interval
from investigator.store import TOOL, encode_json
from investigator.stored_run import StoredRun
from investigator.text import clean_text

SLOPES_SCHEMA = 1
_LEGEND = (
    "Nanoseconds, [interval over rounds]. A/A: the baseline against itself. at most: what the difference "
    f"alone adds to a call at that measured size where it adds most; {FINDING_MARK} where that is a finding "
    f"by the run's rule. A series with a size farther than {WORST_RESIDUAL:.0%} from its line gets no mark."
)


def terminal(run: StoredRun, found: Sequence[Compared]) -> RenderableType:
    """Everything, for a person."""
    return Group(*_terminal(run, found))


def _terminal(run: StoredRun, found: Sequence[Compared]) -> Iterator[RenderableType]:
    yield Text(headline(run, found), style="bold")
    for compared in found:
        yield Text("")
        names = [change.name for change in compared.changes]
        yield Text(f"{clean_text(compared.series, 80)}: time = {_model(names)}", style="bold")
        yield _table(run, compared)
        sizes = ", ".join(compared.sizes)
        fit = "" if compared.holds else ": not on a line, no mark is given"
        yield Text(
            f"{compared.rounds} rounds; sizes {clean_text(sizes, 200)}; farthest from the fit, "
            f"as a median over rounds, {100 * compared.worst_residual:.1f} %{fit}",
            style="dim",
        )
    yield Text("")
    yield Text(_LEGEND, style="dim")


def headline(run: StoredRun, found: Sequence[Compared]) -> str:
    """What changed, the largest effects first."""
    names = _names(run)
    marked = sorted(
        ((compared, change) for compared in found for change in compared.changes if change.marked),
        key=lambda each: -abs(each[1].most_pct.estimate),
    )
    if not marked:
        return "No coefficient changes any measured size by a finding."
    told = [
        f"{clean_text(compared.series, 80)}: each {change.name} costs {_ns(change.candidate_ns.estimate)} ns "
        f"on {clean_text(names[compared.candidate], 80)} instead of {_ns(change.baseline_ns.estimate)} "
        f"on {clean_text(names[compared.baseline], 80)}"
        for compared, change in marked[:3]
    ]
    return f"{'; '.join(told)}{'; ...' if len(marked) > 3 else ''}."


def _model(names: Sequence[str]) -> str:
    if len(names) > 2:
        return "call + column x columns + row x rows + cell x rows x columns"
    return f"call + {names[1]} x {names[1]}s"


def _table(run: StoredRun, compared: Compared) -> Table:
    names = _names(run)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in (
        "",
        clean_text(names[compared.baseline], 60),
        clean_text(names[compared.candidate], 60),
        "difference",
        "A/A",
        "at most",
        "",
    ):
        table.add_column(Text(column), overflow="fold")
    for change in compared.changes:
        table.add_row(*(Text(cell) for cell in _cells(change)))
    return table


def _cells(change: Change) -> tuple[str, ...]:
    most = change.most_pct
    return (
        change.name,
        _shown(change.baseline_ns),
        _shown(change.candidate_ns),
        _shown(change.difference_ns, sign="+"),
        units.MISSING if change.twin_ns is None else _shown(change.twin_ns, sign="+"),
        f"{units.format_percent(most.estimate)} [{units.format_interval(most.low, most.high)}]",
        FINDING_MARK if change.marked else "",
    )


def _shown(value: Interval, *, sign: str = "") -> str:
    if not value.bounded:
        return f"{_ns(value.estimate, sign)} [-]"
    return f"{_ns(value.estimate, sign)} [{_ns(value.low, sign)}, {_ns(value.high, sign)}]"


def _ns(value: float, sign: str = "") -> str:
    """Three digits, and no exponent."""
    size = abs(value)
    decimals = 0 if size >= 99.95 else 1 if size >= 9.995 else 2 if size >= 0.9995 else 3
    return f"{value:{sign},.{decimals}f}"


def _names(run: StoredRun) -> Mapping[str, str]:
    """Label or version where that is unambiguous, else the identifier."""
    short = {e.id: e.label or e.node for e in run.summary.environments}
    taken = list(short.values())
    return {key: name if taken.count(name) == 1 else key for key, name in short.items()}


def as_json(run: StoredRun, found: Sequence[Compared]) -> str:
    """The same for programs: kind ``slopes``; what has no interval has null there."""
    body = {
        "schema": SLOPES_SCHEMA,
        "kind": "slopes",
        "tool": TOOL,
        "run_id": run.summary.run_id,
        "headline": headline(run, found),
        "series": [msgspec.to_builtins(compared) for compared in found],
    }
    return encode_json(plain(body)).decode()
