"""What is to be bisected: the ends, the operation and the releases on the way; nothing is fetched here."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from investigator import addons, npm_client, operations
from investigator.engine.interface import EngineName
from investigator.errors import UsageError
from investigator.nodes import history, parse, releases, sources
from investigator.nodes.dist import DistNodes
from investigator.nodes.history import Release
from investigator.nodes.interface import NodeRequest, ResolvedNode
from investigator.nodes.npm import NpmNodes
from investigator.observer import Observer
from investigator.spec import CIPHER_ADDON, Axis, Command, Spec, checked
from investigator.store import RunFolder
from investigator.text import clean_text

REQUEST_SCHEMA: Final = 1
FILE: Final = "request.json"
NO_ADDON: Final = "none"
MOST_RELEASES: Final = 2000
MOST_ADDONS: Final = 12
_LINES: Final = re.compile(r"[0-9]{1,3}(?:,[0-9]{1,3}){0,31}")

Find = Literal["regression", "fixed"]


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the user typed."""

    good: str
    bad: str
    op: str | None
    find: Find
    axis: Axis = "node"
    node: str | None = None
    """The one Node where addon releases are bisected."""
    lines: str = "all"
    addon: str = CIPHER_ADDON
    """With ``none`` the operation runs without an addon."""
    git: str | None = None
    most_steps: int | None = None
    share_builds: bool = True


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """request.json: everything that decides where the search goes, beside spec.toml."""

    find: Find
    axis: Axis
    good: str
    bad: str
    op: str | None
    """None until the workload has told its only operation."""
    source: NodeRequest | None
    """Where Node builds come from, its selector to be replaced; None where addons are bisected."""
    addon: str | None
    """Name of the addon whose releases are bisected."""
    releases: tuple[Release, ...]
    """From the older end to the newer one, both included."""
    left_out: int
    """Releases with versions between the ends that are not on the way."""
    share_builds: bool
    most_steps: int | None
    git: str | None

    @property
    def old(self) -> str:
        """Version of the older end."""
        return self.releases[0].version

    @property
    def new(self) -> str:
        """Version of the newer end."""
        return self.releases[-1].version


def is_bisection(folder: RunFolder) -> bool:
    """Whether a run folder holds a bisection, also one that lost its request: it is no other kind of run."""
    return any((folder.path / name).exists() for name in (FILE, "bisect.json"))


def read_request(folder: RunFolder) -> Request:
    """The request of a run.

    Raises:
        StoredFileError: it cannot be read.
    """
    return folder.read_json(FILE, "bisect-request", REQUEST_SCHEMA, Request)


def make_request(wanted: Wanted, base: Spec, engine: EngineName, observer: Observer) -> tuple[Request, Spec]:
    """Bind the ends to releases, list those between, and make the spec that measures the ends.

    Args:
        wanted: what was typed.
        base: the other options, with any versions.
        engine: that will be taken.
        observer: told of look-ups.

    Raises:
        UsageError: an end that is no release, ends in the wrong order, or nothing to measure.
        HostUnfitError: the source of releases does not answer.
    """
    observer.stage_started("resolve")
    _check(wanted, base)
    command = _command(wanted, base)
    if wanted.axis == "addon":
        return _addon_request(wanted, base, engine, observer)
    return _node_request(wanted, base, command, engine, observer)


def _check(wanted: Wanted, base: Spec) -> None:
    if wanted.op is None and not base.workloads:
        raise UsageError(
            "there is nothing to measure; name an operation with --op, or a file with --workload."
        )
    if wanted.lines != "all" and not _LINES.fullmatch(wanted.lines):
        raise UsageError(f"--lines {wanted.lines[:60]!r} is neither all nor majors such as 24 or 22,24.")
    if wanted.most_steps is not None and not 1 <= wanted.most_steps <= 200:
        raise UsageError(f"--max-steps is {wanted.most_steps}; it must be between 1 and 200.")
    if wanted.axis == "node" and wanted.node is not None:
        raise UsageError("--node goes with --axis addon; Node releases are named with --good and --bad.")
    if wanted.axis == "addon" and wanted.lines != "all":
        raise UsageError("--lines chooses lines of Node; with --axis addon leave it out.")


