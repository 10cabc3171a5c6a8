"""Measurements without Node: the host control before and after each round, and `investigate native`.

The program is sqlcipher_bench/native/host.c, linked with the amalgamation that the addon's build compiled.
In runs without one (`js`, ``node:sqlite``) an integer loop in the baseline's Node stands in as host control.
"""

import ast
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from investigator import cache, resources
from investigator.addons import AddonPackage
from investigator.build import AddonBuild, BuildFailure, address, base_identity, compiler_of
from investigator.build_log import first_error
from investigator.engine.interface import Engine, Mount, Outcome, Task
from investigator.exchange import UnreadableError, exchange, take
from investigator.nodes.interface import NodeBuild
from investigator.protocol import Count, Nanos
from investigator.text import clean_text
from sqlcipher_bench.profiles import NO_CIPHER, PRODUCTION, Profile

PASSPHRASE: Final = "a public passphrase for synthetic mail"  # noqa: S105 - no secret, see below
"""Public on purpose: the data are synthetic, and a reproduction has to open the same file."""
PROGRAM: Final = "host"
CONTROL_PASSES: Final = 5
NATIVE_PASSES: Final = 7
PASS_MS: Final = 40
COMPILE_TIMEOUT_S: Final = 900.0
CONTROL_TIMEOUT_S: Final = 120.0
NATIVE_TIMEOUT_S: Final = 300.0

_KIND: Final = "host-programs"
_NATIVE: Final = "sqlcipher_bench/native"
_PROGRAM_SOURCES: Final = ("host.c", "bench.c")
_OBJECT: Final = "sqlite3.o"
_SOURCES: Final = "package/deps/sqlite3"
_DEFINES: Final = "package/deps/defines.gypi"
_OUTPUT_BYTES: Final = 4 << 20
# What the addon's release build passes to the amalgamation, for shipped binaries, whose flags nobody knows.
_RELEASE_FLAGS: Final = ("-O3", "-fPIC", "-pthread")
_KEPT_FLAGS: Final = ("-O", "-f", "-m", "-pthread")
_WARNINGS: Final = ("-std=c11", "-Wall", "-Wextra")
_LIBRARIES: Final = ("-pthread", "-ldl", "-lm")


class HostReading(msgspec.Struct, frozen=True, kw_only=True):
    """Passes of one loop; entries at one index belong to one pass."""

    op: str
    """``select_range`` of the native program, ``integer_loop`` in Node, or an operation of `run_native`."""
    calls: tuple[int, ...]
    wall_ns: tuple[int, ...]
    cpu_ns: tuple[int, ...]
    """CPU time of the whole process."""

    @property
    def ns_per_call(self) -> float:
        """Wall time of a call in the fastest pass, in nanoseconds."""
        return min(wall / calls for wall, calls in zip(self.wall_ns, self.calls, strict=True))


class NativeReading(msgspec.Struct, frozen=True, kw_only=True):
    """What `investigate native` shows for one profile."""

    profile: str
    sqlite: str
    """Version of the library."""
    cipher: str
    """Scheme, as the library itself answers; ``none`` without one."""
    pragmas: Mapping[str, str]
    """What the database answers to each PRAGMA of the profile."""
    operations: tuple[HostReading, ...]
    setup_ns: int
    """Creating the database, loading the mailbox."""
    vacuum_ns: int
    database_bytes: int
    wal_bytes: int
    """Size of the WAL after loading, before the first checkpoint; 0 in other journal modes."""
    database_after_vacuum_bytes: int


class NativeFailure(msgspec.Struct, frozen=True, kw_only=True):
    """One profile that could not be measured."""

    reason: str
    """One sentence."""


class _Hello(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="hello"):
    protocol: int
    sqlite: str = ""
    cipher: str = NO_CIPHER
    pragmas: dict[str, str] = {}
    node: str = ""


class _Value(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="value"):
    name: str
    value: Count


class _Pass(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="pass"):
    op: str
    index: Count
    calls: Count
    wall_ns: Nanos
    cpu_ns: Count


class _Done(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="done"):
    wall_ns: int
    fold: int


_Line = _Hello | _Value | _Pass | _Done
_DECODER: Final = msgspec.json.Decoder(_Line)


class _FailedError(Exception):
    """Something of this module failed; becomes a value at its border."""


# -- the program --------------------------------------------------------------------------------------------


