"""Exit codes of a finished run: a gate, and a run that has no answer."""

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from investigator import gate, results, workflow
from investigator.analysis import Analysis
from investigator.errors import EXIT_NOTHING_BUILT
from investigator.plan import Failure
from tests.unit import report_synthetic as synthetic
from tests.unit.test_cli import call

PLAN = synthetic.plan()
BAD_FLAG = "the worker ended early with status 9; it said: node: bad option: --no-such."


def failed(*environments: str) -> tuple[Failure, ...]:
    return tuple(Failure(environment=e, op="json_parse", stage="load", reason=BAD_FLAG) for e in environments)


def without(analysis: Analysis, *environments: str) -> Analysis:
    """The analysis of the same run with no measurement in these environments."""
    return msgspec.structs.replace(
        analysis,
        cells=tuple(c for c in analysis.cells if c.environment not in environments),
        comparisons=tuple(
            c for c in analysis.comparisons if not {c.baseline, c.candidate} & set(environments)
        ),
        failures=failed(*environments),
    )


ALL = tuple(environment.id for environment in PLAN.environments)
OTHERS = tuple(identifier for identifier in ALL if identifier != synthetic.BASELINE)


def test_a_run_without_a_figure_says_why() -> None:
    said = gate.no_answer(without(synthetic.analysis(), *ALL))
    assert said is not None
    assert said.startswith("nothing could be measured: json_parse on node20.19.5+bsm12.11.1 failed because")
    assert "bad option: --no-such" in said
    assert said.endswith(".")
    assert ".." not in said


@pytest.mark.parametrize("lost", [(), OTHERS[:1], OTHERS, (synthetic.BASELINE,)])
def test_a_run_with_any_figure_is_no_failure(lost: tuple[str, ...]) -> None:
    assert gate.no_answer(without(synthetic.analysis(), *lost)) is None


def test_the_reports_are_there_and_the_exit_code_says_that_nothing_is_in_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    analysis = without(synthetic.analysis(), *ALL)
    finished = SimpleNamespace(
        stored=SimpleNamespace(plan=PLAN),
        analysis=analysis,
        folder=SimpleNamespace(path=Path()),
        validation=None,
    )
    monkeypatch.setattr(workflow, "investigate", lambda *_: finished)
    monkeypatch.setattr(results, "terminal_report", lambda _: analysis.headline)
    result = call("js")
    assert result.exit_code == EXIT_NOTHING_BUILT
    assert analysis.headline[:20] in result.stdout
    assert "nothing could be measured: json_parse on" in " ".join(result.stderr.split())
