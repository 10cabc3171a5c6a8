"""Which engine a run takes: the one asked for, else docker where it can work, else plain processes."""

import docker

from investigator.base_image import BaseImage, ensure_base_image
from investigator.cache import cache_root
from investigator.engine.daemon import connect
from investigator.engine.docker import DockerEngine
from investigator.engine.interface import Engine
from investigator.engine.local import LocalEngine
from investigator.errors import EngineMissingError
from investigator.observer import Observer
from investigator.spec import EngineChoice

SCRATCH_FOLDER = "scratch"
"""Below the cache root: scratch directories on disk, and those of `local` where there is no /dev/shm."""


def choose_engine(choice: EngineChoice, base_image: str | None, observer: Observer) -> Engine:
    """Make the engine of a run; the caller closes it.

    ``auto`` is docker where a daemon answers and a base image can be had, else ``local``, told as a warning.
    An image that was named explicitly is never silently replaced by ``local``.

    Raises:
        EngineMissingError: docker was asked for, or an image was named, and it cannot be had.
        HostUnfitError: a disk is full.
    """
    if choice == "local":
        if base_image is not None:
            observer.warning(f"--base-image {base_image} is not used: --engine local has no images")
        return _local()
    try:
        return _docker(base_image, observer)
    except EngineMissingError as error:
        if choice == "docker" or base_image is not None:
            raise
        observer.warning(
            f"{error}. This run goes on with plain processes (--engine local): they take compiler and C "
            "library from this machine and are isolated only as far as its kernel lets us"
        )
        return _local()


def daemon_answers() -> bool:
    """Whether a container engine is there at all."""
    try:
        connect().close()
    except EngineMissingError:
        return False
    return True


def _docker(base_image: str | None, observer: Observer) -> DockerEngine:
    client = connect()
    try:
        image = _image(client, base_image, observer)
    finally:
        client.close()
    return DockerEngine(image=image, storage_root=cache_root() / SCRATCH_FOLDER)


def _image(client: docker.DockerClient, base_image: str | None, observer: Observer) -> BaseImage:
    image = ensure_base_image(client, base_image, observer.activity)
    if image.how != "present":
        observer.note(f"base image: {image.reference} ({image.how})")
    return image


def _local() -> LocalEngine:
    return LocalEngine(storage_root=cache_root() / SCRATCH_FOLDER)
