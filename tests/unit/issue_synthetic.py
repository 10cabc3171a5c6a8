"""One finding as an issue text knows it, made up, for the tests of these texts."""

from pathlib import Path

import msgspec

from investigator.addons import AddonPackage
from investigator.analysis import Comparison
from investigator.attribution.layers import Attribution, Cause, Named, Symbol
from investigator.build import AddonBuild
from investigator.causes.ablation import AblationReport, AblationResult
from investigator.causes.build import BuildDifference
from investigator.causes.flags import Ablation
from investigator.causes.shares import Share
from investigator.nodes.platform import PlatformFacts
from investigator.plan import Environment, Plan
from investigator.report.issue.material import Material, Measured, Reproduction, Reproductions, Side
from tests.unit import report_synthetic as synthetic

OP = "bind_text_ascii_10k"
LOW, HIGH = synthetic.environment("22.21.1"), synthetic.environment("24.11.1")
OLD = synthetic.environment("20.19.5")

PLATFORM = PlatformFacts(
    uname="Linux 6.1.0-26-amd64 #1 SMP Debian 6.1.112-1 x86_64",
    libc="glibc 2.36",
    cpus=2,
    memory_limit="4294967296",
    cpu_quota="max 100000",
    pids_limit="512",
)
SNIPPET = Reproduction(
    name="snippet-v8",
    title="a V8 addon of 40 lines",
    files=(("addon.cc", "\n".join(f"// line {number}" for number in range(40))),),
    command="npx node-gyp rebuild && node snippet.mjs",
    printed="v22.21.1 4.64 us\nv24.11.1 9.98 us\nratio 2.15",
    reason="2.15 times, the finding is 2.16 times",
    dependency_free=True,
)
REAL = msgspec.structs.replace(
    SNIPPET,
    name="real",
    title="the addon itself",
    files=(("real.mjs", "import Database from 'better-sqlite3-multiple-ciphers';"),),
    command="npm install better-sqlite3-multiple-ciphers@12.11.1 && node real.mjs",
    dependency_free=False,
)
REPRODUCTIONS = Reproductions(
    shipped=(SNIPPET, REAL), not_shown=("the statement through node:sqlite (+2.0 %)",), not_run=()
)


def side(environment: Environment, ns_per_op: float, binding: str) -> Side:
    build = AddonBuild(
        key="k",
        directory=Path("/home/alice/.cache/investigate/builds/k"),
        entry="package/lib/index.js",
        binding="package/build/Release/better_sqlite3.node",
        binding_sha256=binding * 64,
        sqlite3_object_sha256="a" * 64,
        compiler="g++ (Debian 12.2.0-14) 12.2.0",
        flags={"sqlite3.c": "cc -O3 -DNDEBUG -I/home/alice/node/include -o out.o sqlite3.c"},
        elapsed_s=70.0,
    )
    return Side(
        environment=environment,
        build=build,
        ns_per_op=ns_per_op,
        cpu_user_ns=ns_per_op * 0.98,
        cpu_system_ns=ns_per_op * 0.02,
        gc_pause_ns=0.0,
        switches_per_s=12.0,
        rss_bytes=float(80 << 20),
        processes=16,
        by_round=(
            tuple(ns_per_op * (1 + 0.001 * number) for number in range(8)),
            (*tuple(ns_per_op * (1 - 0.001 * number) for number in range(7)), float("nan")),
        ),
    )


def comparison(change: float = 115.6, op: str = OP, *, finding: bool = True) -> Comparison:
    verdict = "slower" if change > 0 else "faster"
    return synthetic.comparison(
        op,
        "sqlite",
        HIGH.id,
        (change, 4.8, verdict, "!" if finding else ""),  # type: ignore[arg-type]
    )


def measured(pair: Comparison, *, alone: bool = True) -> Measured:
    return Measured(
        comparison=pair,
        twin=synthetic.comparison(
            pair.op, pair.family, LOW.id, (0.1, 0.6, "no_change", ""), kind="twin", baseline=LOW.id
        ),
        baseline=side(LOW, 4_637.0, "2"),
        candidate=side(HIGH, 4_637.0 * pair.ratio, "3"),
        alone=alone,
        disturbed=3,
        passes=192,
    )


def attribution(layer: Named = "boundary", causes: tuple[Cause, ...] = ()) -> Attribution:
    return msgspec.structs.replace(
        synthetic.attribution(),
        op=OP,
        baseline=LOW.id,
        candidate=HIGH.id,
        layer=layer,
        reason="both methods put it there: 91 % [87, 96] of the change by subtraction",
        causes=causes,
        symbols=(
            Symbol(
                name="v8::internal::String::WriteUtf8",
                layer="boundary",
                baseline_ns_per_op=0.0,
                candidate_ns_per_op=5_000.0,
                ns_per_op=5_000.0,
            ),
        ),
        rejected=(
            "SQLite: sqlite3.o is bit-identical on both sides",
            "the addon's own source at src/a.cpp:7: no",
        ),
    )


