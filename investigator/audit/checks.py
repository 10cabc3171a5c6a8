"""What published figures leave open: one function a question, each answer with the fields it comes from."""

import datetime as dt
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np

from investigator import units
from investigator.audit.book import Book
from investigator.audit.figures import Figure, Place, Row, Sheet, Unit, version_key
from investigator.audit.suite import CALLS, SUITE_ROW
from investigator.audit.weigh import Span, Weighed, alike, interleaved

Kind = Literal["against", "missing", "for"]
"""``against`` weakens the figures, ``missing`` is not recorded, ``for`` strengthens them."""
MANY_DAYS_S = 36 * 3600
MOST_OPS = 8
"""Operations that are looked at one by one where nothing is claimed; the others are in the changes."""
COLD_FACTOR = 1.5
"""First run over the median of the others from which a command was cold."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the figures can, cannot or do not say."""

    check: str
    """Name of the check; stable."""
    kind: Kind
    text: str
    """One sentence."""
    places: tuple[Place, ...]
    """Where it was read; empty only for what no file holds."""


class Evidence:
    """What the checks look at."""

    def __init__(self, book: Book, weighed: Sequence[Weighed]) -> None:
        self.book = book
        self.weighed = tuple(weighed)
        claimed = [w for w in weighed if w.claim is not None]
        by_op = {w.op: w for w in reversed(weighed)}
        self.ops = tuple(dict.fromkeys(w.op for w in weighed))[: None if claimed else MOST_OPS]
        """Operations that are looked at one by one: without a claim those with the largest changes."""
        self.leading = tuple(claimed) or tuple(by_op[op] for op in self.ops)
        """The claimed changes; without a claim the largest of each operation."""
        versions = dict.fromkeys(v for w in weighed for v in (w.baseline, w.candidate))
        self.versions = tuple(sorted(versions, key=version_key))
        """Versions that are weighed, oldest first."""
        self.sheets = [s for s in book.sheets if any(row.version in versions for row in s.rows)]
        """Files that hold a weighed version."""
        self.rows = [(s, row) for s in self.sheets for row in s.rows if row.version in versions]
        """What they say of the weighed versions."""

    def figures(self, op: str, version: str) -> list[Figure]:
        """Every figure of one operation on one version."""
        return [figure for found in self.book.cells(op, version).values() for figure in found]


def passes(evidence: Evidence) -> Iterator[Finding]:
    """One sample or many, cold or warm."""
    for sheet in _once(evidence.sheets, lambda sheet: sheet.format):
        same = [s for s in evidence.sheets if s.format == sheet.format]
        places = tuple(f.place for s in same for f in s.figures if f.op in evidence.ops)
        if sheet.format == "sqlite-benchmarks":
            calls = ", ".join(
                f"{CALLS[op]:,} {op} call{'' if CALLS[op] == 1 else 's'}"
                for op in evidence.ops
                if op in CALLS
            )
            yield Finding(
                check="one_cold_pass",
                kind="against",
                text="each figure is one cold pass: the files hold one number for each operation and "
                f"configuration; by the suite's published script it times {calls or 'a few calls'} once, "
                f"right "
                "after filling the database, without warm-up or repetition",
                places=places,
            )
        elif sheet.format == "markdown" and not any(f.count for s in same for f in s.figures):
            yield Finding(
                check="number_of_runs",
                kind="missing",
                text="the table does not say how many runs are behind a figure, nor whether cold or warm",
                places=places,
            )


def samples(evidence: Evidence) -> Iterator[Finding]:
    """How many samples there are, and whether the first of them are slower."""
    for op, version in itertools.product(evidence.ops, evidence.versions):
        for figure in evidence.figures(op, version):
            if not figure.samples:
                continue
            number = len(figure.samples)
            yield Finding(
                check="samples",
                kind="for" if number >= 10 else "against",
                text=f"{op}, {version}: {number} run{'' if number == 1 else 's'}, each a process of its own"
                + (f", spread {_spread(figure.samples):.2f}x" if number > 1 else ""),
                places=(figure.place,),
            )
            if figure.unit == "time" and number >= 4:
                yield from _first_run(op, figure)


