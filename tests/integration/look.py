"""Run inside a task: prints as JSON what it can see and do; tries to write the files of its arguments."""

import json
import os
import socket
import sys
from pathlib import Path


def attempt(action: object) -> str:
    try:
        action()  # type: ignore[operator]
    except OSError as error:
        return type(error).__name__ if error.errno is None else os.strerror(error.errno)
    return "done"


def connect() -> None:
    with socket.create_connection(("192.0.2.1", 80), timeout=3):
        pass


def write(path: str) -> None:
    Path(path).write_text("x")


status = dict(
    line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line
)
scratch = os.environ["INVESTIGATE_SCRATCH"]
scratch_before = sorted(path.name for path in Path(scratch).iterdir())
print(
    json.dumps(
        {
            "uid": os.getuid(),
            "gid": os.getgid(),
            "groups": [group for group in os.getgroups() if group != os.getgid()],
            "capabilities": {name: int(status[name], 16) for name in status if name.startswith("Cap")},
            "no_new_privileges": status["NoNewPrivs"],
            "interfaces": sorted(name for _, name in socket.if_nameindex()),
            "connect": attempt(connect),
            "writes": {path: attempt(lambda path=path: write(path)) for path in sys.argv[1:]},
            "scratch_before": scratch_before,
            "become_root": attempt(lambda: os.setuid(0)),
            "working_directory_is_scratch": Path.cwd().samefile(scratch),
            "environment": dict(os.environ),
            "stdin": sys.stdin.read(),
            "home_of_root": attempt(lambda: list(Path("/root").iterdir())),
            "processes": sorted(int(path.name) for path in Path("/proc").glob("[0-9]*")),
        }
    )
)
