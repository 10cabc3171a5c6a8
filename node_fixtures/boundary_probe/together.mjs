// together.<operation>: the replay of replay.mjs, with the real library's work in its place. Where the addon runs a
// statement, the SQLite that plays recordings has the loop in C (core.mjs) make one call. Between the addon's work and
// Node's that call costs more than in a loop of its own, where caches and branch predictors hold nothing but SQLite.

import { workloads as cores } from '../../sqlcipher_bench/operations/core.mjs';
import { sql } from '../../sqlcipher_bench/operations/lib/sql.mjs';
import { replays } from './replay.mjs';

// Instances of their own: a `run` that the plain replay uses as well would see two kinds of state.
const [{ workloads: selects }, { workloads: binds }, { workloads: writes }] = await Promise.all(
  ['select', 'bind_text', 'write'].map((file) => import(`../../sqlcipher_bench/operations/${file}.mjs?together`)),
);

/** Of a transaction the loop in C makes all of it in one call. */
const firstStatement = (name) => (name === 'insert_batch' ? 'BEGIN IMMEDIATE' : sql(name));

function together(name, replay) {
  const core = cores[`core.${name}`];
  const workload = {
    setup: async (ctx) => {
      const state = await replay.setup(ctx);
      state.core = core.setup(ctx);
      const worker = state.core.core.worker(state.core.handle);
      state.replay.prepare('@pair').run(Buffer.concat([worker, Buffer.from(firstStatement(name))]));
      return state;
    },
    run: replay.run,
    teardown: (state) => {
      replay.teardown(state);
      core.teardown(state.core);
    },
  };
  if (replay.restore === undefined) return workload;
  const restore = (state) => {
    replay.restore(state);
    core.restore(state.core);
  };
  return { ...workload, restore };
}

export const workloads = Object.fromEntries(
  replays(selects, binds, writes).map(([name, replay]) => [`together.${name}`, together(name, replay)]),
);