def _first_run(op: str, figure: Figure) -> Iterator[Finding]:
    ratio = figure.samples[0] / float(np.median(figure.samples[1:]))
    if ratio >= COLD_FACTOR:
        yield Finding(
            check="first_run_cold",
            kind="against",
            text=f"{op}, {figure.version}: the first run took {ratio:.2f} times the median of the others, is "
            "part of the mean: it was cold",
            places=(figure.place,),
        )


def spread_inside(evidence: Evidence) -> Iterator[Finding]:
    """How far the settings of one run of one version lie apart."""
    for op in evidence.ops:
        parts, places = [], []
        settings = 0
        for version in evidence.versions:
            for file in dict.fromkeys(f.place.file for f in evidence.figures(op, version)):
                figures = [f for f in evidence.figures(op, version) if f.place.file == file and f.setting]
                if len({figure.setting for figure in figures}) < 2:
                    continue
                low, high = (choose(figures, key=lambda f: f.value) for choose in (min, max))
                settings = max(settings, len(figures))
                parts.append(f"{version} {high.value / low.value:.2f}x ({_number(low)} to {_number(high)})")
                places += [low.place, high.place]
        if parts:
            yield Finding(
                check="spread_inside_run",
                kind="against",
                text=f"{op}: one version differs from itself inside a single run, over up to {settings} "
                f"configurations: {', '.join(parts)}",
                places=tuple(places),
            )


def best_against_best(evidence: Evidence) -> Iterator[Finding]:
    """What remains of a change when the best figures are compared, and whether settings disagree."""
    for w in evidence.leading:
        if w.settings < 2:
            continue
        only = "only " if abs(w.best_pct) < abs(w.published_pct) else ""
        yield Finding(
            check="best_against_best",
            kind="for" if alike(w.asked_pct, w.best_pct) else "against",
            text=f"{w.op}, {w.candidate} against {w.baseline}: best against best {only}"
            f"{units.format_percent(w.best_pct)} "
            f"({_value(w.best[0].value, w.unit)}{_under(w.best[0].setting)}, "
            f"{_value(w.best[1].value, w.unit)}{_under(w.best[1].setting)}), median against median "
            f"{units.format_percent(w.median_pct)}",
            places=tuple(figure.place for figure in w.best),
        )
        if w.low_pct < 0 < w.high_pct:
            yield Finding(
                check="settings_disagree",
                kind="against",
                text=f"{w.op}, {w.candidate} against {w.baseline}: {units.format_percent(w.low_pct)}"
                f"{_under(w.low_setting)}, {units.format_percent(w.high_pct)}{_under(w.high_setting)}: "
                f"the sign depends on the setting",
                places=_places(evidence, w, (w.low_setting, w.high_setting)),
            )


