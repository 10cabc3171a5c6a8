"""How domain code reports progress: it talks to an `Observer` and never prints.

`investigator.console` shows it to people; tests pass a `NullObserver`. Every call is cheap and may come from
any thread (builds run in parallel). Texts may come from outside: the observer cleans them.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What one comparison looks like after the rounds so far; for the eye only, never a verdict."""

    op: str
    candidate: str
    """Short name of the environment, e.g. ``24.11.1`` or a label."""
    change_pct: float
    """Change in time per operation: +50 means half as slow again."""


class Observer(Protocol):
    """Listens to a run."""

    def stage_started(self, name: str, total: int | None = None) -> None:
        """Begin a stage (``build``, ``measure``, ...) of `total` steps, where that is known."""

    def activity(self, text: str) -> None:
        """Say what runs now, e.g. ``round 3 of 8: node24.11.1 sqlite``; not counted."""

    def step(self, name: str, text: str = "") -> None:
        """Count one step of the stage as ended: a build, a download, an invocation."""

    def round_finished(self, number: int, of: int, estimates: Sequence[Estimate] = ()) -> None:
        """End round `number` (from 1) of `of`; `estimates` come with the largest change first."""

    def note(self, text: str) -> None:
        """Tell something worth a line: the addon release that was chosen, a cache hit."""

    def warning(self, text: str) -> None:
        """Tell something that weakens the result or surprises: no container engine, a busy host."""


class NullObserver:
    """Listens to nothing."""

    def stage_started(self, name: str, total: int | None = None) -> None:
        """Ignore."""

    def activity(self, text: str) -> None:
        """Ignore."""

    def step(self, name: str, text: str = "") -> None:
        """Ignore."""

    def round_finished(self, number: int, of: int, estimates: Sequence[Estimate] = ()) -> None:
        """Ignore."""

    def note(self, text: str) -> None:
        """Ignore."""

    def warning(self, text: str) -> None:
        """Ignore."""
