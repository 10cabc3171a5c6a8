"""Profiles for other tools: collapsed stacks, speedscope's JSON, and the difference of two.

All are of the main thread. The outermost frame is the layer in square brackets (``[boundary]``; ``[broken]``
where it cannot be told), so that a flame graph is divided by layer first.
"""

from collections.abc import Iterable, Iterator

import msgspec

from investigator.profiling.classify import classify
from investigator.profiling.stacks import Frame, Stacks
from investigator.store import TOOL

SPEEDSCOPE_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def collapsed(stacks: Stacks) -> bytes:
    """One line ``[layer];outermost;...;innermost count`` a stack, for flame graph tools."""
    ordered = sorted(_main(stacks), key=lambda item: (-item[1], item[0]))
    return _lines(f"{';'.join(names)} {count}" for names, count in ordered)


def speedscope(name: str, stacks: Stacks, ns_per_call: float) -> bytes:
    """A sampled profile in speedscope's format; weights are nanoseconds of one call of the operation.

    Stacks are in the order of their names, so that the time axis shows merged calls, not time.
    """
    rows = sorted(_main(stacks))
    total = sum(count for _, count in rows) or 1
    numbers: dict[str, int] = {}
    samples = [[numbers.setdefault(each, len(numbers)) for each in names] for names, _ in rows]
    weights = [count / total * ns_per_call for _, count in rows]
    document = {
        "$schema": SPEEDSCOPE_SCHEMA,
        "name": name,
        "exporter": TOOL,
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": each} for each in numbers]},
        "profiles": [
            {
                "type": "sampled",
                "name": name,
                "unit": "nanoseconds",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def difference(before: Stacks, after: Stacks, ns_per_call_before: float, ns_per_call_after: float) -> bytes:
    """``stack before after`` a line, as difffolded.pl of the FlameGraph tools writes it.

    Counts are picoseconds of one call: integers, equal in meaning on both sides.
    """
    old, new = _picoseconds(before, ns_per_call_before), _picoseconds(after, ns_per_call_after)
    stacks = sorted(old.keys() | new.keys(), key=lambda s: (-abs(new.get(s, 0) - old.get(s, 0)), s))
    return _lines(f"{';'.join(stack)} {old.get(stack, 0)} {new.get(stack, 0)}" for stack in stacks)


def _picoseconds(stacks: Stacks, ns_per_call: float) -> dict[tuple[str, ...], int]:
    rows: dict[tuple[str, ...], int] = {}
    for names, count in _main(stacks):
        rows[names] = rows.get(names, 0) + count
    total = sum(rows.values()) or 1
    return {names: round(1000 * ns_per_call * count / total) for names, count in rows.items()}


def _main(stacks: Stacks) -> Iterator[tuple[tuple[str, ...], int]]:
    for stack, count in stacks.items():
        if stack.thread == "main":
            yield (f"[{classify(stack) or 'broken'}]", *map(_shown, stack.frames)), count


def _shown(frame: Frame) -> str:
    """Name with the place where other libraries could have one of the same name."""
    return frame.symbol if frame.origin in {"node", "js"} else f"{frame.symbol} ({frame.origin})"


def _lines(lines: Iterable[str]) -> bytes:
    return b"".join(line.encode() + b"\n" for line in lines)
