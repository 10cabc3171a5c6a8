"""A spec survives its TOML file, and a wrong one is named in one sentence."""

from pathlib import Path

import msgspec
import pytest

from investigator.errors import StoredFileError, UsageError
from investigator.options import Choices, make_spec
from investigator.report.commands import command_line
from investigator.spec import MAX_BYTES, USUAL, Spec, checked, cpu_numbers, dump_spec, load_spec


def spec_of(**changes: object) -> Spec:
    return make_spec("sqlite", Choices(**changes))  # type: ignore[arg-type]


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
        ({"quick": True}, (6,)),
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
        ({"versions": " , "}, "--versions .* has a comma with nothing beside it"),
        ({"rounds": 0}, "--rounds"),
        ({"rounds": 100}, "--rounds"),
        ({"margin": 0.0}, "--margin"),
        ({"budget": 0.0}, "--budget"),
        ({"seed": -1}, "--seed"),
        ({"cpus": "0;rm"}, "--cpus"),
        ({"cpus": "0,3-1"}, "write 1-3"),
        ({"cipher": "chacha21"}, "take chacha20"),
        ({"prebuilt": True, "patch": "x.diff"}, "--prebuilt does not compile"),
        ({"prebuilt": True, "addon": "node:sqlite"}, "part of Node"),
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
        (b"rounds = 8", "versions"),
    ],
)
def test_wrong_files_are_named(tmp_path: Path, text: bytes, word: str) -> None:
    path = tmp_path / "spec.toml"
    path.write_bytes(text)
    with pytest.raises(UsageError, match=word):
        load_spec(path)


@pytest.mark.parametrize("more", [b"", b"from_the_future = 1\nversions = 3"])
def test_a_newer_file_is_told_as_such(tmp_path: Path, more: bytes) -> None:
    path = tmp_path / "spec.toml"
    path.write_bytes(b"schema = 99\n" + more)
    with pytest.raises(StoredFileError, match=r"schema 99.*newer"):
        load_spec(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("path:./out", "path:{folder}/out"),
        ("fix=path:../out.tgz", "fix=path:{folder}/../out.tgz"),
        ("path:/opt/node", "path:/opt/node"),
        ("image:node:24", "image:node:24"),
        ("24.11.1", "24.11.1"),
    ],
)
def test_path_entries_count_from_the_spec_file(tmp_path: Path, text: str, expected: str) -> None:
    spec = spec_of(versions=text, addon="path:mine")
    (tmp_path / "spec.toml").write_bytes(dump_spec(spec))
    loaded = load_spec(tmp_path / "spec.toml")
    assert loaded.versions == (expected.format(folder=tmp_path),)
    assert loaded.addon == f"path:{tmp_path}/mine"


def test_cpu_numbers() -> None:
    assert cpu_numbers("3,0-1,1") == (0, 1, 3)


def test_a_wide_margin_takes_the_other_limits_along() -> None:
    spec = spec_of(margin=8.0)
    assert (spec.margin_pct, spec.equivalence_pct, spec.finding_pct) == (8.0, 8.0, 8.0)
    assert (spec_of().equivalence_pct, spec_of().finding_pct) == (3.0, 5.0)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, ""),
        ({"quick": True}, " --quick"),
        ({"quick": True, "rounds": 4}, " --rounds 4 --quick"),
        ({"quick": True, "budget": 9.0}, " --budget 9 --quick"),
        ({"thorough": True}, " --thorough"),
        ({"rounds": 4, "budget": 3.0}, " --rounds 4 --budget 3"),
        ({"rounds": 16}, " --rounds 16"),
        ({"margin": 8.0}, " --margin 8"),
    ],
)
def test_the_command_line_gives_the_spec_again(options: dict[str, object], line: str) -> None:
    assert command_line(spec_of(**options)) == f"investigate sqlite --versions 20,22,24{line}"


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_spec(tmp_path / "none.toml")


def test_js_takes_no_patch() -> None:
    with pytest.raises(UsageError, match="belong to an addon"):
        checked(msgspec.structs.replace(spec_of(), command="js", patch="x.diff"))


