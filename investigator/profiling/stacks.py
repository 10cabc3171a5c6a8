"""A stack as the profilers give it, counted, and its text form: collapsed stacks.

One line is ``thread;outermost;...;innermost count``, and a frame is ``origin:symbol``. Flame graph tools read
it as it is. What `layers` counts can be computed again from the text alone.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, cast, get_args

from investigator.text import clean_text, short_text

Origin = Literal["kernel", "node", "addon", "core", "libc", "js", "unknown"]
"""Where a frame's code lies: ``core`` is SQLite with its ciphers, wherever linked; ``addon`` the rest of a
``.node`` file; ``libc`` every other shared library of the system; ``js`` code that V8 has generated."""
Thread = Literal["main", "helper"]

MAX_SYMBOL_CHARACTERS = 300
_ORIGINS = frozenset(get_args(Origin))
_THREADS = frozenset(get_args(Thread))


class Frame(NamedTuple):
    """One function on a stack."""

    origin: Origin
    symbol: str
    """Without parameters; in square brackets where the binary does not tell, as in ``[node]``."""


class Stack(NamedTuple):
    """One chain of calls."""

    thread: Thread
    frames: tuple[Frame, ...]
    """Outermost first; the last one ran when the sample was taken."""


Stacks = Mapping[Stack, int]
"""Samples by stack."""


def clean_symbol(symbol: str) -> str:
    """A symbol that can stand in a collapsed stack."""
    return short_text(symbol, MAX_SYMBOL_CHARACTERS).replace(";", ",") or "[nameless]"


def to_lines(stacks: Stacks) -> Iterator[str]:
    """Collapsed text, most frequent first."""
    for stack, count in sorted(stacks.items(), key=lambda item: (-item[1], item[0])):
        yield f"{';'.join((stack.thread, *(f'{f.origin}:{f.symbol}' for f in stack.frames)))} {count}"


def from_lines(lines: Iterable[str]) -> Counter[Stack]:
    """Read collapsed text as `to_lines` writes it.

    Raises:
        ValueError: a line is not such a stack.
    """
    stacks: Counter[Stack] = Counter()
    for line in lines:
        text, _, count = line.rpartition(" ")
        thread, *frames = text.split(";")
        if thread not in _THREADS or not frames:
            raise ValueError(f"{clean_text(line, 80)!r} is no collapsed stack")
        stacks[Stack("main" if thread == "main" else "helper", tuple(map(_frame, frames)))] += int(count)
    return stacks


def added(all_stacks: Iterable[Stacks]) -> Counter[Stack]:
    """Sum of several profiles."""
    total: Counter[Stack] = Counter()
    for stacks in all_stacks:
        total.update(stacks)
    return total


@functools.lru_cache(maxsize=1 << 16)  # a profile names the same few thousand functions a million times
def _frame(text: str) -> Frame:
    origin, separator, symbol = text.partition(":")
    if not separator or origin not in _ORIGINS:
        raise ValueError(f"{clean_text(text, 80)!r} is no frame")
    return Frame(cast("Origin", origin), symbol)
