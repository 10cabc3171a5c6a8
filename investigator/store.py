"""The one door to the run folder: atomic writes, a schema on every JSON file, one writer at a time.

::

    reports/<run id>/
      spec.toml plan.json run.json calibration.json builds/ workloads/
      raw/round-001/  one events file an invocation, round.json last: a folder with it is a finished round
      measurements.csv analysis.json summary.json report.md
"""

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import TypeVar

import filelock
import msgspec

from investigator import __version__
from investigator.cache import cache_root
from investigator.errors import HostUnfitError, StoredFileError, UsageError
from investigator.paths import user_path

TOOL = f"investigate {__version__}"
MAX_STORED_BYTES = 256 << 20
"""No file that is read back whole comes near it; a device never ends."""
T = TypeVar("T")


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """What every stored JSON starts with."""

    schema: int
    kind: str
    tool: str


class RunFolder:
    """One run on disk. Paths are attributes; everything is written through `write`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.raw = path / "raw"

    @property
    def name(self) -> str:
        """The run id."""
        return self.path.name

    def write(self, name: str, data: bytes) -> Path:
        """Write a file whole or not at all."""
        return write_atomic(self.path / name, data)

    def write_json(self, name: str, kind: str, schema: int, value: object) -> Path:
        """Write `value` (a struct) with schema, kind and tool in front of its own fields."""
        body = msgspec.to_builtins(value, enc_hook=_plain)
        body = body if isinstance(body, dict) else {"values": body}
        head = {"schema": schema, "kind": kind, "tool": TOOL}
        return self.write(name, encode_json({**head, **{k: v for k, v in body.items() if k not in head}}))

    def read_json(self, name: str, kind: str, schema: int, type_: type[T]) -> T:
        """Read back what `write_json` wrote.

        Raises:
            StoredFileError: missing, truncated, of another kind, or written by a newer tool.
        """
        return read_json(self.path / name, kind, schema, type_)

    def finished_rounds(self) -> tuple[Path, ...]:
        """Folders of the finished rounds in order."""
        return tuple(sorted(p.parent for p in self.raw.glob("round-*/round.json")))

    def round_path(self, number: int) -> Path:
        """Where a finished round lies."""
        return self.raw / f"round-{number:03d}"

    @contextlib.contextmanager
    def round_folder(self, number: int) -> Iterator[Path]:
        """A fresh folder for one round that takes its name only when the round ended in order."""
        final = self.round_path(number)
        draft = self.raw / f"unfinished-{number:03d}"
        try:
            self.raw.mkdir(parents=True, exist_ok=True)
            if (final / "round.json").exists():
                raise StoredFileError(f"{final} is a finished round already; it is not overwritten.")
            for stale in (draft, final):
                if stale.exists():
                    shutil.rmtree(stale)
            draft.mkdir()
            yield draft
            draft.replace(final)
        except OSError as error:
            raise disk_error(error, draft) from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time writes into a run."""
        with single_process(self.path / ".lock", f"the run {self.name}"):
            yield


_IN_CACHE = "cache:"


def _plain(value: object) -> object:
    """Paths below the cache are stored relative to it: a run folder names no place of one machine."""
    if isinstance(value, PurePath):
        try:
            return _IN_CACHE + PurePath(value).relative_to(cache_root()).as_posix()
        except ValueError:
            return str(value)
    raise TypeError(f"{type(value).__name__} cannot be stored")


def _typed(type_: type, value: object) -> object:
    if type_ is Path and isinstance(value, str):
        inside = value.removeprefix(_IN_CACHE)
        return Path(value) if inside == value else cache_root() / inside
    raise TypeError(f"{type_.__name__} cannot be read")


def encode_json(value: object) -> bytes:
    """Indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=1) + b"\n"


def write_atomic(path: Path, data: bytes) -> Path:
    """Write `data` beside `path` and move it into place.

    Raises:
        HostUnfitError: the disk is full, the folder cannot be written, or `path` is a device or a pipe.
    """
    draft = None
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            # Moved into place, the file would be there instead of /dev/null.
            raise HostUnfitError(f"{path} cannot be written: it is a device or a pipe; name a file.")
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).chmod(0o644)
        Path(draft).replace(path)
    except OSError as error:
        if draft is not None:
            Path(draft).unlink(missing_ok=True)
        raise disk_error(error, path) from error
    return path


def disk_error(error: OSError, path: Path) -> HostUnfitError:
    """The one sentence for a disk that refuses."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return HostUnfitError(
            f"no space is left to write {path}; free some, then give the command again, or go on with a run "
            "that was being measured by `investigate resume`."
        )
    return HostUnfitError(f"{path} cannot be written: {error.strerror or error}.")


