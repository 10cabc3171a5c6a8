"""What `investigate compare` prints: a sentence, the table, what was not compared, what else differs."""

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from investigator import units
from investigator.compare.match import Compared, Outcome, Row, Seen, Size
from investigator.report.plain import plain
from investigator.report.wording import FLOOR_MARK
from investigator.store import TOOL, encode_json
from investigator.text import clean_text, short_text

COMPARE_SCHEMA = 1
_NAMED = 2
"""Findings named in the sentence; the table has them all."""
_REASONS = 12
_WORDS: dict[Outcome, str] = {
    "recurs": "recurs",
    "contradicts": "contradicts",
    "some_only": "not in all",
    "no_change": "no change",
    "undecided": "cannot tell",
    "not_compared": "not compared",
}
_STYLES = {"recurs": "bold", "contradicts": "red", "some_only": "yellow"}
_VERDICTS = {"no_change": "no change", "undecided": "cannot tell"}
_RULE = (
    "recurs: slower, or faster, in every run that takes part, at least two; contradicts: slower in one and "
    "faster in another; not in all: flagged in some only. Times are never pooled: each run is judged by its "
    "own rounds, and only changes stand side by side. size: quotient of the changes in the later run and in "
    f"the first, with what both intervals allow together. {FLOOR_MARK}: so small that the layout of the code "
    "alone may do it; it counts as a flag here, not as a finding."
)


def names(compared: Compared) -> tuple[str, ...]:
    """A short name of each run that is its own."""
    ids = [short_text(run.summary.run_id, 32) for run in compared.runs]
    return tuple(
        name if name and ids.count(name) == 1 else f"{place}: {name}" for place, name in enumerate(ids, 1)
    )