def compile_host_program(engine: Engine, build: AddonBuild) -> Path | BuildFailure:
    """Link the host program with the amalgamation of `build`, or take it from the cache.

    Builds of one addon for several Node releases share the amalgamation's object file, so they share the
    program too. For a shipped binary the amalgamation is compiled here, from the package's sources.

    Returns:
        The program; or a failure where the package holds no SQLite or nothing compiles.

    Raises:
        EngineMissingError: the engine does not answer any more.
        HostUnfitError: the disk is full.
    """
    try:
        flags = _compile_flags(build)
        key = address(
            {
                "base": base_identity(engine),
                "compiler": build.compiler or compiler_of(engine),
                "flags": flags,
                "program": resources.digest(
                    *(f"{_NATIVE}/{name}" for name in (*_PROGRAM_SOURCES, "bench.h"))
                ),
                "sqlite": [_amalgamation_sha256(build, name) for name in ("sqlite3.c", "sqlite3.h")],
                "object": build.sqlite3_object_sha256,
            }
        )

        def fill(directory: Path) -> None:
            _compile(engine, directory, build, flags)

        return cache.filled(_KIND, key, fill, key_files=(PROGRAM,)) / PROGRAM
    except _FailedError as failure:
        return BuildFailure(reason=f"the host control does not compile: {failure}")


def _amalgamation_sha256(build: AddonBuild, name: str) -> str:
    path = build.directory / _SOURCES / name
    if path.is_symlink() or not path.is_file():
        raise _FailedError(f"the addon package has no {_SOURCES.removeprefix('package/')}/{name}")
    return cache.sha256_of(path)


def _compile_flags(build: AddonBuild) -> tuple[str, ...]:
    """Optimisation and code generation as in the addon's own build of the amalgamation."""
    recorded = build.flags.get("sqlite3.c")
    if recorded is None:
        return _RELEASE_FLAGS
    return tuple(dict.fromkeys(word for word in shlex.split(recorded) if word.startswith(_KEPT_FLAGS)))


