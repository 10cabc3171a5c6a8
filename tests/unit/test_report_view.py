import io
import shlex

import msgspec
import pytest

from investigator.addons import AddonPackage
from investigator.console import Console
from investigator.naming import short_names
from investigator.operations import Operation
from investigator.plan import Failure
from investigator.report import markdown
from investigator.report.commands import command_line
from investigator.report.shapes import View
from investigator.report.terminal import TerminalReport
from investigator.report.view import build_view, tells_more
from investigator.spec import Spec
from tests.unit import report_synthetic as synthetic
from tests.unit.report_synthetic import HOSTILE, comparison


def rendered(view: View, width: int = 120) -> str:
    out = io.StringIO()
    Console(stdout=out, stderr=io.StringIO(), environment={"COLUMNS": str(width)}).result(
        TerminalReport(view)
    )
    return out.getvalue()


def hostile_view() -> View:
    """Every name and text from outside is hostile, and a megabyte long."""
    huge = HOSTILE + "x" * 1_000_000
    plan, analysis = synthetic.plan(), synthetic.analysis(huge)
    environments = tuple(
        msgspec.structs.replace(e, label=f"{HOSTILE}{i}") for i, e in enumerate(plan.environments)
    )
    plan = msgspec.structs.replace(
        plan,
        run_id=huge,
        environments=environments,
        spec=msgspec.structs.replace(plan.spec, versions=(huge,), params={"k": HOSTILE}),
        operations=(Operation(name=huge, family="sqlite", module="m"),),
    )
    analysis = msgspec.structs.replace(
        analysis,
        cells=tuple(msgspec.structs.replace(c, op=huge, family=HOSTILE) for c in analysis.cells),
        comparisons=tuple(
            msgspec.structs.replace(c, op=huge, family=HOSTILE, warnings=(huge, HOSTILE))
            for c in analysis.comparisons
        ),
        controls=tuple(msgspec.structs.replace(c, text=huge) for c in analysis.controls),
        failures=(Failure(environment=huge, op=huge, stage=huge, reason=huge),),
    )
    facts = msgspec.structs.replace(
        synthetic.facts(),
        folder=huge,
        tool=huge,
        engine={"engine": huge, huge: huge},
        host={huge: {huge: [huge]}},
    )
    return build_view(plan, analysis, facts)


@pytest.mark.parametrize("width", [120, 80, 40])
def test_hostile_texts_do_nothing_to_a_terminal(width: int) -> None:
    text = rendered(hostile_view(), width)
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert "\u202e" not in text
    assert "[bold" in text  # shown, not interpreted
    assert len(text) < 100_000


def test_hostile_texts_do_nothing_to_a_page() -> None:
    text = markdown.render(hostile_view())
    assert len(text) < 200_000
    outside_fences = "".join(text.split("```text")[0])
    assert "<script" not in outside_fences
    assert "<img" not in outside_fences
    assert "\u202e" not in text
    for table in (block for block in text.split("\n\n") if block.startswith("| ")):
        columns = {line.count("|") for line in table.splitlines()}
        assert len(columns) == 1, table[:500]


def test_short_names_are_unambiguous() -> None:
    a, b = synthetic.environment("24.11.1", "a"), synthetic.environment("24.11.1", "b")
    assert list(short_names((a, b)).values()) == ["a", "b"]
    same = synthetic.environment("24.11.1")
    other = msgspec.structs.replace(same, id="node24.11.1+bsm11.10.0")
    assert list(short_names((same, other)).values()) == ["node24.11.1+bsm12.11.1", "node24.11.1+bsm11.10.0"]


def test_one_environment_alone_and_nothing_measured() -> None:
    plan = synthetic.plan(synthetic.environment("22.21.1"))
    analysis = msgspec.structs.replace(
        synthetic.analysis("cannot tell: nothing was measured."),
        cells=(),
        comparisons=(),
        controls=(),
        failures=(),
    )
    view = build_view(plan, analysis, synthetic.facts())
    assert "cannot tell: nothing was measured." in rendered(view)
    assert "Nothing: every planned cell was measured." in markdown.render(view)


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_five_environments_fit_any_width(width: int) -> None:
    extra = [synthetic.environment("24.11.1", label) for label in ("fix-one", "fix-two")]
    plan = synthetic.plan(*(synthetic.environment(v) for v in ("20.19.5", "22.21.1", "24.11.1")), *extra)
    text = rendered(build_view(plan, synthetic.analysis(), synthetic.facts()), width)
    assert max(len(line) for line in text.partition("Run folder:")[0].splitlines()) <= width


