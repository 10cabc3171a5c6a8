"""The catalogue of built-in operations: names, families and files. Names are part of the output format."""

from typing import Literal

import msgspec

Family = Literal["sqlite", "js", "boundary", "core", "host"]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One named timed loop with fixed parameters."""

    name: str
    family: Family
    module: str
    """File of the operation, relative to the root of the packaged folders, e.g.
    ``sqlcipher_bench/operations/select.mjs``; for a user's workload the name it is mounted under."""
    workload: str | None = None
    """Key in the module's ``workloads``; None takes the module's own ``setup`` and ``run``."""
    essential: bool = False
    cold_calls: int = 1
    """Calls of the cold pass, fixed here so that it means the same everywhere."""
    group: str = ""
    """Operations of one group share a process; a user's workload has a process of its own."""
