"""What the two builds of a pair were made with: flags, compiler, SQLite's object, Node's configuration."""

import ast
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from investigator import cache
from investigator.build import AddonBuild
from investigator.nodes.interface import NodeBuild
from investigator.text import clean_text

Relevance = Literal["code", "language", "none"]
"""``code``: it decides machine code, the addon's or Node's; ``language``: it may; ``none``: paths."""

MAX_DIFFERENCES: Final = 400
_CONFIG: Final = "include/node/config.gypi"
_COMMON: Final = "include/node/common.gypi"
_CONFIG_BYTES: Final = 1 << 20
_PAIRS: Final = frozenset({"-o", "-MF", "-MT", "-MQ", "-I", "-isystem", "-include"})
_CODE: Final = (
    "-O",
    "-f",
    "-m",
    "-D",
    "-U",
    "-pthread",
    "-static",
    "-shared",
    "-Wl,-O",
    "-Wl,--icf",
    "-Wl,-Bsymbolic",
)
_A_PLACE: Final = "(a place)"
_ABSOLUTE: Final = re.compile(r"""(?:^|[\s'"=:\[]|-[LI])(?:/(?!/)|[A-Za-z]:\\)""")
# Variables of Node's own configuration that decide how V8, and what it calls, was compiled.
_DECISIVE: Final = (
    "v8_",
    "enable_lto",
    "enable_pgo",
    "clang",
    "llvm_version",
    "gas_version",
    "control_flow_guard",
    "dcheck",
    "debug_",
    "node_use_v8_platform",
    "node_enable_v8",
    "openssl_",
    "host_arch",
    "target_arch",
    "asan",
    "coverage",
)


class BuildDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not the same on both sides."""

    what: str
    """``compiler``, ``flag``, ``sqlite3.o``, ``binary``, ``config.gypi``, ``common.gypi``."""
    subject: str
    """File that is compiled or linked, or name of the variable."""
    baseline: str
    """Empty where that side has nothing of the kind."""
    candidate: str
    relevance: Relevance


class BuildComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Differences, the relevant ones first."""

    differences: tuple[BuildDifference, ...]
    sqlite_object_equal: bool | None
    """Whether SQLite's object code is bit-identical; None where a side was shipped."""
    binary_equal: bool
    """Whether both sides load the very same ``.node``."""

    @property
    def suspects(self) -> tuple[BuildDifference, ...]:
        """What could change the addon's machine code: flags, compiler and object file."""
        return tuple(
            d
            for d in self.differences
            if d.relevance == "code" and d.what not in {"config.gypi", "common.gypi"}
        )


def compare_builds(
    baseline: AddonBuild, candidate: AddonBuild, baseline_node: NodeBuild, candidate_node: NodeBuild
) -> BuildComparison:
    """Compare how two environments were built; reads the two Node directories' headers, runs nothing."""
    differences = [
        *_compilers(baseline, candidate),
        *_flags(baseline.flags, candidate.flags),
        *_objects(baseline, candidate),
        *compare_configs(baseline_node, candidate_node),
    ]
    order: dict[Relevance, int] = {"code": 0, "language": 1, "none": 2}
    objects = (baseline.sqlite3_object_sha256, candidate.sqlite3_object_sha256)
    return BuildComparison(
        differences=tuple(sorted(differences, key=lambda d: order[d.relevance])[:MAX_DIFFERENCES]),
        sqlite_object_equal=None if None in objects else objects[0] == objects[1],
        binary_equal=baseline.binding_sha256 == candidate.binding_sha256,
    )


def _compilers(baseline: AddonBuild, candidate: AddonBuild) -> Iterable[BuildDifference]:
    if baseline.compiler != candidate.compiler:
        yield BuildDifference(
            what="compiler",
            subject="g++",
            baseline=baseline.compiler or "(shipped binary)",
            candidate=candidate.compiler or "(shipped binary)",
            relevance="code",
        )


def _objects(baseline: AddonBuild, candidate: AddonBuild) -> Iterable[BuildDifference]:
    one, other = baseline.sqlite3_object_sha256, candidate.sqlite3_object_sha256
    if one != other:
        yield BuildDifference(
            what="sqlite3.o", subject="sqlite3.c", baseline=one or "", candidate=other or "", relevance="code"
        )


