"""Engines for the tests that run real tasks. One that is required and missing is a failure, not a skip."""

import os
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from investigator import prepare
from investigator.base_image import BaseImage, ensure_base_image
from investigator.engine.daemon import connect
from investigator.engine.docker import DockerEngine
from investigator.engine.local import LocalEngine
from investigator.errors import EngineMissingError
from tests.integration.tool import ADDON, investigate, our_containers


def missing(reason: str) -> None:
    if os.environ.get("INVESTIGATE_REQUIRE_DOCKER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def docker_client() -> Iterator[docker.DockerClient]:
    try:
        client = connect()
    except EngineMissingError as error:
        missing(str(error))
    yield client
    client.close()


@pytest.fixture(scope="session")
def base_image(docker_client: docker.DockerClient) -> BaseImage:
    return ensure_base_image(docker_client)


@pytest.fixture(scope="session")
def docker_engine(base_image: BaseImage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerEngine]:
    engine = DockerEngine(image=base_image, storage_root=tmp_path_factory.mktemp("storage"))
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def local_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    engine = LocalEngine(storage_root=tmp_path_factory.mktemp("storage"))
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def mailbox() -> Path:
    """The generated mails, as every run has them."""
    return prepare.mailbox(seed=1)


@pytest.fixture
def containers_end(docker_engine: DockerEngine) -> Iterator[None]:
    """The engine that the session checked; nothing of the test runs on after it."""
    assert docker_engine.name == "docker"
    yield
    assert our_containers() == []


@pytest.fixture(scope="session")
def regression(docker_engine: DockerEngine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with the known string conversion regression, made once."""
    folder = tmp_path_factory.mktemp("regression")
    investigate(
        "sqlite", "--versions", "22.21.1,24.11.1", "--addon", f"{ADDON}@12.11.1", "--engine", "docker",
        "--ops", "bind_text_ascii_20,bind_text_ascii_10k", "--budget", 4, "--explain", 1, "--out", "run",
        cwd=folder,
    )  # fmt: skip
    return folder / "run"
