"""A profiled invocation, its file, growth of functions, exports; which profiler is chosen."""

import gzip
import json
import os
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from investigator.engine.interface import Mount, Outcome, Task
from investigator.errors import StoredFileError
from investigator.invoke import Surroundings
from investigator.plan import Invocation, Pace
from investigator.profiling import events
from investigator.profiling import profiler as profilers
from investigator.profiling import reading as readings
from investigator.profiling.classify import layers_of
from investigator.profiling.exports import collapsed, difference, speedscope
from investigator.profiling.growth import own_samples, symbol_growth
from investigator.profiling.profiler import Profiler, Taken, V8Session, choose_profiler
from investigator.profiling.reading import ProfileReading, profile_invocation, read_profile
from investigator.profiling.samples import UnusableError, Window
from investigator.profiling.stacks import Frame, Stack, added, clean_symbol, from_lines, to_lines
from tests.fakes.elf_file import FUNC, TEXT_ADDRESS, elf
from tests.fakes.engine import FakeEngine
from tests.fakes.worker_engine import WorkerEngine
from tests.unit.test_measure import BASE, OPS, bench_of

PERF = Profiler(kind="perf", reason="perf samples cpu-clock.", event="cpu-clock", sees_kernel=True)
JS = (Frame("libc", "__libc_start_call_main"), Frame("node", "node::Start"), Frame("js", "JS:*run"))
GET = (*JS, Frame("node", "Builtins_CallApiCallbackGeneric"), Frame("addon", "Statement::JS_get"))
WRITING = Stack("main", (*GET, Frame("node", "v8::internal::String::WriteUtf8")))
COPYING = Stack("main", (*GET, Frame("node", "v8::String::Utf8Value"), Frame("libc", "memcpy")))
STEPPING = Stack("main", (*GET, Frame("core", "sqlite3VdbeExec")))
RUNNING = Stack("main", JS)
SWEEPING = Stack("helper", (Frame("node", "v8::internal::Sweeper::RawSweep"),))
BROKEN = Stack("main", (Frame("libc", "[libc.so.6]"),))

SYMBOLS = st.text(max_size=12).map(clean_symbol)
STACKS = st.dictionaries(
    st.builds(
        Stack,
        st.sampled_from(["main", "helper"]),
        st.lists(
            st.builds(
                Frame, st.sampled_from(["node", "addon", "core", "js", "kernel", "libc", "unknown"]), SYMBOLS
            ),
            min_size=1,
            max_size=5,
        ).map(tuple),
    ),
    st.integers(1, 1000),
    max_size=8,
)


# -- text and file ----------------------------------------------------------------------------------------


@given(STACKS)
def test_collapsed_text_comes_back_as_it_was(stacks: dict[Stack, int]) -> None:
    assert from_lines(to_lines(stacks)) == stacks


@pytest.mark.parametrize(
    "line", ["", "main 3", "other;node:f 3", "main;node:f x", "main;place:f 3", "main;f 3"]
)
def test_other_text_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"stack|frame|int"):
        from_lines([line])


def test_profiles_add_up() -> None:
    assert added([{WRITING: 2, RUNNING: 1}, {WRITING: 3}]) == {WRITING: 5, RUNNING: 1}


class FakeSession:
    """Brings home what it was made with."""

    def __init__(self, taken: Taken | str) -> None:
        self.what = taken
        self.windows: Sequence[Window] = ()
        self.closed = False

    def node_flags(self, out: PurePosixPath) -> tuple[str, ...]:
        return (f"--logfile={out / 'v8.log'}",)

    def started(self, pid: int, task: Task) -> None:
        raise AssertionError("the simulated engine has no processes")

    def ended(self, out: Path) -> None:
        assert (out / "events.jsonl").is_file()

    def taken(self, windows: Sequence[Window], core: Collection[str]) -> Taken:
        self.windows = windows
        if isinstance(self.what, str):
            raise UnusableError(self.what)
        return self.what

    def close(self) -> None:
        self.closed = True


def profiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: Taken | str, engine: WorkerEngine | None = None
) -> tuple[ProfileReading, FakeSession, WorkerEngine]:
    session = FakeSession(taken)
    monkeypatch.setattr(readings, "new_session", lambda *_: session)
    engine = engine or WorkerEngine(lambda _environment, _op: 50_000.0)
    around: Surroundings = bench_of(tmp_path, engine).around
    job = Invocation(round=2, position=0, environment=BASE, twin=False, group="sqlite", operations=OPS[:1])
    paces = {OPS[0]: Pace(op=OPS[0], warmup_calls=3, loops=100)}
    reading = profile_invocation(
        engine, around, job, paces=paces, passes=30, profiler=PERF, keep=tmp_path / "profile-1"
    )
    return reading, session, engine


TAKEN = Taken(
    stacks={WRITING: 500, COPYING: 100, STEPPING: 300, RUNNING: 80, SWEEPING: 40, BROKEN: 20},
    lost=7,
    event="cpu-clock",
)


def test_a_profile_is_read_kept_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, session, engine = profiled(tmp_path, monkeypatch, TAKEN)
    assert reading.unavailable is None
    assert reading.layers == {"boundary": 600, "engine": 80, "gc": 0, "native_core": 300, "os": 0}
    assert (reading.samples, reading.broken, reading.helper, reading.helper_gc) == (1000, 20, 40, 40)
    assert reading.shares["boundary"] == pytest.approx(600 / 980)
    assert reading.result is not None
    assert engine.jobs[0]["passes"] == 30
    assert reading.header.calls == 3000
    assert 40_000 < reading.ns_per_call < 70_000
    assert session.closed
    assert session.windows[0].start_ns == 1000
    assert reading.file == tmp_path / "profile-1.collapsed.gz"
    assert (tmp_path / "profile-1.jsonl").is_file()
    again = read_profile(reading.file)
    assert (again.header, again.stacks, again.layers) == (reading.header, reading.stacks, reading.layers)
    assert (again.helper_gc, again.broken, again.unavailable) == (40, 20, None)


def test_equal_profiles_are_equal_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [profiled(tmp_path / name, monkeypatch, TAKEN)[0].file for name in ("a", "b")]
    one, other = (file.read_bytes() for file in files if file is not None)
    assert one == other
    assert gzip.decompress(one).startswith(b'# {"schema":1,"kind":"profile"')


@pytest.mark.parametrize(
    ("stacks", "words"),
    [
        ({WRITING: 900, BROKEN: 100}, "10 % broken stacks"),
        ({WRITING: 100}, "only 100 samples"),
        (
            {WRITING: 900, Stack("main", (*GET, Frame("unknown", "[stripped addon]"))): 100},
            "stripped; build from source",
        ),
    ],
)
def test_a_profile_that_says_little_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stacks: dict[Stack, int], words: str
) -> None:
    reading, _, _ = profiled(tmp_path, monkeypatch, Taken(stacks=stacks, lost=0, event="cycles"))
    assert words in (reading.unavailable or "")
    assert reading.file is not None
    assert read_profile(reading.file).unavailable == reading.unavailable


def test_a_profiler_that_fails_costs_the_profile_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, session, _ = profiled(tmp_path, monkeypatch, "perf could not attach")
    assert "perf could not attach" in (reading.unavailable or "")
    assert reading.result is not None
    assert reading.file is None
    assert session.closed


def test_a_worker_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crash = WorkerEngine(lambda *_: 50_000.0, crash_ops={(BASE, OPS[0]): Outcome(exit_code=139)})
    reading, _, _ = profiled(tmp_path, monkeypatch, TAKEN, crash)
    assert "crashed with signal 11" in (reading.unavailable or "")


def test_without_a_profiler_nothing_runs(tmp_path: Path) -> None:
    engine = WorkerEngine(lambda *_: 50_000.0)
    job = Invocation(round=1, position=0, environment=BASE, twin=False, group="sqlite", operations=OPS[:1])
    reading = profile_invocation(
        engine,
        bench_of(tmp_path, engine).around,
        job,
        paces={},
        passes=3,
        profiler=Profiler(kind="none", reason="profiles cannot be taken here."),
        keep=tmp_path / "p",
    )
    assert (reading.unavailable, engine.jobs) == ("profiles cannot be taken here.", [])


