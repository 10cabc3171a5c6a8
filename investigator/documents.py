"""The documents of a run that `investigate report` writes: one entry of `WRITERS` a format.

A writer computes; nothing is written before all of them have succeeded.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from investigator import results
from investigator.errors import UsageError
from investigator.report.page import draw
from investigator.results import Finished
from investigator.store import RunFolder, write_atomic


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One file that leaves the tool."""

    name: str
    """Path below the output folder."""
    data: bytes


FormatOption = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="What to write; repeatable. html: report.html; markdown: report.md; figures: its plots as PNG "
        "and SVG, into figures/; all: everything but issue; issue: texts for upstream trackers, needs "
        "--for. Default html and markdown.",
    ),
]
OutOption = Annotated[Path | None, typer.Option(help="Folder to write into; default the run folder.")]


def _markdown(finished: Finished) -> Iterator[Document]:
    yield Document(name="report.md", data=results.markdown_report(finished).encode())


def _html(finished: Finished) -> Iterator[Document]:
    yield Document(name="report.html", data=results.html_report(finished).encode())


def _figures(finished: Finished) -> Iterator[Document]:
    for figure in results.run_figures(finished):
        yield Document(name=f"figures/{figure.name}.svg", data=draw.plain_svg(figure).encode())
        yield Document(name=f"figures/{figure.name}.png", data=draw.png(figure))


WRITERS: Mapping[str, Callable[[Finished], Iterable[Document]]] = {
    "html": _html,
    "markdown": _markdown,
    "figures": _figures,
}


USUAL = ("html", "markdown")


def write(folder: RunFolder, formats: Sequence[str], out: Path | None = None) -> tuple[Path, ...]:
    """Write the documents of a run into its folder, or into `out`; their paths in the order of `formats`.

    Raises:
        UsageError: there is no such format.
        StoredFileError: the run has no results that could be computed anew.
        HostUnfitError: the disk refuses.
    """
    writers = [WRITERS[name] for name in _chosen(formats)]
    finished = results.regenerate(folder, write=False)
    documents = [document for writer in writers for document in writer(finished)]
    target = folder.path if out is None else out
    return tuple(write_atomic(target / document.name, document.data) for document in documents)


def _chosen(formats: Sequence[str]) -> Sequence[str]:
    for name in formats:
        if name != "all" and name not in WRITERS:
            raise UsageError(f"there is no format {name[:80]!r}; take {', '.join(WRITERS)} or all.")
    return tuple(WRITERS) if "all" in formats else tuple(dict.fromkeys(formats))
