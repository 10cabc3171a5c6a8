"""`investigate slopes`: what a call costs and what each row, cell, character or byte adds, by Node version.

A property of a run like its verdicts, and computed from the same process values: every series of operations
that differ in size alone, primitives of the boundary (``--ops row_bulk,utf8_value_ascii``) and operations of
the addon (``bind_text_ascii``, ``select_blob``) alike.
"""

from rich.console import RenderableType

from investigator.errors import UsageError
from investigator.slopes import texts
from investigator.slopes.series import measured_series
from investigator.store import RunFolder
from investigator.stored_run import load


def text(folder: RunFolder, *, json: bool) -> RenderableType:
    """What the command prints.

    Raises:
        UsageError: no series of the run has enough sizes.
        StoredFileError: the run has no results, or a file of it is damaged or newer.
    """
    run = load(folder, measurements=True)
    found = measured_series(run)
    if not found:
        raise UsageError(
            f"{run.folder.path} has no operation in three sizes or more; measure a series, for instance with "
            "`investigate js --versions 22,24 --ops row_bulk,utf8_value_ascii --no-explain`."
        )
    return texts.as_json(run, found) if json else texts.terminal(run, found)
