"""The addon's own C++ as the compiler sees it on two sides: where it differs, and which ``#if`` decides it.

An addon may hold two programs: better-sqlite3 12.x builds rows one way below ABI 127 and another way from
there on. Comparing two Node versions then compares two C++ programs, and the difference is the addon's, not
Node's.

The preprocessor of the addon's own build (its flags, its definitions) runs in the engine once a side; what is
left of the addon's own files is compared. Own means the package's files without the SQLite amalgamation,
generated files and ``node_modules``. Between two releases of the addon (one Node) functions are compared
instead.
"""

import posixpath
import re
import shlex
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, Literal

import msgspec

from investigator import cache
from investigator.addons import AddonPackage
from investigator.build import AddonBuild, address, base_identity
from investigator.build_log import first_error
from investigator.causes.cpp import (
    Branch,
    Conditional,
    Function,
    Preprocessed,
    conditionals,
    included,
    read_preprocessed,
    without_line_directives,
    words,
)
from investigator.causes.shares import Share
from investigator.engine.interface import Engine, Mount, Task
from investigator.exchange import UnreadableError, exchange, take
from investigator.nodes.interface import NodeBuild
from investigator.plan import Environment
from investigator.text import clean_text

RECIPE: Final = 1
"""Raise it whenever the comparison changes: it is part of every cache key."""
MIN_SHARE: Final = 0.5
"""Part of the delta that a swap must move before the source is a cause (design.md section 8)."""
MAX_TEXT: Final = 6_000
"""Characters of a region's text that are kept for the reader."""
_KIND: Final = "source-comparisons"
_TIMEOUT_S: Final = 120.0
_OUTPUT_BYTES: Final = 64 << 20
_SOURCE_BYTES: Final = 4 << 20
"""Larger files are amalgamations and generated tables; nobody's row builder."""
_SOURCE_SUFFIXES: Final = frozenset(
    {".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp", ".tcc", ".lzz"}
)
_HEADER_SUFFIXES: Final = frozenset({".h", ".hh", ".hpp", ".hxx", ".inc", ".inl"})
_COMPILED: Final = re.compile(r"\.(?:cc|cpp|cxx)$")
_GENERATED: Final = re.compile(r"-I\.?/?((?:Release|build/Release)/obj/gen/([A-Za-z0-9_.-]{1,64}))/?")
_KEPT: Final = re.compile(r"-(?:[DUI].+|std=.+|f(?!plugin|dump|profile|save).+|m.+|O\w*|pthread|nostdinc.*)")
_KEPT_PAIRS: Final = frozenset({"-D", "-U", "-I", "-isystem", "-include"})
_REGISTRATION: Final = re.compile(r"_?(?:node_register_module_v\d+|napi_register_module_v\d+|_register_\w+)")
_SYMBOL_TAIL: Final = re.compile(r"\s*(?:\[clone [^\]]*\]|const|&|&&)\s*$")

