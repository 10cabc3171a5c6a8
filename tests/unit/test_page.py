"""report.html without a browser: complete, self-contained, harmless whatever it is made from."""

import base64
import functools
import hashlib
import html.parser
import json
import re
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest

from investigator import results
from investigator.arms import Arm, ArmKey
from investigator.attributed import ProfileSide
from investigator.errors import HostUnfitError
from investigator.profiling.stacks import Stacks, from_lines
from investigator.report.page import draw, page, theme
from investigator.report.page.figures import Figures, figures
from investigator.report.page.shapes import slug
from investigator.report.view import build_view
from tests.unit import report_synthetic as synthetic
from tests.unit.report_synthetic import BASELINE, HOSTILE, attribution

CANDIDATE = "node24.11.1+bsm12.11.1"
LOOP = "main;node:node::Start;js:JS:^callMany operation.mjs:69:11;js:JS:*sync_op_0 :7:29"


def arms(ops: tuple[str, ...], rounds: int = 8) -> dict[ArmKey, Arm]:
    """Process values around a microsecond, the candidate half as slow again."""
    generator = np.random.default_rng(1)
    made: dict[ArmKey, Arm] = {}
    for op in ops:
        for environment, twin, factor in (
            (BASELINE, False, 1.0),
            (BASELINE, True, 1.0),
            (CANDIDATE, False, 1.5),
        ):
            wall = 1000.0 * factor * generator.uniform(0.98, 1.02, rounds)
            made[op, "warm", environment, twin] = Arm(
                op=op, wall=wall, cpu=wall, fastest=wall, gc=wall * 0, passes=8 * rounds, disturbed=0
            )
    return made


def stacks(*, slower: bool = False) -> Stacks:
    api = "js:Builtins_CallApiCallbackOptimizedNoProfiling" if slower else "js:Builtins_CallApiCallback"
    return from_lines(
        (
            f"{LOOP};{api};addon:Statement::JS_get;core:sqlite3_step 300",
            f"{LOOP};{api};addon:Binder::Bind;node:v8::String::WriteUtf8 {600 if slower else 100}",
        )
    )


def sides(*_: object) -> tuple[ProfileSide, ...]:
    return (
        ProfileSide(environment=BASELINE, stacks=stacks(), ns_per_call=1000.0),
        ProfileSide(environment=CANDIDATE, stacks=stacks(slower=True), ns_per_call=1500.0),
    )


@functools.cache
def made() -> tuple[Figures, str]:
    plan, analysis = synthetic.plan(), synthetic.analysis()
    attributions = [msgspec.structs.replace(attribution(), baseline=BASELINE, candidate=CANDIDATE)]
    ops = tuple(operation.name for operation in plan.operations)
    drawn = figures(plan, analysis, arms(ops), attributions, sides)
    return drawn, page.render(build_view(plan, analysis, synthetic.facts(), attributions), drawn)


