"""``--fix BUILD``: is it a Node build, an addon, or a patch of the addon? Nothing is looked up in a registry.

::

    node   24.19.0 | 24 | lts | dist:URL | image:NAME | a directory or tarball with bin/node
    addon  NAME@VERSION | NAME@RANGE | a directory or tarball with package.json and binding.gyp
    patch  a file that is a unified diff

``node:``, ``addon:`` and ``patch:`` in front decide; ``path:`` only says that it is a directory or tarball.
"""

import re
import tarfile
import zlib
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from investigator import addons
from investigator.errors import UsageError
from investigator.nodes import parse
from investigator.spec import CIPHER_ADDON, FixKind
from investigator.text import clean_text

_PREFIX: Final = re.compile(r"(node|addon|patch):(.*)", re.DOTALL)
_TARBALL: Final = re.compile(r".+\.(?:tgz|tar|tar\.gz|tar\.xz|tar\.bz2)")
_PATH_LIKE: Final = ("./", "../", "/", "~/")
_HUNK: Final = re.compile(rb"^@@ -\d+", re.MULTILINE)
_SNIFF_BYTES: Final = 1 << 20
_MAX_MEMBERS: Final = 50_000
_FORMS: Final = (
    "a Node release (24.19.0), an addon release (better-sqlite3-multiple-ciphers@12.11.1), "
    "a directory or tarball of either, or a patch file of the addon"
)


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """What a text names: an item as `--versions` or `--addon` has it, or the file of a patch."""

    kind: FixKind
    item: str


def parse_build(text: str, option: str = "--fix", addon: str = CIPHER_ADDON) -> Build:
    """Tell which kind of build `text` names.

    Args:
        text: what the user wrote.
        option: for errors.
        addon: the addon under test, which ``addon:12.x`` means.

    Raises:
        UsageError: it can be two kinds, or none.
    """
    text = text.strip()
    shown = f"{option} {clean_text(text, 120)!r}"
    if not text or len(text) > 1000 or not text.isprintable():
        raise UsageError(f"{shown} is no build; give {_FORMS}.")
    if text == addons.NODE_SQLITE:
        return Build(kind="addon", item=text)
    found = _PREFIX.fullmatch(text)
    if found is not None:
        return _prefixed(found.group(1), found.group(2).strip(), shown, addon)
    source, colon, _ = text.partition(":")
    if colon and source in {"dist", "image"}:
        return Build(kind="node", item=_node_item(text, shown))
    if colon and source == "path":
        return _located(text.removeprefix("path:").strip(), shown)
    if text.startswith(_PATH_LIKE):
        return _located(text, shown)
    return _named(text, shown)


def _prefixed(kind: str, rest: str, shown: str, addon: str) -> Build:
    if not rest:
        raise UsageError(f"{shown} names nothing after {kind}:.")
    path = rest.removeprefix("path:").strip()
    if kind == "patch":
        return Build(kind="patch", item=_patch_file(path, shown))
    is_path = rest != path or rest.startswith(_PATH_LIKE)
    if kind == "node":
        local = is_path or (not _is_version(rest) and Path(rest).expanduser().exists())
        return Build(kind="node", item=f"path:{path}" if local else _node_item(rest, shown))
    if is_path or (_addon_item(rest) is None and Path(rest).expanduser().exists()):
        return Build(kind="addon", item=f"path:{path}")
    if _is_version(rest):
        name = addons.parse_addon(addon).name
        if name in {addons.NODE_SQLITE, "path:"}:
            raise UsageError(f"{shown} needs the name of the addon: write addon:NAME@{clean_text(rest, 40)}.")
        rest = f"{name}@{rest}"
    addons.parse_addon(rest)
    return Build(kind="addon", item=rest)


def _named(text: str, shown: str) -> Build:
    """A text without a prefix that does not look like a path: a version, an addon, or something here."""
    here = Path(text).exists()
    if _is_version(text):
        return Build(kind="node", item=_node_item(text, shown))
    is_addon = _addon_item(text) is not None
    if here and is_addon:
        raise UsageError(
            f"{shown} is an addon and a file or directory here; write addon:{text}, or path:{text}."
        )
    if here:
        return _located(text, shown)
    if is_addon:
        return Build(kind="addon", item=text)
    raise UsageError(f"{shown} is neither here nor a release; give {_FORMS}.")