RegionKind = Literal["branch", "header_macro", "function"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a file of the addon package."""

    file: str
    """Relative to the package: ``src/util/data.cpp``."""
    first_line: int
    last_line: int


class SourceRegion(msgspec.Struct, frozen=True, kw_only=True):
    """One place where the two sides compile different code."""

    kind: RegionKind
    """``branch``: an ``#if`` of the addon takes another branch. ``header_macro``: equal lines expand a macro
    of Node's headers that differs. ``function``: a function that two addon releases write differently."""
    baseline: Place | None
    """The lines that only the baseline compiles; None where it compiles nothing there."""
    candidate: Place | None
    condition: str | None
    """Text of the ``#if`` that decides: ``!defined(NODE_MODULE_VERSION) || NODE_MODULE_VERSION < 127``."""
    condition_file: str | None = None
    condition_line: int | None = None
    """Line of that ``#if``."""
    baseline_branch: int | None = None
    """Which branch of the group is compiled: 0 is the ``#if`` itself; None: none of them."""
    candidate_branch: int | None = None
    functions: tuple[str, ...] = ()
    """Functions whose code it changes, qualified: ``Data::GetFlatRowJS``."""
    callers: tuple[str, ...] = ()
    """The addon's functions that may call those, directly or not. Compilers inline the former into these, so
    in a profile often only these are seen."""
    macros: tuple[str, ...] = ()
    """Macros through which it acts on functions elsewhere."""
    baseline_text: str = ""
    """The source lines, cut to a readable length."""
    candidate_text: str = ""

    @property
    def where(self) -> str:
        """``src/util/data.cpp:99``: the condition, or the first line that differs."""
        if self.condition_file is not None:
            return f"{self.condition_file}:{self.condition_line}"
        place = self.candidate or self.baseline
        return "" if place is None else f"{place.file}:{place.first_line}"


class SourceComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What the addon's own sources have to do with a pair."""

    axis: Literal["headers", "addon"]
    """One package under two header sets, or two packages."""
    regions: tuple[SourceRegion, ...]
    functions: int
    """Functions that were compared."""
    reason: str | None = None
    """Why nothing could be compared, as one sentence; None where it was."""
    identical: bool = False
    """Whether both sides compile the very same own code (or run the same binary)."""


class SourceCause(msgspec.Struct, frozen=True, kw_only=True):
    """A region held against the rule of design.md section 8."""

    region: SourceRegion
    on_profile: tuple[str, ...]
    """Functions of the region, or callers of them, that the operation's profile shows."""
    moved: Share | None
    """Part of the delta that the swap of this region moves; None where no swap was measured."""
    kept: bool
    """Whether it counts as a cause."""
    why: str
    """One sentence."""


class _UnreadableError(Exception):
    """A side cannot be preprocessed; the text is the reason."""


# -- comparing two environments -----------------------------------------------------------------------------


def compare_sources(
    engine: Engine, baseline: Environment, candidate: Environment, builds: Mapping[str, AddonBuild]
) -> SourceComparison:
    """Compare the addon's own sources as both environments compile them; from the cache where possible.

    Args:
        engine: where the preprocessor runs (0.5 s a side).
        baseline: one side.
        candidate: the other; another Node, another addon release, or both.
        builds: of the run, by environment identifier.

    Returns:
        The regions; or none and the reason where there is nothing to compare.

    Raises:
        EngineMissingError: the engine does not answer any more.
        HostUnfitError: the disk is full.
    """
    axis: Literal["headers", "addon"] = "headers" if _same_package(baseline, candidate) else "addon"
    sides = (baseline, candidate)
    if any(e.addon is None or e.addon.kind == "node:sqlite" for e in sides):
        return _nothing(axis, "there is no addon with sources of its own on both sides")
    one, other = (builds.get(environment.id) for environment in sides)
    if one is None or other is None:
        return _nothing(axis, "a side was not built")
    made = (one, other)
    if one.binding_sha256 == other.binding_sha256:
        return SourceComparison(axis=axis, regions=(), functions=0, identical=True)
    if not all(any(map(_COMPILED.search, build.flags)) for build in made):
        return _nothing(axis, "a side is a shipped binary, of which no compiler flags are known")
    key = address(
        [RECIPE, axis, base_identity(engine), *(_side_identity(*s) for s in zip(sides, made, strict=True))]
    )
    path = cache.cache_root() / _KIND / f"{key}.json"
    stored = _stored(path)
    if stored is None:
        stored = _compare(engine, axis, sides, made)
        cache.write_text(path, msgspec.json.encode(stored).decode())
    return stored


def _same_package(one: Environment, other: Environment) -> bool:
    return one.addon is not None and other.addon is not None and identity(one.addon) == identity(other.addon)


def identity(addon: AddonPackage) -> list[object]:
    """What makes an addon's sources."""
    return [addon.name, addon.version, addon.integrity, addon.patch_sha256]


def _side_identity(environment: Environment, build: AddonBuild) -> list[object]:
    return (
        [*identity(environment.addon), *_headers(environment.node), dict(build.flags)]
        if environment.addon
        else []
    )


def _headers(node: NodeBuild) -> list[str]:
    return [node.node_sha256, node.config_sha256, node.versions.get("modules", "")]


def _stored(path: Path) -> SourceComparison | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=SourceComparison)
    except (OSError, msgspec.MsgspecError):
        return None


