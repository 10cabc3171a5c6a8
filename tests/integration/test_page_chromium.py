"""report.html in the system's real Chromium: nothing refused, nothing loaded, usable by everybody.

Where INVESTIGATE_REQUIRE_DOCKER=1 a missing browser is a failure, not a skip, as a missing engine is.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Dialog, Page, Request, sync_playwright

from tests.integration.conftest import missing
from tests.unit.page_synthetic import hostile, made

pytestmark = pytest.mark.browser

Opened = tuple[Page, list[str]]
"""A page, and everything it complained about or asked for."""
Open = Callable[..., Opened]

SCROLL = """async () => {
  for (let y = 0; y < document.body.scrollHeight; y += 400) {
    scrollTo(0, y);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}"""
LIVE = "document.querySelectorAll('[data-figure] > div > svg').length"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        missing("there is no Chromium on this machine (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        # Root cannot use Chromium's own sandbox, and the pages are ours.
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    contexts = []

    def open_(text: str, *, width: int = 1280, **options: object) -> Opened:
        path = tmp_path / "report.html"
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)  # type: ignore[arg-type]
        contexts.append(context)
        page, trouble = context.new_page(), list[str]()
        page.on("console", lambda message: trouble.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("dialog", lambda dialog: dismiss(dialog, trouble))
        page.on("request", lambda request: note(request, path.as_uri(), trouble))
        page.goto(path.as_uri())
        return page, trouble

    yield open_
    for context in contexts:
        context.close()


def dismiss(dialog: Dialog, trouble: list[str]) -> None:
    trouble.append(f"dialog: {dialog.message}")
    dialog.dismiss()


def note(request: Request, own: str, trouble: list[str]) -> None:
    if request.url != own:
        trouble.append(f"request: {request.url[:200]}")


def see_everything(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.evaluate(SCROLL)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (375, "dark")])
def test_all_plots_come_alive_under_the_policy_and_nothing_is_loaded(
    open_page: Open, scheme: str, width: int
) -> None:
    page, trouble = open_page(made()[1], width=width, color_scheme=scheme)
    see_everything(page)
    count = sum(1 for _ in made()[0])
    page.wait_for_function(f"{LIVE} === {count}")
    assert trouble == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (375, "dark")])
def test_it_is_accessible(open_page: Open, scheme: str, width: int) -> None:
    page, _ = open_page(made()[1], width=width, color_scheme=scheme)
    see_everything(page)
    found = Axe().run(page)
    told = [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found.response["violations"]]
    assert told == []
    assert len(found.response["passes"]) > 15


@pytest.mark.parametrize("width", [320, 375, 768])
def test_no_page_is_wider_than_its_screen(open_page: Open, width: int) -> None:
    page, _ = open_page(made()[1], width=width)
    see_everything(page)
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_dark_scheme_is_dark_and_so_are_its_plots(open_page: Open) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page, _ = open_page(made()[1], color_scheme=scheme)
        colours.append(
            page.evaluate(
                """() => {
                  const text = document.querySelector('[data-figure] svg text');
                  return [getComputedStyle(document.body).backgroundColor, getComputedStyle(text).fill];
                }"""
            )
        )
    (light_page, light_text), (dark_page, dark_text) = colours
    assert light_page == "rgb(255, 255, 255)"
    assert dark_page == "rgb(21, 24, 28)"
    assert light_text != dark_text


def test_without_scripts_every_plot_is_still_there(open_page: Open) -> None:
    page, _ = open_page(made()[1], java_script_enabled=False)
    plots = page.locator("[data-figure] > svg")
    assert plots.count() == sum(1 for _ in made()[0])
    box = plots.first.bounding_box()
    assert box is not None
    assert box["width"] > 200


def test_a_click_enlarges_a_part_of_a_flame_graph_and_the_top_row_undoes_it(open_page: Open) -> None:
    page, _ = open_page(made()[1])
    flame = page.locator(f'[data-figure="{made()[0].explained[0].flames[1].name}"]')
    flame.scroll_into_view_if_needed()
    flame.locator("div > svg").wait_for()
    axis = flame.locator(".role-axis-label text")
    before = axis.all_inner_texts()
    flame.locator("text", has_text="Binder::Bind").click()
    page.wait_for_timeout(200)
    assert axis.all_inner_texts() != before
    flame.locator("text", has_text="native boundary").click()
    page.wait_for_timeout(200)
    assert axis.all_inner_texts() == before


def test_a_tooltip_tells_the_value_of_a_point(open_page: Open) -> None:
    page, trouble = open_page(made()[1])
    plot = page.locator('[data-figure="rounds-select_point"]')
    plot.scroll_into_view_if_needed()
    plot.locator("div > svg").wait_for()
    plot.locator("path[aria-roledescription=point], .mark-symbol path").first.hover()
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert "per operation" in tooltip.inner_text()
    assert trouble == []


def test_the_keyboard_reaches_the_result_the_tables_and_what_is_folded(open_page: Open) -> None:
    page, _ = open_page(made()[1])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the result"
    page.keyboard.press("Enter")
    assert page.url.endswith("#result")
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.className || document.activeElement.tagName"))
    assert {"scroll result", "plot", "SUMMARY"} <= seen
    page.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("details").first.get_attribute("open") is not None


def test_it_prints_with_everything_unfolded(open_page: Open) -> None:
    page, trouble = open_page(made()[1], color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    folded = "document.querySelectorAll('details.section:not([open])').length"
    assert page.evaluate(folded) > 0
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(folded) == 0
    assert len(page.pdf(format="A4")) > 50_000
    assert trouble == []


def test_hostile_texts_do_nothing(open_page: Open) -> None:
    page, trouble = open_page(hostile()[1], width=375)
    see_everything(page)
    page.wait_for_timeout(300)
    assert trouble == []
    assert page.locator("main img, main script, body > img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 375
