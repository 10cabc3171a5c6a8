
// A mailbox like that of the measurement, in a file of its own.
const messages = mailbox(SEED);
const mailboxes = [...new Set(messages.map((message) => message.mailbox))].sort();
const since = messages.at(-1).date - 30 * 86400;
const fields = (m) => [m.id, m.mailbox, m.uid, m.date, m.subject, m.sender, m.flags, m.size, m.body];
const directory = mkdtempSync(join(process.env.REPRO_TMP ?? tmpdir(), 'repro-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
const file = join(directory, 'mail.db');

function openWithKey(name) {
  const connection = new Database(name);
  for (const pragma of KEY) connection.exec(pragma);
  return connection;
}

function open(name) {
  const connection = openWithKey(name);
  for (const pragma of PRAGMAS) connection.exec(pragma);
  return connection;
}

const db = openWithKey(file);
for (const pragma of [...FILE_PRAGMAS, ...PRAGMAS]) db.exec(pragma);
db.exec(SCHEMA);
db.exec('BEGIN IMMEDIATE');
const loading = db.prepare(LOAD);
for (const message of messages) loading.run(...fields(message));
db.exec(ATTACHMENTS);
db.exec('COMMIT');
db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get();
