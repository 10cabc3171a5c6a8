"""Symbol tables of ELF binaries: addresses to names, and which functions SQLite's amalgamation brought.

The file is hostile as every build of a package is: sizes are bounded, and whatever does not hold together
gives a table without symbols, never an error. Format: the System V gABI, chapters 4 and 5.
"""

import mmap
import os
import stat
import struct
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

MAX_FILE_BYTES = 1 << 30
MAX_SYMBOLS = 4_000_000
AMALGAMATION = b"sqlite3.c"

_ELF64_LITTLE = b"\x7fELF\x02\x01"
_PT_LOAD, _SHT_SYMTAB, _SHT_DYNSYM = 1, 2, 11
_NOTYPE, _FUNC, _FILE, _GNU_IFUNC = 0, 2, 4, 10
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the file that is loaded."""

    offset: int
    address: int
    size: int


class SymbolTable(msgspec.Struct, frozen=True, kw_only=True):
    """Functions of one binary, sorted by address."""

    segments: tuple[Segment, ...]
    addresses: NDArray[np.uint64]
    sizes: NDArray[np.uint64]
    names: NDArray[np.uint32]
    """Offsets into `strings`."""
    core: NDArray[np.bool_]
    """Whether the function belongs to the amalgamation, by the file entry before it."""
    strings: bytes
    complete: bool
    """False where only the exported functions are known: the binary is stripped."""

    def address_of(self, file_offset: int) -> int:
        """Address in the binary of a position in its file; 0 where nothing of it is loaded."""
        for segment in self.segments:
            if segment.offset <= file_offset < segment.offset + segment.size:
                return file_offset - segment.offset + segment.address
        return 0

    def find(self, address: int) -> tuple[str, bool] | None:
        """Mangled name of the function that holds `address`, and whether it is of the amalgamation."""
        index = int(np.searchsorted(self.addresses, address, side="right")) - 1
        if index < 0:
            return None
        start, size = int(self.addresses[index]), int(self.sizes[index])
        if address >= start + size:
            return None
        return self._name(index), bool(self.core[index])

    def function_names(self) -> frozenset[str]:
        """Names of all functions."""
        return frozenset(self._name(index) for index in range(len(self.names)))

    def starts(self) -> dict[str, int]:
        """Address by name, of functions whose name occurs once; in an object file within its section."""
        found = [(self._name(index), int(address)) for index, address in enumerate(self.addresses)]
        counts = Counter(name for name, _ in found)
        return {name: address for name, address in found if counts[name] == 1}

    def _name(self, index: int) -> str:
        start = int(self.names[index])
        return self.strings[start : self.strings.find(b"\0", start)].decode("utf-8", "replace")


def _empty() -> SymbolTable:
    none = np.zeros(0, dtype=np.uint64)
    return SymbolTable(
        segments=(),
        addresses=none,
        sizes=none,
        names=np.zeros(0, dtype=np.uint32),
        core=np.zeros(0, dtype=np.bool_),
        strings=b"\0",
        complete=False,
    )


def read_symbols(path: Path) -> SymbolTable:
    """Functions of the binary or object file at `path`; an empty table where there is nothing to read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return _empty()
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or not 64 <= info.st_size <= MAX_FILE_BYTES:
            return _empty()
        with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as image:
            return _parse(image)
    except (OSError, struct.error, ValueError, OverflowError):
        return _empty()
    finally:
        os.close(descriptor)


def _parse(image: mmap.mmap) -> SymbolTable:
    if image[:6] != _ELF64_LITTLE:
        return _empty()
    phoff, shoff = struct.unpack_from("<QQ", image, 32)
    phentsize, phnum, shentsize, shnum = struct.unpack_from("<HHHH", image, 54)
    segments = []
    for number in range(phnum):
        kind, _flags, offset, address, _physical, size = struct.unpack_from(
            "<IIQQQQ", image, phoff + number * phentsize
        )
        if kind == _PT_LOAD:
            segments.append(Segment(offset=offset, address=address, size=size))
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, shoff + n * shentsize) for n in range(shnum)]
    for wanted in (_SHT_SYMTAB, _SHT_DYNSYM):
        for _name, kind, _flags, _address, offset, size, link, _info, _align, _entry in sections:
            if kind == wanted and link < len(sections):
                strings = image[sections[link][4] : sections[link][4] + sections[link][5]] + b"\0"
                symbols = np.frombuffer(image[offset : offset + size // 24 * 24], dtype=_SYMBOL)
                if 0 < len(symbols) <= MAX_SYMBOLS:
                    return _table(tuple(segments), symbols, strings, complete=wanted == _SHT_SYMTAB)
    return _empty()


def _table(
    segments: tuple[Segment, ...], symbols: NDArray[np.void], strings: bytes, *, complete: bool
) -> SymbolTable:
    kinds = np.asarray(symbols["info"] & 0xF, dtype=np.uint8)
    core = _amalgamation(symbols, kinds, strings)
    named = (symbols["name"] > 0) & (symbols["name"] < len(strings))
    here = (symbols["section"] != 0) & np.isin(kinds, (_NOTYPE, _FUNC, _GNU_IFUNC))
    # Labels have no size, and neither has `_init`, behind which the linker's stubs lie.
    code = here & named & (symbols["size"] > 0)
    chosen = symbols[code]
    # Of several names for one address the one with the largest size comes last and is found.
    order = np.lexsort((chosen["size"], chosen["value"]))
    chosen, core = chosen[order], core[code][order]
    return SymbolTable(
        segments=segments,
        addresses=np.ascontiguousarray(chosen["value"]),
        sizes=np.ascontiguousarray(chosen["size"]),
        names=np.ascontiguousarray(chosen["name"]),
        core=core,
        strings=strings,
        complete=complete,
    )


def _amalgamation(symbols: NDArray[np.void], kinds: NDArray[np.uint8], strings: bytes) -> NDArray[np.bool_]:
    """Local functions that stand behind the entry of the file ``sqlite3.c``."""
    files = np.flatnonzero(kinds == _FILE)
    is_core = np.zeros(len(symbols), dtype=np.bool_)
    for position, index in enumerate(files):
        start = int(symbols["name"][index])
        if strings[start : start + len(AMALGAMATION) + 1] == AMALGAMATION + b"\0":
            end = files[position + 1] if position + 1 < len(files) else len(symbols)
            is_core[index:end] = True
    local = (symbols["info"] >> 4) == 0
    return np.asarray(is_core & local, dtype=np.bool_)
