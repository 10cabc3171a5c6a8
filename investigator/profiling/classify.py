"""The layer of a stack (design.md section 8, method 2): a pure function, innermost frame first.

::

    kernel under the collector                                    gc
    kernel                                                        os
    collector of V8                                               gc
    SQLite and its ciphers                                        native_core
    code that V8 generated, its builtins and compilers            engine
    the addon's C++, and whatever of node lies under it           boundary
    trampolines between JS and C++, both ways                     boundary
    V8's runtime entered from JS                                  engine
    libc, C++ library, nameless stubs                             as their caller

Two decisions that the design leaves open, for operations without an addon. Node's own C++ (``node::``, with
V8's API under it) is to JS what an addon is: **boundary**. The libraries bundled with Node (OpenSSL, zlib,
its SQLite, ...) do the work for which Node's C++ called: **native_core**, unless an addon or V8 itself did.
"""

import re
from collections import Counter
from functools import lru_cache
from typing import Literal

from investigator.attribution.layers import Layer
from investigator.profiling.stacks import Frame, Origin, Stack, Stacks

Kind = Literal[
    "kernel", "collector", "core", "generated", "addon", "trampoline", "compiler",
    "runtime", "node", "library", "bundled", "transparent", "root", "lost",
]  # fmt: skip

_HEAP_WORK = (
    "CollectGarbage|CollectAllGarbage|CollectAllAvailableGarbage|PreciseCollectAllGarbage|PerformGarbageColl|"
    "Scavenge|MarkCompact|Mark[A-Z]|MinorMark|EvacuateYoung|GarbageCollection|StartIncrementalMarking|"
    "FinalizeIncrementalMarking|ProcessNativeContexts|ProcessAllWeakReferences|ProcessWeak|IterateRoots|"
    "IterateWeak|IterateStackRoots|CompleteSweeping|EnsureSweepingCompleted|UpdateExternalString|"
    "UpdateReferences|UpdateYoung|ExternalStringTable|Sweep"
)
_COLLECTOR_CLASSES = (
    "Scavenge|RootScavenge|IterateAndScavenge|MarkCompact|MinorMark|YoungGenerationMark|MainMark|MarkingVisit|"
    "MarkingVerif|MarkingWorklist|MarkingState|ConcurrentMark|IncrementalMark|UnifiedHeapMark|Evacuat|"
    "FullEvacuat|PointersUpdating|PointerUpdat|RememberedSetUpdating|ToSpaceUpdating|UpdateUntyped|UpdateTyped|"
    "UpdatingItem|Sweeper|ArrayBufferSweeper|LiveObjectVisitor|GCTracer|GCCallbacks|ClearStringTable|"
    "InternalizedStringTableCleaner|StringTableCleaner|WeakListVisitor|VisitWeakList|EphemeronTable|"
    "PageEvacuat|MemoryReducer|ParallelClear|CppHeap|CppMarking|ParallelMark|CodeFlush|WeakCollection|"
    "TypedSlotSet|SlotSet|RememberedSet<|ConservativePinning|ConservativeStack|PretenuringHandler::Process|"
    "(?:Global|Traced)Handles::(?:Iterate|Process|PostGarbage|Update|Invoke|Compute|Reset|DeleteEmpty)"
)
_COLLECTOR = re.compile(
    rf"^(?:v8::internal::(?:\(anonymous namespace\)::)?(?:Heap::(?:{_HEAP_WORK})|{_COLLECTOR_CLASSES})"
    r"|cppgc::internal::(?!.*Alloc)|heap::base::)"
)
_COMPILER = re.compile(
    r"^v8::internal::(?:(?:compiler|maglev|turboshaft|baseline|interpreter|wasm|parsing)::|"
    r"(?:\(anonymous namespace\)::)?(?:Compiler|OptimizingCompile|OptimizedCompil|Turbofan|Maglev|Parser|"
    r"PreParser|Scanner|Bytecode|Interpreter|TieringManager|Deoptimiz|AstValue|AstRaw|AstNode|FeedbackVector|"
    r"Assembler|MacroAssembler|BaselineBatch|Liftoff|BackgroundCompile|UnoptimizedCompil))"
)
_TRAMPOLINE = re.compile(
    r"^Builtins_(?:CallApi|HandleApiCall|CallFunctionTemplate|JSEntry|JSConstructEntry|JSRunMicrotasksEntry)|"
    r"HandleApiCall|FunctionCallbackArguments|PropertyCallbackArguments"
)
_RUNTIME = re.compile(
    r"^(?:v8|v8impl|v8_\w+|crdtp|unibrow|icu\w*|absl|disasm|uv|node_napi_env__)::|^(?:napi|node_api|uv)_|^uv__"
)
_ROOT = re.compile(r"^(?:node::Start$|main$|_start$|__libc_start|start_thread$|clone3?$|\[root\]$)")
_TRANSPARENT = re.compile(
    r"^(?:std::|__gnu_cxx::|__cxa|__cxx|_Unwind|operator (?:new|delete)|__tls|_*mem(?:cpy|move|set|cmp|chr)|"
    r"_*str(?:len|cmp|ncmp)|(?:m|c|re)alloc$|free$|\[)"
)
_SQLITE = re.compile(r"^sqlite3(?:[A-Z_]|$)")


