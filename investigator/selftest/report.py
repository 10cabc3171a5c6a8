"""The result of a self-test: a value, and the tables made of it."""

import statistics
from collections.abc import Callable, Iterable, Sequence

import msgspec

from investigator.attribution.layers import LAYERS
from investigator.selftest.judge import SIZE_TOLERANCE, Outcome, place_of
from investigator.selftest.pilot import Rate
from investigator.selftest.trials import Options
from investigator.text import clean_text

SELFTEST_SCHEMA = 1

_NAMED = (*LAYERS, "mixed", "unknown")


class SelftestReport(msgspec.Struct, frozen=True, kw_only=True):
    """selftest.json: every trial with what was planted and what was found."""

    options: Options
    rates: tuple[Rate, ...]
    planned: int
    """Trials in all; fewer outcomes mean that it was interrupted."""
    outcomes: tuple[Outcome, ...]


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """One line by which the tool is judged."""

    text: str
    """What is demanded."""
    good: int
    of: int
    share: float
    """What part must be good, from 0 to 1."""

    @property
    def met(self) -> bool | None:
        """Whether it is; None where no trial speaks about it."""
        return None if self.of == 0 else self.good >= self.share * self.of


def criteria(outcomes: Sequence[Outcome]) -> tuple[Criterion, ...]:
    """The lines by which issue and README judge the tool."""
    sized = [o for o in outcomes if o.trial.size_pct is not None]
    large = [o for o in sized if (o.trial.size_pct or 0.0) >= 10]
    told = [o for o in large if o.layer_outcome != "not_explained"]
    five = [o for o in sized if o.trial.size_pct == 5]
    nothing = [o for o in outcomes if o.planted_layer is None]
    explained = [o for o in outcomes if o.planted_layer is not None and o.layer_outcome != "not_explained"]
    return (
        _criterion("10 % and more: detected", large, lambda o: o.detected, 1.0),
        _criterion("10 % and more: layer right", told, lambda o: o.layer_outcome == "right", 0.95),
        _criterion("planted: no wrong layer", explained, lambda o: o.layer_outcome != "wrong", 1.0),
        _criterion(
            f"10 % and more: size within {SIZE_TOLERANCE * 100:.0f} %",
            large,
            lambda o: o.size_right is True,
            1.0,
        ),
        _criterion("5 %: detected", five, lambda o: o.detected, 0.8),
        _criterion("nothing planted: nothing detected", nothing, lambda o: not o.detected, 1.0),
        _criterion("nothing planted: no layer named", nothing, lambda o: o.layer_outcome != "wrong", 1.0),
    )


def _criterion(
    text: str, outcomes: Sequence[Outcome], good: Callable[[Outcome], bool], share: float
) -> Criterion:
    return Criterion(text=text, good=sum(map(good, outcomes)), of=len(outcomes), share=share)


Row = tuple[str, ...]


def detection_table(outcomes: Sequence[Outcome]) -> tuple[Row, ...]:
    """By place and size: detected, layer, size. The first row holds the headings."""
    groups: dict[tuple[str, float | None], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.trial.place, outcome.trial.size_pct), []).append(outcome)
    return (
        (
            "planted in",
            "layer",
            "size",
            "trials",
            "detected",
            "layer right",
            "wrong",
            "unknown",
            "not explained",
            "measured / planted",
            "size within a fifth",
        ),
        *(
            _detection_row(place, size, rows)
            for (place, size), rows in sorted(groups.items(), key=lambda g: (g[0][0], g[0][1] or 0.0))
        ),
    )


def _detection_row(place: str, size: float | None, rows: Sequence[Outcome]) -> Row:
    counts = [o.layer_outcome for o in rows]
    ratios = [o.size_ratio for o in rows if o.size_ratio is not None]
    return (
        place,
        rows[0].planted_layer or "none",
        "" if size is None else f"{size:g} %",
        str(len(rows)),
        f"{sum(o.detected for o in rows)} of {len(rows)}",
        *(str(counts.count(kind)) for kind in ("right", "wrong", "unknown", "not_explained")),
        _spread(ratios) if ratios else _changes(rows),
        f"{sum(o.size_right is True for o in rows)} of {len(rows)}" if ratios else "",
    )


