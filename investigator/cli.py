"""The command line: options in, exit code out. The only place that knows typer and ends the program.

Exit codes are those of `errors`. Progress goes to stderr, results to stdout.
"""

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated, Literal, NoReturn

import msgspec
import typer

from investigator import (
    __version__,
    compare,
    documents,
    gate,
    issue_report,
    listings,
    options,
    results,
    slopes,
    validating,
    workflow,
)
from investigator.audit import command as audit_command
from investigator.bisect import options as bisecting
from investigator.bisect import render as bisection_text
from investigator.bisect import run as bisection
from investigator.bisect.request import Wanted, is_bisection
from investigator.bisect.result import RESULT_FILE, Result
from investigator.console import Console
from investigator.errors import (
    EXIT_GATE_UNDECIDED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    InvestigateError,
    NothingBuiltError,
    UsageError,
)
from investigator.exports import formats
from investigator.options import Choices, make_spec, native_profiles, native_spec, planted, takes_choices
from investigator.outline import outline
from investigator.profile_self import self_profile as profile_itself
from investigator.selftest.explaining import attribute
from investigator.selftest.report import render_text
from investigator.selftest.run import run_selftest
from investigator.spec import Spec, load_spec
from investigator.store import RunFolder, disk_error, encode_json, open_run

app = typer.Typer(
    name="investigate",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Did a native addon on an encrypted SQLite database really get slower between Node versions, "
    "how much, and can you prove it?\n\n"
    "Start with [bold]investigate sqlite --versions 20,22,24[/bold]. Every figure comes with its interval, "
    "the baseline measured against itself, and one of five verdicts: slower, faster, no change, "
    "cannot tell, invalid.",
    epilog="Exit codes: 0 done · 1 a gate failed · 2 usage · 3 a gate cannot be decided · 4 engine or "
    "compiler missing · 5 nothing could be built or measured · 6 host unfit · "
    "8 stored file unreadable · 130 interrupted (resumable).",
)

RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="Run folder, its id under reports/, or `last`.")
]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(f"investigate {__version__}")
        raise typer.Exit


@app.command(rich_help_panel="Measure")
@takes_choices("sqlite")
def sqlite(
    choices: Choices,
    out: options.Out = None,
    json: options.Json = False,
    fail_on: options.FailOn = "none",
    dry_run: options.DryRun = False,
    self_profile: options.SelfProfile = False,
) -> None:
    """Compare an addon's encrypted-database operations, and pure JS beside them, between Node versions.

    With --axis addon: between addon releases on one Node version.
    """
    _measure(
        lambda: make_spec("sqlite", choices, fail_on=fail_on),
        out=out,
        json=json,
        dry_run=dry_run,
        self_profile=self_profile,
    )


@app.command(rich_help_panel="Measure")
@takes_choices("js")
def js(
    choices: Choices,
    out: options.Out = None,
    json: options.Json = False,
    fail_on: options.FailOn = "none",
    dry_run: options.DryRun = False,
    self_profile: options.SelfProfile = False,
) -> None:
    """Compare pure-JS workloads between Node versions: no addon, no database."""
    _measure(
        lambda: make_spec("js", choices, fail_on=fail_on),
        out=out,
        json=json,
        dry_run=dry_run,
        self_profile=self_profile,
    )


@app.command(rich_help_panel="Measure")
@takes_choices("sqlite", without=validating.NOT_TAKEN)
def validate(
    choices: Choices,
    baseline: validating.Baseline,
    regressed: validating.Regressed,
    fix: validating.FixBuild,
    op: validating.Op = None,
    restore: validating.Restore = "80%",
    node: validating.Node = None,
    js: validating.Js = False,
    keep: options.Keep = None,
    out: options.Out = None,
    json: options.Json = False,
    dry_run: options.DryRun = False,
) -> None:
    """Judge a fix: does the loss come back, and does nothing else get slower?

    Baseline, regressed and fix are measured interleaved, the regressed side twice. Exit 0: the lower end of
    the recovered share reaches --restore and no other operation is slower than on the regressed side by a
    finding; 1: it does not, or the fix computes something else; 3: it cannot be told.
    """
    with _program(quiet=json) as console:
        bound = options.keep_bytes(keep)
        spec = validating.validation_spec(
            choices,
            baseline=baseline,
            regressed=regressed,
            fix=fix,
            ops=op or (),
            restore=restore,
            node=node,
            js=js,
        )
        if dry_run:
            _print_plan(console, spec, json=json)
            return
        with validating.within(bound, console):
            finished = workflow.investigate(spec, out, console)
        _finish(console, finished, json=json)


