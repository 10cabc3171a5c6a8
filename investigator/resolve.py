"""Spec to exact releases: look-ups only, nothing is fetched or built yet."""

import re
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from investigator import addons
from investigator.engine.choose import daemon_answers
from investigator.engine.interface import EngineName
from investigator.errors import UsageError
from investigator.inputs import addon_requests, check_inputs, fix_request, own_addon
from investigator.nodes import parse, sources
from investigator.nodes.interface import NodeBuild, ResolvedNode
from investigator.observer import Observer
from investigator.plan import Environment, environment_id, find_baseline
from investigator.spec import Flavor, Spec
from investigator.text import clean_text
from sqlcipher_bench.profiles import NO_CIPHER

RESOLVED_SCHEMA = 1
_IDENTIFIER = re.compile(r"(?:[A-Za-z0-9_-]{1,32}:)?node[0-9.]+[^+/]*\+")
_PATCH_SUFFIX = re.compile(r"-patch[0-9a-f]{8}(?=-|$)")


class ResolvedAddon(msgspec.Struct, frozen=True, kw_only=True):
    """An addon that is compared with others, bound to one release, not downloaded yet."""

    label: str | None
    name: str
    """npm name, of a ``path:`` package too; or ``node:sqlite``."""
    version: str
    """Exact; empty for ``node:sqlite``."""

    @property
    def shown(self) -> str:
        """Name and version, for people."""
        return f"{self.name} {self.version}".rstrip()


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """resolved.json: the exact releases, kept so that a resumed run takes the same ones."""

    nodes: tuple[ResolvedNode, ...]
    addons: tuple[ResolvedAddon, ...] = ()
    """One for each of `Spec.addons`; empty where Node versions are compared."""


