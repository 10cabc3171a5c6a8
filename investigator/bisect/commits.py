"""The commits between two neighbours, read with git from the user's own clone; nothing of it is run."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from investigator.errors import UsageError
from investigator.text import clean_text

MOST_COMMITS: Final = 20_000
_TIMEOUT_S: Final = 120.0
_VERSION: Final = re.compile(r"[0-9]{1,4}\.[0-9]{1,5}\.[0-9]{1,5}(?:-[0-9A-Za-z][0-9A-Za-z.-]{0,63})?")
_NIGHTLY_COMMIT: Final = re.compile(r"-(?:nightly|v8-canary|test)[0-9]{8}([0-9a-f]{7,40})$")
# Nothing in the clone's own configuration may start a program.
_SETTINGS: Final = (
    "-c", "core.fsmonitor=false",
    "-c", "log.showSignature=false",
    "-c", "core.pager=cat",
    "-c", "diff.external=",
    "-c", "core.hooksPath=/dev/null",
)  # fmt: skip


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """One commit."""

    sha: str
    date: str
    subject: str


LIKELY: Final[Mapping[str, tuple[str, ...]]] = {
    "node": ("deps/v8", "deps/simdutf", "deps/uv", "src"),
    "addon": ("src", "lib", "deps", "binding.gyp"),
}
"""Folders whose commits are shown first: what native code and V8 are made of."""
SHOWN: Final = 200
"""Commits that bisect.json keeps."""


class Commits(msgspec.Struct, frozen=True, kw_only=True):
    """Commits between two releases, newest first."""

    range: str
    """As git was asked: ``v23.11.0..v24.0.0``."""
    total: int
    commits: tuple[Commit, ...]
    paths: tuple[str, ...]
    """Folders that were asked for; empty for all."""
    reason: str = ""
    """Why there are none."""


def check_clone(path: Path) -> None:
    """Refuse what is no clone, before anything is measured.

    Raises:
        UsageError: there is no git, no such folder, or it is no repository.
    """
    shown = f"--git {clean_text(str(path), 120)}"
    if shutil.which("git") is None:
        raise UsageError(f"{shown} needs the program git, which is not installed.")
    if not path.is_dir():
        raise UsageError(f"{shown} is no folder; give a clone of node, or of the addon.")
    done = _git(path, "rev-parse", "--git-dir")
    if done is None or done.returncode != 0:
        raise UsageError(f"{shown} is no git repository; give a clone of node, or of the addon.")


def commits_between(path: Path, old: str, new: str, paths: tuple[str, ...] = ()) -> Commits:
    """List the commits that `new` has and `old` has not.

    Args:
        path: the clone.
        old: version, whose tag is ``v<version>``; of a nightly the commit in its name.
        new: the other version.
        paths: folders to which it is limited.
    """
    if not _VERSION.fullmatch(old) or not _VERSION.fullmatch(new):
        return Commits(range="", total=0, commits=(), paths=paths, reason="the versions have no tags")
    span = f"{_revision(old)}..{_revision(new)}"
    limit = f"--max-count={MOST_COMMITS}"
    arguments = (
        "log",
        "--no-color",
        limit,
        "--format=%H%x09%cs%x09%s",
        "--end-of-options",
        span,
        "--",
        *paths,
    )
    done = _git(path, *arguments)
    if done is None or done.returncode != 0:
        said = "" if done is None else clean_text(done.stderr.decode(errors="replace").strip(), 200)
        reason = (
            f"git cannot list {span} ({said or 'it did not answer'}); fetch the tags with `git fetch --tags`"
        )
        return Commits(range=span, total=0, commits=(), paths=paths, reason=reason)
    found = tuple(
        Commit(sha=parts[0], date=clean_text(parts[1], 10), subject=clean_text(parts[2], 200))
        for line in done.stdout.decode(errors="replace").splitlines()
        if len(parts := line.split("\t", 2)) == 3
    )
    return Commits(range=span, total=len(found), commits=found, paths=paths)


def _revision(version: str) -> str:
    found = _NIGHTLY_COMMIT.search(version)
    return found.group(1) if found else f"refs/tags/v{version}"


def _git(path: Path, *arguments: str) -> subprocess.CompletedProcess[bytes] | None:
    environment = {
        name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "TMPDIR", "SYSTEMROOT"}
    }
    environment |= {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
        "GIT_NO_LAZY_FETCH": "1",
    }
    try:
        return subprocess.run(
            (shutil.which("git") or "git", "--no-pager", *_SETTINGS, "-C", str(path), *arguments),
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
