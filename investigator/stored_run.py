"""A run read back to be exported or compared: from its raw records, or from a dossier without them."""

from collections.abc import Mapping

import msgspec
import pandas as pd

from investigator import results, samples
from investigator.errors import StoredFileError, UsageError
from investigator.plan import Plan
from investigator.report.summary import SUMMARY_SCHEMA, Summary
from investigator.results import RUN_SCHEMA, RunRecord
from investigator.spec import Spec, load_spec
from investigator.store import RunFolder


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a run folder or a dossier says; computed anew from the raw records where it has them."""

    folder: RunFolder
    spec: Spec
    record: RunRecord
    summary: Summary
    addon_integrity: Mapping[str, str] = {}
    """Integrity value of the addon by environment identifier; empty for a dossier: it has none."""
    table: pd.DataFrame | None = None
    """All passes, as in measurements.csv; None where nobody asked for it (`load`)."""

    @property
    def passes(self) -> pd.DataFrame:
        """The table of passes of a run that was loaded with it."""
        if self.table is None:
            raise ValueError("this run was loaded without its measurements")
        return self.table


def load(folder: RunFolder, *, measurements: bool) -> StoredRun:
    """Read a run; with `measurements` its table of passes too.

    Raises:
        StoredFileError: a file is missing, damaged, or written by a newer tool.
    """
    if (folder.path / "plan.json").exists() and folder.finished_rounds():
        finished = results.regenerate(folder, write=False)
        return StoredRun(
            folder=folder,
            spec=finished.stored.plan.spec,
            record=finished.record,
            summary=msgspec.json.decode(results.summary_text(finished), type=Summary),
            addon_integrity=_integrity(finished.stored.plan),
            table=finished.table if measurements else None,
        )
    return StoredRun(
        folder=folder,
        spec=_spec(folder),
        record=folder.read_json("run.json", "run", RUN_SCHEMA, RunRecord),
        summary=folder.read_json("summary.json", "summary", SUMMARY_SCHEMA, Summary),
        table=_table(folder) if measurements else None,
    )


def _integrity(plan: Plan) -> dict[str, str]:
    return {e.id: e.addon.integrity for e in plan.environments if e.addon is not None}


def _spec(folder: RunFolder) -> Spec:
    try:
        return load_spec(folder.path / "spec.toml")
    except UsageError as error:
        # The user named a run, not a spec: what is wrong with it is a stored file.
        raise StoredFileError(str(error)) from error


def _table(folder: RunFolder) -> pd.DataFrame:
    path = folder.path / "measurements.csv"
    if not path.is_file():
        raise StoredFileError(f"{path} is missing; the run folder is not complete.")
    return samples.from_csv(path)