def _nothing(axis: Literal["headers", "addon"], reason: str) -> SourceComparison:
    return SourceComparison(axis=axis, regions=(), functions=0, reason=reason)


def _compare(
    engine: Engine,
    axis: Literal["headers", "addon"],
    sides: tuple[Environment, Environment],
    builds: tuple[AddonBuild, AddonBuild],
) -> SourceComparison:
    try:
        seen = [
            preprocess(engine, environment.node, build)
            for environment, build in zip(sides, builds, strict=True)
        ]
    except _UnreadableError as reason:
        return _nothing(axis, str(reason))
    files = [read_sources(build.directory / "package") for build in builds]
    found = (
        header_regions(seen[0], seen[1], files[0])
        if axis == "headers"
        else function_regions(seen[0], seen[1], files[0], files[1])
    )
    return SourceComparison(
        axis=axis,
        regions=tuple(found),
        functions=max(len(side.functions) for side in seen),
        identical=not found,
    )


# -- the preprocessor ---------------------------------------------------------------------------------------


def preprocess(engine: Engine, node: NodeBuild, build: AddonBuild) -> Preprocessed:
    """Run the preprocessor over every C++ file that the addon's build compiled, with that build's flags."""
    with exchange() as folder:
        tree = folder / "tree"
        _copy_sources(build, tree)
        mounts = {
            "/node": Mount(source=node.directory, target=PurePosixPath("/node")),
            "/build": Mount(source=tree, target=PurePosixPath("/build")),
            "/out": Mount(source=folder / "out", target=PurePosixPath("/out"), writable=True),
        }
        (folder / "out").chmod(0o777)
        seen = {target: str(engine.inside(mount)) for target, mount in mounts.items()}
        directory = f"{seen['/build']}/package/build"
        texts = []
        for number, source in enumerate(sorted(filter(_COMPILED.search, build.flags))):
            output = f"{number}.ii"
            outcome = engine.run(
                Task(
                    command=(
                        *preprocessor_command(build.flags[source], source, seen),
                        "-o",
                        f"{seen['/out']}/{output}",
                    ),
                    purpose=f"preprocess {source} for Node {node.version}",
                    mounts=tuple(mounts.values()),
                    environment={"LC_ALL": "C"},
                    working_directory=PurePosixPath(directory),
                    timeout_s=_TIMEOUT_S,
                )
            )
            if not outcome.ok:
                said = first_error(outcome.stderr) or f"status {outcome.exit_code}"
                raise _UnreadableError(f"{source} cannot be preprocessed for Node {node.version}: {said}")
            try:
                texts.append(take(folder / "out" / output, _OUTPUT_BYTES).decode(errors="replace"))
            except UnreadableError as error:
                raise _UnreadableError(f"what the preprocessor made of {source} {error}") from error
    return read_preprocessed("\n".join(texts), directory=directory, root=f"{seen['/build']}/package")


def preprocessor_command(flags: str, source: str, places: Mapping[str, str]) -> tuple[str, ...]:
    """The compiler's command line turned into one of the preprocessor.

    Args:
        flags: the command line as recorded.
        source: name of the file it compiles.
        places: ``/node`` and ``/build`` -> where the task sees them.
    """
    try:
        given = shlex.split(flags)
    except ValueError as error:
        raise _UnreadableError(f"the command line that compiled {source} cannot be read") from error
    file = next((word for word in given if PurePosixPath(word).name == source), None)
    if file is None:
        raise _UnreadableError(f"the command line that compiled {source} does not name it")
    kept: list[str] = []
    for word, following in zip(given[1:], [*given[2:], ""], strict=True):
        if word in _KEPT_PAIRS and following:
            kept += [word, _placed(following, places)]
        elif _KEPT.fullmatch(word):
            kept.append("-I" + _placed(word[2:], places) if word.startswith("-I") else word)
    # Definitions stay in the output (D), includes are told (I), line markers are not suppressed.
    return ("g++", "-E", "-dDI", "-w", *kept, _placed(file, places))


