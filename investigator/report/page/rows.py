"""Rows of the page's tables, from the view."""

from collections.abc import Iterator, Sequence

from investigator import units
from investigator.report import validation as words
from investigator.report.layers_view import LayersView
from investigator.report.shapes import View
from investigator.text import clean_text, short_text
from investigator.validate.shapes import Validation

Row = Sequence[str]


def undecided_rows(view: View) -> Iterator[Row]:
    """Operation, candidate, what would decide."""
    return ((change.op, change.candidate, change.remedy) for change in view.undecided)


def part_rows(found: LayersView) -> Iterator[Row]:
    """Layers of a finding by both methods."""
    return ((p.layer, p.method, p.before, p.after, p.delta, p.share, p.interval) for p in found.parts)


def published_header(view: View) -> Row:
    """Versions, then candidates."""
    return ("operation", *(e.short for e in view.environments), *(f"{c} is" for c in view.candidates))


def published_rows(view: View) -> Iterator[Row]:
    """Best round and spread, and the verdict of the published rule."""
    for family in view.warm:
        for row in family.rows:
            yield (
                row.op,
                *("failed" if c.rate == "failed" else f"{c.best} ({c.spread})" for c in row.cells),
                *("-" if change is None else change.published for change in row.changes),
            )


def detail_rows(view: View) -> Iterator[Row]:
    """What lies behind each cell."""
    for family in view.warm:
        for row in family.rows:
            for environment, cell in zip(view.environments, row.cells, strict=True):
                yield (
                    row.op,
                    environment.short,
                    cell.rounds,
                    cell.time or cell.rate,
                    cell.cpu,
                    cell.gc,
                    cell.spread,
                    cell.disturbed,
                )


def failure_rows(view: View) -> Iterator[Row]:
    """What could not be measured, and why."""
    return ((f.environment, f.op or "everything", f.stage, f.reason) for f in view.failures)


def environment_rows(view: View) -> Iterator[Row]:
    """Versions of everything that ran."""
    for e in view.environments:
        name = f"{e.short} (baseline)" if e.baseline else e.short
        yield (name, e.id, e.node, e.v8, e.abi, e.napi, e.addon or "-", e.flavor or "-", e.node_flags or "-")


def digest_rows(view: View) -> Iterator[Row]:
    """What was built, by digest."""
    for e in view.environments:
        digests = (e.node_sha256, e.binding_sha256, e.sqlite3_object_sha256)
        yield (e.short, *(digest[:16] or "-" for digest in digests), e.compiler or "-")


def flag_groups(view: View) -> Iterator[tuple[str, str]]:
    """Names of the versions that share their compiler flags, and the flags."""
    same: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for environment in view.environments:
        if environment.flags:
            same.setdefault(environment.flags, []).append(environment.short)
    for flags, names in same.items():
        yield ", ".join(names), "\n".join(f"{source}: {line}" for source, line in flags)


def validation_sides(found: Validation) -> Iterator[tuple[str, str]]:
    """The sides of a validation and what a pass needs."""
    return ((name, clean_text(text)) for name, text in words.sides(found))


def validation_notes(found: Validation) -> Iterator[str]:
    """What the tables do not say."""
    return (clean_text(text, 1000) for text in words.notes(found))


def target_rows(found: Validation) -> Iterator[Row]:
    """How much of each loss came back."""
    for target in found.targets:
        times = (target.baseline_ns_per_op, target.regressed_ns_per_op, target.fix_ns_per_op)
        yield (
            short_text(target.op, 64),
            words.change(target.loss),
            words.recovered(target),
            words.change(target.remaining),
            *map(units.format_time, times),
            words.WORDS[target.outcome],
        )


def other_rows(found: Validation) -> Iterator[Row]:
    """What the fix did to everything else."""
    return (
        (short_text(other.op, 64), words.change(other.change), words.OTHER_WORDS[other.outcome])
        for other in found.others
    )
