"""From a screen of the self-test to a run folder like any other: environments, plan, rounds, verdicts."""

import time
from collections.abc import Mapping, Sequence

import msgspec

from investigator import addons, build, resources
from investigator.addons import AddonPackage
from investigator.build import AddonBuild, BuildFailure
from investigator.engine.interface import Engine
from investigator.errors import NothingBuiltError
from investigator.measure import Bench, read_rounds
from investigator.nodes.interface import NodeBuild
from investigator.observer import Observer
from investigator.operations import Operation, find
from investigator.plan import Environment, Plan, environment_id
from investigator.prepare import PLAN_SCHEMA, StoredPlan
from investigator.records import analyse_records
from investigator.results import RUN_SCHEMA, Finished, regenerate, with_costs
from investigator.rounds import learn_pace, run_rounds
from investigator.selftest.places import FOLDER, NOTHING, Patch, Place, variables
from investigator.spec import CIPHER_ADDON, Command, Spec, dump_spec
from investigator.store import RunFolder
from investigator.workflow import set_up

ADDON = CIPHER_ADDON
VERSION = "12.11.1"
"""The patches are made for the sources of this release."""
BASELINE = "unchanged"
BUDGET_MIN = 60.0
"""The number of rounds is the limit of a screen, as it is in a default run of two versions."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One environment of a screen beside its baseline."""

    label: str
    place: Place
    millionths: int
    """Units of work for each event, times 1,000,000; 0 where the place has no variable, or plants nothing."""


class Workshop:
    """The engine with the Node build and, made when they are asked for, the builds of the addon."""

    def __init__(self, engine: Engine, node: NodeBuild, observer: Observer) -> None:
        self.engine = engine
        self.node = node
        self.observer = observer
        self._packages: dict[Patch | None, AddonPackage] = {}
        self._builds: dict[Patch | None, AddonBuild] = {}

    def package(self, patch: Patch | None) -> AddonPackage:
        """The addon with a patch, or as it is.

        Raises:
            UsageError: the patch does not apply.
            HostUnfitError: the registry does not answer.
        """
        if patch not in self._packages:
            plain = addons.fetch_addon(ADDON, VERSION, self.observer)
            file = None if patch is None else str(resources.root() / FOLDER / f"{patch}.patch")
            self._packages[patch] = addons.patched(plain, file)
        return self._packages[patch]

    def build(self, patch: Patch | None) -> AddonBuild:
        """Its build.

        Raises:
            NothingBuiltError: it does not compile or load.
        """
        if patch not in self._builds:
            shown = f"{ADDON} {VERSION} with {patch or 'no'} patch"
            package = self.package(patch)
            wanted = environment(self.node, package, BASELINE, NOTHING, 0)
            made = build.build_all(self.engine, (wanted,), observer=self.observer)[wanted.id]
            if isinstance(made, BuildFailure):
                raise NothingBuiltError(f"{shown} cannot be built: {made.reason}")
            if (refused := build.load_test(self.engine, self.node, made)) is not None:
                raise NothingBuiltError(f"{shown} {refused}")
            self._builds[patch] = made
        return self._builds[patch]


def environment(
    node: NodeBuild, package: AddonPackage | None, label: str, place: Place, millionths: int
) -> Environment:
    """One side of a trial. Its label makes it unique; the variables would make its name endless."""
    return Environment(
        id=environment_id(node, package, "source", label=label),
        label=label,
        node=node,
        addon=package,
        node_flags=place.node_flags,
        variables=variables(place, millionths),
    )


def screen_plan(
    workshop: Workshop,
    *,
    run_id: str,
    op: str,
    seed: int,
    command: Command,
    patch: Patch,
    candidates: Sequence[Candidate],
    rounds: tuple[int, int] = (8, 16),
) -> StoredPlan:
    """Plan and builds of a screen: one operation, a baseline with nothing planted, and the candidates.

    Args:
        workshop: has the builds.
        run_id: name of the run.
        op: a built-in operation.
        seed: of the order of the invocations, and of the data.
        command: ``js`` screens have no addon.
        patch: of the addon; with ``sized`` the baseline has it as well, at size 0.
        candidates: what is compared with the baseline.
        rounds: before the first look, and in all.
    """
    with_addon = command == "sqlite"
    low = None if patch == "o1" else patch
    sides = [(BASELINE, NOTHING, 0, low)] + [
        (c.label, c.place, c.millionths, low if c.place is NOTHING else patch) for c in candidates
    ]
    environments, builds = [], {}
    for label, place, millionths, applied in sides:
        package = workshop.package(applied) if with_addon else None
        made = environment(workshop.node, package, label, place, millionths)
        environments.append(made)
        if with_addon:
            builds[made.id] = workshop.build(applied)
    spec = Spec(
        command=command,
        versions=(workshop.node.version,),
        addon=f"{ADDON}@{VERSION}",
        ops=(op,),
        rounds=rounds[0],
        max_rounds=rounds[1],
        budget_min=BUDGET_MIN,
        seed=seed,
    )
    plan = Plan(
        spec=spec,
        run_id=run_id,
        environments=tuple(environments),
        baseline=environments[0].id,
        operations=(_operation(op),),
    )
    return StoredPlan(plan=plan, builds=builds, build_failures={}, failures=())


def _operation(name: str) -> Operation:
    found = find(name)
    assert found is not None  # noqa: S101 - the places name built-in operations
    return found


def measure(
    stored: StoredPlan, folder: RunFolder, engine: Engine, observer: Observer
) -> tuple[Bench, Finished]:
    """Measure a screen, or what is left of it, and give the verdicts.

    Raises:
        InvestigateError: with what was measured until then in the folder.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    if (folder.path / "plan.json").exists():
        stored = folder.read_json("plan.json", "plan", PLAN_SCHEMA, StoredPlan)
    else:
        folder.write("spec.toml", dump_spec(stored.plan.spec))
        folder.write_json("plan.json", "plan", PLAN_SCHEMA, stored)
    bench, record = set_up(stored, folder, engine, observer)
    calibration = learn_pace(bench, ())
    clock, cpu = time.monotonic(), time.process_time()
    if run_rounds(bench, calibration) > 0:
        share = (time.process_time() - cpu) / max(time.monotonic() - clock, 1e-9)
        folder.write_json("run.json", "run", RUN_SCHEMA, with_costs(record, folder, stored.plan, share))
    # The screen's own verdicts: the explain phase of an earlier session may have published others.
    screen = analyse_records(folder, stored.plan, calibration, read_rounds(folder))
    return bench, msgspec.structs.replace(regenerate(folder, write=True, draw=False), analysis=screen)


def measuring_s(folder: RunFolder) -> float:
    """Length of all finished rounds of a screen."""
    return sum(record.elapsed_s for record in read_rounds(folder))


def identifiers(stored: StoredPlan) -> Mapping[str, str]:
    """Label to identifier of the environments."""
    return {environment.label or "": environment.id for environment in stored.plan.environments}
