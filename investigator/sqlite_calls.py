"""Does the core loop make the sqlite3 calls that the addon makes? Counted once per addon build, and compared.

The addon is compiled again from its own sources, and linked with the amalgamation's object file of the build
and with a shim that counts (sqlcipher_bench/native/counting); so is the core module. One process then runs
every operation in both.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, Literal, get_args

import msgspec

from investigator import cache, resources
from investigator.build import AddonBuild, address, base_identity
from investigator.build_log import first_error
from investigator.engine.interface import Engine, Mount, Task
from investigator.exchange import UnreadableError, exchange, give, take
from investigator.nodes.interface import NodeBuild
from investigator.operations import CORE, SQLITE
from investigator.text import clean_text

RowBuilder = Literal["set", "bulk", "factory"]
"""How the addon makes row objects, which decides when it reads the names of columns: ``set`` with every row,
``bulk`` once for the rows of a call, ``factory`` once for a statement."""

CALLS: Final = 8
"""Calls of an operation that are counted: two rounds through the four mailboxes and the four strings."""
COMPILE_TIMEOUT_S: Final = 600.0
COUNT_TIMEOUT_S: Final = 180.0

_KIND: Final = "sqlite-calls"
_RECORD: Final = "calls.json"
_NATIVE: Final = "sqlcipher_bench/native"
_SOURCES: Final = ("sqlcipher_bench", "node_fixtures/worker/addon.mjs")
_HEADERS: Final = "package/deps/sqlite3"
_OBJECT: Final = "sqlite3.o"
_OBJECT_BYTES: Final = 64 << 20
_RESULT_BYTES: Final = 4 << 20
_MOST_NAMES: Final = 1024
# A name in the string table of an object file; two of them share the NUL between them.
_SYMBOL: Final = re.compile(rb"\0(sqlite3_[a-z0-9_]{1,60})(?=\0)")
_SOURCE: Final = re.compile(r"[\w.-]+\.(?:cc|cpp|cxx)")
# Code is counted, not timed: no optimisation, and no link-time one, under which symbols cannot be wrapped.
_KEPT_FLAGS: Final = ("-D", "-I", "-f", "-m", "-std=", "-pthread")
_LEFT_FLAGS: Final = ("-flto", "-fplugin", "-fno-omit")


class CallCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of each sqlite3 function in `CALLS` calls of one operation; those never called are left out."""

    addon: Mapping[str, int]
    core: Mapping[str, int]

    @property
    def same(self) -> bool:
        """Whether both make the same calls."""
        return self.addon == self.core

    @property
    def table(self) -> Mapping[str, tuple[int, int]]:
        """By function, in alphabetical order: calls of the addon, of the core loop."""
        names = sorted({*self.addon, *self.core})
        return {name: (self.addon.get(name, 0), self.core.get(name, 0)) for name in names}

    @property
    def differences(self) -> Mapping[str, tuple[int, int]]:
        """The rows of `table` that differ."""
        return {name: counts for name, counts in self.table.items() if counts[0] != counts[1]}


