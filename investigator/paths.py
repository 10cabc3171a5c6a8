"""Paths as people write them, refused before anything tries to open what no path can be."""

import os
from pathlib import Path

from investigator.errors import UsageError
from investigator.text import clean_text

MAX_PATH_BYTES = 4095
MAX_NAME_BYTES = 255


def user_path(text: str, what: str) -> Path:
    """Return the path that a user named, with ``~`` put in place.

    Args:
        text: as it was written.
        what: names the option or field in the error, such as ``--patch``.

    Raises:
        UsageError: it holds a NUL, is longer than a path can be, or names the home of nobody.
    """
    shown = f"{what} {clean_text(text, 80)!r}"
    if "\0" in text:
        raise UsageError(f"{shown} holds a NUL character, which no path can; remove it.")
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError as error:
        raise UsageError(f"{shown} holds characters that no file name has; remove them.") from error
    if len(encoded) > MAX_PATH_BYTES or any(len(part) > MAX_NAME_BYTES for part in encoded.split(b"/")):
        raise UsageError(f"{shown} is longer than a path can be; give the path of a file.")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{shown} begins with the home directory of a user who has none.") from error
