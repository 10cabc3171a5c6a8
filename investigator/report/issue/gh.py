"""Open an issue through the user's own GitHub client. Nothing happens before it was shown and agreed to."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from investigator.errors import EngineMissingError, HostUnfitError, UsageError
from investigator.report.issue.forms import IssueText
from investigator.text import clean_text

_TIMEOUT_S: Final = 120


def check_gh(text: IssueText) -> str:
    """The client's path, where this text can be opened with it.

    Raises:
        UsageError: its tracker is not on GitHub, or is not known.
        EngineMissingError: there is no client.
    """
    if text.tracker.repository is None:
        where = f"; paste the text at {text.tracker.url}" if text.tracker.url else ""
        raise UsageError(f"--gh opens issues on GitHub, where this tracker is not, or is not known{where}.")
    client = shutil.which("gh")
    if client is None:
        raise EngineMissingError(
            f"the GitHub client gh is not installed; install it, or paste the text at {text.tracker.url}."
        )
    return client


def open_issue(text: IssueText, confirm: Callable[[str], bool]) -> str | None:
    """Open the issue if `confirm` agrees; its address, or None where it did not agree.

    Raises:
        UsageError, EngineMissingError: see `check_gh`.
        HostUnfitError: the client refused, or did not answer.
    """
    client = check_gh(text)
    if not confirm(f"Open this issue at {text.tracker.repository}?"):
        return None
    with tempfile.TemporaryDirectory(prefix="investigate-") as folder:
        body = Path(folder) / "issue.md"
        body.write_text(text.body, encoding="utf-8")
        return _create(client, str(text.tracker.repository), text.title, body)


def _create(client: str, repository: str, title: str, body: Path) -> str:
    # Joined with "=": a title that begins with a dash stays a title.
    command = (
        client, "issue", "create", "--repo", repository, f"--title={title}", f"--body-file={body}",
    )  # fmt: skip
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = clean_text(str(error), 200)
        message = f"gh did not answer ({why}); look at {repository} before trying again."
        raise HostUnfitError(message) from error
    if done.returncode != 0:
        said = clean_text(done.stderr or done.stdout, 400) or f"it ended with {done.returncode}"
        raise HostUnfitError(f"gh did not open the issue: {said}.")
    return clean_text(done.stdout, 300)
