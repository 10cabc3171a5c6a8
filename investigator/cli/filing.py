"""Commands that make something of a run, or of figures, for others."""

from typing import Annotated

import typer

from investigator import compare, documents, issue_report, listings, options, slopes, workflow
from investigator.audit import command as audit_command
from investigator.cli.program import RunArgument, app, program
from investigator.cli.shared import measured_run
from investigator.exports import formats
from investigator.options import Choices
from investigator.spec import CIPHER_ADDON
from investigator.store import open_run


@app.command(rich_help_panel="File")
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
    with program() as console:
        wanted = tuple(formats or documents.USUAL)
        asked = issue_report.Asked(target=target, op=op, candidate=candidate, gh=gh)
        issue_report.check(asked, wanted)
        folder = measured_run(run)
        for path in documents.write(folder, [name for name in wanted if name != issue_report.FORMAT], out):
            console.result(str(path))
        if issue_report.FORMAT in wanted:
            issue_report.write(folder, asked, out, console, lambda words: typer.confirm(words, err=True))


@app.command(rich_help_panel="File")
def export(run: RunArgument, format_name: formats.FormatOption, out: formats.OutOption = None) -> None:
    """Write a run's measurements for another tool; needs no engine and no network."""
    with program() as console:
        console.result(formats.export(measured_run(run), format_name, out))


@app.command(rich_help_panel="File")
def repro(
    run: RunArgument,
    op: options.FindingOps = None,
    candidate: Annotated[str | None, typer.Option(help="Only findings of this version or label.")] = None,
    json: options.Json = False,
) -> None:
    """Show findings without this tool: programs that are written, run, and kept where they show them."""
    with program(quiet=json) as console:
        made = workflow.reproduce_findings(open_run(run), op or (), candidate, console)
        console.result(listings.reproductions(made, json=json))


@app.command(name="compare", rich_help_panel="File")
def compare_command(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN RUN...", help="Run folders, ids under reports/, or `last`.")
    ],
    json: options.Json = False,
) -> None:
    """Say which findings of one run recur in others: another machine, another day. Never pools times."""
    with program(quiet=json) as console:
        console.result(compare.text([measured_run(run) for run in runs], json=json))


@app.command(rich_help_panel="File")
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
    addon: options.Addon = CIPHER_ADDON,
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
    with program(quiet=json) as console:
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


@app.command(name="slopes", rich_help_panel="File")
def slopes_command(run: RunArgument, json: options.Json = False) -> None:
    """Say what a call costs, and what each row, cell, character or byte of it, by version, from a run."""
    with program(quiet=json) as console:
        console.result(slopes.text(measured_run(run), json=json))
