// boundary.<operation>: the calls of an operation on the addon's own code, with a SQLite behind it that plays recorded
// rows and computes nothing (replay/sqlite3.c). The rows are recorded here: set-up runs the real operation once for
// each of its arguments, and makes sure that the replay gives the same values.
//
// `run` is that of the real operation. For the recording it is imported a second time: it is to see one class of
// statement only, as in the operation itself.

import { isDeepStrictEqual } from 'node:util';

import { workloads as binds } from '../../sqlcipher_bench/operations/bind_text.mjs';
import { sql } from '../../sqlcipher_bench/operations/lib/sql.mjs';
import { workloads as selects } from '../../sqlcipher_bench/operations/select.mjs';
import { workloads as writes } from '../../sqlcipher_bench/operations/write.mjs';
import { play } from './tape.mjs';

// How the result of a call holds rows, and what makes the statement return it like that.
const RESULTS = {
  rows: { rowsOf: (result) => result.map((row) => Object.values(row)), shape: (statement) => statement },
  arrays: { rowsOf: (result) => result, shape: (statement) => statement.raw() },
  row: { rowsOf: (result) => [Object.values(result)], shape: (statement) => statement },
  scalar: { rowsOf: (result) => [[result]], shape: (statement) => statement.pluck() },
};

/** The instance of a module of operations that records. */
async function recorder(file, name) {
  const url = new URL(`../../sqlcipher_bench/operations/${file}.mjs`, import.meta.url);
  url.search = `record=${name}`;
  return (await import(url.href)).workloads[name];
}

function assertEqual(name, i, expected, found) {
  if (isDeepStrictEqual(expected, found)) return;
  throw new Error(`the replay of ${name} gives something else than the database in call ${i}`);
}

function teardown(state) {
  state.replay.close();
  state.release();
}

/** An operation that reads, of the workloads `real`: `calls` is the number of calls after which its arguments come again. */
function reading(file, real, name, calls, parameters, kind) {
  const { rowsOf, shape } = RESULTS[kind];
  return {
    setup: async (ctx) => {
      const { Replay } = ctx.probe;
      const operation = await recorder(file, name);
      const heard = { callee: '', callback: undefined, calls: [] };
      const state = operation.setup(listening(ctx, heard));
      const columns = state.statement.columns().map((column) => column.name);
      const results = [];
      const recordings = [];
      for (let i = 0; i < calls; i++) {
        heard.calls = [];
        results.push(operation.run(state, i));
        recordings.push({ rows: rowsOf(results[i]), calls: heard.calls });
      }
      const text = sql(name);
      const replay = play(Replay, [{ sql: text, parameters, readonly: true, columns, callee: heard.callee, recordings }]);
      if (heard.callback !== undefined) replay.function(heard.callee, heard.callback);
      // Same arguments, other statement. The database stays open: blobs go through the C library's allocator, which
      // is faster or slower with what else lies in its heap.
      const played = { ...state, replay, statement: shape(replay.prepare(text)), release: () => operation.teardown(state) };
      for (let i = 0; i < calls; i++) assertEqual(name, i, results[i], operation.run(played, i));
      replay.exec('@rewind');
      return played;
    },
    run: real[name].run,
    teardown,
  };
}

/** A context whose database tells of the function that is registered, and of the arguments it is called with. */
function listening(ctx, heard) {
  return {
    ...ctx,
    Database: class Listening extends ctx.Database {
      function(name, callback) {
        heard.callee = name;
        heard.callback = callback;
        return super.function(name, (argument) => {
          heard.calls.push(argument);
          return callback(argument);
        });
      }
    },
  };
}

/** An operation that writes, of the workloads `real`; `pick` makes the state of its `run` from that of the real one. */
function writing(real, name, parameters, rowidStep, pick) {
  return {
    setup: async (ctx) => {
      const { Replay } = ctx.probe;
      const operation = await recorder('write', name);
      const state = operation.setup(ctx);
      const { result, changes, lastInsertRowid } = recordWrite(operation, state);
      const nothing = { parameters: 0, readonly: true, columns: [], recordings: [{ rows: [] }] };
      const write = { rows: [], changes, rowid: lastInsertRowid, rowidStep };
      const replay = play(Replay, [
        { ...nothing, sql: 'BEGIN IMMEDIATE' },
        { ...nothing, sql: 'COMMIT' },
        { ...nothing, sql: sql(name), parameters, readonly: false, recordings: [write] },
      ]);
      const writer = { begin: replay.prepare('BEGIN IMMEDIATE'), commit: replay.prepare('COMMIT') };
      const statement = replay.prepare(sql(name));
      const played = { ...pick(state), replay, writer, statement, release: () => operation.teardown(state) };
      assertEqual(name, 0, result, operation.run(played, 0));
      rewindWrites(played);
      return played;
    },
    run: real[name].run,
    restore: rewindWrites,
    teardown,
  };
}

/** The result of the first call, and what its first statement said that changes rows. */
function recordWrite(operation, state) {
  const { statement } = state;
  let first;
  const recording = {
    run: (...values) => {
      const info = statement.run(...values);
      first = first ?? info;
      return info;
    },
  };
  state.statement = recording;
  const result = operation.run(state, 0);
  state.statement = statement;
  operation.restore(state);
  return { result, ...first };
}

function rewindWrites(state) {
  for (const counter of ['inserted', 'updated', 'deleted']) if (counter in state) state[counter] = 0;
  state.replay.exec('@rewind');
}

const inserting = ({ messages }) => ({ messages, inserted: 0 });
const updating = ({ ids }) => ({ ids, updated: 0 });
// When all ids are through, they come again: there is nothing to put back.
const deleting = ({ ids }) => ({
  ids,
  deleted: 0,
  refill() {
    this.deleted = 0;
  },
});

/** The replays of the operations in the modules given: `[name, workload]`. */
export function replays(selects, binds, writes) {
  const select = (name, ...rest) => [name, reading('select', selects, name, ...rest)];
  const bind = (name) => [name, reading('bind_text', binds, name, 4, 1, 'scalar')];
  const write = (name, ...rest) => [name, writing(writes, name, ...rest)];
  return [
    select('select_point', 1000, 1, 'row'),
    select('select_range', 4, 2, 'rows'),
    select('select_range_raw', 4, 2, 'arrays'),
    select('select_iterate', 4, 2, 'rows'),
    select('select_uncached', 4, 2, 'rows'),
    select('select_udf', 4, 2, 'scalar'),
    select('select_blob_3k', 16, 1, 'scalar'),
    select('select_blob_30k', 16, 1, 'scalar'),
    select('select_blob_100k', 16, 1, 'scalar'),
    bind('bind_text_ascii_20'),
    bind('bind_text_ascii_200'),
    bind('bind_text_ascii_2k'),
    bind('bind_text_ascii_10k'),
    bind('bind_text_latin1_2k'),
    bind('bind_text_twobyte_2k'),
    write('insert_row', 8, 1, inserting),
    write('insert_batch', 8, 1, inserting),
    write('update_row', 2, 0, updating),
    write('delete_row', 1, 0, deleting),
  ];
}

export const workloads = Object.fromEntries(
  replays(selects, binds, writes).map(([name, workload]) => [`boundary.${name}`, workload]),
);
