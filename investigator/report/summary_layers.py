"""``attributions[]`` of summary.json: which layer each explained finding lies in."""

import msgspec

from investigator import units
from investigator.attribution.layers import Attribution, Cause, LayerShare, Method, Named, Symbol
from investigator.text import clean_text


class SummaryLayer(msgspec.Struct, frozen=True, kw_only=True):
    """One layer's part of a change."""

    baseline_ns_per_op: float | None
    """Time of the layer per operation in the baseline, ns."""
    candidate_ns_per_op: float | None
    """The same in the candidate, ns."""
    ns_per_op: float | None
    """Candidate less baseline, ns."""
    share: float | None
    """Part of the whole change, 1 for all of it; negative where the layer changed the other way."""
    ci_low: float | None
    """Lower end of the 95 % interval of the share."""
    ci_high: float | None
    """Upper end of it."""


class SummaryMethod(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two ways of dividing the change."""

    name: str
    """``subtraction`` or ``profile``."""
    layers: dict[str, SummaryLayer]
    """By layer; empty where the method could not be used."""
    unavailable: str | None
    """Why it could not be used."""
    notes: tuple[str, ...]
    """What limits it."""


class SummaryCause(msgspec.Struct, frozen=True, kw_only=True):
    """A cause that was looked at."""

    kind: str
    """``addon_source``, ``build``, ``v8_flag``, ``node`` or ``bundled_library``."""
    text: str
    """File and lines, flag, or library; one sentence."""
    confirmed: bool
    """Whether an experiment moved at least half of the change."""
    moved: float | None
    """Part of the change that the experiment moved; null where there was none."""
    moved_low: float | None
    """Lower end of its interval."""
    moved_high: float | None
    """Upper end of it."""


class SummarySymbol(msgspec.Struct, frozen=True, kw_only=True):
    """A function whose own time per operation changed."""

    name: str
    """As the profiler names it."""
    layer: str
    """Layer it counts to."""
    ns_per_op: float | None
    """Candidate less baseline, ns."""


class SummaryAttribution(msgspec.Struct, frozen=True, kw_only=True):
    """One finding that was measured again to explain it."""

    op: str
    """Name of the operation."""
    baseline: str
    """Identifier of the baseline environment."""
    candidate: str
    """Identifier of the environment that is judged."""
    recurred: bool
    """Whether the flag showed again; a withdrawn one has no layer."""
    rounds: int
    """Rounds of the explain phase."""
    change_pct: float | None
    """Change in time per operation in those rounds, percent."""
    delta_ns_per_op: float | None
    """The change in ns per operation."""
    layer: Named
    """``boundary``, ``engine``, ``gc``, ``native_core``, ``os``; ``mixed``; or ``unknown``."""
    reason: str
    """Why this layer, or why none."""
    layers: dict[str, SummaryLayer]
    """Parts of the change by the first method that could be used."""
    methods: tuple[SummaryMethod, ...]
    """Both methods."""
    methods_agree: bool
    """Whether both name the same largest layer with shares that overlap."""
    causes: tuple[SummaryCause, ...]
    """Causes that were tested."""
    symbols: tuple[SummarySymbol, ...]
    """Functions that changed most, largest first."""
    rejected: tuple[str, ...]
    """Candidate causes that do not explain it."""
    changed: tuple[str, ...]
    """What else differs between the two sides: V8, bundled libraries, V8's defaults, build."""
    gc: dict[str, dict[str, float | None]]
    """Collector figures by environment identifier; units in the keys."""
    evidence: tuple[str, ...]
    """Files of the run folder with the raw records."""
    warnings: tuple[str, ...]
    """What weakens this attribution."""


def summary_attribution(found: Attribution) -> SummaryAttribution:
    """One entry of ``attributions[]``; all texts bounded and clean."""
    methods = tuple(_method(method) for method in found.methods)
    return SummaryAttribution(
        op=clean_text(found.op, 200),
        baseline=clean_text(found.baseline, 200),
        candidate=clean_text(found.candidate, 200),
        recurred=found.recurred,
        rounds=found.rounds,
        change_pct=units.finite(found.change_pct),
        delta_ns_per_op=units.finite(found.delta_ns_per_op),
        layer=found.layer,
        reason=clean_text(found.reason, 600),
        layers=next((method.layers for method in methods if method.layers), {}),
        methods=methods,
        methods_agree=found.methods_agree,
        causes=tuple(_cause(cause) for cause in found.causes),
        symbols=tuple(_symbol(symbol) for symbol in found.symbols),
        rejected=_texts(found.rejected),
        changed=_texts(found.changed),
        gc={
            clean_text(name, 200): {key: units.finite(value) for key, value in figures.items()}
            for name, figures in found.gc.items()
        },
        evidence=_texts(found.evidence),
        warnings=_texts(found.warnings),
    )


def _texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(clean_text(text, 600) for text in texts)


def _method(method: Method) -> SummaryMethod:
    return SummaryMethod(
        name=method.name,
        layers={clean_text(name, 40): _layer(layer) for name, layer in method.layers.items()},
        unavailable=None if method.unavailable is None else clean_text(method.unavailable, 600),
        notes=_texts(method.notes),
    )


def _layer(layer: LayerShare) -> SummaryLayer:
    return SummaryLayer(
        baseline_ns_per_op=units.finite(layer.baseline_ns_per_op),
        candidate_ns_per_op=units.finite(layer.candidate_ns_per_op),
        ns_per_op=units.finite(layer.ns_per_op),
        share=units.finite(layer.share),
        ci_low=units.finite(layer.ci_low),
        ci_high=units.finite(layer.ci_high),
    )


def _cause(cause: Cause) -> SummaryCause:
    return SummaryCause(
        kind=cause.kind,
        text=clean_text(cause.text, 600),
        confirmed=cause.confirmed,
        moved=units.finite(cause.moved),
        moved_low=units.finite(cause.moved_low),
        moved_high=units.finite(cause.moved_high),
    )


def _symbol(symbol: Symbol) -> SummarySymbol:
    return SummarySymbol(
        name=clean_text(symbol.name, 300),
        layer=clean_text(symbol.layer, 40),
        ns_per_op=units.finite(symbol.ns_per_op),
    )
