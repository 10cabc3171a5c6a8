"""What will be measured, as pure data: spec + seed, printable before anything runs.

Words: an *arm* is an environment as it is scheduled (the baseline is scheduled twice a round, the second
arm being the A/A twin); a *group* is the set of operations that share a process.
"""

import msgspec

from investigator.addons import AddonPackage
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
