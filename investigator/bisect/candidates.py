"""A release on the way to an environment that can be measured, or to the reason why it cannot.

A build for the headers of one release loads on every release of its ABI (NODE_MODULE_VERSION), so the search
borrows one where it can: it saves ten seconds a release. What the headers themselves change between two
releases of an ABI stays hidden so; therefore the verification at the end uses builds of each release's own.
"""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from investigator import addons, cache, prepare, resolve
from investigator.bisect.request import Request, node_at
from investigator.build import AddonBuild, BuildFailure
from investigator.errors import UsageError
from investigator.measure import Bench
from investigator.nodes.history import channel
from investigator.plan import Environment
from investigator.text import clean_text

SKIPS_SCHEMA: Final = 1
_SKIPS: Final = "skipped.json"


class Skips(msgspec.Struct, frozen=True, kw_only=True):
    """skipped.json: releases that cannot be measured, with the reason of each."""

    reasons: dict[str, str]


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A release that is ready to be measured."""

    environment: Environment
    build: AddonBuild | None
    """None where there is no addon to build."""
    built_for: str
    """Version whose headers the build was made for; empty where there is none."""


class Candidates:
    """The releases of one bisection, made ready when they are asked for."""

    def __init__(self, bench: Bench, request: Request) -> None:
        self._bench, self._request = bench, request
        self._made: dict[tuple[str, bool], Candidate] = {}
        self._seen: dict[str, Candidate] = {}
        self._donors: dict[str, Candidate] = {}
        self._skips = _read_skips(bench)
        old, new = bench.plan.environments
        for version, environment in ((request.old, old), (request.new, new)):
            candidate = Candidate(
                environment=environment,
                build=bench.around.builds.get(environment.id),
                built_for=environment.node.version if environment.id in bench.around.builds else "",
            )
            self._made[version, False] = self._made[version, True] = self._seen[version] = candidate
            self._donors.setdefault(_abi(environment), candidate)

    @property
    def skipped(self) -> Mapping[str, str]:
        """Reasons by version."""
        return self._skips

    def get(self, version: str, *, own_build: bool) -> Candidate | None:
        """The release ready to be measured; None where it cannot be, which is remembered.

        Args:
            version: of the release on the way.
            own_build: whether a build for the headers of another release will not do.

        Raises:
            HostUnfitError: a registry does not answer, or the disk is full: not the fault of the release.
            EngineMissingError: the engine does not answer any more.
        """
        if version in self._skips:
            return None
        own = own_build or not self._request.share_builds
        if (version, own) not in self._made:
            try:
                made = self._make(version, own=own)
            except UsageError as error:
                made = str(error)
            if isinstance(made, str):
                self.skip(version, made)
                return None
            self._made[version, own] = made
            self._seen.setdefault(version, made)
        return self._made[version, own]

    def made(self, version: str) -> Candidate | None:
        """The release as the search measured it first, if it did; nothing is made for it."""
        return self._seen.get(version)

    def remember(self, version: str, candidate: Candidate) -> None:
        """Tell of a release that was measured before; it is not made anew until it is measured again."""
        self._seen.setdefault(version, candidate)

    def give_up(self, needed: Collection[str]) -> None:
        """Let the cache have what is not `needed` any more; it is made anew if it is asked for again."""
        ends = {self._request.old, self._request.new}
        gone = {key: made for key, made in self._made.items() if key[0] not in {*needed, *ends}}
        kept = {made.build.directory for key, made in self._made.items() if key not in gone and made.build}
        self._made = {key: made for key, made in self._made.items() if key not in gone}
        self._donors = {
            abi: donor for abi, donor in self._donors.items() if donor.build and donor.build.directory in kept
        }
        nodes = {made.environment.node.directory for made in self._made.values()}
        builds = {made.build.directory for made in gone.values() if made.build} - kept
        cache.release(builds | ({made.environment.node.directory for made in gone.values()} - nodes))

    def skip(self, version: str, reason: str) -> None:
        """Remember that a release cannot be measured."""
        self._skips[version] = clean_text(reason, 400)
        self._bench.observer.warning(f"{version} is skipped: {reason}")
        self._bench.folder.write_json(_SKIPS, "bisect-skips", SKIPS_SCHEMA, Skips(reasons=self._skips))

    def _make(self, version: str, *, own: bool) -> Candidate | str:
        """The candidate, or why there is none."""
        old = self._bench.plan.environments[0]
        if self._request.axis == "addon":
            if self._request.addon is None:
                return "no addon is bisected"
            package = addons.fetch_addon(self._request.addon, version, self._bench.observer)
            return self._built(version, old, package, None)
        node = node_at(self._request, version, self._bench.engine.name, self._bench.observer)
        resolved = resolve.Resolved(nodes=(node,))
        (build,) = prepare.fetch(resolved, self._bench.engine, self._bench.observer)
        there = msgspec.structs.replace(old, node=build)
        donor = (
            None if own or old.addon is None or old.flavor == "prebuilt" else self._donors.get(_abi(there))
        )
        return self._built(version, there, old.addon, donor)

    def _built(
        self, version: str, like: Environment, package: addons.AddonPackage | None, donor: Candidate | None
    ) -> Candidate | str:
        environment, build = prepare.one_environment(
            self._bench.plan.spec,
            like.node,
            package,
            self._bench.engine,
            self._bench.observer,
            borrowed=None if donor is None else donor.build,
        )
        if isinstance(build, BuildFailure) and donor is not None:
            return self._built(version, like, package, None)
        if isinstance(build, BuildFailure):
            return build.reason
        for_node = "" if build is None else donor.built_for if donor is not None else environment.node.version
        candidate = Candidate(environment=environment, build=build, built_for=for_node)
        if self._request.axis == "node" and donor is None:
            self._donors.setdefault(_abi(environment), candidate)
        return candidate


def _abi(environment: Environment) -> str:
    """What a build must have been compiled for to load.

    Between releases main takes a new V8 without a new ABI number: nightlies share a build only with one V8.
    """
    versions = environment.node.versions
    v8 = versions.get("v8", "") if channel(environment.node.version) else ""
    return f"{versions.get('modules', '')} {v8}".strip()


def _read_skips(bench: Bench) -> dict[str, str]:
    if not (bench.folder.path / _SKIPS).exists():
        return {}
    return dict(bench.folder.read_json(_SKIPS, "bisect-skips", SKIPS_SCHEMA, Skips).reasons)
