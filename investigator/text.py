"""Text from outside made harmless: for a terminal, for a table cell, for Markdown that GitHub renders.

Names, versions, paths, compiler output and error messages are written by others. `clean_text` comes first
and makes one bounded line of printable characters; `escape_markdown`, `code_span` and `fence` then keep it
from being markup. For rich use `rich.text.Text`, which interprets nothing.
"""

import re
import unicodedata

DEFAULT_LIMIT = 500
"""Characters kept of a text when the caller has no better limit."""

# CSI and OSC sequences as a whole, else "[31m" stays behind when the escape character goes.
_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|\x1b[@-_]?"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MARKDOWN = re.compile(
    r"[\\`*{}\[\]#~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"  # anywhere; an underscore not inside a word
    r"|^[-+](?=[-\s]|$)|^[=:]"  # list item or underline, only at the start
)
_LIST_ITEM = re.compile(r"^([0-9]{1,9})([.)])(?=\s|$)")
# Entities, because a backslash before a column separator means different things to different parsers.
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}
_ZERO_WIDTH = "\u200b"
# Also "GH-12" and "owner/name@1a2b3c4", which GitHub takes for references, and addresses of mail.
# "name@12.11.1" is none of them and stays as it can be copied.
_MENTION = re.compile(
    r"(?<![A-Za-z0-9_])@(?=[A-Za-z0-9])|@(?=[\w-]*\.[\w.-]*[A-Za-z])|@(?=[0-9a-f]{7,40}(?!\w))"
    r"|#(?=[0-9])|\b[Gg][Hh]-(?=[0-9])"
)
_AUTOLINK = re.compile(r"(?<=:)(?=//)|(?<=[Ww][Ww][Ww])(?=\.)")


def clean_text(text: str, limit: int = DEFAULT_LIMIT) -> str:
    """Make one line of at most `limit` printable characters, with a mark where something was cut.

    Terminal sequences, control, format (bidirectional, zero width), surrogate and unassigned characters
    disappear; line breaks and tabs become single spaces.
    """
    # Bounded before any work: a worker may send a megabyte, and four times the limit leaves room for
    # what disappears.
    head = _ESCAPE_SEQUENCE.sub("", text[: 4 * limit + 64])
    cleaned = " ".join("".join(_printable(character) for character in head).split())
    if len(cleaned) <= limit and len(text) <= 4 * limit + 64:
        return cleaned
    return f"{cleaned[:limit].rstrip()} ... (cut, {len(text):,} characters)"


def short_text(text: str, limit: int) -> str:
    """Make a name of at most `limit` characters for a table; a cut one ends in three dots."""
    cleaned = clean_text(text, limit)
    return cleaned if len(cleaned) <= limit else f"{cleaned[: limit - 3].rstrip()}..."


def clean_block(text: str, limit: int = 4000) -> str:
    """Do the same for a text of several lines: line breaks stay, each line is cleaned."""
    head = text[:limit]
    lines = [clean_text(line, limit).rstrip() for line in head.splitlines()]
    if len(text) > limit:
        lines.append(f"... (cut, {len(text):,} characters)")
    return "\n".join(lines)


def safe_document(text: str) -> str:
    """Make a whole document safe to print: no terminal sequence, no control or bidirectional character.

    Line breaks, tabs, spaces and the zero-width spaces of `escape_markdown` stay as they are.
    """
    return _CONTROL.sub("", _ESCAPE_SEQUENCE.sub("", text))


def escape_markdown(text: str, limit: int = DEFAULT_LIMIT) -> str:
    """Make text that GitHub shows as it is, in a paragraph or a table cell.

    No markup, HTML, table column, link, mention or issue reference comes out of it.
    """
    cleaned = clean_text(text, limit)
    inert = _AUTOLINK.sub(_ZERO_WIDTH, _MENTION.sub(lambda found: found.group() + _ZERO_WIDTH, cleaned))
    escaped = _LIST_ITEM.sub(r"\1\\\2", _MARKDOWN.sub(lambda found: f"\\{found.group()}", inert))
    return "".join(_ENTITIES.get(character, character) for character in escaped)


def code_span(text: str, limit: int = DEFAULT_LIMIT) -> str:
    """Make inline code, also inside a table cell: the fence is longer than any run of backticks inside."""
    cleaned = clean_text(text, limit)
    if not cleaned:
        return ""
    if "|" in cleaned:
        return f"<code>{escape_markdown(cleaned, len(cleaned))}</code>"
    ticks = "`" * (1 + max((len(run) for run in re.findall(r"`+", cleaned)), default=0))
    padding = " " if cleaned.startswith("`") or cleaned.endswith("`") else ""
    return f"{ticks}{padding}{cleaned}{padding}{ticks}"


def fence(text: str, limit: int = 4000) -> str:
    """Make a fenced block that the text cannot close."""
    block = clean_block(text, limit)
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", block)), default=0))
    return f"{ticks}text\n{block}\n{ticks}"


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    if character in "\n\r\t\v\f\x1c\x1d\x1e\x85" or unicodedata.category(character).startswith("Z"):
        return " "
    return ""
