"""Pictures of report.html for the README: ``python -m tests.pictures RUN``, in the system's Chromium.

Writes report-result.png (light: the answer, the table, the changes) and report-layer.png (dark: one explained
finding) into the folder of the run.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

WIDTH, HEIGHT = 1150, 1000
FLAMES = """
document.querySelector('nav').hidden = true;
document.querySelector('#layers .pair').previousElementSibling.previousElementSibling.scrollIntoView();
"""
BOX = """() => {
  const pair = document.querySelector('#layers .pair');
  const top = pair.previousElementSibling.previousElementSibling.getBoundingClientRect().top;
  const bottom = pair.nextElementSibling.querySelector('figcaption').getBoundingClientRect().bottom;
  return { x: 0, y: Math.max(0, top - 20), width: document.body.clientWidth, height: bottom - top + 40 };
}"""
"""From the heading of the flame graphs to the end of their difference."""


def opened(browser: Browser, report: Path, scheme: str) -> Page:
    """The page on a desk, all of its plots drawn."""
    size = {"width": WIDTH, "height": HEIGHT}
    page = browser.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(report.resolve().as_uri())
    return page


def main(run: Path) -> None:
    """Take both pictures; the second only where a finding was explained."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        # Root cannot use Chromium's own sandbox, and the page is ours.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = opened(browser, run / "report.html", "light")
        page.screenshot(path=run / "report-result.png")
        page = opened(browser, run / "report.html", "dark")
        if page.locator("#layers .pair").count():
            page.set_viewport_size({"width": WIDTH, "height": 2 * HEIGHT})
            page.evaluate(FLAMES)
            page.wait_for_timeout(1500)
            box = page.evaluate(BOX)
            page.screenshot(path=run / "report-layer.png", clip=box)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
