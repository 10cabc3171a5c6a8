"""The one image that all environments run on: given, present, pulled, or bootstrapped."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Literal

import docker
import docker.errors
import msgspec
import requests
import urllib3.exceptions
from docker.models.images import Image
from filelock import FileLock

from investigator.cache import cache_root
from investigator.engine.daemon import daemon_errors
from investigator.errors import EngineMissingError, HostUnfitError

DEFAULT_IMAGE = "buildpack-deps:bookworm"
BOOTSTRAP_IMAGE = "investigate-base:bookworm-3"
"""The number is the version of the recipe below: raise it with every change of suite or packages."""
SUITE = "bookworm"
PACKAGES = ("ca-certificates", "g++", "gcc", "libc6-dev", "make", "python3")

REGISTRY_ANSWER_S = 10
"""How long a registry may take to describe an image; where none answers we bootstrap instead."""
_PULL_SILENCE_S = 120
_TIDY_UP_S = 20.0

Progress = Callable[[str], None]


class BaseImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image that the daemon has, and where it came from."""

    reference: str
    image_id: str
    """``sha256:...`` of the image's configuration; part of every build's cache key."""
    digest: str
    """Registry digest ``name@sha256:...``; empty where the image was never in a registry."""
    how: Literal["given", "present", "pulled", "bootstrapped"]


def silent(_: str) -> None:
    """Progress for callers that show none."""


def ensure_base_image(
    client: docker.DockerClient, requested: str | None = None, progress: Progress = silent
) -> BaseImage:
    """Find or make the base image.

    `requested` is taken from the daemon or pulled. Without it: what an earlier run bootstrapped or pulled,
    else a pull of ``buildpack-deps:bookworm``, else a Debian system made with mmdebstrap or debootstrap.

    Raises:
        EngineMissingError: the requested image does not exist, or no way leads to a base image.
        HostUnfitError: docker's disk is full.
    """
    if requested is not None:
        return _given(client, requested, progress)
    with _lock():
        for reference in (BOOTSTRAP_IMAGE, DEFAULT_IMAGE):
            image = _local(client, reference)
            if image is not None:
                return _describe(image, reference, "present")
        image = _pull(client, DEFAULT_IMAGE, progress)
        if image is not None:
            return _describe(image, DEFAULT_IMAGE, "pulled")
        _bootstrap(client, progress)
        image = _local(client, BOOTSTRAP_IMAGE)
        if image is None:
            raise EngineMissingError(f"docker lost {BOOTSTRAP_IMAGE} right after its import: run again")
        return _describe(image, BOOTSTRAP_IMAGE, "bootstrapped")


def _lock() -> FileLock:
    """One bootstrap at a time on this machine; the second process finds the image of the first."""
    root = cache_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostUnfitError(f"{root} cannot be made ({error.strerror}): set INVESTIGATE_CACHE") from error
    return FileLock(root / "base-image.lock")


def _given(client: docker.DockerClient, requested: str, progress: Progress) -> BaseImage:
    image = _local(client, requested)
    if image is not None:
        return _describe(image, requested, "given")
    image = _pull(client, requested, progress)
    if image is None:
        raise EngineMissingError(
            f"docker has no image {requested!r} and no registry gives it: "
            "check the name, or leave --base-image out"
        )
    return _describe(image, requested, "given")


def _local(client: docker.DockerClient, reference: str) -> Image | None:
    with daemon_errors(f"look for the image {reference!r}"):
        try:
            return client.images.get(reference)
        except (docker.errors.NotFound, docker.errors.NullResource):
            return None


def _describe(
    image: Image, reference: str, how: Literal["given", "present", "pulled", "bootstrapped"]
) -> BaseImage:
    digests: list[str] = image.attrs.get("RepoDigests") or []
    return BaseImage(
        reference=reference, image_id=str(image.id), digest=digests[0] if digests else "", how=how
    )


