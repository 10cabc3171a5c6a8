"""One invocation: one fresh worker process in one task, and what it proved and measured.

The worker's files are hostile input: they are bounded in size, decoded strictly, and compared with what the
plan said must run (Node build, addon binary, operations).
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

import msgspec
import psutil

from investigator import protocol
from investigator.build import AddonBuild
from investigator.engine.interface import Engine, Mount, Outcome, Task
from investigator.errors import StoredFileError
from investigator.exchange import UnreadableError, exchange, give, take
from investigator.plan import Environment, Failure, Invocation, Pace, Plan
from investigator.probes import ProbeBuild
from investigator.store import disk_error
from investigator.text import clean_text

MAX_EVENTS_BYTES = 64 << 20
MAX_TIMEOUT_S = 6 * 3600.0
"""Whatever a worker claims that its calls cost."""
_ERROR_LINE = re.compile(r"(?:[A-Za-z_$][\w$.]*(?:Error|Exception)\b|\S*node: bad option)")
# How Node, V8 and the C library announce an abort; the native stack follows, so the last line says nothing.
_ABORT_LINE = re.compile(
    r"#?\s*(?:FATAL ERROR|Fatal (?:JavaScript )?error|Assertion failed|Check failed|\S+: .*Assertion `)"
)
_DECODER = msgspec.json.Decoder(protocol.Event)
_NOT_AN_EVENT = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What every invocation of a run shares."""

    plan: Plan
    builds: Mapping[str, AddonBuild]
    """By environment identifier; empty in ``js`` runs and for ``node:sqlite``."""
    fixtures: Path
    """Folder that holds ``node_fixtures`` and ``sqlcipher_bench``, readable for everybody."""
    workloads: Path
    """Folder of the user's own operations."""
    mailbox: Path | None
    """The generated data file."""
    probes: Mapping[str, ProbeBuild] = {}
    """By environment identifier; empty where no operation of the run needs a probe."""


class Instruments(msgspec.Struct, frozen=True, kw_only=True):
    """What is attached to an invocation that is profiled; called again where the process is repeated."""

    node_flags: Callable[[PurePosixPath], tuple[str, ...]]
    """Flags of Node beside those of the environment, given the folder that the worker may write into."""
    started: Callable[[int, Task], None]
    """Told the process id on this host and what it runs; see `Engine.run`."""
    ended: Callable[[Path], None]
    """Shown that folder as the harness sees it, before it is removed. What lies in it is hostile."""
    passes: int
    """Timed passes, in place of the spec's."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What came out of one invocation."""

    invocation: Invocation
    events: tuple[protocol.Event, ...]
    failures: tuple[Failure, ...]
    culprit: str | None
    """The operation that took the whole process down; the others of the process have no complete data."""
    steal_pct: float
    elapsed_s: float
    remarks: tuple[str, ...] = ()
    """What went wrong without costing a value, one sentence each: a teardown that threw, a second start."""


def invoke(
    engine: Engine,
    around: Surroundings,
    invocation: Invocation,
    *,
    mode: protocol.JobMode,
    paces: Mapping[str, Pace],
    timeout_s: float,
    keep: Path | None,
    instruments: Instruments | None = None,
) -> Result:
    """Run one invocation and judge what it left.

    A process that dies before its first operation began says nothing about any of them, and calibration has
    shown that it can start: in ``measure`` mode it is started a second time. One that hangs or is not the
    planned one is not.

    Args:
        engine: where it runs.
        around: plan, builds and data of the run.
        invocation: environment, operations and their order.
        mode: ``calibrate`` or ``measure``.
        paces: calls per warm-up and pass, by operation; unused in ``calibrate`` mode.
        timeout_s: after which it counts as hanging.
        keep: file the events are copied to, if any.
        instruments: of a profile, if one is taken.

    Returns:
        Events and failures; a worker that crashes, hangs or writes garbage is a failure, never an exception.
    """
    attempt = partial(_attempt, engine, around, invocation, mode, paces, timeout_s, keep, instruments)
    result, died_early = attempt()
    if mode != "measure" or not died_early:
        return result
    again, _ = attempt()
    reason = result.failures[-1].reason
    remark = f"the process of {invocation.group} died before its first operation and was repeated: {reason}"
    return msgspec.structs.replace(again, remarks=(remark, *again.remarks))


