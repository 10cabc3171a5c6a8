"""The command line: options in, exit code out. The only place that knows commands.

Options are declared where what they describe is (`options`, `validating`, `bisect.options`, `documents`).
Commands stand in the help in the order in which their modules are imported here.
"""

import sys

from investigator.cli import measuring  # isort: skip
from investigator.cli import judging  # isort: skip
from investigator.cli import filing  # isort: skip
from investigator.cli import looking  # isort: skip
from investigator.cli.program import app
from investigator.console import open_closed_streams
from investigator.errors import UsageError

__all__ = ["app", "filing", "judging", "looking", "main", "measuring"]


def main() -> None:
    """Entry point of the program."""
    open_closed_streams()
    try:
        app()
    except UsageError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)