def classify(stack: Stack) -> Layer | None:
    """Layer in which the innermost frame of `stack` worked; None where the chain is broken before that shows.

    Broken are chains cut by code without frame pointers (libc), and nameless code outside of libraries.
    """
    if kind_of(stack.frames[-1]) == "kernel" and any(kind_of(f) == "collector" for f in stack.frames):
        # As in the pauses, which hold the kernel's work for them: page faults, returned memory.
        return "gc"
    inside: Kind | None = None
    """The innermost frame that says something, while it is open on whose behalf it worked."""
    for frame in reversed(stack.frames):
        kind = kind_of(frame)
        if (layer := _decided(kind, inside)) is not None:
            return layer
        if kind == "lost":
            return None
        if kind == "root":
            # The event loop or a thread, no JS in between.
            return "native_core" if inside in _BUNDLED else "engine"
        inside = _OUTWARD.get((inside, kind), inside)
    return None


_OUTWARD: dict[tuple[Kind | None, Kind], Kind] = {
    (None, "runtime"): "runtime",
    (None, "node"): "node",
    (None, "library"): "library",
    # What V8 does under Node's own C++ is part of that, and a library that V8 calls is part of V8.
    ("runtime", "node"): "node",
    ("library", "runtime"): "runtime",
    ("library", "node"): "bundled",
}
"""What a stack counts as when the next frame outward is seen; else it stays."""
_BUNDLED = frozenset({"library", "bundled"})
_SETTLED: dict[Kind, Layer] = {
    "kernel": "os",
    "collector": "gc",
    "core": "native_core",
    "addon": "boundary",
    "compiler": "engine",
}


def _decided(kind: Kind, inside: Kind | None) -> Layer | None:
    """The layer, if a frame of `kind` outside of `inside` settles it."""
    if kind not in {"trampoline", "generated"}:
        return _SETTLED.get(kind)
    if inside in _BUNDLED:
        return "native_core"
    return "boundary" if kind == "trampoline" or inside == "node" else "engine"


_BY_ORIGIN: dict[Origin, Kind] = {
    "kernel": "kernel",
    "core": "core",
    "js": "generated",
    "libc": "transparent",
    "unknown": "lost",
    "addon": "addon",
}
_IN_NODE: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (_TRANSPARENT, "transparent"),
    (_TRAMPOLINE, "trampoline"),
    (re.compile(r"^Builtins_"), "generated"),
    (_SQLITE, "core"),
    (_COLLECTOR, "collector"),
    (_COMPILER, "compiler"),
    (re.compile(r"^node::"), "node"),
    (_RUNTIME, "runtime"),
)


@lru_cache(maxsize=1 << 16)
def kind_of(frame: Frame) -> Kind:
    """What a frame is by its origin and name."""
    if frame.origin in {"libc", "node"} and _ROOT.match(frame.symbol):
        return "root"
    if frame.origin != "node":
        return _BY_ORIGIN[frame.origin]
    return next((kind for pattern, kind in _IN_NODE if pattern.search(frame.symbol)), "library")


def is_collector(stack: Stack) -> bool:
    """Whether `stack`, of a helper thread, is work of the collector."""
    return any(kind_of(frame) == "collector" for frame in stack.frames)


def layers_of(stacks: Stacks) -> tuple[Counter[Layer], int]:
    """Samples of the main thread by layer, and those with broken stacks."""
    layers: Counter[Layer] = Counter()
    broken = 0
    for stack, count in stacks.items():
        if stack.thread == "main":
            layer = classify(stack)
            if layer is None:
                broken += count
            else:
                layers[layer] += count
    return layers, broken
