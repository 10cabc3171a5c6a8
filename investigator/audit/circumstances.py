"""What surrounds published figures: order, days, machine, addon, version, unit, what was left out."""

import datetime as dt
import itertools
from collections.abc import Callable, Iterator, Sequence

from investigator.audit.evidence import Evidence, Finding, field_of, later_text, number_text, rows_of
from investigator.audit.figures import Figure, Row, version_key
from investigator.audit.weigh import Weighed, interleaved

MANY_DAYS_S = 36 * 3600


def order(evidence: Evidence) -> Iterator[Finding]:
    """Sequential or interleaved."""
    dated = sorted(
        ((row.measured_at, row) for row in rows_of(evidence) if row.measured_at is not None),
        key=lambda pair: pair[0],
    )
    if len({row.version for _, row in dated}) > 1:
        yield _order_of_times(dated)
    hyperfine = [s for s in evidence.sheets if s.format == "hyperfine"]
    if hyperfine:
        yield Finding(
            check="one_after_the_other",
            kind="against",
            text="versions were timed one after the other: hyperfine does all runs of one command before the "
            "next, so a drift of the machine counts as a difference",
            places=tuple(f.place for s in hyperfine for f in s.figures),
        )
    for w in evidence.leading:
        yield from _order_of_rows(evidence, w)
    tables = [
        row
        for sheet, row in evidence.rows
        if row.measured_at is None and sheet.format in {"markdown", "sqlite-benchmarks"}
    ]
    if tables:
        yield Finding(
            check="order_not_recorded",
            kind="missing",
            text="when and in which order the versions were timed is not recorded",
            places=tuple(row.place for row in tables),
        )


def _order_of_times(dated: Sequence[tuple[dt.datetime, Row]]) -> Finding:
    blocks = [version for version, _ in itertools.groupby(row.version for _, row in dated)]
    places = tuple(field_of(row, "timestamp") for _, row in dated)
    if len(blocks) > len(set(blocks)):
        return Finding(
            check="interleaved",
            kind="for",
            text=f"versions come back in the order of time ({' '.join(blocks[:12])})",
            places=places,
        )
    steps = [f"{dated[0][1].version} at {dated[0][0]:%Y-%m-%d %H:%M}"]
    for (before, _), (after, row) in itertools.pairwise(dated):
        steps.append(f"{row.version} {later_text((after - before).total_seconds())} later")
    return Finding(
        check="one_after_the_other",
        kind="against",
        text=f"versions were timed one after the other, by the times in the files: {', '.join(steps)}; what "
        "else changed on the machine in between counts as a difference of versions",
        places=places,
    )


def _order_of_rows(evidence: Evidence, w: Weighed) -> Iterator[Finding]:
    before, after = evidence.figures(w.op, w.baseline), evidence.figures(w.op, w.candidate)
    if not (before[0].order and after[0].order):
        return
    alternate = interleaved(before[0], after[0])
    yield Finding(
        check="interleaved" if alternate else "one_after_the_other",
        kind="for" if alternate else "against",
        text=f"{w.op}: runs of {w.baseline} and {w.candidate} "
        + ("alternate" if alternate else "stand in blocks, one version after the other"),
        places=(before[0].place, after[0].place),
    )


def days(evidence: Evidence) -> Iterator[Finding]:
    """Rows of different days."""
    dated = sorted((r for r in rows_of(evidence) if r.measured_at), key=lambda r: r.measured_at or 0)
    if len(dated) < 2 or dated[0].measured_at is None or dated[-1].measured_at is None:
        return
    apart_s = (dated[-1].measured_at - dated[0].measured_at).total_seconds()
    if apart_s > MANY_DAYS_S:
        yield Finding(
            check="different_days",
            kind="against",
            text=f"the rows are up to {apart_s / 86400:,.0f} days apart ({dated[0].version} on "
            f"{dated[0].measured_at:%Y-%m-%d}, {dated[-1].version} on {dated[-1].measured_at:%Y-%m-%d}): "
            "host, kernel and addon release may have changed with them",
            places=(field_of(dated[0], "timestamp"), field_of(dated[-1], "timestamp")),
        )


