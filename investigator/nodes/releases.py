"""Which Node releases there are, with V8, ABI and Node-API where they are known without a download."""

import tomllib
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Final

import msgspec

from investigator import cache, npm_client
from investigator.errors import UsageError
from investigator.nodes import layout
from investigator.nodes.npm import NpmNodes

_TABLE: Final = "releases.toml"


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One release in `investigate versions`; an empty text where something is not known."""

    version: str
    v8: str
    """``13.6``."""
    abi: str
    """NODE_MODULE_VERSION: ``137``."""
    napi: str
    published: str
    """Date the registry gives, ``2025-11-12``. A mirror may give the day on which it took the release."""
    cached: bool
    """Whether the build is on this machine already."""


class _Span(msgspec.Struct, frozen=True):
    """Facts of all releases from `first` to the next span of the same major."""

    first: str
    v8: str
    abi: str
    napi: str


def available_nodes(platform: str, lines: Sequence[int] = ()) -> tuple[NodeRow, ...]:
    """List the releases on npm for a platform, newest first; only those of the majors `lines` where given.

    Raises:
        HostUnfitError: the registry does not answer, or there are no builds for the platform.
        EngineMissingError: there is no npm client.
    """
    source = NpmNodes(platform=platform)
    listing = npm_client.listing(source.package)
    kept = {entry.name for entry in cache.entries(layout.CACHE_KIND)}
    rows = []
    for version in reversed(listing.versions):
        parsed = npm_client.precedence(version)
        if parsed.prerelease or (lines and parsed.major not in lines):
            continue
        cached = source.key(version) in kept
        facts = (_from_cache(source.key(version)) if cached else None) or _from_table(version)
        rows.append(
            NodeRow(
                version=version,
                v8=facts.v8 if facts else "",
                abi=facts.abi if facts else "",
                napi=facts.napi if facts else "",
                published=listing.published.get(version, "")[:10],
                cached=cached,
            )
        )
    return tuple(rows)


def known_napi(version: str) -> int | None:
    """Highest Node-API version that a release offers, as far as it is known without a download."""
    facts = _from_table(version)
    return int(facts.napi) if facts is not None and facts.napi.isdecimal() else None


def _from_cache(key: str) -> layout.HeaderFacts | None:
    try:
        return layout.read_headers(cache.entry(layout.CACHE_KIND, key), key)
    except UsageError:
        return None


def _from_table(version: str) -> _Span | None:
    wanted = npm_client.precedence(version)
    spans = [
        span
        for span in _table()
        if (first := npm_client.precedence(span.first)).major == wanted.major and first <= wanted
    ]
    return max(spans, key=lambda span: npm_client.precedence(span.first), default=None)


@lru_cache(maxsize=1)
def _table() -> tuple[_Span, ...]:
    text = resources.files("investigator.nodes").joinpath(_TABLE).read_text("utf-8")
    return msgspec.convert(tomllib.loads(text)["span"], type=tuple[_Span, ...])
