"""Names of operations in other people's figures to those of this tool."""

import re
from typing import Literal

from investigator import operations
from investigator.errors import UsageError

_SQLITE = (
    (r"\bselect", "select_range"),
    (r"\binsert", "insert_row"),
    (r"\bupdate", "update_row"),
    (r"\bdelete", "delete_row"),
)
_JS = (
    (r"stringify", "json_stringify"),
    (r"\bparse|json[ ._]?parse", "json_parse"),
    (r"\bsort", "sort_numbers"),
    (r"concat", "string_concat"),
    (r"regex|\bre\b", "regex_emails"),
    (r"sha-?256|\bhash", "sha256_8mb"),
    (r"\bmap\b|map[ ._]?fill", "map_fill"),
)


def operation_for(name: str) -> str | None:
    """The operation of this tool that measures what a file calls `name`; None where there is none."""
    known = operations.find(name)
    if known is not None:
        return known.name
    lower = name.lower()
    return next((op for pattern, op in (*_SQLITE, *_JS) if re.search(pattern, lower)), None)


def measured_by(name: str) -> tuple[Literal["sqlite", "js"], str]:
    """Command and operation that measure what a claim is about.

    Raises:
        UsageError: none does.
    """
    found = operation_for(name)
    if found is None:
        known = [o.name for o in (*operations.SQLITE, *operations.JS)]
        raise UsageError(
            f"no operation of this tool measures {name[:80]!r}; name one with --op: {', '.join(known)}."
        )
    operation = operations.find(found)
    family = operation.family if operation is not None else "sqlite"
    return ("js" if family == "js" else "sqlite"), found
