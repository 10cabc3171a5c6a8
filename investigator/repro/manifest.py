"""What came of the reproduction of one finding: manifest.json of ``RUN/repro/<op>--<candidate>/``."""

import hashlib
import re
from pathlib import Path
from typing import Literal

import msgspec

from investigator.store import RunFolder, read_json

REPRO_SCHEMA = 1
KIND = "reproduction"
FOLDER = "repro"
COMMAND = "./run.sh"
"""The one command, in the folder of a reproduction or in a copy of it."""

ProgramKind = Literal["js", "node_sqlite", "v8_addon", "napi_addon", "workload", "real"]
DEPENDENCY_FREE: frozenset[ProgramKind] = frozenset({"js", "node_sqlite", "v8_addon", "napi_addon"})
"""Kinds that need Node alone, or Node and a compiler: what an upstream issue wants to see."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One program that was run on both sides, in processes of its own by turns."""

    name: str
    """``snippet-js``, ``snippet-v8``, ``workload``, ``real``: its folder, and an argument of ``run.sh``."""
    kind: ProgramKind
    title: str
    """What it does, a few words."""
    shipped: bool
    """Whether it showed the effect, and is therefore here."""
    reason: str
    """One sentence: how it compares with the finding, or why it could not be run."""
    files: tuple[str, ...] = ()
    """Relative to the folder of the reproduction, the one to read first; empty where it is not shipped."""
    change_pct: float | None = None
    """Change in time per call, median over rounds; None where it did not run to its end."""
    ci_low_pct: float | None = None
    ci_high_pct: float | None = None
    """95 % interval of that median (order statistics)."""
    min_pct: float | None = None
    max_pct: float | None = None
    """Smallest and largest round."""
    baseline_ns_per_call: float | None = None
    candidate_ns_per_call: float | None = None
    rounds: int = 0
    """Pairs of processes."""
    output: str = ""
    """What it printed, bounded; part of RESULT.txt."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """manifest.json."""

    op: str
    family: str
    baseline: str
    """Identifier of the environment."""
    candidate: str
    baseline_name: str
    """In a sentence: ``Node 22.21.1``, ``better-sqlite3-multiple-ciphers 12.11.1``."""
    candidate_name: str
    change_pct: float
    """The finding, as the report states it."""
    ci_low_pct: float
    ci_high_pct: float
    programs: tuple[Program, ...]
    """The one to show first; those that are not shipped too."""
    needs: tuple[str, ...] = ()
    """Builds that nobody else can fetch: arguments that ``run.sh`` wants, one sentence each."""
    notes: tuple[str, ...] = ()

    @property
    def shipped(self) -> tuple[Program, ...]:
        """Programs that show the effect."""
        return tuple(program for program in self.programs if program.shipped)

    @property
    def snippet(self) -> Program | None:
        """The best shipped program that needs Node alone, or Node and a compiler."""
        return next((program for program in self.shipped if program.kind in DEPENDENCY_FREE), None)


def folder_of(run: RunFolder, op: str, candidate: str) -> Path:
    """Where the reproduction of a finding lies; a name that no file system and no shell stumbles over."""
    return run.path / FOLDER / folder_name(op, candidate)


def folder_name(op: str, candidate: str) -> str:
    """The last part of that path."""
    return f"{slug(op)}--{slug(candidate)}"


def slug(text: str) -> str:
    """A file name for any text: plain ones as they are, others shortened and told apart by a digest."""
    plain = re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.")[:60]
    if plain and plain == text:
        return plain
    return f"{plain}-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:8]}".lstrip("-")


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of one reproduction; None where nobody made one.

    Raises:
        StoredFileError: it is damaged or newer than this tool.
    """
    path = folder / "manifest.json"
    return read_json(path, KIND, REPRO_SCHEMA, Manifest) if path.is_file() else None


def read_manifests(run: RunFolder) -> tuple[Manifest, ...]:
    """All reproductions of a run, by name of their folders.

    Raises:
        StoredFileError: one is damaged or newer than this tool.
    """
    found = (read_manifest(path) for path in sorted((run.path / FOLDER).glob("*--*")))
    return tuple(manifest for manifest in found if manifest is not None)