def cause(kind: str = "addon_source") -> Cause:
    return Cause(
        kind=kind,  # type: ignore[arg-type]
        name="src/objects/row.cpp:10-42",
        text=f"{kind}: src/objects/row.cpp:10-42 moves 97 % of the change",
        confirmed=True,
        moved=0.97,
    )


def flags() -> AblationReport:
    share = Share(estimate=0.9, low=0.8, high=1.0, confidence=0.96, rounds=6)
    return AblationReport(
        op=OP,
        baseline=LOW.id,
        candidate=HIGH.id,
        folder="ablation/x",
        results=(
            AblationResult(
                ablation=Ablation(
                    name="--no-maglev",
                    kind="engine",
                    subsystem="Maglev",
                    baseline_flags=("--no-maglev",),
                    candidate_flags=("--no-maglev",),
                    origin="switch",
                    one_sided=False,
                ),
                closed=share,
                baseline_ns=10.0,
                candidate_ns=11.0,
                final=True,
                closes=True,
            ),
        ),
        rounds=9,
        elapsed_s=60.0,
    )


def material(
    layer: Named = "boundary",
    *,
    change: float = 115.6,
    causes: tuple[Cause, ...] = (),
    plan: Plan | None = None,
    made: Reproductions | None = None,
) -> Material:
    pair = comparison(change)
    return Material(
        tool="investigate 0.1.0",
        started_at="2026-11-30T12:00:00Z",
        plan=plan or synthetic.plan(),
        published=measured(pair),
        screen=measured(comparison(change * 1.1), alone=False),
        attribution=attribution(layer, causes),
        others=(
            synthetic.comparison(OP, "sqlite", OLD.id, (0.2, 0.6, "no_change", "")),
            synthetic.comparison("bind_text_twobyte_2k", "sqlite", HIGH.id, (2.9, 0.7, "slower", "~")),
            synthetic.comparison("json_stringify", "js", HIGH.id, (-0.8, 1.4, "no_change", "")),
        ),
        cold=synthetic.comparison(OP, "sqlite", HIGH.id, (90.0, 9.0, "slower", ""), phase="cold"),
        failed=(),
        flags=(),
        host=synthetic.HOST,
        platform=PLATFORM,
        engine={"engine": "docker", "version": "20.10.24", "network": "none", "root": "read-only"},
        addon_versions={"sqlite": "3.53.2", "cipher": "SQLite3 Multiple Ciphers 2.3.5"},
        config=(
            BuildDifference(
                what="config.gypi",
                subject="variables.v8_enable_maglev",
                baseline="0",
                candidate="1",
                relevance="code",
            ),
            BuildDifference(
                what="config.gypi",
                subject="variables.node_prefix",
                baseline="/home/alice/out",
                candidate="/",
                relevance="none",
            ),
        ),
        build_differences=(),
        reproductions=made,
    )


def pure_js() -> Material:
    """A finding of a ``js`` run: no addon at all."""
    known = material("engine")
    low, high = (msgspec.structs.replace(e, addon=None) for e in (LOW, HIGH))
    pair = msgspec.structs.replace(known.published.comparison, op="json_stringify", family="js")
    found = msgspec.structs.replace(
        known.published,
        comparison=pair,
        baseline=msgspec.structs.replace(known.published.baseline, environment=low, build=None),
        candidate=msgspec.structs.replace(known.published.candidate, environment=high, build=None),
    )
    return msgspec.structs.replace(known, published=found, screen=None, build_differences=None)


def of_addons() -> Material:
    """A finding of a run that compares addons on one Node."""
    known = material()
    new = AddonPackage(
        name="better-sqlite3-multiple-ciphers", version="13.0.3", integrity="sha512-x", napi=10
    )
    high = msgspec.structs.replace(LOW, id="node22.21.1+bsm13.0.3", addon=new)
    plan = synthetic.plan(LOW, high)
    addons = ("better-sqlite3-multiple-ciphers@12.11.1", "13.0.3")
    spec = msgspec.structs.replace(
        plan.spec, axis="addon", versions=("22.21.1",), addons=addons, budget_min=8.0, baseline=None
    )
    plan = msgspec.structs.replace(plan, spec=spec)
    candidate = msgspec.structs.replace(known.published.candidate, environment=high)
    found = msgspec.structs.replace(known.published, candidate=candidate)
    return msgspec.structs.replace(known, plan=plan, published=found, screen=None, others=())
