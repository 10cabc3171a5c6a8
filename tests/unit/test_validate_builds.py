"""What the user calls a fix, told apart without asking anybody; and the way of all options into a spec."""

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from investigator.errors import UsageError
from investigator.options import Choices
from investigator.report.commands import command_line
from investigator.spec import ARMS, Spec, dump_spec, load_spec
from investigator.validate.builds import parse_build
from investigator.validating import validation_spec

ADDON = "better-sqlite3-multiple-ciphers"
DIFF = "--- a/x.cpp\n+++ b/x.cpp\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one of each kind, and things that are two or none."""
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "built", "bin/node", "include/node/node.h", "package.json")
    make(tmp_path / "checkout", "out/Release/node", "src/node_version.h")
    make(tmp_path / "addon", "package.json", "binding.gyp")
    make(tmp_path / "both", "package.json", "binding.gyp", "bin/node")
    make(tmp_path / "neither", "readme")
    make(tmp_path / "better-sqlite3", "package.json", "binding.gyp")
    (tmp_path / "fix.diff").write_text(DIFF)
    (tmp_path / "notes.txt").write_text("nothing of a patch")
    pack(tmp_path / "node.tar.xz", "node-v24/bin/node", "node-v24/include/node/node.h", "node-v24/README.md")
    pack(tmp_path / "addon.tgz", "package/package.json", "package/binding.gyp")
    pack(tmp_path / "other.tgz", "package/package.json")
    (tmp_path / "torn.tgz").write_bytes(b"\x1f\x8b\x08not a tarball")
    return tmp_path


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")


def pack(path: Path, *names: str) -> None:
    with tarfile.open(path, "w:xz" if path.suffix == ".xz" else "w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 2
            tar.addfile(member, io.BytesIO(b"{}"))


@pytest.mark.parametrize(
    ("text", "kind", "item"),
    [
        ("24.19.0", "node", "24.19.0"),
        ("v24.19.0", "node", "v24.19.0"),
        ("24", "node", "24"),
        ("^24.3", "node", "^24.3"),
        ("lts", "node", "lts"),
        ("latest", "node", "latest"),
        (
            "dist:https://nodejs.example/nightly@nightly",
            "node",
            "dist:https://nodejs.example/nightly@nightly",
        ),
        ("image:node:24", "node", "image:node:24"),
        ("built", "node", "path:built"),
        ("./built", "node", "path:./built"),
        ("path:built", "node", "path:built"),
        ("node:built", "node", "path:built"),
        ("node:24.19.0", "node", "24.19.0"),
        ("node:lts", "node", "lts"),
        ("node:path:built", "node", "path:built"),
        ("node:dist:https://nodejs.example", "node", "dist:https://nodejs.example"),
        ("checkout", "node", "path:checkout"),
        ("./checkout/out", "node", "path:./checkout/out"),
        ("./checkout/out/Release", "node", "path:./checkout/out/Release"),
        ("node.tar.xz", "node", "path:node.tar.xz"),
        (f"{ADDON}@12.11.1", "addon", f"{ADDON}@12.11.1"),
        (f"{ADDON}@12.x", "addon", f"{ADDON}@12.x"),
        (ADDON, "addon", ADDON),
        ("@scope/fork@1.2.3", "addon", "@scope/fork@1.2.3"),
        ("node:sqlite", "addon", "node:sqlite"),
        ("addon", "addon", "path:addon"),
        ("./addon", "addon", "path:./addon"),
        ("path:addon.tgz", "addon", "path:addon.tgz"),
        ("addon:12.x", "addon", f"{ADDON}@12.x"),
        ("addon:12.11.1", "addon", f"{ADDON}@12.11.1"),
        ("addon:my-fork", "addon", "my-fork"),
        ("addon:addon", "addon", "path:addon"),
        ("addon:both", "addon", "path:both"),
        ("addon:better-sqlite3", "addon", "better-sqlite3"),
        ("path:better-sqlite3", "addon", "path:better-sqlite3"),
        ("node:both", "node", "path:both"),
        ("fix.diff", "patch", "fix.diff"),
        ("path:fix.diff", "patch", "fix.diff"),
        ("./fix.diff", "patch", "./fix.diff"),
        ("patch:fix.diff", "patch", "fix.diff"),
    ],
)
def test_the_kind_of_a_build(text: str, kind: str, item: str) -> None:
    found = parse_build(text)
    assert (found.kind, found.item) == (kind, item)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no build"),
        ("24.19.0\n", None),
        ("a\x1b[31mb", "is no build"),
        ("nothing-here", "neither here nor a release"),
        ("./nothing-here", "does not exist"),
        ("path:", "does not exist"),
        ("better-sqlite3", "an addon and a file or directory here; write addon:better-sqlite3, or path:"),
        ("both", "holds a Node build and an addon; write node:both or addon:both"),
        ("neither", "neither a Node build"),
        ("other.tgz", "neither a Node build"),
        ("torn.tgz", "not a complete tar archive"),
        ("notes.txt", "neither a tarball nor a unified diff"),
        ("patch:built", "names no file"),
        ("patch:", "names nothing after patch:"),
        ("node:", "names nothing after node:"),
        ("24.1.1,24.2.0", "neither here nor a release"),
        ("node:24.1.1,24.2.0", "names several builds"),
        ("addon:not a name", "not the name of an npm package"),
        ("nightly", "not on npm"),
    ],
)
def test_what_is_no_build_is_one_sentence(text: str, words: str | None) -> None:
    if words is None:
        assert parse_build(text).item == text.strip()
        return
    with pytest.raises(UsageError) as refused:
        parse_build(text)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)


