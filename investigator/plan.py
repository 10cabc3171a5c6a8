"""What will be measured, as pure data: spec + seed, printable before anything runs.

Words: an *arm* is an environment as it is scheduled (the baseline is scheduled twice a round, the second
arm being the A/A twin); a *group* is the set of operations that share a process.
"""

import random
from collections.abc import Mapping, Sequence

import msgspec

from investigator.addons import AddonPackage
from investigator.errors import UsageError
from investigator.nodes.interface import NodeBuild
from investigator.operations import Operation
from investigator.spec import Flavor, Spec


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """One Node build x one addon package x flavor x node flags."""

    id: str
    """``node24.11.1+bsm12.11.1``, prefixed by the label where one is given: ``a:node24.11.1+bsm12.11.1``."""
    label: str | None
    node: NodeBuild
    addon: AddonPackage | None
    """None in ``js`` runs."""
    flavor: Flavor = "source"
    node_flags: tuple[str, ...] = ()


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A cell, or a whole environment (`op` None), that could not be built or measured."""

    environment: str
    op: str | None
    stage: str
    """``build``, ``load``, ``setup``, ``measure`` or ``checksum``."""
    reason: str
    """One sentence with advice."""


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """One fresh process: the operations of one group in one environment in one round."""

    round: int
    """0 is the calibration; measured rounds count from 1."""
    position: int
    """Place in the round, from 0."""
    environment: str
    twin: bool
    """Whether this is the second arm of the baseline."""
    group: str
    operations: tuple[str, ...]
    """Order of setup and passes; equal for all arms of a round."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Calls per warm-up and per pass of one operation; from the calibration, then fixed for everybody."""

    op: str
    warmup_calls: int
    loops: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything decided before the first measurement."""

    spec: Spec
    run_id: str
    environments: tuple[Environment, ...]
    baseline: str
    """Identifier of the baseline environment."""
    operations: tuple[Operation, ...]

    def operation(self, name: str) -> Operation:
        """The operation of that name."""
        return next(operation for operation in self.operations if operation.name == name)

    def environment(self, identifier: str) -> Environment:
        """The environment of that identifier."""
        return next(environment for environment in self.environments if environment.id == identifier)


def environment_id(node: NodeBuild, addon: AddonPackage | None, flavor: Flavor) -> str:
    """Identifier of an environment, stable and readable: ``a:node24.11.1+bsm12.11.1-prebuilt``."""
    label = f"{node.label}:" if node.label else ""
    suffix = "" if addon is None else f"+{addon.short}"
    patched = f"-patch{addon.patch_sha256[:8]}" if addon is not None and addon.patch_sha256 else ""
    prebuilt = "-prebuilt" if addon is not None and flavor == "prebuilt" else ""
    return f"{label}node{node.version}{suffix}{patched}{prebuilt}"


def find_baseline(environments: Sequence[Environment], wanted: str | None) -> str:
    """Identifier of the environment with that label, version, major or identifier; the first for None.

    Raises:
        UsageError: no environment, or more than one, answers to `wanted`.
    """
    if wanted is None:
        return environments[0].id
    for matches in (
        [e for e in environments if wanted in {e.label, e.id}],
        [e for e in environments if e.node.version == wanted.removeprefix("v")],
        [e for e in environments if e.node.version.startswith(wanted.removeprefix("v") + ".")],
    ):
        if len(matches) == 1:
            return matches[0].id
        if matches:
            raise UsageError(
                f"--baseline {wanted} fits {len(matches)} of the versions; "
                "give it a label (a=24.11.1) and name that."
            )
    known = ", ".join(e.label or e.node.version for e in environments)
    raise UsageError(f"--baseline {wanted[:80]} is not among the versions of this run ({known}).")


def schedule(plan: Plan, round_number: int, cells: Mapping[str, Sequence[str]]) -> tuple[Invocation, ...]:
    """The invocations of one round in seeded random order.

    Args:
        plan: environments, baseline, operations and seed.
        round_number: from 1.
        cells: operations to measure for each environment identifier; the baseline gets a twin.

    Returns:
        One invocation for each arm and group; operations in an order equal for all arms of the round.
    """
    rng = random.Random(f"{plan.spec.seed}/{round_number}")  # noqa: S311 - a schedule, not a secret
    order = [operation.name for operation in plan.operations]
    rng.shuffle(order)
    groups = list(dict.fromkeys(operation.group for operation in plan.operations))
    group_of = {operation.name: operation.group for operation in plan.operations}
    jobs = [
        (environment, twin, group, chosen)
        for environment, wanted in cells.items()
        for twin in ((False, True) if environment == plan.baseline else (False,))
        for group in groups
        if (chosen := tuple(n for n in order if group_of[n] == group and n in frozenset(wanted)))
    ]
    rng.shuffle(jobs)
    return tuple(
        Invocation(
            round=round_number,
            position=position,
            environment=environment,
            twin=twin,
            group=group,
            operations=chosen,
        )
        for position, (environment, twin, group, chosen) in enumerate(jobs)
    )
