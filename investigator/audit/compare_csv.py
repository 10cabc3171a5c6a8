"""Reader of what compare.js of nodejs/node prints: one row a run, ``old`` and ``new`` alternating."""

import csv
import io
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from investigator.audit.figures import NAME_LIMIT, Figure, Notes, Place, Row, Sheet, usable, version_name
from investigator.errors import UsageError
from investigator.text import short_text

COLUMNS = ("binary", "filename", "configuration", "rate", "time")
_Samples = list[tuple[int, float, Place]]


def is_compare_csv(text: str) -> bool:
    """Whether the first line is the header that compare.js prints."""
    return _header(text.lstrip()[:200].partition("\n")[0])


def _header(line: str) -> bool:
    return tuple(cell.strip().strip('"').strip().lower() for cell in line.split(",")) == COLUMNS


def read_compare_csv(text: str, name: str, notes: Notes) -> Sheet:
    """Read one output; a broken line is left out and noted.

    Raises:
        UsageError: a line that is no CSV at all, such as one with a field of megabytes.
    """
    found: dict[tuple[str, str], _Samples] = defaultdict(list)
    reader = csv.reader(io.StringIO(text.strip("\ufeff \t\r\n")), skipinitialspace=True)
    try:
        next(reader)
        for cells in reader:
            _line(cells, reader.line_num, found, notes)
    except csv.Error as error:
        raise UsageError(f"{name} cannot be read as CSV at line {reader.line_num}: {error}.") from error
    figures = tuple(_figure(version, op, samples) for (version, op), samples in found.items())
    versions = {figure.version: figure.place for figure in figures}
    rows = tuple(Row(version=version, place=place) for version, place in versions.items())
    return Sheet(name=name, format="compare.js", figures=figures, rows=rows, remarks=notes.remarks())


def _line(cells: Sequence[str], number: int, found: dict[tuple[str, str], _Samples], notes: Notes) -> None:
    where = f"line {number}"
    if not cells:
        return
    if len(cells) != len(COLUMNS):
        notes.add(f"has {len(cells)} fields instead of {len(COLUMNS)} and was left out", where)
        return
    binary, file, configuration, rate, _ = cells
    try:
        value = usable(float(rate))
    except ValueError:
        value = None
    if value is None:
        notes.add("has no positive rate and was left out", where)
        return
    op = short_text(f"{file} {configuration}".strip(), NAME_LIMIT)
    found[version_name(binary), op].append((number, value, notes.place(f"{where}, rate")))


def _figure(version: str, op: str, samples: _Samples) -> Figure:
    return Figure(
        version=version,
        op=op,
        value=float(np.mean([value for _, value, _ in samples])),
        unit="rate",
        samples=tuple(value for _, value, _ in samples),
        order=tuple(number for number, _, _ in samples),
        place=samples[0][2],
    )
