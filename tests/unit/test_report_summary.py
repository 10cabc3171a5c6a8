import json
from collections.abc import Mapping
from typing import Never

import msgspec
import pytest

from investigator.analysis import Analysis
from investigator.build import AddonBuild, BuildFailure
from investigator.plan import Failure
from investigator.report import summary as module
from tests.fields import field_table
from tests.unit import report_synthetic as synthetic

STRUCTS = (
    module.Summary,
    module.SummaryEnvironment,
    module.SummaryComparison,
    module.SummaryControl,
    module.SummaryFailure,
)


def encoded(
    analysis: Analysis | None = None, builds: Mapping[str, AddonBuild | BuildFailure] | None = None
) -> bytes:
    value = module.summary(
        synthetic.plan(), analysis or synthetic.analysis(), builds or synthetic.builds(), "investigate 0.1.0"
    )
    return module.encode_summary(value)


def refuse(constant: str) -> Never:
    raise AssertionError(f"{constant} in JSON")


def test_it_is_strict_json_that_begins_with_schema_kind_and_tool() -> None:
    data = json.loads(encoded(), parse_constant=refuse)
    assert list(data)[:3] == ["schema", "kind", "tool"]
    assert encoded().endswith(b"}\n")
    assert msgspec.json.decode(encoded(), type=module.Summary).baseline == synthetic.BASELINE


def test_every_pair_with_the_baseline_is_found_exactly_once() -> None:
    data = json.loads(encoded())
    pairs = [(row["op"], row["candidate"], row["baseline"]) for row in data["comparisons"]]
    assert len(pairs) == len(set(pairs)) == 17
    assert {row["kind"] for row in data["comparisons"]} == {"baseline"}
    assert {row["kind"] for row in data["other_comparisons"]} == {"predecessor", "twin"}


def test_what_does_not_exist_is_null() -> None:
    data = json.loads(encoded())
    invalid = next(row for row in data["comparisons"] if row["verdict"] == "invalid")
    assert invalid["ratio"] is None
    assert invalid["change_pct"] is None
    assert data["controls"]["engine"]["values"]["max_pct"] is None
    assert data["attributions"] == []


def test_the_order_does_not_depend_on_the_order_of_the_analysis() -> None:
    analysis = synthetic.analysis()
    shuffled = msgspec.structs.replace(
        analysis, comparisons=analysis.comparisons[::-1], cells=analysis.cells[::-1]
    )
    assert encoded(shuffled) == encoded(analysis)


def test_a_failed_build_is_a_failure_once() -> None:
    builds = {**synthetic.builds(), "node24.11.1+bsm12.11.1": BuildFailure(reason="no compiler\x1b[1m")}
    failures = json.loads(encoded(builds=builds))["failures"]
    assert [f for f in failures if f["op"] is None] == [
        {"environment": "node24.11.1+bsm12.11.1", "op": None, "stage": "build", "reason": "no compiler"}
    ]
    known = Failure(environment="node24.11.1+bsm12.11.1", op=None, stage="build", reason="no compiler")
    analysis = msgspec.structs.replace(synthetic.analysis(), failures=(known,))
    assert len(json.loads(encoded(analysis, builds))["failures"]) == 1


def test_a_surrogate_does_not_stop_the_report() -> None:
    assert b"broken" in encoded(synthetic.analysis(headline="bro\ud800ken"))


@pytest.mark.parametrize("struct", STRUCTS)
def test_every_field_is_described(struct: type[msgspec.Struct]) -> None:
    rows = field_table(struct).splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(struct.__struct_fields__)
    assert not [row for row in rows if row.endswith("|  |")]
