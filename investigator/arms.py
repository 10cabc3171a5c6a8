"""The table of samples to process values: one number a process, arranged by arm and round."""

from collections.abc import Mapping
from typing import Literal, cast

import msgspec
import numpy as np
import pandas as pd

from investigator.stats.process import (
    FloatArray,
    IntArray,
    cpu_values,
    fastest_values,
    mean_values,
    process_values,
    typical_values,
)

Phase = Literal["warm", "cold"]
_PHASE_OF: Mapping[str, Phase] = {"pass": "warm", "cold": "cold"}


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """The processes of one operation in one arm; arrays over all rounds of the run, NaN for missing."""

    op: str
    wall: FloatArray
    cpu: FloatArray
    fastest: FloatArray
    typical: FloatArray
    gc: FloatArray
    passes: int
    disturbed: int


ArmKey = tuple[str, Phase, str, bool]
"""Operation, phase, environment, twin."""
Arms = Mapping[ArmKey, Arm]


def arms(samples: pd.DataFrame) -> Arms:
    """Process values by arm, from a table with the columns of `samples.Sample`.

    Rows of round 0 (the calibration) are left out. Passes of an invocation that was repeated in the same
    round join those of the first.
    """
    rows = samples[samples["round"] >= 1]
    if rows.empty:
        return {}
    keys = ["op", "phase", "environment", "twin", "round"]
    group: IntArray = np.asarray(rows.groupby(keys, sort=False, observed=True).ngroup(), dtype=np.int64)
    _, first = np.unique(group, return_index=True)
    table = rows.iloc[first][keys].reset_index(drop=True)
    count = len(table)
    wall, gc_pause, calls = (rows[name].to_numpy(np.float64) for name in ("wall_ns", "gc_pause_ns", "calls"))
    cpu = (rows["cpu_user_ns"] + rows["cpu_system_ns"]).to_numpy(np.float64)
    lap = rows["lap"].to_numpy(np.int64)
    table["wall"] = process_values(group, count, wall_ns=wall, gc_pause_ns=gc_pause, calls=calls, lap=lap)
    table["cpu"] = cpu_values(
        group, count, wall_ns=wall, cpu_ns=cpu, gc_pause_ns=gc_pause, calls=calls, lap=lap
    )
    table["fastest"] = fastest_values(group, count, wall_ns=wall, gc_pause_ns=gc_pause, calls=calls, lap=lap)
    table["typical"] = typical_values(group, count, wall_ns=wall, gc_pause_ns=gc_pause, calls=calls, lap=lap)
    table["gc"] = mean_values(group, count, total_ns=gc_pause, calls=calls)
    table["passes"] = np.bincount(group, minlength=count)
    table["disturbed"] = np.bincount(group, weights=rows["disturbed"].to_numpy(np.float64), minlength=count)
    rounds = np.unique(table["round"].to_numpy())
    found: dict[ArmKey, Arm] = {}
    for key, part in table.groupby(keys[:-1], sort=False, observed=True):
        op, phase, environment, twin = cast("tuple[str, str, str, bool]", key)
        if phase in _PHASE_OF:
            found[op, _PHASE_OF[phase], environment, bool(twin)] = _arm(op, part, rounds)
    return found


def _arm(op: str, part: pd.DataFrame, rounds: np.ndarray) -> Arm:
    place = np.searchsorted(rounds, part["round"].to_numpy())

    def spread_out(column: str) -> FloatArray:
        values: FloatArray = np.full(len(rounds), np.nan)
        values[place] = part[column].to_numpy(np.float64)
        return values

    return Arm(
        op=op,
        wall=spread_out("wall"),
        cpu=spread_out("cpu"),
        fastest=spread_out("fastest"),
        typical=spread_out("typical"),
        gc=spread_out("gc"),
        passes=int(part["passes"].sum()),
        disturbed=int(part["disturbed"].sum()),
    )


def arms_of(table: Arms, op: str, phase: Phase, environment: str) -> list[Arm]:
    """One arm of a candidate, two of the baseline, fewer where they failed."""
    return [table[key] for twin in (False, True) if (key := (op, phase, environment, twin)) in table]