def host(evidence: Evidence) -> Iterator[Finding]:
    """The same machine, or not."""
    rows = rows_of(evidence)
    for what, names in (("host", {r.host for r in rows}), ("platform", {r.platform for r in rows})):
        known = sorted(name for name in names if name)
        if len(known) > 1:
            yield Finding(
                check="host_changes",
                kind="against",
                text=f"the {what} changes between rows: {', '.join(known[:6])}",
                places=tuple(field_of(r, "platform, arch") for r in rows),
            )
    if any(row.host is None for row in rows):
        yield Finding(
            check="host_not_recorded",
            kind="missing",
            text="the machine is not recorded (processor, kernel, load): whether it is the same in all rows "
            "cannot be seen",
            places=tuple(field_of(r, "platform, arch") for r in rows if r.host is None),
        )


def addon(evidence: Evidence) -> Iterator[Finding]:
    """The same addon release, or not."""
    rows = [row for sheet, row in evidence.rows if sheet.format not in {"hyperfine", "compare.js"}]
    releases = sorted({row.addon_version for row in rows if row.addon_version})
    names = sorted({row.addon for row in rows if row.addon})
    places = tuple(field_of(row, "results.*.library") for row in rows)
    if len(releases) > 1 or len(names) > 1:
        yield Finding(
            check="addon_changes",
            kind="against",
            text=f"the addon changes between rows: {', '.join((releases if releases[1:] else names)[:6])}",
            places=places,
        )
    missing = [row for row in rows if not row.addon_version]
    if not missing:
        return
    if names and any(row.addon is None for row in rows):
        yield Finding(
            check="addon_changes",
            kind="against",
            text=f"some rows name the addon ({', '.join(names[:3])}), others do not: the suite was changed "
            "between them",
            places=places,
        )
    named = f"named ({', '.join(names[:3])}) but its release is not recorded" if names else "not recorded"
    yield Finding(
        check="addon_not_recorded",
        kind="missing",
        text=f"the addon is {named}: the rows may be of different releases, which compile different code for "
        "different Node versions",
        places=tuple(field_of(row, "results.*.library") for row in missing),
    )


def node_version(evidence: Evidence) -> Iterator[Finding]:
    """Sides that name no Node version, such as old and new."""
    nameless = [v for v in evidence.versions if not version_key(v)]
    if nameless:
        yield Finding(
            check="version_not_recorded",
            kind="missing",
            text=f"which Node versions {' and '.join(nameless[:4])} are is not recorded",
            places=tuple(row.place for row in rows_of(evidence) if row.version in nameless)[:4],
        )


def unit(evidence: Evidence) -> Iterator[Finding]:
    """Figures whose unit, and with it which way is better, is not said."""
    for op in evidence.ops:
        if evidence.book.unit(op) == "unknown":
            yield Finding(
                check="unit_not_recorded",
                kind="missing",
                text=f"{op}: neither rate nor time is written beside the figures; is more better?",
                places=tuple(f.place for v in evidence.versions for f in evidence.figures(op, v)),
            )


def origin(evidence: Evidence) -> Iterator[Finding]:
    """Figures of a table that the raw files hold too, or do not."""
    raw = [f for s in evidence.book.sheets if s.format == "sqlite-benchmarks" for f in s.figures]
    for sheet in evidence.book.sheets:
        if sheet.format != "markdown" or not raw:
            continue
        for figure in sheet.figures:
            same = [f for f in raw if f.version == figure.version and f.op == figure.op]
            if same and figure.op in evidence.ops:
                yield _origin(figure, same)


def _origin(figure: Figure, raw: Sequence[Figure]) -> Finding:
    nearest = min(raw, key=lambda f: abs(f.value / figure.value - 1.0))
    exact = abs(nearest.value / figure.value - 1.0) < 1e-6
    text = f"{figure.op}, {figure.version}: {number_text(figure)} in the table is "
    text += (
        f"that of {nearest.setting}"
        if exact
        else f"in no file; the nearest is {number_text(nearest)} in {nearest.setting}"
    )
    return Finding(
        check="figure_origin",
        kind="for" if exact and nearest.setting == raw[0].setting else "against",
        text=text,
        places=(figure.place, nearest.place),
    )


def left_out(evidence: Evidence) -> Iterator[Finding]:
    """What the files hold that could not be used."""
    for sheet in evidence.book.sheets:
        for remark in sheet.remarks:
            yield Finding(
                check="entry_remark",
                kind="against",
                text=f"{remark.place.at}: {remark.text}",
                places=(remark.place,),
            )


CIRCUMSTANCES: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
    order,
    days,
    host,
    addon,
    node_version,
    unit,
    origin,
    left_out,
)