def _spread(ratios: Sequence[float]) -> str:
    middle = f"{statistics.median(ratios):.2f}"
    return middle if len(ratios) == 1 else f"{middle} ({min(ratios):.2f} to {max(ratios):.2f})"


def _changes(rows: Sequence[Outcome]) -> str:
    found = [o.measured_pct for o in rows if o.measured_pct is not None]
    return ", ".join(f"{value:+.1f} %" for value in found[:4])


def layer_table(outcomes: Sequence[Outcome]) -> tuple[Row, ...]:
    """Confusion matrix: rows the planted layer, columns what was named. The first row holds the headings."""
    rows: list[Row] = [("planted", *_NAMED, "not explained", "not detected")]
    for planted in (*LAYERS, None):
        own = [o for o in outcomes if o.planted_layer == planted]
        if not own:
            continue
        seen = [o for o in own if o.detected]
        told: list[str | None] = [o.named for o in seen if o.layer_outcome != "not_explained"]
        counts = [
            *(told.count(name) for name in _NAMED),
            len(seen) - len(told),
            len(own) - len(seen),
        ]
        rows.append((planted or "none", *(str(count) for count in counts)))
    return tuple(rows)


def trial_table(outcomes: Iterable[Outcome]) -> tuple[Row, ...]:
    """Every trial. The first row holds the headings."""
    return (
        (
            "trial", "operation", "seed", "verdict", "rounds", "screen", "interval", "explained", "layer",
            "reason",
        ),
        *(
            (
                o.trial.label,
                o.trial.op,
                str(o.trial.seed),
                "withdrawn" if o.withdrawn else o.verdict,
                str(o.rounds),
                _pct(o.screen_pct),
                f"{_pct(o.ci_low_pct)} to {_pct(o.ci_high_pct)}" if o.ci_low_pct is not None else "",
                _pct(o.explained_pct),
                o.named or "",
                clean_text(o.reason, 120),
            )
            for o in outcomes
        ),
    )  # fmt: skip


def _pct(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f} %"


def verdict_lines(report: SelftestReport) -> tuple[str, ...]:
    """One sentence for each criterion, and one for what it cost."""
    words = {True: "met", False: "MISSED", None: "no trial"}
    lines = [
        f"{words[c.met]}: {c.text}, {c.good} of {c.of} (wanted: {c.share * 100:.0f} %)"
        for c in criteria(report.outcomes)
    ]
    times = [o.elapsed_s for o in report.outcomes if o.elapsed_s > 0]
    if times:
        lines.append(
            f"{len(report.outcomes)} of {report.planned} trials, "
            f"{statistics.mean(times):.0f} s each without explanation"
        )
    return tuple(lines)


def render_text(report: SelftestReport) -> str:
    """For the terminal: what is judged, the confusion matrix, and the table by place and size."""
    return (
        "\n\n".join(
            (
                "\n".join(verdict_lines(report)),
                _columns(layer_table(report.outcomes)),
                _columns(detection_table(report.outcomes)),
            )
        )
        + "\n"
    )


def render_markdown(report: SelftestReport) -> str:
    """The same with every trial and every pilot, as selftest.md."""
    parts = [
        "# Self-test",
        "\n".join(f"- {line}" for line in verdict_lines(report)),
        "## Named layer against planted layer",
        _table(layer_table(report.outcomes)),
        "## Detection and size",
        _table(detection_table(report.outcomes)),
        _places(report.outcomes),
        "## Pilots",
        _table(_rate_table(report.rates)),
        "## Trials",
        _table(trial_table(report.outcomes)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _rate_table(rates: Sequence[Rate]) -> tuple[Row, ...]:
    return (
        ("planted in", "operation", "units for each event", "measured", "interval"),
        *(
            (
                r.place,
                r.op,
                f"{r.millionths / 1e6:g}",
                _pct(r.change_pct),
                f"{_pct(r.ci_low_pct)} to {_pct(r.ci_high_pct)}",
            )
            for r in rates
        ),
    )


def _places(outcomes: Sequence[Outcome]) -> str:
    used = dict.fromkeys(o.trial.place for o in outcomes)
    first = {o.trial.place: o.trial for o in reversed(outcomes)}
    return "\n".join(f"- `{name}`: {place_of(first[name]).text}" for name in used)


def _table(rows: Sequence[Row]) -> str:
    head, *body = [[cell.replace("|", "&#124;") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _columns(rows: Sequence[Row]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
