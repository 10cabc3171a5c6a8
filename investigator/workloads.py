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

MAX_WORKLOAD_BYTES = 8 << 20
WARMUP_FACTOR = 4
"""Nobody knows how long a user's code takes to tier up; alone in its process it may take its time."""
MAX_ANSWER_BYTES = 64 << 10
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


def workload_operations(
    engine: Engine, node: Path, fixtures: Path, folder: Path, files: Sequence[str], family: Family
) -> tuple[Operation, ...]:
    """The operations that the files define: one named after the file, or those of its ``workloads``.

    Each file has a process group of its own, so that its garbage and type feedback stay its own.

    Raises:
        UsageError: a file does not load, or defines no operation, or a name twice.
    """
    operations: list[Operation] = []
    for file in files:
        answer = _ask(engine, node, fixtures, folder, file)
        if answer.error is not None:
            raise UsageError(f"the workload {file} cannot be used: {answer.error}")
        stem = Path(file).stem
        names: list[tuple[str, str | None]] = [(stem, None)] if answer.own else []
        names += [(name, name) for name in answer.names]
        if not names:
            raise UsageError(
                f"the workload {file} defines no operation; export setup(ctx) and run(state, i)."
            )
        for name, key in names:
            if not _STEM.fullmatch(name):
                raise UsageError(
                    f"the workload {file} names an operation {name[:80]!r}; use letters, digits, _ . -"
                )
            # One group for each operation: state of one must not age in the process of another.
            operations.append(
                Operation(
                    name=name,
                    family=family,
                    module=file,
                    workload=key,
                    group=f"workload:{name}",
                    warmup_factor=WARMUP_FACTOR,
                )
            )
    names_seen = [operation.name for operation in operations]
    twice = next((name for name in names_seen if names_seen.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two workloads define the operation {twice}; rename one.")
    return tuple(operations)


def _ask(engine: Engine, node: Path, fixtures: Path, folder: Path, file: str) -> _Answer:
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
                timeout_s=60.0,
            )
        )
        try:
            return msgspec.json.decode(take(out / "answer.json", MAX_ANSWER_BYTES), type=_Answer)
        except (UnreadableError, msgspec.MsgspecError):
            how = "did not end within 60 s" if outcome.timed_out else f"ended with status {outcome.exit_code}"
            return _Answer(error=f"loading it {how}; its top level must only define functions.")


def digest(folder: Path, files: Sequence[str]) -> dict[str, str]:
    """sha256 of each workload file, for provenance."""
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files}
