"""What the reports of a run say of its reproductions, whatever they are named."""

import io

import msgspec
from rich.console import RenderableType

from investigator.console import Console
from investigator.listings import reproductions
from investigator.report import markdown
from investigator.report.page import page
from investigator.report.page.figures import Figures
from investigator.report.view import build_view
from investigator.repro.make import result_text
from investigator.repro.manifest import Manifest, Program
from tests.unit import report_synthetic as synthetic
from tests.unit.report_synthetic import HOSTILE

CANDIDATE = "node24.11.1+bsm12.11.1"
KEPT = "it changed by +110 %, the finding by +130 %: the same direction, within a third of the size"
NOT_KEPT = "it changed by +20.0 % [+18.0 to +22.0], the finding by +130 %: not within a third of the size"


def manifest(text: str = "") -> Manifest:
    shipped = Program(
        name="snippet-v8",
        kind="v8_addon",
        title=f"a string to UTF-8 {text}",
        shipped=True,
        reason=KEPT,
        output=f"snippet-v8 {text}",
    )
    return Manifest(
        op="bind_text_ascii_10k",
        family="sqlite",
        baseline="node22.21.1+bsm12.11.1",
        candidate=CANDIDATE,
        baseline_name="Node 22.21.1",
        candidate_name=f"Node 24.11.1 {text}",
        change_pct=130.0,
        ci_low_pct=120.0,
        ci_high_pct=140.0,
        programs=(
            shipped,
            msgspec.structs.replace(shipped, name="snippet-sqlite", shipped=False, reason=NOT_KEPT),
        ),
        needs=(f"The candidate's Node is to be given. {text}",),
    )


def printed(result: RenderableType) -> str:
    out = io.StringIO()
    Console(stdout=out, stderr=io.StringIO(), environment={"COLUMNS": "200"}).result(result)
    return out.getvalue()


def texts(made: Manifest) -> dict[str, str]:
    shown = build_view(synthetic.plan(), synthetic.analysis(), synthetic.facts(), reproductions=[made])
    nothing = Figures(changes=(), explained=(), rounds=())
    return {
        "markdown": markdown.render(shown),
        "page": page.render(shown, nothing),
        "terminal": printed(reproductions([made], json=False)),
        "result": result_text(made),
    }


def test_reports_name_what_is_kept_and_why_the_rest_is_not() -> None:
    for name, text in texts(manifest()).items():
        plain = text.replace("\\", "").replace("\u200b", "")
        assert "snippet-v8" in plain, name
        assert "not shipped" in plain, name
        assert "within a third of the size" in plain, name
        assert "The candidate's Node is to be given" in plain.replace("&#39;", "'"), name


def test_a_hostile_reproduction_is_harmless() -> None:
    for name, text in texts(manifest(HOSTILE)).items():
        assert "\x1b" not in text, name
        assert "\u202e" not in text, name
        if name in {"markdown", "page"}:
            assert "<script>alert" not in text, name
            assert "<img src=x" not in text, name


def test_reproducing_is_offered_until_it_is_done() -> None:
    before = build_view(synthetic.plan(), synthetic.analysis(), synthetic.facts())
    assert any(command.startswith("investigate repro ") for _, command in before.next_commands)
    done = [
        msgspec.structs.replace(manifest(), op=c.op, candidate=c.candidate)
        for c in synthetic.analysis().comparisons
        if c.finding
    ]
    after = build_view(synthetic.plan(), synthetic.analysis(), synthetic.facts(), reproductions=done)
    assert not any(command.startswith("investigate repro ") for _, command in after.next_commands)
