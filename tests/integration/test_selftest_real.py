"""Planted slowdowns on a real Node: the patches compile and load, and what is planted is found."""

from pathlib import Path

import pytest

from investigator.build import AddonBuild
from investigator.engine.docker import DockerEngine
from investigator.observer import NullObserver
from investigator.selftest.bench import Workshop
from investigator.selftest.places import Patch
from investigator.selftest.run import node_of, run_selftest
from investigator.selftest.trials import Options

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
    options = Options(
        places=("core_step", "engine_wrapper", "nothing"), ops=("select_range",), sizes=(100.0,), seeds=1
    )
    report = run_selftest(options, tmp_path / "selftest", NullObserver())
    step, wrapper, nothing = report.outcomes
    assert (step.verdict, wrapper.verdict) == ("slower", "slower")
    # How well sizes are met is published by `investigate selftest`; a busy machine may spoil two trials.
    assert all(trial.measured_pct is not None and trial.measured_pct > 0 for trial in (step, wrapper))
    assert not nothing.finding
