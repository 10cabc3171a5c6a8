// Reading rows. Every `run` is written out: operations that share a function would share its type feedback.

import {
  acquireReader,
  openDatabase,
  prepareIterate,
  prepareRaw,
  prepareScalar,
  registerFunction,
  release,
} from './lib/database.mjs';
import { sql } from './lib/sql.mjs';

// With ten pages of cache the 50 rows of a call, a page each, are read and deciphered again on every call.
const UNCACHED_PAGES = 10;

function teardown(state) {
  release(state.reader);
}

function setupPoint(ctx) {
  const reader = acquireReader(ctx);
  const statement = reader.db.prepare(sql('select_point'));
  // 619 has no divisor in common with 1,000: every message once, no two neighbours in a row.
  const count = reader.mailbox.messages.length;
  const ids = reader.mailbox.messages.map((_, index) => ((index * 619) % count) + 1);
  return { reader, statement, ids };
}

function setupRange(prepare) {
  return (ctx) => {
    const reader = acquireReader(ctx);
    const { mailboxes, since } = reader.mailbox;
    return { reader, statement: prepare(ctx, reader.db), mailboxes, since };
  };
}

const setupRangeRows = setupRange((ctx, db) => db.prepare(sql('select_range')));
const setupRangeRaw = setupRange((ctx, db) => prepareRaw(ctx, db, sql('select_range_raw')));
const setupRangeIterate = setupRange((ctx, db) => prepareIterate(ctx, db, sql('select_iterate')));

function setupUncached(ctx) {
  const reader = acquireReader(ctx);
  const db = openDatabase(ctx, reader.file);
  db.exec(`PRAGMA cache_size = ${UNCACHED_PAGES}`);
  const { mailboxes, since } = reader.mailbox;
  return { reader, db, statement: db.prepare(sql('select_uncached')), mailboxes, since };
}

function setupUdf(ctx) {
  const reader = acquireReader(ctx);
  // A connection of its own: the others stay the same whether or not this operation is among the chosen ones.
  const db = openDatabase(ctx, reader.file);
  registerFunction(ctx, db, 'call_js', (date) => date % 86400);
  const { mailboxes, since } = reader.mailbox;
  return { reader, db, statement: prepareScalar(ctx, db, sql('select_udf')), mailboxes, since };
}

function teardownOwn(state) {
  state.db.close();
  release(state.reader);
}

function setupBlob(name, firstId) {
  return (ctx) => {
    const reader = acquireReader(ctx);
    return { reader, statement: prepareScalar(ctx, reader.db, sql(name)), firstId };
  };
}

export const workloads = {
  select_point: {
    setup: setupPoint,
    run: (state, i) => state.statement.get(state.ids[i % 1000]),
    teardown,
  },
  select_range: {
    setup: setupRangeRows,
    run: (state, i) => state.statement.all(state.mailboxes[i % 4], state.since),
    teardown,
  },
  select_range_raw: {
    setup: setupRangeRaw,
    run: (state, i) => state.statement.all(state.mailboxes[i % 4], state.since),
    teardown,
  },
  select_iterate: {
    setup: setupRangeIterate,
    run: (state, i) => {
      const rows = [];
      for (const row of state.statement.iterate(state.mailboxes[i % 4], state.since)) rows.push(row);
      return rows;
    },
    teardown,
  },
  select_uncached: {
    setup: setupUncached,
    run: (state, i) => state.statement.all(state.mailboxes[i % 4], state.since),
    teardown: teardownOwn,
  },
  select_udf: {
    setup: setupUdf,
    run: (state, i) => state.statement.get(state.mailboxes[i % 4], state.since),
    teardown: teardownOwn,
  },
  select_blob_3k: {
    setup: setupBlob('select_blob_3k', 1),
    run: (state, i) => state.statement.get(state.firstId + (i % 16)),
    teardown,
  },
  select_blob_30k: {
    setup: setupBlob('select_blob_30k', 101),
    run: (state, i) => state.statement.get(state.firstId + (i % 16)),
    teardown,
  },
  select_blob_100k: {
    setup: setupBlob('select_blob_100k', 201),
    run: (state, i) => state.statement.get(state.firstId + (i % 16)),
    teardown,
  },
};
