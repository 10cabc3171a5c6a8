"""Reader of the JSON files of forwardemail/sqlite-benchmarks: one file a Node version, one figure a cell.

The suite's published script times 1,000 selects, 100 inserts, 100 updates and one delete, each in one stretch
right after the database was filled, without warm-up, one configuration after the other in one process; it
writes the file at the end. Rates are rounded to whole operations per second, times are in milliseconds.
"""

import datetime as dt
import re
from collections.abc import Iterator, Mapping

from investigator.audit.figures import NAME_LIMIT, Figure, Notes, Row, Sheet, Unit, usable, version_name
from investigator.text import short_text

CALLS: Mapping[str, int] = {"insert": 100, "select": 1_000, "update": 100, "delete": 1}
"""Calls behind one figure, by the suite's published script."""
_RATE = re.compile(r"([a-z][a-z0-9_]{0,40})_ops_per_sec")
_TIMES_MS = {"setup_time": "setup", "vacuum_time": "vacuum"}
_MAX_SETTINGS = 200
SUITE_ROW = "the file's own fields"
"""Place of a row; the checks say which field."""


def is_suite(data: object) -> bool:
    """Whether decoded JSON has the shape of these files."""
    return isinstance(data, dict) and isinstance(data.get("results"), dict) and "node_version" in data


def read_suite(data: Mapping[str, object], name: str, notes: Notes) -> Sheet:
    """Read one file; what is no usable number is left out and noted."""
    version = version_name(str(data.get("node_version"))[:400])
    results = data["results"]
    settings = list(results.items())[:_MAX_SETTINGS] if isinstance(results, dict) else []
    if isinstance(results, dict) and len(results) > _MAX_SETTINGS:
        notes.add(f"{len(results):,} configurations; only the first {_MAX_SETTINGS} are read", "results")
    library = next((_library(body) for _, body in settings), None)
    figures = [
        figure for key, body in settings for figure in _configuration(version, key, body, library, notes)
    ]
    row = Row(
        version=version,
        place=notes.place(SUITE_ROW),
        measured_at=_time(data, notes),
        platform=_platform(data),
        addon=library,
    )
    return Sheet(
        name=name,
        format="sqlite-benchmarks",
        figures=tuple(figures),
        rows=(row,),
        remarks=notes.remarks(),
    )


def _configuration(
    version: str, key: str, body: object, library: str | None, notes: Notes
) -> Iterator[Figure]:
    setting = short_text(key, NAME_LIMIT)
    where = f"results.{setting}"
    if not isinstance(body, dict):
        notes.add("is no configuration and was left out", where)
        return
    if body.get("error"):
        notes.add(f"failed: {short_text(str(body['error'])[:400], 100)}", f"{where}.error")
        return
    own = _library(body)
    # Figures of another library, such as the unencrypted one, must not pass for the best of this one.
    suffix = "" if own == library or own is None else f" ({own})"
    for field, value in body.items():
        op, unit, scale = _meaning(field)
        if op is None or (op == "vacuum" and value == 0):  # 0: VACUUM was not timed
            continue
        number = usable(value)
        if number is None:
            notes.add("is no positive number and was left out", f"{where}.{field}")
            continue
        yield Figure(
            version=version,
            op=op + suffix,
            setting=setting,
            value=number * scale,
            unit=unit,
            place=notes.place(f"{where}.{field}"),
        )


def _meaning(field: str) -> tuple[str | None, Unit, float]:
    if field in _TIMES_MS:
        return _TIMES_MS[field], "time", 1e-3
    found = _RATE.fullmatch(field)
    return (None, "unknown", 1.0) if found is None else (found.group(1), "rate", 1.0)


def _library(body: object) -> str | None:
    name = body.get("library") if isinstance(body, dict) else None
    return short_text(name, NAME_LIMIT) if isinstance(name, str) and name.strip() else None


def _platform(data: Mapping[str, object]) -> str | None:
    parts = [data.get(key) for key in ("platform", "arch")]
    return " ".join(short_text(part, 20) for part in parts if isinstance(part, str)) or None


def _time(data: Mapping[str, object], notes: Notes) -> dt.datetime | None:
    text = data.get("timestamp")
    if text is None:
        return None
    try:
        time = dt.datetime.fromisoformat(str(text)[:40])
        return (time if time.tzinfo else time.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        notes.add("is no time", "timestamp")
        return None
