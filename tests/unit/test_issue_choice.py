"""Which findings are regressions, and between which releases they came."""

import msgspec
import pytest

from investigator.analysis import Analysis
from investigator.errors import UsageError
from investigator.plan import Plan
from investigator.report.issue.checklist import checklist
from investigator.report.issue.choose import backwards, choose
from investigator.report.issue.interval import bisect_command, release_interval
from tests.unit import issue_synthetic as made
from tests.unit import report_synthetic as synthetic


def chosen(op: str | None = None, candidate: str | None = None) -> list[tuple[str, str]]:
    found = choose(synthetic.plan(), synthetic.analysis(), op, candidate)
    return [(c.op, c.candidate) for c in found.comparisons]


def newest_first() -> tuple[Plan, Analysis]:
    """The same run with the newest release as its baseline."""
    plan = msgspec.structs.replace(synthetic.plan(), baseline=made.HIGH.id)
    pair = synthetic.comparison(
        made.OP, "sqlite", made.LOW.id, (-53.6, 2.0, "faster", "!"), baseline=made.HIGH.id
    )
    return plan, msgspec.structs.replace(synthetic.analysis(), comparisons=(pair,))


def test_only_what_became_slower_is_a_regression() -> None:
    """select_range and json_stringify are slower on 20 than on 22: somebody made them faster."""
    assert chosen() == [(made.OP, made.HIGH.id)]
    (improved, turned) = choose(synthetic.plan(), synthetic.analysis()).left_out
    assert "only the older release is slower: select_range on 20.19.5 (+119 %)" in improved
    assert "the older release is faster: bind_text_twobyte_2k on 20.19.5 (-7.4 %)" in turned


def test_what_became_faster_is_said_to_be_none() -> None:
    known = synthetic.analysis()
    pair = synthetic.comparison("json_parse", "js", made.HIGH.id, (-21.0, 2.0, "faster", "!"))
    found = choose(synthetic.plan(), msgspec.structs.replace(known, comparisons=(pair,)))
    assert found.comparisons == ()
    assert found.left_out == ("no regression, it became faster: json_parse on 24.11.1 (-21.0 %)",)


def test_an_operation_that_is_asked_for_is_given_whatever_its_direction() -> None:
    assert chosen("select_range") == [("select_range", made.OLD.id)]
    assert chosen(made.OP, "24.11.1") == [(made.OP, made.HIGH.id)]
    assert chosen("bind_text_twobyte_2k") == [("bind_text_twobyte_2k", made.OLD.id)]


@pytest.mark.parametrize(
    ("op", "candidate", "words"),
    [
        ("nothing", None, "this run has no operation 'nothing'; it has select_point"),
        (
            "select_point",
            None,
            "select_point is no finding of this run (20.19.5: no change; 24.11.1: no change)",
        ),
        ("select_range", "24", "select_range is no finding of this run (24.11.1: no change)"),
        (None, "18", "--candidate 18 is not among the versions"),
    ],
)
def test_what_is_no_finding_is_refused(op: str | None, candidate: str | None, words: str) -> None:
    with pytest.raises(UsageError) as error:
        choose(synthetic.plan(), synthetic.analysis(), op, candidate)
    assert words in str(error.value)


def test_a_regression_told_backwards_is_not_filed_but_told() -> None:
    plan, analysis = newest_first()
    found = choose(plan, analysis)
    assert found.comparisons == ()
    assert "the older release is faster: bind_text_ascii_10k on 22.21.1" in found.left_out[0]
    assert "--baseline 22.21.1" in found.left_out[0]


def test_a_build_of_one_s_own_has_no_place_among_releases() -> None:
    own = msgspec.structs.replace(made.OLD.node, source="path")
    old = msgspec.structs.replace(made.OLD, node=own)
    plan = synthetic.plan(made.LOW, old)
    pair = synthetic.comparison(made.OP, "sqlite", old.id, (50.0, 2.0, "slower", "!"))
    assert not backwards(plan, pair)
    assert backwards(synthetic.plan(), pair)


def test_the_interval_is_that_of_the_run() -> None:
    interval = release_interval(made.material())
    assert (interval.last_good, interval.first_bad, interval.first_fixed) == ("v22.21.1", "v24.11.1", "")
    assert [(r.name, r.says) for r in interval.readings] == [
        ("v20.19.5", "good"),
        ("v22.21.1", "good"),
        ("v24.11.1", "bad"),
    ]
    assert bisect_command(made.material()) == (
        "investigate bisect --good 22.21.1 --bad 24.11.1 --op bind_text_ascii_10k "
        "--addon better-sqlite3-multiple-ciphers@12.11.1"
    )


def test_a_later_release_that_is_good_again_closes_it() -> None:
    fixed = msgspec.structs.replace(
        made.OLD, id="node24.19.0+bsm12.11.1", node=msgspec.structs.replace(made.OLD.node, version="24.19.0")
    )
    plan = synthetic.plan(made.LOW, made.HIGH, fixed)
    known = made.material(plan=plan)
    good = synthetic.comparison(made.OP, "sqlite", fixed.id, (2.1, 0.6, "no_change", ""))
    interval = release_interval(msgspec.structs.replace(known, others=(good,)))
    assert interval.first_fixed == "v24.19.0"
    assert interval.text.endswith("v24.19.0 is good again")
    assert release_interval(made.material()).text.endswith("v24.11.1; later ones are not in this run")
    unsure = synthetic.comparison(made.OP, "sqlite", fixed.id, (4.0, 3.0, "undecided", ""))
    undecided = msgspec.structs.replace(known, others=(unsure,))
    assert release_interval(undecided).first_fixed == ""
    assert "v24.19.0 in the same interleaved run, but that cannot be told from good" in checklist(undecided)


def test_addon_releases_have_an_interval_of_their_own() -> None:
    interval = release_interval(made.of_addons())
    assert interval.last_good == "better-sqlite3-multiple-ciphers 12.11.1"
    assert interval.first_bad == "better-sqlite3-multiple-ciphers 13.0.3"
