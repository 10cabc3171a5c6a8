"""Which operations a spec means: built-in ones by their names, the user's own by their files.

What the command line alone can tell is refused before there is a run. What only a file can tell is asked
inside the engine; a file that does not load costs its own cells, and nobody else's.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from investigator import operations
from investigator.errors import UsageError
from investigator.operations import Operation
from investigator.spec import Spec
from investigator.workloads import Refusal, own_operation

# Only with such an export can a file define operations that are not named after it.
_DEFINES_SEVERAL = re.compile(rb"\bworkloads\b")

ReadFile = Callable[[str], tuple[Operation, ...] | Refusal]
"""Asks a workload file, by its name in the run folder, for the operations that it defines."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is to be measured, and what of it never can be."""

    operations: tuple[Operation, ...]
    refused: dict[str, str]
    """Reason by operation: files that no Node of the run can load. Their operations are named after them."""


def built_in(spec: Spec) -> tuple[Operation, ...]:
    """Return the built-in operations that ``--ops`` names; with workloads, other names mean theirs.

    Raises:
        UsageError: a name that nothing has.
    """
    theirs = _names_of_workloads(spec)
    names = [name for name in spec.ops if name != "none" and name not in theirs]
    return operations.choose(names, operations.offered(spec.command))


def check(spec: Spec) -> None:
    """Refuse names that nothing has or that two have, and a run that would measure nothing.

    The workload files have been found before: they are looked into, never run.

    Raises:
        UsageError: naming the operation or the file.
    """
    chosen, stems = built_in(spec), [Path(name).stem for name in spec.workloads]
    if not chosen and not spec.workloads:
        raise UsageError("nothing would be measured; name operations with --ops or a file with --workload.")
    _refuse_clash(chosen, stems)
    if not any(_DEFINES_SEVERAL.search(Path(name).expanduser().read_bytes()) for name in spec.workloads):
        _wanted(spec, stems)


def expected(spec: Spec) -> tuple[Operation, ...]:
    """Return what will be measured as far as it is known before any file is loaded."""
    own = [own_operation(Path(name).name, spec.command) for name in spec.workloads]
    wanted = _names_of_workloads(spec) & {operation.name for operation in own}
    return (*built_in(spec), *(o for o in own if o.name in wanted or not wanted))


def select(spec: Spec, read: ReadFile) -> Selection:
    """Choose the operations, the user's files being asked for theirs.

    Raises:
        UsageError: ``--ops`` names what neither the tool nor a file has, or two operations have one name.
    """
    chosen = built_in(spec)
    own: list[Operation] = []
    refused: dict[str, str] = {}
    for name in spec.workloads:
        answer = read(Path(name).name)
        if isinstance(answer, Refusal):
            refused[Path(name).stem] = answer.reason
            own.append(own_operation(Path(name).name, spec.command))
        else:
            own += answer
    names = [operation.name for operation in own]
    if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
        raise UsageError(f"two workloads define the operation {twice}; rename one.")
    _refuse_clash(chosen, names)
    kept = frozenset(_wanted(spec, names))
    return Selection(
        operations=(*chosen, *(operation for operation in own if operation.name in kept)),
        refused={name: reason for name, reason in refused.items() if name in kept},
    )


def _names_of_workloads(spec: Spec) -> frozenset[str]:
    """Names in ``--ops`` that only a workload can have."""
    known = {"all", "essential", "none", *(operation.name for operation in operations.CATALOGUE)}
    return frozenset(spec.ops) - known if spec.workloads else frozenset()


def _wanted(spec: Spec, offered: Sequence[str]) -> Sequence[str]:
    """Those of the user's own operations that ``--ops`` asks for: all of them where it names none."""
    named = _names_of_workloads(spec)
    if unknown := sorted(named - set(offered)):
        raise UsageError(
            f"--ops names {unknown[0][:80]!r}, which is neither built in nor in the workloads "
            f"({', '.join(sorted(offered))[:400]})."
        )
    return [name for name in offered if name in named] if named else offered


def _refuse_clash(chosen: Sequence[Operation], own: Sequence[str]) -> None:
    taken = {operation.name for operation in chosen}
    clash = next((name for name in own if name in taken), None)
    if clash is not None:
        raise UsageError(
            f"the workload {clash} has the name of a built-in operation; rename it, or leave that one out of "
            "--ops."
        )
