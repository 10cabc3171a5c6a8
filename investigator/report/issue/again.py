"""Command lines that measure a finding again, narrow it, or judge a fix; to be read by other people."""

import shlex

import msgspec

from investigator.plan import Environment
from investigator.report.commands import command_line, preset_of
from investigator.report.issue.choose import OWN_BUILD
from investigator.report.issue.material import Material
from investigator.report.issue.words import is_own
from investigator.spec import Spec


def rerun(material: Material, *more: str) -> str:
    """Measure the pair again, with `more` builds of Node in the same rounds."""
    spec = material.plan.spec
    pair = (material.baseline, material.candidate)
    if material.by_addon:
        addons = tuple(_addon_item(material, e) for e in pair)
        narrowed = msgspec.structs.replace(spec, versions=(_node_item(material, pair[0]),), addons=addons)
    else:
        versions = (*(_node_item(material, e) for e in pair), *more)
        narrowed = msgspec.structs.replace(spec, versions=versions, addon=_addon_item(material, pair[1]))
    narrowed = msgspec.structs.replace(
        narrowed, baseline=None, seed=1, explain=preset_of(spec).explain, budget_min=_budget(spec, narrowed)
    )
    # A workload of the user's is measured because its file is named; --ops knows only built-in operations.
    return command_line(narrowed, ops=("none",) if is_own(material, material.op) else (material.op,))


def bisect(material: Material, good: str, bad: str) -> str:
    """Look for the first bad release between two."""
    words = ["investigate", "bisect", "--good", good, "--bad", bad, "--op", material.op]
    if material.by_addon and material.candidate.addon is not None:
        words += ["--axis", "addon", "--node", material.candidate.node.version]
        return shlex.join([*words, "--addon", material.candidate.addon.name])
    return shlex.join([*words, *_addon(material, none="none")])


def validate(material: Material) -> str:
    """Judge a fix build against both sides."""
    pair = (_node_item(material, material.baseline), _node_item(material, material.candidate))
    words = ["investigate", "validate", "--baseline", pair[0], "--regressed", pair[1], "--fix", "path:./out"]
    return shlex.join([*words, *_addon(material), "--ops", material.op])


def of_run(command: str, material: Material) -> str:
    """A command that takes the run and the operation: ``investigate explain RUN --op select_range``."""
    return shlex.join(["investigate", command, "RUN", "--op", material.op])


def _addon(material: Material, *, none: str = "") -> list[str]:
    if material.plan.spec.command == "js" or material.candidate.addon is None:
        return ["--addon", none] if none else []
    return ["--addon", _addon_item(material, material.candidate)]


def _node_item(material: Material, environment: Environment) -> str:
    """The exact version; of other sources than npm the item as it was typed, if it can be told."""
    node = environment.node
    if node.source == "npm":
        return f"{node.label}={node.version}" if node.label else node.version
    typed, all_ = material.plan.spec.versions, material.plan.environments
    if len(typed) == len(all_) and environment in all_:
        return typed[all_.index(environment)]
    return node.version


def _addon_item(material: Material, environment: Environment) -> str:
    """The exact release; of a build of one's own the item as it was typed."""
    package, typed = environment.addon, material.plan.spec.addon_items
    if package is None:
        return material.plan.spec.addon
    if not typed or not package.integrity.startswith(OWN_BUILD):
        return f"{package.name}@{package.version}" if package.version else package.name
    all_ = material.plan.environments
    if material.by_addon and len(typed) == len(all_) and environment in all_:
        return typed[all_.index(environment)]
    return typed[0]


def _budget(spec: Spec, narrowed: Spec) -> float:
    """The usual budget for two versions, where the run had the usual one for its own."""
    preset = preset_of(spec)
    usual = spec.budget_min == preset.budget_for(spec.compared)
    return preset.budget_for(narrowed.compared) if usual else spec.budget_min
