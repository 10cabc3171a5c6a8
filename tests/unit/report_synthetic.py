"""A made-up run with every verdict in it, and hostile texts, for the tests of what people read."""

from pathlib import Path

from investigator.addons import AddonPackage
from investigator.analysis import (
    Analysis,
    CellSummary,
    Comparison,
    Control,
    Interval,
    PairKind,
    Verdict,
)
from investigator.arms import Phase
from investigator.attribution.layers import Attribution, Cause, LayerShare, Method, Symbol
from investigator.build import AddonBuild, BuildFailure
from investigator.collector import Collections, CollectorFacts
from investigator.host import HostFacts
from investigator.nodes.interface import NodeBuild
from investigator.operations import Family, Operation
from investigator.plan import Environment, Failure, Plan
from investigator.report.shapes import ReportFacts
from investigator.spec import Spec

HOSTILE = (
    "\x1b[31m[bold red]boo[/bold red]\x1b[0m | <script>alert(1)</script> `tick` ``` **b** _e_ "
    "@root #1 https://evil.example/ [x](javascript:1) \x1b]8;;http://e\x07link\x1b]8;;\x07\r\nsecond\tline\x00\x9b31m"
    "\u202eabc\u2066 $x$ \\| --- <img src=x onerror=alert(1)>"
)

NODES = {
    "20.19.5": ("11.3.244.8-node.30", "115", "9"),
    "22.21.1": ("12.4.254.21-node.33", "127", "10"),
    "24.11.1": ("13.6.233.10-node.28", "137", "10"),
}
HOST = HostFacts(
    cpu_model="AMD EPYC",
    architecture="x86_64",
    cores=2,
    cores_physical=2,
    cores_usable=2,
    memory_bytes=24 << 30,
    memory_available_bytes=23 << 30,
    swap_bytes=0,
    kernel="Linux 6.1.0-26-amd64",
    libc="glibc 2.36",
    distribution="Debian GNU/Linux 12 (bookworm)",
    virtualisation="virtual machine",
    governor="none",
    turbo="unknown",
    smt="off",
    load_average_1min=0.1,
    perf="user and kernel, cpu-clock only (no hardware counters)",
    perf_event_paranoid=2,
)
ADDON = AddonPackage(name="better-sqlite3-multiple-ciphers", version="12.11.1")
BASELINE = "node22.21.1+bsm12.11.1"

# op, family, baseline ns, then for 20.19.5 and 24.11.1: change, half width, verdict, finding, floor, rule.
Effect = tuple[float, float, Verdict, str]
ROWS: tuple[tuple[str, Family, float, Effect | None, Effect | None], ...] = (
    ("select_point", "sqlite", 2_310.0, (0.4, 0.9, "no_change", ""), (-0.6, 1.1, "no_change", "")),
    ("select_range", "sqlite", 23_000.0, (118.7, 2.4, "slower", "!"), (1.3, 0.9, "no_change", "")),
    ("select_blob_100k", "sqlite", 412_000.0, (1.9, 4.6, "undecided", ""), (-3.1, 0.6, "faster", "~")),
    ("bind_text_ascii_10k", "sqlite", 4_637.0, (0.2, 0.6, "no_change", ""), (115.6, 4.8, "slower", "!")),
    ("bind_text_twobyte_2k", "sqlite", 1_507.0, (-7.4, 1.2, "faster", "!"), (2.9, 0.7, "slower", "~")),
    ("insert_row", "sqlite", 18_900.0, (0.0, 0.0, "invalid", ""), (2.2, 3.9, "undecided", "")),
    ("open_key", "sqlite", 61_700_000.0, None, (0.3, 0.8, "no_change", "")),
    ("json_stringify", "js", 15_640_000.0, (18.2, 2.2, "slower", "!"), (-0.8, 1.4, "no_change", "")),
    ("host_loop", "js", 0.9, (0.1, 0.2, "no_change", ""), (0.0, 0.2, "no_change", "")),
)


def environment(version: str, label: str | None = None) -> Environment:
    v8, abi, napi = NODES[version]
    node = NodeBuild(
        version=version,
        source="npm",
        directory=Path("/cache") / version,
        node_sha256=(version.replace(".", "") * 16)[:64],
        versions={"v8": v8, "modules": abi, "napi": napi},
        config_sha256="0" * 64,
        label=label,
    )
    prefix = f"{label}:" if label else ""
    return Environment(id=f"{prefix}node{version}+bsm12.11.1", label=label, node=node, addon=ADDON)


def interval(change: float, half: float) -> Interval:
    return Interval(change_pct=change, ci_low_pct=change - half, ci_high_pct=change + half, confidence=0.9844)