def _command(wanted: Wanted, base: Spec) -> Command:
    """`js` where no addon is needed: for operations of the js family, and where the user wants none."""
    if wanted.op is not None and not base.workloads:
        known = operations.choose((wanted.op,), operations.CATALOGUE)
        if len(known) != 1:
            raise UsageError(
                f"--op {wanted.op[:60]!r} names {len(known)} operations; a bisection follows one."
            )
        if known[0].family == "js":
            return "js"
    return "js" if wanted.addon == NO_ADDON else "sqlite"


def _ops(wanted: Wanted, base: Spec) -> tuple[str, ...]:
    if wanted.op is not None:
        return (wanted.op,)
    return ("none",) if base.workloads else ()


# -- Node releases ------------------------------------------------------------------------------------------


def _node_request(
    wanted: Wanted, base: Spec, command: Command, engine: EngineName, observer: Observer
) -> tuple[Request, Spec]:
    good, bad = (_end(text, option) for text, option in ((wanted.good, "--good"), (wanted.bad, "--bad")))
    if (good.source, good.location) != (bad.source, bad.location):
        raise UsageError("--good and --bad come from two places; take both from npm, or from one dist: site.")
    platform = sources.platform_for(engine)
    # One by one: that both are the same release is said in the words of this command.
    is_good, is_bad = (sources.resolve_all((end,), platform, observer)[0].version for end in (good, bad))
    versions = _in_order(wanted, is_good, is_bad, history.is_before)
    kind = DistNodes if good.source == "dist" else NpmNodes
    listed = kind(platform=platform, notify=observer.note).releases(good)
    lines = () if wanted.lines == "all" else tuple(int(line) for line in wanted.lines.split(","))
    way = history.path(listed, *versions, lines)
    request = _request(
        wanted,
        way,
        source=good,
        addon=None,
        all_between=_between(listed, *versions),
        good=is_good,
        bad=is_bad,
    )
    addon = base.addon
    if command == "sqlite":
        addon = _addon_for_all(wanted.addon, [release.version for release in way], observer)
    return request, checked(
        msgspec.structs.replace(
            base,
            command=command,
            versions=tuple(_as_typed(good, version) for version in versions),
            addon=addon,
            ops=_ops(wanted, base),
        )
    )


def _addon_for_all(text: str, versions: Sequence[str], observer: Observer) -> str:
    """The addon, at most the newest release that every Node on the way accepts, where that was left open.

    The newest release that loads on both ends may need more than releases between them offer, which would
    then be skipped for nothing (13.0.3 loads on 22.21.1 and 24.11.1, but not on 23.0.0).
    """
    request = addons.parse_addon(text)
    if request.is_exact:
        return text
    offered = [napi for version in versions if (napi := releases.known_napi(version)) is not None]
    try:
        wanted = addons.select_release(request, versions)
    except UsageError:
        return text  # no release accepts all of them; those that it does not load on are skipped
    for release in wanted[:MOST_ADDONS]:
        package = addons.fetch_addon(request.name, release.version, observer)
        if package.napi is None or package.napi <= min(offered, default=package.napi):
            observer.note(f"{request.name}: up to {release.version}, which every release on the way accepts")
            return f"{request.name}@<={release.version}"
    return text


def _end(text: str, option: str) -> NodeRequest:
    found = parse.parse_versions(text)
    if len(found) != 1 or found[0].label is not None or found[0].source not in {"npm", "dist"}:
        raise UsageError(
            f"{option} {clean_text(text, 80)!r} is not one release; a bisection goes over releases, such as "
            "24.11.1 or dist:URL@24.11.1. A build of your own is judged by `investigate validate`."
        )
    return found[0]


def _as_typed(request: NodeRequest, version: str) -> str:
    return f"dist:{request.location}@{version}" if request.source == "dist" else version


def _between(listed: Sequence[Release], old: str, new: str) -> int:
    """Releases of the ends' channel whose versions lie strictly between them."""
    return sum(
        history.channel(r.version) == history.channel(old)
        and history.is_before(old, r.version)
        and history.is_before(r.version, new)
        for r in listed
    )


