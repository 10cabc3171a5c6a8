"""Experiments on an explained finding: what differs in source and build, and what exchanging it does.

In the nested folder of the finding: ``causes.json`` with what was compared, and a nested run for each
experiment (``swaps/``, ``one-cpu/``); the patches of the swaps lie in ``swap-1/`` and so on, ablations in the
run's own ``ablation/``.
"""

from collections.abc import Sequence

import msgspec

from investigator import measure
from investigator.ablate import ablate
from investigator.attribution.layers import Attribution
from investigator.build import AddonBuild, BuildFailure, build_addon, build_all, load_test
from investigator.causes.build import compare_builds
from investigator.causes.changes import changes_between
from investigator.causes.flags import FlagKind, read_flags
from investigator.causes.rebuild import Attempt, Rebuild, plan_rebuilds
from investigator.causes.source import SourceComparison, SourceRegion, compare_sources, on_profile
from investigator.causes.swap import NoSwap, PathSwap, groups, plan_swaps, shared_binary
from investigator.host import usable_cpus
from investigator.measure import Bench
from investigator.plan import Environment, Plan
from investigator.rounds import learn_pace
from investigator.store import RunFolder
from investigator.tested import CAUSES_SCHEMA, ONE_CPU, CausesRecord, SwapRun

ROUNDS = 6
"""Of each experiment; the exact interval then holds 96.9 %."""
MOST_SWAPS = 2
SWAPS = "swaps"
GC_SHARE = 0.25
"""Part of a change in pauses from which the collector is a suspect: what it does costs time elsewhere too."""


def find_causes(nested: Bench, parent: Bench, found: Attribution) -> None:
    """Look for the cause of one explained finding; what has been done already is kept."""
    if not found.recurred:
        return
    folder, pair = nested.folder, nested.plan.environments
    if not (folder.path / "causes.json").exists():
        folder.write_json("causes.json", "causes", CAUSES_SCHEMA, _compared(nested, pair, found))
    record = folder.read_json("causes.json", "causes", CAUSES_SCHEMA, CausesRecord)
    for name in dict.fromkeys(swap.folder for swap in record.to_measure):
        _swap(nested, found.op, name, [swap for swap in record.to_measure if swap.folder == name])
    kind = _flag_kind(found)
    if kind is not None:
        _one_cpu(nested, found.op)
        ablate(parent, found.op, found.candidate, kinds=(kind,))


def _flag_kind(found: Attribution) -> FlagKind | None:
    """Collector and engine have flags; a finding that the profile alone puts there is worth the try."""
    likely = {found.layer, *(method.largest for method in found.methods)}
    shares = [m.layers["gc"].share for m in found.methods if "gc" in m.layers]
    if "gc" in likely or any(share >= GC_SHARE for share in shares):
        return "gc"
    return "engine" if "engine" in likely else None


def _compared(bench: Bench, pair: Sequence[Environment], found: Attribution) -> CausesRecord:
    """Everything that can be said without measuring, and the swaps that are worth it."""
    baseline, candidate = pair
    builds = bench.around.builds
    made = [builds.get(environment.id) for environment in pair]
    source = compare_sources(bench.engine, baseline, candidate, builds)
    flags = (read_flags(bench.engine, baseline.node), read_flags(bench.engine, candidate.node))
    one, other = made
    compared, rebuilds = None, tuple[SwapRun, ...]()
    if one is not None and other is not None:
        compared = compare_builds(one, other, baseline.node, candidate.node)
        rebuilds = tuple(
            _rebuilt(bench, candidate, rebuild)
            for rebuild in plan_rebuilds(one, other, compared)
            if _acts_on(rebuild, found)
        )
    return CausesRecord(
        source=source,
        builds=compared,
        changes=changes_between(baseline.node, candidate.node, flags),
        swaps=tuple(_swaps(bench, baseline, candidate, source, found)),
        binary=_one_binary(bench, baseline, candidate),
        rebuilds=rebuilds,
    )


def _acts_on(rebuild: Rebuild, found: Attribution) -> bool:
    """Whether the layer that changed, or may have, is one that a rebuild could change."""
    likely = {found.layer, *(method.largest for method in found.methods)}
    if rebuild.name == "sqlite3.o":
        return not likely.isdisjoint({"native_core", "undivided", "mixed"})
    return not likely.issubset({"engine", "gc", "os"})


def _rebuilt(bench: Bench, candidate: Environment, rebuild: Rebuild) -> SwapRun:
    """The candidate with something of the baseline's build; the first attempt that compiles and loads."""
    environment = msgspec.structs.replace(candidate, id=f"{candidate.id}-rebuilt-{rebuild.name}")
    reasons = []
    for attempt in rebuild.attempts:
        bench.observer.activity(f"build {environment.id}")
        build = _built(bench, candidate, attempt)
        if isinstance(build, AddonBuild):
            return SwapRun(
                folder=SWAPS,
                regions=(),
                direction="old_on_new",
                environment=environment,
                build=build,
                what=attempt.what,
                layer="native_core" if rebuild.name == "sqlite3.o" else None,
            )
        reasons.append(build)
    return SwapRun(folder=SWAPS, regions=(), what=rebuild.attempts[0].what, reason="; ".join(reasons))


