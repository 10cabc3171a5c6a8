"""Passes to processes: one sample for each fresh process, which is what other tools take for independent.

Passes of one process share its code layout, heap and luck; a t-test or Mann-Whitney test that is given them
as samples finds differences between two copies of the same binary.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import msgspec
import numpy as np

from investigator.arms import arms
from investigator.errors import StoredFileError
from investigator.stored_run import StoredRun


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """The warm passes of one operation in one fresh process."""

    round: int
    op: str
    family: str
    environment: str
    twin: bool
    """Whether it is its environment's second process of the round."""
    ns_per_op: float
    """The process value of the verdicts: fastest pass without its GC pauses, lap by lap, plus the
    mean GC pause; per call."""
    cpu_ns_per_op: float
    """CPU time of all threads per call, reduced in the same way."""
    calls: int
    """Timed calls of all passes together."""
    wall_ns: int
    """Wall time of all passes together."""


def processes(run: StoredRun) -> tuple[Process, ...]:
    """Every process with a usable value, in the order of operations, environments, rounds.

    Raises:
        StoredFileError: there is none.
    """
    table = run.passes
    warm = table[(table["phase"] == "pass") & (table["round"] >= 1)]
    values = arms(table)
    rounds = [int(number) for number in np.unique(table["round"].to_numpy()) if number >= 1]
    totals = warm.groupby(["op", "environment", "twin", "round"], sort=False, observed=True)
    sums = totals.agg({"calls": "sum", "wall_ns": "sum", "family": "first"})
    found = []
    for key, calls, wall_ns, family in sums.itertuples(name=None):
        op, environment, twin, number = cast("tuple[str, str, bool, int]", key)
        arm, place = values[op, "warm", environment, bool(twin)], rounds.index(int(number))
        if np.isfinite(arm.wall[place]) and np.isfinite(arm.cpu[place]):
            found.append(
                Process(
                    round=int(number),
                    op=op,
                    family=str(family),
                    environment=environment,
                    twin=bool(twin),
                    ns_per_op=float(arm.wall[place]),
                    cpu_ns_per_op=float(arm.cpu[place]),
                    calls=int(calls),
                    wall_ns=int(wall_ns),
                )
            )
    if not found:
        raise StoredFileError(f"{run.folder.path} has no measured process to export.")
    return tuple(_ordered(run, found))


def _ordered(run: StoredRun, found: Iterable[Process]) -> Iterator[Process]:
    ops = _places(c.op for c in (*run.summary.comparisons, *run.summary.other_comparisons))
    environments = _places(e.id for e in run.summary.environments)
    yield from sorted(
        found,
        key=lambda p: (
            ops.get(p.op, len(ops)),
            p.op,
            environments.get(p.environment, len(environments)),
            p.environment,
            p.round,
            p.twin,
        ),
    )


def _places(names: Iterable[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(dict.fromkeys(names))}


def of_environment(found: Sequence[Process], environment: str) -> tuple[Process, ...]:
    """Those of one environment, its twins included."""
    return tuple(process for process in found if process.environment == environment)
