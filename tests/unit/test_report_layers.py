"""Attributions in terminal, Markdown and summary: complete, bounded, harmless."""

import io
import json

import msgspec

from investigator.attribution.layers import Attribution
from investigator.console import Console
from investigator.report import markdown
from investigator.report.layers_view import layers_views
from investigator.report.summary_layers import summary_attribution
from investigator.report.terminal import TerminalReport
from investigator.report.view import build_view
from tests.unit import report_synthetic as synthetic
from tests.unit.report_synthetic import HOSTILE, attribution


def terminal(*found: Attribution) -> str:
    out = io.StringIO()
    view = build_view(synthetic.plan(), synthetic.analysis(), synthetic.facts(), found)
    Console(stdout=out, stderr=io.StringIO(), environment={"COLUMNS": "120"}).result(TerminalReport(view))
    return out.getvalue()


def test_the_terminal_names_layer_shares_and_cause() -> None:
    text = terminal(attribution())
    assert "bind_text_ascii_10k on b +105 % (+5.25 µs per call): native boundary" in text
    for words in ("95.0 % [+93.0 to +97.0]", "cause: src/a.cpp:1-9", "WriteUtf8 +5.00 µs", "no perf"):
        assert words in text
    assert "Which layer" not in terminal()


def test_a_withdrawn_flag_has_no_layer() -> None:
    withdrawn = msgspec.structs.replace(attribution(), recurred=False, layer="unknown")
    assert layers_views([withdrawn], {})[0].layer == "withdrawn"


def test_markdown_has_both_tables_and_the_raw_records() -> None:
    view = build_view(synthetic.plan(), synthetic.analysis(), synthetic.facts(), [attribution()])
    text = markdown.render(view)
    assert "## Which layer" in text
    assert "| native boundary | subtraction |" in text
    assert "`explain/x/raw`" in text
    assert "Also different:" in text


def test_the_summary_holds_no_number_that_json_lacks() -> None:
    entry = json.loads(msgspec.json.encode(summary_attribution(attribution())))
    assert entry["layer"] == "boundary"
    assert entry["layers"]["boundary"]["share"] == 0.95
    assert entry["gc"]["b"]["pause_ns_per_op"] is None
    assert entry["causes"][0]["moved"] == 0.91


def test_hostile_texts_render_harmlessly() -> None:
    huge = HOSTILE + "x" * 100_000
    view = build_view(synthetic.plan(), synthetic.analysis(), synthetic.facts(), [attribution(huge)])
    text = markdown.render(view)
    assert "<script" not in text
    assert len(text) < 200_000
    shown = terminal(attribution(huge))
    assert "\x1b" not in shown
    assert len(shown) < 200_000