def _attempt(
    engine: Engine,
    around: Surroundings,
    invocation: Invocation,
    mode: protocol.JobMode,
    paces: Mapping[str, Pace],
    timeout_s: float,
    keep: Path | None,
    instruments: Instruments | None,
) -> tuple[Result, bool]:
    """One process, and whether it died before its first operation began."""
    environment = around.plan.environment(invocation.environment)
    with exchange() as io_folder:
        mounts = _mounts(around, environment, io_folder)
        seen = {mount.target: engine.inside(mount) for mount in mounts}
        job = _job(engine, around, invocation, environment, seen, mode, paces)
        if instruments is not None:
            job = msgspec.structs.replace(job, passes=instruments.passes)
        give(io_folder / "job.json", msgspec.json.encode(job))
        before = psutil.cpu_times()
        limit_s = min(timeout_s, MAX_TIMEOUT_S)
        task = _task(around, environment, invocation, mounts, seen, limit_s)
        outcome = engine.run(task) if instruments is None else _run_with(engine, task, seen, instruments)
        steal_pct = _steal_pct(before, psutil.cpu_times())
        events, damage = read_events(io_folder / "out/events.jsonl", invocation.operations)
        if keep is not None:
            _keep(events, keep)
        if instruments is not None:
            instruments.ended(io_folder / "out")
    judged = _judge(around, environment, invocation, outcome, events, damage)
    result = Result(
        invocation=invocation,
        events=events,
        failures=judged.failures,
        culprit=judged.culprit,
        steal_pct=steal_pct,
        elapsed_s=outcome.elapsed_s,
        remarks=tuple(_remarks(events)),
    )
    return result, judged.died_early


def _run_with(
    engine: Engine,
    task: Task,
    seen: Mapping[PurePosixPath, PurePosixPath],
    instruments: Instruments,
) -> Outcome:
    node, *arguments = task.command
    flags = instruments.node_flags(seen[PurePosixPath("/out")])
    profiled = msgspec.structs.replace(task, command=(node, *flags, *arguments))
    return engine.run(profiled, lambda pid: instruments.started(pid, profiled))


def _mounts(around: Surroundings, environment: Environment, io_folder: Path) -> tuple[Mount, ...]:
    mounts = [
        Mount(source=environment.node.directory, target=PurePosixPath("/node")),
        Mount(source=around.fixtures, target=PurePosixPath("/fixtures")),
        Mount(source=io_folder / "job.json", target=PurePosixPath("/job.json")),
        Mount(source=io_folder / "out", target=PurePosixPath("/out"), writable=True),
    ]
    if any(operation.group.startswith("workload:") for operation in around.plan.operations):
        mounts.append(Mount(source=around.workloads, target=PurePosixPath("/workloads")))
    if around.mailbox is not None:
        mounts.append(Mount(source=around.mailbox, target=PurePosixPath("/mailbox")))
    if (build := around.builds.get(environment.id)) is not None:
        mounts.append(Mount(source=build.directory, target=PurePosixPath("/addon")))
    if (probe := around.probes.get(environment.id)) is not None:
        mounts.append(Mount(source=probe.directory, target=PurePosixPath("/probe")))
    return tuple(mounts)


def _job(
    engine: Engine,
    around: Surroundings,
    invocation: Invocation,
    environment: Environment,
    seen: Mapping[PurePosixPath, PurePosixPath],
    mode: protocol.JobMode,
    paces: Mapping[str, Pace],
) -> protocol.Job:
    spec = around.plan.spec
    operations = []
    for name in invocation.operations:
        operation = around.plan.operation(name)
        root = "/workloads" if operation.group.startswith("workload:") else "/fixtures"
        pace = paces.get(name)
        operations.append(
            protocol.JobOperation(
                name=name,
                module=str(seen[PurePosixPath(root)] / operation.module),
                workload=operation.workload,
                cold_calls=operation.cold_calls,
                warmup_calls=pace.warmup_calls if pace else operation.least_warmup_calls,
                loops=pace.loops if pace else 0,
                laps=pace.laps if pace else 1,
                warmup_factor=operation.warmup_factor,
            )
        )
    return protocol.Job(
        mode=mode,
        environment=environment.id,
        family=spec.command,
        addon=_job_addon(around.builds.get(environment.id), environment, seen),
        operations=tuple(operations),
        passes=spec.passes,
        seed=spec.seed,
        params=spec.params,
        cipher=spec.cipher,
        mailbox=None if around.mailbox is None else str(seen[PurePosixPath("/mailbox")]),
        scratch=str(engine.scratch),
        output=str(seen[PurePosixPath("/out")] / "events.jsonl"),
        probe=_job_probe(around.probes.get(environment.id), seen),
    )


