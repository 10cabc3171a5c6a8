"""Planted slowdowns on a real Node: the patches compile and load, and what is planted is found."""

from pathlib import Path

import pytest

from investigator.build import AddonBuild
from investigator.engine.docker import DockerEngine
from investigator.observer import NullObserver
from investigator.selftest.bench import Workshop
from investigator.selftest.pilot import AIM_PCT, Rate
from investigator.selftest.places import PLACES, Patch, Place
from investigator.selftest.report import SELFTEST_SCHEMA, SelftestReport
from investigator.selftest.run import FILE, KIND, node_of, run_selftest
from investigator.selftest.trials import Options
from investigator.store import RunFolder

pytestmark = [pytest.mark.container, pytest.mark.node]


@pytest.mark.parametrize("patch", ["sized", "o1"])
def test_patched_addons_compile_and_load(docker_engine: DockerEngine, patch: Patch) -> None:
    node = node_of(Options(), docker_engine, NullObserver())
    workshop = Workshop(docker_engine, node, NullObserver())
    plain, planted = workshop.build(None), workshop.build(patch)
    assert isinstance(planted, AddonBuild)
    assert planted.sqlite3_object_sha256 != plain.sqlite3_object_sha256
    flags = planted.flags["sqlite3.c"].split()
    assert ("-O1" in flags) == (patch == "o1")
    assert [flag for flag in flags if flag.startswith("-O")][-1] == ("-O1" if patch == "o1" else "-O3")


def test_doubled_times_are_found_and_nothing_is_not(docker_engine: DockerEngine, tmp_path: Path) -> None:
    """The sizes come from the pilots that the places begin with: how well they are met is published by
    `investigate selftest`. A busy machine may leave open what is there; it may not find what is not.
    """
    options = Options(
        places=("core_step", "engine_wrapper", "nothing"), ops=("select_range",), sizes=(100.0,), seeds=1
    )
    rates = tuple(rate_of(place, "select_range") for place in PLACES if place.name in options.places)
    known = SelftestReport(options=options, rates=rates, planned=3, outcomes=())
    folder = RunFolder(tmp_path / "selftest")
    folder.path.mkdir()
    folder.write_json(FILE, KIND, SELFTEST_SCHEMA, known)
    report = run_selftest(options, folder.path, NullObserver())
    assert report.rates == rates
    step, wrapper, nothing = report.outcomes
    for trial in (step, wrapper):
        assert trial.verdict in {"slower", "undecided"}
        assert trial.measured_pct is not None
        assert trial.measured_pct > 30
    assert not nothing.finding


def rate_of(place: Place, op: str) -> Rate:
    """What the first plant of a pilot is made for."""
    return Rate(
        place=place.name,
        op=op,
        millionths=place.pilots[op],
        change_pct=AIM_PCT,
        ci_low_pct=AIM_PCT - 1,
        ci_high_pct=AIM_PCT + 1,
    )
