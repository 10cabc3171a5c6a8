"""What the explain phase left in a run folder, and the attributions that follow from it: offline."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd

from investigator import measure
from investigator.analysis import Analysis, Comparison
from investigator.attribution.findings import recurs
from investigator.attribution.layers import Attribution, Cause, LayerShare, Method, Symbol
from investigator.attribution.methods import Pair, Profiled, pair_terms, profile, subtract
from investigator.attribution.rule import by_experiment, rule
from investigator.attribution.subtraction import Terms
from investigator.invoke import read_events
from investigator.plan import Failure, Plan
from investigator.probes import ProbeBuild
from investigator.profiling import exports
from investigator.profiling.growth import symbol_growth
from investigator.profiling.profiler import Profiler
from investigator.profiling.reading import SUFFIX, ProfileReading, read_profile
from investigator.profiling.stacks import Stacks, added
from investigator.protocol import Pass
from investigator.records import analyse_table, read_table
from investigator.stats.process import process_values
from investigator.store import RunFolder
from investigator.tested import tested

EXPLAIN_SCHEMA = 1
FOLDER = "explain"
MOST_SYMBOLS = 30
MOST_FUNCTIONS = 300


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A finding to explain."""

    op: str
    candidate: str


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """explained.json: what a nested run measures; written before its first process."""

    target: Target
    plan: Plan
    probes: dict[str, ProbeBuild]
    twins: dict[str, str]
    """``native_core``, ``boundary`` and ``together`` (both at once) to the operation that measures it."""
    without_twin: dict[str, str]
    """The same keys to the reason why there is none."""
    profiler: Profiler


def targets(analysis: Analysis, wanted: str) -> tuple[Target, ...]:
    """The findings that ``--explain`` asks for, largest first: ``all``, ``none`` or a number."""
    if wanted == "none":
        return ()
    findings = sorted((c for c in analysis.comparisons if c.finding), key=_size, reverse=True)
    chosen = findings if wanted == "all" else findings[: int(wanted)]
    return tuple(Target(op=c.op, candidate=c.candidate) for c in chosen)


def _size(comparison: Comparison) -> float:
    """Halving and doubling are equally large."""
    return max(comparison.ratio, 1.0 / comparison.ratio) if comparison.ratio > 0 else float("inf")


def folder_of(run: RunFolder, target: Target) -> RunFolder:
    """The nested folder of a target."""
    return RunFolder(run.path / FOLDER / f"{_slug(target.op)}--{_slug(target.candidate)}")


def profile_path(folder: RunFolder, environment: str, round_number: int) -> Path:
    """Where the profile of one environment and round lies, without the ending that says what it is."""
    return folder.path / "profiles" / f"round-{round_number:03d}--{_slug(environment)}"


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "_", text)[:120]


def read_explained(folder: RunFolder) -> Explained:
    """Read explained.json.

    Raises:
        StoredFileError: missing, damaged, or written by a newer tool.
    """
    return folder.read_json("explained.json", "explained", EXPLAIN_SCHEMA, Explained)


# -- attributions -------------------------------------------------------------------------------------------


def attributions(run: RunFolder, screen: Analysis) -> tuple[Attribution, ...]:
    """All findings of a run that have been explained, in the order of the tables.

    Raises:
        StoredFileError: a record of a nested run is damaged, or its explained.json is lost.
    """
    found = []
    for comparison in screen.comparisons:
        if not comparison.finding:
            continue
        folder = folder_of(run, Target(op=comparison.op, candidate=comparison.candidate))
        if folder.finished_rounds():
            found.append(attribution(run, folder, comparison))
    return tuple(found)


class _Again(msgspec.Struct, frozen=True, kw_only=True):
    """The rounds of the explain phase."""

    comparison: Comparison | None
    table: pd.DataFrame
    rounds: tuple[int, ...]
    failures: tuple[Failure, ...]


