"""Where two preprocessed sides of an addon differ: by ``#if``, by macro, or by function (pure)."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from investigator.causes.cpp import (
    Branch,
    Conditional,
    Function,
    Preprocessed,
    conditionals,
    included,
    words,
)
from investigator.text import clean_text

MAX_TEXT: Final = 6_000
"""Characters of a region's text that are kept for the reader."""
_REGISTRATION: Final = re.compile(r"_?(?:node_register_module_v\d+|napi_register_module_v\d+|_register_\w+)")

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
