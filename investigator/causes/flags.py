"""The flags a Node knows (``node --v8-options``), and which of them are worth trying on a pair.

Three kinds of experiment: switch a part of V8 off on both sides; give one side the value that the other has
by default, where the defaults differ; switch off what only one side has. Flags that print, check, stress or
belong to WebAssembly are left alone.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, Literal

import msgspec

from investigator import cache
from investigator.engine.interface import Engine, Mount, Task
from investigator.exchange import UnreadableError, exchange, take
from investigator.nodes.interface import NodeBuild
from investigator.text import clean_text

FlagKind = Literal["gc", "engine"]
Origin = Literal["switch", "default", "lone", "control"]

MAX_ABLATIONS: Final = 28
"""Experiments of one kind: half a minute a round."""
_TIMEOUT_S: Final = 60.0
_OUTPUT_BYTES: Final = 4 << 20
_MAX_FLAGS: Final = 5_000
_KIND: Final = "node-flags"
# Standard output of a task keeps its end only; the list is longer than that.
_SCRIPT: Final = """\
const { execFileSync } = require('node:child_process');
const { writeFileSync } = require('node:fs');
writeFileSync(process.argv[1], execFileSync(process.execPath, ['--v8-options'], { maxBuffer: 2 ** 22 }));
"""
_NAME: Final = re.compile(r"  --([a-z0-9][a-z0-9-]{0,99}) \((.*)")
_DEFAULT: Final = re.compile(
    r"        type: (bool|maybe_bool|int|uint|uint64|float|size_t|string)  default: (.{0,300})"
)
_VALUE: Final = re.compile(r"-?[0-9]{1,19}(?:\.[0-9]{1,19})?(?:e[+-]?[0-9]{1,3})?")


def _any_word(text: str) -> str:
    """Pattern of names that have one of these words, or runs of words, between dashes."""
    return rf"(?:^|-)(?:{'|'.join(text.split())})(?:-|$)"


def _any_start(text: str) -> str:
    return rf"^(?:{'|'.join(text.split())})(?:-|$)"


_GC: Final = re.compile(
    _any_word(
        "gc heap semi new-space young minor marking mark ms sweeping sweep compact compaction "
        "evacuation array-buffer external-memory memory generation idle pretenuring pretenure "
        "scavenge scavenger cppheap allocation-site unmapping"
    )
)
_ENGINE: Final = re.compile(
    _any_word(
        "maglev sparkplug turbo turbofan turboshaft turbolev opt optimization osr invocation "
        "inlining inlined feedback baseline json string regexp efficiency recompilation "
        "interrupt-budget lazy profile bytecode ignition ic cache tiering deopt deopts escape "
        "keyed jcc builtin builtins fast elements maps folding elision stack-check math"
    )
)
_NEVER: Final = re.compile(
    _any_start(
        "trace print log prof perf verify stress fuzz fuzzing test wasm asm experimental liftoff "
        "harmony js dump cppgc heap-snapshot random predictable abort exit sandbox gdbjit target "
        "expose allow mock correctness debug slow single-threaded jitless profile-deserialization "
        "serialization drumbrake help redirect hash interpreted-frames clear-free "
        "memory-protection parallel-compile concurrent-cache gc-global gc-interval gc-experiment "
        "max-lazy wrap temporal embedder turbo-stats turbo-profiling turboshaft-trace "
        "turboshaft-csa turboshaft-wasm maglev-print maglev-stats maglev-break maglev-assert "
        "maglev-destroy maglev-build-code maglev-deopt-data cache-prototype concurrent-turbo "
        "manual-evacuation stack-size sparkplug-needs"
    )
    + "|"
    + _any_word(
        "verify trace tracing print stats assert wasm snapshot filter filename file check-flags fuzzing"
    )
)
# What a switch stands for, in the words of a report.
_PARTS: Final[Mapping[str, str]] = {
    "maglev": "the Maglev compiler",
    "sparkplug": "the Sparkplug compiler",
    "opt": "the TurboFan compiler",
    "turbofan": "the TurboFan compiler",
    "single-threaded-gc": "the collector's helper threads",
    "concurrent-marking": "concurrent marking",
    "concurrent-sweeping": "concurrent sweeping",
    "concurrent-array-buffer-sweeping": "concurrent sweeping of array buffers",
    "parallel-scavenge": "the parallel scavenger",
    "minor-ms": "the young generation's mark-sweep collector",
    "min-semi-space-size": "the first size of the young generation",
    "max-semi-space-size": "the largest size of the young generation",
    "scavenger-max-new-space-capacity-mb": "the capacity of the young generation",
    "separate-gc-phases": "separation of young and full collections",
    "json-stringify-fast-path": "the fast path of JSON.stringify",
    "concurrent-sparkplug": "concurrent Sparkplug compilation",
    "profile-guided-optimization": "profile-guided tiering",
    "osr-from-maglev": "on-stack replacement out of Maglev",
}
_SWITCHES: Final[Mapping[FlagKind, tuple[str, ...]]] = {
    "gc": (
        "single-threaded-gc",
        "no-concurrent-marking",
        "no-concurrent-sweeping",
        "no-concurrent-array-buffer-sweeping",
        "no-parallel-scavenge",
    ),
    "engine": ("no-maglev", "no-sparkplug", "no-opt"),
}
# V8's own default on 64 bits until the scavenger got a limit of its own; `0` in the list means chosen by V8.
_SIZES: Final = (("min-semi-space-size", "16"), ("max-semi-space-size", "16"))
_NEW_SPACE: Final = "scavenger-max-new-space-capacity-mb"
_NEW_SPACE_OLD_MB: Final = "8"
"""Default up to V8 12.4 (Node 22); what Node 20, which does not know the flag, does as well."""
_NEW_SPACE_NEW_MB: Final = "32"
"""Default of V8 13.6 (Node 24); Node 26 does not know the flag."""


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """One flag as V8 lists it."""

    type: str
    default: str
    """``true``, ``false``, or the value as text; empty for ``unset``."""
    about: str
    """V8's own words."""


