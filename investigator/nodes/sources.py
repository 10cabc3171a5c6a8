"""All sources of Node builds together: requests to resolved releases, and these to builds on disk."""

import platform as host_platform
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from investigator import cache
from investigator.engine.interface import EngineName
from investigator.errors import HostUnfitError, UsageError
from investigator.nodes.describe import NodeDescription, remembered
from investigator.nodes.dist import DistNodes
from investigator.nodes.image import ImageNodes
from investigator.nodes.interface import NodeBuild, NodeSource, ResolvedNode, SourceName
from investigator.nodes.interface import NodeRequest as Request
from investigator.nodes.npm import NpmNodes
from investigator.nodes.path import PathNodes
from investigator.observer import NullObserver, Observer
from investigator.text import clean_text

Describe = Callable[[Path], NodeDescription]

_DOWNLOADS_AT_ONCE: Final = 3
_PROCESSORS: Final = {
    "x86_64": "x64",
    "amd64": "x64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "ppc64le": "ppc64le",
    "s390x": "s390x",
}


def platform_for(engine: EngineName) -> str:
    """Name the platform that Node runs on: ``linux-x64``; containers are always Linux.

    Raises:
        HostUnfitError: a system or processor without Node releases.
    """
    processor = _PROCESSORS.get(host_platform.machine().lower())
    system = "linux" if engine == "docker" or sys.platform.startswith("linux") else sys.platform
    if processor is None or system not in ("linux", "darwin"):
        raise HostUnfitError(
            f"there are no Node builds for {system} on {host_platform.machine() or 'this processor'}; "
            "use Linux or macOS on x64 or arm64"
        )
    return f"{system}-{processor}"


def source_of(name: SourceName, platform: str, observer: Observer) -> NodeSource:
    """Make the source that answers requests of that name."""
    kinds: dict[SourceName, Callable[..., NodeSource]] = {
        "npm": NpmNodes,
        "dist": DistNodes,
        "image": ImageNodes,
        "path": PathNodes,
    }
    return kinds[name](platform=platform, notify=observer.note)


def resolve_all(
    requests: Sequence[Request], platform: str, observer: Observer | None = None
) -> tuple[ResolvedNode, ...]:
    """Bind every request to one exact version, in their order.

    Raises:
        UsageError: no such release, or one release twice without labels.
        HostUnfitError: a source does not answer.
        EngineMissingError: no npm client, or no Docker for an ``image:``.
    """
    watcher = observer or NullObserver()
    resolved = []
    for request in requests:
        watcher.activity(f"looking up Node {request.selector}")
        resolved.append(source_of(request.source, platform, watcher).resolve(request))
    _refuse_doubles([(node.request, node.version) for node in resolved])
    return tuple(resolved)


def fetch_all(
    resolved: Sequence[ResolvedNode],
    describe: Describe,
    platform: str,
    observer: Observer | None = None,
) -> tuple[NodeBuild, ...]:
    """Have every build on disk, verified and described, in their order; each is downloaded once.

    Raises:
        UsageError: a checksum that does not match, or a binary that is not what it should be.
        HostUnfitError: a source does not answer, or the disk is full.
        EngineMissingError: no npm client, no Docker for an ``image:``, or the engine of `describe`.
    """
    watcher = observer or NullObserver()

    def fetch(node: ResolvedNode) -> Path:
        watcher.activity(f"fetching Node {node.version}")
        directory = source_of(node.request.source, platform, watcher).fetch(node)
        for _label in filter(lambda other: _unlabelled(other) == _unlabelled(node), resolved):
            watcher.step(f"node {node.version}")
        return directory

    # One release under two labels is fetched once.
    distinct = {_unlabelled(node): node for node in resolved}
    pool = ThreadPoolExecutor(max_workers=_DOWNLOADS_AT_ONCE)
    try:
        directories = dict(zip(distinct, pool.map(fetch, distinct.values()), strict=True))
    finally:
        # Not waiting: after ^C or a failed download nobody wants the others.
        pool.shutdown(wait=False, cancel_futures=True)
    builds = tuple(_build(node, directories[_unlabelled(node)], describe) for node in resolved)
    _refuse_doubles([(node.request, build.version) for node, build in zip(resolved, builds, strict=True)])
    return builds


def _unlabelled(node: ResolvedNode) -> ResolvedNode:
    return msgspec.structs.replace(node, request=msgspec.structs.replace(node.request, label=None))


def _build(node: ResolvedNode, directory: Path, describe: Describe) -> NodeBuild:
    try:
        description = remembered(directory, describe)
    except UsageError as error:
        raise UsageError(
            f"{_as_typed(node.request, node.request.label)} (Node {node.version}) cannot be used: {error}; "
            "leave it out, or give a build for this system, or a system for the build with --base-image"
        ) from error
    reported = description.versions["node"]
    if node.request.source in ("npm", "dist") and reported != node.version:
        raise UsageError(
            f"the build of {_as_typed(node.request, node.request.label)} should be Node {node.version}, "
            f"but says that it is {reported}; leave it out, or remove {directory} and fetch it again"
        )
    return NodeBuild(
        version=reported,
        source=node.request.source,
        directory=directory,
        node_sha256=cache.sha256_of(directory / "bin/node"),
        versions=description.versions,
        config_sha256=description.config_sha256,
        label=node.request.label,
    )


def _refuse_doubles(nodes: Sequence[tuple[Request, str]]) -> None:
    seen: dict[tuple[str | None, str], Request] = {}
    for request, version in nodes:
        other = seen.setdefault((request.label, version), request)
        if other is not request:
            first, second = (_as_typed(item, None) for item in (other, request))
            raise UsageError(
                f"{first} and {second} are both Node {version}; compare them with labels, "
                f"for instance a={first},b={second}"
            )


def _as_typed(request: Request, label: str | None) -> str:
    """The item of ``--versions`` that a request came from, under `label`."""
    selector = request.selector if request.source == "npm" else f"{request.source}:{request.selector}"
    if request.source == "dist":
        selector = f"dist:{request.location}@{request.selector}"
    return clean_text(selector if label is None else f"{label}={selector}", 200)
