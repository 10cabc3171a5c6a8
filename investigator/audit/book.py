"""The sheets side by side: which figures there are of one operation on one version under one setting."""

import statistics
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from investigator.audit.figures import Figure, Row, Sheet, Unit, version_key

Cells = Mapping[str, tuple[Figure, ...]]
"""Figures of one operation on one version, by setting in the order of the files."""


class Book:
    """All figures of an audit. Nothing in it is averaged: a cell holds every figure that was published."""

    def __init__(self, sheets: Sequence[Sheet]) -> None:
        self.sheets = tuple(sheets)
        self._tables = frozenset(sheet.name for sheet in sheets if sheet.format == "markdown")
        self._units: dict[str, Unit] = {}
        self._cells: dict[str, dict[str, dict[str, list[Figure]]]] = {}
        for sheet in sheets:
            for figure in sheet.figures:
                op = self._name(figure)
                of_op = self._cells.setdefault(op, {}).setdefault(figure.version, {})
                of_op.setdefault(figure.setting, []).append(figure)

    def _name(self, figure: Figure) -> str:
        """Figures of one name in different units are different things: nothing converts them."""
        unit = self._units.setdefault(figure.op, figure.unit)
        if unit == figure.unit:
            return figure.op
        name = f"{figure.op} ({figure.unit})"
        self._units[name] = figure.unit
        return name

    @property
    def ops(self) -> tuple[str, ...]:
        """Operations that at least two versions have, in the order of the files."""
        return tuple(op for op, versions in self._cells.items() if len(versions) > 1)

    @property
    def versions(self) -> tuple[str, ...]:
        """All versions, oldest first; names without a number in the order of the files."""
        found = dict.fromkeys(version for versions in self._cells.values() for version in versions)
        return tuple(sorted(found, key=_age))

    def versions_of(self, op: str) -> tuple[str, ...]:
        """Versions that have a figure of `op`, oldest first."""
        return tuple(sorted(self._cells.get(op, {}), key=_age))

    def unit(self, op: str) -> Unit:
        """Unit of all figures of `op`."""
        return self._units.get(op, "unknown")

    def published(self, op: str, version: str) -> Cells:
        """Figures by setting, those of tables too; empty where there are none."""
        found = self._cells.get(op, {}).get(version, {})
        return MappingProxyType({setting: tuple(figures) for setting, figures in found.items()})

    def cells(self, op: str, version: str) -> Cells:
        """Figures by setting; a table counts only where no file has the figures that it was made from."""
        every = self.published(op, version)
        raw = {s: tuple(f for f in found if f.place.file not in self._tables) for s, found in every.items()}
        own = {setting: figures for setting, figures in raw.items() if figures}
        return MappingProxyType(own) if own else every

    def rows(self, version: str) -> tuple[Row, ...]:
        """What the files say of a version beside its figures."""
        return tuple(row for sheet in self.sheets for row in sheet.rows if row.version == version)

    def find_version(self, text: str) -> str | None:
        """The version that `text` names: itself, or the only one of that line (``24``)."""
        if text in self.versions:
            return text
        near = [version for version in self.versions if version.startswith(f"{text}.")]
        return near[0] if len(near) == 1 else None


def _age(version: str) -> tuple[tuple[int, ...], bool]:
    """Oldest first; of names without a number ``new`` is the newest, whichever was printed first."""
    return version_key(version), version.lower() == "new"


def value_of(figures: Sequence[Figure]) -> float:
    """One value for a cell that was published several times: the median."""
    return float(statistics.median(figure.value for figure in figures))


def best_of(cells: Cells, unit: Unit) -> Figure:
    """The best figure of all settings; the highest one where the unit is unknown."""
    figures = [figure for found in cells.values() for figure in found]
    return (min if unit == "time" else max)(figures, key=lambda figure: figure.value)