def _defines(build: AddonBuild) -> tuple[str, ...]:
    """Compile-time options of the amalgamation, from the package's gyp file (a Python literal)."""
    try:
        options = ast.literal_eval((build.directory / _DEFINES).read_text("utf-8"))["defines"]
        return tuple(f"-D{option}" for option in options if isinstance(option, str))
    except (OSError, ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise _FailedError(f"{_DEFINES.removeprefix('package/')} of the addon cannot be read") from error


def _compile(engine: Engine, directory: Path, build: AddonBuild, flags: Sequence[str]) -> None:
    # The task's user must pass through; cache.filled makes the directory private.
    directory.chmod(0o711)
    out = directory / "out"
    out.mkdir()
    mounts = {
        "native": Mount(source=resources.root() / _NATIVE, target=PurePosixPath("/native")),
        "addon": Mount(source=build.directory, target=PurePosixPath("/addon")),
        "out": Mount(source=out, target=PurePosixPath("/out"), writable=True),
    }
    seen = {name: engine.inside(mount) for name, mount in mounts.items()}
    amalgamation = seen["addon"] / _OBJECT
    if build.sqlite3_object_sha256 is None:
        amalgamation = seen["out"] / _OBJECT
        source = str(seen["addon"] / _SOURCES / "sqlite3.c")
        words = (
            *flags,
            "-DNDEBUG",
            "-std=c99",
            "-w",
            *_defines(build),
            "-c",
            source,
            "-o",
            str(amalgamation),
        )
        _run_compiler(engine, words, mounts, "compile SQLite for the host control")
    words = (
        *flags,
        *_WARNINGS,
        f"-I{seen['addon'] / _SOURCES}",
        *(str(seen["native"] / name) for name in _PROGRAM_SOURCES),
        str(amalgamation),
        "-o",
        str(seen["out"] / PROGRAM),
        *_LIBRARIES,
    )
    _run_compiler(engine, words, mounts, "compile the host control")
    made = out / PROGRAM
    if made.is_symlink() or not made.is_file():
        raise _FailedError("the compiler left no program")
    shutil.copyfile(made, directory / PROGRAM)
    (directory / PROGRAM).chmod(0o755)
    shutil.rmtree(out)


def _run_compiler(engine: Engine, words: Sequence[str], mounts: Mapping[str, Mount], purpose: str) -> None:
    outcome = engine.run(
        Task(
            command=("gcc", *words),
            purpose=purpose,
            mounts=tuple(mounts.values()),
            environment={"LC_ALL": "C"},
            timeout_s=COMPILE_TIMEOUT_S,
        )
    )
    if not outcome.ok:
        raise _FailedError(first_error(outcome.stderr) or _ending(outcome, COMPILE_TIMEOUT_S))


# -- measuring ----------------------------------------------------------------------------------------------


def host_control(
    engine: Engine,
    *,
    plan_cipher: str,
    package: AddonPackage | None,
    build: AddonBuild | None,
    mailbox: Path | None,
    node: NodeBuild,
    cpus: str | None,
    notify: Callable[[str], None],
) -> tuple[Callable[[], HostReading | None], Path | None]:
    """Choose the host control of a run: the same binary in every round.

    The native program where the addon's package holds an amalgamation, compiled or shipped; else (`js`,
    ``node:sqlite``, or where it does not compile) the integer loop in Node.

    Args:
        engine: where it runs.
        plan_cipher: scheme of the spec; an addon without ciphers is measured without one.
        package: the addon of the run, if any.
        build: any build of it, if any.
        mailbox: the generated data file; None in ``js`` runs.
        node: the baseline's, for the integer loop.
        cpus: CPUs it may use, as in `Task`.
        notify: told why the integer loop stands in, and once why readings are missing.

    Returns:
        What takes one reading, None where that failed; and the program, None for the integer loop.

    Raises:
        EngineMissingError: the engine does not answer any more.
        HostUnfitError: the disk is full.
    """
    tell = _once(notify)
    if package is not None and build is not None and mailbox is not None:
        made = compile_host_program(engine, build)
        if isinstance(made, Path):
            program, cipher = made, plan_cipher if package.encrypted else NO_CIPHER
            return lambda: run_host_control(
                engine, program, mailbox, cipher=cipher, cpus=cpus, notify=tell
            ), program
        notify(f"{made.reason}; an integer loop in Node stands in for it")
    elif package is not None:
        notify(f"{package.name} brings no SQLite to compile: the host control is an integer loop in Node")
    return lambda: run_node_control(engine, node, cpus=cpus, notify=tell), None


def _once(notify: Callable[[str], None]) -> Callable[[str], None]:
    """Pass on the first sentence only: what fails in one round fails in all."""
    told: list[str] = []

    def tell(sentence: str) -> None:
        if not told:
            told.append(sentence)
            notify(sentence)

    return tell


def run_host_control(
    engine: Engine,
    program: Path,
    mailbox: Path,
    *,
    cipher: str = PRODUCTION.cipher,
    passes: int = CONTROL_PASSES,
    cpus: str | None = None,
    notify: Callable[[str], None] | None = None,
) -> HostReading | None:
    """Read the host once: select_range in the native program, about half a second with its set-up.

    Args:
        engine: where it runs.
        program: from `compile_host_program`.
        mailbox: the generated data file.
        cipher: scheme, or ``none``.
        passes: timed passes of 40 ms.
        cpus: CPUs it may use, as in `Task`.
        notify: told why there is no reading, if there is none.

    Returns:
        The passes; None where the program failed: a run goes on without its host control.
    """
    profile = Profile(name="control", cipher=cipher)
    return _first_reading(
        lambda: _run_program(engine, program, mailbox, "control", profile, passes, cpus, CONTROL_TIMEOUT_S),
        notify,
    )


def run_node_control(
    engine: Engine,
    node: NodeBuild,
    *,
    passes: int = CONTROL_PASSES,
    cpus: str | None = None,
    notify: Callable[[str], None] | None = None,
) -> HostReading | None:
    """Read the host once by the integer loop in `node`, for runs without an amalgamation.

    Arguments and result as in `run_host_control`.
    """
    mounts = {
        "node": Mount(source=node.directory, target=PurePosixPath("/node")),
        "fixtures": Mount(source=resources.root() / "node_fixtures", target=PurePosixPath("/loop")),
    }

    def command(seen: Mapping[str, PurePosixPath], output: str) -> tuple[str, ...]:
        script = str(seen["fixtures"] / "host_loop.mjs")
        return (str(seen["node"] / "bin/node"), script, output, str(passes), str(PASS_MS))

    return _first_reading(
        lambda: _run_measuring(engine, mounts, command, {}, cpus, CONTROL_TIMEOUT_S), notify
    )


def _first_reading(
    run: Callable[[], tuple[_Line, ...]], notify: Callable[[str], None] | None
) -> HostReading | None:
    """First reading of what a program wrote; None, told to `notify`, where there is none."""
    try:
        return _readings(run())[0]
    except _FailedError as failure:
        if notify is not None:
            notify(f"no host control: {failure}")
        return None


def run_native(
    engine: Engine,
    program: Path,
    mailbox: Path,
    profile: Profile = PRODUCTION,
    *,
    passes: int = NATIVE_PASSES,
    cpus: str | None = None,
) -> NativeReading | NativeFailure:
    """Measure the encrypted database without Node under one profile.

    Raises:
        EngineMissingError: the engine does not answer any more.
        HostUnfitError: no space is left on the host.
    """
    try:
        lines = _run_program(engine, program, mailbox, "native", profile, passes, cpus, NATIVE_TIMEOUT_S)
        hello = _hello(lines)
        values = {line.name: line.value for line in lines if isinstance(line, _Value)}
        return NativeReading(
            profile=profile.name,
            sqlite=hello.sqlite,
            cipher=hello.cipher,
            pragmas=hello.pragmas,
            operations=_readings(lines),
            setup_ns=values["setup_ns"],
            vacuum_ns=values["vacuum_ns"],
            database_bytes=values["database_bytes"],
            wal_bytes=values["wal_bytes"],
            database_after_vacuum_bytes=values["database_after_vacuum_bytes"],
        )
    except KeyError as missing:
        return NativeFailure(reason=f"profile {profile.name}: the output has no {missing}")
    except _FailedError as failure:
        return NativeFailure(reason=f"profile {profile.name}: {failure}")


def _run_program(
    engine: Engine,
    program: Path,
    mailbox: Path,
    mode: str,
    profile: Profile,
    passes: int,
    cpus: str | None,
    timeout_s: float,
) -> tuple[_Line, ...]:
    mounts = {
        "program": Mount(source=program.parent, target=PurePosixPath("/program")),
        "sql": Mount(source=resources.root() / "sqlcipher_bench", target=PurePosixPath("/sql")),
        "mailbox": Mount(source=mailbox, target=PurePosixPath("/mailbox")),
    }
    pragmas = [word for name, value in profile.pragmas.items() for word in ("--pragma", f"{name}={value}")]

    def command(seen: Mapping[str, PurePosixPath], output: str) -> tuple[str, ...]:
        return (
            *(str(seen["program"] / program.name), mode),
            *("--mailbox", str(seen["mailbox"]), "--sql", str(seen["sql"])),
            *("--output", output, "--cipher", profile.cipher, *pragmas),
            *("--passes", str(passes), "--pass-ms", str(PASS_MS)),
        )

    environment = {} if profile.cipher == NO_CIPHER else {"INVESTIGATE_KEY": PASSPHRASE}
    return _run_measuring(engine, mounts, command, environment, cpus, timeout_s)


def _run_measuring(
    engine: Engine,
    mounts: Mapping[str, Mount],
    command: Callable[[Mapping[str, PurePosixPath], str], tuple[str, ...]],
    environment: Mapping[str, str],
    cpus: str | None,
    timeout_s: float,
) -> tuple[_Line, ...]:
    """Run a program that writes JSON lines into a file; the lines, complete.

    `command` takes the places of the mounts and of that file, as the program sees them.
    """
    with exchange() as folder:
        out = Mount(source=folder / "out", target=PurePosixPath("/out"), writable=True)
        seen = {name: engine.inside(mount) for name, mount in mounts.items()}
        outcome = engine.run(
            Task(
                command=command(seen, str(engine.inside(out) / "lines.jsonl")),
                purpose="host control",
                mounts=(*mounts.values(), out),
                environment=environment,
                timeout_s=timeout_s,
                cpus=cpus,
            )
        )
        if not outcome.ok:
            raise _FailedError(_ending(outcome, timeout_s))
        return _read_lines(folder / "out/lines.jsonl")


def _read_lines(path: Path) -> tuple[_Line, ...]:
    try:
        lines = tuple(_DECODER.decode(line) for line in take(path, _OUTPUT_BYTES).splitlines())
    except UnreadableError as error:
        raise _FailedError(f"its output {error}") from error
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise _FailedError(f"its output cannot be read ({clean_text(str(error), 200)})") from error
    if not lines or not isinstance(lines[-1], _Done):
        raise _FailedError("its output is incomplete")
    return lines


def _hello(lines: Sequence[_Line]) -> _Hello:
    if not isinstance(lines[0], _Hello):
        raise _FailedError("its output does not begin with a hello")
    return lines[0]


def _readings(lines: Sequence[_Line]) -> tuple[HostReading, ...]:
    """Passes by operation, in the order of the file; at least one."""
    passes: dict[str, list[_Pass]] = {}
    for line in lines:
        if isinstance(line, _Pass):
            passes.setdefault(line.op, []).append(line)
    if not passes or any(each.calls < 1 for some in passes.values() for each in some):
        raise _FailedError("its output has no usable pass")
    return tuple(
        HostReading(
            op=op,
            calls=tuple(each.calls for each in some),
            wall_ns=tuple(each.wall_ns for each in some),
            cpu_ns=tuple(each.cpu_ns for each in some),
        )
        for op, some in passes.items()
    )


def _ending(outcome: Outcome, timeout_s: float) -> str:
    if outcome.timed_out:
        return f"it did not end within {timeout_s:.0f} s"
    if outcome.out_of_memory:
        return "it needed more memory than a task may have"
    said = outcome.stderr.strip().splitlines()[-1:]
    return clean_text(said[0], 300) if said else f"it ended with status {outcome.exit_code}"
