"""What a report of a huge run costs: ``python -m tests.benchmark.large_report RUN [PASSES]``.

Repeats the warm passes of a real run until it has about `PASSES` (a million), in a copy, and prints time and
memory of `investigate report` on it. Asserts nothing: speed depends on the machine.
"""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PASSES = 1_000_000


def is_warm(line: str) -> bool:
    """Whether a line of an events file is a warm pass."""
    return line.startswith('{"type":"pass"') and '"phase":"pass"' in line


def multiplied(lines: list[str], factor: int) -> Iterator[str]:
    """Lines of an events file, every warm pass `factor` times under numbers of its own."""
    for line in lines:
        if not is_warm(line):
            yield line
            continue
        event = json.loads(line)
        first = event["index"] * factor
        yield from (json.dumps({**event, "index": first + n}, separators=(",", ":")) for n in range(factor))


def enlarge(run: Path, passes: int) -> int:
    """Rewrite the events of a run; how many warm passes it has then."""
    files = {path: path.read_text().splitlines() for path in sorted((run / "raw").glob("round-*/*.jsonl"))}
    before = sum(is_warm(line) for lines in files.values() for line in lines)
    factor = max(1, round(passes / before))
    for path, lines in files.items():
        path.write_text("\n".join(multiplied(lines, factor)) + "\n")
    return before * factor


def main(run: Path, passes: int = PASSES) -> None:
    """Print one line of figures."""
    with tempfile.TemporaryDirectory(prefix="investigate-large-") as name:
        copy = Path(name) / "run"
        shutil.copytree(run, copy)
        count = enlarge(copy, passes)
        started_s = time.monotonic()
        command = [sys.executable, "-m", "investigator", "report", str(copy), "--format", "html"]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        wall_s = time.monotonic() - started_s
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"{count:,} passes: exit {done.returncode}, {wall_s:.1f} s "
            f"({used.ru_utime + used.ru_stime:.1f} s of CPU time), {used.ru_maxrss / 1024:,.0f} MiB at most, "
            f"{(copy / 'report.html').stat().st_size / 1e6:.1f} MB of page"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *(int(word) for word in sys.argv[2:]))