class NodeFlags(msgspec.Struct, frozen=True, kw_only=True):
    """All flags of one Node binary, by name without dashes."""

    flags: Mapping[str, Flag]

    def default(self, name: str) -> str | None:
        """Default of a flag; None where this Node does not know it."""
        flag = self.flags.get(name)
        return None if flag is None else flag.default


class Ablation(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment: flags for each side. A side without flags keeps what it has by default."""

    name: str
    """``--no-maglev``, ``--scavenger-max-new-space-capacity-mb=8``."""
    kind: FlagKind
    origin: Origin
    """``switch``: off on both sides; ``default``: the defaults differ, one side gets the other's; ``lone``:
    only one side has it, and loses it; ``control``: no flag at all, closes nothing."""
    baseline_flags: tuple[str, ...]
    candidate_flags: tuple[str, ...]
    one_sided: bool
    """Whether only one side knows the flag."""
    subsystem: str
    """What the flag stands for, in words."""
    note: str = ""
    """``8 on the baseline, 32 on the candidate by default``."""


CONTROL: Final = Ablation(
    name="(no flag)",
    kind="engine",
    origin="control",
    baseline_flags=(),
    candidate_flags=(),
    one_sided=False,
    subsystem="nothing: the candidate once more, to show what noise alone closes",
)


# -- reading ------------------------------------------------------------------------------------------------


def read_flags(engine: Engine, node: NodeBuild) -> NodeFlags:
    """Ask a Node for its flags, once per binary.

    Returns:
        The flags; none at all where the binary does not answer or what it says cannot be read.

    Raises:
        EngineMissingError, HostUnfitError: the engine.
    """
    path = cache.cache_root() / _KIND / f"{node.node_sha256}.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=NodeFlags)
    except (OSError, msgspec.MsgspecError):
        found = NodeFlags(flags=parse_options(_ask(engine, node)))
    if found.flags:
        cache.write_text(path, msgspec.json.encode(found).decode())
    return found


def _ask(engine: Engine, node: NodeBuild) -> str:
    with exchange() as folder:
        mounts = (
            Mount(source=node.directory, target=PurePosixPath("/node")),
            Mount(source=folder / "out", target=PurePosixPath("/out"), writable=True),
        )
        outcome = engine.run(
            Task(
                command=(
                    str(engine.inside(mounts[0]) / "bin/node"),
                    "-e",
                    _SCRIPT,
                    str(engine.inside(mounts[1]) / "options.txt"),
                ),
                purpose=f"ask Node {node.version} for its flags",
                mounts=mounts,
                timeout_s=_TIMEOUT_S,
            )
        )
        try:
            text = take(folder / "out/options.txt", _OUTPUT_BYTES) if outcome.ok else b""
        except UnreadableError:
            text = b""
        return text.decode(errors="replace")


def parse_options(text: str) -> dict[str, Flag]:
    """Read the output of ``--v8-options``: two lines a flag; anything else is passed over."""
    found: dict[str, Flag] = {}
    name: str | None = None
    about = ""
    for line in text.splitlines():
        if head := _NAME.fullmatch(line):
            name, about = head[1], head[2]
        elif name is not None and (tail := _DEFAULT.fullmatch(line)):
            default = _default(name, tail[1], tail[2])
            if default is not None and len(found) < _MAX_FLAGS:
                found[name] = Flag(type=tail[1], default=default, about=clean_text(about.rstrip(") "), 200))
            name = None
    return found


def _default(name: str, type_: str, text: str) -> str | None:
    if text == "unset":
        return ""
    if type_ in {"bool", "maybe_bool"}:
        return {f"--{name}": "true", f"--no-{name}": "false"}.get(text)
    value = text.removeprefix(f"--{name}=")
    if value == text:
        return None
    if type_ == "string":
        return clean_text(value, 100)
    return value if _VALUE.fullmatch(value) else None


# -- what to try --------------------------------------------------------------------------------------------


def ablations(
    kind: FlagKind, baseline: NodeFlags, candidate: NodeFlags, *, at_most: int = MAX_ABLATIONS
) -> tuple[Ablation, ...]:
    """The experiments for a finding of that kind, the most telling first, each once.

    Switches first, then sizes, then defaults that differ, then what only one side has.
    """
    found = [
        *(_switch(kind, name, baseline, candidate) for name in _SWITCHES[kind]),
        *(_sizes(baseline, candidate) if kind == "gc" else ()),
        *(
            _other_default(kind, name, baseline, candidate)
            for name in changed_defaults(kind, baseline, candidate)
        ),
        *(_lone(kind, "candidate", *named) for named in _lone_switches(kind, candidate, baseline)),
        *(_lone(kind, "baseline", *named) for named in _lone_switches(kind, baseline, candidate)),
    ]
    by_name = {ablation.name: ablation for ablation in reversed(found) if ablation is not None}
    order = dict.fromkeys(ablation.name for ablation in found if ablation is not None)
    return tuple(by_name[name] for name in order)[:at_most]


def changed_defaults(
    kind: FlagKind | None, baseline: NodeFlags, candidate: NodeFlags
) -> dict[str, tuple[str, str]]:
    """Flags that both know with another default: name -> (baseline's, candidate's). None takes all kinds."""
    return {
        name: (flag.default, other.default)
        for name, flag in sorted(baseline.flags.items())
        if (other := candidate.flags.get(name)) is not None
        and other.default != flag.default
        and (kind is None or _is_of(kind, name))
    }


def _is_of(kind: FlagKind, name: str) -> bool:
    pattern = _GC if kind == "gc" else _ENGINE
    return bool(pattern.search(name)) and not _NEVER.search(name)


def _setting(name: str, value: str, type_: str) -> str:
    """A flag and its value as one argument."""
    if type_ in {"bool", "maybe_bool"}:
        return f"--{name}" if value == "true" else f"--no-{name}"
    return f"--{name}={value}"


def _switch(kind: FlagKind, text: str, baseline: NodeFlags, candidate: NodeFlags) -> Ablation | None:
    """Set a boolean on every side that knows it and has it the other way by default."""
    name = text.removeprefix("no-")
    wanted = "false" if text.startswith("no-") else "true"
    sides = [known.default(name) for known in (baseline, candidate)]
    if all(side is None or side == wanted for side in sides):
        return None
    flag = f"--{text}"
    given = [(flag,) if side is not None and side != wanted else () for side in sides]
    return Ablation(
        name=flag,
        kind=kind,
        origin="switch",
        baseline_flags=given[0],
        candidate_flags=given[1],
        one_sided=None in sides,
        subsystem=_part(name, ""),
        note=_note(*sides),
    )


def _note(baseline: str | None, candidate: str | None) -> str:
    if baseline == candidate:
        return ""
    words = {"true": "on", "false": "off", None: "not known", "": "unset"}
    one, other = (words.get(side, side) for side in (baseline, candidate))
    return f"by default {one} on the baseline, {other} on the candidate"


def _part(name: str, about: str) -> str:
    return _PARTS.get(name) or about or name.replace("-", " ")


def _sizes(baseline: NodeFlags, candidate: NodeFlags) -> list[Ablation | None]:
    """The young generation at one size on both sides, by every flag that says so."""
    found: list[Ablation | None] = [
        _both(name, value, baseline, candidate)
        for name, value in _SIZES
        if baseline.default(name) is not None and candidate.default(name) is not None
    ]
    if baseline.default(_NEW_SPACE) is None and candidate.default(_NEW_SPACE) is not None:
        found.append(_one_side("candidate", _NEW_SPACE_OLD_MB, candidate))
    elif candidate.default(_NEW_SPACE) is None and baseline.default(_NEW_SPACE) is not None:
        found.append(_one_side("baseline", _NEW_SPACE_NEW_MB, baseline))
    return found


def _both(name: str, value: str, baseline: NodeFlags, candidate: NodeFlags) -> Ablation:
    flags = (f"--{name}={value}",)
    return Ablation(
        name=flags[0],
        kind="gc",
        origin="switch",
        baseline_flags=flags if baseline.default(name) != value else (),
        candidate_flags=flags if candidate.default(name) != value else (),
        one_sided=False,
        subsystem=_part(name, ""),
    )


def _one_side(side: Literal["baseline", "candidate"], value: str, known: NodeFlags) -> Ablation | None:
    if known.default(_NEW_SPACE) == value:
        return None
    flags = (f"--{_NEW_SPACE}={value}",)
    return Ablation(
        name=flags[0],
        kind="gc",
        origin="default",
        baseline_flags=flags if side == "baseline" else (),
        candidate_flags=flags if side == "candidate" else (),
        one_sided=True,
        subsystem=_part(_NEW_SPACE, ""),
        note=f"only the {side} knows it, {known.default(_NEW_SPACE)} by default",
    )


def _other_default(kind: FlagKind, name: str, baseline: NodeFlags, candidate: NodeFlags) -> Ablation | None:
    """The candidate with the baseline's default. The baseline has that already and needs no flag."""
    mine, theirs = baseline.flags[name], candidate.flags[name]
    if not mine.default or "string" in (mine.type, theirs.type) or _without_part(name, candidate):
        return None
    flag = _setting(name, mine.default, theirs.type)
    return Ablation(
        name=flag,
        kind=kind,
        origin="default",
        baseline_flags=(),
        candidate_flags=(flag,),
        one_sided=False,
        subsystem=_part(name, theirs.about),
        note=_note(mine.default, theirs.default),
    )


def _lone_switches(kind: FlagKind, known: NodeFlags, unknown: NodeFlags) -> Sequence[tuple[str, Flag]]:
    """Parts that are on by default on the side that knows them, and that the other side does not know."""
    return [
        (name, flag)
        for name, flag in sorted(known.flags.items())
        if name not in unknown.flags
        and flag.type == "bool"
        and flag.default == "true"
        and _is_of(kind, name)
        and not _without_part(name, known)
    ]


def _without_part(name: str, known: NodeFlags) -> bool:
    """Whether a flag tunes Maglev where Maglev itself is off: it would change nothing."""
    return "maglev" in name and name != "maglev" and known.default("maglev") != "true"


def _lone(kind: FlagKind, side: Literal["baseline", "candidate"], name: str, flag: Flag) -> Ablation:
    flags = (f"--no-{name}",)
    return Ablation(
        name=flags[0],
        kind=kind,
        origin="lone",
        baseline_flags=flags if side == "baseline" else (),
        candidate_flags=flags if side == "candidate" else (),
        one_sided=True,
        subsystem=_part(name, flag.about),
        note=f"only the {side} knows it, on by default",
    )