def _job_probe(
    probe: ProbeBuild | None, seen: Mapping[PurePosixPath, PurePosixPath]
) -> protocol.JobProbe | None:
    if probe is None:
        return None
    root = seen[PurePosixPath("/probe")]

    def inside(name: str | None) -> str | None:
        return None if name is None else str(root / name)

    return protocol.JobProbe(
        boundary=str(root / probe.boundary),
        boundary_napi=inside(probe.boundary_napi),
        core=inside(probe.core),
        replay=inside(probe.replay),
        dialect=probe.dialect,
        row_builder=probe.row_builder,
        reason=probe.reason,
        core_reason=probe.core_reason,
    )


def _job_addon(
    build: AddonBuild | None, environment: Environment, seen: Mapping[PurePosixPath, PurePosixPath]
) -> protocol.JobAddon | None:
    if environment.addon is None:
        return None
    if environment.addon.kind == "node:sqlite":
        return protocol.JobAddon(kind="node:sqlite", entry="", binding="", encrypted=False)
    if build is None:
        raise StoredFileError(f"there is no build of {environment.id}; run `investigate resume` again.")
    root = seen[PurePosixPath("/addon")]
    return protocol.JobAddon(
        kind="package",
        entry=str(root / build.entry),
        binding=str(root / build.binding),
        encrypted=environment.addon.encrypted,
    )


def _task(
    around: Surroundings,
    environment: Environment,
    invocation: Invocation,
    mounts: tuple[Mount, ...],
    seen: Mapping[PurePosixPath, PurePosixPath],
    timeout_s: float,
) -> Task:
    spec = around.plan.spec
    worker = seen[PurePosixPath("/fixtures")] / "node_fixtures/worker/main.mjs"
    return Task(
        command=(
            str(seen[PurePosixPath("/node")] / "bin/node"),
            *environment.node_flags,
            str(worker),
            str(seen[PurePosixPath("/job.json")]),
        ),
        purpose=f"round {invocation.round}: {environment.id} {invocation.group}",
        mounts=mounts,
        environment=environment.variables,
        timeout_s=timeout_s,
        cpus=spec.cpus,
        scratch_on_disk=spec.storage == "disk",
    )


def _steal_pct(before: object, after: object) -> float:
    """Share of CPU time that the hypervisor took between two `psutil.cpu_times()`, in percent."""
    deltas = {
        name: getattr(after, name) - getattr(before, name)
        for name in ("user", "system", "idle", "iowait", "irq", "softirq", "steal")
        if hasattr(after, name)
    }
    total = sum(deltas.values())
    return 100.0 * deltas.get("steal", 0.0) / total if total > 0 else 0.0


def read_events(
    path: Path, operations: Collection[str] | None = None
) -> tuple[tuple[protocol.Event, ...], str | None]:
    """Decode the events file of an invocation of `operations` (None: of any).

    Returns:
        The events up to the first line that is not one, and what was wrong with that line (or with the file).
        All numbers lie within the limits of `protocol`, and all events are about `operations`.
    """
    try:
        data = take(path, MAX_EVENTS_BYTES)
    except UnreadableError as error:
        return (), f"its events file {error}"
    events, damage = _decoded(data)
    if events and not isinstance(events[0], protocol.Hello | protocol.Failed):
        return (), "line 1 of its events file comes before the proof of what runs"
    allowed = None if operations is None else set(operations)
    for number, event in enumerate(events):
        op: str | None = getattr(event, "op", None)
        if allowed is not None and op is not None and op not in allowed:
            about = f"is about {clean_text(op, 80)}, which is no operation of this process"
            return tuple(events[:number]), f"line {number + 1} of its events file {about}"
    return tuple(events), damage


def _decoded(data: bytes) -> tuple[list[protocol.Event], str | None]:
    """The events up to the first line that is not one, and what was wrong with that line."""
    try:
        events = _DECODER.decode_lines(data)
        if len(events) == data.count(b"\n"):
            return events, None
    except _NOT_AN_EVENT:
        pass
    # At half the speed, to tell where it is damaged: a crash cuts a line in two.
    events = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            events.append(_DECODER.decode(line))
        except _NOT_AN_EVENT as error:
            return events, f"line {number} of its events file is not an event ({error})"
    return events, None


def _keep(events: Sequence[protocol.Event], keep: Path) -> None:
    try:
        keep.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    except OSError as error:
        raise disk_error(error, keep) from error


class _Judgement(msgspec.Struct, frozen=True, kw_only=True):
    failures: tuple[Failure, ...]
    culprit: str | None = None
    died_early: bool = False
    """Whether the process ended by itself before any operation began."""