def _addon_item(text: str) -> str | None:
    """`text` if it names an addon of the registry without doubt: ``NAME@...``, or one known by name."""
    name, at, _ = text[1:].partition("@")
    if not at and text not in {CIPHER_ADDON, "better-sqlite3"}:
        return None
    try:
        addons.parse_addon(text)
    except UsageError:
        return None
    return text if name else None


def _is_version(text: str) -> bool:
    lowered = text.lower()
    if lowered in parse.ALIASES or parse.CHANNEL.fullmatch(lowered):
        return True
    plain = text[1:] if re.match(r"[vV][0-9]", text) else text
    return bool(re.search(r"[0-9]", plain)) and parse.normal_range(plain) is not None


def _node_item(text: str, shown: str) -> str:
    if "," in text:
        raise UsageError(f"{shown} names several builds; give one.")
    parse.parse_versions((text,))
    return text


# -- files and directories ----------------------------------------------------------------------------------


def _located(text: str, shown: str) -> Build:
    """A directory, a tarball or a patch: what is in it tells the kind."""
    path = Path(text).expanduser()
    if not text or not path.exists():
        raise UsageError(f"{shown} does not exist; give {_FORMS}.")
    if path.is_file() and not _TARBALL.fullmatch(path.name):
        return Build(kind="patch", item=_patch_file(text, shown))
    is_node, is_addon = _directory_kinds(path) if path.is_dir() else _tarball_kinds(path, shown)
    if is_node and is_addon:
        raise UsageError(
            f"{shown} holds a Node build and an addon; write node:{clean_text(text, 80)} or "
            f"addon:{clean_text(text, 80)}."
        )
    if not is_node and not is_addon:
        raise UsageError(
            f"{shown} is neither a Node build (no bin/node, no out/Release/node in a checkout) nor an addon "
            "(no package.json with binding.gyp)."
        )
    return Build(kind="node" if is_node else "addon", item=f"path:{text}")


def _directory_kinds(path: Path) -> tuple[bool, bool]:
    """Whether a directory is a Node build, and whether it is an addon."""
    checkouts = (path, path.absolute().parent, path.absolute().parent.parent)
    is_node = (path / "bin/node").is_file() or any(
        (top / "out/Release/node").is_file() and (top / "src/node_version.h").is_file() for top in checkouts
    )
    # The released builds of npm have a package.json, too.
    return is_node, (path / "package.json").is_file() and (path / "binding.gyp").is_file()


def _tarball_kinds(path: Path, shown: str) -> tuple[bool, bool]:
    """The same of a tarball, by the names in it; they lie below one folder."""
    names: set[PurePosixPath] = set()
    try:
        with tarfile.open(path, "r:*") as tar:
            for count, member in enumerate(tar):
                if count >= _MAX_MEMBERS:
                    break
                parts = PurePosixPath(member.name).parts
                names.add(PurePosixPath(*parts[1:]))
    except (tarfile.TarError, OSError, EOFError, zlib.error, LZMAError) as error:
        raise UsageError(f"{shown} is not a complete tar archive ({clean_text(str(error), 100)}).") from error
    has = {name: PurePosixPath(name) in names for name in ("bin/node", "package.json", "binding.gyp")}
    return has["bin/node"], has["package.json"] and has["binding.gyp"]


def _patch_file(text: str, shown: str) -> str:
    path = Path(text).expanduser()
    if not path.is_file():
        raise UsageError(f"{shown} names no file; give a unified diff against the addon's sources.")
    try:
        with path.open("rb") as file:
            head = file.read(_SNIFF_BYTES)
    except OSError as error:
        raise UsageError(f"{shown} cannot be read: {error.strerror}.") from error
    if not _HUNK.search(head):
        raise UsageError(
            f"{shown} is a file, but neither a tarball nor a unified diff (as `git diff` makes them)."
        )
    return text
