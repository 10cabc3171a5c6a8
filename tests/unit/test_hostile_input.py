"""Command lines and spec files that nobody should write: one sentence and exit code 2, never a traceback.

Values go the way of `--dry-run`: into a spec, and then into the plan, with releases that nobody looks up.
"""

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomli_w
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from investigator import addons, resolve
from investigator.addons import AddonRequest
from investigator.console import Console
from investigator.errors import StoredFileError, UsageError
from investigator.nodes import sources
from investigator.nodes.interface import NodeRequest, ResolvedNode
from investigator.observer import NullObserver
from investigator.options import Choices, make_spec
from investigator.outline import outline
from investigator.spec import Spec, load_spec
from tests.unit.test_cli import call, plain

FEW = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NASTY = [
    "",
    " ",
    ",",
    "=",
    "a=",
    "=24",
    "@",
    "-",
    "--",
    "../../etc/passwd",
    "$(touch owned)",
    "`touch owned`",
    "24;touch owned",
    "24|cat",
    "\x1b[31mred\x1b[0m",
    "a\nb\r\nc",
    "\x00",
    "\udcff\udc80",
    "\u202egnp.exe",
    "\u2028",
    "24.11.1\u0661",
    "٢٤",
    "nan",
    "inf",
    "-1",
    "1e999",
    "9" * 400,
    "x" * 100_000,
    "path:",
    "path:\x00",
    "path:~nobody-has-this-name/x",
    "~nobody-has-this-name/x.mjs",
    f"path:{'x' * 300}",
    f"path:{'x/' * 3000}",
    "a\x00b.mjs",
    "image:",
    "image:-v",
    "dist:",
    "dist:file:///etc/passwd",
    "dist:http://[::1",
    "dist:http://u:p@h/",
    "a=b=c",
    "a=24,a=24",
    ">=>=1",
    "24 ||",
    "1.2.3.4.5",
    "--eval=1",
    "-e process.exit()",
    "--require ./x.js",
    "'",
    '"',
    "\\",
    "{{7*7}}",
    "%s%n",
    "<script>alert(1)</script>",
    "[bold]x[/bold]",
    "[/]",
]
TEXTS = st.one_of(
    st.sampled_from(NASTY),
    st.text(max_size=40),
    st.text(alphabet="0123456789.,=<>^~|*x -@:/abpimaget\x1b\udcff", max_size=30),
)
NUMBERS = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.integers().map(float))
TEXT_OPTIONS = (
    "versions",
    "baseline",
    "addon",
    "patch",
    "node_flags",
    "ops",
    "cipher",
    "base_image",
    "cpus",
    "explain",
)