def attribution(run: RunFolder, folder: RunFolder, screen: Comparison) -> Attribution:
    """The attribution of one finding, from its nested folder."""
    explained = read_explained(folder)
    again = _again(folder, explained)
    evidence = (_relative(run, folder.raw), _relative(run, folder.path / "profiles"))
    if again.comparison is None:
        reasons = (f.reason for f in again.failures if f.op in {None, screen.op})
        reason = next(reasons, "it could not be measured again")
        return _bare(screen, recurred=False, rounds=0, reason=reason, evidence=evidence)
    if not recurs(screen, again.comparison):
        reason = "the flag did not show again in new rounds: withdrawn"
        rounds = len(again.rounds)
        return _bare(
            screen, again.comparison, recurred=False, rounds=rounds, reason=reason, evidence=evidence
        )
    return _explained(run, folder, explained, again, screen, evidence)


def _again(folder: RunFolder, explained: Explained) -> _Again:
    plan, op = explained.plan, explained.target.op
    calibration = folder.read_json(
        "calibration.json", "calibration", measure.CALIBRATION_SCHEMA, measure.Calibration
    )
    records = measure.read_rounds(folder)
    table = read_table(folder, plan, records)
    analysis = analyse_table(plan, calibration, records, table)
    usable = [c for c in analysis.pairs() if c.op == op and c.verdict != "invalid" and c.rounds > 0]
    return _Again(
        comparison=usable[0] if usable else None,
        table=table[table["phase"] == "pass"],
        rounds=tuple(record.number for record in records),
        failures=analysis.failures,
    )


def _explained(
    run: RunFolder,
    folder: RunFolder,
    explained: Explained,
    again: _Again,
    screen: Comparison,
    evidence: tuple[str, ...],
) -> Attribution:
    measured = {*again.table["op"].unique()}
    pair = Pair(
        op=screen.op,
        family=screen.family,
        baseline=screen.baseline,
        candidate=screen.candidate,
        rounds=again.rounds,
        twins={layer: name for layer, name in explained.twins.items() if name in measured},
        without_twin={**explained.without_twin, **_failed_twins(explained, again)},
    )
    low, high = pair_terms(pair, again.table)
    subtraction, _ = subtract(pair, low, high)
    readings = tuple(_readings(folder, explained.plan, again.rounds))
    by_profile, found = profile(pair, low, high, [_profiled(reading) for reading in readings])
    if explained.profiler.kind == "none":
        by_profile = Method(name="profile", unavailable=explained.profiler.reason)
    ruling = rule(subtraction, by_profile, found)
    functions = _addon_functions(readings)
    found_causes = tested(run, folder, pair.op, (pair.baseline, pair.candidate), functions)
    experiment = _experiment(found_causes.causes, by_profile)
    ruling = by_experiment(ruling, subtraction, by_profile, experiment)
    return msgspec.structs.replace(
        _bare(
            screen,
            again.comparison,
            recurred=True,
            rounds=len(again.rounds),
            reason=ruling.reason,
            evidence=evidence,
        ),
        layer=ruling.layer,
        methods=tuple(m for m in (subtraction, by_profile, experiment) if m is not None),
        methods_agree=ruling.agree,
        delta_ns_per_op=_delta_ns(low, high),
        symbols=_symbols(pair, low, high, readings),
        addon_functions=functions,
        gc=_gc_figures(again.table, pair),
        causes=found_causes.causes,
        rejected=found_causes.rejected,
        changed=found_causes.changed,
        warnings=found_causes.warnings,
    )


def _experiment(causes: Sequence[Cause], by_profile: Method) -> Method | None:
    """The experiment that closes most of the gap, as a method; on the layer that its flags belong to."""
    closing = [c for c in causes if c.confirmed and c.moved is not None and c.layer is not None]
    if not closing:
        return None
    best = max(closing, key=lambda cause: cause.moved or 0.0)
    ns_per_op = sum(layer.ns_per_op for layer in by_profile.layers.values()) * (best.moved or 0.0)
    share = LayerShare(
        baseline_ns_per_op=float("nan"),
        candidate_ns_per_op=float("nan"),
        ns_per_op=ns_per_op,
        share=best.moved or 0.0,
        ci_low=best.moved_low if best.moved_low is not None else float("-inf"),
        ci_high=best.moved_high if best.moved_high is not None else float("inf"),
    )
    layer = str(best.layer)
    return Method(
        name="ablation" if best.kind == "v8_flag" else "swap",
        layers={layer: share},
        largest=layer,
        notes=(best.name,),
    )


