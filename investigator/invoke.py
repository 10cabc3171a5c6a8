"""One invocation: one fresh worker process in one task, and what it proved and measured.

The worker's files are hostile input: they are bounded in size, decoded strictly, and compared with what the
plan said must run (Node build, addon binary, operations).
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import msgspec
import psutil

from investigator import protocol
from investigator.build import AddonBuild
from investigator.engine.interface import Engine, Mount, Outcome, Task
from investigator.errors import StoredFileError
from investigator.plan import Environment, Failure, Invocation, Pace, Plan
from investigator.store import disk_error

MAX_EVENTS_BYTES = 64 << 20
_DECODER = msgspec.json.Decoder(protocol.Event)


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


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What came out of one invocation."""

    invocation: Invocation
    events: tuple[protocol.Event, ...]
    failures: tuple[Failure, ...]
    culprit: str | None
    """The operation that took the whole process down; the others of the process have no complete data."""
    steal_pct: float
    elapsed_s: float


def invoke(
    engine: Engine,
    around: Surroundings,
    invocation: Invocation,
    *,
    mode: protocol.JobMode,
    paces: Mapping[str, Pace],
    timeout_s: float,
    keep: Path | None,
) -> Result:
    """Run one invocation and judge what it left.

    Args:
        engine: where it runs.
        around: plan, builds and data of the run.
        invocation: environment, operations and their order.
        mode: ``calibrate`` or ``measure``.
        paces: calls per warm-up and pass, by operation; unused in ``calibrate`` mode.
        timeout_s: after which it counts as hanging.
        keep: file the events are copied to, if any.

    Returns:
        Events and failures; a worker that crashes, hangs or writes garbage is a failure, never an exception.
    """
    environment = around.plan.environment(invocation.environment)
    with tempfile.TemporaryDirectory(prefix="investigate-io-") as name:
        io_folder = Path(name)
        io_folder.chmod(0o755)
        mounts = _mounts(around, environment, io_folder)
        seen = {mount.target: engine.inside(mount) for mount in mounts}
        job = _job(engine, around, invocation, environment, seen, mode, paces)
        try:
            (io_folder / "job.json").write_bytes(msgspec.json.encode(job))
            (io_folder / "job.json").chmod(0o644)
        except OSError as error:
            raise disk_error(error, io_folder) from error
        before = psutil.cpu_times()
        outcome = engine.run(_task(around, environment, invocation, mounts, seen, timeout_s))
        steal_pct = _steal_pct(before, psutil.cpu_times())
        events, damage = read_events(io_folder / "out" / "events.jsonl")
        if keep is not None:
            _keep(events, keep)
    failures, culprit = _judge(around, environment, invocation, outcome, events, damage)
    return Result(
        invocation=invocation,
        events=events,
        failures=failures,
        culprit=culprit,
        steal_pct=steal_pct,
        elapsed_s=outcome.elapsed_s,
    )


def _mounts(around: Surroundings, environment: Environment, io_folder: Path) -> tuple[Mount, ...]:
    out = io_folder / "out"
    out.mkdir()
    mounts = [
        Mount(source=environment.node.directory, target=PurePosixPath("/node")),
        Mount(source=around.fixtures, target=PurePosixPath("/fixtures")),
        Mount(source=io_folder / "job.json", target=PurePosixPath("/job.json")),
        Mount(source=out, target=PurePosixPath("/out"), writable=True),
    ]
    (io_folder / "job.json").touch()
    if any(operation.group.startswith("workload:") for operation in around.plan.operations):
        mounts.append(Mount(source=around.workloads, target=PurePosixPath("/workloads")))
    if around.mailbox is not None:
        mounts.append(Mount(source=around.mailbox, target=PurePosixPath("/mailbox")))
    if (build := around.builds.get(environment.id)) is not None:
        mounts.append(Mount(source=build.directory, target=PurePosixPath("/addon")))
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
                warmup_calls=pace.warmup_calls if pace else 0,
                loops=pace.loops if pace else 0,
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


