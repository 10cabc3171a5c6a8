"""What may leave the machine: texts without places, credentials, or anything that a tracker acts on."""

import re

from investigator.text import clean_text, code_span, escape_markdown, fence

LIMIT = 1000

# Any user's home, not only this one's: a run may have been recorded elsewhere. Case as the systems have it.
_HOME = re.compile(
    r"(?:/home|/Users|/export/home)/[^/\s:'\",;)\]]+|/root(?=/|\b)|[A-Za-z]:\\Users\\[^\\\s:'\"]+"
)
_TEMPORARY = re.compile(r"(?:/private)?/(?:tmp|var/folders|var/tmp)/[^\s:'\",;)\]]+")
_LANGUAGES = {"mjs": "js", "js": "js", "cc": "cpp", "json": "json", "sh": "sh", "gyp": "python"}
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")


def without_places(text: str) -> str:
    """Replace home and temporary directories, and drop credentials from addresses."""
    text = _CREDENTIALS.sub("", text)
    return _TEMPORARY.sub("TMP", _HOME.sub("~", text))


def told(text: str, limit: int = LIMIT) -> str:
    """Markdown of a text from outside: one line, no markup, no mention, no reference, no place."""
    return escape_markdown(without_places(clean_text(text, limit)), limit)


def code(text: str, limit: int = LIMIT) -> str:
    """The same as inline code, also inside a table cell."""
    return code_span(without_places(clean_text(text, limit)), limit)


def block(text: str, limit: int = 8000) -> str:
    """The same as a fenced block of several lines."""
    return fence(without_places(text[: 4 * limit]), limit)


def source(name: str, text: str) -> str:
    """A text to be copied out again: a fenced block that keeps its indentation, in the language of `name`."""
    lines = without_places(text).rstrip("\n").split("\n")
    kept = "\n".join("".join(c for c in line if c == "\t" or c.isprintable()).rstrip() for line in lines)
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", kept)), default=0))
    ending = name.rpartition(".")[2]
    return f"{ticks}{_LANGUAGES.get(ending, 'text')}\n{kept}\n{ticks}"


def plain(text: str, limit: int = 200) -> str:
    """The same for a title, which is no Markdown: nothing in it is a mention or a reference."""
    cleaned = without_places(clean_text(text, limit))
    return re.sub(r"@(?=[A-Za-z0-9])|#(?=[0-9])", lambda found: f"{found.group()}\u200b", cleaned)
