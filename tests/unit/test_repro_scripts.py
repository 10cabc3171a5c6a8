"""Programs of reproductions: self-contained, short, the same data, and harmless whatever the names are."""

import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest

from investigator import resources
from investigator.addons import AddonPackage
from investigator.errors import StoredFileError
from investigator.nodes.interface import NodeBuild
from investigator.operations import CATALOGUE, JS, SQLITE, Operation, find
from investigator.plan import Environment, Pace, Plan
from investigator.repro.fragments import mailbox_text
from investigator.repro.scripts import MAX_NATIVE_LINES, drafts
from investigator.repro.shapes import Draft, Question
from investigator.spec import Axis, Spec
from investigator.workloads import own_operation
from sqlcipher_bench.mailbox import mailbox_bytes

NODE = resources.node_tools() / "bin/node"
HOSTILE = "x'); process.exit(7); //`${1}"


def addon(version: str = "12.11.1", *, napi: int | None = None) -> AddonPackage:
    return AddonPackage(
        name="better-sqlite3-multiple-ciphers", version=version, napi=napi, integrity="sha512-x"
    )


def environment(version: str, package: AddonPackage | None = None) -> Environment:
    return Environment(
        id=f"node{version}",
        label=None,
        node=NodeBuild(
            version=version,
            source="npm",
            directory=Path("/nonexistent"),
            node_sha256="0",
            versions={},
            config_sha256="0",
        ),
        addon=package,
    )


def question(
    operation: Operation,
    *,
    versions: tuple[str, str] = ("22.21.1", "24.11.1"),
    package: AddonPackage | None = None,
    axis: Axis = "node",
    params: dict[str, str] | None = None,
    workloads: Path = Path("/nonexistent"),
) -> Question:
    package = None if operation.family == "js" else package or addon()
    sides = (environment(versions[0], package), environment(versions[1], package))
    spec = Spec(command="sqlite", versions=versions, axis=axis, params=params or {})
    plan = Plan(spec=spec, run_id="r", environments=sides, baseline=sides[0].id, operations=(operation,))
    pace = Pace(op=operation.name, warmup_calls=8, loops=3)
    return Question(plan=plan, operation=operation, pace=pace, sides=sides, workloads=workloads)


def built_in(name: str) -> Operation:
    operation = find(name)
    assert operation is not None
    return operation


def place(draft: Draft, folder: Path) -> Path:
    for name, content in draft.files.items():
        (folder / name).write_bytes(content)
    return folder / draft.script


