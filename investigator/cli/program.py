"""The program itself: its help, and how every command that fails ends; `shared` ends those with a result.

Exit codes are those of `errors`. Progress goes to stderr, results to stdout.
"""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from investigator import __version__
from investigator.console import Console
from investigator.errors import EXIT_INTERRUPTED, InvestigateError
from investigator.store import disk_error

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


@contextlib.contextmanager
def program(*, quiet: bool = False) -> Iterator[Console]:
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
