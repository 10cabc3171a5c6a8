-- The SQL of every operation, the only copy: read by the JavaScript operations and by the C program.
--
-- Format: a section begins with one or more lines "-- name: NAME" (operations that run the same SQL share the
-- text) and ends where the next name line begins. Lines that begin with "--" are comments. Parameters are
-- positional; their meaning stands above the statement. Where "date" is one, it is the date of the newest
-- message of the mailbox file less 30 days.

-- The production profile of the published suite, in the order in which it has to be applied: after the key,
-- encoding and auto_vacuum before the first page is written (which switching to WAL does).
-- name: pragmas
PRAGMA encoding = 'UTF-8';
PRAGMA auto_vacuum = FULL;
PRAGMA journal_mode = WAL;
PRAGMA secure_delete = ON;
PRAGMA synchronous = NORMAL;
PRAGMA foreign_keys = ON;
PRAGMA temp_store = 1;
PRAGMA busy_timeout = 30000;

-- Loading: all fields of one record of the mailbox file, in its order.
-- name: load_message
INSERT INTO messages (id, mailbox, uid, date, subject, sender, flags, size, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- Loading, once, after the messages: 16 attachments each of 3,000 bytes (id 1 to 16), 30,000 (101 to 116) and
-- 100,000 (201 to 216), cut out of consecutive messages.
-- name: load_attachments
WITH RECURSIVE
  number (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM number WHERE n < 16),
  kind (base, bytes, span) AS (VALUES (0, 3000, 2), (100, 30000, 12), (200, 100000, 36))
INSERT INTO attachments (id, content)
SELECT
  base + n,
  substr((
    SELECT CAST(group_concat(body, '') AS BLOB)
    FROM (SELECT body FROM messages WHERE id > n * 50 AND id <= n * 50 + span ORDER BY id)
  ), 1, bytes)
FROM kind CROSS JOIN number;

-- The first read after the key: it fails where the key is wrong.
-- name: open_key
SELECT count(*) AS tables FROM sqlite_master;

-- id
-- name: select_point
SELECT id, subject, sender, date FROM messages WHERE id = ?;

-- mailbox, date: the published query, "latest 50 of the last 30 days", counted from the newest message.
-- name: select_range
-- name: select_range_raw
-- name: select_iterate
-- name: select_uncached
SELECT id, subject, sender, date FROM messages WHERE mailbox = ? AND date > ? ORDER BY date DESC LIMIT 50;

-- id
-- name: select_blob_3k
-- name: select_blob_30k
-- name: select_blob_100k
SELECT content FROM attachments WHERE id = ?;

-- text
-- name: bind_text_ascii_20
-- name: bind_text_ascii_200
-- name: bind_text_ascii_2k
-- name: bind_text_ascii_10k
-- name: bind_text_latin1_2k
-- name: bind_text_twobyte_2k
SELECT length(?);

-- mailbox, date: 50 calls of a scalar function that the caller registers as call_js, index only.
-- name: select_udf
SELECT sum(call_js(date)) AS total
FROM (SELECT date FROM messages WHERE mailbox = ? AND date > ? ORDER BY date DESC LIMIT 50);

-- mailbox, uid, date, subject, sender, flags, size, body
-- name: insert_row
-- name: insert_batch
INSERT INTO messages (mailbox, uid, date, subject, sender, flags, size, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- flags, id
-- name: update_row
UPDATE messages SET flags = ? WHERE id = ?;

-- id
-- name: delete_row
DELETE FROM messages WHERE id = ?;

-- Undoing the inserts, untimed: highest id of the mailbox file.
-- name: undo_inserts
DELETE FROM messages WHERE id > ?;

-- After loading and after undoing, untimed: everything is in the database file and the next write begins the
-- WAL anew. Not TRUNCATE, which also throws away the page cache: the passes would begin by reading it again.
-- name: checkpoint
PRAGMA wal_checkpoint(PASSIVE);
