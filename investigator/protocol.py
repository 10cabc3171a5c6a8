"""The contract between harness and worker: a job file in, an events file out, nothing on stdout.

``events.jsonl``: one JSON object a line, field ``type`` first; ``hello`` opens the file, ``done`` or
``failed`` closes it. Times are raw integers in nanoseconds (CPU times in microseconds, as libuv gives
them). Keys are exact: an unknown or missing key is a protocol error, not a warning; so is a number that no
worker writes. The limits keep sums and products of a few of them within 64 bits.
"""

from typing import Annotated, Literal

import msgspec

PROTOCOL = 1

JobMode = Literal["calibrate", "measure", "load"]

Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
Calls = Annotated[int, msgspec.Meta(gt=0, lt=2**53)]
Micros = Annotated[int, msgspec.Meta(ge=0, lt=2**43)]
Nanos = Annotated[int, msgspec.Meta(gt=0, lt=2**53)]
"""A duration; no clock reads the same before and after any work."""
Instant = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
"""Nanoseconds since a start that may lie years back."""
Inode = Annotated[int, msgspec.Meta(ge=0)]
Fold = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]


class JobOperation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation for the worker. In ``calibrate`` mode `loops` is 0, `warmup_calls` a least number."""

    name: str
    module: str
    """Path of the module as the worker sees it."""
    workload: str | None
    cold_calls: int
    warmup_calls: int
    loops: int
    warmup_factor: int = 1
    """Multiple of `Job.calibrate_ns` that it runs before its pace is taken."""
    laps: int = 1
    """Readings of the clock in each pass, every one after `loops` calls."""


class JobAddon(msgspec.Struct, frozen=True, kw_only=True):
    """The addon as the worker sees it; `entry` is empty for ``node:sqlite``."""

    kind: Literal["package", "node:sqlite"]
    entry: str
    """Absolute path of the package's main JS file."""
    binding: str
    """Absolute path of the ``.node``; handed to the constructor as ``nativeBinding``."""
    encrypted: bool


Dialect = Literal["v8", "napi"]
"""Which API of Node an addon is written for: V8's own, or Node-API."""


class JobProbe(msgspec.Struct, frozen=True, kw_only=True):
    """The probe addons as the worker sees them; all are absolute paths of ``.node`` files."""

    boundary: str
    """The primitives through V8's API; also reads the CPU clock of the main thread."""
    boundary_napi: str | None
    """The primitives through Node-API; None where this Node's Node-API is too old for them."""
    core: str | None
    """Loops in C on the addon's own SQLite; None where there is no addon that brings one."""
    replay: str | None
    """The addon's own code on a SQLite that only plays recorded rows; None: see `reason`."""
    dialect: Dialect | None
    """API that the addon is written for; None without a replay."""
    row_builder: str | None = None
    """How the addon makes row objects: ``set``, ``bulk``, ``factory``; None where that is not known."""
    reason: str = ""
    """Why there is no replay, one sentence."""
    core_reason: str = ""
    """Why there is no core module, one sentence."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """``job.json``, the worker's only argument."""

    protocol: int = PROTOCOL
    mode: JobMode
    environment: str
    family: Literal["sqlite", "js"]
    addon: JobAddon | None
    operations: tuple[JobOperation, ...]
    passes: int
    seed: int
    params: dict[str, str]
    cipher: str
    """Cipher scheme, or ``none``."""
    mailbox: str | None
    """Path of the generated mailbox data file."""
    scratch: str
    """Empty writable directory for databases."""
    output: str
    """Path of the events file to write."""
    calibrate_ns: int = 30_000_000
    """Warm-up time per operation in ``calibrate`` mode."""
    probe: JobProbe | None = None
    """Present where probes were built; each pass then also tells the main thread's CPU time."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello", forbid_unknown_fields=True):
    """Proof of what runs; first event."""

    protocol: int
    environment: str
    versions: dict[str, str]
    config_sha256: str
    """sha256 of the canonical JSON (sorted keys) of ``process.config``."""
    exec_path: str
    exec_argv: list[str]
    node_inode: Inode
    node_build_id: str | None
    """GNU build id of the running binary, hex; None where it has none."""
    binding_path: str | None
    """The ``.node`` actually mapped into the process (from /proc/self/maps where there is one)."""
    binding_inode: Inode | None
    binding_build_id: str | None
    addon_versions: dict[str, str]
    """``sqlite``, ``cipher`` (what the library itself answers), empty in js."""
    gc_accounting_ns: Count | None = None
    """What the accounting of collections adds to one; ``calibrate`` mode only."""
    heap_limit_bytes: Count | None = None
    """Size that V8 lets the heap grow to (``heap_size_limit``). None in older files."""
    semi_space_bytes: Count | None = None
    """Half of the young generation as it is committed at the start. None in older files."""


class Begin(msgspec.Struct, frozen=True, kw_only=True, tag="begin", forbid_unknown_fields=True):
    """Written before anything that can hang or crash: tells which operation it was."""

    op: str
    stage: Literal["setup", "cold", "warmup", "calibrate", "checksum", "restore", "pass", "teardown"]
    index: Count


class SetUp(msgspec.Struct, frozen=True, kw_only=True, tag="setup", forbid_unknown_fields=True):
    """Set-up of one operation, in wall time."""

    op: str
    wall_ns: Count


class Checksum(msgspec.Struct, frozen=True, kw_only=True, tag="checksum", forbid_unknown_fields=True):
    """Full digest of the values of untimed calls, hex."""

    op: str
    when: Literal["before", "after"]
    value: str


class Gc(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Main-thread collector work inside one pass, by kind."""

    kind: str
    """``scavenge``, ``minor_mark_sweep``, ``mark_sweep_compact``, ``incremental``, ``weak``."""
    count: Count
    pause_ns: Count


