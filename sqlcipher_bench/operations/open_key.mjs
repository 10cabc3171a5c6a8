// Open, derive the key, read once, close: what a short-lived process pays. The key derivation is nearly all of it.

import { acquireReader, openWithKey, release } from './lib/database.mjs';
import { sql } from './lib/sql.mjs';

export function setup(ctx) {
  return { ctx, reader: acquireReader(ctx), text: sql('open_key') };
}

export function run(state, _i) {
  const db = openWithKey(state.ctx, state.reader.file);
  const row = db.prepare(state.text).get();
  db.close();
  return row;
}

export function teardown(state) {
  release(state.reader);
}
