"""The command line: help that needs no manual, and wrong input that is one sentence with its exit code."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from investigator import cli, options, results, workflow
from investigator.errors import EngineMissingError, NothingBuiltError
from investigator.native import NativeReading
from investigator.observer import Observer
from investigator.outline import Outline
from investigator.spec import Spec, dump_spec
from sqlcipher_bench.profiles import Profile

OUTLINE = Outline(
    command="js",
    nodes=("22.1.0",),
    baseline="22.1.0",
    addon=None,
    operations=("json_parse",),
    workloads=(),
    rounds=8,
    max_rounds=16,
    passes=4,
    invocations_per_round=2,
    first_round=("22.1.0 js: json_parse",),
    measuring_min=1.0,
    budget_min=4.5,
    explain="3",
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Spec]:
    """Specs that reach the outline, none of which is looked up."""
    seen: list[Spec] = []

    def outline(spec: Spec, _observer: Observer) -> Outline:
        seen.append(spec)
        return OUTLINE

    monkeypatch.setattr("investigator.cli.shared.outline", outline)
    return seen


@pytest.mark.parametrize(
    "command",
    [
        *("sqlite", "js", "run", "resume", "plan", "show", "report"),
        *("audit", "versions", "native", "doctor", "clean"),
    ],
)
def test_every_command_explains_itself(command: str) -> None:
    result = call(command, "--help")
    assert result.exit_code == 0
    assert command in plain(call("--help").stdout)


@pytest.mark.parametrize(
    "words",
    [
        "6 with --quick",
        "default 4.5, 8 with two versions, 2 with --quick, 20 with --thorough",
        "first rounds always run",
        "[@VERSION @RANGE]",
        "@^12",
        "With --axis addon several",
    ],
)
def test_help_says_defaults(words: str) -> None:
    text = " ".join(re.sub(r"[│|]", " ", plain(call("sqlite", "--help").stdout)).split())
    assert words in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sqlite", "--versions", ""], "no Node version is given"),
        (["sqlite", "--cipher", "rot13"], "take chacha20"),
        (["sqlite", "--cpus", "3-1"], "write 1-3"),
        (["sqlite", "--prebuilt", "--patch", "a.diff"], "--prebuilt does not compile"),
        (["sqlite", "--patch", "none.diff"], "--patch none.diff cannot be read"),
        (["sqlite", "--workload", "none.mjs"], "--workload none.mjs cannot be read"),
        (["js", "--ops", "none"], "nothing would be measured"),
        (["js", "--ops", "select_range", "--dry-run"], "select_range works on an addon"),
        (["js", "--ops", "boundary.select_range", "--dry-run"], "boundary.select_range works on an addon"),
        (["js", "--ops", "wlx", "--workload", "wl.mjs", "--dry-run"], "neither built in nor in the"),
        (["js", "--ops", "wlx", "--workload", "wl.mjs"], "neither built in nor in the workloads"),
        (["plan", "js", "--workload", "map_fill.mjs"], "map_fill has the name of a built-in operation"),
        (["js", "--workload", "map_fill.mjs"], "map_fill has the name of a built-in operation"),
        (["js", "--param", "k=1", "--param", "k=2"], "--param gives 'k' twice"),
        (["js", "--versions", "20,,22"], "--versions '20,,22' has a comma with nothing beside it"),
        (["js", "--versions", "20,22,"], "has a comma with nothing beside it"),
        (["js", "--ops", "json_parse,,map_fill"], "--ops 'json_parse,,map_fill' has a comma"),
        (["js", "--ops", "none", "--dry-run"], "nothing would be measured"),
        (["run", "none.toml"], "none.toml cannot be read"),
        (["resume", "none"], "there is no run 'none'"),
        (["show", "last"], "there is no run 'last'"),
        (["versions", "none"], "not a list of major versions"),
        (["sqlite", "--axis", "addon", "--versions", "24"], "at least two addons"),
        (["sqlite", "--axis", "addon", "--addon", "x@1,x@2"], "--versions names 3 (20,22,24); give one"),
        (["sqlite", "--versions", "24", "--addon", "x@1,x@2"], "with --axis addon"),
        (["plan", "js", "--axis", "addon"], "--axis cannot be given beside js"),
        (["native", "--profile", "none"], "take all, production"),
        (["native", "--cpus", "x"], "not a list of CPUs"),
        (["native", "--base-image", "-v"], "not the name of an image"),
        (["native", "--seed", "-1"], "--seed is -1"),
        (["plan", "js", "--addon", "node:sqlite", "--cipher", "rc4"], "--addon, --cipher cannot be given"),
        (["plan", "none.toml", "--versions", "22"], "--versions cannot be given beside a spec file"),
    ],
)
def test_wrong_input_is_one_sentence(arguments: Sequence[str], words: str, elsewhere: Path) -> None:
    for name in ("wl.mjs", "map_fill.mjs"):
        Path(name).write_text("export const run = () => 1;")
    result = call(*arguments)
    assert result.exit_code == 2
    said = [line for line in plain(result.stderr).splitlines() if "error" in line]
    assert len(said) == 1
    assert words in " ".join(plain(result.stderr).split())
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert not (elsewhere / "reports").exists()


def test_a_newer_spec_has_an_exit_code_of_its_own() -> None:
    Path("spec.toml").write_text("schema = 99\nsurprise = 1\n")
    result = call("run", "spec.toml")
    assert (result.exit_code, "schema 99" in result.stderr) == (8, True)


@pytest.mark.parametrize(
    ("arguments", "versions"),
    [
        ([], ("20", "22", "24")),
        (["sqlite"], ("20", "22", "24")),
        (["js"], ("22", "24", "26")),
        (["js", "--versions", "18"], ("18",)),
    ],
)
def test_plan_takes_the_versions_of_its_command(
    planned: list[Spec], arguments: Sequence[str], versions: tuple[str, ...]
) -> None:
    assert call("plan", *arguments).exit_code == 0
    assert planned[0].versions == versions


def test_plan_and_dry_run_see_the_same_spec(planned: list[Spec]) -> None:
    words = ("--margin=8", "--cpus=0", "--storage=disk", "--cipher=rc4", "--param=a=1", "--seed=7", "--quick")
    assert call("plan", "sqlite", *words).exit_code == 0
    assert call("sqlite", "--dry-run", *words).exit_code == 0
    assert planned[0] == planned[1]
    assert (planned[0].finding_pct, planned[0].storage, planned[0].passes) == (8.0, "disk", 2)


def test_compared_addons_reach_the_plan(planned: list[Spec]) -> None:
    words = ("--axis=addon", "--versions=24", "--addon", "x@1,new=2", "--baseline=new")
    assert call("plan", "sqlite", *words).exit_code == 0
    assert call("sqlite", "--dry-run", *words).exit_code == 0
    assert planned[0] == planned[1]
    assert (planned[0].axis, planned[0].addons, planned[0].baseline) == ("addon", ("x@1", "new=2"), "new")


def test_commands_offer_the_choices_in_one_order() -> None:
    commands = get_command(cli.app).commands  # type: ignore[attr-defined]
    choices = list(options.Choices.__struct_fields__)

    def offered(command: str) -> list[str]:
        return [p.name for p in commands[command].params if p.name in choices]

    assert offered("sqlite") == offered("plan") == choices
    assert offered("js") == [name for name in choices if name not in options.ONLY_SQLITE]
    assert commands["js"].params[0].default == options.DEFAULT_VERSIONS["js"]


def test_plan_of_a_spec_file(planned: list[Spec]) -> None:
    spec = Spec(versions=("24",), seed=5)
    Path("spec.toml").write_bytes(dump_spec(spec))
    result = call("plan", "spec.toml", "--json")
    assert result.exit_code == 0
    assert planned == [spec]
    assert '"kind": "outline"' in result.stdout


@pytest.mark.parametrize(
    ("error", "code"),
    [(NothingBuiltError("no"), 5), (EngineMissingError("no"), 4), (KeyboardInterrupt(), 130)],
)
def test_what_ends_a_run_is_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def fail(*_: object) -> results.Finished:
        raise error

    monkeypatch.setattr(workflow, "investigate", fail)
    result = call("js")
    assert result.exit_code == code
    assert result.stdout == ""


def test_native_hands_on_a_checked_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Spec, Sequence[Profile]]] = []

    def native_only(
        spec: Spec, profiles: Sequence[Profile], _observer: Observer
    ) -> tuple[NativeReading, ...]:
        seen.append((spec, profiles))
        return ()

    monkeypatch.setattr(workflow, "native_only", native_only)
    assert call("native", "--profile=all", "--cipher=rc4", "--cpus=0", "--engine=local").exit_code == 0
    ((spec, profiles),) = seen
    assert (spec.cipher, spec.cpus, spec.engine, spec.versions) == ("rc4", "0", "local", ("lts",))
    assert [p.name for p in profiles] == list(options.PROFILES)
    assert {p.cipher for p in profiles} == {"rc4", "none"}


def test_a_fix_is_told_apart_before_anything_is_looked_up(planned: list[Spec], elsewhere: Path) -> None:
    sides = ("validate", "--baseline", "22.21.1", "--regressed", "24.11.1", "--dry-run")
    assert call(*sides, "--fix", "24.19.0", "--op", "select_range").exit_code == 0
    assert planned[-1].versions == ("baseline=22.21.1", "regressed=24.11.1", "fix=24.19.0")
    assert planned[-1].fix is not None
    assert planned[-1].fix.ops == ("select_range",)
    refused = call(*sides, "--fix", "nowhere")
    assert refused.exit_code == 2
    assert "is neither here nor a release" in refused.stderr
    assert call(*sides, "--fix", "24.19.0", "--keep", "much").exit_code == 2
    assert call("validate", "--baseline", "22").exit_code == 2
    assert not list(elsewhere.iterdir())