def _placed(path: str, places: Mapping[str, str]) -> str:
    for target, place in places.items():
        if path == target or path.startswith(target + "/"):
            return place + path[len(target) :]
    return path


def read_sources(package: Path) -> dict[str, str]:
    """The package's own source files by name, as they are."""
    return {
        path.relative_to(package).as_posix(): path.read_text("utf-8", errors="replace")
        for path in sorted(package.rglob("*"))
        if _is_source(package, path)
    }


def _is_source(package: Path, path: Path) -> bool:
    inside = path.relative_to(package).parts
    return (
        path.suffix in _SOURCE_SUFFIXES
        and inside[0] not in {"build", "prebuilds"}
        and not path.is_symlink()
        and path.is_file()
        and path.stat().st_size <= _SOURCE_BYTES
        and path.resolve().is_relative_to(package.resolve())
    )


def _copy_sources(build: AddonBuild, tree: Path) -> None:
    """What the preprocessor needs of a package: its sources, and headers where the build would generate them.

    Generated C++ names its origin in ``#line`` directives (11.x); they are blanked, so that lines mean the
    shipped file.
    """
    package = build.directory / "package"
    for name, text in read_sources(package).items():
        target = tree / "package" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(without_line_directives(text), "utf-8")
    working = tree / "package/build"
    working.mkdir(parents=True, exist_ok=True)
    for place, name in {
        found.groups() for line in build.flags.values() for found in _GENERATED.finditer(line)
    }:
        # gyp copies the amalgamation's headers there: from a folder of the same name.
        for path in sorted((tree / "package").rglob(f"{name}/*")):
            if path.suffix in _HEADER_SUFFIXES and not path.is_relative_to(working):
                (working / place).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, working / place / path.name)
    for folder in (tree, *(path for path in tree.rglob("*") if path.is_dir())):
        folder.chmod(0o755)


# -- one package, two header sets ---------------------------------------------------------------------------


def header_regions(
    baseline: Preprocessed, candidate: Preprocessed, files: Mapping[str, str]
) -> list[SourceRegion]:
    """Regions of one package that differ between two header sets (pure).

    Args:
        baseline: what one side compiles.
        candidate: what the other compiles.
        files: the package's source files, for their conditions.
    """
    different = _different(baseline.functions, candidate.functions)
    graph = _Callers((*baseline.functions, *candidate.functions))
    found: list[SourceRegion] = []
    explained: set[str] = set()
    for file in sorted({*baseline.lines, *candidate.lines} & set(files)):
        text = files[file]
        for group, taken in _switched(text, baseline.lines.get(file, {}), candidate.lines.get(file, {})):
            region = _branch_region(file, group, taken, baseline, candidate, files, different, graph)
            explained.update(region.functions)
            found.append(region)
    for function in sorted(different - explained):
        if _REGISTRATION.fullmatch(function):
            continue  # named after the ABI, called once
        if (inherited := _header_macro_region(function, baseline, candidate, files, graph)) is not None:
            found.append(inherited)
    return found


def _switched(
    text: str, one: Mapping[int, str], other: Mapping[int, str]
) -> list[tuple[Conditional, tuple[int | None, int | None]]]:
    """Conditional groups that take another branch, without those inside of one that does."""
    found: list[tuple[Conditional, tuple[int | None, int | None]]] = []
    for group in conditionals(text):
        if any(outer.line < group.line and group.end_line < outer.end_line for outer, _ in found):
            continue
        taken = (_taken(group, one), _taken(group, other))
        # A file that one side does not read at all has no branches there: its #include is the difference.
        if taken[0] != taken[1] and one and other:
            found.append((group, taken))
    return found


