"""The stages in order: spec, nodes, addon, build, plan, calibration, rounds, analysis, report.

Reading `investigate` and `resume` is reading the whole program. What a stage hands on is a frozen value;
everything after `run_rounds` can be made again offline from the run folder (`results.regenerate`).
"""

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from investigator import cache, host, inputs, native, prepare, resolve, resources, workloads
from investigator.ablate import ablate
from investigator.analysis import Analysis
from investigator.attributed import Target, targets
from investigator.causes.ablation import AblationReport
from investigator.causes.build import public_config
from investigator.causes.flags import FlagKind
from investigator.engine.choose import choose_engine
from investigator.engine.interface import Engine, EngineName
from investigator.errors import InterruptedRunError, NothingBuiltError, StoredFileError, UsageError
from investigator.explain import explain
from investigator.invoke import Surroundings
from investigator.measure import Bench
from investigator.nodes.platform import describe_platform
from investigator.observer import Observer
from investigator.plan import Plan, find_baseline
from investigator.prepare import StoredPlan
from investigator.repro.make import reproduce
from investigator.repro.manifest import Manifest
from investigator.resolve import RESOLVED_SCHEMA, Resolved
from investigator.results import RUN_SCHEMA, Finished, RunRecord, regenerate, with_costs
from investigator.rounds import learn_pace, run_rounds
from investigator.spec import Spec, dump_spec, load_spec, with_patch
from investigator.store import RunFolder, create_run, single_process
from sqlcipher_bench.profiles import Profile


def investigate(spec: Spec, out: Path | None, observer: Observer) -> Finished:
    """Run an investigation from a spec to its reports.

    Raises:
        InvestigateError: with the exit code of its kind; what was measured until then stays in the folder.
    """
    resolved = resolve.resolve(spec, observer, resolve.likely_engine(spec))
    with measuring():
        folder = create_run(out if out is not None else Path("reports") / resolve.new_run_id(spec))
        folder.write_json("resolved.json", "resolved", RESOLVED_SCHEMA, resolved)
        folder.write("spec.toml", dump_spec(inputs.keep_inputs(spec, folder)))
        return _resumable(folder, observer)


def resume(folder: RunFolder, observer: Observer) -> Finished:
    """Go on with a run wherever it was left: finished rounds are kept, the rest is measured."""
    with measuring():
        return _resumable(folder, observer)


def measuring() -> contextlib.AbstractContextManager[None]:
    """One measurement at a time on a machine."""
    return single_process(cache.cache_root() / "measuring.lock", "this machine")


def _resumable(folder: RunFolder, observer: Observer) -> Finished:
    with opened(folder, observer) as (spec, resolved, engine):
        return _carry_out(spec, resolved, folder, engine, observer)


@contextlib.contextmanager
def opened(folder: RunFolder, observer: Observer) -> Iterator[tuple[Spec, Resolved, Engine]]:
    """A run folder held by this process, with the engine that the run began with.

    Raises:
        InterruptedRunError: ^C or TERM, with the number of rounds that are kept.
    """
    try:
        with folder.locked():
            # As stored: workloads and patch lie in the run folder, and no place of the machine gets into it.
            spec = _stored_spec(folder)
            resolved = folder.read_json("resolved.json", "resolved", RESOLVED_SCHEMA, Resolved)
            engine = choose_engine(_engine_of(folder) or spec.engine, spec.base_image, observer)
            try:
                yield spec, resolved, engine
            finally:
                engine.close()
    except KeyboardInterrupt as error:
        rounds = len(folder.finished_rounds())
        raise InterruptedRunError(
            f"interrupted; {rounds} finished round{'' if rounds == 1 else 's'} kept, "
            f"go on with `investigate resume {folder.path}`."
        ) from error


def _stored_spec(folder: RunFolder) -> Spec:
    spec = with_patch(load_spec(folder.path / "spec.toml"), lambda name: Path(name).name)
    return msgspec.structs.replace(
        spec, workloads=tuple(f"workloads/{Path(name).name}" for name in spec.workloads)
    )


def _engine_of(folder: RunFolder) -> EngineName | None:
    """The engine that the run began with: one run never mixes containers and plain processes."""
    if not (folder.path / "run.json").exists():
        return None
    name = folder.read_json("run.json", "run", RUN_SCHEMA, RunRecord).engine.get("engine")
    return "docker" if name == "docker" else "local" if name == "local" else None


