"""`investigate compare`: which findings of one run recur in others, of other machines or other days.

Times are never pooled: every run is judged by its own rounds, and only its changes in percent stand beside
those of the others.
"""

from collections.abc import Sequence

from rich.console import RenderableType

from investigator.compare import texts
from investigator.compare.match import compare
from investigator.store import RunFolder
from investigator.stored_run import load


def text(folders: Sequence[RunFolder], *, json: bool) -> RenderableType:
    """What the command prints.

    Raises:
        UsageError: fewer than two runs, or two copies of one.
        StoredFileError: a run has no results, or a file of it is damaged or newer.
    """
    compared = compare([load(folder, measurements=False) for folder in folders])
    return texts.as_json(compared) if json else texts.terminal(compared)
