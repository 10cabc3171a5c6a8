"""Addon releases on one Node version: real builds, real containers, and a known difference."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.integration.tool import ADDON, investigate, is_finding

pytestmark = [pytest.mark.container, pytest.mark.node, pytest.mark.usefixtures("containers_end")]


def test_a_faster_release_is_found_and_one_that_does_not_load_is_lost_alone(tmp_path: Path) -> None:
    """12.x builds rows at once where 11.x sets property by property; 13.x needs a newer Node-API."""
    investigate(
        "sqlite", "--axis", "addon", "--versions", "22.12.0", "--addon", f"{ADDON}@11.10.0,12.11.1,no=13.0.3",
        "--engine", "docker", "--ops", "select_range,json_parse", "--rounds", 6, "--budget", 2,
        "--no-explain", "--out", "run", cwd=tmp_path,
    )  # fmt: skip
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    old, new, lost = ("node22.12.0+bsm11.10.0", "node22.12.0+bsm12.11.1", "no:node22.12.0+bsm13.0.3")
    assert (summary["axis"], summary["baseline"]) == ("addon", old)
    assert [(e["id"], e["addon_version"]) for e in summary["environments"]] == [
        (old, "11.10.0"),
        (new, "12.11.1"),
        (lost, "13.0.3"),
    ]
    assert len({e["node_sha256"] for e in summary["environments"]}) == 1
    assert [f["environment"] for f in summary["failures"]] == [lost]
    rows = {(row["op"], row["candidate"]): row for row in summary["comparisons"]}
    assert set(rows) == {("select_range", new), ("json_parse", new)}
    assert rows["select_range", new]["change_pct"] < -30
    if is_finding(rows["select_range", new], "faster"):
        assert f"{ADDON} 12.11.1 is faster than 11.10.0 on Node 22.12.0" in summary["headline"]
    assert not rows["json_parse", new]["finding"]
    assert "null control" in summary["controls"]["engine"]["text"]
    frame = pd.read_csv(tmp_path / "run/measurements.csv")
    assert set(frame["environment"]) == {old, new}
    shown = investigate("show", "run", "--json", cwd=tmp_path)
    assert shown.stdout == (tmp_path / "run/summary.json").read_text()
