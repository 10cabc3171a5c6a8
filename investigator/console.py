"""The one door to the terminal: progress goes to stderr, the result to stdout.

`Console` is the `Observer` people see. Where stderr is no terminal it writes one plain line a stage and a
round. The live line is drawn only when something happened and never by a thread of its own: the harness
must cost nothing while a worker is timed.
"""

import contextlib
import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TextIO

from rich.console import Console as RichConsole
from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from investigator import units
from investigator.errors import HostUnfitError
from investigator.observer import Estimate
from investigator.text import clean_text

PIPE_WIDTH = 120
"""Width of a result that no terminal shows."""

LEAST_WIDTH = 20
"""COLUMNS below it is no width of a screen."""

_REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
_MOST_ESTIMATES = 2
_REFRESH_S = 0.1


class SafeStream:
    """A text stream that never raises when it is written to.

    A reader that went away (``| head``) turns it silent and sets `broken`; so does a full disk, which sets
    `refused` as well. A character that the stream's encoding lacks becomes a question mark.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.broken = False
        self.refused: OSError | None = None
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write, or drop the text where nobody reads."""
        if not self.broken:
            self._attempt(lambda: self._stream.write(self._encodable(text)))
        return len(text)

    def flush(self) -> None:
        """Flush, or find out that nobody reads."""
        if not self.broken:
            self._attempt(self._stream.flush)

    def isatty(self) -> bool:
        """Whether a person sees this directly."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Descriptor of the stream underneath."""
        return self._stream.fileno()

    def _encodable(self, text: str) -> str:
        return text.encode(self.encoding, "replace").decode(self.encoding, "replace")

    def _attempt(self, action: Callable[[], object]) -> None:
        try:
            action()
        except (OSError, ValueError) as error:  # ValueError: closed
            self.broken = True
            if isinstance(error, OSError) and error.errno in _REFUSALS:
                self.refused = error
            # What is still in the buffer would raise again when the interpreter ends.
            with contextlib.suppress(OSError, ValueError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, self._stream.fileno())
                os.close(null)