@app.command(rich_help_panel="Measure")
def run(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="A spec, such as spec.toml of a run.")],
    out: options.Out = None,
    json: options.Json = False,
    dry_run: options.DryRun = False,
    self_profile: options.SelfProfile = False,
) -> None:
    """Run the investigation that a TOML file describes."""
    _measure(lambda: load_spec(spec), out=out, json=json, dry_run=dry_run, self_profile=self_profile)


@app.command(rich_help_panel="Measure")
def resume(run: RunArgument, json: options.Json = False) -> None:
    """Go on with an interrupted run: finished rounds are kept, the interrupted one is measured again."""
    with _program(quiet=json) as console:
        folder = open_run(run)
        if is_bisection(folder):
            _finish_bisection(console, folder, bisection.resume(folder, console), json=json)
            return
        _finish(console, workflow.resume(folder, console), json=json)


@app.command(rich_help_panel="Measure")
def explain(
    run: RunArgument,
    op: options.FindingOps = None,
    json: options.Json = False,
) -> None:
    """Look for the layer of a run's findings: new rounds with twins in C and a profile in each."""
    with _program(quiet=json) as console:
        _finish(console, workflow.explain_more(_measured_run(run), op or (), console), json=json)


@app.command(name="ablate", rich_help_panel="Measure")
def ablate_command(
    run: RunArgument,
    op: Annotated[str, typer.Option("--op", help="Operation of the run whose gap is looked into.")],
    candidate: Annotated[
        str | None, typer.Option(help="Version or label of the slower or faster side; default the last.")
    ] = None,
    kind: Annotated[
        Literal["gc", "engine", "all"], typer.Option(help="V8 flags of the collector, of the engine, or all.")
    ] = "all",
    json: options.Json = False,
) -> None:
    """Measure a pair again under V8 flags: the flag that closes the gap names the subsystem."""
    with _program(quiet=json) as console:
        kinds: tuple[Literal["gc", "engine"], ...] = ("gc", "engine") if kind == "all" else (kind,)
        report = workflow.ablate_more(_measured_run(run), op, candidate, kinds, console)
        console.result(listings.ablation(report, json=json))


@app.command(rich_help_panel="Measure")
def bisect(
    good: bisecting.Good,
    bad: bisecting.Bad,
    op: bisecting.Op = None,
    find: bisecting.FindOption = "regression",
    axis: bisecting.AxisOption = "node",
    node: bisecting.Node = None,
    lines: bisecting.Lines = "all",
    addon: bisecting.AddonOption = "better-sqlite3-multiple-ciphers",
    prebuilt: options.Prebuilt = False,
    patch: options.Patch = None,
    node_flags: options.NodeFlags = "",
    workload: options.Workload = None,
    param: options.Param = None,
    cipher: options.Cipher = "chacha20",
    git: bisecting.Git = None,
    max_steps: bisecting.MaxSteps = None,
    own_builds: bisecting.OwnBuilds = False,
    seed: options.Seed = 1,
    engine: options.EngineOption = "auto",
    base_image: options.BaseImage = None,
    cpus: options.Cpus = None,
    storage: options.Storage = "tmpfs",
    keep: options.Keep = None,
    out: options.Out = None,
    json: options.Json = False,
) -> None:
    """Find the release that changed the time of one operation, or the one that repaired it.

    Exit code 3: it cannot be narrowed to one release. The same command goes on with a folder of --out.
    """
    with _program(quiet=json) as console:
        base = bisecting.base_spec(
            prebuilt=prebuilt,
            patch=patch,
            node_flags=node_flags,
            workload=workload,
            param=param,
            cipher=cipher,
            seed=seed,
            engine=engine,
            base_image=base_image,
            cpus=cpus,
            storage=storage,
        )
        wanted = Wanted(
            good=good,
            bad=bad,
            op=op,
            find=find,
            axis=axis,
            node=node,
            lines=lines,
            addon=addon,
            git=git,
            most_steps=max_steps,
            share_builds=not own_builds,
        )
        bound = options.keep_bytes(keep)
        with validating.within(bound, console):
            folder, result = bisection.start(wanted, base, out, console, bound)
        _finish_bisection(console, folder, result, json=json)


