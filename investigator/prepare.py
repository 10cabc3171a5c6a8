"""Spec to plan: exact releases, builds that load, the operations, and the data they work on."""

import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from investigator import addons, build, cache, operations, resources, workloads
from investigator.build import AddonBuild, BuildFailure
from investigator.engine.interface import Engine
from investigator.errors import NothingBuiltError, StoredFileError, UsageError
from investigator.nodes import describe, parse, sources
from investigator.nodes.interface import NodeBuild, ResolvedNode
from investigator.observer import Observer
from investigator.operations import Operation
from investigator.plan import Environment, Failure, Plan, environment_id, find_baseline
from investigator.spec import Flavor, Spec
from investigator.store import RunFolder
from sqlcipher_bench.mailbox import write_mailbox

PLAN_SCHEMA = 1
RESOLVED_SCHEMA = 1
MAX_ADDON_TRIES = 4


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """resolved.json: the exact releases, kept so that a resumed run takes the same ones."""

    nodes: tuple[ResolvedNode, ...]


class StoredPlan(msgspec.Struct, frozen=True, kw_only=True):
    """plan.json: the plan and the builds it runs."""

    plan: Plan
    builds: dict[str, AddonBuild]
    build_failures: dict[str, BuildFailure]
    failures: tuple[Failure, ...]
    """Environments that could not be built or do not load."""


