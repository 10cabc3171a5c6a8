"""What people read, compared word for word with tests/golden.

A mismatch leaves what came out beside the golden file (``.got``). After a wanted change run this file with
``INVESTIGATE_UPDATE_GOLDEN=1`` and read the diff.
"""

import difflib
import io
import os
from pathlib import Path

import pytest

from investigator.console import Console
from investigator.report import markdown
from investigator.report.shapes import View
from investigator.report.summary import Summary, SummaryComparison, encode_summary, summary
from investigator.report.terminal import TerminalReport
from investigator.report.view import build_view
from tests.fields import field_table
from tests.unit import report_synthetic as synthetic

GOLDEN = Path(__file__).parents[1] / "golden"


def check(name: str, got: str) -> None:
    path = GOLDEN / name
    beside = path.with_name(f"{path.name}.got")
    if os.environ.get("INVESTIGATE_UPDATE_GOLDEN") == "1":
        path.write_text(got, encoding="utf-8")
    wanted = path.read_text(encoding="utf-8") if path.exists() else ""
    if got == wanted:
        beside.unlink(missing_ok=True)
        return
    beside.write_text(got, encoding="utf-8")
    diff = difflib.unified_diff(
        wanted.splitlines(), got.splitlines(), str(path.name), str(beside.name), lineterm=""
    )
    pytest.fail("\n".join(diff), pytrace=False)


def view() -> View:
    return build_view(synthetic.plan(), synthetic.analysis(), synthetic.facts())


def on_terminal(width: int) -> str:
    out = io.StringIO()
    Console(stdout=out, stderr=io.StringIO(), environment={"COLUMNS": str(width)}).result(
        TerminalReport(view())
    )
    return out.getvalue()


@pytest.mark.parametrize("width", [120, 80])
def test_terminal(width: int) -> None:
    text = on_terminal(width)
    check(f"terminal-{width}.txt", text)
    head, _, tail = text.partition("Run folder:")
    assert max(len(line) for line in head.splitlines()) <= width
    assert "\x1b" not in tail


def test_report_md() -> None:
    check("report.md", markdown.render(view()))


def test_summary_json() -> None:
    value = summary(
        synthetic.plan(),
        synthetic.analysis(),
        synthetic.builds(),
        "investigate 0.1.0",
        collectors=synthetic.collectors(),
    )
    check("summary.json", encode_summary(value).decode())


def test_description_of_summary_json() -> None:
    check("fields.md", f"{field_table(Summary)}\n\n{field_table(SummaryComparison)}\n")