def _taken(group: Conditional, lines: Mapping[int, str]) -> int | None:
    for number, branch in enumerate(group.branches):
        if any(line in lines for line in range(branch.first_line, branch.last_line + 1)):
            return number
    return None


def _branch_region(
    file: str,
    group: Conditional,
    taken: tuple[int | None, int | None],
    baseline: Preprocessed,
    candidate: Preprocessed,
    files: Mapping[str, str],
    different: frozenset[str],
    graph: "_Callers",
) -> SourceRegion:
    places = [None if number is None else _place(file, group.branches[number]) for number in taken]
    touched: set[str] = set()
    macros: set[str] = set()
    for place, side, opposite in (
        (places[0], baseline, candidate),
        (places[1], candidate, baseline),
    ):
        if place is None:
            continue
        touched |= {f.name for f in side.functions if f.name in different and _overlaps(f, place)}
        macros |= {name for name, where in side.own_macros.items() if any(_inside(*w, place) for w in where)}
        for included_file in _included_files(place, side):
            if included_file not in opposite.lines:
                touched |= {f.name for f in side.functions if f.file == included_file}
    acting = frozenset(m for m in macros if baseline.macros.get(m) != candidate.macros.get(m))
    touched |= _through_macros(acting, baseline, candidate, files, different)
    return SourceRegion(
        kind="branch",
        baseline=places[0],
        candidate=places[1],
        condition=clean_text(group.text, 300),
        condition_file=file,
        condition_line=group.line,
        baseline_branch=taken[0],
        candidate_branch=taken[1],
        functions=tuple(sorted(touched)),
        callers=graph.of(touched),
        macros=tuple(sorted(acting)),
        baseline_text=_excerpt(files[file], places[0]),
        candidate_text=_excerpt(files[file], places[1]),
    )


def _place(file: str, branch: Branch) -> Place:
    return Place(file=file, first_line=branch.first_line, last_line=branch.last_line)


def _overlaps(function: Function, place: Place) -> bool:
    return (
        function.file == place.file
        and function.first_line <= place.last_line
        and place.first_line <= function.last_line
    )


def _inside(file: str, line: int, place: Place) -> bool:
    return file == place.file and place.first_line <= line <= place.last_line


def _included_files(place: Place, side: Preprocessed) -> set[str]:
    lines = side.lines.get(place.file, {})
    names = [included(lines[n]) for n in range(place.first_line, place.last_line + 1) if n in lines]
    return {posixpath.normpath(posixpath.join(posixpath.dirname(place.file), name)) for name in names if name}


def _through_macros(
    macros: frozenset[str],
    baseline: Preprocessed,
    candidate: Preprocessed,
    files: Mapping[str, str],
    different: frozenset[str],
) -> set[str]:
    """Functions with a line that both sides compile, naming one of `macros`, that comes out differently."""
    if not macros:
        return set()
    reach = _macro_closure(macros, baseline, candidate)
    return {
        function.name
        for function in candidate.functions
        if function.name in different
        and any(words(line) & reach for _, line in _differing_lines(function, baseline, candidate, files))
    }


def _macro_closure(macros: frozenset[str], baseline: Preprocessed, candidate: Preprocessed) -> frozenset[str]:
    """`macros` and the own macros that use them, directly or not."""
    uses = {
        name: words(side.macros.get(name, "")) for side in (baseline, candidate) for name in side.own_macros
    }
    reach = set(macros)
    while grown := {name for name, used in uses.items() if name not in reach and used & reach}:
        reach |= grown
    return frozenset(reach)


