"""Which trials there are, and which of them share a screen."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from investigator.errors import UsageError
from investigator.selftest.places import NOTHING, PLACES, Patch, Place
from investigator.spec import Command, EngineChoice

Subset = Literal["ci", "full"]
SUBSETS: Final[tuple[Subset, ...]] = ("ci", "full")
SIZES: Final = (3.0, 5.0, 10.0, 25.0, 100.0)
"""In percent of the operation's own time."""
SEEDS: Final = 2
TOGETHER: Final = 11
"""Trials of a screen at most: more would stretch a round over too much of the session's drift."""
MAX_SIZE: Final = 1000.0

_CI_PLACES: Final = ("core_step", "boundary_row", "engine_wrapper", "os_read", "nothing")
_CI_OP: Final = "select_range"
_CI_SIZES: Final = (25.0,)


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One planted thing in one operation, measured once."""

    place: str
    op: str
    size_pct: float | None
    """What is planted, in percent of the operation's time; None where that is not chosen."""
    seed: int

    @property
    def label(self) -> str:
        """Short name of its environment, unique in a screen."""
        return self.place if self.size_pct is None else f"{self.place}-{self.size_pct:g}"


class Screen(msgspec.Struct, frozen=True, kw_only=True):
    """Trials on one operation that are measured against one baseline, in the same rounds."""

    number: int
    op: str
    seed: int
    command: Command
    patch: Patch
    trials: tuple[Trial, ...]

    @property
    def name(self) -> str:
        """Name of its folder."""
        return f"screen-{self.number:03d}-{self.op}"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What `investigate selftest` is asked for. The addon is fixed: the patches are made for one release."""

    subset: Subset = "full"
    places: tuple[str, ...] = ()
    """Names; empty takes all of the subset."""
    sizes: tuple[float, ...] = ()
    """In percent; empty takes those of the subset."""
    ops: tuple[str, ...] = ()
    """Operations; empty takes all that the places can be planted in."""
    seeds: int | None = None
    """Repetitions of every trial; None takes that of the subset."""
    node: str = "24.11.1"
    engine: EngineChoice = "auto"
    base_image: str | None = None
    explain: bool = True
    minutes: float | None = None
    """No explanation begins after so many minutes of this session; None sets no limit. What remains is told
    as not explained, and resuming explains it."""


def checked(options: Options) -> Options:
    """`options` if every name and number is known.

    Raises:
        UsageError: naming the first that is not.
    """
    known = [place.name for place in (*PLACES, NOTHING)]
    for name in options.places:
        if name not in known:
            raise UsageError(f"--places holds {name[:80]!r}; take {', '.join(known)}.")
    for size in options.sizes:
        if not 0.5 <= size <= MAX_SIZE:
            raise UsageError(f"--sizes holds {size:g}; a size lies between 0.5 and {MAX_SIZE:g} percent.")
    ops = {op for place in PLACES for op in place.operations}
    for op in options.ops:
        if op not in ops:
            raise UsageError(
                f"--ops holds {op[:80]!r}; slowdowns can be planted in {', '.join(sorted(ops))}."
            )
    if options.seeds is not None and not 1 <= options.seeds <= 20:
        raise UsageError(f"--seeds is {options.seeds}; it must be between 1 and 20.")
    if not any(screen.trials for screen in screens(options)):
        raise UsageError("no trial is left; name other --places, --sizes or --ops.")
    return options


def screens(options: Options) -> tuple[Screen, ...]:
    """All screens as they are measured: every operation once, then again with the next seed."""
    ci = options.subset == "ci"
    wanted = options.places or (_CI_PLACES if ci else tuple(place.name for place in (*PLACES, NOTHING)))
    sizes = options.sizes or (_CI_SIZES if ci else SIZES)
    ops = options.ops or ((_CI_OP,) if ci and not options.places else ())
    seeds = options.seeds or (1 if ci else SEEDS)
    places = [place for place in PLACES if place.name in wanted]
    if not places and NOTHING.name in wanted:
        places = [NOTHING]
    groups = [
        (seed, op, command, patch, part)
        for seed in range(1, seeds + 1)
        for (op, command, patch), trials in _by_operation(places, sizes, ops, seed)
        for part in _parts(trials)
    ]
    nothing = NOTHING.name in wanted
    return tuple(
        Screen(
            number=number,
            op=op,
            seed=seed,
            command=command,
            patch=patch,
            trials=(*part, *_nothing(op, seed, part, wanted=nothing)),
        )
        for number, (seed, op, command, patch, part) in enumerate(groups, start=1)
    )


def _parts(trials: Sequence[Trial]) -> Iterator[Sequence[Trial]]:
    for start in range(0, len(trials), TOGETHER - 1):
        yield trials[start : start + TOGETHER - 1]


def _nothing(op: str, seed: int, others: Sequence[Trial], *, wanted: bool) -> tuple[Trial, ...]:
    """The A/A trial of a screen: one more candidate, in the same rounds as the others."""
    if not wanted or any(trial.place == NOTHING.name for trial in others):
        return ()
    return (Trial(place=NOTHING.name, op=op, size_pct=None, seed=seed),)


def _by_operation(
    places: Sequence[Place], sizes: Sequence[float], ops: Sequence[str], seed: int
) -> Iterator[tuple[tuple[str, Command, Patch], list[Trial]]]:
    found: dict[tuple[str, Command, Patch], list[Trial]] = {}
    for place in places:
        for op in place.operations or ops or (_CI_OP,):
            if not ops or op in ops:
                row: list[float | None] = [*sizes] if place.sized else [None]
                found.setdefault((op, place.command, place.patch), []).extend(
                    Trial(place=place.name, op=op, size_pct=size, seed=seed) for size in row
                )
    yield from found.items()
