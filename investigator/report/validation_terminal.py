"""The answer of `investigate validate` for a terminal."""

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from investigator import units
from investigator.report.validation import OTHER_WORDS, WORDS, change, notes, recovered, sides
from investigator.text import clean_text
from investigator.validate.shapes import Validation

_STYLES = {"pass": "bold green", "fail": "bold red", "invalid": "bold magenta", "cannot_tell": "bold yellow"}
_OTHER_STYLES = {"slower": "red", "failed": "red", "invalid": "magenta", "undecided": "yellow"}


class ValidationReport:
    """An answer as something rich can print; every text goes in as it is, none is read as markup."""

    def __init__(self, validation: Validation, folder: str) -> None:
        self.validation = validation
        self.folder = folder

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the answer from the headline down to the files."""
        answer = self.validation
        yield _text(answer.headline, style=_STYLES[answer.outcome])
        yield ""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for name, text in sides(answer):
            grid.add_row(_text(name, style="dim"), _text(text))
        yield grid
        if answer.targets:
            yield ""
            yield self._targets()
        if answer.others:
            yield ""
            yield self._others()
        told = tuple(dict.fromkeys(notes(answer)))
        if told:
            yield ""
            yield from (_text(line) for line in told)
        yield ""
        files = "comment.md, step-summary.md, junit.xml, report.md, summary.json"
        yield Text(f"Run folder: {clean_text(self.folder)} ({files})", no_wrap=True, overflow="ignore")

    def _targets(self) -> Table:
        table = _table(
            "operation", "loss", "came back", "left of it", "baseline", "regressed", "fix", "verdict"
        )
        for t in self.validation.targets:
            times = (t.baseline_ns_per_op, t.regressed_ns_per_op, t.fix_ns_per_op)
            table.add_row(
                _text(t.op),
                _lines(change(t.loss)),
                _lines(recovered(t), style="bold"),
                _lines(change(t.remaining)),
                *(_text(units.format_time(value)) for value in times),
                _text(WORDS[t.outcome], style=_STYLES[t.outcome]),
            )
        return table

    def _others(self) -> Table:
        table = _table("other operation", "fix against regressed", "verdict")
        for o in self.validation.others:
            table.add_row(
                _text(o.op),
                _text(change(o.change)),
                _text(OTHER_WORDS[o.outcome], style=_OTHER_STYLES.get(o.outcome, "")),
            )
        return table


def _lines(text: str, style: str = "") -> Text:
    """An estimate above its interval."""
    estimate, _, interval = text.partition(" [")
    below = f"\n[{clean_text(interval)}" if interval else ""
    return Text.assemble((clean_text(estimate), style), below)


def _text(text: str, style: str = "") -> Text:
    return Text(clean_text(text, 1000), style=style)


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(_text(column), overflow="fold")
    return table
