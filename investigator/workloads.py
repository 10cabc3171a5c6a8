"""The user's own operations: files copied into the run folder, asked for their names inside the engine."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import msgspec

from investigator.engine.interface import Engine, Mount, Task
from investigator.errors import UsageError
from investigator.exchange import UnreadableError, exchange, take
from investigator.operations import Family, Operation
from investigator.store import disk_error, write_atomic
from investigator.text import clean_text

MAX_WORKLOAD_BYTES = 8 << 20
WARMUP_FACTOR = 4
"""Nobody knows how long a user's code takes to tier up; alone in its process it may take its time."""
MAX_ANSWER_BYTES = 64 << 10
LOAD_TIMEOUT_S = 60.0
_STEM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_SUFFIXES = (".mjs", ".js", ".cjs")


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    error: str | None = None
    own: bool = False
    names: list[str] = []


def copy_workloads(paths: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Copy workload files into `folder` so that the run can be repeated; returns their names there.

    Raises:
        UsageError: a file is missing, too large, not JavaScript by its ending, or named like another one.
        HostUnfitError: the disk is full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
    except OSError as error:
        raise disk_error(error, folder) from error
    names: list[str] = []
    for text in paths:
        path = Path(text).expanduser()
        if path.suffix not in _SUFFIXES or not _STEM.fullmatch(path.stem):
            raise UsageError(f"--workload {text[:200]} must be a .mjs, .js or .cjs file with a plain name.")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UsageError(f"--workload {text[:200]} cannot be read: {error.strerror}.") from error
        if len(data) > MAX_WORKLOAD_BYTES:
            raise UsageError(f"--workload {text[:200]} is larger than {MAX_WORKLOAD_BYTES >> 20} MiB.")
        if path.name in names or any(Path(name).stem == path.stem for name in names):
            raise UsageError(
                f"two workload files are named {path.stem}; rename one, operations are named after files."
            )
        name = _module_name(path, data)
        write_atomic(folder / name, data)
        names.append(name)
    return tuple(names)


def _module_name(path: Path, data: bytes) -> str:
    """A ``.js`` file gets the ending that says what it is: older Node releases do not look for themselves."""
    if path.suffix != ".js":
        return path.name
    return path.stem + (".cjs" if re.search(rb"\bmodule\.exports\b|^exports\.", data, re.M) else ".mjs")


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a file cannot be used."""

    reason: str
    """One sentence with advice."""
    hangs: bool = False
    """Whether loading it never ended: another Node would only wait as long."""


def own_operation(file: str, family: Family, workload: str | None = None) -> Operation:
    """Return the operation of a file: the one named after it, or one of its ``workloads``.

    Each has a process of its own: state of one must not age in the process of another.
    """
    name = workload or Path(file).stem
    return Operation(
        name=name,
        family=family,
        module=file,
        workload=workload,
        group=f"workload:{name}",
        warmup_factor=WARMUP_FACTOR,
    )


def read_workload(
    engine: Engine, nodes: Sequence[Path], fixtures: Path, folder: Path, file: str, family: Family
) -> tuple[Operation, ...] | Refusal:
    """Return the operations that a file defines: one named after it, or those of its ``workloads``.

    The first of `nodes` (directories with ``bin/node``) that can load the file tells; on the others it is one
    failed cell when it is measured.
    """
    refusal: Refusal | None = None
    for node in nodes:
        answer = _read(engine, node, fixtures, folder, file, family)
        if not isinstance(answer, Refusal):
            return answer
        refusal = refusal or answer
        if answer.hangs:
            break
    return refusal or Refusal(reason="there is no Node that could read it.")


def _read(
    engine: Engine, node: Path, fixtures: Path, folder: Path, file: str, family: Family
) -> tuple[Operation, ...] | Refusal:
    answer = _ask(engine, node, fixtures, folder, file)
    if isinstance(answer, Refusal):
        return answer
    if answer.error is not None:
        return Refusal(reason=f"{file} cannot be loaded: {clean_text(answer.error, 400)}")
    wrong = next((name for name in answer.names if not _STEM.fullmatch(name)), None)
    if wrong is not None:
        return Refusal(
            reason=f"{file} names an operation {clean_text(wrong, 80)!r}; use letters, digits, _ . -"
        )
    own = (own_operation(file, family),) if answer.own else ()
    found = (*own, *(own_operation(file, family, name) for name in answer.names))
    return found or Refusal(reason=f"{file} defines no operation; export setup(ctx) and run(state, i).")


def _ask(engine: Engine, node: Path, fixtures: Path, folder: Path, file: str) -> _Answer | Refusal:
    with exchange() as io_folder:
        out = io_folder / "out"
        mounts = {
            "node": Mount(source=node, target=PurePosixPath("/node")),
            "fixtures": Mount(source=fixtures, target=PurePosixPath("/fixtures")),
            "workloads": Mount(source=folder, target=PurePosixPath("/workloads")),
            "out": Mount(source=out, target=PurePosixPath("/out"), writable=True),
        }
        seen = {key: engine.inside(mount) for key, mount in mounts.items()}
        outcome = engine.run(
            Task(
                command=(
                    str(seen["node"] / "bin/node"),
                    str(seen["fixtures"] / "node_fixtures/list_workloads.mjs"),
                    str(seen["workloads"] / file),
                    str(seen["out"] / "answer.json"),
                ),
                purpose=f"read the workload {file}",
                mounts=tuple(mounts.values()),
                timeout_s=LOAD_TIMEOUT_S,
            )
        )
        try:
            return msgspec.json.decode(take(out / "answer.json", MAX_ANSWER_BYTES), type=_Answer)
        except (UnreadableError, msgspec.MsgspecError):
            how = (
                f"did not end within {LOAD_TIMEOUT_S:.0f} s"
                if outcome.timed_out
                else "used more memory than the task may"
                if outcome.out_of_memory
                else f"ended with status {outcome.exit_code}"
            )
            return Refusal(
                reason=f"loading {file} {how}; its top level must only define functions.",
                hangs=outcome.timed_out,
            )


def digest(folder: Path, files: Sequence[str]) -> dict[str, str]:
    """sha256 of each workload file, for provenance."""
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files}
