"""Events to rows, the marks of disturbed passes, and the CSV file."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from investigator.errors import StoredFileError
from investigator.plan import Invocation
from investigator.protocol import Begin, Done, Event, Gc, Pass
from investigator.samples import (
    COLUMN_TYPES,
    Columns,
    Sample,
    clean_passes,
    columns_from_events,
    disturbed,
    from_csv,
    joined,
    to_csv,
)
from tests.unit.stored_synthetic import frame_of

INVOCATION = Invocation(
    round=3,
    position=2,
    environment="node24.11.1+bsm12.11.1",
    twin=False,
    group="sqlite",
    operations=("select_point", "insert_row"),
)
FAMILIES = {"select_point": "sqlite", "insert_row": "sqlite", "delete_row": "sqlite"}
MS = 1_000_000


def timed(
    op: str = "select_point",
    *,
    index: int = 0,
    wall_ms: float = 40.0,
    cpu_ms: float = 40.0,
    phase: str = "pass",
    gc: tuple[Gc, ...] = (),
    switches: int = 0,
) -> Pass:
    return Pass(
        op=op,
        phase="cold" if phase == "cold" else "pass",
        index=index,
        calls=1000,
        start_ns=index * 50 * MS,
        wall_ns=int(wall_ms * MS),
        cpu_user_us=int(cpu_ms * 900),
        cpu_system_us=int(cpu_ms * 100),
        gc=list(gc),
        involuntary_switches=switches,
        voluntary_switches=1,
        rss_bytes=50_000_000,
        heap_used_bytes=5_000_000,
        external_bytes=1_000_000,
        fold=7,
    )


def columns(events: Sequence[Event], steal_pct: float = 0.0) -> Columns:
    return columns_from_events(INVOCATION, FAMILIES, events, steal_pct)


def marks(passes: Sequence[Event], steal_pct: float = 0.0) -> list[bool]:
    return [bool(mark) for mark in joined([columns(passes, steal_pct)])["disturbed"]]


def test_only_passes_become_rows_and_units_are_nanoseconds() -> None:
    gc = (
        Gc(kind="scavenge", count=3, pause_ns=900),
        Gc(kind="minor_mark_sweep", count=1, pause_ns=100),
        Gc(kind="mark_sweep_compact", count=2, pause_ns=5000),
        Gc(kind="weak", count=4, pause_ns=10),
    )
    events: list[Event] = [
        Begin(op="select_point", stage="pass", index=0),
        timed(gc=gc, cpu_ms=40.0),
        timed(phase="cold", wall_ms=1.0, cpu_ms=1.0),
        Done(wall_ns=1),
    ]
    warm, cold = joined([columns(events, 0.5)]).itertuples()
    assert (warm.round, warm.position, warm.environment, warm.twin) == (3, 2, "node24.11.1+bsm12.11.1", False)
    assert (warm.cpu_user_ns, warm.cpu_system_ns) == (36 * MS, 4 * MS)
    assert (warm.gc_pause_ns, warm.gc_count) == (6010, 10)
    assert (warm.gc_scavenge_count, warm.gc_mark_sweep_count) == (4, 2)
    assert (warm.phase, cold.phase, cold.wall_ns, warm.steal_pct) == ("pass", "cold", MS, 0.5)


def test_no_events_no_rows() -> None:
    assert len(joined([columns([])])) == len(joined([])) == 0


def test_wall_beyond_cpu_marks_a_pass() -> None:
    assert marks([timed(index=0), timed(index=1, wall_ms=40.7), timed(index=2, wall_ms=41.1)]) == [
        False,
        False,
        True,
    ]


def test_cpu_beyond_wall_is_the_collector_not_a_disturbance() -> None:
    assert marks([timed(cpu_ms=70.0), timed(cpu_ms=40.0)]) == [False, False]


def test_writes_that_wait_every_time_are_not_disturbed_by_themselves() -> None:
    waits = [timed("insert_row", index=i, wall_ms=60.0 + i * 0.1, cpu_ms=40.0) for i in range(5)]
    slow = timed("insert_row", index=5, wall_ms=90.0, cpu_ms=40.0)
    assert marks([*waits, slow]) == [False] * 5 + [True]


def test_an_operation_that_can_run_without_waiting_is_held_to_that() -> None:
    passes = [timed(index=0)] + [timed(index=i, wall_ms=60.0) for i in range(1, 6)]
    assert marks(passes) == [False] + [True] * 5


def test_a_cold_pass_shorter_than_a_switch_is_not_marked() -> None:
    assert marks([timed(phase="cold", wall_ms=0.2, cpu_ms=0.05)]) == [False]


def test_switches_count_by_rate_but_not_by_ones() -> None:
    assert marks([timed(switches=3), timed(switches=5), timed(switches=2, wall_ms=1.0, cpu_ms=1.0)]) == [
        False,
        True,
        False,
    ]


def test_steal_marks_the_whole_invocation() -> None:
    assert marks([timed(), timed(index=1)], steal_pct=2.5) == [True, True]


def test_a_process_that_waited_throughout_is_marked_once_others_are_known() -> None:
    calm = [timed(index=i) for i in range(6)]
    held_up = [timed(index=i, wall_ms=60.0) for i in range(6)]
    assert not any(marks(held_up))
    together = joined([columns(calm), columns(held_up)])
    assert together["disturbed"].tolist() == [False] * 6 + [True] * 6


def test_passes_without_any_cpu_time_do_not_break_the_rule() -> None:
    assert marks([timed(cpu_ms=0.0), timed(index=1, cpu_ms=0.0)]) == [True, True]
    nothing = np.empty(0)
    assert (
        disturbed(
            op=np.empty(0, dtype=np.str_),
            cold=np.empty(0, dtype=np.bool_),
            wall_ns=nothing,
            cpu_ns=nothing,
            involuntary_switches=nothing,
            steal_pct=nothing,
        ).tolist()
        == []
    )


def test_clean_passes_are_counted_per_operation() -> None:
    held_up = timed("delete_row", switches=9)
    events = [timed(phase="cold"), timed(), timed(index=1, wall_ms=90.0), timed("insert_row"), held_up]
    found = clean_passes(columns(events))
    assert found == {"select_point": 1, "insert_row": 1, "delete_row": 0}
    assert clean_passes(columns([])) == {}


# -- the CSV file -----------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12) | st.sampled_from(
    ["null", "NaN", "None", "1", "True", 'a"b', "a,b", "=1+1"]
)
ROWS = st.builds(
    Sample,
    **{
        name: {
            "int64": st.integers(0, 2**53),
            "float64": st.floats(0, 100),
            "bool": st.booleans(),
            "str": TEXTS,
        }[kind]
        for name, kind in COLUMN_TYPES.items()
    },
)


@given(st.lists(ROWS, max_size=5))
def test_csv_round_trip(rows: list[Sample]) -> None:
    frame = frame_of(rows)
    text = io.StringIO()
    to_csv(frame, text)
    pd.testing.assert_frame_equal(from_csv(io.StringIO(text.getvalue())), frame)


def test_one_plain_pandas_line_reads_the_file(tmp_path: Path) -> None:
    frame = joined([columns([timed()])])
    to_csv(frame, tmp_path / "measurements.csv")
    plain = pd.read_csv(tmp_path / "measurements.csv")
    assert list(plain.columns) == list(COLUMN_TYPES)
    assert plain["op"].tolist() == ["select_point"]
    assert plain["wall_ns"].tolist() == [40 * MS]
    assert plain["disturbed"].tolist() == [False]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot be read"),
        ("round,op\n1,x\n", "no column position"),
        (",".join(COLUMN_TYPES) + "\n" + ",".join(["x"] * len(COLUMN_TYPES)) + "\n", "cannot be read"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "measurements.csv"
    path.write_text(text)
    with pytest.raises(StoredFileError, match=words) as caught:
        from_csv(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoredFileError, match="cannot be read"):
        from_csv(tmp_path / "nothing.csv")
