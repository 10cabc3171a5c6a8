"""A bisection from its request to its result.

Killed anywhere, it goes on: what was measured is read, not repeated. The search decides from finished rounds
alone, so a resumed one asks the same releases in the same order.

::

    reports/<run id>/
      request.json spec.toml resolved.json plan.json run.json calibration.json   the ends, as in every run
      skipped.json                releases that cannot be measured
      steps/NN-search-VERSION/    one step: plan.json and raw rounds
      bisect.json report.md plot.svg plot.png commits.txt
"""

from pathlib import Path
from typing import Final

import msgspec

from investigator import inputs, prepare, resolve, units
from investigator.bisect import commits, render
from investigator.bisect.candidates import Candidates
from investigator.bisect.request import (
    FILE,
    REQUEST_SCHEMA,
    Request,
    Wanted,
    git_folder,
    is_bisection,
    make_request,
    read_request,
)
from investigator.bisect.result import RESULT_FILE, RESULT_SCHEMA, Result, make_result
from investigator.bisect.steps import Stepper
from investigator.engine.interface import Engine
from investigator.errors import InterruptedRunError, NothingBuiltError, UsageError
from investigator.measure import Bench, Calibration
from investigator.observer import Observer
from investigator.prepare import StoredPlan
from investigator.resolve import RESOLVED_SCHEMA, Resolved
from investigator.results import RunRecord
from investigator.rounds import learn_pace
from investigator.spec import Spec, dump_spec, load_spec, with_paths
from investigator.stats.bisection import SEARCH_LOOKS, VERIFY_LOOKS, Step, bisect
from investigator.store import RunFolder, create_run
from investigator.text import clean_text
from investigator.workflow import measuring, opened, set_up

ENGINE_FACTS: Final = ("engine", "version", "image", "network", "user")


def start(
    wanted: Wanted, base: Spec, out: Path | None, observer: Observer, keep_bytes: int | None = None
) -> tuple[RunFolder, Result]:
    """Begin a bisection, or go on with the one in `out` if it asks for the same.

    Where the cache is bounded, releases of earlier steps give way to later ones.

    Raises:
        InvestigateError: with the exit code of its kind; what was measured until then stays in the folder.
    """
    clone = git_folder(wanted.git)
    if clone is not None:
        commits.check_clone(clone)
    request, spec = make_request(wanted, base, resolve.likely_engine(base), observer)
    if out is not None and is_bisection(RunFolder(out)):
        folder = RunFolder(out)
        _refuse_other(folder, request, spec)
        folder.write_json(FILE, "bisect-request", REQUEST_SCHEMA, request)
        return folder, resume(folder, observer, keep_bytes)
    resolved = resolve.resolve(spec, observer, resolve.likely_engine(spec))
    _tell(request, observer)
    with measuring():
        folder = create_run(out if out is not None else Path("reports") / _run_id(spec))
        folder.write_json("resolved.json", "resolved", RESOLVED_SCHEMA, resolved)
        folder.write_json(FILE, "bisect-request", REQUEST_SCHEMA, request)
        folder.write("spec.toml", dump_spec(inputs.keep_inputs(spec, folder)))
        return folder, _carry_out(folder, observer, keep_bytes)


def resume(folder: RunFolder, observer: Observer, keep_bytes: int | None = None) -> Result:
    """Go on with a bisection wherever it was left."""
    with measuring():
        return _carry_out(folder, observer, keep_bytes)


def stored(folder: RunFolder) -> Result:
    """The result as it was stored last; complete or not.

    Raises:
        StoredFileError: there is none yet.
    """
    return folder.read_json(RESULT_FILE, "bisect", RESULT_SCHEMA, Result)


def _run_id(spec: Spec) -> str:
    return resolve.new_run_id(spec).replace(f"-{spec.command}-", "-bisect-")


def _refuse_other(folder: RunFolder, request: Request, spec: Spec) -> None:
    """The same question may be asked again, with another clone or more steps; another one may not."""
    begun = (read_request(folder), load_spec(folder.path / "spec.toml"))
    if _comparable(*begun) != _comparable(request, spec):
        raise UsageError(f"{folder.path} holds another bisection; choose another folder with --out.")


def _comparable(request: Request, spec: Spec) -> tuple[Request, Spec]:
    """What makes a bisection another one; files were copied into its folder and have other names there."""
    names = tuple(Path(name).name for name in spec.workloads)
    plain = with_paths(spec, lambda name: Path(name).name)
    return (
        msgspec.structs.replace(request, git=None, most_steps=None),
        msgspec.structs.replace(plain, workloads=names, patch=None if spec.patch is None else "patch"),
    )


def _tell(request: Request, observer: Observer) -> None:
    between = len(request.releases) - 2
    left_out = f" ({request.left_out} more lie on other branches)" if request.left_out else ""
    observer.note(
        f"{between} release{'' if between == 1 else 's'} on the way from {request.old} to {request.new}"
        f"{left_out}: about {max(1, (between + 1).bit_length())} steps and a verification"
    )


