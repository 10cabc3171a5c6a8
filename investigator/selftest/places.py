"""What can be planted, and where the time of it belongs."""

from typing import Final, Literal

import msgspec

from investigator.attribution.layers import Layer
from investigator.spec import Command

Patch = Literal["sized", "o1"]

FOLDER: Final = "node_fixtures/planted"
VARIABLE: Final = "INVESTIGATE_PLANT_"
DIGITS: Final = 15
"""All sizes are written with so many digits: the environment of every process has the same length, because
its length alone moves the stack, and with it times."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One way of making an operation slower.

    A *sized* one has a variable that holds millionths of a unit of work for each event (a row, a step, a
    call); how many make so many percent of an operation is found by a pilot. Others are just there, and are
    judged on the layer only.
    """

    name: str
    layer: Layer | None
    """Where its time belongs; None for *nothing*, where no layer may be named."""
    text: str
    """What it does, for people."""
    pilots: dict[str, int] = {}
    """Operation to the millionths with which its pilot begins, near 40 % of the operation's time. Empty
    for unsized ones."""
    ops: tuple[str, ...] = ()
    """Operations of an unsized one."""
    variable: str | None = None
    """Name without `VARIABLE`."""
    millionths: int = 0
    """Of an unsized one with a variable."""
    node_flags: tuple[str, ...] = ()
    patch: Patch = "sized"
    """Patch of the addon; ``o1`` is compared with the addon as it is, the other with itself at size 0."""
    command: Command = "sqlite"

    @property
    def sized(self) -> bool:
        """Whether its size can be chosen."""
        return bool(self.pilots)

    @property
    def operations(self) -> tuple[str, ...]:
        """Operations that feel it."""
        return tuple(self.pilots) or self.ops


NOTHING: Final = Place(name="nothing", layer=None, text="the same build at size 0 (A/A)")

SIZED: Final = (
    Place(
        name="core_step",
        layer="native_core",
        text="arithmetic in every sqlite3_step",
        variable="STEP",
        pilots={"select_range": 20_000_000, "select_point": 50_000_000},
    ),
    Place(
        name="core_cipher",
        layer="native_core",
        text="arithmetic for every page that is deciphered",
        variable="CIPHER",
        pilots={"select_uncached": 300_000_000},
    ),
    Place(
        name="boundary_row",
        layer="boundary",
        text="properties set through V8's API for the rows",
        variable="ROW",
        pilots={"select_range": 8_000, "select_iterate": 15_000},
    ),
    Place(
        name="boundary_bind",
        layer="boundary",
        text="strings converted to UTF-8 for the bound parameters",
        variable="BIND",
        pilots={"bind_text_ascii_200": 3_800, "insert_row": 94_000},
    ),
    Place(
        name="engine_wrapper",
        layer="engine",
        text="JavaScript around every call of a statement",
        variable="WRAPPER",
        pilots={"select_range": 250_000_000, "insert_row": 800_000_000},
    ),
    Place(
        name="os_read",
        layer="os",
        text="pages read from an open file in sqlite3_step",
        variable="READ",
        pilots={"select_range": 75_000, "insert_row": 12_000_000},
    ),
)

UNSIZED: Final = (
    Place(
        name="engine_no_jit",
        layer="engine",
        text="V8's optimising tiers off",
        node_flags=("--no-opt", "--no-maglev", "--no-sparkplug"),
        ops=("sort_numbers", "rows_twin"),
        command="js",
    ),
    Place(
        name="gc_small_new_space",
        layer="gc",
        text="a new space of one megabyte",
        node_flags=("--max-semi-space-size=1",),
        ops=("json_parse", "string_concat"),
        command="js",
    ),
    Place(
        name="gc_external",
        layer="gc",
        text="50,000 bytes too much reported as external memory for every row",
        variable="EXTERNAL",
        millionths=50_000_000_000,
        ops=("select_range",),
    ),
    Place(
        name="core_o1",
        layer="native_core",
        text="addon and SQLite compiled with -O1",
        patch="o1",
        ops=("select_uncached", "select_range"),
    ),
    # The C library has no layer of its own: its time counts with its caller, here SQLite.
    Place(
        name="core_malloc",
        layer="native_core",
        text="a slow malloc: 200 allocations more for each one that SQLite makes",
        variable="MALLOC",
        millionths=200_000_000,
        ops=("bind_text_ascii_10k",),
    ),
)

PLACES: Final = (*SIZED, *UNSIZED)
VARIABLES: Final = tuple(place.variable for place in PLACES if place.variable is not None)


def variables(place: Place, millionths: int) -> dict[str, str]:
    """Environment variables of a process in which `place` has this size, and all others have none.

    The names are the same in every environment, and all values have the same length.
    """
    return {
        f"{VARIABLE}{name}": f"{millionths if name == place.variable else 0:0{DIGITS}d}" for name in VARIABLES
    }
