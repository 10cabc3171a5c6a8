"""Values for the JSON of a command, out of a run that anybody may have made."""

from investigator import units
from investigator.text import clean_text

_LIMIT = 600


def plain(value: object) -> object:
    """`value` (builtin types) with bounded, printable texts, and null for what is no finite number."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, str):
        return clean_text(value, _LIMIT)
    return units.finite(value) if isinstance(value, float) else value
