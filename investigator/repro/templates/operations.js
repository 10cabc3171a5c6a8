// Bodies of the operations, one a section; SQL, db, open, file and messages are there already. A section defines
// `run(i)` and, where it changes rows, `restore()`.

// name: open_key
const run = (_i) => {
  const own = openWithKey(file);
  const row = own.prepare(SQL).get();
  own.close();
  return row;
};

// name: select_point
const statement = db.prepare(SQL);
const ids = messages.map((_, index) => ((index * 619) % messages.length) + 1);
const run = (i) => statement.get(ids[i % 1000]);

// name: select_range
const statement = db.prepare(SQL);
const run = (i) => statement.all(mailboxes[i % 4], since);

// name: select_range_raw
const statement = db.prepare(SQL).raw();
const run = (i) => statement.all(mailboxes[i % 4], since);

// name: select_iterate
const statement = db.prepare(SQL);
const run = (i) => {
  const rows = [];
  for (const row of statement.iterate(mailboxes[i % 4], since)) rows.push(row);
  return rows;
};

// name: select_uncached
const small = open(file);
small.exec('PRAGMA cache_size = 10');
const statement = small.prepare(SQL);
const run = (i) => statement.all(mailboxes[i % 4], since);

// name: select_udf
db.function('call_js', (date) => date % 86400);
const statement = db.prepare(SQL).pluck();
const run = (i) => statement.get(mailboxes[i % 4], since);

// name: select_blob_3k
const statement = db.prepare(SQL).pluck();
const run = (i) => statement.get(1 + (i % 16));

// name: select_blob_30k
const statement = db.prepare(SQL).pluck();
const run = (i) => statement.get(101 + (i % 16));

// name: select_blob_100k
const statement = db.prepare(SQL).pluck();
const run = (i) => statement.get(201 + (i % 16));

// name: insert_row
const statement = db.prepare(SQL);
const undo = db.prepare('DELETE FROM messages WHERE id > ?');
const insert = (m) => statement.run(m.mailbox, m.uid, m.date, m.subject, m.sender, m.flags, m.size, m.body);
const run = (i) => insert(messages[i % 1000]);
const restore = () => {
  undo.run(messages.length);
  db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get();
};

// name: insert_batch
const statement = db.prepare(SQL);
const begin = db.prepare('BEGIN IMMEDIATE');
const commit = db.prepare('COMMIT');
const undo = db.prepare('DELETE FROM messages WHERE id > ?');
const insert = (m) => statement.run(m.mailbox, m.uid, m.date, m.subject, m.sender, m.flags, m.size, m.body);
const run = (i) => {
  const first = (i % 10) * 100;
  let result;
  begin.run();
  for (let k = first; k < first + 100; k++) result = insert(messages[k]);
  commit.run();
  return result;
};
const restore = () => {
  undo.run(messages.length);
  db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get();
};

// name: update_row
const statement = db.prepare(SQL);
const updated = messages.filter((message) => message.id % 4 === 1).slice(0, 250);
const FLAGS = ['\\Seen \\Answered', '\\Seen \\Flagged \\Deleted'];
const run = (i) => statement.run(FLAGS[Math.floor(i / 250) % 2], updated[i % 250].id).changes;
const restore = () => {
  db.exec('BEGIN IMMEDIATE');
  for (const message of updated) statement.run(message.flags, message.id);
  db.exec('COMMIT');
  db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get();
};

// name: delete_row
const statement = db.prepare(SQL);
const order = messages.slice(0, -1);
const load = db.prepare(LOAD);
let deleted = 0;
const restore = () => {
  db.exec('BEGIN IMMEDIATE');
  for (const m of order.slice(0, deleted)) load.run(...fields(m));
  db.exec('COMMIT');
  db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get();
  deleted = 0;
};
const run = (_i) => {
  if (deleted === order.length) restore();
  deleted += 1;
  return statement.run(order[deleted - 1].id).changes;
};
