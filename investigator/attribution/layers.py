"""Words of attribution: layers, shares, causes, and the verdict on one finding."""

from typing import Literal

import msgspec

Layer = Literal["boundary", "engine", "gc", "native_core", "os"]
LAYERS: tuple[Layer, ...] = ("boundary", "engine", "gc", "native_core", "os")
LAYER_WORDS = {
    "boundary": "native boundary",
    "engine": "engine",
    "gc": "garbage collector",
    "native_core": "native core",
    "os": "operating system",
    "mixed": "mixed",
    "unknown": "unknown",
    "outside_core": "boundary and engine",
    "undivided": "running code",
    "unexplained": "unexplained",
}
"""What people read."""
Named = Literal["boundary", "engine", "gc", "native_core", "os", "mixed", "unknown"]
"""``mixed``: no layer holds more than half. ``unknown``: the evidence does not allow a name."""
MethodName = Literal["subtraction", "profile", "ablation", "swap"]
CauseKind = Literal["addon_source", "build", "v8_flag", "node", "bundled_library"]

ATTRIBUTION_SCHEMA = 1


class LayerShare(msgspec.Struct, frozen=True, kw_only=True):
    """What one layer contributes to the change of one operation."""

    baseline_ns_per_op: float
    candidate_ns_per_op: float
    ns_per_op: float
    """Candidate less baseline, mean over rounds."""
    share: float
    """Part of the whole change; 0.9 is nine tenths, negative where the layer changed the other way."""
    ci_low: float
    """95 % interval of the share, from the joint bootstrap over rounds."""
    ci_high: float


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """One way of dividing the change among the layers; empty where it could not be used."""

    name: MethodName
    layers: dict[str, LayerShare] = {}
    """By layer; subtraction has ``unexplained`` beside them, and ``outside_core`` (boundary and engine
    together) where no twin divides the two."""
    largest: str | None = None
    unavailable: str | None = None
    """Why it could not be used, one sentence."""
    notes: tuple[str, ...] = ()


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why the layer changed, with the test that it passed or failed."""

    kind: CauseKind
    name: str
    """Short: file and line, or flag."""
    text: str
    """One sentence with file and lines, flag, or library."""
    layer: Layer | None = None
    """Layer that the experiment acts on; None where that is open."""
    confirmed: bool
    """Whether an experiment (swap, ablation, rebuild) moved at least half of the change."""
    moved: float | None = None
    """Part of the change that the experiment moved."""
    moved_low: float | None = None
    moved_high: float | None = None


class Symbol(msgspec.Struct, frozen=True, kw_only=True):
    """A function whose own time per operation changed."""

    name: str
    layer: str
    baseline_ns_per_op: float
    candidate_ns_per_op: float
    ns_per_op: float
    """Candidate less baseline."""


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one finding."""

    op: str
    family: str
    baseline: str
    candidate: str
    recurred: bool
    """Whether the flag showed again in the explain rounds; a withdrawn one has no layer."""
    rounds: int
    change_pct: float
    ci_low_pct: float
    ci_high_pct: float
    confidence: float
    delta_ns_per_op: float
    layer: Named
    reason: str
    """One sentence: why this layer, or why none."""
    methods: tuple[Method, ...]
    methods_agree: bool
    causes: tuple[Cause, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    """Those that changed most, largest first."""
    gc: dict[str, dict[str, float]] = {}
    """Collector figures by environment; units in the keys."""
    rejected: tuple[str, ...] = ()
    """Candidate causes that were tested and do not explain it, one sentence each."""
    changed: tuple[str, ...] = ()
    """What else differs between the two sides: V8, bundled libraries, defaults, build."""
    addon_functions: tuple[str, ...] = ()
    """The addon's own functions on the operation's profile."""
    evidence: tuple[str, ...] = ()
    """Files of the run folder that hold the raw records."""
    warnings: tuple[str, ...] = ()


class Attributions(msgspec.Struct, frozen=True, kw_only=True):
    """attribution.json."""

    attributions: tuple[Attribution, ...]
