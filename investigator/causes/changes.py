"""What else changed between the two Node builds of a pair: to be read before one thing is blamed."""

from collections.abc import Mapping
from typing import Final

import msgspec

from investigator.causes.build import BuildDifference, compare_configs
from investigator.causes.flags import NodeFlags, changed_defaults
from investigator.nodes.interface import NodeBuild
from investigator.text import clean_text

# In the order of a report; what each may act on. Other keys of process.versions follow by name.
_ABOUT: Final[Mapping[str, str]] = {
    "v8": "engine, collector, and the functions that addons call",
    "modules": "the ABI that addons are compiled for (NODE_MODULE_VERSION)",
    "napi": "Node-API, for addons that use it",
    "uv": "event loop and file access",
    "openssl": "crypto; not the cipher inside an addon that brings its own",
    "sqlite": "node:sqlite only; not an addon that brings its own SQLite",
    "zlib": "compression",
    "simdutf": "conversion of strings and buffers",
    "simdjson": "reading of package.json and the like",
    "ada": "URLs",
    "llhttp": "HTTP",
    "undici": "fetch",
    "icu": "Intl and normalisation of strings",
    "ares": "DNS",
    "brotli": "compression",
    "zstd": "compression",
    "nghttp2": "HTTP/2",
}


class VersionChange(msgspec.Struct, frozen=True, kw_only=True):
    """A part of Node in two versions."""

    name: str
    """Key of ``process.versions``."""
    baseline: str
    """Empty where that build does not have it."""
    candidate: str
    about: str
    """What it may act on."""


class DefaultChange(msgspec.Struct, frozen=True, kw_only=True):
    """A V8 flag that both know with another default."""

    name: str
    """``--scavenger-max-new-space-capacity-mb``."""
    baseline: str
    candidate: str
    about: str
    """V8's own words."""


class NodeChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The join of two Node builds."""

    same_binary: bool
    versions: tuple[VersionChange, ...]
    config: tuple[BuildDifference, ...]
    """Variables of ``process.config`` that differ, those that decide machine code first."""
    defaults: tuple[DefaultChange, ...]
    new_flags: int
    """Flags that only the candidate knows."""
    gone_flags: int


def changes_between(
    baseline: NodeBuild,
    candidate: NodeBuild,
    flags: tuple[NodeFlags, NodeFlags] | None = None,
) -> NodeChanges:
    """Join what two Node builds differ in; reads their headers, runs nothing.

    Args:
        baseline: one build.
        candidate: the other.
        flags: of both, from `flags.read_flags`, where they were read.
    """
    known = flags or (NodeFlags(flags={}), NodeFlags(flags={}))
    config = sorted(compare_configs(baseline, candidate), key=lambda d: d.relevance != "code")
    return NodeChanges(
        same_binary=baseline.node_sha256 == candidate.node_sha256,
        versions=tuple(_versions(baseline.versions, candidate.versions)),
        config=tuple(config),
        defaults=tuple(
            DefaultChange(
                name=f"--{name}", baseline=before, candidate=after, about=known[1].flags[name].about
            )
            for name, (before, after) in changed_defaults(None, *known).items()
        ),
        new_flags=len(known[1].flags.keys() - known[0].flags.keys()),
        gone_flags=len(known[0].flags.keys() - known[1].flags.keys()),
    )


def _versions(one: Mapping[str, str], other: Mapping[str, str]) -> list[VersionChange]:
    names = [*_ABOUT, *sorted({*one, *other} - _ABOUT.keys() - {"node"})]
    return [
        VersionChange(
            name=name,
            baseline=clean_text(one.get(name, ""), 80),
            candidate=clean_text(other.get(name, ""), 80),
            about=_ABOUT.get(name, ""),
        )
        for name in names
        if one.get(name, "") != other.get(name, "")
    ]