def run(script: Path, tmp_path: Path) -> dict[str, float]:
    done = subprocess.run(
        [str(NODE), "--no-warnings", str(script)],
        env={"REPRO_TMP": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def all_drafts(operation: Operation) -> tuple[Draft, ...]:
    return drafts(question(operation)) + drafts(question(operation, package=addon("13.0.3", napi=10)))


@pytest.mark.parametrize("operation", [*SQLITE, *JS], ids=lambda operation: operation.name)
def test_every_operation_has_a_program_that_node_can_parse(operation: Operation, tmp_path: Path) -> None:
    made = [draft for draft in drafts(question(operation)) if draft.kind != "node_sqlite"]
    assert made
    for draft in made[-1:]:
        script = place(draft, tmp_path)
        done = subprocess.run(
            [str(NODE), "--check", str(script)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{draft.name}: {done.stderr}"


@pytest.mark.parametrize("operation", [*SQLITE, *JS], ids=lambda operation: operation.name)
def test_no_program_needs_this_project_or_leaves_a_gap(operation: Operation) -> None:
    for draft in all_drafts(operation):
        for name, content in draft.files.items():
            text = content.decode()
            assert "@@" not in text, name
            wanted = re.findall(r"""(?:from |import\(|require\()['"]([^'"]+)""", text)
            assert all(module.startswith(("node:", "./build/Release/")) for module in wanted), wanted


def test_operations_of_the_probes_have_none() -> None:
    twins = [operation for operation in CATALOGUE if operation.family in {"core", "boundary"}]
    assert twins
    assert all(drafts(question(operation)) == () for operation in twins)


@pytest.mark.parametrize(
    "operation", [o for o in SQLITE if o.name.startswith(("bind_text_", "select_range"))]
)
def test_native_snippets_are_short(operation: Operation) -> None:
    texts = [d.files["snippet.cc"].decode() for d in all_drafts(operation) if "snippet.cc" in d.files]
    assert texts or operation.name == "select_range_raw"
    assert all(len(text.splitlines()) <= MAX_NATIVE_LINES for text in texts)


def kinds(made: tuple[Draft, ...]) -> list[str]:
    return [draft.kind for draft in made]


def test_what_needs_least_comes_first() -> None:
    bind, select = built_in("bind_text_ascii_10k"), built_in("select_range")
    napi = addon("13.0.3", napi=10)
    assert kinds(drafts(question(bind))) == ["js", "v8_addon", "real"]
    assert kinds(drafts(question(bind, package=napi))) == ["js", "napi_addon", "real"]
    assert kinds(drafts(question(select))) == ["v8_addon", "node_sqlite", "real"]
    # Node 20 has no node:sqlite, and 22.12 only under a flag.
    assert kinds(drafts(question(select, versions=("20.19.5", "22.21.1")))) == ["v8_addon", "real"]
    assert kinds(drafts(question(select, versions=("22.12.0", "24.11.1")))) == ["v8_addon", "real"]
    # Two addons differ: nothing without them can show it.
    assert kinds(drafts(question(bind, axis="addon"))) == ["real"]
    assert kinds(drafts(question(built_in("insert_row")))) == ["real"]
    assert kinds(drafts(question(built_in("json_stringify")))) == ["js"]


def test_rows_are_made_as_the_release_makes_them() -> None:
    def bulk(version: str) -> str:
        made = drafts(question(built_in("select_range"), package=addon(version)))
        found = re.search(r"#define BULK (.*)", made[0].files["snippet.cc"].decode())
        assert found is not None
        return found.group(1)

    assert bulk("12.11.1") == "(NODE_MODULE_VERSION >= 127)"
    assert bulk("11.10.0") == "(0)"
    napi = drafts(question(built_in("select_range"), package=addon("13.0.3", napi=10)))
    assert kinds(napi) == ["node_sqlite", "real"]


@pytest.mark.parametrize("name", ["json_parse", "rows_twin", "bind_text_latin1_2k"])
def test_a_js_snippet_runs_alone(name: str, tmp_path: Path) -> None:
    draft = drafts(question(built_in(name)))[0]
    assert draft.kind == "js"
    found = run(place(draft, tmp_path), tmp_path)
    assert found["ns_per_call"] > 0


@pytest.mark.parametrize(
    "operation",
    [o for o in SQLITE if o.name.startswith("select_") and o.name != "select_range_raw"],
    ids=lambda operation: operation.name,
)
def test_a_node_sqlite_snippet_runs_alone(operation: Operation, tmp_path: Path) -> None:
    (draft,) = [draft for draft in drafts(question(operation)) if draft.kind == "node_sqlite"]
    found = run(place(draft, tmp_path), tmp_path)
    assert found["ns_per_call"] > 0
    assert not list(tmp_path.glob("repro-*")), "it leaves its database behind"


@pytest.mark.parametrize("name", ["insert_row", "insert_batch", "update_row", "delete_row", "open_key"])
def test_bodies_of_writing_operations_run(name: str, tmp_path: Path) -> None:
    package = AddonPackage(name="node:sqlite", version="", kind="node:sqlite", encrypted=False)
    (draft,) = drafts(question(built_in(name), package=package))
    assert draft.kind == "node_sqlite"
    assert run(place(draft, tmp_path), tmp_path)["ns_per_call"] > 0


@pytest.mark.parametrize("seed", [1, 7])
def test_the_mails_are_those_of_the_measurement(seed: int, tmp_path: Path) -> None:
    script = tmp_path / "mailbox.mjs"
    script.write_text(
        mailbox_text()
        + f"""
        import {{ createHash }} from 'node:crypto';
        const names = ['id', 'mailbox', 'uid', 'date', 'subject', 'sender', 'flags', 'size', 'body'];
        const rows = mailbox({seed}).map((m) => names.map((name) => m[name]).join('\\x1f'));
        const text = [names.join('\\x1f'), ...rows].join('\\x1e');
        console.log(createHash('sha256').update(text).digest('hex'));
        """
    )
    done = subprocess.run([str(NODE), str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == hashlib.sha256(mailbox_bytes(seed=seed)).hexdigest()


def test_a_workload_is_its_own_program(tmp_path: Path) -> None:
    source = (
        "export const workloads = { slow: {"
        "setup: (ctx) => ({ n: Number(ctx.params.n) }),"
        "run: async (state, i) => state.n + i } };"
    )
    (tmp_path / "mine.mjs").write_text(source)
    operation = own_operation("mine.mjs", "js", "slow")
    (draft,) = drafts(question(operation, params={"n": HOSTILE}, workloads=tmp_path))
    assert draft.kind == "workload"
    assert draft.files["mine.mjs"].decode() == source
    other = tmp_path / "elsewhere"
    other.mkdir()
    assert run(place(draft, other), tmp_path)["ns_per_call"] > 0


def test_hostile_parameters_never_become_code() -> None:
    operation = built_in("select_range")
    with pytest.raises(StoredFileError, match="neither a word nor a number"):
        drafts(question(operation, params={"cache_size": HOSTILE}))
    # What is no PRAGMA of the profile has no place in a script.
    for draft in drafts(question(operation, params={"anything": HOSTILE})):
        assert all(HOSTILE.encode() not in content for content in draft.files.values())
