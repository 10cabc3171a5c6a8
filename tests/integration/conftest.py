"""Engines for the tests that run real tasks. One that is required and missing is a failure, not a skip."""

import os
from collections.abc import Iterator

import docker
import pytest

from investigator.base_image import BaseImage, ensure_base_image
from investigator.engine.daemon import connect
from investigator.engine.docker import DockerEngine
from investigator.engine.local import LocalEngine
from investigator.errors import EngineMissingError


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