@pytest.fixture(autouse=True)
def nothing_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Every release exists; the working directory is empty and has to stay so."""

    def resolve_all(requests: Sequence[NodeRequest], *_: object) -> tuple[ResolvedNode, ...]:
        return tuple(ResolvedNode(request=r, version="24.11.1", integrity=None) for r in requests)

    def named_release(request: AddonRequest, _versions: Sequence[str]) -> str:
        return request.selector or "13.0.3"

    def select_release(request: AddonRequest, _versions: Sequence[str]) -> tuple[addons.AddonRelease, ...]:
        return (addons.AddonRelease(version="13.0.3", engines="*"),)

    monkeypatch.setattr(sources, "resolve_all", resolve_all)
    monkeypatch.setattr(addons, "named_release", named_release)
    monkeypatch.setattr(addons, "select_release", select_release)
    monkeypatch.setattr(resolve, "daemon_answers", lambda: True)
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    yield empty
    assert list(empty.iterdir()) == [], "a value was run, or written somewhere"


def refused(error: Exception) -> None:
    """What people see of an error: one bounded line without anything that a terminal would obey."""
    out = io.StringIO()
    Console(stdout=io.StringIO(), stderr=out, environment={"COLUMNS": "100000"}).error(str(error))
    said = out.getvalue()
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert len(said) < 4100
    assert not [character for character in said[:-1] if not character.isprintable()]
    assert len(said.removeprefix("error: ").strip()) > 10


def planned(**choices: Any) -> bool:
    """Whether the command takes these choices; a refusal is checked."""
    try:
        outline(make_spec("sqlite", Choices(**choices)), NullObserver())
    except UsageError as error:
        refused(error)
        return False
    return True


@pytest.mark.parametrize("option", TEXT_OPTIONS)
@FEW
@given(data=st.data())
def test_texts(option: str, data: st.DataObject) -> None:
    planned(**{option: data.draw(TEXTS)})


@pytest.mark.parametrize("option", TEXT_OPTIONS)
def test_every_nasty_text(option: str) -> None:
    for text in NASTY:
        planned(**{option: text})


@FEW
@given(params=st.lists(TEXTS, max_size=3), workloads=st.lists(TEXTS, max_size=2))
def test_lists(params: list[str], workloads: list[str]) -> None:
    planned(param=params)
    planned(workload=workloads, ops="none")


@pytest.mark.parametrize("option", ["budget", "margin"])
@FEW
@given(number=NUMBERS)
@example(number=float("nan"))
@example(number=float("inf"))
@example(number=-0.0)
def test_numbers(option: str, number: float) -> None:
    taken = planned(**{option: number})
    low, high = (0.1, 24 * 60) if option == "budget" else (0.1, 50)
    assert taken == (low <= number <= high)


@FEW
@given(seed=st.integers(), rounds=st.integers())
def test_whole_numbers(seed: int, rounds: int) -> None:
    assert planned(seed=seed) == (0 <= seed < 2**32)
    assert planned(rounds=rounds) == (1 <= rounds <= 64)


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.sampled_from([text for text in NASTY if text.isascii()]),
        st.text(max_size=20),
        st.integers(min_value=-(2**63), max_value=2**63 - 1),
        st.floats(),
        st.booleans(),
        st.datetimes(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=4,
)


@pytest.mark.parametrize("field", [*Spec.__struct_fields__, "surprise"])
@FEW
@given(value=VALUES)
def test_spec_files_with_any_value(tmp_path: Path, field: str, value: Any) -> None:
    content = {"versions": ["24"], field: value}
    path = tmp_path / "spec.toml"
    path.write_text(tomli_w.dumps(content), encoding="utf-8")
    try:
        outline(load_spec(path), NullObserver())
    except (UsageError, StoredFileError) as error:
        refused(error)


@FEW
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda t: t.encode())))
@example(content=b"\xff\xfe")
@example(content=b"a = " + b"[" * 100_000)
@example(content=b"versions = [" + b"'24'," * 10_000 + b"]")
@example(content=b"seed = " + b"9" * 5_000)
def test_spec_files_of_any_bytes(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "spec.toml"
    path.write_bytes(content)
    try:
        outline(load_spec(path), NullObserver())
    except (UsageError, StoredFileError) as error:
        refused(error)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--budget", "nan"],
        ["--budget", "many"],
        ["--margin=-inf"],
        ["--seed", "0x10"],
        ["--rounds", "9" * 30],
        ["--engine", "$(id)"],
        ["--storage", "\x1b[31m"],
        ["--versions", "\udcff"],
        ["--versions", "24; rm -rf /"],
        ["--baseline", "a\nb"],
        ["--workload", "\x1b]0;title\x07.mjs"],
        ["--node-flags", "--eval=1 -p"],
        ["--param", "=\udcff"],
        ["--no-such-option\x1b[31m"],
        ["surprise"],
    ],
)
def test_command_lines(arguments: list[str]) -> None:
    result = call("js", "--dry-run", *arguments)
    assert result.exit_code == 2, result.output[-500:]
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert "\x1b]" not in result.stderr
    assert "\x1b[31m" not in plain(result.stderr)


def test_a_spec_file_can_be_anything(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    for name in ("pipe.toml", ".", "/dev/zero", "x" * 5000, "\udcff.toml"):
        path = tmp_path / name
        with pytest.raises(UsageError) as caught:
            load_spec(path)
        refused(caught.value)


def test_choices_that_are_fuzzed_are_all_that_hold_text() -> None:
    hints = {f.name: f.type for f in msgspec.structs.fields(Choices)}
    texts = {name for name, hint in hints.items() if "str" in str(hint) and "Literal" not in str(hint)}
    assert texts - {*TEXT_OPTIONS, "param", "workload"} == set()
