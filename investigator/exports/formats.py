"""The formats that `investigate export` knows, and where its output goes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from investigator.errors import UsageError
from investigator.exports.benchstat import benchstat
from investigator.exports.github_action import github_action
from investigator.exports.node_csv import node_csv
from investigator.exports.tables import csv_table, parquet_table
from investigator.store import RunFolder, write_atomic
from investigator.stored_run import StoredRun, load

FORMATS: Mapping[str, Callable[[StoredRun], bytes]] = {
    "node-csv": node_csv,
    "benchstat": benchstat,
    "github-action-benchmark": github_action,
    "csv": csv_table,
    "parquet": parquet_table,
}
_BINARY = frozenset({"parquet"})

FormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="node-csv (benchmark/compare.js of nodejs/node), benchstat, github-action-benchmark: "
        "one sample a process; csv, parquet: one row a pass.",
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File to write; default stdout (not for parquet)."),
]


def export(folder: RunFolder, format_name: str, out: Path | None) -> str:
    """Write a run in that format to `out`, or return its text where `out` is None.

    Returns:
        What belongs on stdout: the text, or the path of the file.

    Raises:
        UsageError: there is no such format, it needs a file or a package, or `out` is a folder.
        StoredFileError: the run has no results, or a file of it is damaged or newer.
        HostUnfitError: the disk refuses.
    """
    write = FORMATS.get(format_name)
    if write is None:
        raise UsageError(f"there is no format {format_name[:80]!r}; take {', '.join(FORMATS)}.")
    if out is None and format_name in _BINARY:
        raise UsageError(f"{format_name} is no text; name a file for it with --out.")
    if out is not None and out.is_dir():
        raise UsageError(f"--out {out} is a folder; name a file in it.")
    if out is not None and out.exists() and not out.is_file():
        raise UsageError(f"--out {out} is a device or a pipe; name a file, or leave it out and redirect.")
    data = write(load(folder, measurements=True))
    if out is None:
        return data.decode()
    return str(write_atomic(out, data))
