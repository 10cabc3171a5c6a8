"""Repeat a bisection whose answer is known: ``python -m tests.benchmark.bisections CASE [--times 10]``.

Prints figures and asserts nothing. Every repetition has another seed, so another order of processes. Builds
and downloads are kept between them: only the first one may be cold. Options after ``--`` are given to
`investigate bisect`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

ADDON: Final = "better-sqlite3-multiple-ciphers"
TEXT: Final = ("--op", "bind_text_ascii_10k")
CASES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "first-bad": ("24.0.0", ("--good", "23.11.1", "--bad", "24.11.1", *TEXT)),
    "first-fixed": ("24.19.0", ("--find", "fixed", "--good", "24.19.0", "--bad", "24.11.1", *TEXT)),
    "long": ("24.0.0", ("--good", "22.0.0", "--bad", "24.18.1", *TEXT)),
    # 13.0.3 does not load from 22.9.0 to 23.5.0: they offer too old a Node-API.
    "skips": ("24.0.0", ("--good", "22.21.1", "--bad", "24.11.1", "--addon", f"{ADDON}@13.0.3", *TEXT)),
    # 12.4.1 is the first one that makes a row at once instead of property by property.
    "addon": (
        "12.4.1",
        (
            *("--axis", "addon", "--node", "24.11.1", "--find", "fixed"),
            *("--bad", "11.10.0", "--good", "12.11.1", "--op", "select_range"),
        ),
    ),
}
"""The release that is right, and the options."""


def repeat(options: tuple[str, ...], number: int) -> dict[str, Any] | None:
    """Bisect once and print one line; the answer where there is one."""
    with tempfile.TemporaryDirectory(prefix="investigate-bisections-") as name:
        run = Path(name) / "run"
        command = [
            sys.executable, "-m", "investigator", "bisect", *options,
            "--seed", str(number), "--json", "--out", str(run),
        ]  # fmt: skip
        started_s = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        wall_min = (time.monotonic() - started_s) / 60
        stored = run / "bisect.json"
        if not stored.exists():
            print(f"{number}: exit {done.returncode}, no answer, {wall_min:.2f} min in all", flush=True)
            return None
        answer: dict[str, Any] = json.loads(stored.read_text())
    print(
        f"{number}: exit {done.returncode}, {answer['headline']} {answer['steps']} steps, "
        f"{answer['rounds']} rounds, {answer['measuring_s'] / 60:.2f} min of measuring, "
        f"{wall_min:.2f} min in all",
        flush=True,
    )
    return answer


def verdict(answer: dict[str, Any] | None, right: str) -> str:
    """How the answer compares with the right one."""
    if answer is None:
        return "no answer"
    if answer["outcome"] == "found":
        return "right" if answer["first"] == right else "WRONG"
    asked = [change for change in answer["changes"] if change["asked"]]
    if not asked:
        return "WRONG: no change"
    within = right in {asked[0]["first"], *asked[0]["between"]}
    return "right range" if within else "WRONG range"


def main() -> None:
    """Repeat one case, then count."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--first", type=int, default=1, help="number and seed of the first repetition")
    parser.add_argument("more", nargs="*", help="further options of bisect")
    chosen = parser.parse_args()
    right, options = CASES[chosen.case]
    everything = (*options, *chosen.more)
    print(f"investigate bisect {' '.join(everything)}: {right} is right", flush=True)
    counts = Counter(
        verdict(repeat(everything, number), right)
        for number in range(chosen.first, chosen.first + chosen.times)
    )
    print(", ".join(f"{count} {what}" for what, count in counts.most_common()))


if __name__ == "__main__":
    main()
