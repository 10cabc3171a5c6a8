// Times a workload file as the measurement did: node workload.mjs, with settings from settings.json beside it.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const settings = JSON.parse(readFileSync(new URL('settings.json', import.meta.url), 'utf8'));
const exported = await import(new URL(settings.file, import.meta.url).href);
const places = [exported, exported.default].filter((value) => value !== null && typeof value === 'object');
const operation =
  settings.workload === null
    ? places.find((place) => typeof place.run === 'function')
    : places.map((place) => place.workloads).find((found) => found)[settings.workload];
const directory = mkdtempSync(join(process.env.REPRO_TMP ?? tmpdir(), 'repro-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
const context = { dir: directory, seed: settings.seed, params: Object.freeze(settings.params) };
if (settings.database) {
  const { kind, encrypted } = settings.database;
  Object.assign(context, { Database: database(kind), addon: Object.freeze({ kind, encrypted }), cipher: settings.cipher });
}
const state = operation.setup ? await operation.setup(Object.freeze(context)) : undefined;

let sink;
const first = operation.run(state, 0);
const isAsync = typeof first?.then === 'function';
await first;
async function loopAsync(from, to) {
  for (let i = from + 1; i <= to; i++) sink = await operation.run(state, i);
}
function loopSync(from, to) {
  for (let i = from + 1; i <= to; i++) sink = operation.run(state, i);
}

/** The addon that run.mjs compiled for this Node, as a class that finds its own binary; or node:sqlite. */
function database(kind) {
  const require = createRequire(import.meta.url);
  if (kind === 'node:sqlite') return require('node:sqlite').DatabaseSync;
  const Base = require(process.env.REPRO_ADDON);
  return class Database extends Base {
    constructor(name, options) {
      super(name, { nativeBinding: process.env.REPRO_BINDING, ...options });
    }
  };
}

await time({
  warmup: settings.warmup,
  calls: settings.calls,
  passes: settings.passes,
  loop: isAsync ? loopAsync : loopSync,
  restore: operation.restore ? () => operation.restore(state) : undefined,
});
await operation.teardown?.(state);
process.exit(0);
