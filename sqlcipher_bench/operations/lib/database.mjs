// Opens the encrypted mailbox. Deriving a key takes about 50 ms and loading the mailbox as long again, so the
// operations of a process share one database that is only read, and one that is written.

import { closeSync, copyFileSync, existsSync, openSync, readSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { readMailbox } from './mailbox.mjs';
import { applyPragmas, settingsOf } from './pragmas.mjs';
import { schema, sql } from './sql.mjs';

// Public on purpose: the data are synthetic, and a reproduction has to open the same file.
export const PASSPHRASE = 'a public passphrase for synthetic mail';
const PLAIN_HEADER = 'SQLite format 3\0';
const FIELDS = ['id', 'mailbox', 'uid', 'date', 'subject', 'sender', 'flags', 'size', 'body'];

const shared = new Map();

/** The database that is only read: {db, file, mailbox, users}. Give it back with `release`. */
export function acquireReader(ctx) {
  return acquire(join(dirname(ctx.dir), 'reader.db'), (file) => {
    const mailbox = readMailbox(ctx.mailbox);
    const db = openDatabase(ctx, file);
    fill(db, mailbox);
    assertEncryption(ctx, file);
    return { db, mailbox };
  });
}

/** The database that is written: a copy of the other, with the `undo` steps that the operations register. */
export function acquireWriter(ctx) {
  return acquire(join(dirname(ctx.dir), 'writer.db'), (file) => {
    const reader = acquireReader(ctx);
    copyFileSync(reader.file, file);
    const db = openDatabase(ctx, file);
    return {
      db,
      // Kept until the end, or an operation set up after this one would have to load the mailbox again.
      reader,
      mailbox: reader.mailbox,
      begin: db.prepare('BEGIN IMMEDIATE'),
      commit: db.prepare('COMMIT'),
      checkpoint: db.prepare(sql('checkpoint')),
      undo: new Map(),
    };
  });
}

/** Closes the connection with its last user. */
export function release(entry) {
  entry.users -= 1;
  if (entry.users > 0) return;
  shared.delete(entry.file);
  entry.db.close();
  if (entry.reader !== undefined) release(entry.reader);
}

/**
 * Puts the rows of the written database back, whichever operations changed them, and checkpoints. A step of
 * `undo` tells whether it has anything to do (`dirty`) and does it (`apply`) inside the transaction.
 */
export function restoreWriter(writer) {
  const steps = [...writer.undo.values()].filter((step) => step.dirty());
  if (steps.length === 0) return;
  writer.begin.run();
  for (const step of steps) step.apply();
  writer.commit.run();
  writer.checkpoint.get();
}

/** A connection with the key, and nothing else: the file may be new or old. */
export function openWithKey(ctx, file) {
  const db = new ctx.Database(file);
  if (isEncrypted(ctx)) {
    if (!/^[a-z0-9]+$/.test(ctx.cipher)) throw new Error(`${ctx.cipher} is not the name of a cipher scheme`);
    db.exec(`PRAGMA cipher = '${ctx.cipher}'`);
    db.exec(`PRAGMA key = '${PASSPHRASE}'`);
  }
  return db;
}

/** A connection with the key and the PRAGMA profile; the file exists, or is made. */
export function openDatabase(ctx, file) {
  const settings = settingsOf(ctx.params);
  const isNewFile = !existsSync(file);
  const db = openWithKey(ctx, file);
  applyPragmas(db, settings, { isNewFile });
  return db;
}

/** A statement whose `get` returns the first column, where the addon can do that (node:sqlite cannot). */
export function prepareScalar(ctx, db, text) {
  const statement = db.prepare(text);
  return isNodeSqlite(ctx) ? statement : statement.pluck();
}

/** A statement whose rows are arrays. */
export function prepareRaw(ctx, db, text) {
  const statement = db.prepare(text);
  if (!isNodeSqlite(ctx)) return statement.raw();
  demand(statement, 'setReturnArrays', '22.16 and 24.0');
  statement.setReturnArrays(true);
  return statement;
}

/** A statement that can be iterated. */
export function prepareIterate(ctx, db, text) {
  const statement = db.prepare(text);
  if (isNodeSqlite(ctx)) demand(statement, 'iterate', '22.13 and 23.4');
  return statement;
}

/** Registers a scalar SQL function written in JavaScript. */
export function registerFunction(ctx, db, name, callback) {
  if (isNodeSqlite(ctx)) demand(db, 'function', '22.13 and 23.5');
  db.function(name, callback);
}

function acquire(file, create) {
  let entry = shared.get(file);
  if (entry === undefined) {
    for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(file + suffix, { force: true });
    entry = { file, users: 0, ...create(file) };
    shared.set(file, entry);
  }
  entry.users += 1;
  return entry;
}

function fill(db, mailbox) {
  db.exec(schema);
  const insert = db.prepare(sql('load_message'));
  db.exec('BEGIN IMMEDIATE');
  for (const message of mailbox.messages) insert.run(...FIELDS.map((field) => message[field]));
  db.exec(sql('load_attachments'));
  db.exec('COMMIT');
  db.prepare(sql('checkpoint')).get();
}

/** An addon that ignores `PRAGMA key` would be measured without its cipher, and nobody would notice. */
function assertEncryption(ctx, file) {
  const header = Buffer.alloc(PLAIN_HEADER.length);
  const descriptor = openSync(file, 'r');
  readSync(descriptor, header, 0, header.length, 0);
  closeSync(descriptor);
  const isPlain = header.toString('latin1') === PLAIN_HEADER;
  if (isPlain === isEncrypted(ctx)) {
    throw new Error(isPlain ? `the file is not encrypted although cipher ${ctx.cipher} was set` : 'the file is encrypted');
  }
}

export function isEncrypted(ctx) {
  return ctx.addon.encrypted && ctx.cipher !== 'none';
}

function isNodeSqlite(ctx) {
  return ctx.addon.kind === 'node:sqlite';
}

function demand(object, method, since) {
  if (typeof object[method] === 'function') return;
  throw new Error(`node:sqlite of Node ${process.versions.node} has no ${method}(); it came with ${since}`);
}
