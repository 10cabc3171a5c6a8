"""Attributions as a report says them: texts, nothing laid out yet."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from investigator import units
from investigator.attribution.layers import LAYER_WORDS, Attribution, Cause, LayerShare, Method
from investigator.text import clean_text, short_text

MOST_SYMBOLS = 8


class PartView(msgspec.Struct, frozen=True, kw_only=True):
    """One layer of one finding, by one method."""

    layer: str
    method: str
    before: str
    after: str
    delta: str
    share: str
    interval: str


class SymbolView(msgspec.Struct, frozen=True, kw_only=True):
    """A function whose own time changed."""

    name: str
    layer: str
    before: str
    after: str
    delta: str


class FindingCollectorView(msgspec.Struct, frozen=True, kw_only=True):
    """The collector in one environment, the operation alone in its process."""

    environment: str
    pause: str
    scavenges: str
    full: str
    helpers: str
    external: str


class LayersView(msgspec.Struct, frozen=True, kw_only=True):
    """One finding explained."""

    op: str
    candidate: str
    layer: str
    """Word for the layer; ``unknown`` and ``mixed`` are answers too."""
    sentence: str
    change: str
    interval: str
    delta: str
    parts: tuple[PartView, ...]
    symbols: tuple[SymbolView, ...]
    causes: tuple[str, ...]
    rejected: tuple[str, ...]
    notes: tuple[str, ...]
    changed: tuple[str, ...]
    """What else differs between the two sides."""
    evidence: tuple[str, ...]
    collector: tuple[FindingCollectorView, ...]


def layers_views(attributions: Sequence[Attribution], names: Mapping[str, str]) -> tuple[LayersView, ...]:
    """Texts of all attributions; `names` are the short names of environments."""
    return tuple(_view(a, names) for a in attributions)


def _view(found: Attribution, names: Mapping[str, str]) -> LayersView:
    return LayersView(
        op=short_text(found.op, 64),
        candidate=names.get(found.candidate, short_text(found.candidate, 80)),
        layer=LAYER_WORDS[found.layer] if found.recurred else "withdrawn",
        sentence=clean_text(found.reason, 600),
        change=units.format_percent(found.change_pct),
        interval=units.format_interval(found.ci_low_pct, found.ci_high_pct),
        delta=_signed_time(found.delta_ns_per_op),
        parts=tuple(_parts(found.methods)),
        symbols=tuple(
            SymbolView(
                name=clean_text(symbol.name, 120),
                layer=LAYER_WORDS.get(symbol.layer, clean_text(symbol.layer, 40)),
                before=units.format_time(symbol.baseline_ns_per_op),
                after=units.format_time(symbol.candidate_ns_per_op),
                delta=_signed_time(symbol.ns_per_op),
            )
            for symbol in found.symbols[:MOST_SYMBOLS]
        ),
        causes=tuple(_cause(cause) for cause in found.causes if cause.confirmed),
        rejected=(
            *(_cause(cause) for cause in found.causes if not cause.confirmed),
            *(clean_text(text, 600) for text in found.rejected),
        ),
        notes=tuple(clean_text(text, 600) for text in _notes(found)),
        changed=tuple(clean_text(text, 200) for text in found.changed),
        evidence=tuple(clean_text(text, 300) for text in found.evidence),
        collector=tuple(
            _collector(names.get(identifier, short_text(identifier, 80)), figures)
            for identifier, figures in found.gc.items()
        ),
    )


def _collector(name: str, figures: Mapping[str, float]) -> FindingCollectorView:
    def count(key: str) -> str:
        return f"{figures[key]:.3g}" if key in figures else units.MISSING

    return FindingCollectorView(
        environment=name,
        pause=units.format_time(figures.get("pause_ns_per_op")),
        scavenges=count("scavenges_per_million_calls"),
        full=count("mark_sweeps_per_million_calls"),
        helpers=units.format_time(figures.get("helper_cpu_ns_per_op")),
        external=units.format_bytes(figures.get("external_bytes")),
    )


def _parts(methods: Sequence[Method]) -> Iterator[PartView]:
    for method in methods:
        for name, layer in sorted(method.layers.items(), key=lambda item: -abs(item[1].share)):
            yield _part(name, method.name, layer)


def _part(name: str, method: str, layer: LayerShare) -> PartView:
    return PartView(
        layer=LAYER_WORDS.get(name, name),
        method=method,
        before=units.format_time(layer.baseline_ns_per_op),
        after=units.format_time(layer.candidate_ns_per_op),
        delta=_signed_time(layer.ns_per_op),
        share=units.format_percent(layer.share * 100.0, signed=False),
        interval=units.format_interval(layer.ci_low * 100.0, layer.ci_high * 100.0),
    )


def _signed_time(elapsed_ns: float) -> str:
    text = units.format_time(elapsed_ns)
    return f"+{text}" if elapsed_ns > 0 else text


def _cause(cause: Cause) -> str:
    return clean_text(cause.text, 900)


def _notes(found: Attribution) -> Iterator[str]:
    for method in found.methods:
        if method.unavailable is not None:
            yield f"{method.name} could not be used: {method.unavailable}"
        if method.name in {"subtraction", "profile"}:
            yield from method.notes
    yield from found.warnings