class Pass(msgspec.Struct, frozen=True, kw_only=True, tag="pass", forbid_unknown_fields=True, gc=False):
    """One timed repetition: `calls` calls of the operation."""

    op: str
    phase: Literal["cold", "pass"]
    index: Count
    """Number of the pass, from 0; 0 for the cold pass."""
    lap: Count = 0
    """Number of the lap in the pass, from 0: a pass of several is told by as many events."""
    calls: Calls
    start_ns: Instant
    """``process.hrtime`` at the start, to place passes in time."""
    wall_ns: Nanos
    cpu_user_us: Micros
    """Whole process, all threads."""
    cpu_system_us: Micros
    gc: Annotated[list[Gc], msgspec.Meta(max_length=64)]
    involuntary_switches: Count
    voluntary_switches: Count
    rss_bytes: Count
    heap_used_bytes: Count
    external_bytes: Count
    fold: Fold
    """The O(1) fold of the results: keeps the calls alive."""
    main_cpu_us: Micros | None = None
    """CPU time of the main thread alone, user and kernel; None in older files, and where nobody tells."""
    main_user_us: Micros | None = None
    """Of it in user mode; None where no probe was loaded."""
    main_system_us: Micros | None = None
    """The same in the kernel."""
    main_gc_cpu_us: Micros | None = None
    """CPU time of the main thread inside collections, user and kernel; a pause holds waiting as well."""
    semi_space_bytes: Count | None = None
    """Half of the young generation as it is committed after the pass: it grows. None in older files."""


class Calibration(msgspec.Struct, frozen=True, kw_only=True, tag="calibration", forbid_unknown_fields=True):
    """What one call costs once warm; ``calibrate`` mode only."""

    op: str
    calls: Calls
    wall_ns: Nanos
    total_calls: Count
    """Calls made until then, warm-up included."""


class OperationFailed(msgspec.Struct, frozen=True, kw_only=True, tag="op_failed", forbid_unknown_fields=True):
    """One operation threw or never settled; the others of the process go on."""

    op: str
    stage: str
    message: str
    """First 2,000 characters of the error's message."""
    stack: str


class Done(msgspec.Struct, frozen=True, kw_only=True, tag="done", forbid_unknown_fields=True):
    """Last event of a worker that ended in order."""

    wall_ns: Count


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed", forbid_unknown_fields=True):
    """Last event of a worker that cannot go on (addon does not load, job unreadable)."""

    stage: str
    message: str
    stack: str


Event = Hello | Begin | SetUp | Checksum | Pass | Calibration | OperationFailed | Done | Failed