def _judge(
    around: Surroundings,
    environment: Environment,
    invocation: Invocation,
    outcome: Outcome,
    events: Sequence[protocol.Event],
    damage: str | None,
) -> _Judgement:
    """Failures of single operations, and the operation that took the process down, if one did."""
    failures = [
        Failure(
            environment=environment.id,
            op=event.op,
            stage="setup" if event.stage == "setup" else "measure",
            reason=f"{event.op} failed in {event.stage}: {event.message}",
        )
        for event in events
        if isinstance(event, protocol.OperationFailed) and event.stage != "teardown"
    ]
    if (wrong := _impostor(around, environment, events)) is not None:
        return _Judgement(failures=(_whole(environment, invocation, "load", wrong),))
    if outcome.ok and damage is None and events and isinstance(events[-1], protocol.Done):
        return _Judgement(failures=tuple(failures))
    begun = [event for event in events if isinstance(event, protocol.Begin)]
    fallen = [event for event in events if isinstance(event, protocol.Failed)]
    reason = _reason(outcome, fallen[-1] if fallen else None, damage)
    if begun:
        culprit = begun[-1].op
        where = f"{culprit} in {begun[-1].stage}"
        failures.append(
            Failure(environment=environment.id, op=culprit, stage="measure", reason=f"{where}: {reason}")
        )
        return _Judgement(failures=tuple(failures), culprit=culprit)
    whole = _whole(environment, invocation, "load", reason)
    return _Judgement(failures=(*failures, whole), died_early=not outcome.timed_out)


def _remarks(events: Sequence[protocol.Event]) -> Iterator[str]:
    """Teardowns that threw: they come last, so all values of the operation are there and count."""
    for event in events:
        if isinstance(event, protocol.OperationFailed) and event.stage == "teardown":
            yield f"the teardown of {event.op} failed, its times count: {clean_text(event.message, 300)}"


def _whole(environment: Environment, invocation: Invocation, stage: str, reason: str) -> Failure:
    """All cells of the environment for a built-in group; just its own for a user's workload."""
    own = invocation.group.startswith("workload:") and len(invocation.operations) == 1
    return Failure(
        environment=environment.id, op=invocation.operations[0] if own else None, stage=stage, reason=reason
    )


def _reason(outcome: Outcome, fallen: protocol.Failed | None, damage: str | None) -> str:
    if (limit := _limit_reached(outcome)) is not None:
        return limit
    if fallen is not None:
        return f"the worker could not go on in {fallen.stage}: {fallen.message}"
    told = _said(outcome.stderr)
    said = f"; it said: {told}" if told else ""
    code = outcome.exit_code or 0
    if code > 128:
        return f"the process crashed with signal {code - 128}{said}."
    if damage is not None:
        return f"the worker ended with status {code}, but {damage}{said}."
    return f"the worker ended early with status {code}{said}."


def _limit_reached(outcome: Outcome) -> str | None:
    """What ended a process that took too long or too much."""
    if outcome.timed_out:
        return f"did not end within {outcome.elapsed_s:.0f} s and was killed; it hangs or is far too large."
    if outcome.out_of_memory:
        return "was killed because it used more memory than the task may; make the workload smaller."
    if "heap out of memory" in outcome.stderr:
        return (
            "ran out of JavaScript heap; make the workload smaller, or the heap larger with "
            "--node-flags=--max-old-space-size=MEBIBYTES."
        )
    return None


def _said(stderr: str) -> str:
    """The line that names an abort or an error, as Node writes it; else the last one."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    for before, line in zip(["", *lines], lines, strict=False):
        if _ABORT_LINE.match(line):
            # Node writes the place of a failed assertion on the line before.
            place = before if " at ../" in before else ""
            return " ".join(part.lstrip("# ") for part in (place, line) if part)[:300]
    named = [line for line in lines if _ERROR_LINE.match(line)]
    return (named or lines or [""])[-1][:300]


def _impostor(around: Surroundings, environment: Environment, events: Sequence[protocol.Event]) -> str | None:
    """What is wrong if the process is not the one that was planned."""
    hello = next((event for event in events if isinstance(event, protocol.Hello)), None)
    if hello is None:
        return None
    node = environment.node
    if hello.versions.get("node") != node.version or hello.config_sha256 != node.config_sha256:
        return (
            f"the process says it is Node {hello.versions.get('node')} with another configuration than "
            f"the planned {node.version}; the cache is damaged, run `investigate clean --cache`."
        )
    if hello.node_inode != _inode(node.directory / "bin/node"):
        return "the running node is not the file that was planned; the cache changed during the run."
    build = around.builds.get(environment.id)
    if build is not None and hello.binding_inode != _inode(build.directory / build.binding):
        return f"the addon loaded {hello.binding_path} instead of the binary that was built for it."
    return None


def _inode(path: Path) -> int:
    """-1 where the file is gone: no process runs from that."""
    try:
        return path.stat().st_ino
    except OSError:
        return -1
