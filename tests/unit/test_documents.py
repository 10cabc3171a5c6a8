"""`investigate report`: documents of a run, written whole or not at all."""

from pathlib import Path

import pytest

from investigator import documents
from investigator.errors import UsageError
from investigator.store import RunFolder


def test_a_format_that_does_not_exist_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no format 'pdf'; take html, markdown, figures"):
        documents.write(RunFolder(tmp_path / "missing"), ["markdown", "pdf"])
