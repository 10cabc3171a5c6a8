"""An audit for people: one sentence, the changes, what stands against them with its place, the rulings."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from investigator import units
from investigator.audit.adjudicate import RULING_WORDS
from investigator.audit.evidence import Finding, Kind
from investigator.audit.figures import Place
from investigator.audit.judgement import Audit, Conclusion
from investigator.audit.rerun import Rerun
from investigator.text import clean_text

_TITLES: tuple[tuple[Kind, str], ...] = (
    ("against", "What speaks against the figures"),
    ("missing", "What they do not say"),
    ("for", "What speaks for them"),
)
_SUPPORT = {
    "supported": "supported",
    "within_session": "not told from other changes",
    "not_told": "cannot tell",
    "contradicted": "contradicted",
    "no_figures": "no figures",
}
_MOST_CHANGES = 30
_MOST_FINDINGS = 40
_MOST_PLACES = 2
_LIMIT = 700


def render(audit: Audit, rerun: Rerun | None) -> RenderableType:
    """Lay out an audit for a terminal or a pipe; the same facts as JSON are the structs themselves."""
    return Group(*_parts(audit, rerun))


def _parts(audit: Audit, rerun: Rerun | None) -> Iterator[RenderableType]:
    if rerun is not None:
        for ruling in rerun.rulings:
            yield Text(clean_text(ruling.text, _LIMIT), style="bold")
        yield from _rulings(rerun)
    # Of a claim alone there is nothing to say any more, once it is measured.
    if audit.sources or rerun is None:
        yield from _published(audit, style="" if rerun is not None else "bold")


def _published(audit: Audit, style: str) -> Iterator[RenderableType]:
    """What the figures say."""
    yield Text(clean_text(audit.conclusion, _LIMIT), style=style)
    if audit.sources:
        yield Text("")
    for source in audit.sources[:20]:
        versions = ", ".join(source.versions[:12])
        yield _plain(f"{source.name}: {source.format}, {source.figures:,} figures, {versions}")
    if audit.changes:
        yield Text("")
        yield _changes(audit.changes)
    for kind, title in _TITLES:
        found = [finding for finding in audit.findings if finding.kind == kind]
        if found:
            yield Text("")
            yield Text(title, style="bold")
            yield _findings(found)


def _changes(changes: Sequence[Conclusion]) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("operation", "versions", "claimed", "first", "lowest", "highest", "best", "median", ""):
        table.add_column(
            column, justify="left" if column in {"operation", "versions", ""} else "right", overflow="fold"
        )
    for change in changes[:_MOST_CHANGES]:
        w = change.weighed
        table.add_row(
            *(
                Text(clean_text(cell, 80))
                for cell in (
                    f"{w.op}{'/s' if w.unit == 'rate' else ''}",
                    f"{w.baseline} -> {w.candidate}",
                    "" if w.claim is None else w.claim.text,
                    *map(
                        units.format_percent,
                        (w.published_pct, w.low_pct, w.high_pct, w.best_pct, w.median_pct),
                    ),
                    _SUPPORT[w.support],
                )
            )
        )
    legend = (
        "first, lowest, highest: change under one setting; best: best figure against best figure; of /s a "
        "minus is slower"
    )
    more = f"; {len(changes) - _MOST_CHANGES:,} more with --json" if len(changes) > _MOST_CHANGES else ""
    return Group(table, Text(legend + more, style="dim"))


def _findings(findings: Sequence[Finding]) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    for finding in findings[:_MOST_FINDINGS]:
        text = Text(clean_text(finding.text, _LIMIT))
        if finding.places:
            text.append(f"  [{_where(finding.places)}]", style="dim")
        grid.add_row(Text("-"), text)
    if len(findings) > _MOST_FINDINGS:
        grid.add_row(Text("-"), Text(f"{len(findings) - _MOST_FINDINGS:,} more with --json", style="dim"))
    return grid


def _where(places: Sequence[Place]) -> str:
    shown = "; ".join(f"{p.file}: {p.at}" for p in places[:_MOST_PLACES])
    more = len(places) - _MOST_PLACES
    return clean_text(shown, 400) + (f"; and {more:,} more" if more > 0 else "")


def _rulings(rerun: Rerun) -> Iterator[RenderableType]:
    """What this tool measured."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("operation", "claimed time", "pass", "measured time", "interval", "rounds", "ruling"):
        table.add_column(column, overflow="fold")
    for ruling in rerun.rulings:
        for phase in ruling.phases:
            cells = (
                ruling.op,
                units.format_percent(ruling.claimed_time_pct),
                phase.phase,
                units.format_percent(phase.change_pct),
                units.format_interval(phase.ci_low_pct, phase.ci_high_pct),
                str(phase.rounds),
                RULING_WORDS[phase.ruling],
            )
            table.add_row(*(Text(clean_text(cell, 120)) for cell in cells))
    yield Text("")
    yield table
    for note in (*rerun.notes, f"run {rerun.run}; its verdicts, controls and raw records are in its folder"):
        yield _plain(note)
    yield Text("")


def _plain(text: str) -> Text:
    return Text(clean_text(text, _LIMIT), style="dim")