class SqliteCalls(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison for one addon build."""

    row_builder: RowBuilder
    """With which the core loop comes nearest; it has to be run with this one (``ctx.probe.rowBuilder``)."""
    operations: Mapping[str, CallCounts]
    """By name of the sqlite operation."""
    failures: Mapping[str, str] = {}
    """Operations that could not be counted, with the reason."""

    @property
    def same(self) -> bool:
        """Whether every operation was counted and makes the same calls in both."""
        return not self.failures and all(counts.same for counts in self.operations.values())

    def difference(self, op: str) -> str | None:
        """Why the core loop of an operation is not the addon's, as one sentence; None where it is."""
        if op in self.failures:
            return f"the sqlite3 calls of {op} could not be counted: {self.failures[op]}"
        counts = self.operations.get(op)
        if counts is None:
            return f"the sqlite3 calls of {op} were not counted"
        if counts.same:
            return None
        shown = [f"{name} {addon} and {core}" for name, (addon, core) in counts.differences.items()]
        more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
        return (
            f"in {CALLS} calls of {op} the addon and the core loop differ in their sqlite3 calls: "
            f"{', '.join(shown[:3])}{more}"
        )


class SqliteCallsFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A build whose calls could not be counted."""

    reason: str
    """One sentence."""


class _FailedError(Exception):
    """Leaves a cache fill without an entry; becomes a value at the border of this module."""


class _Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What count.mjs writes for an operation."""

    addon: list[int] = []
    core: dict[RowBuilder, list[int]] = {}
    error: str = ""


_RESULT: Final = msgspec.json.Decoder(dict[str, _Counted])


def count_sqlite_calls(
    engine: Engine,
    node: NodeBuild,
    build: AddonBuild,
    mailbox: Path,
    *,
    encrypted: bool = True,
    cipher: str = "chacha20",
) -> SqliteCalls | SqliteCallsFailure:
    """Count the sqlite3 calls of every operation in the addon and in the core loop; cached.

    Args:
        engine: where it is compiled and run; about half a minute.
        node: the build that the addon was compiled for.
        build: a build from source; the sources of a shipped binary may not be those that it was made of.
        mailbox: the generated data file.
        encrypted: whether the addon has ciphers.
        cipher: scheme of the run.

    Returns:
        The comparison; or a failure where the addon cannot be compiled again.

    Raises:
        EngineMissingError: the engine does not answer any more.
        HostUnfitError: the disk is full.
    """
    if build.sqlite3_object_sha256 is None or not _compiled(build):
        return SqliteCallsFailure(reason="the sqlite3 calls of a shipped binary cannot be counted")
    key = address(
        {
            "base": base_identity(engine),
            "build": build.key,
            "fixtures": resources.digest(*_SOURCES),
            "mailbox": cache.sha256_of(mailbox),
            "cipher": cipher if encrypted else "none",
        }
    )

    def fill(directory: Path) -> None:
        calls = _count(engine, node, build, mailbox, encrypted=encrypted, cipher=cipher)
        (directory / _RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(calls)))

    try:
        directory = cache.filled(_KIND, key, fill, key_files=(_RECORD,))
    except _FailedError as failure:
        return SqliteCallsFailure(reason=f"the sqlite3 calls of the addon cannot be counted: {failure}")
    return msgspec.json.decode((directory / _RECORD).read_bytes(), type=SqliteCalls)


def _compiled(build: AddonBuild) -> dict[str, str]:
    """Command lines of the addon's own sources, by file name."""
    return {name: words for name, words in build.flags.items() if _SOURCE.fullmatch(name)}


def _count(
    engine: Engine, node: NodeBuild, build: AddonBuild, mailbox: Path, *, encrypted: bool, cipher: str
) -> SqliteCalls:
    with exchange() as folder:
        workshop = _Workshop(engine, node, build, mailbox, folder)
        addon = workshop.compile_addon()
        core = workshop.compile_core()
        names = workshop.names((*addon, *core))
        bindings = {"addon": workshop.link(addon, "addon", names), "core": workshop.link(core, "core", names)}
        counted = workshop.run(bindings, len(names), encrypted=encrypted, cipher=cipher)
    return compare(names, counted)


