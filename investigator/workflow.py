"""The stages in order: spec, nodes, addon, build, plan, calibration, rounds, analysis, report.

Reading `investigate` and `resume` is reading the whole program. What a stage hands on is a frozen value;
everything after `run_rounds` can be made again offline from the run folder (`results.regenerate`).
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from investigator import cache, host, native, prepare, resources, workloads
from investigator.engine.choose import choose_engine
from investigator.engine.interface import Engine
from investigator.errors import NothingBuiltError, UsageError
from investigator.invoke import Surroundings
from investigator.measure import Bench
from investigator.observer import Observer
from investigator.prepare import RESOLVED_SCHEMA, Resolved, StoredPlan
from investigator.results import RUN_SCHEMA, Finished, RunRecord, regenerate, with_costs
from investigator.rounds import learn_pace, run_rounds
from investigator.spec import EngineChoice, Spec, dump_spec, load_spec
from investigator.store import RunFolder, create_run, single_process
from sqlcipher_bench.profiles import Profile


def investigate(spec: Spec, out: Path | None, observer: Observer) -> Finished:
    """Run an investigation from a spec to its reports.

    Raises:
        InvestigateError: with the exit code of its kind; what was measured until then stays in the folder.
    """
    resolved = prepare.resolve(spec, observer)
    folder = create_run(out if out is not None else Path("reports") / prepare.new_run_id(spec))
    folder.write_json("resolved.json", "resolved", RESOLVED_SCHEMA, resolved)
    folder.write("spec.toml", dump_spec(prepare.keep_inputs(spec, folder)))
    return resume(folder, observer)


def resume(folder: RunFolder, observer: Observer) -> Finished:
    """Go on with a run wherever it was left: finished rounds are kept, the rest is measured."""
    with folder.locked(), single_process(cache.cache_root() / "measuring.lock", "this machine"):
        spec = load_spec(folder.path / "spec.toml")
        resolved = folder.read_json("resolved.json", "resolved", RESOLVED_SCHEMA, Resolved)
        engine = choose_engine(spec.engine, spec.base_image, observer)
        try:
            return _carry_out(spec, resolved, folder, engine, observer)
        finally:
            engine.close()


def _carry_out(
    spec: Spec, resolved: Resolved, folder: RunFolder, engine: Engine, observer: Observer
) -> Finished:
    stored = prepare.prepare(spec, resolved, folder, engine, observer)
    bench, record = set_up(stored, folder, engine, observer)
    calibration = learn_pace(bench, stored.failures)
    clock, cpu = time.monotonic(), time.process_time()
    run_rounds(bench, calibration)
    cpu_share = (time.process_time() - cpu) / max(time.monotonic() - clock, 1e-9)
    record = with_costs(record, folder, stored.plan, cpu_share)
    folder.write_json("run.json", "run", RUN_SCHEMA, record)
    return regenerate(folder)


def set_up(
    stored: StoredPlan, folder: RunFolder, engine: Engine, observer: Observer
) -> tuple[Bench, RunRecord]:
    """Data, host control and the record of where all this runs."""
    plan = stored.plan
    data = prepare.mailbox(plan.spec.seed) if plan.spec.command == "sqlite" else None
    control, program = _host_control(stored, data, engine, observer)
    around = Surroundings(
        plan=plan,
        builds=stored.builds,
        fixtures=prepare.fixtures(),
        workloads=folder.path / "workloads",
        mailbox=data,
    )
    record = RunRecord(
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
    )
    folder.write_json("run.json", "run", RUN_SCHEMA, record)
    bench = Bench(engine=engine, around=around, folder=folder, observer=observer, host_control=control)
    return bench, record


def _host_control(
    stored: StoredPlan, data: Path | None, engine: Engine, observer: Observer
) -> tuple[Callable[[], native.HostReading | None], Path | None]:
    """The same binary in every round: the C loop on the addon's SQLite, else an integer loop in Node."""
    plan = stored.plan
    source = next((b for b in stored.builds.values() if b.sqlite3_object_sha256 is not None), None)
    if data is not None and source is not None:
        program = native.compile_host_program(engine, source)
        if isinstance(program, Path):
            cipher = plan.spec.cipher
            return lambda: native.run_host_control(
                engine, program, data, cipher=cipher, cpus=plan.spec.cpus
            ), program
        observer.warning(f"the host control cannot be built ({program.reason}); an integer loop stands in.")
    node = next(e.node for e in plan.environments if e.id == plan.baseline)
    return lambda: native.run_node_control(engine, node, cpus=plan.spec.cpus), None


def native_only(
    *,
    addon: str,
    profiles: Sequence[Profile],
    seed: int,
    engine_choice: EngineChoice,
    base_image: str | None,
    cpus: str | None,
    observer: Observer,
) -> tuple[native.NativeReading | native.NativeFailure, ...]:
    """Measure the encrypted database without Node; Node's headers only help to build the addon's SQLite."""
    with single_process(cache.cache_root() / "measuring.lock", "this machine"):
        engine = choose_engine(engine_choice, base_image, observer)
        try:
            spec = Spec(versions=("lts",), addon=addon, engine=engine_choice)
            nodes = prepare.fetch(prepare.resolve(spec, observer), engine, observer)
            _, builds, broken = prepare.make_environments(spec, nodes, engine, observer)
            if broken:
                raise NothingBuiltError(next(iter(broken.values())).reason)
            source = next(iter(builds.values()), None)
            if source is None:
                raise UsageError(
                    f"`investigate native` needs an addon package with its own SQLite, not {addon}."
                )
            program = native.compile_host_program(engine, source)
            if not isinstance(program, Path):
                raise NothingBuiltError(program.reason)
            observer.stage_started("measure", len(profiles))
            readings = []
            for wanted in profiles:
                observer.activity(wanted.name)
                readings.append(native.run_native(engine, program, prepare.mailbox(seed), wanted, cpus=cpus))
                observer.step("measure", wanted.name)
            return tuple(readings)
        finally:
            engine.close()