def new_run_id(spec: Spec) -> str:
    """``20261130-181500-sqlite-3f9a``: sortable, readable, unique."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{spec.command}-{secrets.token_hex(2)}"


def likely_engine(spec: Spec) -> EngineName:
    """The engine a run will take, without making one: only macOS has other Node builds outside containers."""
    if spec.engine != "auto":
        return spec.engine
    return "docker" if sys.platform.startswith("linux") or daemon_answers() else "local"


def resolve(spec: Spec, observer: Observer, engine: EngineName) -> Resolved:
    """Bind ``--versions``, and ``--addon`` where addons are compared, to exact releases.

    Nothing is built yet, and there is no run folder. A ``path:`` addon that is compared is copied into the
    cache, since its version is inside.

    Args:
        spec: what is wanted; its files count from the working directory.
        observer: told of each look-up.
        engine: the engine that will be taken, since containers are Linux everywhere.

    Raises:
        UsageError: a version, addon, operation, baseline, file or CPU that does not exist, or nothing to
            measure.
        HostUnfitError: a source of Node builds, or the registry, does not answer.
        EngineMissingError: no npm client, or no Docker for an ``image:``.
    """
    observer.stage_started("resolve")
    check_inputs(spec)
    requests = parse.parse_versions(spec.versions)
    nodes = sources.resolve_all(requests, sources.platform_for(engine), observer)
    resolved = Resolved(nodes=nodes, addons=_resolve_addons(spec, nodes, observer))
    baseline_sketch(spec, resolved)
    return resolved


def _resolve_addons(
    spec: Spec, nodes: Sequence[ResolvedNode], observer: Observer
) -> tuple[ResolvedAddon, ...]:
    """Look every exact release up; where addons are compared, bind each to one release."""
    if spec.command == "js":
        return ()
    requests, versions = addon_requests(spec), [node.version for node in nodes]
    if own_addon(spec):
        request = fix_request(spec)
        if request.name not in {addons.NODE_SQLITE, "path:"}:
            addons.named_release(request, versions[-1:])
    if spec.axis == "node":
        for request in requests:
            if request.is_exact and request.name not in {addons.NODE_SQLITE, "path:"}:
                addons.named_release(request, versions)
        return ()
    found: list[ResolvedAddon] = []
    encrypted: dict[str, bool | None] = {}
    for request in requests:
        name, version, ciphers = request.name, "", addons.encrypts(request.name)
        if name == "path:":
            package = addons.path_addon(request.selector or "", observer)
            name, version, ciphers = package.name, package.version, package.encrypted
        elif name != addons.NODE_SQLITE:
            observer.activity(f"looking up {name}")
            version = addons.named_release(request, versions)
        found.append(ResolvedAddon(label=request.label, name=name, version=version))
        encrypted[found[-1].shown] = ciphers
    refuse_equal([(addon.label, addon.shown) for addon in found])
    refuse_mixed_ciphers(spec, encrypted)
    return tuple(found)


def refuse_equal(addons_: Sequence[tuple[str | None, str]]) -> None:
    """Items that name the same release in two ways cannot be told apart without labels."""
    plain = [shown for label, shown in addons_ if label is None]
    twice = next((shown for shown in plain if plain.count(shown) > 1), None)
    if twice is not None:
        raise UsageError(
            f"two items of --addon are {clean_text(twice, 120)}; give them labels, such as a=..., b=..."
        )


def refuse_mixed_ciphers(spec: Spec, encrypted: Mapping[str, bool | None]) -> None:
    """An encrypted database and a plain one are two different amounts of work."""
    if spec.cipher == NO_CIPHER:
        return
    able = next((name for name, ciphers in encrypted.items() if ciphers), None)
    unable = next((name for name, ciphers in encrypted.items() if ciphers is False), None)
    if able is not None and unable is not None:
        raise UsageError(
            f"{clean_text(able, 120)} would encrypt the database with {spec.cipher} and "
            f"{clean_text(unable, 120)} has no ciphers, so their times could not be compared; "
            f"give --cipher none, or leave one of them out."
        )


def baseline_sketch(spec: Spec, resolved: Resolved) -> Environment:
    """The environment that is the baseline, as far as it is known before anything is fetched.

    Raises:
        UsageError: no version or addon, or more than one, answers to the one that is wanted.
    """
    known, wanted = sketches(spec, resolved), spec.baseline
    if wanted is not None and spec.axis == "addon":
        wanted = _PATCH_SUFFIX.sub("", wanted)
    elif wanted is not None and _IDENTIFIER.match(wanted):
        # The identifier of an environment ends with its addon, of which nothing is known yet.
        wanted = wanted.partition("+")[0]
    found = find_baseline(known, wanted, spec.axis, items=spec.items)
    return next(environment for environment in known if environment.id == found)


def sketches(spec: Spec, resolved: Resolved) -> tuple[Environment, ...]:
    """The environments as far as they are known before anything is fetched."""
    if spec.axis == "node":
        return tuple(environment_of(spec, _unfetched(node), None, None) for node in resolved.nodes)
    node = _unfetched(resolved.nodes[0])
    return tuple(
        environment_of(
            spec,
            node,
            addons.AddonPackage(
                name=addon.name,
                version=addon.version,
                kind="node:sqlite" if addon.name == addons.NODE_SQLITE else "package",
            ),
            addon.label,
        )
        for addon in resolved.addons
    )


def _unfetched(node: ResolvedNode) -> NodeBuild:
    return NodeBuild(
        version=node.version,
        source=node.request.source,
        directory=Path(),
        node_sha256="",
        versions={},
        config_sha256="",
        label=node.request.label,
    )


def environment_of(
    spec: Spec, node: NodeBuild, package: addons.AddonPackage | None, label: str | None
) -> Environment:
    """An environment; `label` is that of the addon, None where Node versions are compared."""
    shipped = spec.prebuilt and package is not None and package.kind == "package"
    flavor: Flavor = "prebuilt" if shipped else "source"
    return Environment(
        id=environment_id(node, package, flavor, label=label),
        label=label if spec.axis == "addon" else node.label,
        node=node,
        addon=package,
        flavor=flavor,
        node_flags=spec.node_flags,
    )
