"""A file from outside to a sheet: bounded, decoded, its format told by its content."""

import json
import math
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from investigator.audit.compare_csv import is_compare_csv, read_compare_csv
from investigator.audit.figures import Notes, Sheet
from investigator.audit.hyperfine import is_hyperfine, read_hyperfine
from investigator.audit.markdown import read_markdown
from investigator.audit.suite import is_suite, read_suite
from investigator.errors import UsageError
from investigator.text import clean_text, short_text

MAX_BYTES: Final = 16 << 20
MAX_FILES: Final = 200
STDIN: Final = "-"
KNOWN: Final = (
    "a JSON file of forwardemail/sqlite-benchmarks, a JSON export of hyperfine, the CSV output of "
    "compare.js of nodejs/node, or a Markdown table"
)
_LONGEST_INTEGER: Final = 300
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def read_files(texts: Sequence[str]) -> tuple[Sheet, ...]:
    """Read every file, each named by its last part where that is enough.

    Raises:
        UsageError: one cannot be read, is of no known format, or holds no figure at all.
    """
    if len(texts) > MAX_FILES:
        raise UsageError(f"{len(texts)} files are too many to audit at once; at most {MAX_FILES}.")
    if len(set(texts)) < len(texts):
        raise UsageError("a file is named twice; its figures would count twice.")
    return tuple(read_file(text, name) for text, name in zip(texts, _names(texts), strict=True))


def _names(texts: Sequence[str]) -> list[str]:
    """As many last parts of each path as it takes to tell the files apart."""
    parts = [Path(text).parts for text in texts]
    for length in range(1, max(map(len, parts), default=1) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            break
    return [short_text(name, 120) for name in names]


def read_file(text: str, name: str) -> Sheet:
    """Read one file, ``-`` for standard input; see `read_files` for what it raises."""
    name = "standard input" if text == STDIN else name
    content = _decoded(_bytes(text, name), name)
    sheet = _sheet(content, name)
    if not sheet.figures:
        why = f": {sheet.remarks[0].place.at} {sheet.remarks[0].text}" if sheet.remarks else ""
        raise UsageError(f"{name} holds no figure that could be compared{clean_text(why, 300)}.")
    return sheet


def _bytes(text: str, name: str) -> bytes:
    try:
        if text == STDIN:
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            path = Path(text).expanduser()
            if path.exists() and not path.is_file():  # a device may never end
                raise UsageError(f"{name} cannot be read: it is no file.")
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError, RuntimeError) as error:  # ValueError: a NUL; RuntimeError: ~nobody
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{name} cannot be read: {clean_text(str(reason), 200)}.") from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"{name} is larger than {MAX_BYTES >> 20} MiB, which no table of figures is.")
    return data


def _decoded(data: bytes, name: str) -> str:
    encoding = next((codec for mark, codec in _BOMS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name} is no {encoding.upper()} text (byte {error.start:,}); convert it to UTF-8."
        ) from error
    if "\0" in text:
        raise UsageError(f"{name} holds NUL characters: it is no text. Known are {KNOWN}.")
    return text


def _sheet(text: str, name: str) -> Sheet:
    notes = Notes(name)
    if text.lstrip()[:1] in {"{", "["}:
        data = _json(text, name, notes)
        if data is not None and is_suite(data):
            return read_suite(data, name, notes)
        if data is not None and is_hyperfine(data):
            return read_hyperfine(data, name, notes)
        raise UsageError(f"{name} is JSON of no known kind. Known are {KNOWN}.")
    if is_compare_csv(text):
        return read_compare_csv(text, name, notes)
    sheet = read_markdown(text, name, notes)
    if not sheet.figures and not sheet.remarks:
        raise UsageError(f"{name} holds no table. Known are {KNOWN}.")
    return sheet


def _json(text: str, name: str, notes: Notes) -> dict[str, object] | None:
    """Decode an object; what strict JSON forbids is noted, so that nobody's figures change silently."""

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(items)
        if len(found) < len(items):
            twice = Counter(key for key, _ in items).most_common(1)[0][0]
            notes.add("stands twice in one object; the last one counts", f"key {twice[:80]!r}")
        return found

    def constant(word: str) -> float:
        notes.add(f"{word} is no number", "a value")
        return math.nan

    def integer(digits: str) -> float:
        return int(digits) if len(digits) < _LONGEST_INTEGER else math.inf

    try:
        data = json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_int=integer)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{name} is no valid JSON: {clean_text(error.msg, 120)} at line {error.lineno}, "
            f"column {error.colno}."
        ) from error
    except RecursionError as error:
        raise UsageError(f"{name} is JSON nested deeper than any table of figures.") from error
    return data if isinstance(data, dict) else None