def _flags(baseline: Mapping[str, str], candidate: Mapping[str, str]) -> Iterable[BuildDifference]:
    if not baseline or not candidate:
        return  # a shipped binary; nobody knows how it was compiled
    for subject in sorted({*baseline, *candidate}):
        one, other = (Counter(normal_flags(side.get(subject, ""))) for side in (baseline, candidate))
        gone, come = sorted((one - other).elements()), sorted((other - one).elements())
        for word in gone:
            partner = next((new for new in come if _stem(new) == _stem(word)), "")
            if partner:
                come.remove(partner)
            yield _flag(subject, word, partner)
        for word in come:
            yield _flag(subject, "", word)


def normal_flags(command: str) -> tuple[str, ...]:
    """The words of a command line that say how to compile: no program, names of files, or places."""
    try:
        given = shlex.split(command)
    except ValueError:
        return (command,)
    kept = []
    skip = True
    for word in given:
        if skip:
            skip = False
        elif word in _PAIRS:
            skip = True
        elif word.startswith("-") and not word.startswith(("-I", "-M")) and word != "-c":
            kept.append(word)
    return tuple(kept)


def _stem(word: str) -> str:
    """What two values of one option have in common: ``-std``, ``-O``, ``-DNAME``."""
    return "-O" if word.startswith("-O") else word.partition("=")[0]


def _flag(subject: str, one: str, other: str) -> BuildDifference:
    word = one or other
    relevance: Relevance = "none"
    if word.startswith("-std"):
        relevance = "language"
    elif decides_code(word):
        relevance = "code"
    return BuildDifference(
        what="flag",
        subject=subject,
        baseline=clean_text(one, 200),
        candidate=clean_text(other, 200),
        relevance=relevance,
    )


def decides_code(word: str) -> bool:
    """Whether a flag decides machine code."""
    return word.startswith(_CODE)


# -- Node's own configuration -------------------------------------------------------------------------------


def compare_configs(baseline: NodeBuild, candidate: NodeBuild) -> Iterable[BuildDifference]:
    """Variables of ``config.gypi`` (as in ``process.config``) that differ; whether ``common.gypi`` does."""
    yield from config_differences(read_config(baseline.directory), read_config(candidate.directory))
    digests = [_digest(node.directory / _COMMON) for node in (baseline, candidate)]
    if digests[0] != digests[1]:
        yield BuildDifference(
            what="common.gypi",
            subject="defaults that addons inherit; they show in the flags above",
            baseline=digests[0],
            candidate=digests[1],
            relevance="none",
        )


def config_differences(one: Mapping[str, str], other: Mapping[str, str]) -> Iterable[BuildDifference]:
    """Variables that differ between two configurations as `read_config` gives them."""
    for name in sorted({*one, *other}):
        if one.get(name) != other.get(name):
            variable = name.removeprefix("variables.")
            yield BuildDifference(
                what="config.gypi",
                subject=name,
                baseline=one.get(name, ""),
                candidate=other.get(name, ""),
                relevance="code" if variable.startswith(_DECISIVE) else "none",
            )


def read_config(directory: Path) -> dict[str, str]:
    """Variables of a Node's ``config.gypi``, flat: ``variables.v8_enable_sandbox`` -> ``0``.

    The file is a literal of Python behind a comment. What cannot be read gives nothing.
    """
    path = directory / _CONFIG
    try:
        if path.stat().st_size > _CONFIG_BYTES:
            return {}
        tree = ast.literal_eval(path.read_text("utf-8"))
    except (OSError, ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return {}
    return dict(_flat("", tree)) if isinstance(tree, dict) else {}


def public_config(directory: Path) -> dict[str, str]:
    """`read_config` for a stored file: values that name a place of a machine say only that they do."""
    config = read_config(directory)
    return {name: _A_PLACE if _ABSOLUTE.search(value) else value for name, value in config.items()}


def _flat(prefix: str, tree: Mapping[object, object]) -> Iterable[tuple[str, str]]:
    for key, value in tree.items():
        name = f"{prefix}{clean_text(str(key), 80)}"
        if isinstance(value, dict) and value:
            yield from _flat(f"{name}.", value)
        else:
            yield name, clean_text(str(value), 200)


def _digest(path: Path) -> str:
    try:
        return cache.sha256_of(path)
    except OSError:
        return ""
