"""Reading what node-gyp, make and the compilers printed. Pure; the log is a stranger's text."""

import re
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from investigator.text import clean_text

_ERRORS: Final = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^[^\s:][^:\n]*:\d+(?::\d+)?: (?:fatal )?error: .+$",  # compiler: file:line:column
        r"^.*(?:undefined reference to|cannot find -l).+$",  # linker
        r"^(?:\w*Error: .+|gyp: .+)$",  # gyp, and the Python below it
        r"^[\w+./-]+: (?:fatal )?error: .+$",  # compiler driver, without a place
        r"^make(?:\[\d+\])?: \*\*\* .+$",
        r"^gyp ERR! stack .+$",
    )
)
_COMPILER: Final = re.compile(r"(?:.*/)?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(?:-\d+)?")
_SOURCE: Final = re.compile(r"\.(?:c|cc|cpp|cxx)$")
# What the build puts in front of the compiler, see node_fixtures/compile/cc.mjs.
_LAUNCHER: Final = re.compile(r"^\S+ \S+/cc\.mjs ")


def first_error(log: str) -> str | None:
    """Give the first line that says what went wrong: compilers come before make."""
    for pattern in _ERRORS:
        if found := pattern.search(log):
            return clean_text(found.group(), 300)
    return None


def commands(log: str, places: Mapping[str, str]) -> dict[str, str]:
    """Full command lines as make printed them, without what was put in front of the compiler.

    Args:
        log: output of make with ``V=1``.
        places: what to call each directory of this machine instead, so that lines can be compared.

    Returns:
        By name of the source file for compilations (``sqlite3.c``), of the binary for links (``x.node``).
    """
    found: dict[str, str] = {}
    for line in log.splitlines():
        text = _LAUNCHER.sub("", line.strip())
        subject = _subject(text)
        if subject is None or "test_extension" in subject:
            continue
        # Longest first: one directory may lie in another.
        for place in sorted(places, key=len, reverse=True):
            text = text.replace(place, places[place])
        found[subject] = text
    return found


def _subject(command: str) -> str | None:
    """Name of what a compiler command makes or compiles; None for any other line."""
    if not _COMPILER.fullmatch(command.partition(" ")[0]):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if "-c" in words:
        files = [word for word in words if _SOURCE.search(word)]
    else:
        files = words[words.index("-o") + 1 :] if "-o" in words else []
    return PurePosixPath(files[0]).name if files else None