def _differing_lines(
    function: Function, baseline: Preprocessed, candidate: Preprocessed, files: Mapping[str, str]
) -> list[tuple[int, str]]:
    """Number and original text of the lines of a function that both sides compile, but not to the same."""
    one, other = baseline.lines.get(function.file, {}), candidate.lines.get(function.file, {})
    source = files.get(function.file, "").split("\n")
    found = []
    for number in range(function.first_line, function.last_line + 1):
        if number in one and number in other and one[number].split() != other[number].split():
            # Arguments of a macro may stand on the lines below, whose text has moved to the first.
            until = next(
                (n for n in range(number + 1, function.last_line + 1) if n in one or n in other), number + 1
            )
            found.append((number, " ".join(source[number - 1 : max(number, until - 1)])))
    return found


def _header_macro_region(
    name: str,
    baseline: Preprocessed,
    candidate: Preprocessed,
    files: Mapping[str, str],
    graph: "_Callers",
) -> SourceRegion | None:
    """A function that differs although the addon's own text does not."""
    function = next((f for f in candidate.functions if f.name == name), None)
    if function is None:
        return None
    lines = _differing_lines(function, baseline, candidate, files)
    if not lines:
        return None
    place = Place(file=function.file, first_line=lines[0][0], last_line=lines[-1][0])
    differing = {
        m
        for m in baseline.macros.keys() & candidate.macros.keys()
        if baseline.macros[m] != candidate.macros[m]
    }
    reach = _macro_closure(frozenset(differing), baseline, candidate)
    used = frozenset().union(*(words(line) for _, line in lines)) & reach
    return SourceRegion(
        kind="header_macro",
        baseline=place,
        candidate=place,
        condition=None,
        functions=(name,),
        callers=graph.of({name}),
        macros=tuple(sorted(used))[:20],
        baseline_text=_cut("\n".join(baseline.lines[place.file][n] for n, _ in lines)),
        candidate_text=_cut("\n".join(candidate.lines[place.file][n] for n, _ in lines)),
    )


# -- two releases -------------------------------------------------------------------------------------------


def function_regions(
    baseline: Preprocessed,
    candidate: Preprocessed,
    baseline_files: Mapping[str, str],
    candidate_files: Mapping[str, str],
) -> list[SourceRegion]:
    """Functions that two releases of the addon write differently, or that only one has (pure)."""
    graph = _Callers((*baseline.functions, *candidate.functions))
    found = []
    for name in sorted(_different(baseline.functions, candidate.functions)):
        places = [
            next(
                (
                    Place(file=f.file, first_line=f.first_line, last_line=f.last_line)
                    for f in side.functions
                    if f.name == name
                    and f.digest not in {g.digest for g in other.functions if g.name == name}
                ),
                None,
            )
            for side, other in ((baseline, candidate), (candidate, baseline))
        ]
        found.append(
            SourceRegion(
                kind="function",
                baseline=places[0],
                candidate=places[1],
                condition=None,
                functions=(name,),
                callers=graph.of({name}),
                baseline_text=_excerpt_of(baseline_files, places[0]),
                candidate_text=_excerpt_of(candidate_files, places[1]),
            )
        )
    return found


# -- functions ----------------------------------------------------------------------------------------------


def _different(one: Sequence[Function], other: Sequence[Function]) -> frozenset[str]:
    """Names of functions whose definitions are not the same on both sides; overloads count together."""

    def digests(side: Sequence[Function]) -> dict[str, list[str]]:
        by_name: dict[str, list[str]] = defaultdict(list)
        for function in side:
            by_name[function.name].append(function.digest)
        return {name: sorted(found) for name, found in by_name.items()}

    left, right = digests(one), digests(other)
    return frozenset(name for name in {*left, *right} if left.get(name) != right.get(name))


