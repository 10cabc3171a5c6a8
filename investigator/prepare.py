"""Exact releases to a plan: builds that load, the operations, and the data they work on."""

import itertools
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from investigator import (
    addons,
    build,
    cache,
    operations,
    probes,
    resources,
    selection,
    workloads,
)
from investigator.build import AddonBuild, BuildFailure
from investigator.engine.interface import Engine, Task
from investigator.errors import EngineMissingError, NothingBuiltError, StoredFileError, UsageError
from investigator.inputs import addon_requests, fix_request, from_here, own_addon
from investigator.nodes import describe, layout, sources
from investigator.nodes.interface import NodeBuild
from investigator.observer import Observer
from investigator.plan import Environment, Failure, Plan, find_baseline
from investigator.probes import ProbeBuild
from investigator.resolve import Resolved, ResolvedAddon, environment_of, refuse_equal, refuse_mixed_ciphers
from investigator.spec import ARMS, Spec, with_patch
from investigator.store import RunFolder
from sqlcipher_bench.mailbox import write_mailbox

PLAN_SCHEMA = 1
MAX_ADDON_TRIES = 4
OLDEST_NODE = (14, 13, 1)
"""The worker is an ES module that imports by ``node:``, with private methods and ``?.``."""


class StoredPlan(msgspec.Struct, frozen=True, kw_only=True):
    """plan.json: the plan and the builds it runs."""

    plan: Plan
    builds: dict[str, AddonBuild]
    build_failures: dict[str, BuildFailure]
    failures: tuple[Failure, ...]
    """Environments that could not be built or do not load, and workload files that do not."""


class _Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one addon release."""

    environments: tuple[Environment, ...]
    builds: dict[str, AddonBuild]
    broken: dict[str, BuildFailure]


def fetch(resolved: Resolved, engine: Engine, observer: Observer) -> tuple[NodeBuild, ...]:
    """Have the Node builds on disk, verified and described by themselves."""
    observer.stage_started("fetch", len(resolved.nodes))
    return sources.fetch_all(
        resolved.nodes,
        lambda directory: describe.describe_node(engine, directory),
        sources.platform_for(engine.name),
        observer,
    )


def prepare(
    spec: Spec, resolved: Resolved, folder: RunFolder, engine: Engine, observer: Observer
) -> StoredPlan:
    """Fetch, build and plan; a run that already has a plan keeps it and only checks its builds."""
    if (folder.path / "plan.json").exists():
        return _rebuilt(folder, engine, observer)
    spec = from_here(spec, folder)
    nodes = fetch(resolved, engine, observer)
    measured = _selection(spec, nodes, folder, engine)
    _check_targets(spec, [operation.name for operation in measured.operations])
    environments, builds, broken = make_environments(
        with_patch(spec, lambda name: str(folder.path / Path(name).name)),
        nodes,
        engine,
        observer,
        resolved.addons,
    )
    logs = _keep_logs(folder, broken)
    if len(broken) == len(environments):
        raise NothingBuiltError(_failed("nothing could be built", next(iter(broken)), broken, logs))
    if spec.fix is not None and environments[0].id in broken:
        raise NothingBuiltError(_failed("the baseline does not work", environments[0].id, broken, logs))
    plan = Plan(
        spec=spec,
        run_id=folder.name,
        environments=environments,
        baseline=_baseline(spec, environments, broken, logs, observer),
        operations=measured.operations,
    )
    failures = (
        *(
            Failure(environment=identifier, op=None, stage="build", reason=failure.reason)
            for identifier, failure in broken.items()
        ),
        *_refused_cells(measured, [e.id for e in environments if e.id not in broken], observer),
    )
    stored = StoredPlan(plan=plan, builds=builds, build_failures=broken, failures=failures)
    folder.write_json("plan.json", "plan", PLAN_SCHEMA, stored)
    return stored


def _check_targets(spec: Spec, measured: Sequence[str]) -> None:
    """Refuse a fix for an operation that is not measured."""
    missing = [name for name in (spec.fix.ops if spec.fix else ()) if name not in measured]
    if missing:
        raise UsageError(
            f"--op {missing[0][:80]!r} is not among the operations of this run ({', '.join(measured)[:400]})."
        )


def probes_of(stored: StoredPlan, engine: Engine, observer: Observer) -> dict[str, ProbeBuild]:
    """Probes for the environments of a plan whose own operations need them; usually none does."""
    plan = stored.plan
    if not any(operation.family in operations.BY_NAME_ONLY for operation in plan.operations):
        return {}
    usable = [environment for environment in plan.environments if environment.id not in stored.build_failures]
    made = probes.build_probes(engine, usable, stored.builds, observer)
    for identifier, outcome in made.items():
        if isinstance(outcome, BuildFailure):
            observer.warning(f"{identifier} has no probes: {outcome.reason}")
    return {name: outcome for name, outcome in made.items() if isinstance(outcome, ProbeBuild)}


def _selection(
    spec: Spec, nodes: Sequence[NodeBuild], folder: RunFolder, engine: Engine
) -> selection.Selection:
    """What is measured; the user's files are read by the first Node that loads them."""
    directories = tuple(dict.fromkeys(node.directory for node in nodes))
    place = folder.path / "workloads"
    return selection.select(
        spec,
        lambda file: workloads.read_workload(engine, directories, fixtures(), place, file, spec.command),
    )


