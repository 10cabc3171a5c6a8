"""What is to be reproduced, and a program that may do it."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from investigator.operations import Operation
from investigator.plan import Environment, Pace, Plan
from investigator.repro.manifest import ProgramKind


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A program that has not been run yet."""

    name: str
    """Name of its folder."""
    kind: ProgramKind
    title: str
    script: str
    """File that is run."""
    compile: bool = False
    """Whether its folder has a ``binding.gyp``."""
    addon: bool = False
    """Whether it wants the addon of its side."""
    files: Mapping[str, bytes]
    """By name in its folder; the one to read first comes first."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be reproduced."""

    plan: Plan
    operation: Operation
    pace: Pace
    """Calls as the measurement made them."""
    sides: tuple[Environment, Environment]
    """Baseline, candidate."""
    workloads: Path
    """Folder with the user's own files, as the run keeps them."""