@pytest.mark.parametrize(
    "data",
    [
        b"no gzip",
        gzip.compress(b"no header\n"),
        gzip.compress(b'# {"schema":99}\n'),
        gzip.compress(b'# {"schema":1}\nmain;node:f 1\n'),
        gzip.compress(b"# {}\nmain;node:f")[:-6],
    ],
)
def test_a_damaged_or_newer_file_is_refused_with_a_sentence(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.collapsed.gz"
    path.write_bytes(data)
    with pytest.raises(StoredFileError):
        read_profile(path)


def test_a_pipe_in_place_of_a_profile_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "x.collapsed.gz"
    os.mkfifo(path)
    with pytest.raises(StoredFileError, match="no regular file"):
        read_profile(path)


# -- growth -----------------------------------------------------------------------------------------------


def test_growth_adds_up_and_libc_counts_with_its_caller() -> None:
    before = [{WRITING: 50, COPYING: 10, STEPPING: 40, SWEEPING: 999, BROKEN: 5}] * 6
    after = [{WRITING: 140, COPYING: 10, STEPPING: 50}] * 6
    growth = symbol_growth(before, after, 1000.0, 2000.0)
    assert [(g.symbol, g.layer) for g in growth] == [
        ("v8::internal::String::WriteUtf8", "boundary"),
        ("sqlite3VdbeExec", "native_core"),
        ("v8::String::Utf8Value", "boundary"),
    ]
    assert [g.delta_ns_per_op for g in growth] == pytest.approx([900, 100, 0])
    assert sum(g.delta_ns_per_op for g in growth) == pytest.approx(1000)
    assert growth[0].before_ns_per_op == pytest.approx(500)
    assert growth[0].ci_low == pytest.approx(900)
    assert growth[0].ci_high == pytest.approx(900)


def test_few_rounds_have_no_interval_and_no_samples_no_growth() -> None:
    (growth,) = symbol_growth([{WRITING: 1}], [{WRITING: 1}], 10.0, 30.0)
    assert (growth.delta_ns_per_op, growth.ci_low, growth.ci_high) == (20.0, None, None)
    assert symbol_growth([{BROKEN: 9}], [{WRITING: 1}], 1.0, 2.0) == ()
    assert symbol_growth([], [], 1.0, 2.0) == ()


def test_what_changed_least_is_cut_off() -> None:
    growth = symbol_growth([{WRITING: 5, STEPPING: 5}], [{WRITING: 9, STEPPING: 1}], 10.0, 10.0, limit=1)
    assert len(growth) == 1


def test_own_samples_are_of_the_main_thread() -> None:
    own = own_samples({WRITING: 2, SWEEPING: 3, BROKEN: 4})
    assert own == Counter({(WRITING.frames[-1], "boundary"): 2})


# -- exports ----------------------------------------------------------------------------------------------


def test_collapsed_stacks_are_divided_by_layer() -> None:
    lines = collapsed({WRITING: 2, BROKEN: 1, SWEEPING: 9}).decode().splitlines()
    assert lines[0].startswith("[boundary];__libc_start_call_main (libc);node::Start;JS:*run;")
    assert lines[0].endswith("Statement::JS_get (addon);v8::internal::String::WriteUtf8 2")
    assert lines[1] == "[broken];[libc.so.6] (libc) 1"
    assert len(lines) == 2


def test_speedscope_weighs_one_call() -> None:
    document = json.loads(speedscope("node24 select", {WRITING: 3, STEPPING: 1, SWEEPING: 5}, 1000.0))
    (profile,) = document["profiles"]
    assert document["$schema"].endswith("file-format-schema.json")
    assert profile["type"] == "sampled"
    assert profile["unit"] == "nanoseconds"
    assert len(profile["samples"]) == len(profile["weights"]) == 2
    assert sum(profile["weights"]) == pytest.approx(profile["endValue"]) == pytest.approx(1000.0)
    names = [frame["name"] for frame in document["shared"]["frames"]]
    assert {names[row[0]] for row in profile["samples"]} == {"[boundary]", "[native_core]"}


def test_the_difference_has_both_sides_in_one_unit() -> None:
    lines = difference({STEPPING: 1}, {STEPPING: 1, WRITING: 3}, 10.0, 40.0).decode().splitlines()
    assert [line.rsplit(" ", 2)[1:] for line in lines] == [["0", "30000"], ["10000", "10000"]]
    assert lines[0].startswith("[boundary];")


@given(STACKS, st.floats(1, 1e9))
def test_any_profile_can_be_exported(stacks: dict[Stack, int], ns_per_call: float) -> None:
    json.loads(speedscope("x", stacks, ns_per_call))
    assert collapsed(stacks).count(b"\n") <= len(stacks)
    difference(stacks, {}, ns_per_call, 1.0)


# -- which profiler ---------------------------------------------------------------------------------------


def test_without_perf_events_v8_samples_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    chosen = choose_profiler(FakeEngine())
    assert chosen.kind == "v8"
    assert "not known on riscv64" in chosen.reason


def test_processes_of_a_virtual_machine_are_sampled_by_v8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "available", lambda: None)
    engine = FakeEngine()
    chosen = choose_profiler(engine)
    assert chosen.kind == "v8"
    assert "not processes of this machine" in chosen.reason
    assert engine.purposes == ["a look whether perf works"]


