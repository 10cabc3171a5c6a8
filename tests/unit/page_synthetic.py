"""A made-up run as report.html: with all kinds of figures, and the same from hostile texts."""

import functools

import msgspec
import numpy as np

from investigator.arms import Arm, ArmKey
from investigator.attributed import ProfileSide
from investigator.attribution.layers import Attribution
from investigator.profiling.stacks import Stacks, from_lines
from investigator.report.page import page
from investigator.report.page.figures import Evidence, Figures, figures
from investigator.report.view import build_view
from tests.unit import report_synthetic as synthetic
from tests.unit.report_synthetic import BASELINE, HOSTILE, attribution

CANDIDATE = "node24.11.1+bsm12.11.1"
LOOP = "main;node:node::Start;js:JS:^callMany operation.mjs:69:11;js:JS:*sync_op_0 :7:29"


def arms(ops: tuple[str, ...], rounds: int = 8) -> dict[ArmKey, Arm]:
    """Process values around a microsecond, the candidate half as slow again."""
    generator = np.random.default_rng(1)
    made: dict[ArmKey, Arm] = {}
    for op in ops:
        for environment, twin, factor in (
            (BASELINE, False, 1.0),
            (BASELINE, True, 1.0),
            (CANDIDATE, False, 1.5),
        ):
            wall = 1000.0 * factor * generator.uniform(0.98, 1.02, rounds)
            made[op, "warm", environment, twin] = Arm(
                op=op,
                wall=wall,
                cpu=wall,
                fastest=wall,
                typical=wall,
                gc=wall * 0,
                passes=8 * rounds,
                disturbed=0,
            )
    return made


def stacks(*, slower: bool = False) -> Stacks:
    api = "js:Builtins_CallApiCallbackOptimizedNoProfiling" if slower else "js:Builtins_CallApiCallback"
    return from_lines(
        (
            f"{LOOP};{api};addon:Statement::JS_get;core:sqlite3_step 300",
            f"{LOOP};{api};addon:Binder::Bind;node:v8::String::WriteUtf8 {600 if slower else 100}",
        )
    )


def evidence(found: Attribution) -> Evidence:
    return Evidence(
        arms=arms((found.op,)),
        profiles=(
            ProfileSide(environment=BASELINE, stacks=stacks(), ns_per_call=1000.0),
            ProfileSide(environment=CANDIDATE, stacks=stacks(slower=True), ns_per_call=1500.0),
        ),
    )


@functools.cache
def made() -> tuple[Figures, str]:
    """Figures and page of a run with every verdict and one explained finding."""
    plan, analysis = synthetic.plan(), synthetic.analysis()
    attributions = [msgspec.structs.replace(attribution(), baseline=BASELINE, candidate=CANDIDATE)]
    ops = tuple(operation.name for operation in plan.operations)
    drawn = figures(plan, analysis, arms(ops), attributions, evidence)
    return drawn, page.render(build_view(plan, analysis, synthetic.facts(), attributions), drawn)


@functools.cache
def hostile() -> tuple[Figures, str]:
    """Figures and page of a run whose every text from outside is hostile, some a megabyte long."""
    huge = HOSTILE + "x" * 1_000_000
    plan, analysis = synthetic.plan(), synthetic.analysis(huge)
    plan = msgspec.structs.replace(
        plan,
        run_id=huge,
        operations=tuple(msgspec.structs.replace(o, name=f"{HOSTILE}{o.name}") for o in plan.operations[:2]),
        environments=tuple(
            msgspec.structs.replace(e, label=f"</script>{HOSTILE}{i}")
            for i, e in enumerate(plan.environments)
        ),
    )
    analysis = msgspec.structs.replace(
        analysis,
        comparisons=tuple(
            msgspec.structs.replace(c, op=huge, family=HOSTILE, warnings=(huge, HOSTILE))
            for c in analysis.comparisons
        ),
    )
    hostile_symbol = "</script><img src=x onerror=alert(1)>{{ 7*7 }}"
    evil: Stacks = from_lines((f"{LOOP};addon:{hostile_symbol} 5", f"{LOOP};core:{hostile_symbol} 5"))
    attributions = [msgspec.structs.replace(attribution(huge), baseline=BASELINE, candidate=CANDIDATE)]
    drawn = figures(
        plan,
        analysis,
        arms(tuple(o.name for o in plan.operations)),
        attributions,
        lambda found: Evidence(
            arms=arms((found.op,)),
            profiles=tuple(msgspec.structs.replace(side, stacks=evil) for side in evidence(found).profiles),
        ),
    )
    facts = msgspec.structs.replace(synthetic.facts(), folder=huge, tool=huge, engine={huge: huge})
    return drawn, page.render(build_view(plan, analysis, facts, attributions), drawn)
