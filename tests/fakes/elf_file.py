"""A small 64-bit ELF file with symbols and code, and records of perf events: of known contents."""

import struct
from collections.abc import Sequence

FUNC, FILE = 2, 4
TEXT_OFFSET, TEXT_ADDRESS, TEXT_SIZE = 0x1000, 0x401000, 0x10000


def elf(
    symbols: Sequence[tuple[str, int, int, int]],
    *,
    stripped: bool = False,
    code: dict[int, bytes] | None = None,
) -> bytes:
    """An executable with local `symbols` (name, kind, address, size) in that order, and `code` by address."""
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
    image = header + program + strings + entries + b"".join(sections)
    for address, part in (code or {}).items():
        at = address - TEXT_ADDRESS + TEXT_OFFSET
        image = image.ljust(at + len(part), b"\x90")
        image = image[:at] + part + image[at + len(part) :]
    return image


def record(kind: int, body: bytes, misc: int = 2) -> bytes:
    """A record of the kernel's perf events."""
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def sample(
    pid: int, tid: int, time_ns: int, chain: Sequence[int], *, stack_at: int = 0, words: Sequence[int] = ()
) -> bytes:
    """A sample; `words` are the top of the stack, at `stack_at`."""
    body = struct.pack("<QIIQQ", chain[-1], pid, tid, time_ns, len(chain))
    body += struct.pack(f"<{len(chain)}Q", *chain)
    body += struct.pack("<QQ", 2, stack_at) if stack_at else struct.pack("<Q", 0)
    size = 8 * len(words)
    copied = struct.pack(f"<{len(words)}Q", *words)
    return record(9, body + struct.pack("<Q", size) + copied + (struct.pack("<Q", size) if size else b""))