@pytest.mark.parametrize(
    ("cold", "warm", "more"),
    [
        ((31.0, 9.0, "slower", ""), (0.1, 1.0, "no_change", ""), True),
        ((0.2, 1.0, "no_change", ""), (50.0, 2.0, "slower", ""), True),
        ((-20.0, 5.0, "faster", ""), (50.0, 2.0, "slower", ""), True),
        ((60.0, 9.0, "slower", ""), (6.0, 2.0, "slower", ""), True),
        ((9.0, 9.0, "slower", ""), (6.0, 2.0, "slower", ""), False),
        ((40.0, 60.0, "undecided", ""), (50.0, 2.0, "slower", ""), False),
        ((0.2, 1.0, "no_change", ""), (0.1, 1.0, "no_change", ""), False),
        ((0.2, 1.0, "no_change", ""), (0.1, 9.0, "undecided", ""), False),
    ],
)
def test_a_cold_row_stands_only_where_it_tells_something_else(
    cold: synthetic.Effect, warm: synthetic.Effect, more: bool
) -> None:
    cold_pair = comparison("op", "sqlite", "c", cold, phase="cold")
    assert tells_more(cold_pair, comparison("op", "sqlite", "c", warm)) is more


def test_the_next_command_is_one_a_shell_can_read() -> None:
    spec = Spec(
        versions=("a=24.11.1", "fix=path:./my out"),
        baseline="a",
        node_flags=("--no-maglev", "--single-threaded-gc"),
        params={"k": "v; rm -rf /"},
        workloads=("w.mjs",),
        cipher="sqlcipher",
        prebuilt=True,
        rounds=12,
        budget_min=8.0,
    )
    words = shlex.split(command_line(spec, ops=("x", "y"), seed=2))
    assert words == [
        *("investigate", "sqlite", "--versions", "a=24.11.1,fix=path:./my out", "--baseline", "a"),
        *("--ops", "x,y", "--cipher", "sqlcipher", "--seed", "2", "--rounds", "12"),
        *("--workload", "w.mjs", "--param", "k=v; rm -rf /"),
        *("--node-flags=--no-maglev --single-threaded-gc", "--prebuilt"),
    ]
    assert command_line(Spec(versions=("20", "22"), budget_min=8.0)) == "investigate sqlite --versions 20,22"
    assert "--rounds" not in command_line(spec, thorough=True)


def test_the_host_control_is_not_a_row() -> None:
    analysis = synthetic.analysis()
    host = synthetic.cell("host_core", "host", synthetic.BASELINE, 5.0)
    view = build_view(
        synthetic.plan(), msgspec.structs.replace(analysis, cells=(*analysis.cells, host)), synthetic.facts()
    )
    assert [family.family for family in view.warm] == ["sqlite", "js"]


# -- addons on one Node version -----------------------------------------------------------------------------


def addon_view() -> View:
    """Two releases on one Node, the newer one on Node-API."""
    known = synthetic.environment("22.21.1")
    newer = msgspec.structs.replace(
        known,
        id="node22.21.1+bsm13.0.3",
        addon=msgspec.structs.replace(synthetic.ADDON, version="13.0.3", napi=10),
    )
    plan = msgspec.structs.replace(
        synthetic.plan(known, newer),
        spec=Spec(axis="addon", versions=("22",), addons=("x@12.11.1", "x@13.0.3")),
    )
    slower = comparison("select_range", "sqlite", newer.id, (12.0, 1.0, "slower", "!"))
    analysis = msgspec.structs.replace(
        synthetic.analysis("the headline."),
        comparisons=(slower,),
        environments=(known.id, newer.id),
        cells=tuple(synthetic.cell("select_range", "sqlite", e.id, 23_000.0) for e in (known, newer)),
    )
    return build_view(plan, analysis, synthetic.facts())


def test_columns_of_compared_addons_are_their_releases() -> None:
    view = addon_view()
    assert [e.short for e in view.environments] == ["12.11.1", "13.0.3"]
    assert (view.baseline, view.candidates) == ("12.11.1", ("13.0.3",))
    lines = dict(view.summary)
    assert lines["baseline"] == "12.11.1"
    assert lines["candidates"] == "13.0.3 (Node-API 10)"
    assert lines["Node"] == "22.21.1 (V8 12.4, ABI 127), the same for all"
    assert lines["addon"] == (
        "better-sqlite3-multiple-ciphers 12.11.1, compiled from source; "
        "better-sqlite3-multiple-ciphers 13.0.3, compiled from source; cipher chacha20"
    )
    assert "against 12.11.1" in view.legend[0]
    text = rendered(view)
    assert "13.0.3" in text
    assert "| 12.11.1 (baseline)<br>ops/sec, time | 13.0.3<br>ops/sec, time |" in markdown.render(view)


def test_what_is_part_of_node_was_not_compiled() -> None:
    known = synthetic.environment("22.21.1")
    inside = msgspec.structs.replace(
        known,
        id="node22.21.1+nodesqlite",
        addon=AddonPackage(name="node:sqlite", version="", kind="node:sqlite", encrypted=False),
    )
    spec = Spec(axis="addon", versions=("22",), addons=("x", "node:sqlite"), cipher="none")
    plan = msgspec.structs.replace(synthetic.plan(known, inside), spec=spec)
    view = build_view(plan, synthetic.analysis(), synthetic.facts())
    lines = dict(view.summary)
    assert [e.short for e in view.environments] == ["bsm12.11.1", "node:sqlite"]
    assert lines["baseline"] == "bsm12.11.1 (better-sqlite3-multiple-ciphers 12.11.1)"
    assert lines["candidates"] == "node:sqlite"
    assert "node:sqlite, part of Node; cipher none" in lines["addon"]
