"""``investigate plan``: what a spec would do, and about how long it would take."""

import msgspec

from investigator import addons, measure, selection
from investigator.naming import releases as release_names
from investigator.observer import Observer
from investigator.plan import Plan, schedule
from investigator.resolve import baseline_sketch, likely_engine, resolve, sketches
from investigator.spec import Spec

INVOCATION_S = 0.9
"""Start of a container, of Node, and loading of the data: seen on two cores."""
COLD_AND_SET_UP_S = 0.03
"""Of one operation."""


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """What `investigate plan` prints: what would run, nothing of it done yet."""

    command: str
    nodes: tuple[str, ...]
    """``label=version`` or version."""
    baseline: str
    addon: str | None
    """The release that would be tried first; the load test may choose an older one."""
    addons: tuple[str, ...] = ()
    """``label=name version`` or ``name version`` of the addons that are compared, if they are."""
    fix: str | None = None
    """The addon or patch that is judged, where it is no Node build."""
    operations: tuple[str, ...]
    workloads: tuple[str, ...]
    rounds: int
    max_rounds: int
    passes: int
    invocations_per_round: int
    first_round: tuple[str, ...]
    """Order of the invocations of round 1, with the operations of each in order."""
    measuring_min: float
    """Expected from the length of passes and warm-up; the calibration makes it exact."""
    budget_min: float
    explain: str
    """Findings that are explained afterwards, some two minutes each: a number, ``all`` or ``none``."""


def outline(spec: Spec, observer: Observer) -> Outline:
    """Resolve a spec and say what it would do.

    Asks the registry for versions; builds nothing, and fetches nothing but ``image:`` and ``path:`` builds,
    whose version is inside.
    """
    resolved = resolve(spec, observer, likely_engine(spec))
    addon = None
    if spec.command == "sqlite" and spec.axis == "node":
        request = addons.parse_addon(spec.addon, spec.patch)
        addon = request.name
        if request.name not in {"node:sqlite", "path:"}:
            releases = addons.select_release(request, [node.version for node in resolved.nodes])
            addon = f"{request.name} {releases[0].version}"
    known = sketches(spec, resolved)
    released = release_names(known, spec.axis)
    names = {environment.id: _labelled(environment.label, released[environment.id]) for environment in known}
    environments = tuple(
        msgspec.structs.replace(environment, id=names[environment.id]) for environment in known
    )
    baseline = names[baseline_sketch(spec, resolved).id]
    plan = Plan(
        spec=spec,
        run_id="outline",
        environments=environments,
        baseline=baseline,
        operations=selection.expected(spec),
    )
    jobs = schedule(plan, 1, {e.id: tuple(o.name for o in plan.operations) for e in environments})
    per_op_s = spec.passes * (spec.pass_ms * 1_000_000 + measure.WARMUP_NS_PER_PASS) / 1e9 + COLD_AND_SET_UP_S
    round_s = sum(INVOCATION_S + per_op_s * len(job.operations) for job in jobs)
    return Outline(
        command=spec.command,
        nodes=tuple(_labelled(node.request.label, node.version) for node in resolved.nodes),
        baseline=baseline,
        addon=addon,
        addons=tuple(_labelled(addon.label, addon.shown) for addon in resolved.addons),
        fix=_fix(spec),
        operations=tuple(o.name for o in plan.operations),
        workloads=spec.workloads,
        rounds=spec.rounds,
        max_rounds=spec.max_rounds,
        passes=spec.passes,
        invocations_per_round=len(jobs),
        first_round=tuple(
            f"{job.environment}{' (twin)' if job.twin else ''} {job.group}: {' '.join(job.operations)}"
            for job in jobs
        ),
        measuring_min=round(spec.rounds * round_s / 60, 1),
        budget_min=spec.budget_min,
        explain=spec.explain,
    )


def _fix(spec: Spec) -> str | None:
    if spec.fix is None or not spec.fix.build:
        return None
    return f"{'patch ' if spec.fix.kind == 'patch' else ''}{spec.fix.name or spec.fix.build}"


def _labelled(label: str | None, text: str) -> str:
    return f"{label}={text}" if label else text