class Console:
    """Progress, notes, warnings and errors on stderr; the result on stdout. Safe to call from threads.

    Use as a context manager, so that the live line is gone on every way out.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open both streams.

        Args:
            quiet: no progress and no notes; warnings and errors still come (``--json``).
            stdout: stream of the result.
            stderr: stream of everything else.
            environment: variables that matter (NO_COLOR, TERM, COLUMNS); the process's own by default.
            clock: seconds, for elapsed times.
        """
        self._quiet = quiet
        self._environment = dict(os.environ if environment is None else environment)
        self._out = SafeStream(sys.stdout if stdout is None else stdout)
        self._err = SafeStream(sys.stderr if stderr is None else stderr)
        self._rich_out = self._rich(self._out)
        self._rich_err = self._rich(self._err)
        self._clock = clock
        self._lock = threading.RLock()
        self._live: Live | None = None
        self._stage = _Stage(name="", total=None, started_s=clock())
        self._drawn_s = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def interactive(self) -> bool:
        """Whether progress is a live line."""
        return self._rich_err.is_terminal and not self._rich_err.is_dumb_terminal and not self._quiet

    def stage_started(self, name: str, total: int | None = None) -> None:
        """Begin a stage; the live line of the one before becomes a plain one."""
        with self._lock:
            self._end_stage()
            self._stage = _Stage(name=clean_text(name, 80), total=total, started_s=self._clock())
            if self.interactive:
                self._draw(force=True)
            elif not self._quiet:
                steps = "" if not total else f": {total:,} step{'' if total == 1 else 's'}"
                self._say(f"{self._stage.name}{steps}")

    def activity(self, text: str) -> None:
        """Show on the live line what runs now."""
        with self._lock:
            self._stage.activity = clean_text(text, 120)
            self._draw()

    def step(self, name: str, text: str = "") -> None:
        """Count one step of the stage as ended."""
        with self._lock:
            if name == self._stage.name:
                self._stage.done += 1
            if text:
                self._stage.activity = clean_text(text, 120)
            self._draw()

    def round_finished(self, number: int, of: int, estimates: Sequence[Estimate] = ()) -> None:
        """Show the round and the largest changes so far."""
        with self._lock:
            self._stage.round_text = f"round {number:,} of {of:,}"
            self._stage.estimates = ", ".join(_estimate(estimate) for estimate in estimates[:_MOST_ESTIMATES])
            if self.interactive:
                self._draw(force=True)
            elif not self._quiet:
                self._say(" · ".join(self._stage.parts(self._clock(), activity=False)))

    def note(self, text: str) -> None:
        """Write one line, unless quiet."""
        if not self._quiet:
            with self._lock:
                self._say(clean_text(text, 1000))

    def warning(self, text: str) -> None:
        """Write one line that starts with ``warning:``."""
        with self._lock:
            self._say(clean_text(text, 1000), lead="warning: ", style="yellow")

    def error(self, text: str) -> None:
        """Write the sentence that ends the program, after the live line is gone."""
        with self._lock:
            self.close()
            self._say(clean_text(text, 4000), lead="error: ", style="bold red")

    def result(self, what: RenderableType) -> None:
        """Write the result to stdout: a string as it is, anything else laid out by rich.

        A reader that went away is no error: nothing is left to say, the command ends with what was done.

        Raises:
            HostUnfitError: it went into a file, and not all of it fits on the disk.
        """
        with self._lock:
            self.close()
            self._out.write(what if isinstance(what, str) else self._laid_out(what))
            if isinstance(what, str) and not what.endswith("\n"):
                self._out.write("\n")
            self._out.flush()
        if self._out.refused is not None:
            raise HostUnfitError(
                f"the result could not be written to standard output whole: {self._out.refused.strerror}; "
                "free some space and give the command again."
            )

    def close(self) -> None:
        """End the live line. Safe to call twice."""
        with self._lock:
            self._end_stage()

    def _rich(self, stream: SafeStream) -> RichConsole:
        terminal = stream.isatty()
        environment = dict(self._environment)
        if not _is_width(environment.get("COLUMNS", "")):
            environment.pop("COLUMNS", None)
        if not terminal:
            environment.setdefault("COLUMNS", str(PIPE_WIDTH))
        return RichConsole(
            file=_as_file(stream),
            # Decided here: nothing in the environment may force colour or a live line into a pipe.
            force_terminal=terminal,
            markup=False,
            highlight=False,
            emoji=False,
            _environ=environment,
        )

    def _laid_out(self, what: RenderableType) -> str:
        with self._rich_out.capture() as captured:
            self._rich_out.print(what, crop=False)
        text = captured.get()
        if self._rich_out.is_terminal:
            return text
        return "".join(f"{line.rstrip()}\n" for line in text.splitlines())

    def _say(self, text: str, lead: str = "", style: str = "") -> None:
        self._rich_err.print(Text.assemble((lead, style), text), soft_wrap=True)
        self._err.flush()

    def _draw(self, *, force: bool = False) -> None:
        if not self.interactive or not self._stage.name:
            return
        now_s = self._clock()
        if not force and now_s - self._drawn_s < _REFRESH_S:
            return
        self._drawn_s = now_s
        line = Text(" · ".join(self._stage.parts(now_s)), no_wrap=True, overflow="ellipsis")
        if self._live is None:
            self._live = Live(
                line,
                console=self._rich_err,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        self._live.update(line, refresh=True)

    def _end_stage(self) -> None:
        if self._live is None:
            return
        self._live.stop()
        self._live = None
        stage, now_s = self._stage, self._clock()
        steps = "" if stage.total is None else f" · {stage.done:,} of {stage.total:,}"
        self._say(f"{stage.name}{steps} · {units.format_clock(now_s - stage.started_s)}")


class _Stage:
    """What the live line knows."""

    def __init__(self, *, name: str, total: int | None, started_s: float) -> None:
        self.name = name
        self.total = total
        self.started_s = started_s
        self.done = 0
        self.round_text = ""
        self.activity = ""
        self.estimates = ""

    def parts(self, now_s: float, *, activity: bool = True) -> Sequence[str]:
        """Stage, round, position, times, what runs, estimates: those that are known."""
        elapsed_s = now_s - self.started_s
        steps = "" if self.total is None else f"{self.done:,}/{self.total:,}"
        left = ""
        if self.total and 0 < self.done < self.total:
            left = f", about {units.format_clock(elapsed_s * (self.total - self.done) / self.done)} left"
        return [
            part
            for part in (
                self.name,
                self.round_text,
                steps,
                f"{units.format_clock(elapsed_s)}{left}",
                self.estimates,
                self.activity if activity else "",
            )
            if part
        ]


def open_closed_streams() -> None:
    """Put /dev/null in place of standard streams that were closed (``>&-``).

    Python has None there, and the next file that is opened would get their descriptor.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - stays open


def _is_width(text: str) -> bool:
    """Whether COLUMNS says something: some shells and CI systems set it to 0, where nothing would appear."""
    return text.isascii() and text.isdigit() and int(text[:9]) >= LEAST_WIDTH


def _estimate(estimate: Estimate) -> str:
    op, candidate = clean_text(estimate.op, 40), clean_text(estimate.candidate, 40)
    return f"{op} {candidate} {units.format_percent(estimate.change_pct)}"


def _as_file(stream: SafeStream) -> IO[str]:
    """Hand the stream to rich, which names a whole file but uses only what `SafeStream` has."""
    return stream  # type: ignore[return-value]
