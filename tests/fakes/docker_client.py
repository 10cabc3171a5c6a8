"""A docker client without a daemon: just the calls that the engine and the base image make."""

from collections.abc import Callable
from typing import Any

import docker.errors


class FakeContainer:
    def __init__(self, client: "FakeDocker", settings: dict[str, Any]) -> None:
        self.settings = settings
        self.id = f"c{len(client.created)}"
        self.labels: dict[str, str] = settings.get("labels", {})
        self.attrs: dict[str, Any] = {"State": {"ExitCode": 0, "OOMKilled": False}}
        self.calls: list[str] = []
        self._client = client

    def attach_socket(self, params: dict[str, int]) -> "FakeContainer":
        self.calls.append(f"attach {sorted(params)}")
        return self

    def close(self) -> None:
        self.calls.append("detach")

    def start(self) -> None:
        self.calls.append("start")

    def kill(self) -> None:
        self.calls.append("kill")

    def reload(self) -> None:
        self._client.on_reload(self)

    def logs(self, *, stdout: bool, stderr: bool) -> bytes:
        return b"out" if stdout else b"err" if stderr else b""

    def remove(self, *, force: bool, v: bool) -> None:
        self.calls.append("remove")
        if self in self._client.living:
            self._client.living.remove(self)


class FakeDocker:
    """`containers`, `api` and `images` are the client itself: none of their names collide here."""

    def __init__(self, info: dict[str, Any] | None = None) -> None:
        self.containers = self.api = self.images = self
        self.timeout = 60
        self.created: list[FakeContainer] = []
        self.living: list[FakeContainer] = []
        self.closed = False
        self.on_create: Callable[[dict[str, Any]], None] = lambda settings: None
        self.on_wait: Callable[[str, float], None] = lambda container, timeout: None
        self.on_reload: Callable[[FakeContainer], None] = lambda container: None
        self._info = {"ServerVersion": "20.10.24", "Driver": "overlay2", "CgroupVersion": "1", **(info or {})}

    def info(self) -> dict[str, Any]:
        return self._info

    def create(self, **settings: Any) -> FakeContainer:
        self.on_create(settings)
        container = FakeContainer(self, settings)
        self.created.append(container)
        self.living.append(container)
        return container

    def list(self, *, filters: dict[str, str], **_how: bool) -> list[FakeContainer]:
        key, _, value = filters["label"].partition("=")
        return [container for container in self.living if container.labels.get(key) == value]

    def wait(self, container: str, timeout: float) -> dict[str, int]:
        self.on_wait(container, timeout)
        return {"StatusCode": 0}

    def close(self) -> None:
        self.closed = True


def api_error(text: str, status: int = 500) -> docker.errors.APIError:
    """What the SDK raises for an answer of the daemon."""
    import requests

    response = requests.Response()
    response.status_code = status
    return docker.errors.APIError(text, response=response, explanation=text)
