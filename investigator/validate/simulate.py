"""How often a fix is judged wrongly, on recorded noise: ``python -m investigator.validate.simulate``.

The noise is that of `stats.simulate`; one operation, measured once a round on baseline and fix and twice on
the regressed side, is judged by the code that judges runs, at both looks.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from investigator.analysis import analyse_arms
from investigator.arms import Arm, ArmKey, Arms
from investigator.nodes.interface import NodeBuild
from investigator.operations import Operation
from investigator.plan import Environment, Plan
from investigator.spec import ARMS, USUAL, Fix, Spec
from investigator.stats.simulate import RECORDED, Noise, one_cell
from investigator.validate.judge import judge_fix
from investigator.validate.shapes import Outcome

OP = "simulated"
LOSSES = (0.05, 0.1, 0.3, 1.15)
SHARES = (0.0, 0.6, 0.79, 0.9, 1.0)


def rates(
    cells: int, *, loss: float, share: float, noise: Noise = RECORDED, seed: int = 17
) -> dict[Outcome, float]:
    """Share of `cells` simulated validations that end with each outcome.

    Args:
        cells: how many.
        loss: what the regressed side takes longer, 0.05 for 5 %.
        share: what the fix really brings back of it, on the log scale.
        noise: what disturbs the measurement.
        seed: of the noise.
    """
    plan = _plan()
    rng = np.random.default_rng(seed)
    counts: dict[Outcome, int] = {}
    for _ in range(cells):
        everything = _arms(rng, loss, share, noise, plan.spec.max_rounds)
        outcome: Outcome = "cannot_tell"
        for rounds in plan.spec.looks:
            seen = {key: _first(arm, rounds) for key, arm in everything.items()}
            answer = judge_fix(plan, seen, analyse_arms(plan, seen))
            outcome = "cannot_tell" if answer is None else answer.outcome
            if outcome != "cannot_tell":
                break
        counts[outcome] = counts.get(outcome, 0) + 1
    return {outcome: count / cells for outcome, count in counts.items()}


def _plan() -> Plan:
    environments = tuple(
        Environment(
            id=label,
            label=label,
            node=NodeBuild(
                version="0.0.0",
                source="npm",
                directory=Path(),
                node_sha256="",
                versions={},
                config_sha256="",
                label=label,
            ),
            addon=None,
        )
        for label in ARMS
    )
    spec = Spec(versions=ARMS, baseline="regressed", fix=Fix(kind="node", ops=(OP,)))
    return Plan(
        spec=spec,
        run_id="simulated",
        environments=environments,
        baseline="regressed",
        operations=(Operation(name=OP, family="sqlite", module=""),),
    )


def _arms(rng: np.random.Generator, loss: float, share: float, noise: Noise, rounds: int) -> Arms:
    cell = one_cell(rng, 0.0, noise, rounds, passes=USUAL.passes, candidates=2)
    columns: Mapping[ArmKey, tuple[int, float]] = {
        (OP, "warm", "regressed", False): (0, 1.0 + loss),
        (OP, "warm", "regressed", True): (1, 1.0 + loss),
        (OP, "warm", "baseline", False): (2, 1.0),
        (OP, "warm", "fix", False): (3, (1.0 + loss) ** (1.0 - share)),
    }
    return {
        key: Arm(
            op=OP,
            wall=cell.wall[:, column] * factor,
            cpu=cell.cpu[:, column] * factor,
            fastest=cell.fastest[:, column] * factor,
            typical=cell.typical[:, column] * factor,
            gc=np.zeros(rounds),
            passes=rounds * USUAL.passes,
            disturbed=0,
        )
        for key, (column, factor) in columns.items()
    }


def _first(arm: Arm, rounds: int) -> Arm:
    return msgspec.structs.replace(
        arm,
        wall=arm.wall[:rounds],
        cpu=arm.cpu[:rounds],
        fastest=arm.fastest[:rounds],
        typical=arm.typical[:rounds],
        gc=arm.gc[:rounds],
    )


def main(arguments: list[str] | None = None) -> None:
    """Print the table of the README."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--cells", type=int, default=500, help="simulated validations per line")
    chosen = parser.parse_args(arguments)
    out = sys.stdout.write
    out(f"{chosen.cells} validations a line, 80 % wanted, 8 then 16 rounds\n\n")
    out("| loss | really came back | pass | fail | cannot tell |\n|---|---|---|---|---|\n")
    for loss in LOSSES:
        for share in SHARES:
            found = rates(chosen.cells, loss=loss, share=share)
            shown = (f"{found.get(o, 0.0) * 100:.1f} %" for o in ("pass", "fail", "cannot_tell"))
            out(f"| +{loss * 100:.0f} % | {share * 100:.0f} % | {' | '.join(shown)} |\n")


if __name__ == "__main__":
    main()
