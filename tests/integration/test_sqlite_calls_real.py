"""The core loops against the real addon, in containers: the same sqlite3 calls, the same values."""

from pathlib import Path

import pytest

from investigator.build import AddonBuild, build_all
from investigator.engine.docker import DockerEngine
from investigator.operations import SQLITE
from investigator.sqlite_calls import CALLS, SqliteCalls, count_sqlite_calls
from tests.integration.tool import environment_of, nodes_of

pytestmark = [pytest.mark.container, pytest.mark.node]

# As the addon does it: V8's API before and after the row builder of Node 22, and Node-API.
RELEASES = [
    ("12.11.1", "20.19.5", "set"),
    ("12.11.1", "24.11.1", "bulk"),
    ("11.10.0", "22.21.1", "set"),
    ("13.0.3", "24.11.1", "factory"),
]


@pytest.mark.parametrize(("release", "version", "row_builder"), RELEASES)
def test_the_core_loops_make_the_sqlite3_calls_of_the_addon_and_read_the_same_values(
    docker_engine: DockerEngine, mailbox: Path, release: str, version: str, row_builder: str
) -> None:
    (node,) = nodes_of(docker_engine, version)
    wanted = environment_of(node, release)
    build = build_all(docker_engine, [wanted])[wanted.id]
    assert isinstance(build, AddonBuild)
    calls = count_sqlite_calls(docker_engine, node, build, mailbox)
    assert isinstance(calls, SqliteCalls), calls
    assert [calls.difference(operation.name) for operation in SQLITE] == [None] * len(SQLITE)
    assert calls.same
    assert calls.row_builder == row_builder
    steps = {op: counts.addon["sqlite3_step"] for op, counts in calls.operations.items()}
    assert steps["select_range"] == CALLS * 51
    assert steps["insert_batch"] == CALLS * 102
    assert calls.operations["select_udf"].addon["sqlite3_value_double"] == CALLS * 50
