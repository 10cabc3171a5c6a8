"""Reader of hyperfine's JSON export: times of whole processes in seconds, all runs of a command in a row."""

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from investigator.audit.figures import NAME_LIMIT, Figure, Notes, Row, Sheet, usable, version_in
from investigator.text import short_text

_MAX_COMMANDS = 500
_MAX_RUNS = 100_000


def is_hyperfine(data: object) -> bool:
    """Whether decoded JSON has the shape of an export."""
    results = data.get("results") if isinstance(data, dict) else None
    return isinstance(results, list) and any(isinstance(r, dict) and "command" in r for r in results)


def read_hyperfine(data: Mapping[str, object], name: str, notes: Notes) -> Sheet:
    """Read one export; the version of a row is looked for in its command and its parameters."""
    results = data["results"]
    entries = results[:_MAX_COMMANDS] if isinstance(results, list) else []
    figures = [f for index, entry in enumerate(entries) for f in _entry(index, entry, notes)]
    return Sheet(
        name=name,
        format="hyperfine",
        figures=_one_operation(figures),
        rows=tuple(Row(version=f.version, place=f.place) for f in figures),
        remarks=notes.remarks(),
    )


def _entry(index: int, entry: object, notes: Notes) -> Iterator[Figure]:
    where = f"results[{index}]"
    command = entry.get("command") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(command, str):
        notes.add("has no command and was left out", where)
        return
    samples = _times(entry.get("times"), where, notes)
    value = usable(entry.get("mean")) if not samples else float(np.mean(samples))
    if value is None:
        notes.add("has neither times nor a usable mean and was left out", where)
        return
    _note_exit_codes(entry.get("exit_codes"), where, notes)
    version = _version(command, entry.get("parameters"))
    yield Figure(
        version=version or short_text(command, NAME_LIMIT),
        op=_without_version(command, version),
        value=value,
        unit="time",
        samples=samples,
        low=usable(entry.get("min")),
        high=usable(entry.get("max")),
        place=notes.place(f"{where}.{'times' if samples else 'mean'}"),
    )


def _times(times: object, where: str, notes: Notes) -> tuple[float, ...]:
    if not isinstance(times, list):
        return ()
    numbers = [usable(value) for value in times[:_MAX_RUNS]]
    for position, number in enumerate(numbers):
        if number is None:
            notes.add("is no positive number and was left out", f"{where}.times[{position}]")
    return tuple(number for number in numbers if number is not None)


def _note_exit_codes(codes: object, where: str, notes: Notes) -> None:
    if isinstance(codes, list) and (failed := [code for code in codes if code != 0]):
        notes.add(f"{len(failed)} of {len(codes)} runs did not end with exit code 0", f"{where}.exit_codes")


def _version(command: str, parameters: object) -> str | None:
    texts = [str(value)[:200] for value in parameters.values()] if isinstance(parameters, dict) else []
    found = [version_in(text) for text in texts] or []
    return next((version for version in found if version), None) or version_in(command.replace("/", " "))


def _without_version(command: str, version: str | None) -> str:
    text = command[:400] if version is None else re.sub(rf"v?{re.escape(version)}", "*", command[:400])
    return short_text(text, NAME_LIMIT)


def _one_operation(figures: Sequence[Figure]) -> tuple[Figure, ...]:
    """Commands that differ in more than a version are compared all the same: so does hyperfine."""
    versions = {figure.version for figure in figures}
    operations = [{f.version for f in figures if f.op == op} for op in {figure.op for figure in figures}]
    if len(versions) < 2 or any(len(shared) > 1 for shared in operations):
        return tuple(figures)
    return tuple(
        Figure(**{field: getattr(f, field) for field in f.__struct_fields__} | {"op": "command"})
        for f in figures
    )
