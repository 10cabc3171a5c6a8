"""What environments are called where Node versions, and where addons, are compared."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from investigator.addons import AddonPackage
from investigator.naming import full_names, node_name, releases, short_names
from investigator.nodes.interface import NodeBuild
from investigator.plan import Environment, environment_id

CIPHERS = "better-sqlite3-multiple-ciphers"
Item = tuple[str, str, str | None]
"""Addon, its version, label."""


def environments(*items: Item, node_label: str | None = None) -> tuple[Environment, ...]:
    node = NodeBuild(
        version="24.11.1",
        source="npm",
        directory=Path("/nowhere"),
        node_sha256="",
        versions={},
        config_sha256="",
        label=node_label,
    )
    made = []
    for name, version, label in items:
        addon = AddonPackage(name=name, version=version)
        identifier = environment_id(node, addon, "source", label=label)
        made.append(Environment(id=identifier, label=label, node=node, addon=addon))
    return tuple(made)


@pytest.mark.parametrize(
    ("items", "short", "full"),
    [
        (
            [(CIPHERS, "12.11.1", None), (CIPHERS, "13.0.3", None)],
            ["12.11.1", "13.0.3"],
            [f"{CIPHERS} 12.11.1", f"{CIPHERS} 13.0.3"],
        ),
        (
            [(CIPHERS, "12.11.1", "a"), (CIPHERS, "12.11.1", "b")],
            ["a", "b"],
            [f"a ({CIPHERS} 12.11.1)", f"b ({CIPHERS} 12.11.1)"],
        ),
        (
            [(CIPHERS, "12.4.1", None), ("better-sqlite3", "12.4.1", None), ("node:sqlite", "", None)],
            ["bsm12.4.1", "better-sqlite3 12.4.1", "node:sqlite"],
            [f"{CIPHERS} 12.4.1", "better-sqlite3 12.4.1", "node:sqlite"],
        ),
        (
            [(CIPHERS, "12.11.1", None), (CIPHERS, "12.11.1", "12.11.1")],
            ["node24.11.1+bsm12.11.1", "12.11.1:node24.11.1+bsm12.11.1"],
            ["node24.11.1+bsm12.11.1", f"12.11.1 ({CIPHERS} 12.11.1)"],
        ),
    ],
)
def test_addons_are_called_by_their_release(items: Sequence[Item], short: list[str], full: list[str]) -> None:
    made = environments(*items)
    assert list(short_names(made, "addon")) == [e.id for e in made]
    assert list(short_names(made, "addon").values()) == short
    assert list(full_names(made, "addon").values()) == full


def test_a_labelled_node_keeps_its_label_in_sentences_only() -> None:
    made = environments((CIPHERS, "12.11.1", None), (CIPHERS, "13.0.3", None), node_label="fix")
    assert list(releases(made, "addon").values()) == ["12.11.1", "13.0.3"]
    assert node_name(made[0]) == "Node 24.11.1 (fix)"


def test_without_an_addon_the_version_of_node_is_the_name() -> None:
    (made,) = environments((CIPHERS, "12.11.1", None))
    assert short_names([made]) == {made.id: "24.11.1"}
    assert full_names([made]) == {made.id: "Node 24.11.1"}