# -- addons on one Node version -----------------------------------------------------------------------------

NAME = "better-sqlite3-multiple-ciphers"
PAIR = {"axis": "addon", "versions": "24.11.1", "addon": f"{NAME}@12.11.1, new=13.0.3"}


def test_compared_addons_survive_their_file(tmp_path: Path) -> None:
    spec = spec_of(**PAIR)
    assert (spec.addons, spec.compared) == ((f"{NAME}@12.11.1", "new=13.0.3"), spec.addons)
    assert spec.budget_min == USUAL.pair_budget_min
    (tmp_path / "spec.toml").write_bytes(dump_spec(spec))
    assert load_spec(tmp_path / "spec.toml") == spec
    text = (tmp_path / "spec.toml").read_text()
    assert "addons = [" in text
    assert "addon = " not in text, "what does not count is not written"


def test_a_file_without_an_axis_compares_node_versions(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text('schema = 1\nversions = ["20", "24"]\naddon = "node:sqlite"\n')
    spec = load_spec(tmp_path / "spec.toml")
    assert (spec.axis, spec.addons, spec.addon_items) == ("node", (), ("node:sqlite",))
    assert b"addons" not in dump_spec(spec)


def test_paths_of_compared_addons_count_from_the_spec_file(tmp_path: Path) -> None:
    spec = spec_of(**(PAIR | {"addon": f"{NAME}@12.11.1,fix=path:mine,path:/opt/addon"}))
    (tmp_path / "spec.toml").write_bytes(dump_spec(spec))
    loaded = load_spec(tmp_path / "spec.toml")
    assert loaded.addons == (f"{NAME}@12.11.1", f"fix=path:{tmp_path}/mine", "path:/opt/addon")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"versions": "22,24"}, "names 2 .22,24.; give one"),
        ({"versions": None}, "names 3 .20,22,24.; give one"),
        ({"addon": NAME}, "at least two addons"),
        ({"addon": " , "}, "--addon .* has a comma with nothing beside it"),
        ({"addon": "node:sqlite,node:sqlite", "prebuilt": True}, "part of Node"),
        ({"axis": "node"}, "names 2 addons; .* --axis addon"),
    ],
)
def test_wrong_comparisons_of_addons_are_one_sentence(changes: dict[str, object], word: str) -> None:
    with pytest.raises(UsageError, match=word) as caught:
        spec_of(**(PAIR | changes))
    assert "\n" not in str(caught.value)


def test_a_shipped_binary_may_be_compared_with_node_sqlite() -> None:
    assert spec_of(**(PAIR | {"addon": f"node:sqlite,{NAME}", "prebuilt": True, "cipher": "none"})).prebuilt


def test_a_file_is_held_to_the_same_rules() -> None:
    spec = spec_of(**PAIR)
    for changes, word in (
        ({"axis": "node"}, "axis = .addon. only"),
        ({"versions": ("22,24",)}, "give one"),
        ({"command": "js"}, "measures none"),
    ):
        with pytest.raises(UsageError, match=word):
            checked(msgspec.structs.replace(spec, **changes))


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, ""),
        ({"baseline": "13.0.3", "quick": True}, " --quick"),
        ({"addon": f"{NAME}@12.11.1,13.0.3,11.10.0"}, ""),
    ],
)
def test_the_command_line_compares_the_addons_again(changes: dict[str, object], line: str) -> None:
    options = PAIR | changes
    addons = str(options["addon"]).replace(" ", "")
    baseline = f" --baseline {options['baseline']}" if "baseline" in options else ""
    assert command_line(spec_of(**options)) == (
        f"investigate sqlite --versions 24.11.1{baseline} --axis addon --addon {addons}{line}"
    )


@pytest.mark.parametrize("name", ["/dev/zero", "large.toml", "."])
def test_what_is_no_spec_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("large.toml").write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(UsageError, match="cannot be read"):
        load_spec(Path(name))