class Elements(html.parser.HTMLParser):
    """What a browser would make of a page: tags with their attributes, and the text outside of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.texts: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")
        elif tag == "style":
            self.styles.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside == "style":
            self.styles[-1] += data
        else:
            self.texts.append(data)


def test_the_page_has_every_section_and_every_figure() -> None:
    drawn, text = made()
    elements = Elements(text)
    ids = {attributes.get("id") for _, attributes in elements.tags}
    assert {"result", "changes", "layers", "rounds", "more", "missing", "ran", "method"} <= ids
    shown = [attributes["data-figure"] for _, attributes in elements.tags if "data-figure" in attributes]
    assert shown == [figure.name for figure in drawn]
    assert len(drawn.rounds) == 9
    assert len(drawn.changes) == 2
    assert [f.name.partition("-")[0] for f in drawn.explained[0].flames] == ["flame", "flame", "flame"]


def test_every_plot_says_what_it_shows_and_has_its_figures_as_a_table() -> None:
    drawn, text = made()
    elements = Elements(text)
    plots = [attributes for _, attributes in elements.tags if "data-figure" in attributes]
    assert all(p["role"] == "img" and len(p["aria-label"] or "") > 30 for p in plots)
    assert all(figure.rows and {len(row) for row in figure.rows} == {len(figure.columns)} for figure in drawn)


def test_the_policy_allows_the_scripts_and_styles_of_the_page_and_nothing_else() -> None:
    elements = Elements(made()[1])
    policy = next(a["content"] for t, a in elements.tags if t == "meta" and a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    kinds = [attributes.get("type") for tag, attributes in elements.tags if tag == "script"]
    assert kinds == ["application/json", "module", "module"]
    for code in (*elements.scripts[1:], *elements.styles):
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_nothing_is_loaded_from_anywhere() -> None:
    for tag, attributes in Elements(made()[1]).tags:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form"}
        assert not {"src", "srcset", "style", "action"} & attributes.keys(), tag
        assert not [name for name in attributes if name.startswith("on")], tag
        assert all(attributes.get(name, "#").startswith("#") for name in ("href", "xlink:href"))  # type: ignore[union-attr]


def test_no_colour_of_a_plot_is_missing_in_the_style() -> None:
    text = made()[1]
    used = set(re.findall(r"var\(--([a-z0-9_]+)\)", text))
    assert used <= theme.COLOURS.keys()


def test_pictures_for_elsewhere_have_colours_of_their_own() -> None:
    figure = made()[0].explained[0].flames[2]
    assert "var(" not in draw.plain_svg(figure)
    assert draw.png(figure).startswith(b"\x89PNG")


def test_hostile_texts_do_nothing_to_the_page() -> None:
    huge = HOSTILE + "x" * 1_000_000
    plan, analysis = synthetic.plan(), synthetic.analysis(huge)
    plan = msgspec.structs.replace(
        plan,
        run_id=huge,
        operations=tuple(msgspec.structs.replace(o, name=f"{HOSTILE}{o.name}") for o in plan.operations[:2]),
        environments=tuple(
            msgspec.structs.replace(e, label=f"</script>{HOSTILE}{i}")
            for i, e in enumerate(plan.environments)
        ),
    )
    analysis = msgspec.structs.replace(
        analysis,
        comparisons=tuple(
            msgspec.structs.replace(c, op=huge, family=HOSTILE, warnings=(huge, HOSTILE))
            for c in analysis.comparisons
        ),
    )
    hostile_symbol = "</script><img src=x onerror=alert(1)>{{ 7*7 }}"
    evil: Stacks = from_lines((f"{LOOP};addon:{hostile_symbol} 5", f"{LOOP};core:{hostile_symbol} 5"))
    attributions = [msgspec.structs.replace(attribution(huge), baseline=BASELINE, candidate=CANDIDATE)]
    drawn = figures(
        plan,
        analysis,
        arms(tuple(o.name for o in plan.operations)),
        attributions,
        lambda _: tuple(msgspec.structs.replace(side, stacks=evil) for side in sides()),
    )
    facts = msgspec.structs.replace(synthetic.facts(), folder=huge, tool=huge, engine={huge: huge})
    text = page.render(build_view(plan, analysis, facts, attributions), drawn)
    elements = Elements(text)
    assert Counter(tag for tag, _ in elements.tags)["script"] == 3
    assert Counter(tag for tag, _ in elements.tags)["img"] == 0
    assert not [a for _, a in elements.tags if [name for name in a if name.startswith("on")]]
    assert not [a for _, a in elements.tags if "javascript" in (a.get("href") or "")]
    assert {"\x1b", "\x9b", "\u202e", "\x00"} & set(text) == set()
    assert "49" not in re.findall(r"\{\{.*?\}\}|onerror=alert\(1\)&gt;(\d+)", text)
    assert len(text) < 3_000_000
    assert json.loads(elements.scripts[0]).keys() == {figure.name for figure in drawn}
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", figure.name) for figure in drawn)


def test_a_name_is_safe_for_files_and_ids() -> None:
    assert slug("rounds", "../../etc/passwd") == "rounds-etc-passwd"
    assert slug("", "///") == "figure"


def test_a_run_is_not_lost_over_a_picture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object) -> str:
        raise RuntimeError("no <b>fonts</b>")

    plan, analysis = synthetic.plan(), synthetic.analysis()
    view = build_view(plan, analysis, synthetic.facts())
    monkeypatch.setattr(results, "html_report", refuse)
    monkeypatch.setattr(results, "_view", lambda _: view)
    text = results._page(None)  # type: ignore[arg-type]
    assert "no &lt;b&gt;fonts&lt;/b&gt;" in text
    assert "report.md" in text


def test_what_the_library_refuses_is_one_sentence() -> None:
    figure = msgspec.structs.replace(made()[0].rounds[0], spec={"mark": 7})
    with pytest.raises(HostUnfitError, match="cannot be drawn"):
        draw.svg(figure)