def test_plain_processes_outside_of_linux_have_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profilers, "_on_linux", lambda: False)
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    chosen = choose_profiler(FakeEngine(name="local"))
    assert chosen.kind == "none"
    assert "need Linux" in chosen.reason


def test_samples_of_v8_are_placed_in_time_and_named(tmp_path: Path) -> None:
    (tmp_path / "node/bin").mkdir(parents=True)
    (tmp_path / "node/bin/node").write_bytes(
        elf(
            [
                ("_ZN2v88internal6String9WriteUtf8Ev", FUNC, TEXT_ADDRESS, 0x100),
                ("_ZN2v88internal7Runtime3AddEv", FUNC, TEXT_ADDRESS + 0x100, 0x100),
            ]
        )
    )
    (tmp_path / "addon").mkdir()
    (tmp_path / "addon/a.node").write_bytes(elf([("JS_get", FUNC, TEXT_ADDRESS, 0x100)]))
    out = tmp_path / "out"
    out.mkdir()
    (out / "anchor.txt").write_text("1000000\n")
    (out / "maps.txt").write_text(
        "10000-12000 r-xp 00001000 08:01 1 /node/bin/node\n"
        "20000-22000 r-xp 00001000 08:01 2 /addon/a.node\n"
        "40000-42000 r-xp 00000000 08:01 3 /lib/libc.so.6\n"
    )
    (out / "v8.log").write_text(
        "code-creation,Eval,9,100,0x8000,5, investigate_anchor:1:1,0x66,~\n"
        "code-creation,JS,13,200,0x50000,256,run a.mjs:1:1,0x1,*\n"
        "tick,0x10010,300,1,0x20000,6,0x50010\n"
        "tick,0x10110,400,0,0x0,0,0x50010\n"
        "tick,0x10110,450,0,0x0,5,0x7ffc9a465b50,0x50010\n"
        "tick,0x40010,450,0,0x0,0,0x50010\n"
        "tick,0x10110,500,0,0x0,1,0x50010\n"
        "tick,0x10010,90000,0,0x0,5,0x50010\n"
    )
    session = V8Session(PurePosixPath("/fixtures"))
    mounts = tuple(
        Mount(source=tmp_path / name, target=PurePosixPath("/") / name) for name in ("node", "addon")
    )
    session.started(1, Task(command=("node",), purpose="a test", mounts=mounts))
    session.ended(out)
    # The log's microsecond 100 is the nanosecond 1,000,000 of the passes.
    taken = session.taken([Window(1_100_000, 1_500_000)], ())
    assert layers_of(taken.stacks) == ({"boundary": 2, "engine": 1, "gc": 1}, 1)
    session.close()


def test_without_its_log_v8_has_no_profile(tmp_path: Path) -> None:
    session = V8Session(PurePosixPath("/fixtures"))
    session.ended(tmp_path)
    with pytest.raises(UnusableError, match="no readable log"):
        session.taken([], ())
    (tmp_path / "v8.log").write_text("tick,0x1,2,0,0x0,5\n")
    session.ended(tmp_path)
    with pytest.raises(UnusableError, match="clock"):
        session.taken([], ())
