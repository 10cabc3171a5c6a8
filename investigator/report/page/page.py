"""report.html: the view and its figures as one file that needs nothing else.

Every text goes through the template's escaping; drawings come from the plotting library, which escapes too.
The policy in the head allows the scripts and styles of this file by their digests, and no connection.
"""

import base64
import functools
import hashlib
import json
import re
from importlib import resources

import jinja2
import markupsafe

from investigator.report import collected
from investigator.report.page import draw, rows, theme
from investigator.report.page.figures import Figures
from investigator.report.shapes import View
from investigator.report.wording import FINDING_MARK, VERDICT_WORDS
from investigator.validate.shapes import Validation

_PACKAGE = "investigator.report.page"
_ROWS = (
    "undecided_rows",
    "part_rows",
    "published_header",
    "published_rows",
    "detail_rows",
    "failure_rows",
    "environment_rows",
    "digest_rows",
    "flag_groups",
    "validation_sides",
    "validation_notes",
    "target_rows",
    "other_rows",
)


def render(view: View, figures: Figures, validation: Validation | None = None) -> str:
    """Write the page; ends with a newline.

    Args:
        view: everything it says.
        figures: its plots.
        validation: the answer of `investigate validate`, above everything else.

    Raises:
        HostUnfitError: the plotting library cannot be used.
    """
    style, scripts = theme.style_variables() + _resource("style.css"), (draw.library(), _resource("page.js"))
    text = _template().render(
        view=view,
        validation=validation,
        figures=figures,
        drawn={figure.name: markupsafe.Markup(draw.svg(figure)) for figure in figures},  # noqa: S704
        policy=_policy(style, scripts),
        style=markupsafe.Markup(style),  # noqa: S704
        scripts=[markupsafe.Markup(script) for script in scripts],  # noqa: S704
        specs=markupsafe.Markup(_specs(figures)),  # noqa: S704
        finding=FINDING_MARK,
        collected=collected,
        **{name: getattr(rows, name) for name in _ROWS},
        verdict_class={word: verdict for verdict, word in VERDICT_WORDS.items()},
    )
    return text.rstrip() + "\n"


def without_figures(view: View, reason: str) -> str:
    """Write a page that only says why there is none; ends with a newline."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'
        f"<title>{markupsafe.escape(view.title)}</title></head><body>"
        f"<h1>{markupsafe.escape(view.title)}</h1><p>{markupsafe.escape(view.headline)}</p>"
        f"<p>This page could not be made: {markupsafe.escape(reason)} All figures are in report.md beside "
        "it; <code>investigate report RUN --format html</code> tries again.</p></body></html>\n"
    )


def _policy(style: str, scripts: tuple[str, ...]) -> str:
    allowed = " ".join(_digest(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _specs(figures: Figures) -> str:
    """JSON that cannot end the script element it stands in."""
    specs = {figure.name: {"mode": figure.language, "spec": figure.spec} for figure in figures}
    text = json.dumps(specs, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(_PACKAGE, "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"breakable": _breakable, "quoted": _quoted}
    return environment.get_template("report.html.jinja")


def _breakable(text: str) -> markupsafe.Markup:
    """A name that may be broken behind its underscores."""
    return markupsafe.Markup("_<wbr>").join(text.split("_"))


def _quoted(text: str) -> markupsafe.Markup:
    """A sentence whose parts in backticks are code."""
    escaped = str(markupsafe.escape(text))
    return markupsafe.Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))  # noqa: S704


@functools.cache
def _resource(name: str) -> str:
    return resources.files(_PACKAGE).joinpath(name).read_text(encoding="utf-8")