def _carry_out(
    spec: Spec, resolved: Resolved, folder: RunFolder, engine: Engine, observer: Observer
) -> Finished:
    stored = prepare.prepare(spec, resolved, folder, engine, observer)
    bench, record = set_up(stored, folder, engine, observer)
    calibration = learn_pace(bench, stored.failures)
    clock, cpu = time.monotonic(), time.process_time()
    if run_rounds(bench, calibration) > 0:
        cpu_share = (time.process_time() - cpu) / max(time.monotonic() - clock, 1e-9)
        record = with_costs(record, folder, stored.plan, cpu_share)
        folder.write_json("run.json", "run", RUN_SCHEMA, record)
    screen = regenerate(folder, write=True, draw=False).screen
    return _explained(bench, screen, targets(screen, spec.explain))


def _explained(bench: Bench, screen: Analysis, wanted: Sequence[Target]) -> Finished:
    """Explain what has not been explained yet, and compute everything anew."""
    explain(bench, screen, wanted)
    return regenerate(bench.folder, write=True)


def explain_more(folder: RunFolder, ops: Sequence[str], observer: Observer) -> Finished:
    """Explain findings of a finished run: those of the operations named, all of them if none is.

    Raises:
        UsageError: a named operation has no finding in this run.
    """
    with measuring(), opened(folder, observer) as (spec, resolved, engine):
        screen = regenerate(folder, write=False).screen
        wanted = targets(screen, "all")
        missing = [op for op in ops if op not in {target.op for target in wanted}]
        if missing:
            found = ", ".join(dict.fromkeys(target.op for target in wanted)) or "it has none"
            raise UsageError(
                f"{missing[0][:80]!r} is no finding of {folder.name} ({found}); only findings are explained."
            )
        stored = prepare.prepare(spec, resolved, folder, engine, observer)
        bench, _ = set_up(stored, folder, engine, observer)
        return _explained(bench, screen, [target for target in wanted if not ops or target.op in ops])


def ablate_more(
    folder: RunFolder,
    op: str,
    candidate: str | None,
    kinds: Sequence[FlagKind],
    observer: Observer,
) -> AblationReport:
    """Rerun a pair of a run on one operation under V8 flags, ranked by how much of the gap they close.

    Raises:
        UsageError: the run has no such operation or version.
    """
    with measuring(), opened(folder, observer) as (spec, resolved, engine):
        stored = prepare.prepare(spec, resolved, folder, engine, observer)
        bench, _ = set_up(stored, folder, engine, observer)
        report = ablate(bench, op, _candidate(folder, stored.plan, candidate), kinds=kinds)
        regenerate(folder, write=True)
        return report


def _candidate(folder: RunFolder, plan: Plan, named: str | None) -> str:
    """Identifier of the environment that ``--candidate`` names; the last one for None.

    Raises:
        UsageError: there is none, or it fits several.
    """
    typed = dict(zip((e.id for e in plan.environments), plan.spec.items, strict=False))
    others = plan.candidates
    items = [typed.get(e.id, "") for e in others]
    if not others:
        raise UsageError(f"{folder.name} measured one environment; there is nothing to compare it with.")
    if named is None:
        return others[-1].id
    return find_baseline(others, named, plan.spec.axis, "--candidate", items)


def reproduce_findings(
    folder: RunFolder, ops: Sequence[str], candidate: str | None, observer: Observer
) -> tuple[Manifest, ...]:
    """Make and run reproductions of a run's findings: of the named operations and candidate, or of all.

    Raises:
        UsageError: there is no such finding.
    """
    with measuring(), opened(folder, observer) as (_, _, engine):
        finished = regenerate(folder, write=False)
        plan = finished.stored.plan
        wanted = None if candidate is None else _candidate(folder, plan, candidate)
        pairs = [c for c in finished.analysis.comparisons if c.finding and wanted in {None, c.candidate}]
        known = ", ".join(dict.fromkeys(c.op for c in pairs)) or "it has none"
        missing = next((op for op in ops if op not in {c.op for c in pairs}), None)
        if missing is not None or not pairs:
            shown = "there" if missing is None else repr(missing[:80])
            raise UsageError(
                f"{shown} is no finding in {folder.name} ({known}); only findings are reproduced."
            )
        made = reproduce(folder, plan, [c for c in pairs if not ops or c.op in ops], engine, observer)
        regenerate(folder, write=True)
        return made


