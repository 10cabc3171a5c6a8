"""A spec survives its TOML file, and a wrong one is named in one sentence."""

from pathlib import Path

import msgspec
import pytest

from investigator.errors import UsageError
from investigator.options import make_spec
from investigator.spec import Spec, checked, dump_spec, load_spec

BASE: dict[str, object] = {
    "versions": "20,22,24",
    "baseline": None,
    "node_flags": "",
    "ops": "essential",
    "workload": None,
    "param": None,
    "rounds": None,
    "budget": None,
    "quick": False,
    "thorough": False,
    "margin": 2.0,
    "seed": 1,
    "engine": "auto",
    "base_image": None,
    "cpus": None,
    "fail_on": "none",
}


def spec_of(**changes: object) -> Spec:
    return make_spec("sqlite", **(BASE | changes))  # type: ignore[arg-type]


def test_toml_round_trip_keeps_every_field(tmp_path: Path) -> None:
    spec = spec_of(baseline="22", param=["a=1", "b=x=y"], node_flags="--no-maglev --max-semi-space-size=1")
    (tmp_path / "spec.toml").write_bytes(dump_spec(spec))
    assert load_spec(tmp_path / "spec.toml") == spec
    assert spec.params == {"a": "1", "b": "x=y"}


def test_relative_workloads_count_from_the_spec_file(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_bytes(dump_spec(spec_of(workload=["mine.mjs"])))
    assert load_spec(tmp_path / "spec.toml").workloads == (str(tmp_path / "mine.mjs"),)


@pytest.mark.parametrize(
    ("changes", "looks"),
    [
        ({}, (8, 16)),
        ({"quick": True}, (7,)),
        ({"thorough": True}, (8, 16, 32)),
        ({"rounds": 4}, (4, 8)),
    ],
)
def test_looks(changes: dict[str, object], looks: tuple[int, ...]) -> None:
    assert spec_of(**changes).looks == looks


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"versions": ""}, "no Node version"),
        ({"versions": " , "}, "no Node version"),
        ({"rounds": 0}, "--rounds"),
        ({"rounds": 100}, "--rounds"),
        ({"margin": 0.0}, "--margin"),
        ({"budget": 0.0}, "--budget"),
        ({"seed": -1}, "--seed"),
        ({"cpus": "0;rm"}, "--cpus"),
        ({"node_flags": "'"}, "open quote"),
        ({"node_flags": "script.js"}, "not a V8 or Node flag"),
        ({"node_flags": "--x=$(id)"}, "not a V8 or Node flag"),
        ({"param": ["novalue"]}, "name=value"),
        ({"param": ["1a=2"]}, "plain word"),
        ({"ops": "../x"}, "--ops"),
        ({"base_image": "-v"}, "--base-image"),
        ({"quick": True, "thorough": True}, "contradict"),
    ],
)
def test_wrong_options_are_named(changes: dict[str, object], word: str) -> None:
    with pytest.raises(UsageError, match=word) as caught:
        spec_of(**changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (b"versions = [", "not valid TOML"),
        (b"\xff\xfe", "not valid TOML"),
        (b"versions = ['20']\nsurprise = 1", "surprise"),
        (b"versions = '20'", "array"),
        (b"versions = ['20']\nschema = 99", "schema 99"),
        (b"rounds = 8", "versions"),
    ],
)
def test_wrong_files_are_named(tmp_path: Path, text: bytes, word: str) -> None:
    path = tmp_path / "spec.toml"
    path.write_bytes(text)
    with pytest.raises(UsageError, match=word):
        load_spec(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_spec(tmp_path / "none.toml")


def test_js_takes_no_patch() -> None:
    with pytest.raises(UsageError, match="belong to an addon"):
        checked(msgspec.structs.replace(spec_of(), command="js", patch="x.diff"))
