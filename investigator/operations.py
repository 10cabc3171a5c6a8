"""The catalogue of built-in operations: names, families and files. Names are part of the output format."""

import difflib
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from investigator.errors import UsageError
from investigator.spec import Command

Family = Literal["sqlite", "js", "boundary", "core", "host"]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One named timed loop with fixed parameters."""

    name: str
    family: Family
    module: str
    """File of the operation, relative to the root of the packaged folders, e.g.
    ``sqlcipher_bench/operations/select.mjs``; for a user's workload the name it is mounted under."""
    workload: str | None = None
    """Key in the module's ``workloads``; None takes the module's own ``setup`` and ``run``."""
    essential: bool = False
    cold_calls: int = 1
    """Calls of the cold pass, fixed here so that it means the same everywhere."""
    warmup_factor: int = 1
    """How many times the usual warm-up time it takes until every process runs optimised code."""
    least_warmup_calls: int = 0
    """The same as a number of calls. Long calls tier up late: after 80 calls of string_concat 3 of 8
    processes ran at half speed, after 480 none."""
    group: str = ""
    """Operations of one group share a process; a user's workload has a process of its own."""


def _sqlite(name: str, file: str, cold_calls: int, *, essential: bool = False) -> Operation:
    return Operation(
        name=name,
        family="sqlite",
        module=f"sqlcipher_bench/operations/{file}.mjs",
        workload=None if file == name else name,
        essential=essential,
        cold_calls=cold_calls,
        group="sqlite",
    )


def _js(name: str, cold_calls: int = 1, *, essential: bool = True, least_warmup_calls: int = 0) -> Operation:
    return Operation(
        name=name,
        family="js",
        module=f"node_fixtures/js_controls/{name}.mjs",
        essential=essential,
        cold_calls=cold_calls,
        least_warmup_calls=least_warmup_calls,
        group="js",
    )


# Cold passes: as many calls as the published suites time, where that stays within some 20 ms.
SQLITE = (
    _sqlite("open_key", "open_key", 1, essential=True),
    _sqlite("select_point", "select", 1_000, essential=True),
    _sqlite("select_range", "select", 100, essential=True),
    _sqlite("select_range_raw", "select", 100),
    _sqlite("select_iterate", "select", 100, essential=True),
    _sqlite("select_uncached", "select", 20),
    _sqlite("select_blob_3k", "select", 1_000, essential=True),
    _sqlite("select_blob_30k", "select", 100),
    _sqlite("select_blob_100k", "select", 100, essential=True),
    _sqlite("bind_text_ascii_20", "bind_text", 1_000, essential=True),
    _sqlite("bind_text_ascii_200", "bind_text", 1_000),
    _sqlite("bind_text_ascii_2k", "bind_text", 1_000),
    _sqlite("bind_text_ascii_10k", "bind_text", 1_000, essential=True),
    _sqlite("bind_text_latin1_2k", "bind_text", 1_000),
    _sqlite("bind_text_twobyte_2k", "bind_text", 1_000, essential=True),
    _sqlite("select_udf", "select", 100),
    _sqlite("insert_row", "write", 100, essential=True),
    _sqlite("insert_batch", "write", 1, essential=True),
    _sqlite("update_row", "write", 100, essential=True),
    _sqlite("delete_row", "write", 100, essential=True),
)
"""Operations on the encrypted mailbox, in the order of the tables."""

JS = (
    _js("json_parse"),
    _js("json_stringify"),
    _js("sort_numbers"),
    _js("string_concat", 10, least_warmup_calls=480),
    _js("regex_emails"),
    _js("sha256_8mb"),
    _js("map_fill"),
    _js("rows_twin", 100, essential=False),
)
"""Pure JavaScript: the seven workloads of the published comparison, and the twin of ``select_range``."""

CORE = tuple(
    Operation(
        name=f"core.{operation.name}",
        family="core",
        module="sqlcipher_bench/operations/core.mjs",
        workload=f"core.{operation.name}",
        cold_calls=operation.cold_calls,
        group="twins",
    )
    for operation in SQLITE
)
"""The SQL of each sqlite operation in a C loop: a twin without JavaScript, for the explain phase."""

GRID_ROWS = (1, 50, 200)
GRID_COLUMNS = (1, 4, 12)
"""Rows and columns of the row primitives: ``row_bulk_50x4`` makes 50 rows of 4 columns."""


def _primitives() -> tuple[str, ...]:
    """Names of the primitives, without a dialect."""
    lengths = ("20", "200", "2k", "10k")
    return (
        "call_noop",
        "call_args",
        *(
            f"{kind}_{encoding}_{length}"
            for kind in ("utf8_value", "string_new")
            for encoding in ("ascii", "latin1", "twobyte")
            for length in lengths
        ),
        *(
            f"row_{way}_{rows}x{columns}"
            for way in ("set", "bulk", "template")
            for rows in GRID_ROWS
            for columns in GRID_COLUMNS
        ),
        *(f"array_of_rows_{rows}" for rows in (50, 200, 1000)),
        *(f"buffer_copy_{size}" for size in ("3k", "30k", "100k")),
        "unwrap",
        "callback_js",
    )