def comparison(
    op: str,
    family: str,
    candidate: str,
    effect: Effect,
    *,
    kind: PairKind = "baseline",
    phase: Phase = "warm",
    baseline: str = BASELINE,
    warnings: tuple[str, ...] = (),
) -> Comparison:
    change, half, verdict, mark = effect
    undecided = verdict == "undecided"
    return Comparison(
        op=op,
        family=family,
        kind=kind,
        phase=phase,
        baseline=baseline,
        candidate=candidate,
        rounds=8,
        ratio=float("nan") if verdict == "invalid" else 1 + change / 100,
        wall=interval(float("nan") if verdict == "invalid" else change, half),
        cpu=interval(change * 0.98, half),
        verdict=verdict,
        finding=mark == "!",
        below_layout_floor=mark == "~",
        noise_floor_pct=0.7,
        published_rule="slower" if change > 10 else "faster" if change < -10 else "within noise",
        rounds_needed=8 if undecided and change < 2 else None,
        minutes_needed=1.6 if undecided and change < 2 else None,
        warnings=warnings,
    )


def cell(op: str, family: str, where: str, ns_per_op: float) -> CellSummary:
    return CellSummary(
        op=op,
        family=family,
        environment=where,
        rounds=8,
        ns_per_op=ns_per_op,
        ops_per_s=1e9 / ns_per_op,
        cpu_ns_per_op=ns_per_op * 1.01,
        gc_ns_per_op=ns_per_op * 0.03,
        cold_ns_per_op=ns_per_op * 7,
        spread_pct=9.3,
        best_ns_per_op=ns_per_op * 0.97,
        disturbed_passes=3,
        passes=96,
    )


def plan(*environments: Environment) -> Plan:
    environments = environments or (environment("20.19.5"), environment("22.21.1"), environment("24.11.1"))
    return Plan(
        spec=Spec(versions=("20", "22", "24"), baseline="22"),
        run_id="20261130-120000-sqlite",
        environments=environments,
        baseline=next(e.id for e in environments if e.node.version == "22.21.1"),
        operations=tuple(
            Operation(name=op, family=family, module="sqlcipher_bench/operations/x.mjs")
            for op, family, *_ in ROWS
        ),
    )


def analysis(headline: str | None = None) -> Analysis:
    candidates = ("node20.19.5+bsm12.11.1", "node24.11.1+bsm12.11.1")
    cells, comparisons = [], []
    for op, family, ns_per_op, *effects in ROWS:
        cells.append(cell(op, family, BASELINE, ns_per_op))
        comparisons.append(comparison(op, family, BASELINE, (0.1, 0.6, "no_change", ""), kind="twin"))
        for candidate, effect in zip(candidates, effects, strict=True):
            if effect is None:
                continue
            warnings = ("the computed result differs from the baseline's",) if effect[2] == "invalid" else ()
            cells.append(cell(op, family, candidate, ns_per_op * (1 + effect[0] / 100)))
            comparisons.append(comparison(op, family, candidate, effect, warnings=warnings))
            comparisons.append(comparison(op, family, candidate, _cold(op, effect), phase="cold"))
        if effects[0] is not None:
            change, half, verdict, mark = effects[0]
            back = (-change / 2, half, verdict, mark)
            comparisons.append(
                comparison(op, family, BASELINE, back, kind="predecessor", baseline=candidates[0])
            )
        if effects[1] is not None:
            comparisons.append(comparison(op, family, candidates[1], effects[1], kind="predecessor"))
    return Analysis(
        run_id="20261130-120000-sqlite",
        headline=headline
        or "slower: on Node 24.11.1 bind_text_ascii_10k takes 116 % more time per operation than on 22.21.1; "
        "on 20.19.5 select_range 119 % and json_stringify 18 % more.",
        baseline=BASELINE,
        environments=(candidates[0], BASELINE, candidates[1]),
        cells=tuple(cells),
        comparisons=tuple(comparisons),
        controls=(
            Control(
                name="host", text="The host drifted by 0.4 % over the session.", values={"drift_pct": 0.4}
            ),
            Control(name="twin", text="No operation differed from itself.", values={"worst_pct": 0.7}),
            Control(
                name="engine", text="Pure JavaScript moved by 18 % at most.", values={"max_pct": float("inf")}
            ),
        ),
        failures=(
            Failure(
                environment="node20.19.5+bsm12.11.1",
                op="open_key",
                stage="measure",
                reason="the process ended with signal 11; try `--ops open_key` alone.",
            ),
            Failure(
                environment="node20.19.5+bsm12.11.1",
                op="select_udf",
                stage="setup",
                reason=HOSTILE + "x" * 1_000_000,
            ),
        ),
        undecided_ops=("select_blob_100k", "insert_row"),
    )


