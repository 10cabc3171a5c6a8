"""``investigate report RUN --format issue``: write the texts, say what they are for, open them if asked."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec
import typer

from investigator import results
from investigator.console import Console
from investigator.errors import UsageError
from investigator.issues import Issue, issues
from investigator.report.issue.gh import check_gh, open_issue
from investigator.report.issue.target import Target
from investigator.store import RunFolder, write_atomic

FORMAT = "issue"

ForOption = Annotated[
    Literal["node", "v8", "addon"] | None,
    typer.Option("--for", help="With --format issue: the tracker that the text is for."),
]
OpOption = Annotated[
    str | None,
    typer.Option("--op", help="With --format issue: only this operation, also where it became faster."),
]
CandidateOption = Annotated[
    str | None, typer.Option(help="With --format issue: only this version or label; default all.")
]
GhOption = Annotated[
    bool,
    typer.Option("--gh", help="With --format issue: show each text, ask, and open it with your client gh."),
]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the format."""

    target: Target | None = None
    op: str | None = None
    candidate: str | None = None
    gh: bool = False


def check(asked: Asked, formats: tuple[str, ...]) -> None:
    """Refuse options that do not go together, before anything is read.

    Raises:
        UsageError: no tracker, options of this format beside another one, or nobody who could be asked.
    """
    if FORMAT not in formats:
        given = {"--for": asked.target, "--op": asked.op, "--candidate": asked.candidate, "--gh": asked.gh}
        stray = [option for option, value in given.items() if value]
        if stray:
            raise UsageError(f"{', '.join(stray)} goes with --format {FORMAT}; add that, or leave it out.")
        return
    if asked.target is None:
        trackers = " or ".join(f"--for {name}" for name in get_args(Target))
        raise UsageError(f"--format {FORMAT} needs the tracker: add {trackers}.")
    if asked.gh and not sys.stdin.isatty():
        raise UsageError(
            "--gh shows each text and asks before it opens anything, and here is no terminal to ask; "
            "leave it out and file the texts yourself."
        )


def write(
    folder: RunFolder, asked: Asked, out: Path | None, console: Console, confirm: Callable[[str], bool]
) -> None:
    """Write a text for each regression; its path is the result, everything else goes to stderr.

    Raises:
        UsageError: there is no such operation or candidate, or ``--gh`` cannot be used for this tracker.
        StoredFileError: the run has no results that could be computed anew.
        InvestigateError: the disk or the client refused.
    """
    if asked.target is None:
        raise UsageError(f"--format {FORMAT} needs the tracker.")
    finished = results.regenerate(folder, write=False)
    found = issues(finished, asked.target, asked.op, asked.candidate)
    for sentence in found.left_out:
        console.note(sentence)
    if not found.issues:
        console.note("No issue is written: this run has no regression.")
    target = folder.path if out is None else out
    for issue in found.issues:
        path = write_atomic(target / issue.name, issue.text.document.encode())
        _say(issue, folder, console)
        console.result(str(path))
        if asked.gh:
            _open(issue, console, confirm)


def _say(issue: Issue, folder: RunFolder, console: Console) -> None:
    text = issue.text
    console.note(f"title: {text.title}")
    if text.warning is not None:
        console.warning(f"the evidence speaks against this tracker, and the text says so: {text.warning}")
    if text.fixed:
        console.warning(f"{text.fixed} no longer shows it: file it only for lines that still need the fix.")
    for command in text.missing:
        console.note(f"the text leaves open what this answers: {_on(command, folder)}")
    if text.tracker.url:
        console.note(f"file it at {text.tracker.url}")


def _on(command: str, folder: RunFolder) -> str:
    """The command line with this run's folder in it."""
    words = shlex.split(command)
    return shlex.join([str(folder.path) if word == "RUN" else word for word in words])


def _open(issue: Issue, console: Console, confirm: Callable[[str], bool]) -> None:
    check_gh(issue.text)
    console.result(issue.text.document)
    address = open_issue(issue.text, confirm)
    console.note("not opened." if address is None else f"opened: {address}")