def _pull(client: docker.DockerClient, reference: str, progress: Progress) -> Image | None:
    """Pull `reference`; None where no registry answers or it does not have it.

    Asks for the manifest first: that fails within seconds where there is no registry, while a pull retries.
    """
    patience_s = client.api.timeout
    try:
        client.api.timeout = REGISTRY_ANSWER_S
        client.images.get_registry_data(reference)
        progress(f"pulling {reference}")
        client.api.timeout = _PULL_SILENCE_S
        repository, _, tag = reference.rpartition(":")
        named = repository and "/" not in tag
        return client.images.pull(repository if named else reference, tag=tag if named else "latest")
    except docker.errors.APIError as error:
        if "no space left" in str(error).lower():
            with daemon_errors(f"pull {reference}"):
                raise
        return None
    except (requests.RequestException, urllib3.exceptions.HTTPError):
        # The daemon has answered before; what is slow is the registry.
        return None
    finally:
        client.api.timeout = patience_s


def _bootstrap(client: docker.DockerClient, progress: Progress) -> None:
    """Make a minimal Debian with a compiler and import it as `BOOTSTRAP_IMAGE`.

    Raises:
        EngineMissingError: no tool is there to do it, or the tool failed.
    """
    tool = next((name for name in ("mmdebstrap", "debootstrap") if shutil.which(name)), None)
    if tool is None:
        raise EngineMissingError(
            f"there is no base image: no registry gives {DEFAULT_IMAGE} and mmdebstrap is not installed; "
            "install the package `mmdebstrap`, name an image with --base-image, or use --engine local"
        )
    if tool == "debootstrap" and os.geteuid() != 0:
        raise EngineMissingError(
            "there is no base image and debootstrap needs root to make one: install the package "
            "`mmdebstrap`, name an image with --base-image, or use --engine local"
        )
    progress(f"no registry answers: making a Debian base image with {tool} (about a minute, once)")
    with tempfile.TemporaryDirectory(prefix="investigate-base-") as folder, tempfile.TemporaryFile() as log:
        command: tuple[str, ...]
        if tool == "mmdebstrap":
            command = ("mmdebstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, "-")
        else:
            tree = f"{folder}/tree"
            _run_tool(
                ("debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, tree), log
            )
            command = ("tar", "--numeric-owner", "-C", tree, "-c", ".")
        _import_output(client, command, log)


def _import_output(client: docker.DockerClient, command: tuple[str, ...], log: IO[bytes]) -> None:
    """Import what `command` writes; the tag is given only once it has succeeded."""
    with _tool(command, log) as process, daemon_errors("import the base image"):
        answer = client.api.import_image_from_stream(process.stdout, repository=None)
        image_id = str(json.loads(answer.splitlines()[-1]).get("status", ""))
        if process.wait() != 0:
            if image_id:
                client.api.remove_image(image_id)
            raise _tool_failed(command[0], log)
        if not image_id.startswith("sha256:"):
            raise EngineMissingError(f"docker did not import the base image: {answer.strip()[-300:]}")
        repository, _, tag = BOOTSTRAP_IMAGE.partition(":")
        client.api.tag(image_id, repository, tag)


def _run_tool(command: tuple[str, ...], log: IO[bytes]) -> None:
    with _tool(command, log) as process:
        for _ in process.stdout or ():
            pass
        if process.wait() != 0:
            raise _tool_failed(command[0], log)


@contextmanager
def _tool(command: tuple[str, ...], log: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Start `command`; it gets the chance to unmount and tidy up when we leave early."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        env={**os.environ, "LC_ALL": "C"},
    )
    with process:
        try:
            yield process
        except BaseException:
            process.terminate()
            try:
                process.wait(timeout=_TIDY_UP_S)
            except subprocess.TimeoutExpired:
                process.kill()
            raise


def _tool_failed(tool: str, log: IO[bytes]) -> EngineMissingError:
    log.seek(0)
    lines = log.read().decode(errors="replace").splitlines()
    errors = [line for line in lines if line.startswith("E:")] or lines or ["it said nothing"]
    return EngineMissingError(
        f"{tool} could not make a base image ({errors[-1].strip()}): name an image with --base-image, "
        "or use --engine local"
    )
