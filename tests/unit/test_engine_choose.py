"""Which engine is taken, and what is said about it."""

from pathlib import Path
from typing import Any

import pytest

from investigator.base_image import BaseImage
from investigator.engine import choose
from investigator.engine.choose import choose_engine
from investigator.errors import EngineMissingError, HostUnfitError
from investigator.observer import NullObserver
from tests.fakes.docker_client import FakeDocker
from tests.fakes.engine import FakeEngine


class Listener(NullObserver):
    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.notes: list[str] = []

    def warning(self, text: str) -> None:
        self.warnings.append(text)

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Both engines replaced; ``refuse`` and ``image`` say what docker does."""
    client = FakeDocker()
    world: dict[str, Any] = {"client": client, "refuse": None, "asked": [], "how": "present"}

    def connect() -> FakeDocker:
        if world["refuse"]:
            raise world["refuse"]
        return client

    def ensure(_client: object, requested: str | None, _progress: object) -> BaseImage:
        world["asked"].append(requested)
        if world.get("no_image"):
            raise world["no_image"]
        return BaseImage(reference="base:1", image_id="sha256:1", digest="", how=world["how"])

    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path))
    monkeypatch.setattr(choose, "connect", connect)
    monkeypatch.setattr(choose, "ensure_base_image", ensure)
    monkeypatch.setattr(choose, "DockerEngine", lambda image, storage_root: FakeEngine(name="docker"))
    monkeypatch.setattr(choose, "LocalEngine", lambda storage_root: FakeEngine(name="local"))
    return world


def test_auto_takes_docker_where_it_answers(world: dict[str, Any]) -> None:
    listener = Listener()
    assert choose_engine("auto", None, listener).name == "docker"
    assert (listener.warnings, listener.notes) == ([], [])
    assert world["client"].closed


def test_auto_goes_on_without_docker_and_says_so(world: dict[str, Any]) -> None:
    world["refuse"] = EngineMissingError("no docker daemon answers (why): start it, or use --engine local")
    listener = Listener()
    assert choose_engine("auto", None, listener).name == "local"
    assert len(listener.warnings) == 1
    assert "no docker daemon answers (why)" in listener.warnings[0]
    assert "plain processes (--engine local)" in listener.warnings[0]


def test_auto_goes_on_without_a_base_image(world: dict[str, Any]) -> None:
    world["no_image"] = EngineMissingError("there is no base image")
    listener = Listener()
    assert choose_engine("auto", None, listener).name == "local"
    assert "there is no base image" in listener.warnings[0]


def test_what_was_asked_for_is_never_replaced(world: dict[str, Any]) -> None:
    world["refuse"] = EngineMissingError("no docker daemon answers")
    for choice, image in (("docker", None), ("docker", "mine:1"), ("auto", "mine:1")):
        with pytest.raises(EngineMissingError, match="no docker daemon answers"):
            choose_engine(choice, image, Listener())  # type: ignore[arg-type]


def test_a_full_disk_is_not_a_missing_engine(world: dict[str, Any]) -> None:
    world["no_image"] = HostUnfitError("docker's disk is full")
    with pytest.raises(HostUnfitError):
        choose_engine("auto", None, Listener())
    assert world["client"].closed


def test_local_asks_no_daemon(world: dict[str, Any]) -> None:
    world["refuse"] = AssertionError("nobody should have asked")
    listener = Listener()
    assert choose_engine("local", "mine:1", listener).name == "local"
    assert "mine:1 is not used" in listener.warnings[0]


def test_where_the_image_came_from_is_told(world: dict[str, Any]) -> None:
    world["how"] = "bootstrapped"
    listener = Listener()
    choose_engine("docker", None, listener)
    assert listener.notes == ["base image: base:1 (bootstrapped)"]
