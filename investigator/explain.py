"""The explain phase: findings measured again, alone in a process, with twins and a profile in every round.

Each finding has a run folder of its own inside of the run's (``explain/<operation>--<candidate>/``), with a
plan, a calibration and rounds like any other, so that it is resumed and computed anew by the same code.
"""

from collections.abc import Mapping, Sequence

import msgspec

from investigator import measure
from investigator.analysis import Analysis, Comparison
from investigator.attributed import (
    EXPLAIN_SCHEMA,
    Explained,
    Target,
    attribution,
    folder_of,
    profile_path,
    read_explained,
)
from investigator.attribution.subtraction import TOGETHER
from investigator.build import BuildFailure
from investigator.experiments import find_causes
from investigator.measure import Bench
from investigator.operations import Operation, find
from investigator.plan import ONCE, Environment, Invocation
from investigator.probes import ProbeBuild, build_probes
from investigator.profiling.profiler import Profiler, choose_profiler
from investigator.profiling.reading import SUFFIX, profile_invocation
from investigator.rounds import learn_pace
from investigator.sqlite_calls import SqliteCalls, SqliteCallsFailure, count_sqlite_calls
from investigator.store import RunFolder

ROUNDS = 8
PASSES = 6
PROFILE_PASSES = 25
"""About a second of passes: a thousand samples."""
ALONE = "explain"
TWINS = f"{ONCE}twins"
"""Groups: the operation has a process of its own, its twins share another."""


def explain(bench: Bench, screen: Analysis, wanted: Sequence[Target]) -> None:
    """Measure each target in its nested folder, whatever of it has not been measured yet."""
    if not wanted:
        return
    profiler = choose_profiler(bench.engine)
    if profiler.kind != "perf":
        bench.observer.warning(profiler.reason)
    for number, target in enumerate(wanted, start=1):
        bench.observer.note(f"explaining {number} of {len(wanted)}: {target.op} on {target.candidate}")
        _explain_one(bench, screen.comparisons, target, profiler)


def _explain_one(bench: Bench, screened: Sequence[Comparison], target: Target, profiler: Profiler) -> None:
    folder = folder_of(bench.folder, target)
    folder.path.mkdir(parents=True, exist_ok=True)
    explained = _begun(folder) or _begin(bench, target, folder, profiler)
    nested = _nested(bench, folder, explained)
    calibration = learn_pace(nested, ())
    records = {record.number: record for record in measure.read_rounds(folder)}
    failures = [*calibration.failures, *(f for r in records.values() for f in r.failures)]
    cells = measure.cells_left(nested.plan, failures)
    todo = [number for number in range(1, ROUNDS + 1) if number not in records]
    nested.observer.stage_started("explain", len(todo))
    for number in range(1, ROUNDS + 1):
        if number not in records:
            record = measure.measure_round(nested, calibration, number, failures, cells)
            failures += record.failures
            cells = measure.cells_left(nested.plan, failures)
        _profile_round(nested, calibration, profiler, number, target.op)
        nested.observer.step("explain", f"{target.op} round {number}")
    screen = next(c for c in screened if (c.op, c.candidate) == (target.op, target.candidate) and c.finding)
    find_causes(nested, bench, attribution(bench.folder, folder, screen))


def _begun(folder: RunFolder) -> Explained | None:
    return read_explained(folder) if (folder.path / "explained.json").exists() else None


def _begin(bench: Bench, target: Target, folder: RunFolder, profiler: Profiler) -> Explained:
    """Build the twins, and store what this nested run measures."""
    parent = bench.plan
    pair = tuple(parent.environment(name) for name in (parent.baseline, target.candidate))
    probes = build_probes(bench.engine, pair, bench.around.builds, bench.observer)
    twins, without = _twins(target.op, parent.operation(target.op), tuple(probes.values()))
    if "native_core" in twins and (differs := _other_calls(bench, pair, target.op, probes)) is not None:
        twins.pop("native_core")
        twins.pop(TOGETHER, None)
        without["native_core"] = differs
    alone = parent.operation(target.op)
    if not alone.group.startswith("workload:"):
        alone = msgspec.structs.replace(alone, group=ALONE)
    plan = msgspec.structs.replace(
        parent,
        spec=msgspec.structs.replace(parent.spec, rounds=ROUNDS, max_rounds=ROUNDS, passes=PASSES),
        environments=pair,
        operations=(alone, *twins.values()),
    )
    explained = Explained(
        target=target,
        plan=plan,
        probes={name: probe for name, probe in probes.items() if isinstance(probe, ProbeBuild)},
        twins={layer: twin.name for layer, twin in twins.items()},
        without_twin=without,
        profiler=profiler,
    )
    folder.write_json("explained.json", "explained", EXPLAIN_SCHEMA, explained)
    return explained