def read_json(path: Path, kind: str, schema: int, type_: type[T]) -> T:
    """Read a stored JSON file into `type_` after checking its schema and kind.

    Raises:
        StoredFileError: missing, truncated, of another kind, or written by a newer tool.
    """
    data = read_stored(path)
    try:
        head = msgspec.json.decode(data, type=Envelope)
        if head.kind != kind:
            raise StoredFileError(
                f"{path} holds {head.kind!r}, expected {kind!r}; it belongs somewhere else."
            )
        if head.schema > schema:
            raise StoredFileError(
                f"{path} has schema {head.schema}, this tool reads up to {schema}; use {head.tool} or newer."
            )
        return msgspec.json.decode(data, type=type_, dec_hook=_typed)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        # Beside bad syntax: text that is no UTF-8, and brackets within brackets without end.
        raise StoredFileError(f"{path} is damaged ({error}); restore it or measure again.") from error


def read_stored(path: Path) -> bytes:
    """Content of a file of a run folder, which may come from anybody.

    Raises:
        StoredFileError: missing, no regular file, far too large, or the disk refuses.
    """
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise StoredFileError(f"{path} cannot be read: it is no regular file.")
            data = file.read(MAX_STORED_BYTES + 1)
    except FileNotFoundError as error:
        raise StoredFileError(f"{path} is missing; the run folder is not complete.") from error
    except OSError as error:
        raise StoredFileError(f"{path} cannot be read: {error.strerror}.") from error
    if len(data) > MAX_STORED_BYTES:
        raise StoredFileError(f"{path} is larger than {MAX_STORED_BYTES >> 20} MiB, which no stored file is.")
    return data


def _open_without_waiting(path: str, flags: int) -> int:
    """A FIFO would wait for a writer for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


@contextlib.contextmanager
def single_process(lock_path: Path, what: str) -> Iterator[None]:
    """Hold a lock that vanishes with the process, or say who holds it.

    Raises:
        HostUnfitError: another process holds it.
    """
    try:
        lock_path.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(lock_path, timeout=0)
        lock.acquire()
    except filelock.Timeout as error:
        owner = _owner(lock_path)
        raise HostUnfitError(
            f"another investigate{owner} is working on {what}; two at once would spoil both, "
            "wait until it ends."
        ) from error
    except OSError as error:
        raise disk_error(error, lock_path) from error
    note = lock_path.with_suffix(".owner")
    try:
        note.write_text(str(os.getpid()))
        yield
    finally:
        note.unlink(missing_ok=True)
        lock.release()


def _owner(lock_path: Path) -> str:
    try:
        return f" (process {int(lock_path.with_suffix('.owner').read_text())})"
    except (OSError, ValueError):
        return ""


def create_run(path: Path) -> RunFolder:
    """Make the folder of a new run.

    Raises:
        UsageError: it exists and is not empty.
        HostUnfitError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise UsageError(f"the run folder {path} is not empty; choose another with --out, or resume it.")
        (path / "raw").mkdir()
    except OSError as error:
        raise disk_error(error, path) from error
    return RunFolder(path)


def open_run(text: str, reports: Path = Path("reports")) -> RunFolder:
    """The run named by a path, by its id under `reports`, or by ``last``.

    Raises:
        UsageError: there is none.
    """
    candidates = [user_path(text, "the run"), reports / text]
    if text == "last" and reports.is_dir():
        runs = sorted((p for p in reports.iterdir() if _is_run(p)), key=_begun_s)
        candidates = runs[-1:] or candidates
    for path in candidates:
        if _is_run(path):
            return RunFolder(path)
    raise UsageError(
        f"there is no run {text[:200]!r} here or under {reports}/; give the path of a run folder."
    )


def _begun_s(run: Path) -> float:
    """When the run began: the spec is written first and never again."""
    spec = run / "spec.toml"
    return spec.stat().st_mtime if spec.exists() else 0.0


def _is_run(path: Path) -> bool:
    try:
        return any((path / name).is_file() for name in ("spec.toml", "plan.json", "summary.json"))
    except OSError as error:
        raise UsageError(f"the run {path} cannot be read: {error.strerror or error}.") from error
