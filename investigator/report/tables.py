"""One Markdown table, for everything that GitHub renders."""

from collections.abc import Iterable, Sequence


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Lay out cells that are Markdown already; the columns `right` are aligned to the right."""
    aligned = set(right)
    lines = [
        f"| {' | '.join(header)} |",
        f"|{'|'.join('---:' if column in aligned else '---' for column in range(len(header)))}|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    return "\n".join(lines)