class _Callers:
    """Which functions may call which, by the names that occur in their bodies."""

    def __init__(self, all_functions: Iterable[Function]) -> None:
        self._words: dict[str, frozenset[str]] = {}
        for function in all_functions:
            self._words[function.name] = self._words.get(function.name, frozenset()) | function.words

    def of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Functions, others than `names`, from which one of them may be reached."""
        start = frozenset(names)
        reached = set(start)
        while True:
            called = {name.rpartition("::")[2] for name in reached}
            classes = {name.split("::")[-2] for name in reached if _is_constructor(name)}
            grown = {
                name
                for name, used in self._words.items()
                if name not in reached and (used - {name.rpartition("::")[2]}) & (called | classes)
            }
            if not grown:
                return tuple(sorted(reached - start))
            reached |= grown


def _is_constructor(name: str) -> bool:
    parts = name.split("::")
    return len(parts) > 1 and parts[-1] == parts[-2]


def _excerpt(text: str, place: Place | None) -> str:
    return "" if place is None else _cut("\n".join(text.split("\n")[place.first_line - 1 : place.last_line]))


def _excerpt_of(files: Mapping[str, str], place: Place | None) -> str:
    return "" if place is None else _excerpt(files.get(place.file, ""), place)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "\n..."


# -- the rule -----------------------------------------------------------------------------------------------


def function_of_symbol(symbol: str) -> str:
    """Qualified name of a demangled symbol: no return type, parameters, template arguments or clone marks."""
    text = symbol[:2000].strip()
    while (shorter := _SYMBOL_TAIL.sub("", text)) != text:
        text = shorter
    text = text.replace("(anonymous namespace)::", "").removesuffix("[inlined]").strip()
    plain: list[str] = []
    depth = 0
    for character in text:
        if character == "<":
            depth += 1
        elif character == ">" and depth:
            depth -= 1
        elif character == "(" and depth == 0:
            break
        elif depth == 0:
            plain.append(character)
    return "".join(plain).strip().rpartition(" ")[2]


def on_profile(region: SourceRegion, symbols: Iterable[str]) -> tuple[str, ...]:
    """Functions of a region among the symbols; where none is, callers that may have swallowed them."""
    seen = {function_of_symbol(symbol) for symbol in symbols}
    direct = tuple(name for name in region.functions if _matches(name, seen))
    return direct or tuple(name for name in region.callers if _matches(name, seen))


def _matches(name: str, seen: set[str]) -> bool:
    return name in seen or any(other.endswith(f"::{name}") for other in seen)


def keep_source_cause(
    regions: Sequence[SourceRegion], profile_symbols: Iterable[str], swap_moved_share: Share | None
) -> tuple[SourceCause, ...]:
    """Hold the regions against the rule: on the operation's profile, and the swap moves half of the delta.

    Args:
        regions: those that one swap exchanges together (see `swap.linked`).
        profile_symbols: demangled symbols of the addon that the operation's profile shows.
        swap_moved_share: part of the delta that the swap moves; None where it was not or cannot be measured.

    Returns:
        One judgement a region, kept ones first.
    """
    symbols = tuple(profile_symbols)
    judged = [_judge(region, on_profile(region, symbols), swap_moved_share) for region in regions]
    return tuple(sorted(judged, key=lambda cause: not cause.kept))


def _judge(region: SourceRegion, seen: tuple[str, ...], moved: Share | None) -> SourceCause:
    kept = bool(seen) and moved is not None and moved.at_least(MIN_SHARE)
    if not seen:
        why = "none of its functions is on the profile of the operation"
    elif moved is None:
        why = f"{seen[0]} is on the profile, but no swap could show what it moves"
    elif moved.low is None:
        why = (
            f"{seen[0]} is on the profile, but the difference is too small to tell what the swap moves of it"
        )
    elif kept:
        why = f"{seen[0]} is on the profile, and the other code path moves {moved.text} of the difference"
    else:
        why = (
            f"{seen[0]} is on the profile, but the other code path moves only {moved.text} of the difference"
        )
    return SourceCause(region=region, on_profile=seen, moved=moved, kept=kept, why=why)
