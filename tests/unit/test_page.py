"""report.html without a browser: complete, self-contained, harmless whatever it is made from."""

import base64
import hashlib
import html.parser
import json
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from investigator import results
from investigator.errors import HostUnfitError
from investigator.report.page import draw, page, theme
from investigator.report.page.shapes import slug
from investigator.report.shapes import View
from investigator.report.view import build_view
from tests.unit import report_synthetic as synthetic
from tests.unit.page_synthetic import hostile, made


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


def test_everything_that_the_view_says_is_laid_out() -> None:
    source = Path(page.__file__)
    texts = source.with_name("report.html.jinja").read_text() + source.with_name("rows.py").read_text()
    said = {name for name in View.__struct_fields__ if re.search(rf"\bview\.{name}\b", texts)}
    assert set(View.__struct_fields__) - said == {"baseline"}  # the environments say which it is


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
    drawn, text = hostile()
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


def test_the_scripts_are_bundled_once_and_again_where_the_copy_is_damaged_or_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled: list[str] = []

    def bundle(code: str) -> str:
        bundled.append(code)
        return f"scripts {len(bundled)}"

    monkeypatch.setattr("vl_convert.javascript_bundle", bundle)
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    read = draw.library.__wrapped__
    assert [read(), read()] == ["scripts 1", "scripts 1"]
    (copy,) = (tmp_path / "cache").rglob("*.js")
    copy.write_text("alert('somebody else')")
    assert read() == "scripts 2"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "file"))
    assert read() == "scripts 3"