class _Workshop:
    """Compiles, links and runs in one folder that passes from task to task."""

    def __init__(
        self, engine: Engine, node: NodeBuild, build: AddonBuild, mailbox: Path, folder: Path
    ) -> None:
        self._engine = engine
        self._build = build
        self._folder = folder
        self._mounts = {
            "node": Mount(source=node.directory, target=PurePosixPath("/node")),
            "addon": Mount(source=build.directory, target=PurePosixPath("/addon")),
            "bench": Mount(
                source=resources.root() / "sqlcipher_bench", target=PurePosixPath("/fixtures/sqlcipher_bench")
            ),
            "worker": Mount(
                source=resources.root() / "node_fixtures", target=PurePosixPath("/fixtures/node_fixtures")
            ),
            "mailbox": Mount(source=mailbox, target=PurePosixPath("/mailbox")),
            "out": Mount(source=folder / "out", target=PurePosixPath("/out"), writable=True),
            "in": Mount(source=folder / "in", target=PurePosixPath("/in")),
        }
        (folder / "in").mkdir(mode=0o755)
        self._seen = {name: engine.inside(mount) for name, mount in self._mounts.items()}

    def compile_addon(self) -> tuple[str, ...]:
        """Object files of the addon's own sources, by name."""
        objects = []
        for name, line in sorted(_compiled(self._build).items()):
            target = f"addon-{name}.o"
            words = addon_words(line, {place: str(self._seen[seen]) for place, seen in _PLACES.items()})
            self._run(
                ("g++", *words, "-w", "-c", "-o", self._out(target)), "compile the addon to count its calls"
            )
            objects.append(target)
        return tuple(objects)

    def compile_core(self) -> tuple[str, ...]:
        """Object files of the core module."""
        for name in ("core_addon", "bench"):
            words = (
                *("gcc", "-std=c11", "-fPIC", "-c", str(self._seen["bench"] / f"native/{name}.c")),
                *("-o", self._out(f"{name}.o")),
                *(f"-I{self._seen['node'] / 'include/node'}", f"-I{self._seen['addon'] / _HEADERS}"),
            )
            self._run(words, "compile the core module to count its calls")
        return ("core_addon.o", "bench.o")

    def names(self, objects: Sequence[str]) -> tuple[str, ...]:
        """Functions of the amalgamation that any of the object files names, in order."""
        try:
            named = {
                name
                for each in objects
                for name in _symbols(take(self._folder / "out" / each, _OBJECT_BYTES))
            }
            offered = _symbols(take(self._build.directory / _OBJECT, _OBJECT_BYTES))
        except UnreadableError as error:
            raise _FailedError(f"an object file {error}") from error
        found = tuple(sorted(named & offered))
        if not 0 < len(found) <= _MOST_NAMES:
            raise _FailedError(f"its object files name {len(found)} functions of SQLite")
        return found

    def link(self, objects: Sequence[str], what: str, names: Sequence[str]) -> str:
        """Binary that counts, as the tasks see it."""
        binding = self._out(f"{what}.node")
        lines = "".join(f"COUNTED({index}, {name})\n" for index, name in enumerate(names))
        give(self._folder / "in/counted.h", lines.encode())
        words = (
            *("g++", "-shared", "-fPIC", "-pthread", "-Wl,-Bsymbolic", "-o", binding),
            *(f"-Wl,--wrap={name}" for name in names),
            *(self._out(name) for name in objects),
            *(f'-DCOUNTS_VARIABLE="{_variable(what)}"', f"-I{self._seen['in']}"),
            *("-x", "c", str(self._seen["bench"] / "native/counting/counting.c"), "-x", "none"),
            *(str(self._seen["addon"] / _OBJECT), "-ldl", "-lm"),
        )
        self._run(words, "link the addon to count its calls")
        return binding

    def run(
        self, bindings: Mapping[str, str], names: int, *, encrypted: bool, cipher: str
    ) -> dict[str, _Counted]:
        """Counts by operation."""
        counts = {what: str(self._engine.scratch / f"{what}.counts") for what in bindings}
        root = self._seen["bench"].parent
        job = {
            "names": names,
            "calls": CALLS,
            "counts": counts,
            "loader": str(self._seen["worker"] / "worker/addon.mjs"),
            "addon": {
                "kind": "package",
                "entry": str(self._seen["addon"] / self._build.entry),
                "binding": bindings["addon"],
                "encrypted": encrypted,
            },
            "core": bindings["core"],
            "cipher": cipher if encrypted else "none",
            "mailbox": str(self._seen["mailbox"]),
            "scratch": str(self._engine.scratch),
            "output": self._out("counts.json"),
            "row_builders": get_args(RowBuilder),
            "operations": [
                {
                    "name": addon.name,
                    "addon": {"module": str(root / addon.module), "workload": addon.workload},
                    "core": {"module": str(root / core.module), "workload": core.workload},
                }
                for addon, core in zip(SQLITE, CORE, strict=True)
            ],
        }
        give(self._folder / "in/job.json", msgspec.json.encode(job))
        words = (
            *(str(self._seen["node"] / "bin/node"), "--expose-gc"),
            *(str(self._seen["bench"] / "native/counting/count.mjs"), str(self._seen["in"] / "job.json")),
        )
        variables = {_variable(what): path for what, path in counts.items()}
        self._run(words, "count the sqlite3 calls", COUNT_TIMEOUT_S, variables)
        try:
            return _RESULT.decode(take(self._folder / "out/counts.json", _RESULT_BYTES))
        except UnreadableError as error:
            raise _FailedError(f"the result {error}") from error
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
            raise _FailedError(f"the result cannot be read ({clean_text(str(error), 200)})") from error

    def _out(self, name: str) -> str:
        return str(self._seen["out"] / name)

    def _run(
        self,
        words: tuple[str, ...],
        purpose: str,
        timeout_s: float = COMPILE_TIMEOUT_S,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        outcome = self._engine.run(
            Task(
                command=words,
                purpose=purpose,
                mounts=tuple(self._mounts.values()),
                environment={"LC_ALL": "C", **(variables or {})},
                working_directory=self._seen["out"],
                timeout_s=timeout_s,
            )
        )
        if outcome.ok:
            return
        if outcome.timed_out:
            raise _FailedError(f"{purpose}: it did not end within {timeout_s:.0f} s")
        said = first_error(outcome.stderr) or clean_text(outcome.stderr.strip()[-300:], 300)
        raise _FailedError(f"{purpose}: {said or f'it ended with status {outcome.exit_code}'}")


_PLACES: Final = {"/node": "node", "/build": "addon"}


def addon_words(line: str, places: Mapping[str, str]) -> tuple[str, ...]:
    """Words of the compiler for one source of the addon, from the command line that its build recorded.

    Args:
        line: the command, run by make in ``/build/package/build``.
        places: where each directory of that line lies now.

    Returns:
        The source and what decides its meaning: definitions, include paths, standard, code generation.
    """
    words = shlex.split(line)
    package = f"{places['/build']}/package"
    kept: list[str] = []
    for word in words:
        if word.startswith("../") and _SOURCE.fullmatch(PurePosixPath(word).name):
            kept.append(f"{package}/{word.removeprefix('../')}")
        elif word.startswith(_KEPT_FLAGS) and not word.startswith(_LEFT_FLAGS):
            kept.append(_moved(word, places))
    return (*kept, f"-I{places['/build']}/{_HEADERS}")


def _moved(word: str, places: Mapping[str, str]) -> str:
    """The include path as the task sees it; other words as they are."""
    for place, now in places.items():
        if word.startswith(f"-I{place}/"):
            return f"-I{now}{word.removeprefix(f'-I{place}')}"
    return word


def _variable(what: str) -> str:
    return f"INVESTIGATE_{what.upper()}_COUNTS"


def _symbols(content: bytes) -> frozenset[str]:
    return frozenset(name.decode() for name in _SYMBOL.findall(content))


def compare(names: Sequence[str], counted: Mapping[str, _Counted]) -> SqliteCalls:
    """The comparison under the row builder with which most operations agree; pure."""
    whole = {op: each for op, each in counted.items() if not each.error and _fits(each, len(names))}
    failures = {
        op: clean_text(each.error, 300) or "its counts are incomplete"
        for op, each in counted.items()
        if op not in whole
    }
    missing = {operation.name: "it was not run" for operation in SQLITE if operation.name not in counted}
    builders: tuple[RowBuilder, ...] = get_args(RowBuilder)
    agreeing = {b: sum(each.addon == each.core[b] for each in whole.values()) for b in builders}
    best = max(builders, key=lambda b: agreeing[b])
    return SqliteCalls(
        row_builder=best,
        operations={
            op: CallCounts(addon=_named(names, each.addon), core=_named(names, each.core[best]))
            for op, each in whole.items()
        },
        failures=failures | missing,
    )


def _fits(counted: _Counted, names: int) -> bool:
    complete = set(counted.core) == set(get_args(RowBuilder))
    return complete and all(len(counts) == names for counts in (counted.addon, *counted.core.values()))


def _named(names: Sequence[str], counts: Sequence[int]) -> dict[str, int]:
    return {name: count for name, count in zip(names, counts, strict=True) if count != 0}
