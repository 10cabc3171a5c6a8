"""The mailbox data: equal everywhere, readable as described, and fit for the queries."""

import hashlib
import sqlite3
from pathlib import Path

import pytest

from sqlcipher_bench import mailbox
from sqlcipher_bench.mailbox import SplitMix64, mailbox_bytes, write_mailbox

SQL = Path(mailbox.__file__).parent
SINCE = 30 * 86_400


@pytest.fixture(scope="module")
def messages() -> list[dict[str, str]]:
    header, *records = mailbox_bytes(seed=1).decode().split("\x1e")
    fields = header.split("\x1f")
    return [dict(zip(fields, record.split("\x1f"), strict=True)) for record in records]


def sections() -> dict[str, str]:
    """The format of queries.sql once more, as its own comment describes it."""
    result: dict[str, list[str]] = {}
    names: list[str] = []
    body: list[str] = []
    for line in (SQL / "queries.sql").read_text().splitlines():
        if line.startswith("-- name:"):
            if any(body):
                names, body = [], []
            names.append(line.removeprefix("-- name:").strip())
            result[names[-1]] = body
        elif not line.startswith("--"):
            body.append(line)
    return {name: "\n".join(lines) for name, lines in result.items()}


def test_splitmix64_gives_the_published_sequence() -> None:
    # First values for seed 1234567, as the reference implementation prints them.
    random = SplitMix64(1234567)
    assert [random.next() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_the_file_is_the_same_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "mailbox"
    digest = write_mailbox(path, seed=1)
    assert digest == "3e449d49bb56988aec6e17f4c994abd62817d9e89dbba1159090610562dc36a3"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    assert list(tmp_path.iterdir()) == [path]


def test_another_seed_gives_other_mail_of_the_same_shape() -> None:
    other = mailbox_bytes(seed=2)
    assert other != mailbox_bytes(seed=1)
    assert other.count(b"\x1e") == mailbox.MESSAGES
    assert other.count(b"\x1f") == (mailbox.MESSAGES + 1) * (len(mailbox.FIELDS) - 1)


def test_fields_keep_what_the_description_promises(messages: list[dict[str, str]]) -> None:
    assert [int(message["id"]) for message in messages] == list(range(1, mailbox.MESSAGES + 1))
    dates = [int(message["date"]) for message in messages]
    assert dates == sorted(set(dates))
    assert dates[0] > mailbox.NEWEST - mailbox.SPAN_DAYS * 86_400
    assert dates[-1] <= mailbox.NEWEST
    for message in messages:
        size = len(message["body"].encode())
        assert int(message["size"]) == size
        assert mailbox.SIZE_MIN <= size <= mailbox.SIZE_MAX
        assert 20 <= len(message["subject"]) <= 60
        assert (message["subject"] + message["sender"] + message["flags"]).isascii()
        message["body"].encode("latin-1")
        assert "\0" not in message["body"]


def test_mailboxes_are_equal_and_hold_enough_young_mail(messages: list[dict[str, str]]) -> None:
    newest = int(messages[-1]["date"])
    for name in mailbox.MAILBOXES:
        own = [message for message in messages if message["mailbox"] == name]
        assert [int(message["uid"]) for message in own] == list(range(1, mailbox.MESSAGES // 4 + 1))
        assert sum(int(message["date"]) > newest - SINCE for message in own) > 100


def test_schema_and_queries_run_and_use_the_index(messages: list[dict[str, str]]) -> None:
    queries = sections()
    database = sqlite3.connect(":memory:")
    try:
        database.executescript((SQL / "schema.sql").read_text())
        database.executemany(queries["load_message"], [tuple(message.values()) for message in messages])
        database.execute(queries["load_attachments"])
        sizes = database.execute(
            "SELECT length(content), typeof(content), count(DISTINCT content), min(id), max(id) "
            "FROM attachments GROUP BY 1 ORDER BY 1"
        ).fetchall()
        assert sizes == [
            (3_000, "blob", 16, 1, 16),
            (30_000, "blob", 16, 101, 116),
            (100_000, "blob", 16, 201, 216),
        ]
        parameters = ("INBOX", int(messages[-1]["date"]) - SINCE)
        rows = database.execute(queries["select_range"], parameters).fetchall()
        assert (len(rows), len(rows[0])) == (50, 4)
        plan = database.execute("EXPLAIN QUERY PLAN " + queries["select_range"], parameters).fetchall()
        assert "USING INDEX messages_mailbox_date" in plan[0][3]
        assert "TEMP B-TREE" not in str(plan)
    finally:
        database.close()
