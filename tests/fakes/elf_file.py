"""A small 64-bit ELF file with a symbol table, and a small recording of perf: of known contents."""

import struct
from collections.abc import Sequence

FUNC, FILE = 2, 4
TEXT_OFFSET, TEXT_ADDRESS, TEXT_SIZE = 0x1000, 0x401000, 0x10000


def elf(symbols: Sequence[tuple[str, int, int, int]], *, stripped: bool = False) -> bytes:
    """An executable with `symbols` (name, kind, address, size), all local, in that order."""
    strings, entries = b"\0", struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    for name, kind, address, size in symbols:
        section = 0xFFF1 if kind == FILE else 1
        entries += struct.pack("<IBBHQQ", len(strings), kind, 0, section, address, size)
        strings += name.encode() + b"\0"
    header_size, program_size, section_size = 64, 56, 64
    strings_at = header_size + program_size
    symbols_at = strings_at + len(strings)
    sections_at = symbols_at + len(entries)
    kind = 11 if stripped else 2
    sections = [
        struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, symbols_at, len(entries), 2, 0, 8, 24),
        struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, strings_at, len(strings), 0, 0, 1, 0),
    ]
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, header_size, sections_at, 0, 64, 56, 1, 64, 3, 0)
    program = struct.pack("<IIQQQQQQ", 1, 5, TEXT_OFFSET, TEXT_ADDRESS, 0, TEXT_SIZE, TEXT_SIZE, 0x1000)
    assert len(header) == header_size
    assert section_size * 3 == sum(map(len, sections))
    return header + program + strings + entries + b"".join(sections)


SAMPLE_TYPE = 0x1 | 0x2 | 0x4 | 0x20 | 0x100
"""IP, TID, TIME, CALLCHAIN, PERIOD: what perf asks for."""


def record(kind: int, body: bytes, misc: int = 2) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def sample(pid: int, tid: int, time_ns: int, chain: Sequence[int]) -> bytes:
    body = struct.pack("<QIIQQQ", chain[-1], pid, tid, time_ns, 1, len(chain))
    return record(9, body + struct.pack(f"<{len(chain)}Q", *chain))


def mapping(pid: int, start: int, size: int, offset: int, path: str, protection: int = 5) -> bytes:
    name = path.encode() + b"\0"
    body = struct.pack("<IIQQQIIQQII", pid, pid, start, size, offset, 8, 1, 7, 0, protection, 2)
    return record(10, body + name + bytes(-len(name) % 8))


def recording(records: Sequence[bytes], *, sample_type: int = SAMPLE_TYPE, kind: int = 1) -> bytes:
    """A file of perf with one event of type `kind`, config 0."""
    attribute = struct.pack("<IIQQQ", kind, 128, 0, 4999, sample_type) + bytes(128 - 32)
    attribute += struct.pack("<QQ", 0, 0)
    data = b"".join(records)
    at = 104
    header = b"PERFILE2" + struct.pack("<Q", 104) + struct.pack("<Q", len(attribute))
    header += struct.pack("<QQ", at, len(attribute)) + struct.pack("<QQ", at + len(attribute), len(data))
    return header + bytes(104 - len(header)) + attribute + data