def _refused_cells(
    measured: selection.Selection, environments: Sequence[str], observer: Observer
) -> Iterator[Failure]:
    """A failed cell in every environment for each workload file that no Node loads."""
    for op, reason in measured.refused.items():
        observer.warning(f"the workload {op} is left out: {reason}")
        for identifier in environments:
            yield Failure(environment=identifier, op=op, stage="load", reason=reason)


def make_environments(
    spec: Spec,
    nodes: Sequence[NodeBuild],
    engine: Engine,
    observer: Observer,
    compared: Sequence[ResolvedAddon] = (),
) -> tuple[tuple[Environment, ...], dict[str, AddonBuild], dict[str, BuildFailure]]:
    """Environments with their builds: `nodes` under one addon release, or the compared addons on one Node.

    Where the release is left open it is the newest that loads on most of the Node versions. An environment
    that breaks, under every release that is tried, alone is lost. It may be that nothing works at all; then
    every environment has its failure.

    Raises:
        UsageError: no such package or release, or a patch that does not apply.
        EngineMissingError: the engine has no compiler, or does not answer any more.
        HostUnfitError: the registry does not answer, or the disk is full.
        StoredFileError: `compared` does not belong to this spec.
    """
    if spec.command == "js":
        bare = tuple(environment_of(spec, node, None, None) for node in nodes)
        unfit = {e.id: BuildFailure(reason=reason) for e in bare if (reason := _unfit(e)) is not None}
        _warn(unfit, observer)
        return bare, {}, unfit
    requests = addon_requests(spec)
    if any(request.name != addons.NODE_SQLITE for request in requests) and not spec.prebuilt:
        _require_toolchain(engine)
    if spec.axis == "addon":
        found = _compared(spec, requests, compared, nodes, observer)
        made = _attempt(tuple(_with_fix(spec, e, observer) for e in found), engine, observer)
    elif spec.fix is not None and spec.fix.kind != "node":
        if spec.fix.kind == "patch":
            # Whether it applies to the first choice is known before anything is compiled.
            first = next(addons.usable_packages(requests[0], nodes, observer))
            _with_fix(spec, environment_of(spec, nodes[-1], first, None), observer)
        # The release is chosen without the fix, whose build may fail whatever the release.
        made = _best_release(spec, requests[0], nodes[:-1], engine, observer)
        plain = environment_of(spec, nodes[-1], made.environments[-1].addon, None)
        made = _joined(made, _attempt((_with_fix(spec, plain, observer),), engine, observer))
    else:
        made = _best_release(spec, requests[0], nodes, engine, observer)
    _warn(made.broken, observer)
    return made.environments, made.builds, made.broken