@app.command(rich_help_panel="Measure")
def repro(
    run: RunArgument,
    op: options.FindingOps = None,
    candidate: Annotated[str | None, typer.Option(help="Only findings of this version or label.")] = None,
    json: options.Json = False,
) -> None:
    """Show findings without this tool: programs that are written, run, and kept where they show them."""
    with _program(quiet=json) as console:
        made = workflow.reproduce_findings(open_run(run), op or (), candidate, console)
        console.result(listings.reproductions(made, json=json))


@app.command(rich_help_panel="Measure")
@takes_choices(None)
def plan(
    choices: Choices,
    context: typer.Context,
    what: Annotated[
        str, typer.Argument(metavar="[sqlite|js|SPEC.toml]", help="What would be run.")
    ] = "sqlite",
    json: options.Json = False,
) -> None:
    """Print what would run, in which order, and about how long it takes.

    Nothing is built or measured, and no release is downloaded; image: and path: builds are copied into the
    cache, since their version is inside. Options are those of `investigate sqlite` and `investigate js`; a
    SPEC.toml takes none.
    """
    with _program(quiet=json) as console:
        if what not in {"sqlite", "js"}:
            _refuse_options(context, _given(context) - {"what", "json"}, f"a spec file ({what[:80]})")
            _print_plan(console, load_spec(Path(what)), json=json)
            return
        command: Literal["sqlite", "js"] = "js" if what == "js" else "sqlite"
        if command == "js":
            _refuse_options(context, _given(context) & set(options.ONLY_SQLITE), "js")
        _print_plan(console, make_spec(command, choices), json=json)


def _given(context: typer.Context) -> set[str]:
    """Parameters that stand on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def _refuse_options(context: typer.Context, names: set[str], beside: str) -> None:
    given = [p.opts[0] for p in context.command.params if p.name in names]
    if given:
        raise UsageError(f"{', '.join(given)} cannot be given beside {beside}; leave it out.")


@app.command(rich_help_panel="Read")
def show(run: RunArgument, json: options.Json = False) -> None:
    """Print the tables of a run again, computed anew from its raw records; needs no engine."""
    with _program(quiet=json) as console:
        folder = open_run(run)
        if is_bisection(folder):
            _finish_bisection(console, folder, bisection.stored(folder), json=json)
            return
        stored = results.stored_text(folder, json=json)
        if stored is not None:
            console.result(stored)
            return
        _finish(console, results.regenerate(folder, write=False), json=json, again=True)


@app.command(rich_help_panel="Read")
def report(
    run: RunArgument,
    formats: documents.FormatOption = None,
    out: documents.OutOption = None,
    target: issue_report.ForOption = None,
    op: issue_report.OpOption = None,
    candidate: issue_report.CandidateOption = None,
    gh: issue_report.GhOption = False,
) -> None:
    """Write documents of a run, computed anew from its raw records; needs no engine and no network.

    Prints the path of each file written.
    """
    with _program() as console:
        wanted = tuple(formats or documents.USUAL)
        asked = issue_report.Asked(target=target, op=op, candidate=candidate, gh=gh)
        issue_report.check(asked, wanted)
        folder = _measured_run(run)
        for path in documents.write(folder, [name for name in wanted if name != issue_report.FORMAT], out):
            console.result(str(path))
        if issue_report.FORMAT in wanted:
            issue_report.write(folder, asked, out, console, lambda words: typer.confirm(words, err=True))


@app.command(rich_help_panel="Read")
def export(run: RunArgument, format_name: formats.FormatOption, out: formats.OutOption = None) -> None:
    """Write a run's measurements for another tool; needs no engine and no network."""
    with _program() as console:
        console.result(formats.export(_measured_run(run), format_name, out))


@app.command(name="compare", rich_help_panel="Read")
def compare_command(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN RUN...", help="Run folders, ids under reports/, or `last`.")
    ],
    json: options.Json = False,
) -> None:
    """Say which findings of one run recur in others: another machine, another day. Never pools times."""
    with _program(quiet=json) as console:
        console.result(compare.text([_measured_run(run) for run in runs], json=json))


