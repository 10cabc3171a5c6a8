"""Node out of a container image: the binary and its headers are copied out, the image is never started."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

import msgspec
from docker.errors import APIError, ImageNotFound, NotFound

from investigator import archives, cache
from investigator.cache import Notify
from investigator.engine.daemon import (
    LABEL,
    OWNER_LABEL,
    PURPOSE_LABEL,
    connect,
    daemon_errors,
    remove_quietly,
)
from investigator.engine.owner import current_owner
from investigator.errors import UsageError
from investigator.nodes import layout
from investigator.nodes.interface import NodeRequest, ResolvedNode
from investigator.text import clean_text

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container
    from docker.models.images import Image

_BINARIES: Final = ("/usr/local/bin/node", "/usr/bin/node")
_HEADERS: Final = ("/usr/local/include/node", "/usr/include/node")
_ARCHIVE_BYTES: Final = 2 << 30
_MAX_LINKS: Final = 5
_PROCESSORS: Final = {"amd64": "x64"}


class ImageNodes(msgspec.Struct, frozen=True, kw_only=True):
    """A `NodeSource`: an official Node image, or any with node and its headers in the usual places."""

    platform: str
    """``linux-x64`` and the like."""
    notify: Notify | None = None

    def resolve(self, request: NodeRequest) -> ResolvedNode:
        """See `NodeSource.resolve`; the files are copied out here already: the version is in them."""
        with _client() as client:
            image = _find(client, request.selector, self.notify)
            self._check_platform(image, request.selector)
            directory = self._keep(client, image, request.selector)
        version = _version(directory, request.selector)
        return ResolvedNode(request=request, version=version, integrity=str(image.id))

    def fetch(self, resolved: ResolvedNode) -> Path:
        """See `NodeSource.fetch`."""
        key = _key(resolved.integrity or "")
        cached = layout.cached_origin(key)
        if cached is not None:
            return cached[0]
        with _client() as client:
            image = _find(client, resolved.integrity or "", self.notify)
            return self._keep(client, image, resolved.request.selector)

    def _keep(self, client: "DockerClient", image: "Image", name: str) -> Path:
        def fill(work: Path) -> None:
            with _created(client, image) as container:
                if not any(_copy_binary(container, path, work) for path in _BINARIES):
                    raise UsageError(
                        f"image {name} has no node in /usr/local/bin or /usr/bin; "
                        "copy it out and give the directory as path:"
                    )
                # Without headers no addon can be compiled for it; pure JavaScript and shipped binaries run.
                any(_copy_headers(container, path, work) for path in _HEADERS)
            origin = layout.Origin(version=_version(work, name), integrity=str(image.id))
            layout.finish(work, origin, self.platform, f"image {name}", needs_headers=False)

        return cache.filled(
            layout.CACHE_KIND, _key(str(image.id)), fill, key_files=layout.KEY_FILES, notify=self.notify
        )

    def _check_platform(self, image: "Image", name: str) -> None:
        processor = str(image.attrs.get("Architecture", ""))
        found = f"{image.attrs.get('Os', 'linux')}-{_PROCESSORS.get(processor, processor)}"
        if found != self.platform:
            raise UsageError(
                f"image {name} is for {clean_text(found, 40)}, but {self.platform} is needed here"
            )


def _version(directory: Path, name: str) -> str:
    """What the headers say, or where there are none the binary; neither is run."""
    if layout.has_headers(directory):
        return layout.read_headers(directory, f"image {name}").version
    version = layout.version_in(directory / "bin/node")
    if version is None:
        raise UsageError(
            f"image {name} has no headers (include/node), and its node does not say which release it is; "
            "use an official image"
        )
    return version


def _key(image_id: str) -> str:
    return f"image-{image_id.removeprefix('sha256:')}"


@contextmanager
def _client() -> "Iterator[DockerClient]":
    client = connect()
    try:
        with daemon_errors("copy Node out of an image"):
            yield client
    finally:
        client.close()


def _find(client: "DockerClient", name: str, notify: Notify | None) -> "Image":
    try:
        return client.images.get(name)
    except ImageNotFound:
        pass
    except APIError as error:
        if error.status_code is None or not 400 <= error.status_code < 500:
            raise
        raise _no_image(name, "is not a name that docker takes", error) from error
    if notify is not None:
        notify(f"pulling image {name}")
    tagged = name if ":" in name.rpartition("/")[2] or "@" in name else f"{name}:latest"
    try:
        return client.images.pull(tagged)
    except APIError as error:
        raise _no_image(name, "is not on this machine and cannot be pulled", error) from error


def _no_image(name: str, trouble: str, error: APIError) -> UsageError:
    said = clean_text(str(error.explanation or ""), 120)
    return UsageError(f"image {name} {trouble} ({said}); check the name, or load it with `docker load`")


@contextmanager
def _created(client: "DockerClient", image: "Image") -> "Iterator[Container]":
    """Make a container to copy out of. It is never started, so the command does not matter."""
    labels = {LABEL: "1", OWNER_LABEL: str(current_owner()), PURPOSE_LABEL: "copy Node out of an image"}
    container = client.containers.create(
        str(image.id), command=["node"], network_disabled=True, labels=labels
    )
    try:
        yield container
    finally:
        remove_quietly(container)


def _copy_binary(container: "Container", path: str, work: Path) -> bool:
    """Copy one program, following links inside the container; False where there is none."""
    with tempfile.TemporaryDirectory(dir=work.parent, prefix=".tmp-") as folder:
        tar = Path(folder, "node.tar")
        for _ in range(_MAX_LINKS):
            link = _save(container, path, tar)
            if link is None:
                return False
            if not link:
                archives.unpack(tar, work, place=lambda _name: PurePosixPath("bin/node"))
                return True
            path = str(PurePosixPath(path).parent / link)
    return False


def _copy_headers(container: "Container", path: str, work: Path) -> bool:
    with tempfile.TemporaryDirectory(dir=work.parent, prefix=".tmp-") as folder:
        tar = Path(folder, "include.tar")
        return _save(container, path, tar) == "" and bool(archives.unpack(tar, work / "include/node"))


def _save(container: "Container", path: str, tar: Path) -> str | None:
    """Copy a path out as a tar archive; its link target ("" for none), or None without that path."""
    try:
        pieces, facts = container.get_archive(path, chunk_size=1 << 20)
    except NotFound:
        return None
    total = 0
    with tar.open("wb") as file:
        for piece in pieces:
            total += len(piece)
            if total > _ARCHIVE_BYTES:
                raise UsageError(
                    f"{path} in the image is larger than {_ARCHIVE_BYTES:,} bytes; it is not Node"
                )
            file.write(piece)
    return str((facts or {}).get("linkTarget") or "")
