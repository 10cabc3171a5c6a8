"""What a Node binary says about itself: run once per binary, inside the engine, and remembered."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from investigator import cache
from investigator.engine.interface import Engine, Mount, Outcome, Task
from investigator.errors import UsageError
from investigator.nodes.parse import EXACT
from investigator.text import clean_text

_TIMEOUT_S: Final = 60.0
# Canonical: keys sorted at every depth, no spaces. The worker's hello event takes the same digest.
_SCRIPT: Final = """\
const sorted = (value) => Array.isArray(value) ? value.map(sorted)
  : value !== null && typeof value === 'object'
    ? Object.keys(value).sort().reduce((all, key) => { all[key] = sorted(value[key]); return all; }, {})
    : value;
JSON.stringify({ versions: process.versions, config: JSON.stringify(sorted(process.config)) })
"""


class NodeDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The binary's own words."""

    versions: dict[str, str]
    """``process.versions``."""
    config_sha256: str
    """sha256 of the canonical JSON (sorted keys, no spaces) of ``process.config``."""


class _Answer(msgspec.Struct, frozen=True):
    versions: Mapping[str, str]
    config: str

    def __post_init__(self) -> None:
        missing = [name for name in ("node", "v8", "modules") if name not in self.versions]
        if missing or not EXACT.fullmatch(self.versions["node"]):
            raise ValueError("process.versions is not that of Node")


def describe_node(engine: Engine, directory: Path) -> NodeDescription:
    """Run ``bin/node`` of an unpacked build inside the engine and read what it says.

    Raises:
        UsageError: the binary cannot be run there, or does not answer like Node.
        EngineMissingError, HostUnfitError: the engine.
    """
    mount = Mount(source=directory, target=PurePosixPath("/node"))
    outcome = engine.run(
        Task(
            command=(str(engine.inside(mount) / "bin/node"), "-p", _SCRIPT),
            purpose=f"describe {directory.name}",
            mounts=(mount,),
            timeout_s=_TIMEOUT_S,
        )
    )
    if not outcome.ok:
        raise UsageError(f"bin/node cannot be run: {_how_it_ended(outcome)}")
    try:
        answer = msgspec.json.decode(outcome.stdout, type=_Answer)
        return NodeDescription(
            versions={
                clean_text(name, 40): clean_text(text, 80)
                for name, text in list(answer.versions.items())[:100]
            },
            config_sha256=hashlib.sha256(answer.config.encode()).hexdigest(),
        )
    except msgspec.MsgspecError as error:
        raise UsageError(
            f"bin/node does not answer like Node: {clean_text(outcome.stdout, 120)!r}"
        ) from error


def remembered(directory: Path, describe: Callable[[Path], NodeDescription]) -> NodeDescription:
    """Describe a build, or give what was stored about the same binary before."""
    path = description_path(directory)
    stored = read_description(path)
    if stored is not None:
        return stored
    fresh = describe(directory)
    cache.write_text(path, msgspec.json.encode(fresh).decode())
    return fresh


def description_path(directory: Path) -> Path:
    """Where the description of a build lies: by the digest of the binary, whatever source it came from."""
    return cache.cache_root() / "node-descriptions" / f"{cache.sha256_of(directory / 'bin/node')}.json"


def read_description(path: Path) -> NodeDescription | None:
    """Read a stored description; None where there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=NodeDescription)
    except (OSError, msgspec.MsgspecError):
        return None


def _how_it_ended(outcome: Outcome) -> str:
    said = clean_text(outcome.stderr or outcome.stdout, 200)
    if outcome.timed_out:
        return f"it did not answer within {_TIMEOUT_S:.0f} s"
    if outcome.out_of_memory:
        return "it was killed for its memory"
    ended = f"it ended with status {outcome.exit_code}"
    if outcome.exit_code in (126, 127):
        ended += " (built for another processor or C library, musl for instance?)"
    return f"{ended}: {said}" if said else ended
