"""The command `investigate audit`: its options, and the way from them to an audit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from rich.console import RenderableType

from investigator import options
from investigator.audit.adjudicate import ClaimPhase, Question
from investigator.audit.claims import Claim, parse_claim
from investigator.audit.figures import Sheet
from investigator.audit.judgement import AUDIT_SCHEMA, Audit, audit
from investigator.audit.reading import KNOWN, read_files
from investigator.audit.render import render
from investigator.audit.rerun import Rerun, questions, rerun_spec, rulings
from investigator.errors import UsageError
from investigator.observer import Observer
from investigator.results import Finished, regenerate
from investigator.spec import CIPHER_ADDON
from investigator.store import TOOL, encode_json, open_run
from investigator.workflow import investigate

_RERUN = "Measure the claim"

Files = Annotated[
    list[str] | None, typer.Argument(metavar="FILE", help=f"{KNOWN[0].upper()}{KNOWN[1:]}; - is stdin.")
]
Claims = Annotated[
    list[str] | None,
    typer.Option(
        "--claim",
        metavar="VERSION=CHANGE",
        help="What is claimed: 24.11.1=-57%, '24=57% slower', '24=2.3x slower'; repeatable.",
    ),
]
Op = Annotated[
    str | None,
    typer.Option("--op", help="Operation: a name of the files (select) or of ours (select_range)."),
]
Base = Annotated[str | None, typer.Option("--baseline", help="Version that the claim compares with.")]
MeasureOption = Annotated[
    Literal["rate", "time"],
    typer.Option("--of", help="What a percentage is a change of, where no file says."),
]
Pass = Annotated[
    Literal["auto", "cold", "warm"], typer.Option("--pass", help="Which calls the claim is about.")
]
RerunOption = Annotated[
    bool, typer.Option("--rerun", help="Measure it with this tool and adjudicate.", rich_help_panel=_RERUN)
]
RunOption = Annotated[
    str | None,
    typer.Option(
        "--run", metavar="RUN", help="Adjudicate by a run there is already.", rich_help_panel=_RERUN
    ),
]
Versions = Annotated[
    str | None,
    typer.Option(help="Node builds to measure; default the claim's.", rich_help_panel=_RERUN),
]

AuditJson = Annotated[
    bool, typer.Option("--json", help="Print the audit as JSON: every change, finding and place.")
]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    files: Sequence[str] = ()
    claims: Sequence[str] = ()
    op: str | None = None
    baseline: str | None = None
    of: Literal["rate", "time"] = "rate"
    which: Literal["auto", "cold", "warm"] = "auto"
    rerun: bool = False
    run: str | None = None
    choices: options.Choices
    out: Path | None = None


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """audit.json, and what ``--json`` prints."""

    schema: int = AUDIT_SCHEMA
    kind: str = "audit"
    tool: str = TOOL
    audit: Audit
    rerun: Rerun | None = None


def run_audit(request: Request, observer: Observer) -> AuditReport:
    """Audit, and measure where that is wanted.

    Raises:
        InvestigateError: with the exit code of its kind; everything is checked before anything is measured.
    """
    if not request.files and not request.claims:
        raise UsageError("there is nothing to audit; name files, or a claim such as --claim 24.11.1=-57%.")
    if request.rerun and request.run is not None:
        raise UsageError("--rerun measures anew and --run takes a run there is; give one of them.")
    if not request.rerun and (request.out is not None or request.choices != options.Choices()):
        raise UsageError(
            "options of a measurement (--addon, --versions, --quick, --out, ...) go with --rerun only."
        )
    claims = [parse_claim(text, request.of) for text in request.claims]
    sheets = read_files(request.files)
    found = audit(sheets, claims, op=request.op, baseline=request.baseline, measure=request.of)
    if not request.rerun and request.run is None:
        return AuditReport(audit=found)
    return _adjudicated(request, sheets, claims, found, observer)


def text_of(report: AuditReport, *, json: bool) -> RenderableType:
    """The report for stdout."""
    return encode_json(msgspec.to_builtins(report)).decode() if json else render(report.audit, report.rerun)


def _adjudicated(
    request: Request, sheets: Sequence[Sheet], claims: Sequence[Claim], found: Audit, observer: Observer
) -> AuditReport:
    phase: ClaimPhase | None = None if request.which == "auto" else request.which
    asked = questions(found, sheets, claims, op=request.op, baseline=request.baseline, phase=phase)
    finished = _finished(request, asked, sheets, observer)
    addon_known = request.choices.addon != CIPHER_ADDON or any(
        r.addon_version for s in sheets for r in s.rows
    )
    phase_known = all(question.phase != "unknown" for question in asked)
    ruled = rulings(asked, finished, phase_known=phase_known, addon_known=addon_known)
    report = AuditReport(audit=found, rerun=ruled)
    if request.rerun:
        finished.folder.write_json("audit.json", "audit", AUDIT_SCHEMA, report)
    return report


def _finished(
    request: Request, asked: Sequence[Question], sheets: Sequence[Sheet], observer: Observer
) -> Finished:
    if request.run is not None:
        return regenerate(open_run(request.run), write=False)
    return investigate(rerun_spec(asked, sheets, request.choices), request.out, observer)
