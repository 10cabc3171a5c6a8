"""Reader of Markdown tables: versions in rows or columns, units in headings or cells, ± and changes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from markdown_it import MarkdownIt

from investigator.audit import cells
from investigator.audit.figures import (
    NAME_LIMIT,
    Figure,
    Notes,
    Row,
    Sheet,
    Stated,
    Unit,
    version_in,
    version_name,
)
from investigator.errors import UsageError
from investigator.text import short_text

MAX_CHARACTERS = 1 << 19
_MAX_COLUMNS = 60

Kind = Literal[
    "version", "change", "addon", "addon_version", "host", "runs", "low", "high", "skip", "value", "label"
]
_KINDS: tuple[tuple[Kind, str], ...] = (
    ("skip", r"^v8\b|\babi\b|node-?api|\bnapi\b|\bsize\b|\bmi?b\b|\brank\b|\brss\b|\bdate\b"),
    ("skip", r"^status|^notes?$|^#$"),
    ("change", r"\bvs\.?(\s|$)|change|delta|\bdiff|relative|speed-?up|Δ|regress|improve"),
    ("change", r"^[+-]?%$|slower|faster"),
    ("addon_version", r"(addon|library|driver|package|better-sqlite3\S*) (version|release)"),
    ("addon", r"\baddon|\blibrary|\bdriver|\bpackage|better-sqlite3|\bmodule"),
    ("host", r"\bhost|\bmachine|\bcpu\b(?! time)|\brunner|hardware"),
    ("runs", r"^(runs|samples|iterations|rounds|n)$"),
    ("version", r"^node(\.?js)?(\s*versions?)?$|^versions?$|^runtime|^binary$|^command$"),
    ("low", r"^min\b|^lowest"),
    ("high", r"^max\b|^highest"),
)
_PLAIN_NAMES = {"mean", "average", "avg", "median", "time", "ops", "throughput", "result", "value", "rate"}
_UNIT_WORDS = re.compile(
    r"[\[(][^\])]{0,20}[\])]|\b(?:ops?|operations|calls|rows|queries)?\s*(?:/|\bper\b)\s*s(?:ec(?:ond)?)?\b"
    r"|\b(?:ops|ns|µs|us|ms|secs?|seconds)\b",
    re.IGNORECASE,
)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a table."""

    number: int
    """Line of the file, from 1."""
    cells: tuple[str, ...]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """One table with the heading above it."""

    heading: str
    head: Line
    body: tuple[Line, ...]