def test_a_bare_release_of_a_local_addon_has_no_name() -> None:
    with pytest.raises(UsageError, match="write addon:NAME@"):
        parse_build("addon:12.x", "--fix", "path:./addon")


def spec_of(fix: str, *, choices: Choices | None = None, **options: object) -> Spec:
    values = {"baseline": "22.21.1", "regressed": "24.11.1", **options}
    return validation_spec(choices or Choices(), fix=fix, **values)  # type: ignore[arg-type]


def test_a_node_fix_is_a_run_of_three_versions() -> None:
    spec = spec_of("24.19.0", ops=("bind_text_ascii_200", "json_parse"))
    assert spec.versions == ("baseline=22.21.1", "regressed=24.11.1", "fix=24.19.0")
    assert (spec.baseline, spec.explain, spec.axis) == ("regressed", "none", "node")
    assert spec.ops == ("essential", "bind_text_ascii_200", "json_parse")
    assert spec.fix is not None
    assert (spec.fix.kind, spec.fix.build, spec.fix.restore_pct, spec.fix.equal) == ("node", "", 80.0, False)
    assert spec.fix.ops == ("bind_text_ascii_200", "json_parse")


def test_addon_and_patch_run_on_the_regressed_node() -> None:
    patch = spec_of("fix.diff")
    addon = spec_of(f"{ADDON}@12.12.0", restore="equal")
    assert patch.versions == addon.versions == ("baseline=22.21.1", "regressed=24.11.1", "fix=24.11.1")
    assert patch.fix is not None
    assert addon.fix is not None
    assert (patch.fix.kind, patch.fix.build, patch.fix.name) == ("patch", "fix.diff", "fix.diff")
    assert (addon.fix.kind, addon.fix.build, addon.fix.equal) == ("addon", f"{ADDON}@12.12.0", True)


def test_addons_can_be_all_three_sides() -> None:
    sides: dict[str, Any] = {"baseline": f"{ADDON}@12.11.1", "regressed": "addon:13.0.3", "node": "24.11.1"}
    spec = spec_of("./addon", **sides)
    assert (spec.axis, spec.versions) == ("addon", ("24.11.1",))
    assert spec.addons == (f"baseline={ADDON}@12.11.1", f"regressed={ADDON}@13.0.3", "fix=path:./addon")
    patch = spec_of("fix.diff", **sides)
    assert patch.addons[2] == f"fix={ADDON}@13.0.3"


def test_operations_of_ops_are_the_others() -> None:
    chosen = Choices(ops="none")
    assert spec_of("24.19.0", choices=chosen, ops=("select_range",)).ops == ("select_range",)
    mine = Choices(ops="none", workload=["mine.mjs"])
    spec = spec_of("24.19.0", choices=mine, ops=("mine",))
    assert spec.ops == ("none",)
    assert spec.fix is not None
    assert spec.fix.ops == ("mine",)


@pytest.mark.parametrize(
    ("restore", "percent"), [("60%", 60.0), ("60", 60.0), ("99.5 %", 99.5), ("100%", 100.0), ("1%", 1.0)]
)
def test_the_wanted_share(restore: str, percent: float) -> None:
    fix = spec_of("24.19.0", restore=restore).fix
    assert fix is not None
    assert (fix.restore_pct, fix.equal) == (percent, False)


