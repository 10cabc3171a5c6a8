"""The view for a terminal: rich tables that say everything without colour too.

Nothing from outside is ever interpreted as markup: every text goes in as `rich.text.Text`.
"""

from collections.abc import Iterable, Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from investigator.report.layers_view import LayersView
from investigator.report.shapes import CellView, ChangeView, FamilyView, RowView, View
from investigator.report.wording import FINDING_MARK, FLOOR_MARK

_VERDICT_STYLES = {"slower": "red", "faster": "green", "cannot tell": "yellow", "invalid": "magenta"}
_MOST_WARNINGS = 8
_MOST_SYMBOLS = 4
_UNBOUNDED = 10_000


class TerminalReport:
    """A view as something rich can print; chooses its layout from the width it is given."""

    def __init__(self, view: View) -> None:
        self.view = view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the report from the headline down to the next commands."""
        yield Text(self.view.headline, style="bold")
        yield ""
        yield _pairs(self.view.summary)
        for family, table in zip(self.view.warm, self._tables(console, options), strict=True):
            yield from _section(family.title)
            yield table
        yield ""
        yield from (Text(line, style="dim") for line in self.view.legend)
        yield from self._layers()
        yield from self._cannot_tell()
        yield from self._published()
        yield from self._cold()
        yield from _named("Controls", self.view.controls)
        yield from self._failures()
        yield from self._warnings()
        yield from self._where_next()

    def _tables(self, console: Console, options: ConsoleOptions) -> list[Table]:
        """Lay out all families alike: wide where every one fits, else folded into lines."""
        for gap in (2, 1):
            tables = [self._wide(family, gap) for family in self.view.warm]
            unbounded = options.update(max_width=_UNBOUNDED)
            if all(Measurement.get(console, unbounded, t).maximum <= options.max_width for t in tables):
                return tables
        return [self._narrow(family) for family in self.view.warm]

    def _wide(self, family: FamilyView, gap: int) -> Table:
        table = _table(gap)
        _column(table, "operation", fold_at=24)
        for environment in self.view.environments:
            title = f"{environment.short}\n{'baseline' if environment.baseline else 'ops/sec'}"
            _column(table, title, right=True, fold_at=14)
        for candidate in self.view.candidates:
            _column(table, f"{candidate}\nchange", fold_at=18)
            _column(table, "verdict\npublished", fold_at=14)
        _column(table, "noise", right=True)
        for row in family.rows:
            texts = [Text(row.op), *(_cell_text(cell) for cell in row.cells)]
            for change in row.changes:
                texts += _change_texts(change)
            table.add_row(*texts, Text(row.noise))
        return table

    def _narrow(self, family: FamilyView) -> Table:
        table = _table(1)
        _column(table, f"operation, {self.view.baseline}\n  candidate", fold_at=24)
        _column(table, "ops/sec", right=True)
        _column(table, "time", right=True)
        _column(table, "change", right=True)
        _column(table, "interval")
        _column(table, "verdict")
        baseline = next((i for i, e in enumerate(self.view.environments) if e.baseline), None)
        for row in family.rows:
            own = row.cells[baseline] if baseline is not None else CellView(rate="", time="")
            table.add_row(Text(row.op), Text(own.rate), Text(own.time), "", Text(f"noise {row.noise}"), "")
            for short, cell, change in self._candidate_cells(row):
                table.add_row(Text(f"  {short}"), Text(cell.rate), Text(cell.time), *_line_texts(change))
        return table

    def _candidate_cells(self, row: RowView) -> Iterator[tuple[str, CellView, ChangeView | None]]:
        others = [
            (environment.short, cell)
            for environment, cell in zip(self.view.environments, row.cells, strict=True)
            if not environment.baseline
        ]
        for (short, cell), change in zip(others, row.changes, strict=True):
            yield short, cell, change

    def _changes(self) -> Iterator[ChangeView]:
        for family in self.view.warm:
            for row in family.rows:
                yield from (change for change in row.changes if change is not None)

    def _cannot_tell(self) -> Iterator[RenderableType]:
        places = _grouped((change.remedy, change) for change in self._changes() if change.remedy)
        if places:
            yield from _section("Cannot tell yet")
            yield _pairs(places)

    def _layers(self) -> Iterator[RenderableType]:
        """Say for each explained finding which layer it lies in, and what speaks for it."""
        if self.view.layers:
            yield from _section("Which layer")
        for found in self.view.layers:
            change = f"{found.op} on {found.candidate} {found.change} ({found.delta} per call): "
            yield Text.assemble(change, (found.layer, "bold"))
            yield Padding(Text(found.sentence), (0, 0, 0, 2))
            if found.parts:
                yield Padding(_parts_table(found), (0, 0, 0, 2))
            for line in _layer_lines(found):
                yield Padding(Text(line), (0, 0, 0, 2))

    def _published(self) -> Iterator[RenderableType]:
        """Say where the published rule comes to another answer."""
        places = _grouped(
            (f"{change.verdict}, published rule: {change.published}", change)
            for change in self._changes()
            if _contradicts(change)
        )
        if places:
            yield from _section("Where the published rule says something else")
            yield _pairs(places)

    def _cold(self) -> Iterator[RenderableType]:
        if not self.view.cold:
            return
        if not self.view.cold_differs:
            yield ""
            yield Text("The first (cold) passes tell nothing else; report.md has them all.")
            return
        yield from _section("Where the first (cold) pass of a process tells something else")
        table = _table(2)
        for title in ("operation", "candidate"):
            _column(table, title, fold_at=24)
        _column(table, "cold", right=True)
        for title in ("interval", "verdict", "warm"):
            _column(table, title)
        for cold, warm in self.view.cold_differs:
            table.add_row(
                Text(cold.op),
                Text(cold.candidate),
                *_line_texts(cold),
                Text.assemble(f"{warm.change} ", _verdict(warm)),
            )
        yield table

    def _failures(self) -> Iterator[RenderableType]:
        if not self.view.failures:
            return
        yield from _section("Could not be measured")
        for failure in self.view.failures:
            place = f"{failure.environment} {failure.op or 'everything'} ({failure.stage}): "
            yield Text.assemble((place, "bold"), failure.reason)

    def _warnings(self) -> Iterator[RenderableType]:
        if not self.view.warnings:
            return
        yield from _section("Warnings")
        for warning in self.view.warnings[:_MOST_WARNINGS]:
            more = f" and {len(warning.where) - 3} more" if len(warning.where) > 3 else ""
            yield Text(f"{', '.join(warning.where[:3])}{more}: {warning.text}")
        if len(self.view.warnings) > _MOST_WARNINGS:
            yield Text(f"{len(self.view.warnings) - _MOST_WARNINGS} more in report.md")

    def _where_next(self) -> Iterator[RenderableType]:
        yield ""
        # Long paths and commands are never broken: they are there to be copied.
        yield _unbroken(f"Run folder: {self.view.folder} (report.md, summary.json, measurements.csv)")
        yield from _section("Next")
        for purpose, command in self.view.next_commands:
            yield Text(f"# {purpose}", style="dim")
            yield _unbroken(command)


def _parts_table(found: LayersView) -> Table:
    """One line a layer, both methods side by side."""
    table = _table(2)
    _column(table, "layer")
    for title in ("before", "after", "change"):
        _column(table, title, right=True)
    methods = tuple(dict.fromkeys(part.method for part in found.parts))
    for method in methods:
        _column(table, f"share by {method}", right=True)
    for layer in dict.fromkeys(part.layer for part in found.parts):
        own = {part.method: part for part in found.parts if part.layer == layer}
        first = next(iter(own.values()))
        shares = (f"{own[m].share} [{own[m].interval}]" if m in own else "-" for m in methods)
        table.add_row(*map(Text, (layer, first.before, first.after, first.delta, *shares)))
    return table


def _layer_lines(found: LayersView) -> Iterator[str]:
    yield from (f"cause: {cause}" for cause in found.causes)
    growing = [f"{symbol.name} {symbol.delta}" for symbol in found.symbols[:_MOST_SYMBOLS]]
    if growing:
        yield f"changed most: {', '.join(growing)}"
    yield from (f"tested and rejected: {text}" for text in found.rejected)
    yield from found.notes


def _section(title: str) -> Iterator[RenderableType]:
    yield ""
    yield Text(title, style="bold")


def _named(title: str, pairs: tuple[tuple[str, str], ...]) -> Iterator[RenderableType]:
    if pairs:
        yield from _section(title)
        yield _pairs(pairs)


def _grouped(changes: Iterable[tuple[str, ChangeView]]) -> tuple[tuple[str, str], ...]:
    places: dict[str, list[str]] = {}
    for title, change in changes:
        places.setdefault(title, []).append(f"{change.op} {change.candidate}")
    return tuple((title, ", ".join(where)) for title, where in places.items())


def _pairs(pairs: tuple[tuple[str, str], ...]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in pairs:
        grid.add_row(Text(name, style="dim"), Text(text))
    return grid


def _table(gap: int) -> Table:
    # The divider of the box is one of the characters between two columns.
    return Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0))


def _column(table: Table, title: str, *, right: bool = False, fold_at: int | None = None) -> None:
    table.add_column(
        Text(title),
        justify="right" if right else "left",
        no_wrap=fold_at is None,
        max_width=fold_at,
        overflow="fold",
    )


def _cell_text(cell: CellView) -> Text:
    return Text(f"{cell.rate}\n{cell.time}")


def _change_texts(change: ChangeView | None) -> list[Text]:
    if change is None:
        return [Text("-"), Text("-")]
    return [
        Text(f"{change.change}\n{change.interval}"),
        Text.assemble(_verdict(change), f"\n{change.published}"),
    ]


def _line_texts(change: ChangeView | None) -> tuple[Text, Text, Text]:
    if change is None:
        return Text("-"), Text("-"), Text("-")
    return Text(change.change), Text(change.interval), _verdict(change)


def _verdict(change: ChangeView) -> Text:
    style = _VERDICT_STYLES.get(change.verdict, "")
    # No colour is needed to see a finding: it carries its mark.
    return Text(
        f"{change.verdict} {change.mark}".strip(),
        style=f"bold {style}" if change.mark == FINDING_MARK else style,
    )


def _contradicts(change: ChangeView) -> bool:
    """Whether the published rule differs in a matter of weight; it never sees what is below the floor."""
    if change.verdict == "invalid" or change.mark == FLOOR_MARK:
        return False
    ours = change.verdict if change.verdict in {"slower", "faster"} else "within noise"
    return change.published != ours


def _unbroken(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ignore")