def _warn(broken: Mapping[str, BuildFailure], observer: Observer) -> None:
    for identifier, failure in broken.items():
        observer.warning(f"{identifier}: {failure.reason}")


def _unfit(environment: Environment) -> str | None:
    """Why nothing can be built for, or measured on, a Node, known without trying."""
    node = environment.node
    if tuple(map(int, node.version.partition("-")[0].split("."))) < OLDEST_NODE:
        oldest = ".".join(map(str, OLDEST_NODE))
        return (
            f"Node {node.version} is too old for the worker, which is an ES module with imports by `node:`; "
            f"{oldest} is the oldest that can be measured."
        )
    addon = environment.addon
    compiled = environment.flavor == "source" and addon is not None and addon.kind == "package"
    # Other sources refuse a build without headers as a whole.
    if compiled and node.source == "image" and not layout.has_headers(node.directory):
        return (
            f"the image of Node {node.version} has no headers (include/node), so no addon can be compiled "
            "for it; use one that is not slimmed down, or --prebuilt."
        )
    return None


def _best_release(
    spec: Spec, request: addons.AddonRequest, nodes: Sequence[NodeBuild], engine: Engine, observer: Observer
) -> _Attempt:
    """The release with the fewest broken environments, the newest of equals."""
    best: _Attempt | None = None
    packages = addons.usable_packages(request, nodes, observer)
    for package in itertools.islice(packages, MAX_ADDON_TRIES):
        environments = tuple(environment_of(spec, node, package, None) for node in nodes)
        attempt = _attempt(environments, engine, observer)
        if best is None or len(attempt.broken) < len(best.broken):
            best = attempt
        if not attempt.broken or request.is_exact:
            break
        reason = next(iter(attempt.broken.values())).reason
        observer.note(f"{package.name} {package.version} does not work everywhere ({reason})")
    if best is None:
        raise NothingBuiltError(f"no release of {request.name} can be tried on these versions of Node.")
    return best


def _joined(one: _Attempt, other: _Attempt) -> _Attempt:
    return _Attempt(
        environments=(*one.environments, *other.environments),
        builds={**one.builds, **other.builds},
        broken={**one.broken, **other.broken},
    )


def _with_fix(spec: Spec, environment: Environment, observer: Observer) -> Environment:
    """The environment labelled ``fix`` with the addon or patch that is judged; others as they are.

    Raises:
        UsageError: no such addon, or a patch that does not apply.
    """
    fix, package = spec.fix, environment.addon
    if fix is None or environment.label != ARMS[-1] or package is None:
        return environment
    if own_addon(spec):
        own = next(addons.usable_packages(fix_request(spec), [environment.node], observer))
        encrypted = {f"{p.name} {p.version}": p.encrypted for p in (package, own)}
        refuse_mixed_ciphers(spec, encrypted)
        package = own
    elif fix.kind == "patch":
        try:
            package = addons.patched(package, fix.build, f"--fix {fix.name or 'patch'}")
        except UsageError as error:
            release = f"{package.name} {package.version}"
            raise UsageError(
                f"{error} (tried on {release}; name the release that it is made for with --addon)"
            ) from error
    else:
        return environment
    return environment_of(spec, environment.node, package, environment.label)