def new_run_id(spec: Spec) -> str:
    """``20261130-181500-sqlite-3f9a``: sortable, readable, unique."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{spec.command}-{secrets.token_hex(2)}"


def keep_inputs(spec: Spec, folder: RunFolder) -> Spec:
    """Copy workloads and patch into the run folder; the stored spec names the copies."""
    names = workloads.copy_workloads(spec.workloads, folder.path / "workloads") if spec.workloads else ()
    patch = None
    if spec.patch is not None:
        try:
            patch = folder.write("addon.patch", Path(spec.patch).expanduser().read_bytes()).name
        except OSError as error:
            raise UsageError(f"--patch {spec.patch[:200]} cannot be read: {error.strerror}.") from error
    return msgspec.structs.replace(spec, workloads=tuple(f"workloads/{n}" for n in names), patch=patch)


def resolve(spec: Spec, observer: Observer) -> Resolved:
    """Bind ``--versions`` to exact releases; nothing is downloaded or built yet.

    Raises:
        UsageError: a version or operation that does not exist, naming the nearest.
    """
    observer.stage_started("resolve")
    operations.choose(built_in(spec), families=families(spec))
    addons.parse_addon(spec.addon, spec.patch)
    requests = parse.parse_versions(spec.versions)
    platform = sources.platform_for("local" if spec.engine == "local" else "docker")
    return Resolved(nodes=sources.resolve_all(requests, platform, observer))


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
    nodes = fetch(resolved, engine, observer)
    environments, builds, broken = make_environments(spec, nodes, engine, observer)
    baseline = _baseline(spec, environments, broken, observer)
    plan = Plan(
        spec=spec,
        run_id=folder.name,
        environments=environments,
        baseline=baseline,
        operations=_operations(spec, nodes[0], folder, engine),
    )
    failures = tuple(
        Failure(environment=identifier, op=None, stage="build", reason=failure.reason)
        for identifier, failure in broken.items()
    )
    stored = StoredPlan(plan=plan, builds=builds, build_failures=broken, failures=failures)
    folder.write_json("plan.json", "plan", PLAN_SCHEMA, stored)
    _keep_logs(folder, broken)
    return stored


def built_in(spec: Spec) -> tuple[str, ...]:
    """Names in ``--ops`` that mean built-in operations."""
    return tuple(name for name in spec.ops if name != "none")


def families(spec: Spec) -> tuple[operations.Family, ...]:
    """Families that the command measures."""
    return ("js",) if spec.command == "js" else ("sqlite", "js")


def _operations(spec: Spec, node: NodeBuild, folder: RunFolder, engine: Engine) -> tuple[Operation, ...]:
    chosen = operations.choose(built_in(spec), families=families(spec))
    own = workloads.workload_operations(
        engine,
        node.directory,
        fixtures(),
        folder.path / "workloads",
        tuple(Path(name).name for name in spec.workloads),
        spec.command,
    )
    taken = {operation.name for operation in chosen}
    clash = next((operation.name for operation in own if operation.name in taken), None)
    if clash is not None:
        raise UsageError(f"the workload {clash} has the name of a built-in operation; rename it.")
    if not (*chosen, *own):
        raise UsageError("nothing would be measured; name operations with --ops or a file with --workload.")
    return (*chosen, *own)


def make_environments(
    spec: Spec, nodes: Sequence[NodeBuild], engine: Engine, observer: Observer
) -> tuple[tuple[Environment, ...], dict[str, AddonBuild], dict[str, BuildFailure]]:
    """Environments with their builds; the newest addon release that loads on all of them."""
    if spec.command == "js":
        return _pair(spec, nodes, None), {}, {}
    request = addons.parse_addon(spec.addon, spec.patch)
    tried: list[str] = []
    for package in addons.usable_packages(request, nodes, observer):
        environments = _pair(spec, nodes, package)
        builds, broken = _build(environments, engine, observer)
        if not broken or request.is_exact:
            break
        tried.append(f"{package.version}: {next(iter(broken.values())).reason}")
        observer.note(f"{package.name} {tried[-1]}; trying the next older release")
        if len(tried) == MAX_ADDON_TRIES:
            break
    else:
        raise NothingBuiltError(f"no release of {request.name} works on all versions ({tried[0]})")
    if not builds and package.kind == "package":
        raise NothingBuiltError(f"nothing could be built: {next(iter(broken.values())).reason}")
    return environments, builds, broken


def _pair(
    spec: Spec, nodes: Sequence[NodeBuild], package: addons.AddonPackage | None
) -> tuple[Environment, ...]:
    flavor: Flavor = "prebuilt" if spec.prebuilt else "source"
    return tuple(
        Environment(
            id=environment_id(node, package, flavor),
            label=node.label,
            node=node,
            addon=package,
            flavor=flavor,
            node_flags=spec.node_flags,
        )
        for node in nodes
    )


def _build(
    environments: Sequence[Environment], engine: Engine, observer: Observer
) -> tuple[dict[str, AddonBuild], dict[str, BuildFailure]]:
    """Build and load-test; what fails is a value with its reason."""
    results = build.build_all(engine, environments, observer=observer)
    with ThreadPoolExecutor() as pool:
        reasons = list(pool.map(lambda e: _refused(engine, e, results.get(e.id)), environments))
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
    for identifier, failure in broken.items():
        observer.warning(f"{identifier}: {failure.reason}")
    return builds, broken


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
    spec: Spec, environments: Sequence[Environment], broken: Mapping[str, BuildFailure], observer: Observer
) -> str:
    """The baseline; where the first version was only taken by default and failed, the next that works."""
    wanted = find_baseline(environments, spec.baseline)
    if spec.baseline is not None or wanted not in broken:
        return wanted
    instead = next((e.id for e in environments if e.id not in broken), wanted)
    observer.warning(f"{wanted} cannot be the baseline because it does not work; {instead} is, instead.")
    return instead


def _rebuilt(folder: RunFolder, engine: Engine, observer: Observer) -> StoredPlan:
    """The plan of an interrupted run, with builds that are certainly there."""
    stored = folder.read_json("plan.json", "plan", PLAN_SCHEMA, StoredPlan)
    usable = [e for e in stored.plan.environments if e.id not in stored.build_failures]
    for environment in usable:
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


def _keep_logs(folder: RunFolder, broken: Mapping[str, BuildFailure]) -> None:
    for number, failure in enumerate(broken.values()):
        if failure.log is not None and failure.log.is_file():
            folder.write(f"builds/failed-{number}.log", failure.log.read_bytes())


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
