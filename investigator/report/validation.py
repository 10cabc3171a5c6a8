"""The answer of `investigate validate` as Markdown: section of report.md, issue comment, step summary."""

from collections.abc import Iterable, Iterator, Sequence

from investigator import units
from investigator.report.tables import markdown_table as table
from investigator.text import code_span, escape_markdown
from investigator.validate.shapes import Change, Other, Recovery, Validation

_LIMIT = 1000
WORDS = {"pass": "pass", "fail": "fail", "invalid": "invalid", "cannot_tell": "cannot tell"}
OTHER_WORDS = {
    "ok": "not slower",
    "slower": "slower",
    "below_floor": "slower, below the layout floor",
    "undecided": "cannot tell",
    "invalid": "invalid",
    "failed": "fails",
    "not_measured": "not measured",
}


def section(validation: Validation) -> Iterator[str]:
    """Yield the blocks that stand on top of report.md, below its headline."""
    yield "## Does the fix bring it back"
    yield from _body(validation)


def comment(validation: Validation, tool: str, again: str, where: str) -> str:
    """Write the comment for an issue or pull request.

    Args:
        validation: the answer.
        tool: name and version of this program.
        again: the command that repeats the run.
        where: processor and system.
    """
    measured = (
        f"Measured on {_text(where)}: all sides interleaved, fresh processes in every round, two of them for "
        f"the regressed side. Repeat it with {code_span(again, 2000)}. Written by {_text(tool)}."
    )
    parts = [
        f"### {WORDS[validation.outcome].capitalize()}: {_text(validation.fix)}",
        _text(validation.headline),
        *_body(validation),
        measured,
    ]
    return "\n\n".join(parts) + "\n"


def step_summary(validation: Validation) -> str:
    """Write the summary of a step of GitHub Actions; it is appended to what other steps wrote."""
    head = f"## investigate validate: {WORDS[validation.outcome]}"
    return "\n\n".join((head, _text(validation.headline), *_body(validation))) + "\n\n"


def recovered(target: Recovery) -> str:
    """``96 % [94, 98]``."""
    if target.recovered_pct is None:
        return units.MISSING
    estimate = f"{target.recovered_pct:.0f} %"
    if target.recovered_low_pct is None or target.recovered_high_pct is None:
        return estimate
    return f"{estimate} [{target.recovered_low_pct:.0f}, {target.recovered_high_pct:.0f}]"


def change(value: Change) -> str:
    """``+114 % [+110 to +120]``."""
    if value.change_pct is None:
        return units.MISSING
    if value.ci_low_pct is None or value.ci_high_pct is None:
        return units.format_percent(value.change_pct)
    interval = units.format_interval(value.ci_low_pct, value.ci_high_pct)
    return f"{units.format_percent(value.change_pct)} [{interval}]"


def needs(target: Recovery) -> str:
    """What would decide a target that is undecided; empty for the others."""
    if target.outcome != "cannot_tell" or target.rounds_needed is None:
        return ""
    return (
        f"{target.rounds_needed} more round{'' if target.rounds_needed == 1 else 's'} would probably decide"
    )


def sides(validation: Validation) -> tuple[tuple[str, str], ...]:
    """The three sides and the criterion, for people."""

    def on(text: str, label: str) -> str:
        engine = validation.v8.get(label, "")
        return f"{text}, V8 {engine}" if engine else text

    return (
        ("baseline", on(validation.baseline, "baseline")),
        ("regressed", on(validation.regressed, "regressed")),
        ("fix", on(validation.fix, "fix")),
        *((("addon", validation.addon),) if validation.addon else ()),
        ("a pass needs", validation.criterion),
    )


def notes(validation: Validation) -> Iterator[str]:
    """Yield what the tables do not say: problems, warnings, what would decide."""
    yield from validation.problems
    for target in validation.targets:
        yield from (f"{target.op}: {text}" for text in (*target.warnings, needs(target)) if text)
    yield from (f"{other.op}: {other.reason}" for other in validation.listed)


def _body(validation: Validation) -> Iterator[str]:
    yield "\n".join(f"- {_text(name)}: {_text(text)}" for name, text in sides(validation))
    if validation.targets:
        yield _targets(validation.targets)
    told = list(notes(validation))
    if told:
        yield "\n".join(f"- {_text(text)}" for text in told)
    if validation.others:
        count = len(validation.others)
        yield (
            f"<details><summary>{count} other operation{'' if count == 1 else 's'}, fix against regressed"
            f"</summary>\n\n{_others(validation.others)}\n\n</details>"
        )


def _targets(targets: Sequence[Recovery]) -> str:
    return table(
        ("operation", "loss", "came back", "left of it", "baseline", "regressed", "fix", "verdict"),
        (
            (
                code_span(t.op),
                _text(change(t.loss)),
                f"**{_text(recovered(t))}**",
                _text(change(t.remaining)),
                *(
                    _text(units.format_time(value))
                    for value in (t.baseline_ns_per_op, t.regressed_ns_per_op, t.fix_ns_per_op)
                ),
                _text(WORDS[t.outcome]),
            )
            for t in targets
        ),
        right=range(4, 7),
    )


def _others(others: Iterable[Other]) -> str:
    return table(
        ("operation", "change", "verdict"),
        ((code_span(o.op), _text(change(o.change)), _text(OTHER_WORDS[o.outcome])) for o in others),
    )


def _text(text: str) -> str:
    return escape_markdown(text, _LIMIT)