def _boundary(name: str, file: str, cold_calls: int) -> Operation:
    return Operation(
        name=name,
        family="boundary",
        module=f"node_fixtures/boundary_probe/{file}.mjs",
        workload=name,
        cold_calls=cold_calls,
        group="twins",
    )


REPLAYS = tuple(
    _boundary(f"boundary.{operation.name}", "replay", operation.cold_calls)
    for operation in SQLITE
    if operation.name != "open_key"
)
"""The calls of each sqlite operation without SQLite: what the addon and Node do for them."""

TOGETHER = tuple(
    msgspec.structs.replace(
        replay,
        name=replay.name.replace("boundary.", "together."),
        workload=replay.name.replace("boundary.", "together."),
        module="node_fixtures/boundary_probe/together.mjs",
    )
    for replay in REPLAYS
)
"""The same with the loop in C called in the place of SQLite's work."""

PRIMITIVES = tuple(
    _boundary(dialect + name, "primitives", 100) for dialect in ("", "napi.") for name in _primitives()
)
"""What crossing costs, one step at a time: in V8's API (``row_bulk_50x4``) and in Node-API
(``napi.row_bulk_50x4``)."""

CATALOGUE = (*SQLITE, *JS, *REPLAYS, *TOGETHER, *PRIMITIVES, *CORE)

BY_NAME_ONLY: frozenset[Family] = frozenset({"boundary", "core"})
"""Families that explain others: never part of ``all`` or ``essential``."""

_SIZE = re.compile(
    r"(?P<series>[a-z0-9_.]*[a-z])_(?P<size>[0-9]{1,7})(?:(?P<thousands>k)|x(?P<columns>[0-9]{1,4}))?"
)

_BY_NAME = {operation.name: operation for operation in CATALOGUE}


def find(name: str) -> Operation | None:
    """Return the built-in operation of that name, None where there is none."""
    return _BY_NAME.get(name)


def offered(command: Command) -> tuple[Operation, ...]:
    """Operations that ``--ops`` of a command may name: without an addon none of its calls can be replayed."""
    return CATALOGUE if command == "sqlite" else (*JS, *PRIMITIVES)


def choose(names: Sequence[str], offered: Sequence[Operation]) -> tuple[Operation, ...]:
    """Return the operations that ``--ops`` names, in the order of `offered`, each once.

    `names` holds operations, ``essential``, ``all`` or the name of a series (``row_bulk``: all of its sizes)
    in any mixture.

    Raises:
        UsageError: a name that is none of these, with the nearest ones.
    """
    chosen = {name for wanted in names for name in _expand(wanted, offered)}
    return tuple(operation for operation in offered if operation.name in chosen)


class Sized(msgspec.Struct, frozen=True, kw_only=True):
    """What the name of an operation says about its size."""

    series: str
    """The name without its size: ``row_bulk``, ``bind_text_ascii``."""
    size: int
    """Rows, characters or bytes."""
    columns: int | None = None
    """Of each row, in a grid of rows and columns; None where there is one size only."""


def sized(name: str) -> Sized | None:
    """Read ``row_bulk_50x4``, ``utf8_value_ascii_2k``, ``select_blob_100k``; None where there is no size."""
    found = _SIZE.fullmatch(name)
    if found is None:
        return None
    columns = found.group("columns")
    return Sized(
        series=found.group("series"),
        size=int(found.group("size")) * (1000 if found.group("thousands") else 1),
        columns=int(columns) if columns else None,
    )


def _expand(wanted: str, offered: Sequence[Operation]) -> list[str]:
    known = [operation.name for operation in offered]
    series = [name for name in known if (size := sized(name)) is not None and size.series == wanted]
    if len(series) > 1:
        return series
    if wanted == "all":
        return [operation.name for operation in offered if operation.family not in BY_NAME_ONLY]
    if wanted == "essential":
        return [operation.name for operation in offered if operation.essential]
    if wanted in known:
        return [wanted]
    usual = [operation.name for operation in offered if operation.family not in BY_NAME_ONLY]
    if wanted in _BY_NAME:
        raise UsageError(
            f"{wanted} works on an addon, which this command does not have; use `investigate sqlite`, or "
            f"here all, essential, or {', '.join(usual)}."
        )
    # Who writes no dot means none of the twins, which have one.
    near = difflib.get_close_matches(wanted[:80], known if "." in wanted else usual, n=3)
    raise UsageError(
        f"there is no operation {wanted[:80]!r} in this command; use all, essential, or "
        f"{', '.join(near or usual)}."
    )