def export_profiles(run: RunFolder, attributions: Sequence[Attribution]) -> None:
    """Write the profiles of each explained finding in forms that others read, beside their raw ones.

    ``profiles/<environment>.speedscope.json`` and ``.collapsed.txt`` for each side, and ``difference.txt``,
    whose lines are ``stack before after``.
    """
    for found in attributions:
        folder = folder_of(run, Target(op=found.op, candidate=found.candidate))
        sides = profile_sides(run, found)
        for side in sides:
            stem = f"profiles/{_slug(side.environment)}"
            name = f"{found.op} on {side.environment}"
            folder.write(f"{stem}.speedscope.json", exports.speedscope(name, side.stacks, side.ns_per_call))
            folder.write(f"{stem}.collapsed.txt", exports.collapsed(side.stacks))
        if len(sides) == 2:
            before, after = sides
            difference = exports.difference(
                before.stacks, after.stacks, before.ns_per_call, after.ns_per_call
            )
            folder.write("profiles/difference.txt", difference)


class ProfileSide(msgspec.Struct, frozen=True, kw_only=True):
    """All profiles of one environment of an explained finding, added up."""

    environment: str
    stacks: Stacks
    ns_per_call: float
    """Median over rounds of the time of a call under the profiler."""


def explained_table(run: RunFolder, found: Attribution) -> pd.DataFrame:
    """The passes of the explain phase of one finding, twins in C included.

    Raises:
        StoredFileError: a record of the nested run is damaged.
    """
    folder = folder_of(run, Target(op=found.op, candidate=found.candidate))
    return read_table(folder, read_explained(folder).plan, measure.read_rounds(folder))


def profile_sides(run: RunFolder, found: Attribution) -> tuple[ProfileSide, ...]:
    """Profiles of baseline and candidate, as far as there are any.

    Raises:
        StoredFileError: a record of the nested run is damaged.
    """
    folder = folder_of(run, Target(op=found.op, candidate=found.candidate))
    explained = read_explained(folder)
    rounds = tuple(record.number for record in measure.read_rounds(folder))
    readings = tuple(_readings(folder, explained.plan, rounds))
    sides = []
    for environment in explained.plan.environments:
        own = [r for r in readings if r.header.environment == environment.id]
        if not own:
            break
        sides.append(
            ProfileSide(
                environment=environment.id,
                stacks=added(r.stacks for r in own),
                ns_per_call=float(np.median([r.ns_per_call for r in own])),
            )
        )
    return tuple(sides)


def _readings(folder: RunFolder, plan: Plan, rounds: Sequence[int]) -> Iterator[ProfileReading]:
    for environment in plan.environments:
        for number in rounds:
            stem = profile_path(folder, environment.id, number)
            path = stem.with_name(stem.name + SUFFIX)
            if path.exists() and (reading := read_profile(path)).unavailable is None:
                yield msgspec.structs.replace(reading, file=path)


def _profiled(reading: ProfileReading) -> Profiled:
    return Profiled(
        environment=reading.header.environment,
        round=reading.header.round,
        layers={str(layer): count for layer, count in reading.layers.items()},
        broken=reading.broken,
        ns_per_call=_profiled_ns(reading),
    )


def _profiled_ns(reading: ProfileReading) -> float:
    """Time per call under the profiler, reduced as in the unprofiled processes; their mean without events."""
    if reading.file is None:
        return reading.ns_per_call
    events, _ = read_events(reading.file.with_name(reading.file.name.removesuffix(SUFFIX) + ".jsonl"))
    passes = [event for event in events if isinstance(event, Pass) and event.phase == "pass"]
    if not passes:
        return reading.ns_per_call
    wall, pause, calls = (
        np.array(column, dtype=np.float64)
        for column in zip(
            *((p.wall_ns, sum(gc.pause_ns for gc in p.gc), p.calls) for p in passes), strict=True
        )
    )
    one = np.zeros(len(passes), dtype=np.int64)
    lap = np.array([p.lap for p in passes], dtype=np.int64)
    return float(process_values(one, 1, wall_ns=wall, gc_pause_ns=pause, calls=calls, lap=lap)[0])


