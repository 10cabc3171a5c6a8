"""V8's own log (``--log-code``, ``--prof``): where generated code lies, and V8's own samples.

Lines of comma separated fields, the same on Node 18 to 26::

    code-creation,JS,KIND,TIME_US,ADDRESS,SIZE,NAME,SHARED,STATE
    code-move,FROM,TO
    shared-library,PATH,START,END,SLIDE
    tick,PC,TIME_US,IS_EXTERNAL,TOP,VM_STATE[,FRAME...]

A state is ``~`` interpreted, ``^`` baseline, ``+`` maglev, ``*`` optimised, with marks before it. The log is
hostile: the program under test may write into it.
"""

import bisect
import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from investigator.profiling.stacks import clean_symbol

MAX_LOG_BYTES = 64 << 20
MAX_CODES = 200_000
_MAX_ADDRESS = 1 << 64
_PLACE = re.compile(r"(?:file://)?/(?:[^/ ]*/)*")
_QUERY = re.compile(r"\?operation=\d+")
_HEX_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})")
_STATES: dict[str, Literal["js", "collector", "api"]] = {"0": "js", "1": "collector", "5": "api", "6": "api"}
"""V8's ``StateTag``, the same from V8 10 to 14."""
_JS_KINDS = frozenset({"JS", "LazyCompile", "Function", "Eval", "Script"})


class Code(NamedTuple):
    """One piece of generated code."""

    start: int
    end: int
    name: str
    """``JS:*run select.mjs:37:10``; ``RegExp:...``."""


class CodeMap:
    """Generated code by address; where the collector freed some and V8 used the room again, the later."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._codes: list[Code] = []

    def add(self, code: Code) -> None:
        """Put a piece in, in place of whatever it overlaps."""
        first = bisect.bisect_left(self._starts, code.start)
        if first > 0 and self._codes[first - 1].end > code.start:
            first -= 1
        last = bisect.bisect_left(self._starts, code.end)
        self._starts[first:last] = [code.start]
        self._codes[first:last] = [code]

    def find(self, address: int) -> str | None:
        """Name of the code at `address`."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index >= 0 and address < self._codes[index].end:
            return self._codes[index].name
        return None

    def at(self, start: int) -> Code | None:
        """The piece that begins at `start`."""
        index = bisect.bisect_left(self._starts, start)
        return self._codes[index] if self._starts[index : index + 1] == [start] else None

    def __len__(self) -> int:
        return len(self._codes)


class Library(NamedTuple):
    """A mapping of a file as V8 saw it when it began to sample."""

    path: str
    start: int
    end: int


class Tick(NamedTuple):
    """One sample of V8."""

    time_us: int
    """Since the log began."""
    pc: int
    callback: int
    """Address of the C++ function that JS had called; 0 where it had called none."""
    state: Literal["js", "collector", "api", "other"]
    """What V8 was at: ``api`` is a call of C++ into V8, or C++ that JS has called."""
    frames: tuple[int, ...]
    """JS frames, innermost first."""


class Log(NamedTuple):
    """What is wanted of a log."""

    codes: CodeMap
    ticks: list[Tick]
    libraries: list[Library]
    anchor_us: int | None
    """When code named `ANCHOR` was made."""


ANCHOR = "investigate_anchor"
"""A function that the preloaded script of a ``--prof`` run makes, so that the clocks can be compared."""


def read_log(lines: Iterable[str]) -> Log:
    """Read a log; lines that are none of those above, or broken, are left out."""
    codes, ticks, libraries = CodeMap(), list[Tick](), list[Library]()
    anchor_us: int | None = None
    for line in lines:
        fields = line.rstrip("\n").split(",")
        try:
            if fields[0] == "code-creation" and len(codes) < MAX_CODES:
                code, time_us = _code(fields)
                codes.add(code)
                if ANCHOR in code.name and anchor_us is None:
                    anchor_us = time_us
            elif fields[0] == "code-move":
                _move(codes, _address(fields[1]), _address(fields[2]))
            elif fields[0] == "tick":
                ticks.append(_tick(fields))
            elif fields[0] == "shared-library":
                libraries.append(Library(fields[1], _address(fields[2]), _address(fields[3])))
        except (ValueError, IndexError):
            continue
    return Log(codes, ticks, libraries, anchor_us)


def _address(text: str) -> int:
    address = int(text, 16)
    if not 0 <= address < _MAX_ADDRESS:
        raise ValueError("no address")
    return address


def _code(fields: list[str]) -> tuple[Code, int]:
    kind, time_us = fields[1], int(fields[3])
    start, size = _address(fields[4]), int(fields[5])
    if not 0 < size < 1 << 32:
        raise ValueError("no size")
    name = _unescaped(fields[6])
    if kind in _JS_KINDS:
        state = fields[8].lstrip("o")[:1] if len(fields) > 8 else ""
        text = f"JS:{state}{_QUERY.sub('', _PLACE.sub('', name, count=1)).strip() or '(anonymous)'}"
    else:
        text = f"{kind}:{name}"
    return Code(start, start + size, clean_symbol(text)), time_us


def _move(codes: CodeMap, source: int, target: int) -> None:
    if (code := codes.at(source)) is not None:
        codes.add(Code(target, target + code.end - code.start, code.name))


def _tick(fields: list[str]) -> Tick:
    pc, external = _address(fields[1]), fields[3] == "1"
    return Tick(
        time_us=int(fields[2]),
        pc=pc,
        callback=_address(fields[4]) if external else 0,
        state=_STATES.get(fields[5], "other"),
        frames=tuple(_frames(pc, fields[6:])),
    )


def _frames(pc: int, fields: list[str]) -> Iterator[int]:
    """Addresses of frames: absolute, or as a signed difference to the one before."""
    previous = pc
    for text in fields:
        if text.startswith(("+", "-")):
            previous += int(text, 16)
        elif text.startswith("0x"):
            previous = _address(text)
        else:
            continue  # "overflow" and the like
        yield previous


def _unescaped(text: str) -> str:
    return _HEX_ESCAPE.sub(lambda found: chr(int(found.group(1), 16)), text)
