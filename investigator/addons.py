"""The addon under test: which release, and its unpacked package. Nothing of it is run or built here."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import semantic_version

from investigator import archives, cache, npm_client
from investigator.errors import HostUnfitError, UsageError
from investigator.nodes.interface import NodeBuild
from investigator.nodes.parse import normal_range
from investigator.observer import NullObserver, Observer
from investigator.patches import apply_patch
from investigator.spec import CIPHER_ADDON
from investigator.text import clean_text

AddonKind = Literal["package", "node:sqlite"]

NODE_SQLITE: Final = "node:sqlite"
_CACHE_KIND: Final = "addons"
_KEY_FILES: Final = ("package/**/*", "addon.json")
_MANIFEST_BYTES: Final = 1 << 20
_TARBALL: Final = re.compile(r".+\.(?:tgz|tar|tar\.gz|tar\.xz)")
# Only install scripts need these, and install scripts never run.
_INSTALLERS: Final = frozenset({"prebuild-install", "prebuild", "node-gyp", "node-pre-gyp"})
_NOT_SOURCE_NAMES: Final = ("node_modules", "build", ".git")
_NOT_SOURCE: Final = shutil.ignore_patterns(*_NOT_SOURCE_NAMES)
_NAPI_DEFINE: Final = re.compile(r"\bNAPI_VERSION\s*=\s*<?\(?\s*(\d{1,3})\b")
_FIRST_NODE_SQLITE: Final = semantic_version.Version("22.5.0")
_MAX_ITEMS: Final = 32
_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")
# Text before the first "=" is a label unless it holds what only names, ranges and paths have.
_LABELLED: Final = re.compile(r"([^=<>~^|*:@/]+)=(.*)", re.DOTALL)


class AddonPackage(msgspec.Struct, frozen=True, kw_only=True):
    """An addon release, fetched with its scripts disabled and unpacked."""

    name: str
    """npm name, or ``node:sqlite``."""
    version: str
    """``12.11.1``; for ``node:sqlite`` the empty string (its version is the Node build's)."""
    kind: AddonKind = "package"
    directory: Path | None = None
    """The unpacked package (read-only for everybody); None for ``node:sqlite``."""
    integrity: str = ""
    """npm's integrity value; for ``path:`` a digest of the tree."""
    engines: str = "*"
    """The package's own ``engines.node`` range."""
    encrypted: bool = True
    """Whether it has ciphers at all (better-sqlite3 and node:sqlite have none)."""
    patch_sha256: str | None = None
    """Digest of the patch that was applied to `directory`, if any."""
    own_patch: bool = False
    """Whether this program wrote that patch (a swap): its build may share objects with the plain release."""
    dependencies: Mapping[str, str] = {}
    """Exact versions of what lies in its ``node_modules`` (bindings, node-addon-api)."""
    napi: int | None = None
    """The Node-API version that it asks for; None for an addon on the V8 API."""

    @property
    def short(self) -> str:
        """Short form for environment identifiers: ``bsm12.11.1``, ``bs312.4.1``, ``nodesqlite``."""
        prefix = {
            CIPHER_ADDON: "bsm",
            "better-sqlite3": "bs3-",
            "node:sqlite": "nodesqlite",
        }.get(self.name, f"{self.name}-")
        return f"{prefix}{self.version}"


class AddonRequest(msgspec.Struct, frozen=True, kw_only=True):
    """``--addon`` and ``--patch`` after parsing; nothing has been looked up yet."""

    name: str
    """npm name, ``node:sqlite``, or ``path:``."""
    selector: str | None = None
    """Exact version or range; for ``path:`` the path; None takes the newest release that fits."""
    patch: str | None = None
    """File with a unified diff."""
    label: str | None = None
    """Given in front (``fix=path:./addon``) where several addons are compared."""

    @property
    def is_exact(self) -> bool:
        """Whether exactly one package can be meant, whatever its `engines` say."""
        return self.name in (NODE_SQLITE, "path:") or (
            self.selector is not None and npm_client.is_version(self.selector)
        )


class AddonRelease(msgspec.Struct, frozen=True, kw_only=True):
    """One release in the registry."""

    version: str
    engines: str
    """``engines.node`` as published; ``*`` where it says nothing."""


class CompatibilityRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `investigate versions` about the addon."""

    release: str
    engines: str
    published: str
    """Date the registry gives, ``2026-06-20``; empty where it gives none."""
    accepts: Mapping[str, bool]
    """Per Node version asked about: whether `engines` accepts it. Whether it loads only a load test tells."""


def parse_addon(text: str, patch: str | None = None) -> AddonRequest:
    """Read ``NAME[@VERSION|@RANGE]``, ``node:sqlite`` or ``path:DIRECTORY|TARBALL``.

    Raises:
        UsageError: it is none of these.
    """
    text = text.strip()
    shown = clean_text(text, 80)
    if text == NODE_SQLITE:
        if patch is not None:
            raise UsageError("--patch does not go with node:sqlite, which has no package; patch Node itself")
        return AddonRequest(name=NODE_SQLITE)
    if text.startswith("path:"):
        path = text.removeprefix("path:").strip()
        if not path or "\0" in path:
            raise UsageError("path: in --addon needs the directory or tarball of an addon package")
        return AddonRequest(name="path:", selector=path, patch=patch)
    name, at, selector = text[1:].partition("@")
    name, selector = text[:1] + name, selector.strip()
    npm_client.check_name(name)
    if not at or selector == "latest":
        return AddonRequest(name=name, patch=patch)
    exact = selector.removeprefix("v")
    if npm_client.is_version(exact):
        return AddonRequest(name=name, selector=exact, patch=patch)
    found = normal_range(selector) if selector else None
    if found is None:
        raise UsageError(f"{shown!r} in --addon cannot be read; write NAME, NAME@12.11.1 or NAME@^12")
    return AddonRequest(name=name, selector=found, patch=patch)


def parse_addons(texts: Sequence[str], patch: str | None = None) -> tuple[AddonRequest, ...]:
    """Read the items that are compared with each other, each ``[LABEL=]`` and what `parse_addon` takes.

    An item that is only a selector (``13.0.3``, ``^12``, ``latest``) is of the addon of the item before.

    Raises:
        UsageError: one that cannot be read, a label given twice, or the same addon twice without labels.
    """
    if len(texts) > _MAX_ITEMS:
        raise UsageError(f"--addon lists {len(texts)} items; at most {_MAX_ITEMS} can be compared.")
    requests: list[AddonRequest] = []
    for text in texts:
        label, item = _label_and_item(text.strip())
        if _is_selector(item):
            if not requests or requests[-1].name in (NODE_SQLITE, "path:"):
                raise UsageError(
                    f"{clean_text(item, 80)!r} in --addon has no addon in front of it; write NAME@{item[:80]}"
                )
            item = f"{requests[-1].name}@{item}"
        own = None if item == NODE_SQLITE else patch
        requests.append(msgspec.structs.replace(parse_addon(item, own), label=label))
    if patch is not None and all(request.patch is None for request in requests):
        raise UsageError("--patch does not go with node:sqlite, which has no package; patch Node itself")
    _refuse_duplicates(requests)
    return tuple(requests)


def _label_and_item(text: str) -> tuple[str | None, str]:
    found = _LABELLED.fullmatch(text)
    if found is None:
        return None, text
    label = found.group(1).strip()
    if not _LABEL.fullmatch(label):
        raise UsageError(
            f"the label {clean_text(label, 60)!r} in --addon may hold 1 to 32 letters, digits, _, -"
        )
    return label, found.group(2).strip()


def _is_selector(item: str) -> bool:
    if npm_client.is_version(item.removeprefix("v")) or item == "latest":
        return True
    return any(character.isdigit() for character in item) and normal_range(item) is not None


def _refuse_duplicates(requests: Sequence[AddonRequest]) -> None:
    seen: set[object] = set()
    for request in requests:
        key: object = request.label or (request.name, request.selector)
        if key in seen:
            what = f"the label {request.label}" if request.label else _shown(request)
            raise UsageError(
                f"{what} stands twice in --addon; give labels, for instance a=NAME@12.11.1,b=NAME@12.11.1"
            )
        seen.add(key)


def _shown(request: AddonRequest) -> str:
    at = "" if request.name == "path:" or not request.selector else "@"
    return clean_text(f"{request.name}{at}{request.selector or ''}", 120)


def encrypts(name: str) -> bool | None:
    """Whether an addon has ciphers, as far as its name tells; only the package itself tells it of others."""
    if name in (CIPHER_ADDON, "better-sqlite3", NODE_SQLITE):
        return name == CIPHER_ADDON
    return None


def named_release(request: AddonRequest, node_versions: Sequence[str]) -> str:
    """Version that a request for a package of the registry means, before anything is fetched.

    An exact one is looked up unless the cache has it; else it is the newest release whose `engines` accept
    every one of `node_versions`. Whether it loads is not known yet.

    Raises:
        UsageError: no such package or release (naming the nearest), or none that accepts the Node versions.
        HostUnfitError: the registry does not answer.
    """
    exact = request.selector if request.is_exact else None
    if exact is not None and _package_key(request.name, exact) in {
        entry.name for entry in cache.entries(_CACHE_KIND)
    }:
        return exact
    return select_release(request, node_versions)[0].version


def select_release(request: AddonRequest, node_versions: Sequence[str]) -> tuple[AddonRelease, ...]:
    """List the releases in question, newest first: those whose `engines` accept every one of `node_versions`.

    An exact version is the only one in question, whatever its `engines` say. Pre-releases count only so.

    Raises:
        UsageError: no such package or release, or none that accepts all the Node versions.
        HostUnfitError: the registry does not answer.
    """
    known = _releases(request.name)
    if request.selector is not None and request.is_exact:
        for release in known:
            if release.version == request.selector:
                return (release,)
        raise UsageError(f"npm has no {request.name} {request.selector}; {_nearest(request.selector, known)}")
    spec = semantic_version.NpmSpec(request.selector or "*")
    wanted = [release for release in known if spec.match(npm_client.precedence(release.version))]
    if not wanted:
        plain = [r.version for r in known if not npm_client.precedence(r.version).prerelease]
        newest = f"the newest is {plain[-1]}" if plain else "it has none at all"
        raise UsageError(
            f"npm has no release of {request.name} that {request.selector or 'the run'} accepts; {newest}"
        )
    fitting = [r for r in wanted if all(engines_accept(r.engines, version) for version in node_versions)]
    if not fitting:
        last = wanted[-1]
        refused = [version for version in node_versions if not engines_accept(last.engines, version)]
        raise UsageError(
            f"no release of {request.name} declares support for all of Node {', '.join(node_versions)} "
            f"({last.version} does not for {', '.join(refused) or 'the rest'}); name one with "
            f"--addon {request.name}@VERSION, or compare fewer versions"
        )
    return tuple(reversed(fitting))


def usable_packages(
    request: AddonRequest, nodes: Sequence[NodeBuild], observer: Observer | None = None
) -> Iterator[AddonPackage]:
    """Yield packages to try, best first, each fetched when asked for; the caller takes the first that loads.

    What is known to fail without trying (see `refusal`) is passed over with a note, unless nothing else is
    left (the request is for exactly one package, or all releases are passed over): then the one that fails on
    the fewest is yielded, and `refusal` gives the reason per Node build.

    Raises:
        UsageError, HostUnfitError, EngineMissingError: see `select_release` and `fetch_addon`.
    """
    watcher = observer or NullObserver()
    if request.name == NODE_SQLITE:
        yield AddonPackage(name=NODE_SQLITE, version="", kind="node:sqlite", encrypted=False)
        return
    if request.name == "path:":
        yield patched(path_addon(request.selector or "", watcher), request.patch)
        return
    if request.selector is not None and request.is_exact:
        # Not through the list: what is in the cache needs no registry.
        yield patched(fetch_addon(request.name, request.selector, watcher), request.patch)
        return
    least: tuple[int, AddonPackage] | None = None
    found = False
    for release in select_release(request, [node.version for node in nodes]):
        package = fetch_addon(request.name, release.version, watcher)
        reasons = [reason for node in nodes if (reason := refusal(package, node)) is not None]
        if reasons:
            watcher.note(f"{package.name} {package.version} is passed over: {reasons[0]}")
            least = (len(reasons), package) if least is None or len(reasons) < least[0] else least
        else:
            found = True
            yield patched(package, request.patch)
    if least is not None and not found:
        yield patched(least[1], request.patch)


def refusal(package: AddonPackage, node: NodeBuild) -> str | None:
    """Say why `package` cannot work on `node`, as far as that is known without trying; None otherwise."""
    if package.kind == "node:sqlite":
        if _release_of(node.version) < _FIRST_NODE_SQLITE:
            return f"Node {node.version} has no node:sqlite; it came with {_FIRST_NODE_SQLITE}"
        return None
    offered = node.versions.get("napi", "")
    if package.napi is not None and offered.isdecimal() and int(offered) < package.napi:
        return (
            f"{package.name} {package.version} needs Node-API {package.napi}, Node {node.version} offers "
            f"{offered}; take an older release with --addon {package.name}@VERSION"
        )
    return None


def engines_accept(engines: str, node_version: str) -> bool:
    """Whether an ``engines.node`` range accepts a Node version; one that cannot be read accepts everything.

    A nightly or a build of one's own counts as the release that it is going to be.
    """
    found = normal_range(engines)
    return found is None or bool(semantic_version.NpmSpec(found).match(_release_of(node_version)))


def fetch_addon(name: str, version: str, observer: Observer | None = None) -> AddonPackage:
    """Have one release in the cache, verified and unpacked, with its dependencies; no script of it runs.

    Raises:
        UsageError: no such release (naming the nearest), or a package that cannot be read.
        HostUnfitError: the registry does not answer, or the disk is full.
        EngineMissingError: there is no npm client.
    """
    npm_client.check_name(name)
    npm_client.check_version(version)
    watcher = observer or NullObserver()

    def fill(work: Path) -> None:
        watcher.activity(f"fetching {name} {version}")
        if all(release.version != version for release in _releases(name)):
            raise UsageError(f"npm has no {name} {version}; {_nearest(version, _releases(name))}")
        tarball, integrity = npm_client.pack(name, version, work)
        archives.unpack(tarball, work / "package")
        tarball.unlink()
        package = _finish(work, integrity)
        if (package.name, package.version) != (name, version):
            raise UsageError(
                f"the package {name}@{version} says it is {package.name} {package.version}; not used"
            )

    return _load(_package_key(name, version), fill, watcher)


def path_addon(text: str, observer: Observer | None = None) -> AddonPackage:
    """Copy an addon's directory or tarball into the cache, by content, with its dependencies.

    Raises:
        UsageError: it does not exist, or is no addon package.
        HostUnfitError: the registry (for dependencies) does not answer, or the disk is full.
    """
    watcher = observer or NullObserver()
    path = Path(text).expanduser().absolute()
    shown = f"path:{clean_text(text, 120)}"
    if path.is_file() and _TARBALL.fullmatch(path.name):
        return _keep(cache.sha256_of(path), lambda work: archives.unpack(path, work), watcher)
    if not path.is_dir():
        raise UsageError(
            f"{shown} is neither a directory nor a .tgz, .tar.gz or .tar.xz file of an addon package"
        )
    _manifest(path)
    _check_links(path, shown)
    # Collected first and then hashed, so that the key is the content that was copied.
    with tempfile.TemporaryDirectory(prefix="investigate-addon-") as folder:
        copy = Path(folder, "package")
        archives.copy_tree(path, copy, ignore=_NOT_SOURCE)
        return _keep(cache.tree_sha256(copy), lambda work: archives.copy_tree(copy, work), watcher)


def _keep(digest: str, put: Callable[[Path], object], observer: Observer) -> AddonPackage:
    def fill(work: Path) -> None:
        put(work / "package")
        _finish(work, f"sha256-{digest}")

    return _load(f"path-{digest}", fill, observer)


def patched(package: AddonPackage, patch: str | None, shown: str | None = None) -> AddonPackage:
    """Apply a unified diff to a copy of the package; `package` itself where there is no patch.

    `shown` names the patch in errors, instead of ``--patch`` and its file.

    Raises:
        UsageError: the patch cannot be read, leads out of the package, or does not apply.
        EngineMissingError: there is neither git nor patch.
    """
    if patch is None or package.directory is None:
        return package
    file = Path(patch).expanduser().absolute()
    if not file.is_file():
        raise UsageError(f"{shown or f'--patch {clean_text(patch, 120)}'} does not exist or is no file")
    digest, original = cache.sha256_of(file), package.directory

    def fill(work: Path) -> None:
        archives.copy_tree(original, work / "package")
        apply_patch(file, work / "package", shown)
        changed = msgspec.structs.replace(
            package, directory=None, patch_sha256=digest, napi=_required_napi(work / "package")
        )
        (work / "addon.json").write_bytes(msgspec.json.encode(changed))

    # The directory's name is the content address of the original.
    return _load(f"patched-{digest[:32]}-{original.parent.name[:120]}", fill, NullObserver())


def addon_compatibility(name: str, node_versions: Sequence[str]) -> tuple[CompatibilityRow, ...]:
    """Tell for every release, newest first, which of `node_versions` its `engines` accept.

    Raises:
        UsageError: no such package.
        HostUnfitError: the registry does not answer.
    """
    published = npm_client.listing(name).published
    return tuple(
        CompatibilityRow(
            release=release.version,
            engines=release.engines,
            published=published.get(release.version, "")[:10],
            accepts={version: engines_accept(release.engines, version) for version in node_versions},
        )
        for release in reversed(_releases(name))
        if not npm_client.precedence(release.version).prerelease
    )


@lru_cache(maxsize=16)
def _releases(name: str) -> tuple[AddonRelease, ...]:
    """All releases, oldest first; pre-releases too, of which only the name is asked."""
    try:
        listing = npm_client.versions(name)
        rows = npm_client.view(name, ">=0.0.0", ("engines.node",))
    except HostUnfitError as error:
        start = _package_key(name, "")
        kept = [entry.name.removeprefix(start) for entry in cache.entries(_CACHE_KIND)]
        here = ", ".join(version for version in kept if npm_client.is_version(version))
        if not here:
            raise
        raise HostUnfitError(
            f"{error}; offline, name a release that is in the cache with --addon {name}@: {here}"
        ) from error
    engines = {row["version"]: _engines(row.get("engines.node")) for row in rows}
    return tuple(AddonRelease(version=version, engines=engines.get(version, "*")) for version in listing)


def _package_key(name: str, version: str) -> str:
    return f"npm-{name.replace('/', '+')}-{version}"


def _load(key: str, fill: Callable[[Path], None], observer: Observer) -> AddonPackage:
    directory = cache.filled(_CACHE_KIND, key, fill, key_files=_KEY_FILES, notify=observer.note)
    package = msgspec.json.decode((directory / "addon.json").read_bytes(), type=AddonPackage)
    return msgspec.structs.replace(package, directory=directory / "package")


def _finish(work: Path, integrity: str) -> AddonPackage:
    """Add dependencies and ``addon.json`` to an unpacked package."""
    directory = work / "package"
    manifest = _manifest(directory)
    name = npm_client.check_name(str(manifest.get("name", "")))
    engines = manifest.get("engines")
    package = AddonPackage(
        name=name,
        version=npm_client.check_version(str(manifest.get("version", ""))),
        integrity=integrity,
        engines=_engines(engines.get("node") if isinstance(engines, dict) else None),
        encrypted=_has_ciphers(name, directory),
        dependencies=_install_dependencies(manifest, work),
        napi=_required_napi(directory),
    )
    (work / "addon.json").write_bytes(msgspec.json.encode(package))
    return package


def _install_dependencies(manifest: Mapping[str, Any], work: Path) -> dict[str, str]:
    declared = manifest.get("dependencies")
    wanted = {
        str(name): str(text)
        for name, text in (declared.items() if isinstance(declared, dict) else ())
        if name not in _INSTALLERS
    }
    if not wanted:
        return {}
    # A folder of its own, so that nothing of the package (its .npmrc, say) has a voice in the installation.
    folder = work / "dependencies"
    folder.mkdir()
    installed = npm_client.install(wanted, folder)
    archives.copy_tree(folder / "node_modules", work / "package/node_modules")
    shutil.rmtree(folder)
    return {dependency.name: dependency.version for dependency in installed}


def _manifest(directory: Path) -> dict[str, Any]:
    path = directory / "package.json"
    if not path.is_file():
        raise UsageError("the addon package has no package.json at its top; it is no npm package")
    try:
        manifest = json.loads(path.read_bytes()) if path.stat().st_size <= _MANIFEST_BYTES else None
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict):
        raise UsageError("the package.json of the addon package cannot be read; it is no npm package")
    return manifest


def _required_napi(directory: Path) -> int | None:
    """Read the Node-API version out of ``binding.gyp`` (a define) or package.json (``napi_versions``)."""
    gyp = directory / "binding.gyp"
    if gyp.is_file() and (found := _NAPI_DEFINE.search(gyp.read_text("utf-8", errors="replace"))):
        return int(found.group(1))
    binary = _manifest(directory).get("binary")
    offered = binary.get("napi_versions") if isinstance(binary, dict) else None
    numbers = [number for number in offered if isinstance(number, int)] if isinstance(offered, list) else []
    return min(numbers, default=None)


def _has_ciphers(name: str, directory: Path) -> bool:
    if (known := encrypts(name)) is not None:
        return known
    return any(b"sqlite3mc" in path.read_bytes() for path in directory.glob("deps/**/sqlite3.c"))


def _check_links(path: Path, shown: str) -> None:
    """Refuse links that lead out of a directory, and files that are none."""
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name not in _NOT_SOURCE_NAMES]
        for name in (*folders, *names):
            inner = Path(folder, name)
            if not inner.resolve().is_relative_to(path.resolve()) or not (inner.is_file() or inner.is_dir()):
                raise UsageError(
                    f"{shown} has a link that leads out of it, or a device ({clean_text(name, 80)})"
                )


def _engines(value: object) -> str:
    return clean_text(value, 200) if isinstance(value, str) and value.strip() else "*"


def _release_of(version: str) -> semantic_version.Version:
    return semantic_version.Version(version.partition("-")[0])


def _nearest(version: str, known: Sequence[AddonRelease]) -> str:
    wanted = npm_client.precedence(version)
    plain = [p for r in known if not (p := npm_client.precedence(r.version)).prerelease]
    below = max((other for other in plain if other < wanted), default=None)
    above = min((other for other in plain if other > wanted), default=None)
    near = [str(other) for other in (below, above) if other is not None]
    return (
        f"the nearest {'are' if len(near) > 1 else 'is'} {' and '.join(near)}"
        if near
        else "it has no release"
    )
