"""The CSV that nodejs/node's benchmark/compare.js prints, for compare.R and node-benchmark-compare.

The readers group rows by filename and configuration and know two binaries, ``old`` and ``new``. So each pair
of the run is a configuration of its own, and the baseline's processes stand in each: the comparisons with
one baseline are not independent of each other, here as in the run itself. The second processes of the
baseline (the A/A twin) are ``old`` as well; in a configuration of their own (``candidate='twin'``) they are
``new`` against the first ones, and show what the reader makes of no difference at all.

The readers compare by Welch's t-test over all processes and do not know of rounds: where the machine was
noisy they see less than the run's own intervals, which pair the processes of a round.
"""

import csv
import io
from collections.abc import Iterator, Sequence

from investigator.exports.processes import Process, of_environment, processes
from investigator.exports.words import word
from investigator.stored_run import StoredRun

TWIN = "twin"
_HEADER = ("binary", "filename", "configuration", "rate", "time")


def node_csv(run: StoredRun) -> bytes:
    """One row a process and pair: ``rate`` in operations per second, ``time`` in seconds of timed passes.

    Raises:
        StoredFileError: the run has no measured process.
    """
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(_HEADER)
    found = processes(run)
    for op in dict.fromkeys(process.op for process in found):
        for candidate, old, new in _pairs(run, [process for process in found if process.op == op]):
            configuration = f"baseline='{word(run.summary.baseline)}' candidate='{word(candidate)}'"
            for binary, side in (("old", old), ("new", new)):
                for process in side:
                    name = f"{word(process.family)}/{word(op)}"
                    writer.writerow(
                        (binary, name, configuration, 1e9 / process.ns_per_op, process.wall_ns / 1e9)
                    )
    return text.getvalue().encode()


Pair = tuple[str, Sequence[Process], Sequence[Process]]


def _pairs(run: StoredRun, found: Sequence[Process]) -> Iterator[Pair]:
    """Candidate, old and new processes of one operation; none without both sides."""
    baseline = of_environment(found, run.summary.baseline)
    first, second = [p for p in baseline if not p.twin], [p for p in baseline if p.twin]
    candidates = dict.fromkeys(p.environment for p in found if p.environment != run.summary.baseline)
    pairs: list[Pair] = [
        (TWIN, first, second),
        *((candidate, baseline, of_environment(found, candidate)) for candidate in candidates),
    ]
    yield from ((name, old, new) for name, old, new in pairs if old and new)
