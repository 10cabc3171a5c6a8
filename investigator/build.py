"""Compile the addon against each Node build, in isolation without network, once per cache key.

The host never runs anything of a package, and never takes more from a build than named regular files: the
binary, the amalgamation's object file, the log. The package's JavaScript comes from the fetched package
itself. The amalgamation (nine tenths of the work) is compiled once: the first build of a package leaves its
object file in a directory of that package, then the others run in parallel and find it there
(node_fixtures/compile/cc.mjs tells when an object may be shared).
"""

import hashlib
import json
import os
import platform
import re
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Final, Protocol

import msgspec

from investigator import cache, protocol, resources
from investigator.addons import AddonPackage, refusal
from investigator.build_log import commands, first_error
from investigator.engine.interface import Engine, Mount, Outcome, Task
from investigator.exchange import UnreadableError, exchange, give, take
from investigator.nodes.interface import NodeBuild
from investigator.nodes.sources import platform_for
from investigator.observer import NullObserver, Observer
from investigator.spec import Flavor
from investigator.text import clean_text

RECIPE: Final = 1
"""Raise it whenever the way of building changes: it is part of every cache key."""
BUILD_TIMEOUT_S: Final = 1800.0
PROBE_TIMEOUT_S: Final = 60.0
LOAD_TIMEOUT_S: Final = 60.0

_KIND: Final = "builds"
_RECORD: Final = "build.json"
_OBJECT: Final = "sqlite3.o"
_LOG: Final = "build.log"
_LOG_BYTES: Final = 16 << 20
_EVENTS_BYTES: Final = 1 << 20
_RELEASE: Final = "build/Release"
_GYP: Final = "lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js"
# What gcc says when the kernel killed it, whether or not the engine noticed.
_KILLED: Final = "fatal error: Killed signal terminated program"
_GYP_ARGUMENTS: Final = ("rebuild", "--release")
_OBJECTS: Final = PurePosixPath("/objects")


