"""What will be measured, as pure data: spec + seed, printable before anything runs.

Words: an *arm* is an environment as it is scheduled (the baseline is scheduled twice a round, the second
arm being the A/A twin); a *group* is the set of operations that share a process.
"""

import hashlib
import random
import re
from collections.abc import Mapping, Sequence

import msgspec

from investigator.addons import AddonPackage
from investigator.errors import UsageError
from investigator.nodes import parse
from investigator.nodes.interface import NodeBuild
from investigator.operations import Operation
from investigator.spec import Axis, Flavor, Spec

_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_.,:+-]{1,24}")


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """One Node build x one addon package x flavor x node flags."""

    id: str
    """``node24.11.1+bsm12.11.1``, prefixed by the label where one is given: ``a:node24.11.1+bsm12.11.1``."""
    label: str | None
    """Of the Node build, or of the addon where addons are compared."""
    node: NodeBuild
    addon: AddonPackage | None
    """None in ``js`` runs."""
    flavor: Flavor = "source"
    node_flags: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    """Environment variables of its processes."""


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
    """Whether this is its environment's second process in the round; the baseline's is the A/A twin."""
    group: str
    operations: tuple[str, ...]
    """Order of setup and passes; equal for all arms of a round."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of one operation per warm-up and lap; from the calibration, then fixed for everybody."""

    op: str
    warmup_calls: int
    loops: int
    """Calls between two readings of the clock."""
    laps: int = 1
    """Readings in each pass."""

    @property
    def pass_calls(self) -> int:
        """Calls in a pass."""
        return self.loops * self.laps


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything decided before the first measurement."""

    spec: Spec
    run_id: str
    environments: tuple[Environment, ...]
    baseline: str
    """Identifier of the baseline environment."""
    operations: tuple[Operation, ...]

    @property
    def candidates(self) -> tuple[Environment, ...]:
        """The environments that are compared with the baseline, in their order."""
        return tuple(environment for environment in self.environments if environment.id != self.baseline)

    def operation(self, name: str) -> Operation:
        """The operation of that name."""
        return next(operation for operation in self.operations if operation.name == name)

    def environment(self, identifier: str) -> Environment:
        """The environment of that identifier."""
        return next(environment for environment in self.environments if environment.id == identifier)


def environment_id(
    node: NodeBuild,
    addon: AddonPackage | None,
    flavor: Flavor,
    *,
    label: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> str:
    """Identifier of an environment, stable and readable: ``a:node24.11.1+bsm12.11.1-prebuilt-SIZE=3``.

    Args:
        node: its Node build, whose label is the prefix where there is no other.
        addon: its addon.
        flavor: how the addon's binary came about.
        label: the addon's label, where addons are compared.
        variables: environment variables of its processes.
    """
    prefix = f"{label or node.label}:" if label or node.label else ""
    suffix = "" if addon is None else f"+{addon.short}"
    patched = f"-patch{addon.patch_sha256[:8]}" if addon is not None and addon.patch_sha256 else ""
    prebuilt = "-prebuilt" if addon is not None and flavor == "prebuilt" else ""
    told = "".join(f"-{name}={_brief(value)}" for name, value in sorted((variables or {}).items()))
    return f"{prefix}node{node.version}{suffix}{patched}{prebuilt}{told}"


def _brief(value: str) -> str:
    return value if _PLAIN_VALUE.fullmatch(value) else hashlib.sha256(value.encode()).hexdigest()[:8]


def find_baseline(
    environments: Sequence[Environment],
    wanted: str | None,
    axis: Axis = "node",
    option: str = "--baseline",
    items: Sequence[str] = (),
) -> str:
    """Identifier of the environment with that label, identifier, item, version or major; the first for None.

    Versions are those of Node, or of the addon where the axis is the addon; there its name, or
    ``NAME@VERSION``, does as well. `items` are the user's own words for the environments, one each
    (``lts``, ``24.x``, ``fix=path:./out``): with or without their label they name it too.

    Raises:
        UsageError: no environment, or more than one, answers to `wanted`.
    """
    if wanted is None:
        return environments[0].id
    release = wanted.removeprefix("v")
    exact = [e for e in environments if release in _answers_to(e, axis)]
    typed = list(zip(environments, items, strict=False))
    for matches in (
        [e for e in environments if wanted in {e.label, e.id}],
        [e for e, item in typed if same_words(wanted, item)],
        [e for e, item in typed if same_words(wanted, parse.without_label(item))],
        # In 24.11.1,fix=path:./out the one without a label is what 24.11.1 means.
        [e for e in exact if e.label is None],
        exact,
        [e for e in environments if any(name.startswith(f"{release}.") for name in _answers_to(e, axis))],
    ):
        if len(matches) == 1:
            return matches[0].id
        if matches:
            what, example = ("addons", "a=NAME@12.11.1") if axis == "addon" else ("versions", "a=24.11.1")
            raise UsageError(
                f"{option} {wanted} fits {len(matches)} of the {what}; "
                f"give it a label ({example}) and name that."
            )
    known = ", ".join(e.label or _answers_to(e, axis)[-1] for e in environments)
    what = "addons" if axis == "addon" else "versions"
    raise UsageError(f"{option} {wanted[:80]} is not among the {what} of this run ({known}).")


def same_words(one: str, other: str) -> bool:
    """Whether two items differ in their spaces at most."""
    return "".join(one.split()) == "".join(other.split())


def _answers_to(environment: Environment, axis: Axis) -> tuple[str, ...]:
    """Names that ``--baseline`` may use, the shortest that says it all last."""
    addon = environment.addon
    if axis == "node" or addon is None:
        return (environment.node.version,)
    if not addon.version:
        return (addon.name,)
    return (addon.name, f"{addon.name}@{addon.version}", addon.version)


ONCE = "once:"
"""How the name of a group begins that has one process an environment and round, the baseline's too."""


def _processes(doubled: bool, group: str) -> tuple[bool, ...]:
    return (False, True) if doubled and not group.startswith(ONCE) else (False,)


def schedule(plan: Plan, round_number: int, cells: Mapping[str, Sequence[str]]) -> tuple[Invocation, ...]:
    """The invocations of one round in seeded random order.

    Args:
        plan: environments, baseline, operations and seed.
        round_number: from 1.
        cells: operations to measure for each environment identifier; the baseline gets a twin, and so does
            the candidate where there is only one (noise between processes is most of the noise).

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
        for group in groups
        for twin in _processes(environment == plan.baseline or len(cells) == 2, group)
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
