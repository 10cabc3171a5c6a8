"""The probe addons of an environment: what crosses the boundary, and what does not, each by itself.

Three kinds of native code are compiled against the environment's Node, beside the addon under test:

* ``boundary``: primitives of the API between JavaScript and C++, in V8's own API and in Node-API;
* ``core``: the SQL of the operations in C loops, linked with the object file of the addon's own SQLite;
* ``replay``: the addon's *own sources*, compiled with its own flags, on a SQLite of a few hundred lines that
  computes nothing and plays recorded rows. What a call costs there is what the addon and Node do for it, in
  exactly the sequence that this release makes on this Node: no table of releases can be wrong about it, and
  a patch is part of it. Where an addon lets nobody replace its SQLite, there is no replay, with a reason.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from investigator import cache, resources
from investigator.build import (
    AddonBuild,
    BuildError,
    BuildFailure,
    Wanted,
    address,
    base_identity,
    compiler_of,
    copy_package,
    find_binding,
    keep_log,
    run_gyp,
    take_file,
)
from investigator.elf import read_symbols
from investigator.engine.interface import Engine, Mount, Task
from investigator.nodes.interface import NodeBuild
from investigator.observer import NullObserver, Observer
from investigator.protocol import Dialect
from investigator.text import clean_text

RECIPE: Final = 2
"""Raise it whenever the way of building changes: it is part of every cache key."""
BUILD_TIMEOUT_S: Final = 900.0
CHECK_TIMEOUT_S: Final = 60.0

_KIND: Final = "probes"
_RECORD: Final = "probe.json"
_SOURCES: Final = "node_fixtures/boundary_probe"
_NATIVE: Final = "sqlcipher_bench/native"
_SQLITE: Final = "package/deps/sqlite3"
_RELEASE: Final = "build/Release"
_BOUNDARY: Final = "boundary.node"
_NAPI: Final = "boundary_napi.node"
_CORE: Final = "core.node"
_REPLAY: Final = "replay.node"
_PAGE_BYTES: Final = 4096
_SAME_PLACE_SHARE: Final = 0.9
_NAPI_VERSIONS: Final = range(8, 11)
"""Versions of Node-API that the probe is written for."""
# Names that a binary asks Node for. The second one makes an object from names and values at once.
_NAPI_SYMBOL: Final = b"\0napi_create_object\0"
_V8_SYMBOL: Final = b"\0_ZN2v8"
_BULK_SYMBOL: Final = b"_ZN2v86Object3NewEPNS_7IsolateENS_5LocalINS_5ValueEEEPNS3_INS_4NameEEEPS5_m\0"


class ProbeBuild(msgspec.Struct, frozen=True, kw_only=True):
    """Compiled probes of one environment, from the cache or fresh."""

    key: str
    """Content address: Node digest, addon build, compiler, sources of the probes."""
    directory: Path
    """Cache entry with all binaries and their logs."""
    boundary: str
    """The primitives in V8's API, relative to `directory`; also the clock of the main thread."""
    boundary_napi: str | None
    """The primitives in Node-API; None where this Node's is too old."""
    core: str | None
    """The loops in C; None where there is no addon, or none that brings its SQLite."""
    replay: str | None
    """The addon on a SQLite that plays recorded rows; None: see `reason`."""
    dialect: Dialect | None
    """API that the addon's binary calls; None without a replay."""
    reason: str = ""
    """Why there is no replay, one sentence."""
    core_reason: str = ""
    """Why there is no core module, one sentence."""
    row_builder: str | None = None
    """How the addon makes row objects, as its binary shows: ``set`` (a property at a time), ``bulk`` (names
    and values at once), ``factory`` (a JavaScript function); None where that is not known."""
    flags: Mapping[str, str] = {}
    """Command line of the compiler per source file, and of the linker per binary; those of the replay begin
    with ``replay:``."""
    sha256: Mapping[str, str] = {}
    """Digest of each binary, by file name."""
    elapsed_s: float = 0.0
    """What the build took when it was made."""


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """``probe.json`` of a cache entry: a `ProbeBuild` without its place."""

    schema: int = 1
    boundary_napi: bool
    core: bool
    replay: bool
    dialect: Dialect | None
    reason: str
    core_reason: str
    row_builder: str | None
    flags: dict[str, str]
    sha256: dict[str, str]
    elapsed_s: float


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two builds of an entry."""

    flags: dict[str, str] = {}
    elapsed_s: float = 0.0
    core_reason: str = ""


# -- the verb -----------------------------------------------------------------------------------------------


def build_probes(
    engine: Engine,
    environments: Sequence[Wanted],
    builds: Mapping[str, AddonBuild],
    observer: Observer | None = None,
    *,
    jobs: int | None = None,
) -> dict[str, ProbeBuild | BuildFailure]:
    """Build the probes of each environment, in parallel.

    Args:
        engine: where the compiler runs.
        environments: for which probes are wanted.
        builds: of their addons, by identifier; where there is none (``js``, ``node:sqlite``) only the
            primitives are built.
        observer: told of each build.
        jobs: builds at a time; None takes the cores of this machine.

    Returns:
        Probes or a failure for each environment identifier.

    Raises:
        EngineMissingError: the engine does not answer any more.
        HostUnfitError: the disk is full.
    """
    observer = observer or NullObserver()
    compiler = compiler_of(engine)
    keys = {e.id: probe_key(engine, compiler, e.node, builds.get(e.id)) for e in environments}
    first = {keys[e.id]: e for e in reversed(environments)}
    made: dict[str, ProbeBuild | BuildFailure] = {}
    observer.stage_started("probes", len(first))

    def build(environment: Wanted) -> None:
        observer.activity(f"probes for {environment.id}")
        made[keys[environment.id]] = _build(
            engine, compiler, environment, builds.get(environment.id), observer.note
        )
        observer.step("probes", environment.id)

    pool = ThreadPoolExecutor(max_workers=max(1, min(jobs or os.cpu_count() or 1, len(first) or 1)))
    try:
        list(pool.map(build, first.values()))
    finally:
        # Not waiting: after ^C the caller closes the engine, which ends what still compiles.
        pool.shutdown(wait=False, cancel_futures=True)
    return {identifier: made[key] for identifier, key in keys.items()}


def probe_key(engine: Engine, compiler: str, node: NodeBuild, build: AddonBuild | None) -> str:
    """Content address of the probes: everything that can change them."""
    return address(
        {
            "recipe": RECIPE,
            "node": [node.node_sha256, node.config_sha256, node.versions.get("modules", "")],
            "addon": None if build is None else [build.key, build.binding_sha256],
            "base": base_identity(engine),
            "compiler": compiler,
            "sources": resources.digest(_SOURCES, _NATIVE, "node_fixtures/compile"),
        }
    )


def _build(
    engine: Engine,
    compiler: str,
    environment: Wanted,
    build: AddonBuild | None,
    notify: Callable[[str], None],
) -> ProbeBuild | BuildFailure:
    key = probe_key(engine, compiler, environment.node, build)

    def fill(directory: Path) -> None:
        if not compiler:
            raise BuildError("there is no C++ compiler (g++); install one, or choose another --base-image")
        _fill(engine, directory, environment, build)

    try:
        directory = cache.filled(_KIND, key, fill, key_files=(_RECORD, "*.node"), notify=notify)
    except BuildError as failure:
        return BuildFailure(reason=failure.reason, log=keep_log(key, failure.log))
    record = msgspec.json.decode((directory / _RECORD).read_bytes(), type=_Record)
    return ProbeBuild(
        key=key,
        directory=directory,
        boundary=_BOUNDARY,
        boundary_napi=_NAPI if record.boundary_napi else None,
        core=_CORE if record.core else None,
        replay=_REPLAY if record.replay else None,
        dialect=record.dialect,
        reason=record.reason,
        core_reason=record.core_reason,
        row_builder=record.row_builder,
        flags=record.flags,
        sha256=record.sha256,
        elapsed_s=record.elapsed_s,
    )


def _fill(engine: Engine, directory: Path, environment: Wanted, build: AddonBuild | None) -> None:
    """Fill a cache entry: the primitives must build, core and replay may be missing with a reason."""
    # The task's user must pass through; cache.filled makes the directory private.
    directory.chmod(0o711)
    own = _compile_own(engine, directory, environment.node, build)
    reason, replay = "", _Part()
    try:
        replay = _compile_replay(engine, directory, environment, build)
    except BuildError as failure:
        reason = failure.reason
        (directory / _REPLAY).unlink(missing_ok=True)
    dialect = None if reason else dialect_of((directory / _REPLAY).read_bytes())
    binaries = sorted(path.name for path in directory.glob("*.node"))
    record = _Record(
        boundary_napi=_NAPI in binaries,
        core=_CORE in binaries,
        replay=_REPLAY in binaries,
        dialect=dialect,
        reason=reason,
        core_reason=own.core_reason,
        row_builder=None if reason else row_builder_of((directory / _REPLAY).read_bytes()),
        flags=own.flags | {f"replay:{name}": line for name, line in replay.flags.items()},
        sha256={name: cache.sha256_of(directory / name) for name in binaries},
        elapsed_s=round(own.elapsed_s + replay.elapsed_s, 3),
    )
    (directory / _RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(record)))


# -- primitives and core ------------------------------------------------------------------------------------


def _compile_own(engine: Engine, directory: Path, node: NodeBuild, build: AddonBuild | None) -> _Part:
    why_not = _why_no_core(build)
    if build is not None and not why_not:
        try:
            return _run_own(engine, directory, node, build)
        except BuildError as failure:
            why_not = failure.reason
    part = _run_own(engine, directory, node, None)
    return msgspec.structs.replace(part, core_reason=why_not)


def _why_no_core(build: AddonBuild | None) -> str:
    if build is None:
        return "there is no addon that brings a SQLite of its own"
    if build.sqlite3_object_sha256 is None:
        return "the addon's binary was shipped, so there is no object file of its SQLite to link with"
    if not (build.directory / _SQLITE / "sqlite3.h").is_file():
        return f"the addon's package has no {_SQLITE.removeprefix('package/')}/sqlite3.h"
    return ""


def _run_own(engine: Engine, directory: Path, node: NodeBuild, core: AddonBuild | None) -> _Part:
    """Compile the primitives, and the core module where there is a SQLite for it."""
    tree = _empty(directory / "tree")
    _copy_sources(resources.root() / _SOURCES, tree / "probe")
    _copy_sources(resources.root() / _NATIVE, tree / "probe/native")
    addon = None if core is None else Mount(source=core.directory, target=PurePosixPath("/addon"))
    napi = napi_version(node)
    place = None if core is None else text_place(core)

    def arguments(inside: Callable[[Mount], PurePosixPath]) -> tuple[str, ...]:
        words = (f"--napi_version={napi}",)
        if addon is None:
            return words
        root = inside(addon)
        return (
            *words,
            "--core_folder=native",
            f"--sqlite_folder={root / _SQLITE}",
            f"--sqlite_object={root / 'sqlite3.o'}",
            *(() if place is None else (f"--sqlite_place={place}",)),
        )

    made = run_gyp(
        engine,
        node,
        tree,
        what="the boundary probe",
        folder="probe",
        mounts=() if addon is None else (addon,),
        arguments=arguments,
        timeout_s=BUILD_TIMEOUT_S,
    )
    for name in (_BOUNDARY, *((_NAPI,) if napi else ()), *((_CORE,) if core is not None else ())):
        _take_binary(tree, tree / "probe" / _RELEASE / name, directory / name)
    take_file(tree, tree / "build.log", directory / "boundary.log")
    shutil.rmtree(tree)
    return _Part(flags=made.flags, elapsed_s=made.elapsed_s)


def text_place(build: AddonBuild) -> int | None:
    """Where in a page of memory the code of the amalgamation begins in the addon's binary, in bytes.

    The same object code runs at half speed in some places: of 2,000 two-byte characters SQLite's ``length()``
    took 6 us in the addon for Node 20, and 3 us in the one for Node 24. The core module has its SQLite at the
    same place, or it would not show what the addon pays. None where the binary does not tell.
    """
    inside = read_symbols(build.directory / build.binding).starts()
    alone = read_symbols(build.directory / "sqlite3.o").starts()
    places = Counter((inside[name] - alone[name]) % _PAGE_BYTES for name in inside.keys() & alone.keys())
    if not places:
        return None
    place, count = places.most_common(1)[0]
    return place if count >= _SAME_PLACE_SHARE * places.total() else None


def napi_version(node: NodeBuild) -> int:
    """Newest Node-API of `node` that the probe knows; 0 where it is too old."""
    offered = node.versions.get("napi", "")
    newest = min(int(offered), max(_NAPI_VERSIONS)) if offered.isdecimal() and len(offered) < 5 else 0
    return newest if newest in _NAPI_VERSIONS else 0


# -- replay -------------------------------------------------------------------------------------------------


def _compile_replay(engine: Engine, directory: Path, environment: Wanted, build: AddonBuild | None) -> _Part:
    """Compile the addon once more, on the SQLite that plays recordings."""
    addon = environment.addon
    if build is None or addon is None or addon.kind != "package":
        raise BuildError("there is no addon whose calls could be replayed")
    if environment.flavor != "source":
        raise BuildError("the addon's binary was shipped: nobody knows how to compile the same code again")
    header = build.directory / _SQLITE / "sqlite3.h"
    if header.is_symlink() or not header.is_file():
        raise BuildError(f"the addon's package has no {_SQLITE.removeprefix('package/')}/sqlite3.h")
    tree = _empty(directory / "tree")
    copy_package(addon, tree / "package", without=frozenset({"prebuilds", "build", ".git"}))
    _copy_sources(resources.root() / _SOURCES / "replay", tree / "sqlite")
    shutil.copyfile(header, tree / "sqlite/sqlite3.h")
    for folder, _, _ in os.walk(tree):
        Path(folder).chmod(0o755)
    place = Mount(source=tree, target=PurePosixPath("/build"), writable=True)
    made = run_gyp(
        engine,
        environment.node,
        tree,
        what=f"the replay of {addon.name} {addon.version}",
        folder="package",
        # The addon's own option for a SQLite that is not its own.
        arguments=lambda inside: (f"--sqlite3={inside(place) / 'sqlite'}",),
        timeout_s=BUILD_TIMEOUT_S,
    )
    _compare_flags(made.flags, build.flags)
    _take_binary(tree, find_binding(tree), directory / _REPLAY)
    take_file(tree, tree / "build.log", directory / "replay.log")
    shutil.rmtree(tree)
    _check_replay(engine, directory, environment.node, build)
    return _Part(flags=made.flags, elapsed_s=made.elapsed_s)


def _compare_flags(replay: Mapping[str, str], addon: Mapping[str, str]) -> None:
    """Refuse a replay whose C++ was compiled in another way than the addon's."""
    for name, line in addon.items():
        if name != "sqlite3.c" and not name.endswith(".node") and replay.get(name) != line:
            raise BuildError(f"{clean_text(name, 60)} was not compiled as it is in the addon")