@pytest.mark.parametrize("restore", ["0%", "101%", "most", "", "-5%", "80%%"])
def test_a_share_that_is_none(restore: str) -> None:
    with pytest.raises(UsageError, match="--restore"):
        spec_of("24.19.0", restore=restore)


@pytest.mark.parametrize(
    ("fix", "options", "words"),
    [
        ("24.19.0", {"baseline": "fix.diff"}, "only --fix can be a patch"),
        ("24.19.0", {"baseline": f"{ADDON}@12.11.1"}, "differ in more than one thing"),
        ("24.19.0", {"baseline": "24.11.1"}, "both 24.11.1; between them nothing can have got lost"),
        ("24.19.0", {"node": "24.11.1"}, "--node is for addons"),
        ("./addon", {"baseline": f"{ADDON}@1.0.0", "regressed": f"{ADDON}@2.0.0"}, "--node 24.11.1"),
        (
            "24.19.0",
            {"baseline": f"{ADDON}@1.0.0", "regressed": f"{ADDON}@2.0.0", "node": "24"},
            "same thing",
        ),
        ("fix.diff", {"js": True}, "leave out --js"),
        ("24.19.0", {"ops": ("no such op",)}, "is not the name of an operation"),
        ("fix.diff", {"choices": Choices(prebuilt=True)}, "--prebuilt does not compile"),
        ("24.19.0", {"baseline": "22,24"}, "neither here nor a release"),
    ],
)
def test_sides_that_do_not_go_together(fix: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        spec_of(fix, **options)  # type: ignore[arg-type]
    assert words in str(refused.value)


def test_the_stored_spec_is_read_back_and_its_files_count_from_its_folder(here: Path) -> None:
    spec = spec_of("fix.diff", ops=("select_range",), restore="60%")
    (here / "run").mkdir()
    (here / "run/spec.toml").write_bytes(dump_spec(spec))
    again = load_spec(here / "run/spec.toml")
    assert again.fix is not None
    assert again.fix.build == str(here / "run/fix.diff")
    (here / "spec.toml").write_bytes(dump_spec(spec_of("./addon")))
    again = load_spec(here / "spec.toml")
    assert again.fix is not None
    assert again.fix.build == f"path:{here / 'addon'}"


@pytest.mark.parametrize(
    "lines",
    [
        'versions = ["22", "24"]\n[fix]\nkind = "node"',
        'versions = ["baseline=22", "regressed=24", "fix=26"]\n[fix]\nkind = "node"',
        'versions = ["baseline=22", "regressed=24", "fix=26"]\nbaseline = "regressed"\n[fix]\nkind = "other"',
        (
            'versions = ["baseline=22", "regressed=24", "fix=26"]\nbaseline = "regressed"\n'
            '[fix]\nkind = "node"\nrestore_pct = 0.0'
        ),
    ],
)
def test_a_spec_written_by_hand_is_checked(here: Path, lines: str) -> None:
    (here / "spec.toml").write_text(lines)
    with pytest.raises(UsageError):
        load_spec(here / "spec.toml")


@pytest.mark.parametrize(
    ("fix", "words"),
    [
        ("24.19.0", ["--fix", "node:24.19.0"]),
        ("./built", ["--fix", "path:./built"]),
        ("fix.diff", ["--fix", "patch:fix.diff"]),
        (f"{ADDON}@12.12.0", ["--fix", f"addon:{ADDON}@12.12.0"]),
    ],
)
def test_the_command_line_gives_the_spec_again(fix: str, words: Sequence[str]) -> None:
    spec = spec_of(fix, ops=("select_range",), restore="60%")
    assert "--ops" not in command_line(spec)
    line = command_line(spec).split(" ")
    assert line[:2] == ["investigate", "validate"]
    pairs = dict(zip(line[2::2], line[3::2], strict=True))
    assert pairs[words[0]] == words[1]
    again = spec_of(
        pairs["--fix"],
        baseline=pairs["--baseline"],
        regressed=pairs["--regressed"],
        ops=(pairs["--op"],),
        restore=pairs["--restore"],
    )
    assert again == spec


def test_the_labels_are_those_of_the_spec() -> None:
    assert tuple(item.partition("=")[0] for item in spec_of("24.19.0").versions) == ARMS