def _cold(op: str, effect: Effect) -> Effect:
    if op == "select_range" and effect[2] == "slower":
        return (4.1, 2.0, "no_change", "")
    if op == "json_stringify" and effect[2] == "no_change":
        return (31.0, 9.0, "slower", "")
    return (effect[0] * 0.9, 9.0, "undecided", "")


def builds() -> dict[str, AddonBuild | BuildFailure]:
    return {
        identifier: AddonBuild(
            key="k",
            directory=Path("/cache/k"),
            entry="package/lib/index.js",
            binding="package/build/Release/better_sqlite3.node",
            binding_sha256=digit * 64,
            sqlite3_object_sha256="a" * 64,
            compiler="g++ (Debian 12.2.0-14) 12.2.0",
            flags={
                "sqlite3.c": f"cc -O3 -DNDEBUG -I/n/{digit}/include/node",
                "x.cpp": "g++ -O3 -std=gnu++20",
            },
            elapsed_s=70.0,
        )
        for identifier, digit in (
            ("node20.19.5+bsm12.11.1", "1"),
            (BASELINE, "2"),
            ("node24.11.1+bsm12.11.1", "3"),
        )
    }


def facts() -> ReportFacts:
    return ReportFacts(
        tool="investigate 0.1.0",
        folder="reports/20261130-120000-sqlite",
        engine={"engine": "docker", "version": "20.10.24", "network": "none", "root": "read-only"},
        host={
            "cpu": {"model": "AMD EPYC", "count": 2},
            "load": [0.1, 0.2],
            "memory_bytes": 8 << 30,
            "governor": None,
        },
        run={"started_at": "2026-11-30T12:00:00Z", "timed_share": 0.4321, HOSTILE: HOSTILE},
        builds=builds(),
        collectors=collectors(HOSTILE),
    )


def collectors(text: str = "") -> dict[str, CollectorFacts]:
    """Of the baseline alone: an older record has none."""
    return {
        BASELINE: CollectorFacts(
            heap_limit_bytes=4288 << 20,
            semi_space_bytes=1 << 20,
            semi_space_largest_bytes=16 << 20,
            gc_accounting_ns=1250.0,
            operations=3,
            warm_ns=123e6,
            collections=(
                Collections(kind="incremental", count=0.125, pause_ns=40e3),
                Collections(kind=f"mark_sweep_compact{text}", count=0.125, pause_ns=1.5e6),
                Collections(kind="scavenge", count=12.5, pause_ns=4.61e6),
            ),
            helper_cpu_ns=2.46e6,
            external_largest_bytes=48 << 20,
        )
    }


def attribution(text: str = "") -> Attribution:
    """An explained finding; every text that can come from outside begins with `text`."""
    parts = {
        "boundary": layer_share(4000.0, 9000.0, 0.95),
        "native_core": layer_share(2000.0, 2100.0, 0.02),
        "unexplained": layer_share(10.0, 160.0, 0.03),
    }
    return Attribution(
        op=f"{text}bind_text_ascii_10k",
        family="sqlite",
        baseline="a",
        candidate="b",
        recurred=True,
        rounds=8,
        change_pct=105.0,
        ci_low_pct=101.0,
        ci_high_pct=109.0,
        confidence=0.96,
        delta_ns_per_op=5250.0,
        layer="boundary",
        reason=f"{text}both methods put it there",
        methods=(
            Method(name="subtraction", layers=parts, largest="boundary", notes=(f"{text}a note",)),
            Method(name="profile", unavailable=f"{text}no perf"),
        ),
        methods_agree=True,
        causes=(
            Cause(
                kind="addon_source",
                name="a.cpp:1",
                layer="boundary",
                text=f"{text}src/a.cpp:1-9 moves 91 %",
                confirmed=True,
                moved=0.91,
                moved_low=0.8,
                moved_high=1.0,
            ),
        ),
        symbols=(
            Symbol(
                name=f"{text}v8::String::WriteUtf8",
                layer="boundary",
                baseline_ns_per_op=10.0,
                candidate_ns_per_op=5010.0,
                ns_per_op=5000.0,
            ),
        ),
        gc={"a": {"pause_ns_per_op": 1.0}, "b": {"pause_ns_per_op": float("nan")}},
        rejected=(f"{text}sqlite3.o is the same",),
        changed=(f"{text}v8 12.4 -> 13.6",),
        addon_functions=("Statement::JS_get",),
        evidence=("explain/x/raw",),
        warnings=(f"{text}a warning",),
    )


def layer_share(before: float, after: float, share: float) -> LayerShare:
    return LayerShare(
        baseline_ns_per_op=before,
        candidate_ns_per_op=after,
        ns_per_op=after - before,
        share=share,
        ci_low=share - 0.02,
        ci_high=share + 0.02,
    )