@app.command(rich_help_panel="Read")
def audit(
    files: audit_command.Files = None,
    claim: audit_command.Claims = None,
    op: audit_command.Op = None,
    baseline: audit_command.Base = None,
    of: audit_command.MeasureOption = "rate",
    which: audit_command.Pass = "auto",
    rerun: audit_command.RerunOption = False,
    run: audit_command.RunOption = None,
    versions: audit_command.Versions = None,
    addon: options.Addon = "better-sqlite3-multiple-ciphers",
    rounds: options.Rounds = None,
    budget: options.Budget = None,
    quick: options.Quick = False,
    explain: options.Explain = None,
    no_explain: options.NoExplain = False,
    engine: options.EngineOption = "auto",
    base_image: options.BaseImage = None,
    out: options.Out = None,
    json: audit_command.AuditJson = False,
) -> None:
    """Say what somebody else's published figures can and cannot support; with --rerun measure the claim.

    Exit code 0 whatever the conclusion.
    """
    with _program(quiet=json) as console:
        request = audit_command.Request(
            files=files or (),
            claims=claim or (),
            op=op,
            baseline=baseline,
            of=of,
            which=which,
            rerun=rerun,
            run=run,
            choices=Choices(
                versions=versions,
                addon=addon,
                rounds=rounds,
                budget=budget,
                quick=quick,
                explain=explain,
                no_explain=no_explain,
                engine=engine,
                base_image=base_image,
            ),
            out=out,
        )
        console.result(audit_command.text_of(audit_command.run_audit(request, console), json=json))


@app.command(name="slopes", rich_help_panel="Read")
def slopes_command(run: RunArgument, json: options.Json = False) -> None:
    """Say what a call costs, and what each row, cell, character or byte of it, by version, from a run."""
    with _program(quiet=json) as console:
        console.result(slopes.text(_measured_run(run), json=json))


@app.command(rich_help_panel="Look around")
def versions(
    lines: Annotated[
        str | None, typer.Argument(metavar="[LINES]", help="Majors, comma separated; default all.")
    ] = None,
    addon: options.Addon = "better-sqlite3-multiple-ciphers",
    json: options.Json = False,
) -> None:
    """List Node releases with V8 and ABI where known, and which addon release loads on which."""
    with _program(quiet=json) as console:
        console.result(listings.versions(lines, addon, json=json, observer=console))


@app.command(rich_help_panel="Measure")
def native(
    addon: options.Addon = "better-sqlite3-multiple-ciphers",
    cipher: options.Cipher = "chacha20",
    profile: Annotated[
        str, typer.Option(help=f"PRAGMA profile: {', '.join(options.PROFILES)}; or all.")
    ] = "production",
    seed: options.Seed = 1,
    engine: options.EngineOption = "auto",
    base_image: options.BaseImage = None,
    cpus: options.Cpus = None,
    json: options.Json = False,
) -> None:
    """Measure the encrypted database without Node: a C program on the addon's own SQLite."""
    with _program(quiet=json) as console:
        spec = native_spec(
            addon=addon, cipher=cipher, seed=seed, engine=engine, base_image=base_image, cpus=cpus
        )
        result = workflow.native_only(spec, native_profiles(profile, spec.cipher), console)
        console.result(listings.native(result, json=json))


@app.command(rich_help_panel="Look around")
def selftest(
    subset: Annotated[
        Literal["ci", "full"], typer.Option(help="ci: at most ten minutes; full: every place and size.")
    ] = "ci",
    places: Annotated[str, typer.Option(help="Where slowdowns are planted, comma separated.")] = "",
    sizes: Annotated[str, typer.Option(help="Planted sizes in percent, comma separated: 5,10,25.")] = "",
    ops: Annotated[str, typer.Option(help="Operations they are planted in, comma separated.")] = "",
    seeds: Annotated[int | None, typer.Option(help="Repetitions of every trial.")] = None,
    node: Annotated[str, typer.Option(help="Node release that everything runs on.")] = "24.11.1",
    explain: Annotated[bool, typer.Option(help="Also name the layers; the longer part.")] = True,
    minutes: Annotated[
        float | None, typer.Option(help="No explanation begins after so many minutes; resuming goes on.")
    ] = None,
    engine: options.EngineOption = "auto",
    base_image: options.BaseImage = None,
    out: options.Out = Path("reports/selftest"),
    json: options.Json = False,
) -> None:
    """Plant slowdowns of known size and layer, and tell what this tool finds: its confusion matrix.

    The same command goes on with a folder that is not finished.
    """
    with _program(quiet=json) as console:
        wanted = planted(
            subset=subset,
            places=places,
            sizes=sizes,
            ops=ops,
            seeds=seeds,
            node=node,
            explain=explain,
            minutes=minutes,
            engine=engine,
            base_image=base_image,
        )
        report = run_selftest(
            wanted, out or Path("reports/selftest"), console, attribute if explain else None
        )
        console.result(encode_json(msgspec.to_builtins(report)).decode() if json else render_text(report))


