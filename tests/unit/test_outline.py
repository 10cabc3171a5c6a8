"""What `investigate plan` says would run, from releases that nobody has to look up."""

import io
from collections.abc import Sequence

import pytest

from investigator import addons, listings, resolve
from investigator.addons import AddonRequest
from investigator.console import Console
from investigator.nodes import sources
from investigator.nodes.interface import NodeRequest, ResolvedNode
from investigator.observer import NullObserver
from investigator.outline import Outline, outline
from investigator.spec import Spec

NAME = "better-sqlite3-multiple-ciphers"


@pytest.fixture(autouse=True)
def published(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Node version and every addon release that is asked for exists."""

    def resolve_all(requests: Sequence[NodeRequest], *_: object) -> tuple[ResolvedNode, ...]:
        return tuple(ResolvedNode(request=r, version=r.selector, integrity=None) for r in requests)

    def named_release(request: AddonRequest, _versions: Sequence[str]) -> str:
        return request.selector or "13.0.3"

    def select_release(request: AddonRequest, _versions: Sequence[str]) -> tuple[addons.AddonRelease, ...]:
        return (addons.AddonRelease(version=request.selector or "13.0.3", engines="*"),)

    monkeypatch.setattr(sources, "resolve_all", resolve_all)
    monkeypatch.setattr(addons, "named_release", named_release)
    monkeypatch.setattr(addons, "select_release", select_release)
    monkeypatch.setattr(resolve, "daemon_answers", lambda: True)


def printed(value: Outline) -> str:
    out = io.StringIO()
    Console(stdout=out, stderr=io.StringIO(), environment={"COLUMNS": "200"}).result(
        listings.plan(value, json=False)
    )
    return out.getvalue()


def test_node_versions_under_one_addon() -> None:
    spec = Spec(versions=("22.21.1", "b=24.11.1"), baseline="b", ops=("select_point", "json_parse"))
    found = outline(spec, NullObserver())
    assert (found.nodes, found.baseline) == (("22.21.1", "b=24.11.1"), "b=24.11.1")
    assert (found.addon, found.addons) == (f"{NAME} 13.0.3", ())
    assert {line.partition(" ")[0] for line in found.first_round} == {"22.21.1", "b=24.11.1"}
    assert f"addon       {NAME} 13.0.3" in printed(found)


def test_addons_on_one_node_version() -> None:
    spec = Spec(
        axis="addon",
        versions=("24.11.1",),
        addons=(f"{NAME}@12.11.1", "new=latest"),
        baseline="new",
        ops=("select_point", "json_parse"),
    )
    found = outline(spec, NullObserver())
    assert (found.nodes, found.baseline) == (("24.11.1",), "new=13.0.3")
    assert (found.addon, found.addons) == (None, (f"{NAME} 12.11.1", f"new={NAME} 13.0.3"))
    assert {line.partition(" ")[0] for line in found.first_round} == {"12.11.1", "new=13.0.3"}
    assert sum("new=13.0.3 (twin)" in line for line in found.first_round) == 2
    assert f"addons      {NAME} 12.11.1, new={NAME} 13.0.3" in printed(found)
