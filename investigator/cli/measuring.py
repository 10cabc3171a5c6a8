"""Commands that measure: `sqlite`, `js` and what belongs to such a run."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from investigator import listings, options, workflow
from investigator.bisect import run as bisection
from investigator.bisect.request import is_bisection
from investigator.causes.flags import FlagKind
from investigator.cli.program import RunArgument, app, program
from investigator.cli.shared import finish, finish_bisection, measure, measured_run, print_plan
from investigator.errors import UsageError
from investigator.options import Choices, make_spec, native_profiles, native_spec, takes_choices
from investigator.spec import CIPHER_ADDON, Command, load_spec
from investigator.store import open_run


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
    measure(
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
    measure(
        lambda: make_spec("js", choices, fail_on=fail_on),
        out=out,
        json=json,
        dry_run=dry_run,
        self_profile=self_profile,
    )


@app.command(rich_help_panel="Measure")
def run(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="A spec, such as spec.toml of a run.")],
    out: options.Out = None,
    json: options.Json = False,
    dry_run: options.DryRun = False,
    self_profile: options.SelfProfile = False,
) -> None:
    """Run the investigation that a TOML file describes."""
    measure(lambda: load_spec(spec), out=out, json=json, dry_run=dry_run, self_profile=self_profile)


@app.command(rich_help_panel="Measure")
def resume(run: RunArgument, json: options.Json = False) -> None:
    """Go on with an interrupted run: finished rounds are kept, the interrupted one is measured again."""
    with program(quiet=json) as console:
        folder = open_run(run)
        if is_bisection(folder):
            finish_bisection(console, folder, bisection.resume(folder, console), json=json)
            return
        finish(console, workflow.resume(folder, console), json=json)


@app.command(rich_help_panel="Measure")
def explain(
    run: RunArgument,
    op: options.FindingOps = None,
    json: options.Json = False,
) -> None:
    """Look for the layer of a run's findings: new rounds with twins in C and a profile in each."""
    with program(quiet=json) as console:
        finish(console, workflow.explain_more(measured_run(run), op or (), console), json=json)


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
    with program(quiet=json) as console:
        kinds: tuple[FlagKind, ...] = ("gc", "engine") if kind == "all" else (kind,)
        report = workflow.ablate_more(measured_run(run), op, candidate, kinds, console)
        console.result(listings.ablation(report, json=json))


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
    with program(quiet=json) as console:
        if what not in {"sqlite", "js"}:
            _refuse_options(context, _given(context) - {"what", "json"}, f"a spec file ({what[:80]})")
            print_plan(console, load_spec(Path(what)), json=json)
            return
        command: Command = "js" if what == "js" else "sqlite"
        if command == "js":
            _refuse_options(context, _given(context) & set(options.ONLY_SQLITE), "js")
        print_plan(console, make_spec(command, choices), json=json)


def _given(context: typer.Context) -> set[str]:
    """Parameters that stand on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def _refuse_options(context: typer.Context, names: set[str], beside: str) -> None:
    given = [p.opts[0] for p in context.command.params if p.name in names]
    if given:
        raise UsageError(f"{', '.join(given)} cannot be given beside {beside}; leave it out.")


@app.command(rich_help_panel="Measure")
def native(
    addon: options.Addon = CIPHER_ADDON,
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
    with program(quiet=json) as console:
        spec = native_spec(
            addon=addon, cipher=cipher, seed=seed, engine=engine, base_image=base_image, cpus=cpus
        )
        result = workflow.native_only(spec, native_profiles(profile, spec.cipher), console)
        console.result(listings.native(result, json=json))