def _carry_out(folder: RunFolder, observer: Observer, keep_bytes: int | None) -> Result:
    request = read_request(folder)
    try:
        with opened(folder, observer) as (spec, resolved, engine):
            return _search(request, spec, resolved, folder, engine, observer, keep_bytes)
    except InterruptedRunError as error:
        raise InterruptedRunError(
            "interrupted; the finished rounds of every step are kept, go on with "
            f"`investigate resume {folder.path}`."
        ) from error


def _search(
    request: Request,
    spec: Spec,
    resolved: Resolved,
    folder: RunFolder,
    engine: Engine,
    observer: Observer,
    keep_bytes: int | None,
) -> Result:
    stored_plan = _ends(prepare.prepare(spec, resolved, folder, engine, observer))
    op = _only_operation(stored_plan)
    bench, record = set_up(stored_plan, folder, engine, observer)
    calibration = learn_pace(bench, stored_plan.failures)
    if calibration.failures:
        first = calibration.failures[0]
        raise NothingBuiltError(f"{first.environment} cannot be measured, and it is an end: {first.reason}")
    result = search(bench, calibration, request, op, keep_bytes)
    result = _with_commits(request, result, folder)
    result = msgspec.structs.replace(result, measured_on=_machine(record))
    folder.write_json(RESULT_FILE, "bisect", RESULT_SCHEMA, result)
    folder.write("report.md", render.markdown(result).encode())
    for name, data in render.pictures(result).items():
        folder.write(name, data)
    return result


def search(
    bench: Bench, calibration: Calibration, request: Request, op: str, keep_bytes: int | None = None
) -> Result:
    """Bisect between the two environments of a bench, which are the ends; finished rounds are only read."""
    candidates = Candidates(bench, request)
    bench.observer.note(_forecast(len(request.releases), calibration))

    def tell(step: Step, bracket: tuple[int, int], left: int) -> None:
        bench.observer.note(render.step_line(request, step, bracket, left))

    found = bisect(
        len(request.releases),
        Stepper(bench, calibration, request, candidates, op, keep_bytes),
        most_steps=request.most_steps,
        direction=1 if request.find == "regression" else -1,
        tell=tell,
    )
    return make_result(request, found, bench.folder, candidates, op, bench.engine)


def _ends(plan: StoredPlan) -> StoredPlan:
    """Both ends must work; without one there is nothing to bisect.

    Raises:
        NothingBuiltError: one does not.
    """
    for identifier, failure in plan.build_failures.items():
        raise NothingBuiltError(
            f"{identifier} does not work, and it is an end: {failure.reason}; name another release, or "
            "another --addon."
        )
    return plan


def _only_operation(plan: StoredPlan) -> str:
    names = [operation.name for operation in plan.plan.operations]
    if len(names) != 1:
        raise UsageError(
            f"the workload has {len(names)} operations ({', '.join(names)[:200]}); name one with --op."
        )
    return names[0]


def _forecast(count: int, calibration: Calibration) -> str:
    """How long it takes where the machine is quiet."""
    ends_s = sum(calibration.invocation_s.values())
    searching_s = (count - 1).bit_length() * SEARCH_LOOKS[0] * ends_s * 1.5
    minutes = (searching_s + VERIFY_LOOKS[0] * ends_s * 2.0) / 60.0
    shown = units.format_minutes(minutes)
    return f"about {shown} of measuring, more where it is noisy, plus downloads and builds"


def _with_commits(request: Request, result: Result, folder: RunFolder) -> Result:
    """Join the commits between the neighbours from the user's clone, where one was given."""
    clone = git_folder(request.git)
    if clone is None or not result.changes:
        return result
    asked = result.changes[0]
    every = commits.commits_between(clone, asked.last, asked.first)
    likely = commits.commits_between(clone, asked.last, asked.first, commits.LIKELY[request.axis])
    if every.commits:
        lines = "".join(f"{c.sha} {c.date} {c.subject}\n" for c in every.commits)
        folder.write("commits.txt", lines.encode())
    kept = msgspec.structs.replace(likely, commits=likely.commits[: commits.SHOWN])
    return msgspec.structs.replace(result, commits=kept, commits_total=every.total)


def _machine(record: RunRecord) -> tuple[tuple[str, str], ...]:
    host, engine = record.host, record.engine
    facts = (
        ("started", record.started_at),
        ("processor", f"{host.cpu_model}, {host.cores_usable} usable"),
        ("system", f"{host.distribution}, {host.kernel}, {host.virtualisation}"),
        ("engine", ", ".join(f"{name} {text}" for name, text in engine.items() if name in ENGINE_FACTS)),
    )
    return tuple((name, clean_text(text, 200)) for name, text in facts)