def set_up(
    stored: StoredPlan, folder: RunFolder, engine: Engine, observer: Observer
) -> tuple[Bench, RunRecord]:
    """Data, host control and the record of where all this runs."""
    plan = stored.plan
    data = prepare.mailbox(plan.spec.seed) if plan.spec.command == "sqlite" else None
    control, program = native.host_control(
        engine,
        plan_cipher=plan.spec.cipher,
        package=plan.environments[0].addon,
        build=next(iter(stored.builds.values()), None),
        mailbox=data,
        node=plan.environment(plan.baseline).node,
        cpus=plan.spec.cpus,
        notify=observer.warning,
    )
    around = Surroundings(
        plan=plan,
        builds=stored.builds,
        fixtures=prepare.fixtures(),
        workloads=folder.path / "workloads",
        mailbox=data,
        probes=prepare.probes_of(stored, engine, observer),
    )
    record = _begun(folder) or RunRecord(
        run_id=plan.run_id,
        started_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        host=host.host_facts(),
        engine=dict(engine.facts()),
        fixtures_sha256=resources.digest(),
        mailbox_sha256=None if data is None else cache.sha256_of(data),
        host_program_sha256=None if program is None else cache.sha256_of(program),
        workloads_sha256=workloads.digest(
            folder.path / "workloads", [Path(name).name for name in plan.spec.workloads]
        ),
        platform=describe_platform(engine, plan.environment(plan.baseline).node.directory, plan.spec.cpus),
        node_config={e.id: public_config(e.node.directory) for e in plan.environments},
    )
    folder.write_json("run.json", "run", RUN_SCHEMA, record)
    bench = Bench(engine=engine, around=around, folder=folder, observer=observer, host_control=control)
    return bench, record


def _begun(folder: RunFolder) -> RunRecord | None:
    """The record of a run that is resumed: it says when and where the run began.

    Raises:
        StoredFileError: this tool measures something else now than when the run began.
    """
    if not (folder.path / "run.json").exists():
        return None
    record = folder.read_json("run.json", "run", RUN_SCHEMA, RunRecord)
    if record.fixtures_sha256 != resources.digest():
        raise StoredFileError(
            "the run began with another version of this tool, whose operations may differ; start again with "
            f"`investigate run {folder.path / 'spec.toml'}`."
        )
    return record


def native_only(
    spec: Spec, profiles: Sequence[Profile], observer: Observer
) -> tuple[native.NativeReading | native.NativeFailure, ...]:
    """Measure the encrypted database without Node; Node's headers only help to build the addon's SQLite."""
    with measuring():
        engine = choose_engine(spec.engine, spec.base_image, observer)
        try:
            nodes = prepare.fetch(resolve.resolve(spec, observer, engine.name), engine, observer)
            _, builds, broken = prepare.make_environments(spec, nodes, engine, observer)
            source = next(iter(builds.values()), None)
            if source is None:
                reason = next((b.reason for b in broken.values()), f"{spec.addon} has no SQLite of its own")
                raise NothingBuiltError(f"`investigate native` has nothing to measure: {reason}")
            program = native.compile_host_program(engine, source)
            if not isinstance(program, Path):
                raise NothingBuiltError(program.reason)
            return _native_readings(engine, program, spec, profiles, observer)
        finally:
            engine.close()


def _native_readings(
    engine: Engine, program: Path, spec: Spec, profiles: Sequence[Profile], observer: Observer
) -> tuple[native.NativeReading | native.NativeFailure, ...]:
    observer.stage_started("measure", len(profiles))
    readings = []
    for wanted in profiles:
        observer.activity(wanted.name)
        readings.append(
            native.run_native(engine, program, prepare.mailbox(spec.seed), wanted, cpus=spec.cpus)
        )
        observer.step("measure", wanted.name)
    failed = [reading for reading in readings if isinstance(reading, native.NativeFailure)]
    if len(failed) == len(readings):
        raise NothingBuiltError(f"no profile could be measured: {failed[0].reason}")
    return tuple(readings)