def _compared(
    spec: Spec,
    requests: Sequence[addons.AddonRequest],
    compared: Sequence[ResolvedAddon],
    nodes: Sequence[NodeBuild],
    observer: Observer,
) -> tuple[Environment, ...]:
    """One environment for each of the addons that are compared, in their order."""
    if [request.label for request in requests] != [addon.label for addon in compared] or len(nodes) != 1:
        raise StoredFileError(
            "resolved.json names other addons than spec.toml; start again with `investigate run spec.toml`."
        )
    environments = []
    for request, addon in zip(requests, compared, strict=True):
        registered = request.name not in {addons.NODE_SQLITE, "path:"}
        exact = msgspec.structs.replace(request, selector=addon.version) if registered else request
        package = next(addons.usable_packages(exact, nodes, observer))
        environments.append(environment_of(spec, nodes[0], package, request.label))
    found = [(e.label, e.addon) for e in environments if e.addon is not None]
    refuse_equal([(label, f"{addon.name} {addon.version}") for label, addon in found])
    refuse_mixed_ciphers(spec, {f"{addon.name} {addon.version}": addon.encrypted for _, addon in found})
    return tuple(environments)


def one_environment(
    spec: Spec,
    node: NodeBuild,
    package: addons.AddonPackage | None,
    engine: Engine,
    observer: Observer,
    *,
    borrowed: AddonBuild | None = None,
) -> tuple[Environment, AddonBuild | BuildFailure | None]:
    """One more environment of a run, with its build or why it has none; None where it needs none.

    `borrowed` is a build for the headers of another release of the same ABI, taken where it loads.
    """
    environment = environment_of(spec, node, package, None)
    if borrowed is not None:
        refused = _refused(engine, environment, borrowed)
        return environment, borrowed if refused is None else BuildFailure(reason=refused)
    attempt = _attempt((environment,), engine, observer)
    return environment, attempt.broken.get(environment.id) or attempt.builds.get(environment.id)


def _require_toolchain(engine: Engine) -> None:
    """Look for the compiler before downloads and builds that need it.

    Raises:
        EngineMissingError: naming what to install.
    """
    missing = [] if build.compiler_of(engine) else ["g++"]
    if engine.name == "local":
        missing += [name for name in ("make", "python3") if not _answers(engine, name)]
    if not missing:
        return
    names = " and ".join((", ".join(missing[:-1]), missing[-1]) if missing[1:] else missing)
    if engine.name == "docker":
        raise EngineMissingError(f"the base image has no {names}; choose one that has with --base-image.")
    raise EngineMissingError(
        f"the addon cannot be compiled, because this machine has no {names}: install g++, make and python3 "
        "(Debian: `apt install g++ make python3`), or take a shipped binary with --prebuilt."
    )


def _answers(engine: Engine, program: str) -> bool:
    task = Task(command=(program, "--version"), purpose=f"ask for {program}", timeout_s=build.PROBE_TIMEOUT_S)
    return engine.run(task).ok


def _attempt(environments: tuple[Environment, ...], engine: Engine, observer: Observer) -> _Attempt:
    """Build and load-test; what fails is a value with its reason."""
    unfit = {e.id: reason for e in environments if (reason := _unfit(e)) is not None}
    results = build.build_all(engine, [e for e in environments if e.id not in unfit], observer=observer)
    pool = ThreadPoolExecutor()
    try:
        reasons = list(
            pool.map(lambda e: unfit.get(e.id) or _refused(engine, e, results.get(e.id)), environments)
        )
    finally:
        # Not waiting: after ^C the caller closes the engine, which ends what still runs.
        pool.shutdown(wait=False, cancel_futures=True)
    builds: dict[str, AddonBuild] = {}
    broken: dict[str, BuildFailure] = {}
    for environment, reason in zip(environments, reasons, strict=True):
        result = results.get(environment.id)
        if isinstance(result, BuildFailure):
            broken[environment.id] = result
        elif reason is not None:
            broken[environment.id] = BuildFailure(reason=reason)
        elif result is not None:
            builds[environment.id] = result
    return _Attempt(environments=environments, builds=builds, broken=broken)


