"""Which tracker a finding belongs to, by its layer and causes; and where the trackers are."""

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from investigator.attribution.layers import LAYER_WORDS, Cause, Named, Symbol
from investigator.report.issue.material import Material
from investigator.report.issue.words import sides

Target = Literal["node", "v8", "addon"]

NODE_REPOSITORY: Final = "nodejs/node"
V8_FORM: Final = "https://issues.chromium.org/issues/new?component=1456743&template=1942901"
"""Named by V8's maintainers in v8/node 197."""
_ADDON_REPOSITORIES: Final = {
    "better-sqlite3-multiple-ciphers": "m4heshd/better-sqlite3-multiple-ciphers",
    "better-sqlite3": "WiseLibs/better-sqlite3",
}


class Tracker(msgspec.Struct, frozen=True, kw_only=True):
    """Where a text is filed."""

    repository: str | None
    """On GitHub; None where the tracker is elsewhere or not known."""
    url: str
    """Of the empty form; empty where it is not known."""


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the evidence speaks for a tracker."""

    fits: bool
    sentence: str
    """Why not; where it fits, what the reader of that tracker has to know. Never empty."""


def tracker(target: Target, material: Material) -> Tracker:
    """The tracker of a target."""
    if target == "v8":
        return Tracker(repository=None, url=V8_FORM)
    if target == "node":
        return Tracker(
            repository=NODE_REPOSITORY,
            url=f"https://github.com/{NODE_REPOSITORY}/issues/new?template=1-bug-report.yml",
        )
    addon = material.candidate.addon
    repository = None if addon is None else _ADDON_REPOSITORIES.get(addon.name)
    url = "" if repository is None else f"https://github.com/{repository}/issues/new"
    return Tracker(repository=repository, url=url)


def fit(target: Target, material: Material) -> Fit:
    """Judge a tracker by causes that an experiment confirmed, then by the layer."""
    if (by_kind := _by_kind(target, material)) is not None:
        return _against(by_kind)
    if (cause := _confirmed(material, {"addon_source", "build"})) is not None:
        said = f"An experiment puts the change into the addon: {cause.text}."
        return _for(said) if target == "addon" else _against(said)
    return _BY_LAYER[material.layer](target, material)


def _not_known(_target: Target, material: Material) -> Fit:
    return _for(f"The layer is not known: {_reason(material)}.")


def _in_the_kernel(target: Target, _material: Material) -> Fit:
    said = "The time is spent in the kernel or off the processor, "
    said += "which Node.js's own use of memory and threads decides."
    return _for(said) if target == "node" else _against(said)


def grown(material: Material) -> Symbol | None:
    """The function whose own time grew most (shrank most, where the finding is faster)."""
    found = material.attribution
    if found is None:
        return None
    sign = 1.0 if material.published.comparison.wall.change_pct >= 0 else -1.0
    moved = [symbol for symbol in found.symbols if symbol.ns_per_op * sign > 0]
    return max(moved, key=lambda symbol: symbol.ns_per_op * sign, default=None)


def _by_kind(target: Target, material: Material) -> str | None:
    """What no evidence is needed for: who takes part at all."""
    addon = material.candidate.addon
    if material.by_addon and target != "addon":
        low, high = sides(material)
        return f"Both sides ran on the same Node.js build; only the addon differs ({low} and {high})."
    if target == "addon" and (addon is None or material.published.comparison.family != "sqlite"):
        return "No addon under test takes part in this operation."
    if target == "addon" and addon is not None and addon.kind == "node:sqlite":
        return "node:sqlite is a part of Node.js; it has no tracker of its own."
    return None


def _in_v8(target: Target, material: Material) -> Fit:
    said = (
        f"The evidence puts the time into V8's {LAYER_WORDS[material.layer].replace('engine', 'own code')}."
    )
    if target == "v8":
        return _for(said)
    if target == "node":
        said += " Node.js asks for a report to V8 first where V8's tip or a canary build shows it as well."
    return _against(said)


def _in_sqlite(target: Target, material: Material) -> Fit:
    addon = material.candidate.addon
    if addon is not None and addon.kind == "node:sqlite":
        said = "The time is in the SQLite that Node.js bundles."
        return _for(said) if target == "node" else _against(said)
    said = "The time is in SQLite and its cipher, which the addon brings along."
    if material.same_sqlite:
        said += " Their object code is bit-identical on both sides."
    return _for(said) if target == "addon" else _against(said)


def _at_the_boundary(target: Target, material: Material) -> Fit:
    symbol = grown(material)
    name = "" if symbol is None else symbol.name
    said = "The time is between JavaScript and native code"
    said += "." if symbol is None else f"; what grew most is {name}."
    if target == "v8" and name.startswith("node::"):
        return _against(f"{said} That is Node.js's own function.")
    if target == "addon":
        return _for(f"{said} {_about_the_addon(material)}")
    return _for(said)


def _about_the_addon(material: Material) -> str:
    """The addon's part in a change at the boundary that no experiment put into its source."""
    found = material.attribution
    tested = found is not None and any("own source" in text for text in found.rejected)
    if not tested:
        return "Whether the addon's own source has a part in it was not tested."
    said = "The addon's own source was tested and is not what changed"
    return f"{said}: this is for information, and for a way around."


_BY_LAYER: Final[dict[Named, Callable[[Target, Material], Fit]]] = {
    "unknown": _not_known,
    "mixed": _not_known,
    "engine": _in_v8,
    "gc": _in_v8,
    "native_core": _in_sqlite,
    "os": _in_the_kernel,
    "boundary": _at_the_boundary,
}


def _confirmed(material: Material, kinds: set[str]) -> Cause | None:
    found = material.attribution
    causes = () if found is None else found.causes
    return next((cause for cause in causes if cause.confirmed and cause.kind in kinds), None)


def _reason(material: Material) -> str:
    if material.attribution is not None:
        return material.attribution.reason.rstrip(".")
    command = f"investigate explain RUN --op {material.op}"
    return f"this finding has not been explained ({command} looks for its layer)"


def _for(sentence: str) -> Fit:
    return Fit(fits=True, sentence=sentence)


def _against(sentence: str) -> Fit:
    return Fit(fits=False, sentence=sentence)
