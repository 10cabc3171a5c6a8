"""Whether the twins make up the operations: ``python -m tests.benchmark.fidelity --ops select_point ...``.

Each operation alone in its process, its twins (C loop, replayed addon, both together) in another, as in the
explain phase. For each Node one line: ns per call of the operation, its parts, and what part of it they make
up, beside each other and with the core within the addon's calls. Attribution takes the better of the two, and
only where it is 0.90 to 1.10. Asserts nothing: it is a measurement, for quiet machines.
"""

import argparse
import tempfile
from pathlib import Path

import msgspec
import numpy as np

from investigator import measure, prepare, resolve, workflow
from investigator.attribution.subtraction import PARTS, TOGETHER, Terms, process_terms, terms, within
from investigator.measure import Bench
from investigator.observer import NullObserver
from investigator.operations import Operation, find
from investigator.plan import ONCE
from investigator.prepare import StoredPlan
from investigator.records import read_table
from investigator.rounds import learn_pace
from investigator.spec import Spec, dump_spec
from investigator.store import RunFolder

VERSIONS = "20.19.5,22.21.1,24.11.1,26.12.1"
ADDON = "better-sqlite3-multiple-ciphers@12.11.1"
OPS = (
    "select_point,select_range,select_iterate,select_blob_3k,select_blob_100k,bind_text_ascii_20,"
    "bind_text_ascii_10k,bind_text_twobyte_2k"
)


PROCESSES = (("", "alone"), ("core.", "twins"), ("boundary.", "twins"), ("together.", "twins"))


def operations(ops: list[str]) -> tuple[Operation, ...]:
    """The operations, each with a process of its own and one for its twins."""
    made = []
    for name in ops:
        for prefix, group in PROCESSES:
            if (found := find(prefix + name)) is not None:
                made.append(msgspec.structs.replace(found, group=f"{ONCE}{group}-{name}"))
    return tuple(made)


def rounds(bench: Bench, count: int) -> Bench:
    """Measure them."""
    calibration = learn_pace(bench, ())
    for number in range(1, count + 1):
        cells = measure.cells_left(bench.plan, calibration.failures)
        measure.measure_round(bench, calibration, number, calibration.failures, cells)
    for failure in calibration.failures:
        print(f"{failure.environment} {failure.op}: {failure.reason}")
    return bench


def print_table(bench: Bench, ops: list[str]) -> None:
    """One line for each operation and Node."""
    records = measure.read_rounds(bench.folder)
    table = read_table(bench.folder, bench.plan, records)
    processes = process_terms(table[table["phase"] == "pass"])
    numbers = [record.number for record in records]
    heads = (*PARTS, "core within", "beside", "within")
    print(f"{'operation':24}{'node':9}{'total':>9}" + "".join(f"{head:>12}" for head in heads))
    for op in ops:
        twins = {"native_core": f"core.{op}", "boundary": f"boundary.{op}", TOGETHER: f"together.{op}"}
        for environment in bench.plan.environments:
            print(
                line(op, environment.node.version, terms(processes, environment.id, op, numbers, twins=twins))
            )


def line(op: str, version: str, found: Terms) -> str:
    """Medians over rounds; at the end what part the twins make up in either way of putting them together."""
    inside = within(found)
    times = [found[part] for part in PARTS]
    times += [inside["native_core"]] if inside else [np.full(1, np.nan)]
    ways = [1.0 - np.nanmedian(way["unexplained"] / way["total"]) for way in (found, inside) if way]
    return (
        f"{op:24}{version:9}{np.nanmedian(found['total']):9.0f}"
        + "".join(f"{np.nanmedian(values):12.0f}" for values in times)
        + "".join(f"{way:12.2f}" for way in ways)
    )


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmark.fidelity")
    parser.add_argument("--versions", default=VERSIONS)
    parser.add_argument("--addon", default=ADDON)
    parser.add_argument("--ops", default=OPS)
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    ops = given.ops.split(",")
    spec = Spec(
        command="sqlite", versions=tuple(given.versions.split(",")), addon=given.addon, ops=tuple(ops)
    )
    observer = NullObserver()
    resolved = resolve.resolve(spec, observer, resolve.likely_engine(spec))
    with workflow.measuring(), tempfile.TemporaryDirectory(prefix="investigate-fidelity-") as place:
        folder = RunFolder(Path(place))
        folder.write_json("resolved.json", "resolved", resolve.RESOLVED_SCHEMA, resolved)
        folder.write("spec.toml", dump_spec(spec))
        with workflow.opened(folder, observer) as (_, _, engine):
            stored = prepare.prepare(spec, resolved, folder, engine, observer)
            plan = msgspec.structs.replace(stored.plan, operations=operations(ops))
            stored = StoredPlan(
                plan=plan, builds=stored.builds, build_failures=stored.build_failures, failures=()
            )
            bench, _ = workflow.set_up(stored, folder, engine, observer)
            bench = msgspec.structs.replace(bench, host_control=lambda: None)
            print_table(rounds(bench, given.rounds), ops)


if __name__ == "__main__":
    main()
