"""What people call an environment: its label, else what differs between them, else its identifier.

Where Node versions are compared that is the version of Node; where addons are compared on one Node version it
is the release of the addon.
"""

from collections.abc import Sequence

from investigator.addons import AddonPackage
from investigator.plan import Environment
from investigator.spec import CIPHER_ADDON, Axis
from investigator.text import short_text

NAME_LIMIT = 40


def short_names(environments: Sequence[Environment], axis: Axis = "node") -> dict[str, str]:
    """Name each environment as briefly as is unambiguous, for columns of tables; by identifier."""
    own = releases(environments, axis)
    plain = {e.id: short_text(e.label or own[e.id], NAME_LIMIT) for e in environments}
    taken = list(plain.values())
    return {
        identifier: name if name and taken.count(name) == 1 else short_text(identifier, 80)
        for identifier, name in plain.items()
    }


def full_names(environments: Sequence[Environment], axis: Axis = "node") -> dict[str, str]:
    """Name each environment for a sentence, by identifier: ``Node 24.11.1``, ``fix (Node 24.11.1)``."""
    said = {e.id: _said(e, axis) for e in environments}
    taken = list(said.values())

    def name(environment: Environment) -> str:
        words = said[environment.id]
        if environment.label:
            return f"{environment.label} ({words})"
        return words if taken.count(words) == 1 else environment.id

    return {environment.id: name(environment) for environment in environments}


def releases(environments: Sequence[Environment], axis: Axis = "node") -> dict[str, str]:
    """What differs between the environments, by identifier: ``24.11.1``, ``13.0.3``.

    Releases of different addons carry their addon: ``bsm12.11.1``, ``better-sqlite3 12.4.1``.
    """
    packages = {e.id: e.addon for e in environments if e.addon is not None}
    one_addon = len({package.name for package in packages.values()}) == 1
    return {
        e.id: e.node.version if axis == "node" or e.addon is None else _release(e.addon, alone=one_addon)
        for e in environments
    }


def node_name(environment: Environment) -> str:
    """The Node build in a sentence: ``Node 24.11.1``, ``Node 24.11.1 (fix)``."""
    label = f" ({environment.node.label})" if environment.node.label else ""
    return f"Node {environment.node.version}{label}"


def addon_name(addon: AddonPackage) -> str:
    """The addon in a sentence: ``better-sqlite3-multiple-ciphers 13.0.3``, ``node:sqlite``."""
    return f"{addon.name} {addon.version}".rstrip()


def _said(environment: Environment, axis: Axis) -> str:
    if axis == "node" or environment.addon is None:
        return f"Node {environment.node.version}"
    return addon_name(environment.addon)


def _release(addon: AddonPackage, *, alone: bool) -> str:
    if alone and addon.version:
        return addon.version
    return addon.short if addon.name == CIPHER_ADDON else addon_name(addon)
