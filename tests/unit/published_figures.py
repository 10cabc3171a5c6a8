"""Published figures of our own in the shapes of other people's files, for the tests of the audit."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

SETTINGS = ("Usual", "In Memory", "No Sync", "Big Cache", "Mapped")
# Selects per second. The first setting of 24.0.1 says -60 %, the best ones 2000 against 1900: -5 %.
SELECTS = {
    "20.1.0": (2000, 1500, 1000, 1800, 1600),
    "24.0.1": (800, 1200, 1900, 1000, 1300),
}
TIMES = {"20.1.0": "2025-03-01T10:00:00.000Z", "24.0.1": "2025-03-01T11:30:00.000Z"}


def suite(
    version: str,
    selects: Sequence[object],
    *,
    timestamp: object = "2025-03-01T10:00:00.000Z",
    library: str | None = None,
    extra: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """The content of one result file of the suite."""
    results: dict[str, object] = {}
    for setting, rate in zip(SETTINGS, selects, strict=False):
        body: dict[str, object] = {
            "configName": setting,
            "setup_time": 100.0,
            "insert_ops_per_sec": 5000,
            "select_ops_per_sec": rate,
            "vacuum_time": 0,
            "db_size_mb": "1.00",
        }
        if library:
            body["library"] = library
        results[setting] = body
    results.update(extra or {})
    return {
        "timestamp": timestamp,
        "node_version": f"v{version}",
        "platform": "linux",
        "arch": "x64",
        "results": results,
    }


def write_json(folder: Path, name: str, value: object) -> str:
    path = folder / name
    path.write_text(json.dumps(value), encoding="utf-8")
    return str(path)


def suite_files(folder: Path) -> list[str]:
    """Two versions of the suite."""
    return [
        write_json(folder, f"v{version}.json", suite(version, rates, timestamp=TIMES[version]))
        for version, rates in SELECTS.items()
    ]


def compare_csv(old: Sequence[float], new: Sequence[float], *, interleaved: bool = True) -> str:
    """What compare.js prints for two binaries."""
    before = [f'"old", "buffers/x.js", "n=10 type=""a""", {rate}, 1.5' for rate in old]
    after = [f'"new", "buffers/x.js", "n=10 type=""a""", {rate}, 1.5' for rate in new]
    pairs = [line for pair in zip(before, after, strict=True) for line in pair]
    lines = pairs if interleaved else before + after
    return "\n".join(['"binary", "filename", "configuration", "rate", "time"', *lines, ""])


def hyperfine(times: Mapping[str, Sequence[float]]) -> dict[str, object]:
    """hyperfine's JSON export."""
    return {
        "results": [
            {
                "command": command,
                "mean": sum(runs) / len(runs),
                "stddev": 0.01,
                "median": sorted(runs)[len(runs) // 2],
                "user": 0.1,
                "system": 0.01,
                "min": min(runs),
                "max": max(runs),
                "times": list(runs),
                "exit_codes": [0] * len(runs),
            }
            for command, runs in times.items()
        ]
    }