def _delta_ns(low: Terms, high: Terms) -> float:
    difference = high["total"] - low["total"]
    return float(np.nanmedian(difference)) if np.isfinite(difference).any() else float("nan")


def _symbols(pair: Pair, low: Terms, high: Terms, readings: Sequence[ProfileReading]) -> tuple[Symbol, ...]:
    """Functions whose own time changed most, largest change first, whatever its sign."""
    sides = [
        [reading.stacks for reading in readings if reading.header.environment == environment]
        for environment in (pair.baseline, pair.candidate)
    ]
    times = [float(np.nanmedian(side["total"])) for side in (low, high)]
    grown = symbol_growth(sides[0], sides[1], times[0], times[1])
    return tuple(
        Symbol(
            name=growth.symbol,
            layer=growth.layer,
            baseline_ns_per_op=growth.before_ns_per_op,
            candidate_ns_per_op=growth.after_ns_per_op,
            ns_per_op=growth.delta_ns_per_op,
        )
        for growth in sorted(grown, key=lambda g: -abs(g.delta_ns_per_op))[:MOST_SYMBOLS]
    )


def _addon_functions(readings: Sequence[ProfileReading]) -> tuple[str, ...]:
    names = {
        frame.symbol
        for reading in readings
        for stack in reading.stacks
        for frame in stack.frames
        if frame.origin == "addon"
    }
    return tuple(sorted(names)[:MOST_FUNCTIONS])


def _gc_figures(table: pd.DataFrame, pair: Pair) -> dict[str, dict[str, float]]:
    """Collections of the operation alone in its process, by environment."""
    own = table[table["op"] == pair.op]
    figures = {}
    for environment in (pair.baseline, pair.candidate):
        rows = own[own["environment"] == environment]
        calls = max(float(rows["calls"].sum()), 1.0)
        figures[environment] = {
            "pause_ns_per_op": float(rows["gc_pause_ns"].sum()) / calls,
            "scavenges_per_million_calls": float(rows["gc_scavenge_count"].sum()) / calls * 1e6,
            "mark_sweeps_per_million_calls": float(rows["gc_mark_sweep_count"].sum()) / calls * 1e6,
            "external_bytes": float(rows["external_bytes"].median()),
            "helper_cpu_ns_per_op": _helper_cpu_ns(rows) / calls,
        }
    return figures


def _helper_cpu_ns(rows: pd.DataFrame) -> float:
    """CPU time of all threads but the main one, where the probe has read the main one's."""
    known = rows[rows["main_user_ns"] >= 0]
    whole = known["cpu_user_ns"] + known["cpu_system_ns"]
    main = known["main_user_ns"] + known["main_system_ns"]
    return max(float((whole - main).sum()), 0.0)


def _failed_twins(explained: Explained, again: _Again) -> dict[str, str]:
    """Reasons of the twins that were planned and could not be measured."""
    reasons = {failure.op: failure.reason for failure in again.failures}
    measured = {*again.table["op"].unique()}
    return {
        layer: reasons.get(name, f"{name} could not be measured")
        for layer, name in explained.twins.items()
        if name not in measured
    }


def _relative(run: RunFolder, path: Path) -> str:
    return path.relative_to(run.path).as_posix()


def _bare(
    screen: Comparison,
    again: Comparison | None = None,
    *,
    recurred: bool,
    rounds: int,
    reason: str,
    evidence: tuple[str, ...],
) -> Attribution:
    """An attribution without a layer."""
    shown = (again or screen).wall
    return Attribution(
        op=screen.op,
        family=screen.family,
        baseline=screen.baseline,
        candidate=screen.candidate,
        recurred=recurred,
        rounds=rounds,
        change_pct=shown.change_pct,
        ci_low_pct=shown.ci_low_pct,
        ci_high_pct=shown.ci_high_pct,
        confidence=shown.confidence,
        delta_ns_per_op=float("nan"),
        layer="unknown",
        reason=reason,
        methods=(),
        methods_agree=False,
        evidence=evidence,
    )
