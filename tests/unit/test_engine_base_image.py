"""Where the base image comes from: given, present, pulled, or made by a bootstrap tool."""

import json
import os
from pathlib import Path
from typing import IO, Any, cast

import docker
import docker.errors
import pytest
import requests

from investigator.base_image import BOOTSTRAP_IMAGE, DEFAULT_IMAGE, ensure_base_image
from investigator.errors import EngineMissingError, HostUnfitError
from tests.fakes.docker_client import api_error

NO_REGISTRY = requests.exceptions.ConnectionError("no route to host")


class Image:
    def __init__(self, name: str) -> None:
        self.id = f"sha256:{name}"
        self.attrs = {"RepoDigests": [f"{name}@sha256:99"] if name == DEFAULT_IMAGE else []}


class Images:
    """A daemon's images, and the registry behind it."""

    def __init__(
        self, present: tuple[str, ...] = (), registry: tuple[str, ...] | Exception = NO_REGISTRY
    ) -> None:
        self.images = self.api = self
        self.timeout = 60
        self.present = set(present)
        self.registry = registry
        self.imported: list[bytes] = []
        self.removed: list[str] = []

    def get(self, name: str) -> Image:
        if name not in self.present:
            raise docker.errors.ImageNotFound(f"no such image {name}")
        return Image(name)

    def get_registry_data(self, name: str) -> None:
        if isinstance(self.registry, Exception):
            raise self.registry
        if name not in self.registry:
            raise docker.errors.NotFound("manifest unknown")

    def pull(self, repository: str, tag: str) -> Image:
        return Image(f"{repository}:{tag}")

    def import_image_from_stream(self, stream: IO[bytes], repository: None) -> str:
        self.imported.append(stream.read())
        return json.dumps({"status": "sha256:imported"})

    def tag(self, _image: str, repository: str, tag: str) -> None:
        self.present.add(f"{repository}:{tag}")

    def remove_image(self, image: str) -> None:
        self.removed.append(image)


@pytest.fixture(autouse=True)
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of our own, on which no bootstrap tool lies yet."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    return folder


def tool(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def ensure(images: Images, requested: str | None = None, progress: list[str] | None = None) -> Any:
    said = progress if progress is not None else []
    return ensure_base_image(cast(docker.DockerClient, images), requested, said.append)


def test_what_an_earlier_run_made_is_taken_first() -> None:
    image = ensure(Images(present=(DEFAULT_IMAGE, BOOTSTRAP_IMAGE)))
    assert (image.reference, image.how, image.digest) == (BOOTSTRAP_IMAGE, "present", "")
    image = ensure(Images(present=(DEFAULT_IMAGE,)))
    assert (image.reference, image.how) == (DEFAULT_IMAGE, "present")
    assert image.digest == f"{DEFAULT_IMAGE}@sha256:99"


def test_a_registry_that_answers_is_asked_before_anything_is_made() -> None:
    said: list[str] = []
    images = Images(registry=(DEFAULT_IMAGE,))
    assert ensure(images, progress=said).how == "pulled"
    assert said == [f"pulling {DEFAULT_IMAGE}"]
    assert images.timeout == 60


@pytest.mark.parametrize("name", ["mine:1", "mine", "registry.example:5000/team/mine:1"])
def test_a_requested_image_is_taken_from_the_daemon_or_pulled(name: str) -> None:
    assert ensure(Images(present=(name,)), name).how == "given"
    assert ensure(Images(registry=(name,)), name).how == "given"
    with pytest.raises(EngineMissingError, match="docker has no image .* and no registry gives it"):  # noqa: RUF043
        ensure(Images(present=(BOOTSTRAP_IMAGE,)), name)


def test_a_full_disk_stops_the_pull() -> None:
    images = Images(registry=api_error("write /var/lib/docker/x: no space left on device"))
    with pytest.raises(HostUnfitError, match="docker's disk is full"):
        ensure(images)
    assert images.timeout == 60


def test_without_registry_it_is_made(tools: Path) -> None:
    tool(tools, "mmdebstrap", 'echo "tree of $*"')
    said: list[str] = []
    images = Images()
    image = ensure(images, progress=said)
    assert (image.reference, image.how) == (BOOTSTRAP_IMAGE, "bootstrapped")
    assert images.imported[0].startswith(b"tree of --variant=minbase --include=")
    assert b"g++" in images.imported[0]
    assert said == ["no registry answers: making a Debian base image with mmdebstrap (about a minute, once)"]
    assert ensure(images).how == "present"


def test_a_tool_that_fails_leaves_no_image(tools: Path) -> None:
    tool(tools, "mmdebstrap", 'echo half a tree; echo "I: fine" >&2; echo "E: no mirror" >&2; exit 1')
    images = Images()
    with pytest.raises(EngineMissingError, match=r"mmdebstrap could not make a base image \(E: no mirror\)"):
        ensure(images)
    assert images.removed == ["sha256:imported"]
    assert BOOTSTRAP_IMAGE not in images.present


def test_without_any_tool_it_says_which_one_to_install() -> None:
    with pytest.raises(EngineMissingError, match="install the package `mmdebstrap`, name an image"):
        ensure(Images())


def test_debootstrap_needs_root(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tools, "debootstrap", "exit 1")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(EngineMissingError, match="debootstrap needs root"):
        ensure(Images())