def read_events(path: Path) -> tuple[tuple[protocol.Event, ...], str | None]:
    """Decode an events file.

    Returns:
        The events up to the first line that is not one, and what was wrong with that line (or with the file).
    """
    try:
        if path.is_symlink() or not path.is_file():
            return (), "it left no events file"
        if path.stat().st_size > MAX_EVENTS_BYTES:
            return (), f"its events file is larger than {MAX_EVENTS_BYTES >> 20} MiB"
        lines = path.read_bytes().splitlines()
    except OSError as error:
        return (), f"its events file cannot be read ({error.strerror})"
    events: list[protocol.Event] = []
    for number, line in enumerate(lines, start=1):
        try:
            events.append(_DECODER.decode(line))
        except msgspec.MsgspecError as error:
            return tuple(events), f"line {number} of its events file is not an event ({error})"
    return tuple(events), None


def _keep(events: Sequence[protocol.Event], keep: Path) -> None:
    try:
        keep.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    except OSError as error:
        raise disk_error(error, keep) from error


def _judge(
    around: Surroundings,
    environment: Environment,
    invocation: Invocation,
    outcome: Outcome,
    events: Sequence[protocol.Event],
    damage: str | None,
) -> tuple[tuple[Failure, ...], str | None]:
    """Failures of single operations, and the operation that took the process down, if one did."""
    failures = [
        Failure(
            environment=environment.id,
            op=event.op,
            stage="setup" if event.stage == "setup" else "measure",
            reason=f"{event.op} failed in {event.stage}: {event.message}",
        )
        for event in events
        if isinstance(event, protocol.OperationFailed) and event.op in invocation.operations
    ]
    if (wrong := _impostor(around, environment, events)) is not None:
        return (_whole(environment, invocation, "load", wrong),), None
    if outcome.ok and damage is None and events and isinstance(events[-1], protocol.Done):
        return tuple(failures), None
    begun = [event for event in events if isinstance(event, protocol.Begin)]
    fallen = [event for event in events if isinstance(event, protocol.Failed)]
    reason = _reason(outcome, fallen[-1] if fallen else None, damage)
    if begun and begun[-1].op in invocation.operations:
        culprit = begun[-1].op
        where = f"{culprit} in {begun[-1].stage}"
        failures.append(
            Failure(environment=environment.id, op=culprit, stage="measure", reason=f"{where}: {reason}")
        )
        return tuple(failures), culprit
    return (*failures, _whole(environment, invocation, "load", reason)), None


def _whole(environment: Environment, invocation: Invocation, stage: str, reason: str) -> Failure:
    """All cells of the environment for a built-in group; just its own for a user's workload."""
    own = invocation.group.startswith("workload:") and len(invocation.operations) == 1
    return Failure(
        environment=environment.id, op=invocation.operations[0] if own else None, stage=stage, reason=reason
    )


def _reason(outcome: Outcome, fallen: protocol.Failed | None, damage: str | None) -> str:
    if outcome.timed_out:
        return f"did not end within {outcome.elapsed_s:.0f} s and was killed; it hangs or is far too large."
    if outcome.out_of_memory:
        return "was killed because it used more memory than the task may; make the workload smaller."
    if fallen is not None:
        return f"the worker could not go on in {fallen.stage}: {fallen.message}"
    tail = outcome.stderr.strip().splitlines()[-1:]
    said = f"; it last said: {tail[0][:300]}" if tail else ""
    code = outcome.exit_code or 0
    if code > 128:
        return f"the process crashed with signal {code - 128}{said}."
    if damage is not None:
        return f"the worker ended with status {code}, but {damage}{said}."
    return f"the worker ended early with status {code}{said}."


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
    if hello.node_inode != (node.directory / "bin/node").stat().st_ino:
        return "the running node is not the file that was planned; the cache changed during the run."
    build = around.builds.get(environment.id)
    if build is not None and hello.binding_inode != (build.directory / build.binding).stat().st_ino:
        return f"the addon loaded {hello.binding_path} instead of the binary that was built for it."
    return None
