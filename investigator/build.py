"""Compile the addon against each Node build, in a container without network, once per cache key."""

from collections.abc import Mapping
from pathlib import Path

import msgspec


class AddonBuild(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled (or shipped) addon binary for one environment, from the cache or fresh."""

    key: str
    """Content address: Node digest, addon integrity, patch, base image digest, compiler, flags, fixtures."""
    directory: Path
    """Cache entry: ``package/`` (the addon's JS), the ``.node``, ``sqlite3.a`` (source builds), ``build.log``."""
    entry: str
    """The addon's main JS file relative to `directory`, e.g. ``package/lib/index.js``."""
    binding: str
    """The ``.node`` file relative to `directory`."""
    binding_sha256: str
    sqlite3_object_sha256: str | None
    """None where the binary was shipped, not built."""
    compiler: str
    """First line of ``g++ --version``; empty for a shipped binary."""
    flags: Mapping[str, str]
    """Full command line of the compiler per source file (``sqlite3.c``, ``better_sqlite3.cpp``)."""
    elapsed_s: float
    """What the build took when it was made."""


class BuildFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A build that failed: costs its own cells only."""

    reason: str
    """One sentence with the compiler's first error, or the load test's."""
    log: Path | None = None
    """The kept log."""
