// Counts the sqlite3 calls of the addon and of the core loops, operation by operation, and compares what they return:
// node --expose-gc count.mjs job.json. Both libraries were linked with counting.c, and leave their counts in the files
// of job.counts.
//
// The result is {operation: {addon: [count], core: {rowBuilder: [count]}} or {error}}, counts in the order of the names.
import { mkdirSync, openSync, readFileSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';

const require = createRequire(import.meta.url);
const job = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const { gc } = globalThis;
const COMPARED = 4;

/** Reads the counts of one library. */
function counter(path) {
  const file = openSync(path, 'r');
  const buffer = Buffer.alloc(job.names * 8);
  return () => {
    readSync(file, buffer, 0, buffer.length, 0);
    return Array.from({ length: job.names }, (_, index) => Number(buffer.readBigUInt64LE(index * 8)));
  };
}

/** Values of the first calls, and what `count` grows by while `calls` of an operation are made after as many warm ones. */
function counted(functions, ctx, count) {
  const state = functions.setup(ctx);
  const values = Array.from({ length: COMPARED }, (_, i) => functions.run(state, i));
  const call = functions.loop ?? ((_state, from, calls) => repeat(functions.run, state, from, calls));
  call(state, 0, job.calls);
  functions.restore?.(state);
  // Statements that nobody holds any more are finalized by the collector: now, not while it is counted.
  gc();
  gc();
  const before = count();
  call(state, job.calls, job.calls);
  const after = count();
  functions.teardown?.(state);
  return { values, counts: after.map((value, index) => value - before[index]) };
}

function repeat(run, state, from, calls) {
  for (let i = from; i < from + calls; i++) run(state, i);
}

async function load({ module, workload }) {
  const loaded = await import(pathToFileURL(module).href);
  return workload === null ? loaded : loaded.workloads[workload];
}

const { loadDatabase } = await import(pathToFileURL(job.loader).href);
const Database = loadDatabase(job.addon);
// Mapped before its counts can be read; opening a database does it.
new Database(':memory:').close();
const core = require(job.core);
const count = { addon: counter(job.counts.addon), core: counter(job.counts.core) };

let folders = 0;
function context(probe) {
  const dir = join(job.scratch, String(folders++), 'operation');
  mkdirSync(dir, { recursive: true });
  const { encrypted } = job.addon;
  return { dir, seed: 1, params: {}, mailbox: job.mailbox, Database, addon: { kind: 'package', encrypted }, cipher: job.cipher, probe };
}

/** Counts of one operation in the addon, and in the core loop under each row builder. */
function compared(addon, loop) {
  const expected = counted(addon, context({}), count.addon);
  const loops = {};
  for (const rowBuilder of job.row_builders) {
    const { values, counts } = counted(loop, context({ core, rowBuilder }), count.core);
    if (!isDeepStrictEqual(values, expected.values)) throw new Error('the core loop reads other values');
    loops[rowBuilder] = counts;
  }
  return { addon: expected.counts, core: loops };
}

const result = {};
for (const { name, addon, core: loop } of job.operations) {
  try {
    result[name] = compared(await load(addon), await load(loop));
  } catch (error) {
    result[name] = { error: String(error?.message ?? error) };
  }
  for (let k = 0; k < folders; k++) rmSync(join(job.scratch, String(k)), { recursive: true, force: true });
}
writeFileSync(job.output, JSON.stringify(result));