class AddonBuild(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled (or shipped) addon binary for one environment, from the cache or fresh."""

    key: str
    """Content address: Node digest, addon integrity, patch, base image digest, compiler, flags, fixtures."""
    directory: Path
    """Cache entry: ``package/`` (the addon's JS and sources), the ``.node``; source builds also ``sqlite3.o``
    (the amalgamation, to be linked elsewhere) and ``build.log``."""
    entry: str
    """The addon's main JS file relative to `directory`, e.g. ``package/lib/index.js``."""
    binding: str
    """The ``.node`` file relative to `directory`."""
    binding_sha256: str
    sqlite3_object_sha256: str | None
    """None where the binary was shipped, not built."""
    compiler: str
    """First line of ``g++ --version``; empty for a shipped binary."""
    flags: Mapping[str, str]
    """Full command line of the compiler per source file (``sqlite3.c``, ``better_sqlite3.cpp``), and of the
    linker for the ``.node``. Mounted directories have the same names everywhere (``/node``, ``/build``)."""
    elapsed_s: float
    """What the build took when it was made."""


class BuildFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A build that failed: costs its own cells only."""

    reason: str
    """One sentence with the compiler's first error, or the load test's."""
    log: Path | None = None
    """The kept log."""


class FlagChange(msgspec.Struct, frozen=True, kw_only=True):
    """Words of one command line that another build has otherwise."""

    without: tuple[str, ...]
    """Left out, each once."""
    added: tuple[str, ...]
    """Put at the end."""


class Substitution(msgspec.Struct, frozen=True, kw_only=True):
    """What a build takes from another one: the experiment on flags and object files."""

    flags: Mapping[str, FlagChange] = {}
    """By source file for compilations, by binary for links, as in `AddonBuild.flags`."""
    amalgamation: Path | None = None
    """The other build's ``sqlite3.o``, taken in place of compiling one."""
    amalgamation_sha256: str | None = None

    @property
    def identity(self) -> list[object]:
        """What makes it, for a cache key."""
        changes = sorted((name, change.without, change.added) for name, change in self.flags.items())
        return [changes, self.amalgamation_sha256, resources.digest("node_fixtures/recompile")]


class Wanted(Protocol):
    """What a build is made for; `plan.Environment` is one."""

    @property
    def id(self) -> str:
        """Name in progress and error texts."""

    @property
    def node(self) -> NodeBuild:
        """The Node build whose headers are used."""

    @property
    def addon(self) -> AddonPackage | None:
        """The addon; None in ``js`` runs."""

    @property
    def flavor(self) -> Flavor:
        """``source`` or ``prebuilt``."""


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """``build.json`` of a cache entry: an `AddonBuild` without its place."""

    schema: int = 1
    entry: str
    binding: str
    binding_sha256: str
    sqlite3_object_sha256: str | None
    compiler: str
    flags: dict[str, str]
    elapsed_s: float


class BuildError(Exception):
    """Leaves a cache fill without an entry; becomes a `BuildFailure` where the fill was asked for."""

    def __init__(self, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.log = log


# -- the two verbs ------------------------------------------------------------------------------------------


def build_all(
    engine: Engine,
    environments: Sequence[Wanted],
    *,
    jobs: int | None = None,
    observer: Observer | None = None,
) -> dict[str, AddonBuild | BuildFailure]:
    """Build what the environments need, in parallel, the amalgamation of each package once and first.

    Args:
        engine: where the compiler runs.
        environments: those without an addon, and ``node:sqlite`` where Node has it, need no build and have
            no place in the result.
        jobs: processes at a time; None takes the cores of this machine.
        observer: told of each build.

    Returns:
        One build or failure for each environment identifier.

    Raises:
        EngineMissingError: the engine does not answer any more.
        HostUnfitError: the disk is full.
    """
    observer = observer or NullObserver()
    results: dict[str, AddonBuild | BuildFailure] = {}
    wanted: dict[str, tuple[NodeBuild, AddonPackage, Flavor]] = {}
    for environment in environments:
        if environment.addon is None:
            continue
        reason = refusal(environment.addon, environment.node)
        if reason is not None:
            results[environment.id] = BuildFailure(reason=reason)
        elif environment.addon.kind == "package":
            wanted[environment.id] = (environment.node, environment.addon, environment.flavor)
    if wanted:
        results |= _build_distinct(engine, wanted, jobs or os.cpu_count() or 1, observer)
    return results


def _build_distinct(
    engine: Engine,
    wanted: Mapping[str, tuple[NodeBuild, AddonPackage, Flavor]],
    jobs: int,
    observer: Observer,
) -> dict[str, AddonBuild | BuildFailure]:
    """Build each key once, whatever the number of environments (labels, Node flags) that share it."""
    compiler = compiler_of(engine)
    keys = {identifier: build_key(engine, compiler, *what) for identifier, what in wanted.items()}
    first = {key: identifier for identifier, key in reversed(keys.items())}
    distinct = {identifier: wanted[identifier] for identifier in wanted if identifier in first.values()}
    made: dict[str, AddonBuild | BuildFailure] = {}
    observer.stage_started("build", len(distinct))

    def build(identifier: str, share: int) -> None:
        observer.activity(f"build {identifier}")
        made[keys[identifier]] = build_addon(
            engine, *wanted[identifier], compiler=compiler, jobs=share, notify=observer.note
        )
        observer.step("build", identifier)

    for phase in _phases(engine, compiler, distinct):
        workers = max(1, min(jobs, len(phase)))
        pool = ThreadPoolExecutor(max_workers=workers)
        try:
            list(pool.map(build, phase, [max(1, jobs // workers)] * len(phase)))
        finally:
            # Not waiting: after ^C the caller closes the engine, which ends what still compiles.
            pool.shutdown(wait=False, cancel_futures=True)
    return {identifier: made[key] for identifier, key in keys.items()}


def build_addon(
    engine: Engine,
    node: NodeBuild,
    addon: AddonPackage,
    flavor: Flavor,
    *,
    compiler: str | None = None,
    jobs: int = 1,
    timeout_s: float = BUILD_TIMEOUT_S,
    notify: Callable[[str], None] | None = None,
    substitution: Substitution | None = None,
) -> AddonBuild | BuildFailure:
    """Take the build from the cache, or make it.

    Args:
        engine: where the compiler runs.
        node: the build whose headers are used; its binary is not run.
        addon: a fetched package (never ``node:sqlite``, which needs no build).
        flavor: ``source`` compiles, ``prebuilt`` takes the shipped binary.
        compiler: what `compiler_of` said, if it was asked already.
        jobs: processes of the compiler at a time.
        timeout_s: after which the build counts as hanging.
        notify: told when another process is waited for or a damaged entry is made again.
        substitution: what it takes from another build; only with ``source``.

    Returns:
        The build; or the failure with the compiler's first error and the place of the log.

    Raises:
        EngineMissingError: the engine does not answer any more.
        HostUnfitError: the disk is full.
    """
    if (reason := refusal(addon, node)) is not None:
        return BuildFailure(reason=reason)
    compiler = compiler_of(engine) if compiler is None else compiler
    key = build_key(engine, compiler, node, addon, flavor)
    if substitution is not None:
        key = address([key, substitution.identity])

    def fill(directory: Path) -> None:
        if flavor == "prebuilt":
            _take_shipped(engine, directory, node, addon)
        else:
            _compile(engine, directory, node, addon, compiler, jobs, timeout_s, substitution)

    try:
        directory = cache.filled(_KIND, key, fill, key_files=(_RECORD, "*.node", _OBJECT), notify=notify)
    except BuildError as failure:
        return BuildFailure(reason=failure.reason, log=keep_log(key, failure.log))
    record = msgspec.json.decode((directory / _RECORD).read_bytes(), type=_Record)
    return AddonBuild(
        key=key,
        directory=directory,
        entry=record.entry,
        binding=record.binding,
        binding_sha256=record.binding_sha256,
        sqlite3_object_sha256=record.sqlite3_object_sha256,
        compiler=record.compiler,
        flags=record.flags,
        elapsed_s=record.elapsed_s,
    )


def compiler_of(engine: Engine) -> str:
    """First line of ``g++ --version`` in the engine's base; empty where there is none."""
    outcome = engine.run(
        Task(
            command=("g++", "--version"),
            purpose="ask for the compiler",
            environment={"LC_ALL": "C"},
            timeout_s=PROBE_TIMEOUT_S,
        )
    )
    first = outcome.stdout.strip().splitlines()[:1]
    return clean_text(first[0], 200) if outcome.ok and first else ""


def build_key(engine: Engine, compiler: str, node: NodeBuild, addon: AddonPackage, flavor: Flavor) -> str:
    """Content address of a build: 64 hexadecimal digits over everything that can change it."""
    tools = resources.node_tools()
    parts = {
        "recipe": RECIPE,
        "node": [node.node_sha256, node.config_sha256, node.versions.get("modules", "")],
        "addon": _identity(addon),
        "flavor": flavor,
        "base": base_identity(engine),
        "compiler": compiler,
        "flags": _GYP_ARGUMENTS,
        "node-gyp": json.loads((tools / _GYP).parents[1].joinpath("package.json").read_text("utf-8"))[
            "version"
        ],
        "fixtures": resources.digest("node_fixtures/compile"),
    }
    return address(parts)


def address(parts: object) -> str:
    """Content address of plain values: SHA-256 of their canonical JSON, hex."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def base_identity(engine: Engine) -> str:
    """What the engine runs on: the digest of its image, or what it says of the machine itself."""
    facts = engine.facts()
    return facts.get("base") or facts.get("image_id") or platform.platform()


def _phases(
    engine: Engine, compiler: str, wanted: Mapping[str, tuple[NodeBuild, AddonPackage, Flavor]]
) -> tuple[list[str], list[str]]:
    """First the first missing source build of each package, then all others."""
    leaders: dict[str, str] = {}
    for identifier, (node, addon, flavor) in wanted.items():
        missing = not cache.entry(_KIND, build_key(engine, compiler, node, addon, flavor)).exists()
        if flavor == "source" and missing:
            leaders.setdefault(_share_key(engine, compiler, addon), identifier)
    return list(leaders.values()), [name for name in wanted if name not in leaders.values()]


# -- from source --------------------------------------------------------------------------------------------


def _compile(
    engine: Engine,
    directory: Path,
    node: NodeBuild,
    addon: AddonPackage,
    compiler: str,
    jobs: int,
    timeout_s: float,
    substitution: Substitution | None,
) -> None:
    """Fill a cache entry from the package's sources."""
    if not compiler:
        raise BuildError("there is no C++ compiler (g++); install one, or choose another --base-image")
    # The task's user must pass through; cache.filled makes the directory private.
    directory.chmod(0o711)
    tree = directory / "tree"
    tree.mkdir()
    # A binary that somebody else built stays behind: 13.x compiles nothing where it finds one.
    copy_package(addon, tree / "package", without=frozenset({"prebuilds", "build", ".git"}))
    for folder, _, _ in os.walk(tree):
        Path(folder).chmod(0o755)
    shared = cache.cache_root() / "objects" / _share_key(engine, compiler, addon)
    shared.mkdir(parents=True, exist_ok=True)
    made = run_gyp(
        engine,
        node,
        tree,
        what=f"{addon.name} {addon.version}",
        folder="package",
        mounts=(Mount(source=shared, target=_OBJECTS, writable=True),),
        shares_objects=True,
        jobs=jobs,
        timeout_s=timeout_s,
        substitution=substitution,
    )
    _collect(directory, tree, addon, compiler, made)
    shutil.rmtree(tree)


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """What node-gyp did when it ended well."""

    flags: dict[str, str]
    """As in `AddonBuild`."""
    elapsed_s: float


def run_gyp(
    engine: Engine,
    node: NodeBuild,
    tree: Path,
    *,
    what: str,
    folder: str,
    mounts: Sequence[Mount] = (),
    arguments: Callable[[Callable[[Mount], PurePosixPath]], Sequence[str]] = lambda _inside: (),
    shares_objects: bool = False,
    jobs: int = 1,
    timeout_s: float = BUILD_TIMEOUT_S,
    substitution: Substitution | None = None,
) -> Made:
    """Run ``node-gyp rebuild`` against the headers of `node`; the same way for addons and probes.

    Args:
        engine: where the compiler runs.
        node: the build whose headers are used.
        tree: writable directory, mounted as ``/build``; gets ``build.log``.
        what: name of what is compiled, for texts.
        folder: directory below `tree` that holds the ``binding.gyp``.
        mounts: others that the build needs; one of ``/objects`` holds the shared objects.
        arguments: variables for gyp (``--name=value``), made with the path under which a mount is seen.
        shares_objects: whether the amalgamation's object file is kept for other builds, or taken from them.
        jobs: processes of the compiler at a time.
        timeout_s: after which the build counts as hanging.
        substitution: what is taken from another build.

    Raises:
        BuildError: with the compiler's first error.
        EngineMissingError: the engine does not answer any more.
        HostUnfitError: the disk is full.
    """
    own = {
        "tool": Mount(source=resources.node_tools(), target=PurePosixPath("/tool")),
        "recipe": Mount(source=resources.root() / "node_fixtures/compile", target=PurePosixPath("/recipe")),
        "node": Mount(source=node.directory, target=PurePosixPath("/node")),
        "build": Mount(source=tree, target=PurePosixPath("/build"), writable=True),
    }
    seen = {name: engine.inside(mount) for name, mount in own.items()}
    taken = _substituting(tree, substitution)
    every = (*own.values(), *mounts, *taken.values())
    environment = _compiler_environment(seen)
    if substitution is not None:
        environment |= _recompiling(seen, {name: engine.inside(mount) for name, mount in taken.items()})
    if shares_objects:
        environment["SHARED_OBJECTS"] = str(next(engine.inside(m) for m in mounts if m.target == _OBJECTS))
    outcome = engine.run(
        Task(
            command=(
                str(seen["tool"] / "bin/node"),
                str(seen["recipe"] / "gyp.mjs"),
                str(seen["tool"] / _GYP),
                str(seen["build"] / _LOG),
                *_GYP_ARGUMENTS,
                f"--nodedir={seen['node']}",
                *arguments(engine.inside),
                "--jobs",
                str(jobs),
            ),
            purpose=f"build {what} for Node {node.version}",
            mounts=every,
            environment=environment,
            working_directory=seen["build"] / folder,
            timeout_s=timeout_s,
        )
    )
    log = read_log(tree)
    if not outcome.ok:
        raise BuildError(_failure_reason(outcome, log, what, node, timeout_s), log or outcome.stderr)
    places = {str(engine.inside(mount)): str(mount.target) for mount in every}
    flags = {
        name: _with_changes(line, substitution.flags.get(name) if substitution else None)
        for name, line in commands(log, places).items()
    }
    return Made(flags=flags, elapsed_s=outcome.elapsed_s)


def _compiler_environment(seen: Mapping[str, PurePosixPath]) -> dict[str, str]:
    return {
        "CC": f"{seen['tool'] / 'bin/node'} {seen['recipe'] / 'cc.mjs'} gcc",
        "LC_ALL": "C",  # the first error is read, and shown, in English
        "V": "1",  # make prints every command line
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _substituting(tree: Path, substitution: Substitution | None) -> dict[str, Mount]:
    """What a build with a substitution sees beside its own; the changes of flags lie in its tree."""
    if substitution is None:
        return {}
    recipe = resources.root() / "node_fixtures/recompile"
    mounts = {"recompile": Mount(source=recipe, target=PurePosixPath("/recompile"))}
    if substitution.flags:
        changes = tree / "flag-changes.json"
        changes.write_bytes(msgspec.json.encode(substitution.flags))
        changes.chmod(0o644)
        mounts["changes"] = Mount(source=changes, target=PurePosixPath("/flag-changes.json"))
    if substitution.amalgamation is not None:
        mounts["object"] = Mount(source=substitution.amalgamation, target=PurePosixPath("/replaced.o"))
    return mounts


def _recompiling(seen: Mapping[str, PurePosixPath], taken: Mapping[str, PurePosixPath]) -> dict[str, str]:
    launcher = f"{seen['tool'] / 'bin/node'} {taken['recompile'] / 'cc.mjs'}"
    environment = {
        "CC": f"{launcher} gcc",
        "CXX": f"{launcher} g++",
        "COMPILE_RECIPE": str(seen["recipe"] / "cc.mjs"),
    }
    if "changes" in taken:
        environment["FLAG_CHANGES"] = str(taken["changes"])
    if "object" in taken:
        environment["REPLACED_OBJECT"] = str(taken["object"])
    return environment


def _with_changes(line: str, change: FlagChange | None) -> str:
    """The command line that the compiler really got."""
    if change is None:
        return line
    words = line.split(" ")
    for word in change.without:
        if word in words:
            words.remove(word)
    return " ".join([*words, *change.added])


def shared_objects(engine: Engine, addon: AddonPackage) -> Path | None:
    """Directory with the amalgamation's object files of a package (see node_fixtures/compile/cc.mjs).

    None where nothing was built, or there is no compiler.
    """
    compiler = compiler_of(engine)
    folder = cache.cache_root() / "objects" / _share_key(engine, compiler, addon)
    return folder if compiler and folder.is_dir() else None


def _share_key(engine: Engine, compiler: str, addon: AddonPackage) -> str:
    """Name of the shared objects: one a package, so that hostile sources can poison only their own.

    A patch of this program's own changes no more than conditions of the addon, and spares the amalgamation's
    75 s.
    """
    plain = msgspec.structs.replace(addon, patch_sha256=None) if addon.own_patch else addon
    return address([base_identity(engine), compiler, *_identity(plain)])


def _identity(addon: AddonPackage) -> list[object]:
    return [addon.name, addon.version, addon.integrity, addon.patch_sha256, dict(addon.dependencies)]


def copy_package(addon: AddonPackage, target: Path, *, without: frozenset[str]) -> None:
    """Copy the fetched package, which stays as it is, but for some folders at its top."""
    source = _source(addon)

    def ignore(folder: str, names: list[str]) -> set[str]:
        return set(without.intersection(names)) if Path(folder) == source else set()

    shutil.copytree(source, target, symlinks=True, ignore=ignore)


def _collect(
    directory: Path,
    tree: Path,
    addon: AddonPackage,
    compiler: str,
    made: Made,
) -> None:
    """Copy what is kept out of a finished build."""
    binding = find_binding(tree)
    take_file(tree, binding, directory / binding.name)
    amalgamation = _find_object(tree)
    if amalgamation is not None:
        take_file(tree, amalgamation, directory / _OBJECT)
    take_file(tree, tree / _LOG, directory / _LOG)
    copy_package(addon, directory / "package", without=frozenset({"build", ".git"}))
    _write_record(
        directory,
        binding.name,
        sqlite3_object_sha256=cache.sha256_of(directory / _OBJECT) if amalgamation else None,
        compiler=compiler,
        flags=made.flags,
        elapsed_s=round(made.elapsed_s, 3),
    )


def find_binding(tree: Path) -> Path:
    """The one binary that a package's build left below `tree`; `BuildError` where it is not one."""
    folder = tree / "package" / _RELEASE
    found = sorted(path for path in folder.glob("*.node") if path.name != "test_extension.node")
    if len(found) != 1:
        names = ", ".join(clean_text(path.name, 60) for path in found) or "none"
        raise BuildError(
            f"the build ended well, but left {len(found)} binaries in {_RELEASE} ({names}) and not one"
        )
    return found[0]


def _find_object(tree: Path) -> Path | None:
    for folder, _, files in os.walk(tree / "package" / _RELEASE):
        if _OBJECT in files:
            return Path(folder, _OBJECT)
    return None


def take_file(tree: Path, path: Path, target: Path) -> None:
    """Copy one regular file out of a build's tree; a link, or anything reached through one, is refused."""
    if path.resolve() != tree.resolve() / path.relative_to(tree) or not stat.S_ISREG(path.lstat().st_mode):
        raise BuildError(
            f"the build left a link in place of {clean_text(path.name, 60)}; do not trust this package"
        )
    shutil.copyfile(path, target, follow_symlinks=False)
    target.chmod(0o755 if target.suffix == ".node" else 0o644)


def _write_record(
    directory: Path,
    binding: str,
    *,
    sqlite3_object_sha256: str | None,
    compiler: str,
    flags: dict[str, str],
    elapsed_s: float,
) -> None:
    record = _Record(
        entry=_entry(directory),
        binding=binding,
        binding_sha256=cache.sha256_of(directory / binding),
        sqlite3_object_sha256=sqlite3_object_sha256,
        compiler=compiler,
        flags=flags,
        elapsed_s=elapsed_s,
    )
    (directory / _RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(record)))


def _entry(directory: Path) -> str:
    """The package's main file; ``lib/index.js`` where package.json does not say."""
    package = directory / "package"
    try:
        manifest = json.loads((package / "package.json").read_text("utf-8"))
        main = manifest.get("main") if isinstance(manifest, dict) else None
    except (OSError, ValueError):
        main = None
    for name in (main, "lib/index.js", "index.js"):
        if isinstance(name, str) and (package / name).resolve().is_relative_to(package.resolve()):
            for candidate in (package / name, package / f"{name}.js", package / name / "index.js"):
                if candidate.is_file():
                    return str(candidate.relative_to(directory))
    raise BuildError("its package.json names no main file that exists")


def _source(addon: AddonPackage) -> Path:
    if addon.directory is None:
        raise BuildError(f"{addon.name} has no package that could be built")
    return addon.directory


# -- the shipped binary -------------------------------------------------------------------------------------


def _take_shipped(engine: Engine, directory: Path, node: NodeBuild, addon: AddonPackage) -> None:
    """Fill a cache entry with the binary that came in the package."""
    source = _source(addon)
    target = _target(engine, node)
    shipped = source / "prebuilds" / f"{target}.node"
    if shipped.is_symlink() or not shipped.is_file():
        raise BuildError(
            f"release {addon.version} of {addon.name} ships no binary for {target} in its package; "
            "leave out --prebuilt"
        )
    _check_abi(shipped.read_bytes(), node, addon)
    shutil.copyfile(shipped, directory / shipped.name)
    (directory / shipped.name).chmod(0o755)
    copy_package(addon, directory / "package", without=frozenset({"build", ".git"}))
    _write_record(directory, shipped.name, sqlite3_object_sha256=None, compiler="", flags={}, elapsed_s=0.0)


def _target(engine: Engine, node: NodeBuild) -> str:
    """Platform, C library and processor as the package names them: ``linux-x64``, ``linuxmusl-arm64``."""
    name = platform_for(engine.name)
    with (node.directory / "bin/node").open("rb") as file:
        musl = b"ld-musl" in file.read(4096)
    return name.replace("linux-", "linuxmusl-") if musl else name


_MODULE_ABI: Final = re.compile(rb"node_register_module_v(\d{2,4})\0")


def _check_abi(binary: bytes, node: NodeBuild, addon: AddonPackage) -> None:
    """Refuse a binary that was compiled for another ABI (NODE_MODULE_VERSION)."""
    needed = {found.decode() for found in _MODULE_ABI.findall(binary)}
    offered = node.versions.get("modules", "")
    if needed and offered not in needed:
        raise BuildError(
            f"the binary of {addon.name} {addon.version} was built for ABI {', '.join(sorted(needed))}, "
            f"Node {node.version} has {offered}; leave out --prebuilt"
        )


# -- the log ------------------------------------------------------------------------------------------------


def read_log(tree: Path) -> str:
    """What the build in `tree` printed, bounded; empty where there is no log."""
    path = tree / _LOG
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(_LOG_BYTES).decode(errors="replace")


def keep_log(key: str, log: str) -> Path | None:
    """Keep the log of a failed build in the cache; where, None for an empty one."""
    if not log:
        return None
    path = cache.cache_root() / "failed-builds" / f"{key}.log"
    cache.write_text(path, log)
    return path


def _failure_reason(outcome: Outcome, log: str, name: str, node: NodeBuild, timeout_s: float) -> str:
    what = f"{name} does not build on Node {node.version}"
    if outcome.timed_out:
        return f"{what}: it did not end within {timeout_s:.0f} s"
    if outcome.out_of_memory or _KILLED in log:
        return f"{what}: the compiler needed more memory than a task may have"
    tail = (log or outcome.stderr).strip().splitlines()[-1:]
    error = first_error(log) or (clean_text(tail[0], 300) if tail else f"status {outcome.exit_code}")
    return f"{what}: {error}"


# -- does it load -------------------------------------------------------------------------------------------


def load_test(engine: Engine, node: NodeBuild, build: AddonBuild, *, encrypted: bool = True) -> str | None:
    """Load the addon once in a process of its own, before anything is measured.

    Returns:
        None where it loads; else the reason as one sentence.

    Raises:
        EngineMissingError: the engine does not answer any more.
        HostUnfitError: the disk is full.
    """
    with exchange() as folder:
        mounts = {
            "node": Mount(source=node.directory, target=PurePosixPath("/node")),
            "fixtures": Mount(
                source=resources.root() / "node_fixtures", target=PurePosixPath("/fixtures/node_fixtures")
            ),
            "addon": Mount(source=build.directory, target=PurePosixPath("/addon")),
            "job": Mount(source=folder / "job.json", target=PurePosixPath("/job.json")),
            "out": Mount(source=folder / "out", target=PurePosixPath("/out"), writable=True),
        }
        seen = {key: engine.inside(mount) for key, mount in mounts.items()}
        job = protocol.Job(
            mode="load",
            environment=f"node{node.version}",
            family="sqlite",
            addon=protocol.JobAddon(
                kind="package",
                entry=str(seen["addon"] / build.entry),
                binding=str(seen["addon"] / build.binding),
                encrypted=encrypted,
            ),
            operations=(),
            passes=0,
            seed=1,
            params={},
            cipher="chacha20" if encrypted else "none",
            mailbox=None,
            scratch=str(engine.scratch),
            output=str(seen["out"] / "events.jsonl"),
        )
        give(folder / "job.json", msgspec.json.encode(job))
        outcome = engine.run(
            Task(
                command=(
                    str(seen["node"] / "bin/node"),
                    str(seen["fixtures"] / "worker/main.mjs"),
                    str(seen["job"]),
                ),
                purpose=f"load the addon on Node {node.version}",
                mounts=tuple(mounts.values()),
                timeout_s=LOAD_TIMEOUT_S,
            )
        )
        return _load_failure(outcome, _last_event(folder / "out/events.jsonl"))


def _last_event(path: Path) -> protocol.Event | None:
    try:
        lines = take(path, _EVENTS_BYTES).splitlines()
        return msgspec.json.decode(lines[-1], type=protocol.Event) if lines else None
    except (UnreadableError, msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None


def _load_failure(outcome: Outcome, last: protocol.Event | None) -> str | None:
    """What a load test's end means; None where the worker ended in order."""
    if outcome.ok and isinstance(last, protocol.Done):
        return None
    if isinstance(last, protocol.Failed):
        return f"does not load: {clean_text(last.message, 300)}"
    if outcome.timed_out:
        return f"does not load within {LOAD_TIMEOUT_S:.0f} s"
    if outcome.out_of_memory:
        return "needed more memory than a task may have while loading"
    code = outcome.exit_code or 0
    if code > 128:
        return f"crashed with signal {code - 128} while loading"
    said = outcome.stderr.strip().splitlines()[-1:]
    return f"ended with status {code} while loading" + (f": {clean_text(said[0], 300)}" if said else "")