def headline(compared: Compared) -> str:
    """The answer in one or two sentences."""
    findings = [row for row in compared.rows if row.finding]
    together = sum(row.outcome != "not_compared" for row in compared.rows)
    if not together:
        pairs = _count(len(compared.rows), "pair")
        return f"Nothing could be compared: of {pairs} none is the same in two runs."
    recurring, partial, contrary, lost = (
        [row for row in findings if row.outcome == outcome]
        for outcome in ("recurs", "some_only", "contradicts", "not_compared")
    )
    tail = f" {_count(len(lost), 'finding')} could not be compared{_examples(lost)}." if lost else ""
    taking = len(findings) - len(lost)
    if not taking:
        return f"No finding among the {_count(together, 'pair')} that could be compared.{tail}"
    contradicting = f"{len(contrary)} {_verb(contrary, 'contradict')}" if contrary else "none contradicts"
    return (
        f"{len(recurring)} of {_count(taking, 'finding')} {_verb(recurring, 'recur')}{_examples(recurring)}; "
        f"{len(partial)} {_verb(partial, 'show')} in some runs only{_examples(partial)}; "
        f"{contradicting} another run{_examples(contrary)}.{tail}"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _verb(rows: Sequence[Row], verb: str) -> str:
    return f"{verb}s" if len(rows) == 1 else verb


def _examples(rows: Sequence[Row]) -> str:
    """The largest of them, in brackets."""
    shown = sorted(rows, key=_largest, reverse=True)[:_NAMED]
    told = [
        f"{clean_text(row.op, 60)} {clean_text(row.pair.partition(', ')[0], 80)} {_changes(row)}".strip()
        for row in shown
    ]
    return f" ({', '.join(told)}{', ...' if len(rows) > _NAMED else ''})" if told else ""


def _largest(row: Row) -> float:
    return max((abs(seen.change_pct or 0.0) for seen in row.seen if seen is not None), default=0.0)


def _changes(row: Row) -> str:
    return " and ".join(units.format_percent(seen.change_pct) for seen in row.seen if seen is not None)


def terminal(compared: Compared) -> RenderableType:
    """Everything, for a person."""
    return Group(*_terminal(compared))


def _terminal(compared: Compared) -> Iterator[RenderableType]:
    own = names(compared)
    order = list(_WORDS)
    flagged = sorted(
        (row for row in compared.rows if row.flagged and row.outcome != "not_compared"),
        key=lambda row: order.index(row.outcome),
    )
    yield Text(headline(compared), style="bold")
    yield Text("")
    if flagged:
        yield _findings(flagged, own)
        yield Text("")
    for outcome, said in (
        ("no_change", "no change in all runs that have them"),
        ("undecided", "flagged in no run, and at least one cannot tell"),
    ):
        rows = [row for row in compared.rows if row.outcome == outcome]
        if rows:
            yield Text(f"{_count(len(rows), 'pair')}: {said}.")
    yield from _not_compared(compared, own)
    yield from _differences(compared, own)
    yield Text("")
    yield Text(_RULE, style="dim")


def _findings(rows: Sequence[Row], own: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    tails = {row.pair.partition(", ")[2] for row in rows}
    common = f", {tails.pop()}" if len(tails) == 1 and tails != {""} else ""
    for column in ("operation", f"versions{clean_text(common, 60)}", *own, "size", ""):
        table.add_column(Text(column), overflow="fold")
    for row in rows:
        table.add_row(
            Text(clean_text(row.op, 80)),
            Text(clean_text(row.pair.removesuffix(common), 120)),
            *(Text(_seen(seen)) for seen in row.seen),
            Text("; ".join(_size(size, alone=len(row.seen) == 2) for size in row.sizes)),
            Text(_WORDS[row.outcome], style=_STYLES.get(row.outcome, "")),
        )
    return table


def _seen(seen: Seen | None) -> str:
    if seen is None:
        return units.MISSING
    verdict = _VERDICTS.get(seen.verdict, seen.verdict)
    small = f" {FLOOR_MARK}" if seen.flagged and not seen.finding else ""
    layer = f", {seen.layer}" if seen.layer else ""
    change = units.format_percent(seen.change_pct)
    return f"{verdict}{small} {change} [{units.format_interval(seen.ci_low_pct, seen.ci_high_pct)}]{layer}"


def _size(size: Size, *, alone: bool) -> str:
    which = "" if alone else f"run {size.run}: "
    told = "" if size.overlap else ", differs"
    return f"{which}x{size.factor:.2f} [{size.low:.2f}, {size.high:.2f}]{told}"


def _not_compared(compared: Compared, own: Sequence[str]) -> Iterator[RenderableType]:
    """Reasons with the pairs they concern, findings by name."""
    reasons: dict[tuple[str, str], list[Row]] = {}
    for row in compared.rows:
        for name, why in zip(own, row.missing, strict=True):
            if why is not None:
                reasons.setdefault((name, why), []).append(row)
    if not reasons:
        return
    yield Text("")
    yield Text("Could not be compared", style="bold")
    for (name, why), rows in list(reasons.items())[:_REASONS]:
        lost = list(dict.fromkeys(clean_text(row.op, 60) for row in rows if row.finding))
        named = (
            f"; findings elsewhere: {', '.join(lost[:6])}{', ...' if len(lost) > 6 else ''}" if lost else ""
        )
        yield Text(f"{name}: {clean_text(why, 300)} ({_count(len(rows), 'pair')}{named})")
    if len(reasons) > _REASONS:
        yield Text(f"{len(reasons) - _REASONS} more reasons are in the JSON (--json).")


def _differences(compared: Compared, own: Sequence[str]) -> Iterator[RenderableType]:
    if not compared.differences:
        return
    yield Text("")
    yield Text("What else differs between the runs", style="bold")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("", *own):
        table.add_column(Text(column), overflow="fold")
    for difference in compared.differences:
        table.add_row(difference.what, *(Text(clean_text(value, 160)) for value in difference.values))
    yield table


def as_json(compared: Compared) -> str:
    """The same for programs: kind ``compare``; every row, also the unflagged ones."""
    body = {
        "schema": COMPARE_SCHEMA,
        "kind": "compare",
        "tool": TOOL,
        "headline": headline(compared),
        "runs": [
            {
                "name": name,
                "run_id": run.summary.run_id,
                "started_at": run.record.started_at,
                "tool": run.summary.tool,
            }
            for name, run in zip(names(compared), compared.runs, strict=True)
        ],
        "counts": {outcome: sum(row.outcome == outcome for row in compared.rows) for outcome in _WORDS},
        "rows": [_row_json(row) for row in compared.rows],
        "differences": [msgspec.to_builtins(difference) for difference in compared.differences],
    }
    return encode_json(plain(body)).decode()


def _row_json(row: Row) -> dict[str, object]:
    body: dict[str, object] = msgspec.to_builtins(row)
    return {**body, "sizes": [{**msgspec.to_builtins(s), "overlap": s.overlap} for s in row.sizes]}