def order(evidence: Evidence) -> Iterator[Finding]:
    """Sequential or interleaved."""
    dated = sorted(
        ((row.measured_at, row) for row in _rows(evidence) if row.measured_at is not None),
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
    places = tuple(_field(row, "timestamp") for _, row in dated)
    if len(blocks) > len(set(blocks)):
        return Finding(
            check="interleaved",
            kind="for",
            text=f"versions come back in the order of time ({' '.join(blocks[:12])})",
            places=places,
        )
    steps = [f"{dated[0][1].version} at {dated[0][0]:%Y-%m-%d %H:%M}"]
    for (before, _), (after, row) in itertools.pairwise(dated):
        steps.append(f"{row.version} {_later((after - before).total_seconds())} later")
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
    dated = sorted((r for r in _rows(evidence) if r.measured_at), key=lambda r: r.measured_at or 0)
    if len(dated) < 2 or dated[0].measured_at is None or dated[-1].measured_at is None:
        return
    apart_s = (dated[-1].measured_at - dated[0].measured_at).total_seconds()
    if apart_s > MANY_DAYS_S:
        yield Finding(
            check="different_days",
            kind="against",
            text=f"the rows are up to {apart_s / 86400:,.0f} days apart ({dated[0].version} on "
            f"{dated[0].measured_at:%Y-%m-%d}, {dated[-1].version} on {dated[-1].measured_at:%Y-%m-%d}): "
            f"host, "
            "kernel and addon release may have changed with them",
            places=(_field(dated[0], "timestamp"), _field(dated[-1], "timestamp")),
        )


def host(evidence: Evidence) -> Iterator[Finding]:
    """The same machine, or not."""
    rows = _rows(evidence)
    for what, names in (("host", {r.host for r in rows}), ("platform", {r.platform for r in rows})):
        known = sorted(name for name in names if name)
        if len(known) > 1:
            yield Finding(
                check="host_changes",
                kind="against",
                text=f"the {what} changes between rows: {', '.join(known[:6])}",
                places=tuple(_field(r, "platform, arch") for r in rows),
            )
    if any(row.host is None for row in rows):
        yield Finding(
            check="host_not_recorded",
            kind="missing",
            text="the machine is not recorded (processor, kernel, load): whether it is the same in all rows "
            "cannot be seen",
            places=tuple(_field(r, "platform, arch") for r in rows if r.host is None),
        )


def addon(evidence: Evidence) -> Iterator[Finding]:
    """The same addon release, or not."""
    rows = [row for sheet, row in evidence.rows if sheet.format not in {"hyperfine", "compare.js"}]
    releases = sorted({row.addon_version for row in rows if row.addon_version})
    names = sorted({row.addon for row in rows if row.addon})
    places = tuple(_field(row, "results.*.library") for row in rows)
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
        places=tuple(_field(row, "results.*.library") for row in missing),
    )


def node_version(evidence: Evidence) -> Iterator[Finding]:
    """Sides that name no Node version, such as old and new."""
    nameless = [v for v in evidence.versions if not version_key(v)]
    if nameless:
        yield Finding(
            check="version_not_recorded",
            kind="missing",
            text=f"which Node versions {' and '.join(nameless[:4])} are is not recorded",
            places=tuple(row.place for row in _rows(evidence) if row.version in nameless)[:4],
        )


def intervals(evidence: Evidence) -> Iterator[Finding]:
    """Whether a figure comes with anything that tells its noise; whether a change's interval holds zero."""
    for op in evidence.ops:
        bare = [
            f
            for version in evidence.versions
            for f in evidence.figures(op, version)
            if not f.samples and f.low is None
        ]
        if bare:
            yield Finding(
                check="no_interval",
                kind="missing",
                text=f"{op}: no figure has an interval, a spread or single runs beside it",
                places=tuple(f.place for f in bare),
            )
    for w in evidence.leading:
        if w.span is not None:
            yield _interval(evidence, w, w.span)


