"""The table of passes as it is: CSV and Parquet, one row a pass with its round, position and index.

These are for one's own analysis, not for a tool that takes rows for independent samples: group by
environment, twin and round (one process) first.
"""

import importlib
import io
import tempfile
from pathlib import Path
from typing import Any, Final

import pandas as pd

from investigator import samples
from investigator.errors import UsageError
from investigator.exports.words import printable
from investigator.stored_run import StoredRun

_FORMULA: Final = r"^[=+\-@\t\r]"
"""A spreadsheet takes a cell that begins like this for a formula, and runs it."""


def csv_table(run: StoredRun) -> bytes:
    """measurements.csv, safe to open in a spreadsheet; ``pandas.read_csv`` loads it."""
    text = io.StringIO()
    samples.to_csv(_harmless(_passes(run)), text)
    return text.getvalue().encode()


def parquet_table(run: StoredRun) -> bytes:
    """The same table as Parquet (zstd), with the types of `samples.Sample`.

    DuckDB writes it: a fraction of the size of pyarrow, which moreover changes how pandas stores text in the
    whole program as soon as it is installed; pandas has deprecated fastparquet.

    Raises:
        UsageError: DuckDB is not installed.
    """
    try:
        duckdb: Any = importlib.import_module("duckdb")
    except ImportError as error:
        raise UsageError(
            "Parquet needs DuckDB, which is not installed; install it with "
            "`pip install duckdb`, or take --format csv."
        ) from error
    with tempfile.TemporaryDirectory(prefix="investigate-") as folder:
        path = Path(folder) / "measurements.parquet"
        # Neither loads code from elsewhere nor reads a file: the table comes from memory.
        config = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        with duckdb.connect(":memory:", config=config) as connection:
            connection.from_df(_passes(run)).write_parquet(str(path), compression="zstd")
        return path.read_bytes()


def _passes(run: StoredRun) -> pd.DataFrame:
    table = run.passes[list(samples.COLUMN_TYPES)]
    texts = [name for name, kind in samples.COLUMN_TYPES.items() if kind == "str"]
    return table.assign(**{name: _cleaned(table[name]) for name in texts})


def _cleaned(column: "pd.Series[str]") -> "pd.Series[str]":
    """Names without control characters; each distinct one is looked at once, there can be a million rows."""
    return column.map({text: printable(text) for text in column.unique()}).astype("str")


def _harmless(table: pd.DataFrame) -> pd.DataFrame:
    texts = [name for name, kind in samples.COLUMN_TYPES.items() if kind == "str"]
    return table.assign(
        **{name: table[name].where(~table[name].str.match(_FORMULA), "'" + table[name]) for name in texts}
    )