@app.command(rich_help_panel="Look around")
def doctor(json: options.Json = False) -> None:
    """Look at this machine: engine, compiler, cores, governor, load, perf, disk; with advice."""
    with _program(quiet=json) as console:
        console.result(listings.doctor(json=json))


@app.command(rich_help_panel="Look around")
def clean(
    cache: Annotated[
        bool, typer.Option("--cache", help="Also the downloaded releases and the builds.")
    ] = False,
    keep: options.Keep = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Remove what killed runs left: containers and scratch folders; with --cache everything downloaded."""
    with _program() as console:
        console.result(listings.clean(cache=cache, dry_run=dry_run, keep_bytes=options.keep_bytes(keep)))


# -- what the commands share --------------------------------------------------------------------------------


def _measure(
    make: Callable[[], Spec], *, out: Path | None, json: bool, dry_run: bool, self_profile: bool
) -> None:
    with _program(quiet=json) as console:
        spec = make()
        if dry_run:
            _print_plan(console, spec, json=json)
            return
        with profile_itself(enabled=self_profile) as keep:
            finished = workflow.investigate(spec, out, console)
            keep(finished.folder.path, console)
        _finish(console, finished, json=json)


def _print_plan(console: Console, spec: Spec, *, json: bool) -> None:
    console.result(listings.plan(outline(spec, console), json=json))


def _finish(console: Console, finished: results.Finished, *, json: bool, again: bool = False) -> None:
    """Print the result and end with its code; `again` for one that was printed before."""
    console.result(results.summary_text(finished) if json else results.terminal_report(finished))
    if finished.validation is not None and not again:
        validating.tell_github(finished.validation, console)
    missing = gate.no_answer(finished.stored.plan, finished.analysis)
    if missing is not None and finished.validation is None:
        raise NothingBuiltError(missing)
    code = gate.exit_code(finished.stored.plan.spec, finished.analysis, finished.validation)
    if code != EXIT_OK:
        raise typer.Exit(code)


def _measured_run(run: str) -> RunFolder:
    """A run with verdicts; a bisection has one answer, and all of it is in its folder already."""
    folder = open_run(run)
    if is_bisection(folder):
        raise UsageError(f"{folder.path} is a bisection: its answer is in bisect.json and report.md there.")
    return folder


def _finish_bisection(console: Console, folder: RunFolder, result: Result, *, json: bool) -> None:
    console.result(
        (folder.path / RESULT_FILE).read_text("utf-8")
        if json
        else bisection_text.terminal(result, str(folder.path))
    )
    if result.outcome != "found":
        raise typer.Exit(EXIT_GATE_UNDECIDED)


@contextlib.contextmanager
def _program(*, quiet: bool = False) -> Iterator[Console]:
    """Run a command: errors become one sentence and their exit code, ^C and TERM become 130."""
    with Console(quiet=quiet) as console:
        signal.signal(signal.SIGTERM, _interrupt)
        try:
            yield console
        except InvestigateError as error:
            console.error(str(error))
            raise typer.Exit(error.exit_code) from error
        except OSError as error:
            # Every expected one has its sentence where it happens; this is for the disk that fills elsewhere.
            failure = disk_error(error, Path(str(error.filename or "a file of this run")))
            console.error(str(failure))
            raise typer.Exit(failure.exit_code) from error
        except KeyboardInterrupt as error:
            console.error("interrupted.")
            raise typer.Exit(EXIT_INTERRUPTED) from error


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def main() -> None:
    """Entry point of the program."""
    try:
        app()
    except UsageError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)
