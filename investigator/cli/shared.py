"""What several commands do: measure and print, print a plan, end with the code of a result."""

from collections.abc import Callable
from pathlib import Path

import typer

from investigator import gate, listings, results, validating, workflow
from investigator.bisect import render as bisection_text
from investigator.bisect.request import is_bisection
from investigator.bisect.result import RESULT_FILE, Result
from investigator.cli.program import program
from investigator.console import Console
from investigator.errors import EXIT_GATE_UNDECIDED, EXIT_OK, NothingBuiltError, UsageError
from investigator.outline import outline
from investigator.profile_self import self_profile as profile_itself
from investigator.spec import Spec
from investigator.store import RunFolder, open_run


def measure(
    make: Callable[[], Spec], *, out: Path | None, json: bool, dry_run: bool, self_profile: bool
) -> None:
    """Carry out the spec that `make` makes, or only print its plan; ends the program with the run's code."""
    with program(quiet=json) as console:
        spec = make()
        if dry_run:
            print_plan(console, spec, json=json)
            return
        with profile_itself(enabled=self_profile) as keep:
            finished = workflow.investigate(spec, out, console)
            keep(finished.folder.path, console)
        finish(console, finished, json=json)


def print_plan(console: Console, spec: Spec, *, json: bool) -> None:
    """Print what a spec would do."""
    console.result(listings.plan(outline(spec, console), json=json))


def finish(console: Console, finished: results.Finished, *, json: bool, again: bool = False) -> None:
    """Print the result and end with its code; `again` for one that was printed before."""
    console.result(results.summary_text(finished) if json else results.terminal_report(finished))
    if finished.validation is not None and not again:
        validating.tell_github(finished.validation, console)
    missing = gate.no_answer(finished.analysis)
    if missing is not None and finished.validation is None:
        raise NothingBuiltError(missing)
    code = gate.exit_code(finished.stored.plan.spec, finished.analysis, finished.validation)
    if code != EXIT_OK:
        raise typer.Exit(code)


def measured_run(run: str) -> RunFolder:
    """A run with verdicts; a bisection has one answer, and all of it is in its folder already."""
    folder = open_run(run)
    if is_bisection(folder):
        raise UsageError(f"{folder.path} is a bisection: its answer is in bisect.json and report.md there.")
    return folder


def finish_bisection(console: Console, folder: RunFolder, result: Result, *, json: bool) -> None:
    """Print the answer of a bisection; ends the program with 3 where it is not one release."""
    console.result(
        (folder.path / RESULT_FILE).read_text("utf-8")
        if json
        else bisection_text.terminal(result, str(folder.path))
    )
    if result.outcome != "found":
        raise typer.Exit(EXIT_GATE_UNDECIDED)