def _twins(
    op: str, operation: Operation, probes: Sequence[ProbeBuild | BuildFailure]
) -> tuple[dict[str, Operation], dict[str, str]]:
    """Twins by layer, and for the layers without one the reason."""
    if operation.family != "sqlite" or find(op) is None or operation.group.startswith("workload:"):
        return {}, {"native_core": "only the built-in database operations have twins"}
    broken = next((probe.reason for probe in probes if isinstance(probe, BuildFailure)), None)
    twins: dict[str, Operation] = {}
    without: dict[str, str] = {}
    for layer, prefix in (("native_core", "core"), ("boundary", "boundary")):
        twin = find(f"{prefix}.{op}")
        reason = broken or _no_probe(layer, probes)
        if twin is None:
            without[layer] = f"{op} has no twin {prefix}.{op}"
        elif reason is not None:
            without[layer] = reason
        else:
            twins[layer] = msgspec.structs.replace(twin, group=TWINS)
    both = find(f"{TOGETHER}.{op}")
    if both is not None and not without:
        twins[TOGETHER] = msgspec.structs.replace(both, group=TWINS)
    return twins, without


def _other_calls(
    bench: Bench,
    pair: Sequence[Environment],
    op: str,
    probes: Mapping[str, ProbeBuild | BuildFailure],
) -> str | None:
    """Why the core loop does other work than the addon, on either side; counted once for each build."""
    for environment in pair:
        build = bench.around.builds.get(environment.id)
        if build is None or bench.around.mailbox is None or environment.addon is None:
            continue
        bench.observer.activity(f"sqlite3 calls of {environment.id}")
        counted = count_sqlite_calls(
            bench.engine,
            environment.node,
            build,
            bench.around.mailbox,
            encrypted=environment.addon.encrypted,
            cipher=bench.plan.spec.cipher,
        )
        if isinstance(counted, SqliteCallsFailure):
            return counted.reason  # a twin that nobody has compared proves nothing
        if (differs := counted.difference(op)) is not None:
            return differs
        if _runs_otherwise(probes.get(environment.id), counted):
            return "the core loop reads names of columns at other times than the addon does"
    return None


def _runs_otherwise(probe: ProbeBuild | BuildFailure | None, counted: SqliteCalls) -> bool:
    """Whether the counted calls are those of another way to make rows than the one that is measured."""
    known = probe.row_builder if isinstance(probe, ProbeBuild) else None
    return known is not None and known != counted.row_builder


def _no_probe(layer: str, probes: Sequence[ProbeBuild | BuildFailure]) -> str | None:
    for probe in probes:
        if isinstance(probe, ProbeBuild):
            if layer == "native_core" and probe.core is None:
                return probe.core_reason or "the addon build has no SQLite of its own to link"
            if layer == "boundary" and probe.replay is None:
                return probe.reason or "the addon could not be built on a SQLite that plays recordings"
    return None


def _nested(bench: Bench, folder: RunFolder, explained: Explained) -> Bench:
    around = msgspec.structs.replace(bench.around, plan=explained.plan, probes=explained.probes)
    return msgspec.structs.replace(bench, around=around, folder=folder, host_control=_no_control)


def _no_control() -> None:
    """The screen has read the host control; here every second counts."""


def _profile_round(
    bench: Bench, calibration: measure.Calibration, profiler: Profiler, number: int, op: str
) -> None:
    """One profile for each environment, where there is none of this round yet."""
    if profiler.kind == "none":
        return
    paces = {pace.op: pace for pace in calibration.paces}
    if op not in paces:
        return
    group = bench.plan.operation(op).group
    for environment in bench.plan.environments:
        keep = profile_path(bench.folder, environment.id, number)
        if keep.with_name(keep.name + SUFFIX).exists():
            continue
        keep.parent.mkdir(parents=True, exist_ok=True)
        job = Invocation(
            round=number, position=0, environment=environment.id, twin=False, group=group, operations=(op,)
        )
        bench.observer.activity(f"profiling {op} on {environment.id}")
        reading = profile_invocation(
            bench.engine,
            bench.around,
            job,
            paces=paces,
            passes=PROFILE_PASSES,
            profiler=profiler,
            keep=keep,
        )
        if reading.unavailable is not None:
            bench.observer.warning(reading.unavailable)