def _check_replay(engine: Engine, directory: Path, node: NodeBuild, build: AddonBuild) -> None:
    """Load it once: everything that it calls must be there, and its SQLite must be the one that plays."""
    mounts = {
        "node": Mount(source=node.directory, target=PurePosixPath("/node")),
        "fixtures": Mount(source=resources.root() / "node_fixtures", target=PurePosixPath("/fixtures")),
        "addon": Mount(source=build.directory, target=PurePosixPath("/addon")),
        "replay": Mount(source=directory / _REPLAY, target=PurePosixPath("/replay.node")),
    }
    seen = {name: engine.inside(mount) for name, mount in mounts.items()}
    outcome = engine.run(
        Task(
            command=(
                str(seen["node"] / "bin/node"),
                str(seen["fixtures"] / "boundary_probe/check_replay.mjs"),
                str(seen["addon"] / build.entry),
                str(seen["replay"]),
            ),
            purpose=f"load the replay on Node {node.version}",
            mounts=tuple(mounts.values()),
            # A function that the SQLite of the replay lacks is to be missed now, not in the first call of it.
            environment={"LD_BIND_NOW": "1"},
            timeout_s=CHECK_TIMEOUT_S,
        )
    )
    if outcome.ok:
        return
    said = outcome.stderr.strip().splitlines()[-1:]
    why = clean_text(said[0], 300) if said else f"status {outcome.exit_code}"
    raise BuildError(f"the replay of the addon does not work: {why}")


def dialect_of(binary: bytes) -> Dialect | None:
    """Which API a binary asks Node for, by the names in it; None where it is neither or both."""
    has_napi, has_v8 = _NAPI_SYMBOL in binary, _V8_SYMBOL in binary
    if has_napi == has_v8:
        return None
    return "napi" if has_napi else "v8"


def row_builder_of(binary: bytes) -> str | None:
    """How a binary makes row objects, see `ProbeBuild.row_builder`."""
    match dialect_of(binary):
        case "napi":
            return "factory"
        case "v8":
            return "bulk" if _BULK_SYMBOL in binary else "set"
        case _:
            return None


# -- files --------------------------------------------------------------------------------------------------


def _empty(directory: Path) -> Path:
    """An empty directory in place of whatever an attempt left there."""
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir()
    return directory


def _copy_sources(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.mjs"))
    for folder, _, files in os.walk(target):
        Path(folder).chmod(0o755)
        for name in files:
            Path(folder, name).chmod(0o644)


def _take_binary(tree: Path, path: Path, target: Path) -> None:
    if not path.is_file():
        raise BuildError(f"the build ended well, but left no {path.name}")
    take_file(tree, path, target)
