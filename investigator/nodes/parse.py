"""The grammar of ``--versions``: text to requests. Nothing is looked up here, neither registry nor disk.

::

    item     [LABEL=]selector               items are separated by commas
    selector 24 | 24.11 | 24.11.1 | v24.11.1 | >=22 <24 | ^24.3 | 24.x | lts | latest
             dist:URL[@SELECTOR]            SELECTOR also nightly, rc, v8-canary, 26-nightly; default latest
             image:NAME[:TAG]
             path:DIRECTORY | path:TARBALL
"""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import semantic_version

from investigator.errors import UsageError
from investigator.nodes.interface import NodeRequest
from investigator.text import clean_text

CHANNELS: Final = ("nightly", "rc", "v8-canary")
ALIASES: Final = ("lts", "latest")
# Not \d, which takes the digits of every script.
EXACT: Final = re.compile(r"[0-9]{1,4}\.[0-9]{1,5}\.[0-9]{1,5}(?:-[0-9A-Za-z][0-9A-Za-z.-]{0,63})?")
CHANNEL: Final = re.compile(rf"(?:([0-9]{{1,4}})-)?({'|'.join(CHANNELS)})")

_MAX_ITEMS: Final = 64
_MAX_CHARACTERS: Final = 500
_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")
_MAJOR: Final = re.compile(r"v?[0-9]+", re.IGNORECASE)
_SEVERAL: Final = re.compile(r"v?[0-9][0-9.]*(?:\s+v?[0-9][0-9.]*)+")
# Text before the first "=" is a label unless it holds what only ranges and sources have.
_LABELLED: Final = re.compile(r"([^=<>~^|*:]+)=(.*)", re.DOTALL)
_RANGE: Final = re.compile(r"[0-9A-Za-z.*^~<>=|+ -]{1,100}")
_IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}")


def parse_versions(text: str | Sequence[str]) -> tuple[NodeRequest, ...]:
    """Read ``--versions``: one text with commas, or several.

    Raises:
        UsageError: an item that is no selector, a label given twice, or the same item twice without labels.
    """
    texts = (text,) if isinstance(text, str) else tuple(text)
    items = [item.strip() for part in texts for item in part.split(",")]
    if len(items) > _MAX_ITEMS:
        raise UsageError(f"--versions lists {len(items)} items; at most {_MAX_ITEMS} can be compared")
    requests = _parse_items(items)
    _refuse_duplicates(requests)
    return requests


def without_label(item: str) -> str:
    """Return an item of ``--versions`` or ``--addon`` without the label in front of it, if it has one."""
    found = _LABELLED.fullmatch(item)
    return item if found is None else found.group(2).strip()


def normal_range(text: str) -> str | None:
    """Return `text` as npm's range grammar has it, or None where it is no range."""
    if not _RANGE.fullmatch(text):
        return None
    joined = re.sub(r"([<>=~^])\s+(?=[0-9vxX*])", r"\1", text.strip())
    try:
        semantic_version.NpmSpec(joined)
    except ValueError:
        return None
    return joined


def _parse_items(items: Sequence[str]) -> tuple[NodeRequest, ...]:
    requests: list[NodeRequest] = []
    for item in items:
        try:
            requests.append(_parse_item(item))
        except UsageError as error:
            if requests and requests[-1].source == "path":
                raise UsageError(
                    f"{error}; a comma ends a path: one that holds commas needs a link"
                ) from error
            raise
    return tuple(requests)


def _parse_item(item: str) -> NodeRequest:
    if not item:
        raise UsageError("--versions has an empty item; write it like 20,22,24")
    if len(item) > _MAX_CHARACTERS or not item.isprintable():
        raise UsageError(f"{clean_text(item, 60)!r} in --versions is too long or holds control characters")
    label = None
    if found := _LABELLED.fullmatch(item):
        item = found.group(2).strip()
        label = _label(found.group(1).strip(), item)
    source, colon, rest = item.partition(":")
    if colon and source == "dist":
        return _dist(rest.strip(), label)
    if colon and source == "image":
        if not _IMAGE.fullmatch(rest):
            raise UsageError(f"{clean_text(rest, 80)!r} after image: is not the name of an image")
        return NodeRequest(source="image", selector=rest, label=label)
    if colon and source == "path":
        if not rest.strip():
            raise UsageError(
                "path: in --versions needs a directory or a tarball, for instance fix=path:./out"
            )
        return NodeRequest(source="path", selector=rest.strip(), label=label)
    return NodeRequest(source="npm", selector=_npm_selector(item), label=label)


def _label(text: str, item: str) -> str:
    if not _LABEL.fullmatch(text):
        raise UsageError(
            f"the label {clean_text(text, 60)!r} in --versions may hold 1 to 32 letters, digits, _, -"
        )
    if _MAJOR.fullmatch(text):
        raise UsageError(
            f"the label {text} in --versions looks like a version; give it a letter, "
            f"for instance n{text.lstrip('vV')}={clean_text(item, 60)}"
        )
    return text


def _npm_selector(text: str) -> str:
    if CHANNEL.fullmatch(text.lower()):
        raise UsageError(f"{text} builds are not on npm; name a mirror that has them: dist:URL@{text}")
    advice = "use 24, 24.11.1, a range, lts, latest, dist:URL, image:NAME or path:DIR"
    if text.startswith(("http://", "https://")):
        advice = f"write dist:{clean_text(text, 80)} for a mirror"
    elif text.startswith(("./", "../", "/", "~/")):
        advice = f"write path:{clean_text(text, 80)} for a build of your own"
    return _selector(text, advice)


def _selector(text: str, advice: str) -> str:
    """Bring a version selector into its one form; `advice` ends the sentence about an unreadable one."""
    lowered = text.lower()
    if lowered in ALIASES or CHANNEL.fullmatch(lowered):
        return lowered
    plain = text[1:] if re.match(r"[vV][0-9]", text) else text
    # A leading zero ("024.1.1") has the form, but is no version.
    if EXACT.fullmatch(plain) and semantic_version.validate(plain):
        return plain
    # A range has a digit: NpmSpec also takes "", "*" and "x", by which nobody means one release.
    found = normal_range(plain) if re.search(r"[0-9]", plain) else None
    if found is None or _SEVERAL.fullmatch(text):
        if _SEVERAL.fullmatch(text):
            advice = f"separate versions by commas: {','.join(text.split())}"
        raise UsageError(f"{clean_text(text, 60)!r} in --versions cannot be read; {advice}")
    return found


def _dist(text: str, label: str | None) -> NodeRequest:
    url, at, selector = text.rpartition("@")
    if not at or "/" in selector:
        url, selector = text, "latest"
    advice = "write dist:https://HOST/PATH@SELECTOR"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or " " in url:
        raise UsageError(f"{clean_text(url, 80)!r} after dist: is not a http(s) address; {advice}")
    if "@" in parts.netloc:
        raise UsageError(
            f"the address of {clean_text(parts.hostname or '', 80)} after dist: holds a user name, which "
            "would end up in the run folder; put it and the password into ~/.netrc, from where they are taken"
        )
    return NodeRequest(
        source="dist", location=url.rstrip("/"), selector=_selector(selector.strip(), advice), label=label
    )


def _refuse_duplicates(requests: tuple[NodeRequest, ...]) -> None:
    seen: set[object] = set()
    for request in requests:
        key: object = request.label or request
        if key in seen:
            what = f"the label {request.label}" if request.label else clean_text(request.selector, 60)
            raise UsageError(
                f"{what} stands twice in --versions; give labels, for instance a=24.11.1,b=24.11.1"
            )
        seen.add(key)
