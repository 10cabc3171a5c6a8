"""What differs between two runs: what forbids to compare an operation, and what a reader has to know."""

from collections.abc import Iterator, Sequence

import msgspec

from investigator.operations import find
from investigator.spec import Spec
from investigator.stored_run import StoredRun


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One condition that is not the same in all runs."""

    what: str
    values: tuple[str, ...]
    """One for each run."""


def obstacles(one: StoredRun, other: StoredRun, op: str, family: str) -> tuple[str, ...]:
    """Why verdicts on `op` in two runs are no answers to the same question; empty where they are."""
    return tuple(_obstacles(one, other, op, family))


def _obstacles(one: StoredRun, other: StoredRun, op: str, family: str) -> Iterator[str]:
    own = find(op) is None
    if one.spec.seed != other.spec.seed:
        yield f"other data (seed {one.spec.seed} and {other.spec.seed})"
    if _margins(one.spec) != _margins(other.spec):
        yield f"other margins ({_margins(one.spec)} and {_margins(other.spec)})"
    if (family != "js" or own) and one.spec.params != other.spec.params:
        yield f"other parameters ({_params(one.spec)} and {_params(other.spec)})"
    if own and one.record.workloads_sha256 != other.record.workloads_sha256:
        yield "another workload under the same name (its file has another sha256)"
    if family == "js":
        return
    if one.spec.cipher != other.spec.cipher:
        yield f"another cipher ({one.spec.cipher} and {other.spec.cipher})"
    if one.spec.storage != other.spec.storage:
        yield f"other storage ({one.spec.storage} and {other.spec.storage})"
    if one.spec.seed == other.spec.seed and one.record.mailbox_sha256 != other.record.mailbox_sha256:
        yield "another generator of the data (the same seed gave another database)"


def differences(runs: Sequence[StoredRun]) -> tuple[Difference, ...]:
    """What is not the same in all runs and may explain what differs; forbids nothing by itself."""
    told = [dict(_told(run)) for run in runs]
    found = (
        Difference(what=what, values=tuple(each.get(what, "-") for each in told))
        for what in dict.fromkeys(what for each in told for what in each)
    )
    return tuple(difference for difference in found if len(set(difference.values)) > 1)


def _told(run: StoredRun) -> Iterator[tuple[str, str]]:
    host, engine, spec = run.record.host, run.record.engine, run.spec
    yield "processor", host.cpu_model
    yield "processors used", spec.cpus or str(host.cores_usable)
    yield "architecture", host.architecture
    yield "kernel", host.kernel
    yield "virtualisation", host.virtualisation
    yield "libc of the host", host.libc
    yield "engine", " ".join(engine.get(key, "") for key in ("engine", "version")).strip()
    yield "base image", engine.get("base", "")[:19]
    yield "rounds", f"{spec.rounds} to {spec.max_rounds}"
    yield "passes", str(spec.passes)
    yield "tool", run.summary.tool
    yield "code of the operations (sha256)", run.record.fixtures_sha256[:12]
    objects = {e.sqlite3_object_sha256 for e in run.summary.environments if e.sqlite3_object_sha256}
    yield "SQLite's object code (sha256)", ", ".join(sorted(digest[:12] for digest in objects)) or "-"


def _margins(spec: Spec) -> str:
    return " / ".join(
        f"{value:g} %" for value in (spec.margin_pct, spec.equivalence_pct, spec.finding_pct, spec.layout_pct)
    )


def _params(spec: Spec) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(spec.params.items())) or "none"
