"""The one door to the plotting library: specs to SVG and PNG, and its scripts for the page.

Vega and Vega-Lite come with the package; nothing is loaded from anywhere, also not by a spec.
"""

import functools
import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import vl_convert

from investigator import cache
from investigator.errors import HostUnfitError, UsageError
from investigator.report.page.shapes import Figure, Spec
from investigator.report.page.theme import colour, plain
from investigator.text import clean_text

PNG_SCALE = 2.0
_BUNDLE = "bundle.js"
T = TypeVar("T")


def svg(figure: Figure) -> str:
    """Draw a figure for the page: colours are variables of its style sheet.

    Raises:
        HostUnfitError: the library refuses.
    """
    return _svg(figure, figure.spec)


def plain_svg(figure: Figure) -> str:
    """Draw a figure for everywhere else: light colours on white."""
    return plain(_svg(figure, _on_white(figure)))


def png(figure: Figure) -> bytes:
    """Draw the same as a picture, two pixels for one."""
    spec = plain(json.dumps(_on_white(figure)))
    convert = vl_convert.vega_to_png if figure.language == "vega" else vl_convert.vegalite_to_png
    return bytes(_drawn(figure.name, lambda: convert(spec, scale=PNG_SCALE, allowed_base_urls=[])))


def _svg(figure: Figure, spec: Spec) -> str:
    convert = vl_convert.vega_to_svg if figure.language == "vega" else vl_convert.vegalite_to_svg
    return str(_drawn(figure.name, lambda: convert(json.dumps(spec), allowed_base_urls=[])))


def _on_white(figure: Figure) -> Spec:
    return {**figure.spec, "background": colour("page")}


@functools.cache
def library() -> str:
    """Vega, Vega-Lite and their embedding as one script; it needs no other and no network.

    Bundling takes seconds and always gives the same, so it is done once for a release of the library.

    Raises:
        HostUnfitError: the library cannot be used on this machine.
    """
    try:
        key = f"vl-convert-{importlib.metadata.version('vl-convert-python')}"
        kept = cache.filled("page-scripts", key, _bundle_into, key_files=(_BUNDLE,))
        return (kept / _BUNDLE).read_bytes().decode()
    except (HostUnfitError, UsageError, OSError, UnicodeDecodeError):
        return _bundle()  # a page needs no cache that can be written


def _bundle_into(folder: Path) -> None:
    (folder / _BUNDLE).write_bytes(_bundle().encode())


def _bundle() -> str:
    return str(_drawn("the scripts", lambda: vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")))


def _drawn(what: str, draw: Callable[[], T]) -> T:
    try:
        return draw()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the library's Rust code derives from no narrower class
        raise HostUnfitError(f"{what} cannot be drawn: {clean_text(str(error), 200)}.") from error
