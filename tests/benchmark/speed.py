"""How long a run takes and where its time goes: ``python -m tests.benchmark.speed [investigate options]``.

Prints figures and asserts nothing: speed depends on the machine. Without options it measures what the README
promises: the default run of three versions, warm, and ``--quick``. A cold start: point
``INVESTIGATE_CACHE`` at an empty folder and remove the base image first.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DEFAULT = ("sqlite", "--versions", "20,22,24", "--no-explain")


def measure(*options: str) -> None:
    """Run once and print one line of figures."""
    with tempfile.TemporaryDirectory(prefix="investigate-speed-") as name:
        run = Path(name) / "run"
        command = [sys.executable, "-m", "investigator", *options, "--json", "--out", str(run)]
        started_s = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        wall_s = time.monotonic() - started_s
        print(f"{' '.join(options)}: exit {done.returncode}, {wall_s / 60:.2f} min in all", flush=True)
        if (run / "run.json").exists():
            facts = json.loads((run / "run.json").read_text())
            print(
                f"  measuring {facts['measuring_s'] / 60:.2f} min, of it inside timed passes "
                f"{facts['timed_share']:.0%}; the harness used {facts['harness_cpu_share']:.2%} of a CPU"
            )


def main() -> None:
    """Measure the given options, or the default run and the quick one."""
    if len(sys.argv) > 1:
        measure(*sys.argv[1:])
        return
    measure(*DEFAULT)
    measure(*DEFAULT, "--quick")


if __name__ == "__main__":
    main()
