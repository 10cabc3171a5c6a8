"""The view as report.md: complete, and harmless wherever GitHub renders it.

Every text of the view goes through `escape_markdown`, `code_span` or `fence`; only the words in this file
are Markdown.
"""

from collections.abc import Iterable, Iterator, Sequence

from investigator.report import collected
from investigator.report.shapes import CellView, ChangeView, EnvironmentView, FamilyView, RowView, View
from investigator.report.tables import markdown_table as _table
from investigator.report.wording import FINDING_MARK
from investigator.text import code_span, escape_markdown, fence

_LIMIT = 1000
"""The view has cut its texts already; this only bounds what slips through."""


def render(view: View, answer: Iterable[str] = ()) -> str:
    """Write the report; ends with a newline. `answer` are blocks of Markdown that stand on top."""
    parts = [
        f"# {_text(view.title)}",
        f"**{escape_markdown(view.headline, len(view.headline))}**",
        *answer,
        _bullets(view.summary),
        *_warm(view),
        *_layers(view),
        *_reproductions(view),
        *_cold(view),
        *_published(view),
        *_other_pairs(view),
        *_details(view),
        *_collector(view),
        *_controls(view),
        *_failures(view),
        *_warnings(view),
        *_provenance(view),
        "## Method",
        "\n".join(f"- {_text(line)}" for line in view.method),
        *_rerun(view),
        f"Written by {_text(view.tool)}.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _warm(view: View) -> Iterator[str]:
    yield "## Result"
    for family in view.warm:
        yield f"### {_text(family.title)}"
        yield _family_table(view, family)
    yield "\n".join(f"- {_text(line)}" for line in view.legend)
    if view.undecided:
        yield "### What would decide"
        yield _table(
            ("operation", "candidate", "needs"),
            ((code_span(c.op), _text(c.candidate), _text(c.remedy)) for c in view.undecided),
        )


def _layers(view: View) -> Iterator[str]:
    if not view.layers:
        return
    yield "## Which layer"
    for found in view.layers:
        yield f"### {code_span(found.op)} on {_text(found.candidate)}: {_text(found.layer)}"
        yield (
            f"{_text(found.change)} ({_text(found.interval)}), {_text(found.delta)} per call. "
            f"{_text(found.sentence[:1].upper() + found.sentence[1:])}."
        )
        if found.parts:
            header = ("layer", "method", "before", "after", "change", "share", "95 % interval")
            rows = (
                tuple(map(_text, (p.layer, p.method, p.before, p.after, p.delta, p.share, p.interval)))
                for p in found.parts
            )
            yield _table(header, rows, right=range(2, 6))
        if found.symbols:
            yield _table(
                ("function (own time per call)", "layer", "before", "after", "change"),
                (
                    (code_span(s.name), *map(_text, (s.layer, s.before, s.after, s.delta)))
                    for s in found.symbols
                ),
                right=range(2, 5),
            )
        if found.collector:
            yield _text_table(collected.EXPLAINED_HEADER, collected.explained_rows(found), right=range(1, 6))
        lines = [
            *(f"Cause: {_text(text)}" for text in found.causes),
            *(f"Tested and rejected: {_text(text)}" for text in found.rejected),
            *(_text(text) for text in found.notes),
            *([f"Also different: {_text('; '.join(found.changed))}"] if found.changed else []),
            *(f"Raw records: {code_span(text)}" for text in found.evidence),
        ]
        yield "\n".join(f"- {line}" for line in lines)


def _reproductions(view: View) -> Iterator[str]:
    if not view.reproductions:
        return
    yield "## Reproduced without this tool"
    yield (
        "Each program was run on both sides before it was kept: one that does not show the change, in its "
        "direction and within a third of its size, is not shipped. `./run.sh` in the folder runs those "
        "that are."
    )
    yield _table(
        ("operation", "candidate", "finding", "program", "what it does", "kept", "because", "folder"),
        (
            (
                code_span(found.op),
                _text(found.candidate),
                _text(found.finding),
                code_span(name),
                _text(title),
                _text(shipped),
                _text(reason),
                code_span(found.folder),
            )
            for found in view.reproductions
            for name, title, shipped, reason in found.programs or (("-", "none", "", ""),)
        ),
    )
    notes = [(found.op, note) for found in view.reproductions for note in found.notes]
    if notes:
        yield "\n".join(f"- {code_span(op)}: {_text(note)}" for op, note in notes)


def _family_table(view: View, family: FamilyView) -> str:
    header = ["operation"]
    header += [f"{_version(environment)}<br>ops/sec, time" for environment in view.environments]
    for candidate in view.candidates:
        header += [f"{_text(candidate)}<br>change", "verdict"]
    header.append("noise")
    numbers = range(1, len(view.environments) + 1)
    return _table(header, (_family_row(row) for row in family.rows), right=numbers)


def _family_row(row: RowView) -> Sequence[str]:
    cells = [code_span(row.op), *(_cell(cell) for cell in row.cells)]
    for change in row.changes:
        cells += ["-", "-"] if change is None else [_change(change), _verdict(change)]
    return [*cells, _text(row.noise)]


def _version(environment: EnvironmentView) -> str:
    return f"{_text(environment.short)}{' (baseline)' if environment.baseline else ''}"


def _cell(cell: CellView) -> str:
    return _text(cell.rate) + (f"<br>{_text(cell.time)}" if cell.time else "")


def _change(change: ChangeView) -> str:
    return f"{_text(change.change)}<br>{_text(change.interval)}"


def _verdict(change: ChangeView) -> str:
    word = _text(change.verdict)
    return (
        f"**{word} {_text(change.mark)}**"
        if change.mark == FINDING_MARK
        else f"{word} {_text(change.mark)}".strip()
    )


def _cold(view: View) -> Iterator[str]:
    if not view.cold:
        return
    yield "## Cold: the first pass of a fresh process"
    yield (
        "Published figures are often a first pass. "
        + (
            f"{len(view.cold_differs)} of these tell something else than the warm passes above: "
            + ", ".join(f"{code_span(cold.op)} {_text(cold.candidate)}" for cold, _ in view.cold_differs)
            + "."
            if view.cold_differs
            else "None of these tells something else than the warm passes above."
        )
    )
    for family in view.cold:
        yield f"### {_text(family.title)} (cold)"
        yield _family_table(view, family)


def _published(view: View) -> Iterator[str]:
    yield "## By the published rule"
    yield (
        "Best of the rounds for each version, the spread of its rounds in brackets; a gap smaller than "
        "either spread is within noise. Shown for comparison with published tables; the verdicts above "
        "are ours."
    )
    header = ["operation", *(_text(environment.short) for environment in view.environments)]
    header += [f"{_text(candidate)} is" for candidate in view.candidates]
    yield _table(
        header,
        (
            [
                code_span(row.op),
                *(_text(c.rate if c.rate == "failed" else f"{c.best} ({c.spread})") for c in row.cells),
                *("-" if change is None else _text(change.published) for change in row.changes),
            ]
            for family in view.warm
            for row in family.rows
        ),
        right=range(1, len(view.environments) + 1),
    )


def _other_pairs(view: View) -> Iterator[str]:
    if view.predecessors:
        yield "## Each version against its predecessor"
        yield _pairs_table(view.predecessors)
    if view.twins:
        yield "## The baseline against itself"
        yield _pairs_table(view.twins)


def _pairs_table(changes: Iterable[ChangeView]) -> str:
    return _table(
        ("operation", "version", "against", "change", "interval", "CPU time", "verdict", "published"),
        (
            (
                code_span(change.op),
                _text(change.candidate),
                _text(change.against),
                _text(change.change),
                _text(change.interval),
                _text(change.cpu_change),
                _verdict(change),
                _text(change.published),
            )
            for change in changes
        ),
    )


def _details(view: View) -> Iterator[str]:
    yield "## Behind the figures"
    yield _table(
        ("operation", "version", "rounds", "time", "CPU time", "collector", "spread", "disturbed laps"),
        (
            (
                code_span(row.op),
                _text(environment.short),
                _text(cell.rounds),
                _text(cell.time or cell.rate),
                _text(cell.cpu),
                _text(cell.gc),
                _text(cell.spread),
                _text(cell.disturbed),
            )
            for family in view.warm
            for row in family.rows
            for environment, cell in zip(view.environments, row.cells, strict=True)
        ),
    )
    changes = [c for family in view.warm for row in family.rows for c in row.changes if c is not None]
    if changes:
        yield _table(
            ("operation", "candidate", "change", "confidence", "change in CPU time", "its interval"),
            (
                (
                    code_span(change.op),
                    _text(change.candidate),
                    _text(change.change),
                    _text(change.confidence),
                    _text(change.cpu_change),
                    _text(change.cpu_interval),
                )
                for change in changes
            ),
        )


def _collector(view: View) -> Iterator[str]:
    yield "## Garbage collection"
    yield f"{_text(collected.NOTE)}."
    header = collected.kinds_header(view)
    yield _text_table(header, collected.kinds_rows(view), right=range(1, len(header)))
    yield _text_table(collected.MEMORY_HEADER, collected.memory_rows(view))


def _text_table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    return _table(tuple(map(_text, header)), (tuple(map(_text, row)) for row in rows), right=right)


def _controls(view: View) -> Iterator[str]:
    if view.controls:
        yield "## Controls"
        yield _bullets(view.controls)


def _failures(view: View) -> Iterator[str]:
    yield "## Could not be measured"
    if not view.failures:
        yield "Nothing: every planned cell was measured."
        return
    yield _table(
        ("version", "operation", "stage", "reason"),
        (
            (
                _text(failure.environment),
                code_span(failure.op) or "everything",
                _text(failure.stage),
                _text(failure.reason),
            )
            for failure in view.failures
        ),
    )


def _warnings(view: View) -> Iterator[str]:
    if view.warnings:
        yield "## Warnings"
        yield "\n".join(
            f"- {_text(warning.text)} ({', '.join(code_span(place) for place in warning.where)})"
            for warning in view.warnings
        )


def _provenance(view: View) -> Iterator[str]:
    yield "## What ran"
    yield _table(
        ("version", "identifier", "Node", "V8", "ABI", "Node-API", "addon", "flavor", "node flags"),
        (
            (
                _version(e),
                code_span(e.id),
                *(_text(value) for value in (e.node, e.v8, e.abi, e.napi, e.addon or "-", e.flavor or "-")),
                code_span(e.node_flags) or "-",
            )
            for e in view.environments
        ),
    )
    yield _table(
        ("version", "node sha256", ".node sha256", "sqlite3.o sha256", "compiler"),
        (
            (
                _text(e.short),
                *(_digest(value) for value in (e.node_sha256, e.binding_sha256, e.sqlite3_object_sha256)),
                _text(e.compiler) or "-",
            )
            for e in view.environments
        ),
    )
    yield " ".join(f"{_text(sentence)}." for sentence in (view.objects, view.storage) if sentence)
    yield from _flags(view.environments)
    for title, facts in (
        ("Engine and isolation", view.engine),
        ("Host", view.host),
        ("Run", view.run),
    ):
        if facts:
            yield f"### {title}"
            yield _facts_table(facts)


def _flags(environments: Sequence[EnvironmentView]) -> Iterator[str]:
    if not any(environment.flags for environment in environments):
        return
    yield "### Compiler flags"
    same: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for environment in environments:
        if environment.flags:
            same.setdefault(environment.flags, []).append(environment.short)
    for flags, names in same.items():
        yield f"{', '.join(_text(name) for name in names)}:"
        yield fence("\n".join(f"{source}: {line}" for source, line in flags), 16_000)


def _rerun(view: View) -> Iterator[str]:
    yield "## Again"
    yield (
        f"Run folder: {code_span(view.folder)}. One row a timed pass: `measurements.csv`; "
        "for programs: `summary.json`."
    )
    yield fence("\n".join(f"# {purpose}\n{command}" for purpose, command in view.next_commands), 16_000)


def _facts_table(facts: Iterable[tuple[str, str]]) -> str:
    return _table(("fact", "value"), ((code_span(name), _text(value)) for name, value in facts))


def _bullets(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- {_text(name)}: {_text(text)}" for name, text in pairs)


def _digest(value: str) -> str:
    return code_span(value[:16]) or "-"


def _text(text: str) -> str:
    return escape_markdown(text, _LIMIT)