def _built(bench: Bench, candidate: Environment, attempt: Attempt) -> AddonBuild | str:
    """The rebuilt addon, or why there is none."""
    addon = candidate.addon
    if addon is None:
        return "there is no addon"
    build = build_addon(
        bench.engine, candidate.node, addon, candidate.flavor, substitution=attempt.substitution
    )
    if isinstance(build, BuildFailure):
        return build.reason
    refused = load_test(bench.engine, candidate.node, build, encrypted=addon.encrypted)
    return build if refused is None else f"the rebuilt addon {refused}"


def _one_binary(bench: Bench, baseline: Environment, candidate: Environment) -> SwapRun | None:
    """The baseline's binary on the candidate's Node; only Node-API loads on both."""
    if baseline.node.node_sha256 == candidate.node.node_sha256:
        return None  # one Node, two addons: their binaries are what is compared
    shared = shared_binary(baseline, candidate, bench.around.builds)
    if isinstance(shared, NoSwap):
        return None
    return SwapRun(
        folder=SWAPS,
        regions=(),
        direction="old_on_new",
        environment=shared.environment,
        build=shared.build,
    )


def _swaps(
    bench: Bench,
    baseline: Environment,
    candidate: Environment,
    source: SourceComparison,
    found: Attribution,
) -> list[SwapRun]:
    """One swap for each group of regions that the profile shows; the first direction that compiles."""
    seen = tuple(symbol.name for symbol in found.symbols) + found.addon_functions
    runs: list[SwapRun] = []
    for number, regions in enumerate(groups(source.regions), start=1):
        if len(runs) < MOST_SWAPS and any(on_profile(region, seen) for region in regions):
            runs.append(_one_swap(bench, baseline, candidate, regions, f"swap-{number}"))
    return runs


def _one_swap(
    bench: Bench, baseline: Environment, candidate: Environment, regions: Sequence[SourceRegion], name: str
) -> SwapRun:
    place = bench.folder.path / name
    place.mkdir(parents=True, exist_ok=True)
    reasons = []
    for planned in plan_swaps(regions, baseline, candidate, place):
        if isinstance(planned, NoSwap):
            reasons.append(planned.reason)
            continue
        swapped = planned.environment
        build = build_all(bench.engine, [swapped], observer=bench.observer)[swapped.id]
        if isinstance(build, AddonBuild):
            return _made(planned, build)
        reasons.append(_said(planned, build))
    return SwapRun(folder=SWAPS, regions=tuple(regions), reason="; ".join(reasons))


def _made(planned: PathSwap, build: AddonBuild) -> SwapRun:
    return SwapRun(
        folder=SWAPS,
        regions=planned.regions,
        direction=planned.direction,
        environment=planned.environment,
        build=build,
    )


def _said(planned: PathSwap, build: BuildFailure) -> str:
    return f"{planned.direction.replace('_', ' ')} does not compile ({build.reason})"


def _swap(bench: Bench, op: str, name: str, swaps: Sequence[SwapRun]) -> None:
    """The pair and every swap in the same rounds: one pair serves them all."""
    made = {s.environment.id: s.build for s in swaps if s.environment is not None and s.build is not None}
    around = msgspec.structs.replace(bench.around, builds={**bench.around.builds, **made})
    environments = (*bench.plan.environments, *(s.environment for s in swaps if s.environment is not None))
    plan = msgspec.structs.replace(bench.plan, environments=environments)
    _measured(msgspec.structs.replace(bench, around=around), plan, op, name)


def _one_cpu(bench: Bench, op: str) -> None:
    """The pair on one processor: where collector and compiler threads cannot work beside the main thread."""
    cpus = usable_cpus()
    if len(cpus) < 2:
        return
    spec = msgspec.structs.replace(bench.plan.spec, cpus=str(min(cpus)))
    _measured(bench, msgspec.structs.replace(bench.plan, spec=spec), op, ONE_CPU)


def _measured(bench: Bench, plan: Plan, op: str, name: str) -> None:
    """A nested run of one operation, whatever of it has not been measured yet."""
    folder = RunFolder(bench.folder.path / name)
    folder.path.mkdir(parents=True, exist_ok=True)
    plan = msgspec.structs.replace(plan, operations=(plan.operation(op),))
    around = msgspec.structs.replace(bench.around, plan=plan, probes={})
    inner = msgspec.structs.replace(bench, around=around, folder=folder)
    calibration = learn_pace(inner, ())
    folder.write_json("experiment.json", "experiment", CAUSES_SCHEMA, plan)
    done = {record.number for record in measure.read_rounds(folder)}
    failures = list(calibration.failures)
    pair = {environment.id for environment in bench.plan.environments}
    inner.observer.stage_started(name, ROUNDS - len(done))
    for number in sorted(set(range(1, ROUNDS + 1)) - done):
        cells = measure.cells_left(plan, failures)
        if not pair <= set(cells) or len(cells) < min(len(plan.environments), 3):
            return  # a side that fails compares with nothing
        failures += measure.measure_round(inner, calibration, number, failures, cells).failures
        inner.observer.step(name, f"round {number}")
