"""Everything that can stop the program, one exit code for each kind.

::

    InvestigateError
    ├── UsageError         2  the command line, the spec or an input file is wrong
    ├── EngineMissingError 4  no container engine, compiler or npm client answers
    ├── NothingBuiltError  5  not one environment could be built, or not one cell measured
    ├── HostUnfitError     6  the machine cannot carry the run (disk full, no memory, ...)
    ├── StoredFileError    8  a stored file is unreadable, truncated, or newer than this tool
    └── InterruptedRunError 130  ^C or TERM while a run was measured; it can be resumed

A failed build or cell is never an exception: it is a value with a reason (`plan.Failure`) that appears in
every table. The message of an error is one sentence: what is wrong, where, and what to do.
"""

EXIT_OK = 0
EXIT_GATE_FAILED = 1
EXIT_USAGE = 2
EXIT_GATE_UNDECIDED = 3
EXIT_ENGINE_MISSING = 4
EXIT_NOTHING_BUILT = 5
EXIT_HOST_UNFIT = 6
EXIT_STORED_FILE = 8
EXIT_INTERRUPTED = 130


class InvestigateError(Exception):
    """Base of all errors that end the program with a sentence instead of a traceback."""

    exit_code = EXIT_HOST_UNFIT


class UsageError(InvestigateError):
    """The command line, the spec, or a file named in it is wrong."""

    exit_code = EXIT_USAGE


class EngineMissingError(InvestigateError):
    """No container engine, compiler, image or npm client can be used."""

    exit_code = EXIT_ENGINE_MISSING


class NothingBuiltError(InvestigateError):
    """Not one environment could be built, or nothing of what was built could be measured."""

    exit_code = EXIT_NOTHING_BUILT


class HostUnfitError(InvestigateError):
    """The machine cannot carry the run: no disk space, no memory, no network where it is needed."""

    exit_code = EXIT_HOST_UNFIT


class StoredFileError(InvestigateError):
    """A stored file cannot be read, or was written by a newer version of this tool."""

    exit_code = EXIT_STORED_FILE


class InterruptedRunError(InvestigateError):
    """The user stopped a run that can be resumed."""

    exit_code = EXIT_INTERRUPTED
