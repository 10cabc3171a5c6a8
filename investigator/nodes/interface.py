"""What a Node build is, and what a source of builds does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

import msgspec

SourceName = Literal["npm", "dist", "image", "path"]


class NodeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One item of ``--versions`` after parsing; nothing has been looked up yet.

    ``24`` / ``24.11.1`` / ``^24.3`` / ``lts`` / ``latest`` / ``dist:URL@24-nightly`` / ``image:node:24`` /
    ``path:./out``, each with an optional label in front (``fix=path:./out``).
    """

    source: SourceName
    selector: str
    """Version, range, alias, image name or path."""
    location: str | None = None
    """URL of a ``dist:`` source."""
    label: str | None = None


class ResolvedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A request bound to one exact version, not downloaded yet."""

    request: NodeRequest
    version: str
    """``24.11.1`` without a leading v; for a ``path:`` or ``image:`` build what the binary reports."""
    integrity: str | None
    """Checksum promised by the source (``sha512-...`` of npm, ``sha256-<hex>`` of SHASUMS256.txt)."""


class NodeBuild(msgspec.Struct, frozen=True, kw_only=True):
    """An unpacked build: ``bin/node`` under `directory`, and ``include/node``, which an image may lack."""

    version: str
    source: SourceName
    directory: Path
    node_sha256: str
    """Digest of ``bin/node``: the identity of the build."""
    versions: Mapping[str, str]
    """``process.versions`` as the binary itself printed them: v8, modules (the ABI), napi, openssl, ..."""
    config_sha256: str
    """Digest of the sorted JSON of ``process.config``."""
    label: str | None = None


class NodeSource(Protocol):
    """One place Node builds come from."""

    def resolve(self, request: NodeRequest) -> ResolvedNode:
        """Bind a request to one exact version.

        Raises:
            UsageError: no such release (naming the nearest), or a selector that cannot be read.
            HostUnfitError: the source does not answer.
        """

    def fetch(self, resolved: ResolvedNode) -> Path:
        """Directory with ``bin/node`` and ``include/node``, from the cache or downloaded and verified.

        Raises:
            UsageError: the checksum does not match, or the archive is not a Node build for this platform.
            HostUnfitError: the source does not answer, or the disk is full.
        """