# -- addon releases -----------------------------------------------------------------------------------------


def _addon_request(
    wanted: Wanted, base: Spec, engine: EngineName, observer: Observer
) -> tuple[Request, Spec]:
    if wanted.node is None:
        raise UsageError(
            "--axis addon bisects addon releases on one Node version; give it with --node 24.11.1."
        )
    name = addons.parse_addon(wanted.addon)
    if name.selector is not None or name.name in {addons.NODE_SQLITE, "path:"} or wanted.addon == NO_ADDON:
        raise UsageError(
            f"--addon {clean_text(wanted.addon, 80)!r} must be the plain name of a package here; its "
            "releases are named with --good and --bad."
        )
    nodes = sources.resolve_all(parse.parse_versions(wanted.node), sources.platform_for(engine), observer)
    observer.activity(f"looking up {name.name}")
    good, bad = (
        addons.named_release(
            addons.parse_addon(f"{name.name}@{text.strip()}"), [node.version for node in nodes]
        )
        for text in (wanted.good, wanted.bad)
    )
    old, new = _in_order(wanted, good, bad, _precedes)
    listed = [v for v in npm_client.versions(name.name) if not npm_client.precedence(v).prerelease]
    between = [v for v in listed if _precedes(old, v) and _precedes(v, new)]
    request = _request(
        wanted,
        tuple(Release(version=version) for version in (old, *between, new)),
        source=None,
        addon=name.name,
        all_between=len(between),
        good=good,
        bad=bad,
    )
    return request, checked(
        msgspec.structs.replace(
            base,
            command="sqlite",
            axis="addon",
            versions=(wanted.node,),
            addons=(f"{name.name}@{old}", f"{name.name}@{new}"),
            ops=_ops(wanted, base),
        )
    )


def _precedes(one: str, other: str) -> bool:
    return bool(npm_client.precedence(one) < npm_client.precedence(other))


# -- both ---------------------------------------------------------------------------------------------------


def _in_order(wanted: Wanted, good: str, bad: str, precedes: history.Precedes) -> tuple[str, str]:
    """The two versions, the older first.

    Raises:
        UsageError: they are one, or in the order of the other question.
    """
    if good == bad:
        raise UsageError(f"--good and --bad are both {clean_text(good, 60)}; name two releases.")
    old, new = (good, bad) if wanted.find == "regression" else (bad, good)
    if precedes(old, new):
        return old, new
    if wanted.find == "regression":
        raise UsageError(
            f"--good {good} is newer than --bad {bad}; for the release that repaired it add --find fixed."
        )
    raise UsageError(
        f"--bad {bad} is newer than --good {good}; for the release that did it leave out --find fixed."
    )


def _request(
    wanted: Wanted,
    way: tuple[Release, ...],
    *,
    source: NodeRequest | None,
    addon: str | None,
    all_between: int,
    good: str,
    bad: str,
) -> Request:
    if len(way) > MOST_RELEASES:
        raise UsageError(f"there are {len(way):,} releases between the ends; name two that are nearer.")
    return Request(
        find=wanted.find,
        axis=wanted.axis,
        good=good,
        bad=bad,
        op=wanted.op,
        source=source,
        addon=addon,
        releases=way,
        left_out=max(0, all_between - (len(way) - 2)),
        share_builds=wanted.share_builds,
        most_steps=wanted.most_steps,
        git=wanted.git,
    )


def node_at(request: Request, version: str, engine: EngineName, observer: Observer) -> ResolvedNode:
    """Bind one release on the way.

    Raises:
        UsageError: there is no build of it for this platform.
        HostUnfitError: the source does not answer.
    """
    if request.source is None:
        raise UsageError("addon releases are bisected, not those of Node.")
    exact = msgspec.structs.replace(request.source, selector=version)
    source = sources.source_of(exact.source, sources.platform_for(engine), observer)
    return source.resolve(exact)


def git_folder(text: str | None) -> Path | None:
    """The clone that ``--git`` names."""
    return None if text is None else Path(text).expanduser()