class _Found:
    """What the tables of one file gave so far."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.figures: list[Figure] = []
        self.rows: list[Row] = []
        self.stated: list[Stated] = []


def read_markdown(text: str, name: str, notes: Notes) -> Sheet:
    """Read every table that compares versions; a table that names none is left out and noted.

    Raises:
        UsageError: the text is longer than any report.
    """
    if len(text) > MAX_CHARACTERS:
        raise UsageError(
            f"{name} is no JSON and no CSV of a known kind, and too long for Markdown "
            f"({len(text):,} characters, at most {MAX_CHARACTERS:,}); cut out its tables."
        )
    tables = list(find_tables(text))
    several = len({table.head.cells for table in tables}) < len(tables)
    found = _Found(notes)
    for table in tables:
        _read_table(table, found, setting=short_text(table.heading, NAME_LIMIT) if several else "")
    return Sheet(
        name=name,
        format="markdown",
        figures=tuple(found.figures),
        rows=tuple(found.rows),
        stated=tuple(found.stated),
        remarks=notes.remarks(),
    )


def find_tables(text: str) -> Iterator[Table]:
    """Every table of a text, as GitHub would find it."""
    # Cells are wanted as they are written; and inline markup is where hostile text takes long.
    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    heading, kind = "", ""
    rows: list[Line] = []
    cells_of_row: list[str] = []
    for token in parser.parse(text):
        if token.type == "inline" and kind == "heading_open":
            heading = cells.plain(token.content)
        elif token.type == "inline" and kind in {"th_open", "td_open"}:
            cells_of_row.append(token.content)
        elif token.type == "table_open":
            rows = []
        elif token.type == "tr_open":
            cells_of_row = []
            rows.append(Line(number=token.map[0] + 1 if token.map else 0, cells=()))
        elif token.type == "tr_close":
            rows[-1] = Line(number=rows[-1].number, cells=tuple(cells_of_row[:_MAX_COLUMNS]))
        elif token.type == "table_close" and len(rows) > 1:
            yield Table(heading=heading, head=rows[0], body=tuple(rows[1:]))
        kind = token.type


def _read_table(table: Table, found: _Found, *, setting: str) -> None:
    kinds = [_kind(text) for text in table.head.cells]
    across = {
        column: version
        for column, text in enumerate(table.head.cells)
        if kinds[column] is None and (version := version_in(cells.plain(text)))
    }
    if len(across) > 1:
        _versions_across(table, across, found, setting)
        return
    down = _version_column(table, kinds)
    if down is None:
        found.notes.add(
            "the table names no versions to compare and was left out", f"line {table.head.number}"
        )
        return
    _versions_down(table, down, kinds, found, setting)


def _kind(heading: str) -> Kind | None:
    """What a column holds, by its heading; None where only its cells can tell."""
    text = cells.plain(heading)
    return next((kind for kind, pattern in _KINDS if re.search(pattern, text, re.IGNORECASE)), None)


def _version_column(table: Table, kinds: Sequence[Kind | None]) -> int | None:
    named = [column for column, kind in enumerate(kinds) if kind == "version"]
    if named:
        return named[0]
    for column in range(min(2, len(kinds))):
        versions = [version_in(cells.plain(_cell(line, column))) for line in table.body]
        if kinds[column] in {None, "addon"} and sum(version is not None for version in versions) > 1:
            return column
    return None


def _versions_across(table: Table, across: Mapping[int, str], found: _Found, setting: str) -> None:
    """One operation a row, one version a column."""
    for version in across.values():
        found.rows.append(Row(version=version, place=found.notes.place(f"line {table.head.number}")))
    for line in table.body:
        label = next((cells.plain(c) for i, c in enumerate(line.cells) if i not in across and c.strip()), "")
        for column, version in across.items():
            # The unit may stand in the column's heading, in the row's, or above the table.
            named = (table.head.cells[column], label, table.head.cells[0], table.heading)
            unit, scale = next((u for u in map(cells.unit_of, named) if u[0] != "unknown"), ("unknown", 1.0))
            read = cells.read_cell(_cell(line, column), unit, scale)
            if read is not None:
                where = f"line {line.number}, {cells.plain(table.head.cells[column])}"
                _keep(found, read, version, _op(label), setting, where)


def _versions_down(
    table: Table, down: int, kinds: Sequence[Kind | None], found: _Found, setting: str
) -> None:
    """One version a row; further columns are operations, or facts of the row."""
    units = [cells.unit_of(text) for text in table.head.cells]
    full = _completed(table, kinds, units)
    values = [column for column, kind in enumerate(full) if kind == "value" and column != down]
    labels = [column for column, kind in enumerate(full) if kind == "label" and column != down]
    for line in table.body:
        version = version_name(cells.plain(_cell(line, down)))
        found.rows.append(_row(version, line, full, found.notes))
        prefix = " ".join(_op(_cell(line, column)) for column in labels)
        for column in values:
            read = cells.read_cell(_cell(line, column), *units[column])
            if read is None:
                continue
            own = _op(table.head.cells[column])
            op = " ".join(part for part in (prefix, own) if part) or "value"
            where = f"line {line.number}, {cells.plain(table.head.cells[column])}"
            extremes = _extremes(line, full, units) if len(values) == 1 else {}
            _keep(found, read, version, op, setting, where, count=_count(line, full), **extremes)
            _keep_stated(found, line, table, column, full, version, op, setting)


def _completed(table: Table, kinds: Sequence[Kind | None], units: Sequence[tuple[Unit, float]]) -> list[Kind]:
    """Columns that their heading does not tell are values if most of their cells are numbers."""
    full: list[Kind] = []
    for column, kind in enumerate(kinds):
        texts = [text for line in table.body if (text := _cell(line, column)).strip(" -\u2013\u2014")]
        numbers = sum(cells.read_cell(text, *units[column]) is not None for text in texts)
        guessed: Kind = "value" if numbers * 2 > len(texts) else "label" if texts else "skip"
        full.append(guessed if kind is None else kind)
    return full


def _row(version: str, line: Line, kinds: Sequence[Kind], notes: Notes) -> Row:
    facts = {
        kind: short_text(cells.plain(_cell(line, column)), NAME_LIMIT) or None
        for column, kind in enumerate(kinds)
        if kind in {"addon", "addon_version", "host"}
    }
    addon = facts.get("addon")
    release = facts.get("addon_version") or (version_in(addon) if addon else None)
    place = notes.place(f"line {line.number}")
    return Row(version=version, place=place, host=facts.get("host"), addon=addon, addon_version=release)


def _extremes(line: Line, kinds: Sequence[Kind], units: Sequence[tuple[Unit, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for column, kind in enumerate(kinds):
        if kind in {"low", "high"} and (read := cells.read_cell(_cell(line, column), *units[column])):
            found[kind] = read.value
    return found


def _count(line: Line, kinds: Sequence[Kind]) -> int | None:
    texts = [cells.plain(_cell(line, column)) for column, kind in enumerate(kinds) if kind == "runs"]
    number = cells.number_in(texts[0]) if texts else None
    return int(number) if number is not None and 0 < number < 1e9 else None


def _keep(
    found: _Found,
    read: cells.Cell,
    version: str,
    op: str,
    setting: str,
    where: str,
    *,
    count: int | None = None,
    low: float | None = None,
    high: float | None = None,
) -> None:
    if read.half_width is not None and low is None and high is None:
        low, high = max(read.value - read.half_width, read.value * 1e-6), read.value + read.half_width
    place = found.notes.place(where)
    if read.about:
        found.notes.add(f"{cells.plain(op)} of {version} is only given as about {read.value:,.6g}", where)
    found.figures.append(
        Figure(
            version=version,
            op=op,
            setting=setting,
            value=read.value,
            unit=read.unit,
            low=low,
            high=high,
            count=count,
            place=place,
        )
    )
    if read.change_pct is not None:
        found.stated.append(
            Stated(version=version, op=op, setting=setting, change_pct=read.change_pct, place=place)
        )


def _keep_stated(
    found: _Found,
    line: Line,
    table: Table,
    column: int,
    kinds: Sequence[Kind],
    version: str,
    op: str,
    setting: str,
) -> None:
    """A change column belongs to the value column before it."""
    after = column + 1
    if after >= len(kinds) or kinds[after] != "change":
        return
    change = cells.read_change(_cell(line, after))
    if change is not None:
        place = found.notes.place(f"line {line.number}, {cells.plain(table.head.cells[after])}")
        found.stated.append(Stated(version=version, op=op, setting=setting, change_pct=change, place=place))


def _cell(line: Line, column: int) -> str:
    return line.cells[column] if column < len(line.cells) else ""


def _op(heading: str) -> str:
    """Name of an operation without its unit: ``select`` for ``SELECT ops/sec``; empty for ``Mean [ms]``."""
    name = " ".join(_UNIT_WORDS.sub(" ", cells.plain(heading)).lower().split()).strip(" :/-")
    return "" if name in _PLAIN_NAMES else short_text(name, NAME_LIMIT)
