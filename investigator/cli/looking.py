"""Commands that show a run, the machine, the releases, and the tool's own errors."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from investigator import listings, options, results
from investigator.bisect import run as bisection
from investigator.bisect.request import is_bisection
from investigator.cli.program import RunArgument, app, program
from investigator.cli.shared import finish, finish_bisection
from investigator.selftest.explaining import attribute
from investigator.selftest.report import render_text
from investigator.selftest.run import run_selftest
from investigator.selftest.trials import Options, Subset
from investigator.spec import CIPHER_ADDON
from investigator.store import encode_json, open_run


@app.command(rich_help_panel="Look around")
def show(run: RunArgument, json: options.Json = False) -> None:
    """Print the tables of a run again, computed anew from its raw records; needs no engine."""
    with program(quiet=json) as console:
        folder = open_run(run)
        if is_bisection(folder):
            finish_bisection(console, folder, bisection.stored(folder), json=json)
            return
        stored = results.stored_text(folder, json=json)
        if stored is not None:
            console.result(stored)
            return
        finish(console, results.regenerate(folder, write=False), json=json, again=True)


@app.command(rich_help_panel="Look around")
def versions(
    lines: Annotated[
        str | None, typer.Argument(metavar="[LINES]", help="Majors, comma separated; default all.")
    ] = None,
    addon: options.Addon = CIPHER_ADDON,
    json: options.Json = False,
) -> None:
    """List Node releases with V8 and ABI where known, and which addon release loads on which."""
    with program(quiet=json) as console:
        console.result(listings.versions(lines, addon, json=json, observer=console))


@app.command(rich_help_panel="Look around")
def selftest(
    subset: Annotated[
        Subset, typer.Option(help="ci: at most ten minutes; full: every place and size.")
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
    out: Annotated[Path, typer.Option(help="Folder of the self-test, each screen a run in it.")] = Path(
        "reports/selftest"
    ),
    json: options.Json = False,
) -> None:
    """Plant slowdowns of known size and layer, and tell what this tool finds: its confusion matrix.

    The same command goes on with a folder that is not finished.
    """
    with program(quiet=json) as console:
        wanted = Options(
            subset=subset,
            places=options.items(places, "--places"),
            sizes=options.percentages(sizes, "--sizes"),
            ops=options.items(ops, "--ops"),
            seeds=seeds,
            node=node,
            explain=explain,
            minutes=minutes,
            engine=engine,
            base_image=base_image,
        )
        report = run_selftest(wanted, out, console, attribute)
        console.result(encode_json(msgspec.to_builtins(report)).decode() if json else render_text(report))


@app.command(rich_help_panel="Look around")
def doctor(json: options.Json = False) -> None:
    """Look at this machine: engine, compiler, cores, governor, load, perf, disk; with advice."""
    with program(quiet=json) as console:
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
    with program() as console:
        console.result(listings.clean(cache=cache, dry_run=dry_run, keep_bytes=options.keep_bytes(keep)))
