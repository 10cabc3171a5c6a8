"""Apply a unified diff to an unpacked package, and nothing outside of it."""

import os
import re
import shutil
import subprocess
from pathlib import Path, PurePosixPath
from typing import Final

from investigator.errors import EngineMissingError, UsageError
from investigator.text import clean_text

MAX_BYTES: Final = 64 << 20
_TIMEOUT_S: Final = 120.0
_PATH_LINE: Final = re.compile(
    r"^(?:--- |\+\+\+ |diff --git |(?:rename|copy) (?:from|to) |Index: )(.+)$", re.MULTILINE
)
_LINK_LINE: Final = re.compile(r"^(?:new file mode|new mode|old mode) (?!100644|100755)", re.MULTILINE)
# What the programs say about the first piece that does not fit.
_REJECT: Final = re.compile(
    r"^(?:error: |Hunk #\d+ FAILED|can't find file|patch: \*\*\*\* ).*$", re.MULTILINE
)


def apply_patch(patch: Path, directory: Path, shown: str | None = None) -> None:
    """Apply `patch` (paths with one leading folder, as git writes them) to the files below `directory`.

    `git apply` does it where git is installed, else `patch`; both without fuzz, so that they agree. `shown`
    names the patch in errors.

    Raises:
        UsageError: no unified diff, a path outside of `directory`, or a piece that does not apply.
        EngineMissingError: there is neither program.
    """
    shown = clean_text(shown or f"--patch {patch.name}", 120)
    if patch.stat().st_size > MAX_BYTES:
        raise UsageError(f"{shown} is larger than {MAX_BYTES:,} bytes; it is no patch for an addon")
    if (directory / ".git").exists():
        # Its configuration would be read, and may name programs to run.
        raise UsageError(f"{shown} is not applied: the addon package holds a .git folder; remove that first")
    check_patch(patch.read_bytes().decode("utf-8", errors="replace"), shown)
    done = subprocess.run(
        _command(patch, directory),
        cwd=directory,
        env=_environment(directory),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr + b"\n" + done.stdout).decode("utf-8", errors="replace")
        first = _REJECT.search(said)
        reason = clean_text((first.group() if first else said).removeprefix("error: "), 200)
        raise UsageError(f"{shown} does not apply to this release of the addon: {reason}")


def _environment(directory: Path) -> dict[str, str]:
    """Keep git from taking a repository around the cache, or one the user is in, for the one to patch."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**plain, "GIT_CEILING_DIRECTORIES": str(directory.resolve().parent), "LC_ALL": "C"}


def check_patch(text: str, shown: str) -> None:
    """Refuse a patch that is no unified diff or names anything outside of the package.

    Raises:
        UsageError: naming the first such line.
    """
    if not re.search(r"^@@ -\d+", text, re.MULTILINE):
        raise UsageError(f"{shown} is no unified diff; make one with `git diff` or `diff -u`")
    if _LINK_LINE.search(text):
        raise UsageError(f"{shown} makes a link or another special file; only plain files can be patched")
    for line in _PATH_LINE.findall(text):
        # A tab ends the name (a time may follow); a quoted name hides what is in it.
        for name in line.split("\t")[0].split(" "):
            path = PurePosixPath(name)
            if (
                '"' in name
                or path.is_absolute() != (name == "/dev/null")
                or ".." in path.parts
                or ".git" in path.parts
            ):
                raise UsageError(
                    f"{shown} leads out of the package ({clean_text(line, 80)}); it is not applied"
                )


def _command(patch: Path, directory: Path) -> tuple[str, ...]:
    if git := shutil.which("git"):
        return (git, "apply", "-p1", "--whitespace=nowarn", str(patch))
    if program := shutil.which("patch"):
        # --unified: an ed script inside would be run by ed.
        return (
            program,
            "-p1",
            "--unified",
            "--batch",
            "--forward",
            "--fuzz=0",
            "-d",
            str(directory),
            "-i",
            str(patch),
        )
    raise EngineMissingError("--patch needs git or patch; install one of them")
