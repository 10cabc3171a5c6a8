"""Names from a run folder as one word that no other format can misread.

A name may be anything in a folder somebody else made. Percent-encoding keeps different names different: what
only deletes characters could merge two environments into one.
"""

from urllib.parse import quote

from investigator.text import clean_text

_PLAIN = ":+@,~"
"""Beside letters, digits, ``_.-``: what identifiers such as ``fix:node24.11.1+bsm12.11.1`` are made of."""
LONGEST = 300


def word(text: str) -> str:
    """`text` without white space, quotes, backslashes, slashes, equals signs or control characters."""
    encoded = quote(text[:LONGEST], safe=_PLAIN, errors="replace")
    return encoded if len(text) <= LONGEST else f"{encoded}...{len(text)}"


def printable(text: str) -> str:
    """`text` as it is where it can be shown as one line, else as a `word`: still different from any other."""
    return text if text == clean_text(text, LONGEST) else word(text)
