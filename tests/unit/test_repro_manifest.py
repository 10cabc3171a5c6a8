"""What a reproduction leaves: its folder's name, and a manifest that others read back."""

from pathlib import Path

import msgspec
import pytest

from investigator.errors import StoredFileError
from investigator.repro.manifest import (
    KIND,
    REPRO_SCHEMA,
    Manifest,
    Program,
    folder_of,
    read_manifest,
    read_manifests,
    slug,
)
from investigator.store import RunFolder


def program(name: str, *, kind: str = "js", shipped: bool = True) -> Program:
    return msgspec.convert(
        {"name": name, "kind": kind, "title": "t", "shipped": shipped, "reason": "r"}, Program
    )


def manifest(*programs: Program) -> Manifest:
    return Manifest(
        op="json_parse",
        family="js",
        baseline="node22.21.1",
        candidate="node24.11.1",
        baseline_name="Node 22.21.1",
        candidate_name="Node 24.11.1",
        change_pct=30.0,
        ci_low_pct=25.0,
        ci_high_pct=35.0,
        programs=programs,
    )


@pytest.mark.parametrize(
    "text",
    ["../../etc", "$(touch x)", "x;rm -rf ~", "", "..", "-rf", "\x1b[31m", "ä" * 300, "a/b\\c", "\udce4"],
)
def test_a_hostile_name_becomes_one_harmless_part_of_a_path(text: str) -> None:
    made = slug(text)
    assert made not in {"", ".", ".."}
    assert len(made) <= 70
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-")
    assert not made.startswith(("-", "."))


def test_names_that_look_alike_have_folders_of_their_own() -> None:
    assert slug("node24.11.1+bsm12.11.1") == "node24.11.1+bsm12.11.1"
    assert len({slug("a:node24"), slug("a/node24"), slug("a-node24")}) == 3


def test_the_first_dependency_free_program_is_the_snippet() -> None:
    hidden = program("snippet-js", shipped=False)
    made = manifest(program("real", kind="real"), hidden, program("snippet-v8", kind="v8_addon"))
    assert made.snippet is not None
    assert made.snippet.name == "snippet-v8"
    assert manifest(program("real", kind="real"), hidden).snippet is None


def test_manifests_are_read_back(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert read_manifests(run) == ()
    made = manifest(program("snippet-js"))
    folder = folder_of(run, made.op, made.candidate)
    run.write_json(f"repro/{folder.name}/manifest.json", KIND, REPRO_SCHEMA, made)
    assert read_manifests(run) == (made,)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(StoredFileError):
        read_manifest(folder)
