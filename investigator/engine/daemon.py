"""The door to the container daemon: connect to it, translate its failures, sweep what dead runs left."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import docker
import docker.errors
import requests
import urllib3.exceptions
from docker.context import ContextAPI
from docker.models.containers import Container

from investigator.engine.owner import is_dead, parse_owner
from investigator.errors import EngineMissingError, HostUnfitError, InvestigateError

LABEL = "investigate"
OWNER_LABEL = "investigate.owner"
ENGINE_LABEL = "investigate.engine"
PURPOSE_LABEL = "investigate.purpose"

DEFAULT_SOCKET = "unix:///var/run/docker.sock"
API_TIMEOUT_S = 120
"""For every call but ``wait``: a loaded daemon may need long for a start, a dead one refuses at once."""

TRANSPORT_ERRORS = (
    docker.errors.DockerException,
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    OSError,
)


def connect() -> docker.DockerClient:
    """A client of the daemon that the user's environment names: DOCKER_HOST, the default socket, the context.

    Raises:
        EngineMissingError: none of them answers.
    """
    try:
        _knock(os.environ.get("DOCKER_HOST") or DEFAULT_SOCKET)
        return docker.from_env(version="auto", timeout=API_TIMEOUT_S)
    except TRANSPORT_ERRORS as error:
        refusal = error
    host = None if os.environ.get("DOCKER_HOST") else _context_host()
    if host is not None:
        try:
            _knock(host)
            return docker.DockerClient(base_url=host, version="auto", timeout=API_TIMEOUT_S)
        except TRANSPORT_ERRORS as error:
            refusal = error
    raise EngineMissingError(_advice(refusal)) from refusal


def _knock(url: str) -> None:
    """See whether a local socket answers: the SDK wraps the refusal four times, and leaks its own socket.

    Raises:
        OSError: it does not.
    """
    if url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as knocker:
            knocker.settimeout(API_TIMEOUT_S)
            knocker.connect(url.removeprefix("unix://"))


def _advice(refusal: BaseException) -> str:
    root = _root_of(refusal)
    if isinstance(root, PermissionError):
        return (
            "the docker daemon runs, but its socket is closed to you: join its group (`sudo usermod -aG "
            "docker $USER`, then log in again), or use --engine local"
        )
    return (
        f"no docker daemon answers ({_reason(refusal)}): install it (Debian: `apt install docker.io`), start "
        "it (`systemctl start docker`), point DOCKER_HOST to it, or use --engine local"
    )


def _reason(error: BaseException) -> str:
    root = _root_of(error)
    return root.strerror if isinstance(root, OSError) and root.strerror else _one_line(root)


def _root_of(error: BaseException) -> BaseException:
    """The operating system's error under the SDK's wrappings, or the outermost where there is none."""
    inner: BaseException | None = error
    while inner is not None:
        # requests' errors are an OSError too, without a number.
        if isinstance(inner, OSError) and inner.errno is not None:
            return inner
        inner = inner.__cause__ or inner.__context__
    return error


def _context_host() -> str | None:
    """Endpoint of the docker CLI's current context (Docker Desktop, colima, rootless), where one is set."""
    try:
        context = ContextAPI.get_current_context()
    except (docker.errors.DockerException, OSError, ValueError, KeyError):
        return None
    # The context that is set may have been deleted; the SDK then returns None, whatever its types say.
    return getattr(context, "Host", None)


@contextmanager
def daemon_errors(doing: str) -> Iterator[None]:
    """Turn what the SDK raises while `doing` something into one sentence.

    Raises:
        HostUnfitError: the daemon's disk is full.
        EngineMissingError: everything else.
    """
    try:
        yield
    except InvestigateError:
        raise
    except docker.errors.ImageNotFound as error:
        raise EngineMissingError(
            f"the base image vanished while docker was to {doing}: run again, it is made anew"
        ) from error
    except docker.errors.NotFound as error:
        raise EngineMissingError(
            f"the container vanished while docker was to {doing}: something removed it; "
            "`investigate resume` continues"
        ) from error
    except docker.errors.APIError as error:
        text = " ".join(str(error.explanation or error).split())
        if "no space left" in text.lower():
            raise HostUnfitError(
                f"docker's disk is full ({text}): make room, for instance with `docker system prune`"
            ) from error
        if "bind source path does not exist" in text.lower():
            raise EngineMissingError(
                f"docker does not see the files of this machine ({text}): its daemon runs elsewhere or is "
                "confined (a snap); use a daemon of this machine, or --engine local"
            ) from error
        raise EngineMissingError(f"docker refused to {doing}: {text}") from error
    except TRANSPORT_ERRORS as error:
        raise EngineMissingError(
            f"the docker daemon stopped answering while it was to {doing} ({_reason(error)}): start it "
            "again, `investigate resume` continues"
        ) from error


def sweep(client: docker.DockerClient, *, dry_run: bool = False) -> int:
    """Remove (with `dry_run` only count) the containers of runs that are dead; returns how many.

    Raises:
        EngineMissingError: the daemon does not answer.
    """
    swept = 0
    with daemon_errors("list leftover containers"):
        for container in labelled(client, f"{LABEL}=1"):
            owner = parse_owner(container.labels.get(OWNER_LABEL, ""))
            if owner is not None and is_dead(owner):
                if not dry_run:
                    remove_quietly(container)
                swept += 1
    return swept


def labelled(client: docker.DockerClient, label: str) -> list[Container]:
    """All containers, running or not, that carry `label` (``key=value``)."""
    # `ignore_removed`: another process may remove one between the listing and the look at it.
    return client.containers.list(all=True, filters={"label": label}, ignore_removed=True)


def remove_quietly(container: Container) -> None:
    """Kill and remove; one that is gone already, or a daemon that is, is no error here."""
    try:
        container.remove(force=True, v=True)
    except TRANSPORT_ERRORS:
        return


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
