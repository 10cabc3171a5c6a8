"""Mangled C++ names to readable ones without parameters: by binutils' c++filt, else by a plain reading.

Not by the C++ library in this process: names come from binaries that packages have built.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable

from investigator.profiling.stacks import clean_symbol

_TIMEOUT_S = 30.0
_MAX_NAME_CHARACTERS = 4000
_CLONE = re.compile(r" ?(?:\[clone [^\]]*\]|\.(?:part|constprop|isra|cold|lto_priv|llvm)\b[.\w]*)|@.*$")
_THUNK = re.compile(r"^(?:non-)?virtual thunk to ")
_TOKEN = re.compile(r"(\d+)")


def demangle(names: Iterable[str]) -> dict[str, str]:
    """Readable form of each name; clones that the compiler made carry the name of their function."""
    wanted = {name: name for name in set(names)}
    mangled = [n for n in wanted if n.startswith("_Z") and n.isprintable() and len(n) <= _MAX_NAME_CHARACTERS]
    wanted |= _by_program(mangled) or {name: nested_name(name) for name in mangled}
    return {name: clean_symbol(_THUNK.sub("", _CLONE.sub("", readable))) for name, readable in wanted.items()}


def _by_program(mangled: list[str]) -> dict[str, str]:
    program = shutil.which("c++filt")
    if program is None or not mangled:
        return {}
    # The suffix of a clone would keep its name from being read.
    bare = [_CLONE.sub("", name) for name in mangled]
    try:
        done = subprocess.run(
            (program, "--no-params"),
            input="\n".join(bare) + "\n",
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    lines = done.stdout.splitlines()
    return dict(zip(mangled, lines, strict=True)) if len(lines) == len(mangled) else {}


def nested_name(mangled: str) -> str:
    """Namespaces, class and function of an Itanium mangled name, template arguments left out."""
    body = mangled.removeprefix("_Z")
    body = body.removeprefix("N").removeprefix("V").lstrip("KrO")
    parts: list[str] = []
    if body.startswith("St"):
        parts, body = ["std"], body[2:]
    while body and body[0] != "E":
        found = _TOKEN.match(body)
        if found is not None:
            start = found.end()
            end = start + int(found.group()[:6])
            parts.append(body[start:end])
            body = body[end:]
        elif body[0] == "I":
            body = _after_arguments(body)
        elif parts and body[:2] in {"C1", "C2", "D0", "D1", "D2"}:
            parts.append(("~" if body[0] == "D" else "") + parts[-1])
            body = body[2:]
        else:
            break
    named = ["(anonymous namespace)" if part.startswith("_GLOBAL__N") else part for part in parts]
    return "::".join(named) or mangled


def _after_arguments(body: str) -> str:
    """What follows a list of template arguments; nothing where it cannot be told."""
    depth, position = 0, 0
    while position < len(body):
        found = _TOKEN.match(body, position)
        if found is not None and body[position - 1 : position] != "L":
            position = found.end() + int(found.group()[:6])
            continue
        depth += {"I": 1, "N": 1, "L": 1, "X": 1, "J": 1, "E": -1}.get(body[position], 0)
        position += 1
        if depth == 0:
            return body[position:]
    return ""
