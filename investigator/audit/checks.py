"""What published figures leave open: one function a question, each answer with the fields it comes from."""

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from investigator import units
from investigator.audit.circumstances import CIRCUMSTANCES
from investigator.audit.evidence import (
    Evidence,
    Finding,
    field_of,
    number_text,
    places_of,
    rows_of,
    under_text,
    value_text,
)
from investigator.audit.figures import Figure, Sheet
from investigator.audit.suite import CALLS
from investigator.audit.weigh import Span, Weighed, alike

COLD_FACTOR = 1.5
"""First run over the median of the others from which a command was cold."""


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
                "right after filling the database, without warm-up or repetition",
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
                parts.append(
                    f"{version} {high.value / low.value:.2f}x ({number_text(low)} to {number_text(high)})"
                )
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
            f"({value_text(w.best[0].value, w.unit)}{under_text(w.best[0].setting)}, "
            f"{value_text(w.best[1].value, w.unit)}{under_text(w.best[1].setting)}), median against median "
            f"{units.format_percent(w.median_pct)}",
            places=tuple(figure.place for figure in w.best),
        )
        if w.low_pct < 0 < w.high_pct:
            yield Finding(
                check="settings_disagree",
                kind="against",
                text=f"{w.op}, {w.candidate} against {w.baseline}: {units.format_percent(w.low_pct)}"
                f"{under_text(w.low_setting)}, {units.format_percent(w.high_pct)}"
                f"{under_text(w.high_setting)}: the sign depends on the setting",
                places=places_of(evidence, w, (w.low_setting, w.high_setting)),
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
        places=places_of(evidence, w, (w.low_setting, w.high_setting)),
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
                f"{high.value / low.value:.2f}x ({number_text(low)} and {number_text(high)})",
                places=(low.place, high.place),
            )
    if evidence.weighed and not seen:
        yield Finding(
            check="no_control",
            kind="missing",
            text="no version was measured twice, so what the procedure itself varies by is unknown",
            places=tuple(field_of(row, "node_version") for row in rows_of(evidence)),
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
                places=(*own, *places_of(evidence, w, (w.low_setting, w.high_setting))),
            )


def _once(sheets: Sequence[Sheet], key: Callable[[Sheet], str]) -> list[Sheet]:
    return list({key(sheet): sheet for sheet in reversed(sheets)}.values())[::-1]


def _spread(values: Sequence[float]) -> float:
    return max(values) / min(values)


CHECKS: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
    claimed,
    passes,
    samples,
    spread_inside,
    best_against_best,
    intervals,
    itself,
    *CIRCUMSTANCES,
)


def check(evidence: Evidence) -> tuple[Finding, ...]:
    """Ask every question."""
    return tuple(finding for ask in CHECKS for finding in ask(evidence))
