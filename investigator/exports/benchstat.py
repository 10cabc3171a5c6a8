"""The Go benchmark format, for benchstat (golang.org/x/perf) and what else reads it.

Format: https://golang.org/design/14313-benchmark-format. One line a process; the line's name says the
operation, the configuration line ``environment:`` above it says where it ran, so that environments are
compared with ``benchstat -col environment FILE`` and can never be mixed: without ``-col`` each has a table
of its own. All other configuration is the same in the whole file, for what differs would split those tables.
"""

from collections.abc import Iterator, Sequence

from investigator.exports.processes import Process, processes
from investigator.exports.words import word
from investigator.stored_run import StoredRun
from investigator.text import clean_text

_GOARCH = {"x86_64": "amd64", "aarch64": "arm64", "AMD64": "amd64"}
_VALUE_LIMIT = 200


def benchstat(run: StoredRun) -> bytes:
    """Lines ``BenchmarkSqlite/op=select_range CALLS NS ns/op NS cpu-ns/op``, baseline first.

    Raises:
        StoredFileError: the run has no measured process.
    """
    return ("\n".join(_lines(run)) + "\n").encode()


def _lines(run: StoredRun) -> Iterator[str]:
    found = processes(run)
    host, spec = run.record.host, run.spec
    yield f"# {clean_text(run.summary.run_id)}, {clean_text(run.record.started_at)}: one line a process"
    yield "# benchstat -col environment FILE"
    yield f"goos: {word(host.kernel.partition(' ')[0].lower()) or 'unknown'}"
    yield f"goarch: {_GOARCH.get(host.architecture, word(host.architecture))}"
    yield _configuration("cpu", host.cpu_model)
    yield _configuration("tool", run.summary.tool)
    if run.summary.command == "sqlite":
        yield _configuration("cipher", spec.cipher)
        yield _configuration("storage", spec.storage)
    yield from (f"Unit {unit} assume=nothing better=lower" for unit in ("ns/op", "cpu-ns/op"))
    baseline = run.summary.baseline
    environments = dict.fromkeys(process.environment for process in found)
    for environment in sorted(environments, key=lambda name: name != baseline):
        yield ""
        yield f"environment: {word(environment)}"
        yield from _results([process for process in found if process.environment == environment])


def _results(found: Sequence[Process]) -> Iterator[str]:
    for process in found:
        yield (
            f"Benchmark{_base_name(process.family)}/op={word(process.op)} {process.calls} "
            f"{process.ns_per_op!r} ns/op {process.cpu_ns_per_op!r} cpu-ns/op"
        )


def _base_name(family: str) -> str:
    """A name must go on with an upper-case letter after ``Benchmark``."""
    name = word(family)
    return name.capitalize() if name[:1].isalpha() else f"X{name}"


def _configuration(key: str, value: str) -> str:
    return f"{key}: {clean_text(value, _VALUE_LIMIT) or 'unknown'}"
