"""The preprocessor of the addon's own build, run in the engine over the addon's own files.

Own means the package's files without the SQLite amalgamation, generated files and ``node_modules``.
"""

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from investigator.build import AddonBuild
from investigator.build_log import first_error
from investigator.causes.cpp import Preprocessed, read_preprocessed, without_line_directives
from investigator.engine.interface import Engine, Mount, Task
from investigator.exchange import UnreadableError, exchange, take
from investigator.nodes.interface import NodeBuild

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


class UnreadableSourceError(Exception):
    """A side cannot be preprocessed; the text is the reason."""


def is_compiled(name: str) -> bool:
    """Whether a file is C++ that a compiler gets by itself."""
    return _COMPILED.search(name) is not None


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
                raise UnreadableSourceError(
                    f"{source} cannot be preprocessed for Node {node.version}: {said}"
                )
            try:
                texts.append(take(folder / "out" / output, _OUTPUT_BYTES).decode(errors="replace"))
            except UnreadableError as error:
                raise UnreadableSourceError(f"what the preprocessor made of {source} {error}") from error
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
        raise UnreadableSourceError(f"the command line that compiled {source} cannot be read") from error
    file = next((word for word in given if PurePosixPath(word).name == source), None)
    if file is None:
        raise UnreadableSourceError(f"the command line that compiled {source} does not name it")
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