def _interval(evidence: Evidence, w: Weighed, span: Span) -> Finding:
    how = {
        "interleaved samples": "by alternating runs",
        "separate samples": "by the runs of each side, which tell nothing of a drift between the sides",
        "stated spread": "by the stated spreads, lowest against highest",
        "settings as repetitions": f"if the {w.settings} settings are taken as repetitions, which they "
        "are not",
    }[span.method]
    holds_zero = span.low_pct <= 0 <= span.high_pct
    doubtful = holds_zero or span.method == "settings as repetitions"
    return Finding(
        check="interval",
        kind="against" if doubtful else "for",
        text=f"{w.op}, {w.candidate} against {w.baseline}: "
        f"{units.format_interval(span.low_pct, span.high_pct)} % {how}"
        + (": no change is among it" if holds_zero else ""),
        places=_places(evidence, w, (w.low_setting, w.high_setting)),
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


def itself(evidence: Evidence) -> Iterator[Finding]:
    """A version measured more than once: the noise of the whole procedure."""
    seen = False
    for op, version in itertools.product(evidence.ops, evidence.versions):
        repeated = {s: f for s, f in evidence.book.cells(op, version).items() if len(f) > 1}
        for setting, figures in itertools.islice(repeated.items(), 1):
            seen = True
            low, high = (choose(figures, key=lambda f: f.value) for choose in (min, max))
            yield Finding(
                check="version_against_itself",
                kind="against" if high.value / low.value > 1.05 else "for",
                text=f"{op}: {version} against itself{f' under {setting}' if setting else ''} differs by "
                f"{high.value / low.value:.2f}x ({_number(low)} and {_number(high)})",
                places=(low.place, high.place),
            )
    if evidence.weighed and not seen:
        yield Finding(
            check="no_control",
            kind="missing",
            text="no version was measured twice, so what the procedure itself varies by is unknown",
            places=tuple(_field(row, "node_version") for row in _rows(evidence)),
        )


def claimed(evidence: Evidence) -> Iterator[Finding]:
    """Whether the claimed change is what the figures give, and where."""
    for w in evidence.weighed:
        if w.claim is None:
            continue
        own = (w.claim.place,) if w.claim.place else ()
        where = f"{w.op}, {w.candidate} against {w.baseline}"
        if w.located:
            first = w.located[0]
            under = f" under {first.setting}" if first.setting else ""
            yield Finding(
                check="claim_located",
                kind="for",
                text=f"{where}: {w.claim.text} is {first.candidate:,.6g} over {first.baseline:,.6g}{under} "
                f"({len(w.located)} of {w.settings} settings give it)",
                places=(*own, *(place for found in w.located for place in found.places)),
            )
        else:
            yield Finding(
                check="claim_not_located",
                kind="against",
                text=f"{where}: no two figures under the same setting give {w.claim.text}; they give "
                f"{units.format_percent(w.low_pct)} to {units.format_percent(w.high_pct)}",
                places=(*own, *_places(evidence, w, (w.low_setting, w.high_setting))),
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
    text = f"{figure.op}, {figure.version}: {_number(figure)} in the table is "
    text += (
        f"that of {nearest.setting}"
        if exact
        else f"in no file; the nearest is {_number(nearest)} in {nearest.setting}"
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


CHECKS: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
    claimed,
    passes,
    samples,
    spread_inside,
    best_against_best,
    intervals,
    itself,
    order,
    days,
    host,
    addon,
    node_version,
    unit,
    origin,
    left_out,
)


def check(evidence: Evidence) -> tuple[Finding, ...]:
    """Ask every question."""
    return tuple(finding for ask in CHECKS for finding in ask(evidence))


def _rows(evidence: Evidence) -> list[Row]:
    return [row for _, row in evidence.rows]


def _field(row: Row, fields: str) -> Place:
    """Where a JSON file of the suite has, or would have, these facts; elsewhere the row itself."""
    return msgspec.structs.replace(row.place, at=fields) if row.place.at == SUITE_ROW else row.place


def _places(evidence: Evidence, w: Weighed, settings: Sequence[str]) -> tuple[Place, ...]:
    return tuple(
        figure.place
        for setting in dict.fromkeys(settings)
        for version in (w.baseline, w.candidate)
        for figure in evidence.book.cells(w.op, version).get(setting, ())
    )


def _once(sheets: Sequence[Sheet], key: Callable[[Sheet], str]) -> list[Sheet]:
    return list({key(sheet): sheet for sheet in reversed(sheets)}.values())[::-1]


def _spread(values: Sequence[float]) -> float:
    return max(values) / min(values)


def _number(figure: Figure) -> str:
    return _value(figure.value, figure.unit)


def _value(value: float, unit: Unit) -> str:
    if unit == "time":
        return units.format_time(value * 1e9)
    return units.format_rate(value) + ("/s" if unit == "rate" else "")


def _under(setting: str) -> str:
    return f" under {setting}" if setting else ""


def _later(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 2 * 86400:
        return (
            f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"
            if seconds >= 3600
            else f"{seconds / 60:.0f} min"
        )
    return f"{seconds / 86400:,.0f} days"
