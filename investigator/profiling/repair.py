"""Chains that libc has cut, mended from the copy of the top of the stack (x86-64).

libc is built without frame pointers. A walk along them that starts in libc misses the function that called
it, and where libc uses the register for something else (as malloc and free do) it finds nothing at all: a
quarter of the samples of an operation that allocates much. But the return address to the caller lies on the
stack. It is the first word that points behind a call out of our binaries: a call by a stub of the linker or
through a pointer. The caller's own frame pointer lies below it, where libc has saved it.
"""

import functools
import struct
from collections.abc import Iterator
from pathlib import Path

from investigator.profiling.memory import KERNEL_FROM, Memory, Place, symbols_of
from investigator.profiling.samples import Sample

MAX_FRAMES = 256
_CALL_BYTES = 7


class Mender:
    """Mends chains of one process."""

    def __init__(self, memory: Memory, *, machine: str) -> None:
        """Take the address space; on other processors than x86-64 nothing is mended."""
        self._memory = memory
        self._able = machine == "x86_64"
        self._returns: dict[int, bool] = {}
        self._leaves: dict[int, bool] = {}

    def chain(self, sample: Sample) -> tuple[int, ...]:
        """The chain of `sample`, innermost first, mended where it starts in a library and can be."""
        kernel = sum(1 for address in sample.chain if address >= KERNEL_FROM)
        user = sample.chain[kernel:]
        if not self._able or not sample.stack_at or not user or not self._is_frameless(user[0]):
            return sample.chain
        words = struct.unpack_from(f"<{len(sample.stack) // 8}Q", sample.stack)
        if len(user) > 1 and self._is_return(user[1]):
            # The register was untouched: only the caller itself can be missing, below its own caller.
            known = words.index(user[1]) if user[1] in words else 0
            caller = self._caller(words[:known])
            beyond = user[1:]
        else:
            caller = self._caller(words)
            beyond = () if caller is None else tuple(self._frames(words, sample.stack_at, caller))
        if caller is None:
            return sample.chain
        return (*sample.chain[:kernel], user[0], words[caller], *beyond)

    def _caller(self, words: tuple[int, ...]) -> int | None:
        """Number of the word that is the return address out of the library."""
        return next((number for number, word in enumerate(words) if self._leaves_us(word)), None)

    def _frames(self, words: tuple[int, ...], base: int, caller: int) -> Iterator[int]:
        """Return addresses from the caller's frame outwards, as far as the copy reaches."""
        frame = next(
            (
                index
                for word in reversed(words[:caller])
                if (index := self._index(words, base, word)) is not None
                and index > caller
                and self._is_return(words[index + 1])
            ),
            None,
        )
        for _ in range(MAX_FRAMES):
            if frame is None or not self._is_return(words[frame + 1]):
                return
            yield words[frame + 1]
            outer = self._index(words, base, words[frame])
            frame = outer if outer is not None and outer > frame else None

    @staticmethod
    def _index(words: tuple[int, ...], base: int, address: int) -> int | None:
        """Number of the word at `address`, where it and the next are in the copy."""
        index, rest = divmod(address - base, 8)
        return index if rest == 0 and 0 <= index < len(words) - 1 else None

    def _is_frameless(self, address: int) -> bool:
        """Whether the code there is of a library, or a stub of the linker."""
        known = self._leaves.get(address)
        if known is None:
            place = self._memory.place(address)
            known = place.region == "library" or (
                place.source is not None and _is_stub(place.source, place.offset)
            )
            self._leaves[address] = known
        return known

    def _is_return(self, address: int) -> bool:
        """Whether `address` lies behind a call, in a binary of ours or in generated code."""
        known = self._returns.get(address)
        if known is None:
            known = self._returns[address] = self._check(address)
        return known

    def _check(self, address: int) -> bool:
        place = self._memory.place(address) if address < KERNEL_FROM else Place("unknown", "")
        if place.region == "generated":
            return True
        if place.region not in {"node", "addon"} or place.source is None:
            return False
        return is_call(_bytes_before(place.source, place.offset))

    def _leaves_us(self, address: int) -> bool:
        """Whether the call before `address` can have led into a library."""
        if not self._is_return(address):
            return False
        place = self._memory.place(address)
        if place.source is None:
            return False
        code = _bytes_before(place.source, place.offset)
        if code[-5] != 0xE8:
            return True
        (distance,) = struct.unpack("<i", code[-4:])
        return _is_stub(place.source, place.offset, distance)


def is_call(code: bytes) -> bool:
    """Whether the seven bytes `code` end with a call instruction of x86-64.

    ``E8`` with a distance, or ``FF /2`` with any addressing: Intel's manual, volume 2, CALL.
    """
    if len(code) < _CALL_BYTES:
        return False
    if code[-5] == 0xE8:
        return True
    for length in range(2, 8):
        opcode, form = code[-length], code[-length + 1]
        if opcode == 0xFF and form >> 3 & 7 == 2 and length == _indirect_length(form):
            return True
    return False


def _indirect_length(form: int) -> int:
    """Bytes of ``FF /2`` with this ModR/M byte."""
    mode, register = form >> 6, form & 7
    if mode == 3:
        return 2
    if mode == 0 and register == 5:
        return 6
    return 2 + (register == 4) + {0: 0, 1: 1, 2: 4}[mode]


def _is_stub(source: Path, offset: int, distance: int = 0) -> bool:
    """Whether no function of the binary lies there, so that it is a stub of the linker."""
    table = symbols_of(source)
    return table.complete and table.find(table.address_of(offset) + distance) is None


@functools.lru_cache(maxsize=1 << 14)
def _bytes_before(source: Path, offset: int) -> bytes:
    """The code before a position of a file; nothing where there is none."""
    try:
        with source.open("rb") as file:
            file.seek(max(offset - _CALL_BYTES, 0))
            return file.read(min(_CALL_BYTES, offset))
    except OSError:
        return b""