def _refused(
    engine: Engine, environment: Environment, result: AddonBuild | BuildFailure | None
) -> str | None:
    """Why the addon does not work there: known without trying, else from a load test."""
    addon = environment.addon
    known = None if addon is None else addons.refusal(addon, environment.node)
    if known is not None or addon is None or not isinstance(result, AddonBuild):
        return known
    return build.load_test(engine, environment.node, result, encrypted=addon.encrypted)


def _baseline(
    spec: Spec,
    environments: Sequence[Environment],
    broken: Mapping[str, BuildFailure],
    logs: Mapping[str, Path],
    observer: Observer,
) -> str:
    """The baseline; where the first version was only taken by default and failed, the next that works.

    Raises:
        NothingBuiltError: the baseline that was asked for does not work, so nothing could be compared.
    """
    wanted = find_baseline(environments, spec.baseline, spec.axis, items=spec.items)
    if wanted not in broken:
        return wanted
    if spec.baseline is not None:
        sentence = _failed(f"the baseline {wanted} does not work", wanted, broken, logs)
        raise NothingBuiltError(f"{sentence}; choose another with --baseline, or another --addon release.")
    instead = next(e.id for e in environments if e.id not in broken)
    observer.warning(f"{wanted} cannot be the baseline because it does not work; {instead} is, instead.")
    return instead


def _failed(what: str, identifier: str, broken: Mapping[str, BuildFailure], logs: Mapping[str, Path]) -> str:
    log = f" (log: {logs[identifier]})" if identifier in logs else ""
    return f"{what}: {broken[identifier].reason}{log}"


def _rebuilt(folder: RunFolder, engine: Engine, observer: Observer) -> StoredPlan:
    """The plan of an interrupted run, with builds that are certainly there."""
    stored = folder.read_json("plan.json", "plan", PLAN_SCHEMA, StoredPlan)
    usable = [e for e in stored.plan.environments if e.id not in stored.build_failures]
    for environment in usable:
        cache.hold(environment.node.directory)
        if environment.addon is not None and environment.addon.directory is not None:
            cache.hold(environment.addon.directory.parent)
        if not (environment.node.directory / "bin/node").exists():
            raise StoredFileError(
                f"the cache no longer has Node {environment.node.version}; start again with "
                f"`investigate run {folder.path / 'spec.toml'}`."
            )
    results = build.build_all(engine, usable, observer=observer)
    for identifier, known in stored.builds.items():
        found = results.get(identifier)
        if not isinstance(found, AddonBuild) or found.binding_sha256 != known.binding_sha256:
            raise StoredFileError(
                f"the build of {identifier} is not the one this run began with; start again with "
                f"`investigate run {folder.path / 'spec.toml'}`."
            )
    return stored


def _keep_logs(folder: RunFolder, broken: Mapping[str, BuildFailure]) -> dict[str, Path]:
    """Copy the logs of failed builds into the run folder; returns where, by environment."""
    kept: dict[str, Path] = {}
    for number, (identifier, failure) in enumerate(broken.items()):
        if failure.log is not None and failure.log.is_file():
            kept[identifier] = folder.write(f"builds/failed-{number}.log", failure.log.read_bytes())
    return kept


def fixtures() -> Path:
    """The packaged folders in the cache, readable for the unprivileged user of the tasks."""

    def fill(directory: Path) -> None:
        for name in resources.FOLDERS:
            shutil.copytree(
                resources.root() / name,
                directory / name,
                ignore=shutil.ignore_patterns("__pycache__"),
            )

    return cache.filled("fixtures", resources.digest()[:32], fill)


def mailbox(seed: int) -> Path:
    """The generated mailbox for a seed, from the cache."""
    key = f"seed{seed}-{resources.digest('sqlcipher_bench/mailbox.py')[:16]}"
    return (
        cache.filled(
            "mailbox",
            key,
            lambda directory: write_mailbox(directory / "mailbox.dat", seed=seed),
            key_files=("mailbox.dat",),
        )
        / "mailbox.dat"
    )
