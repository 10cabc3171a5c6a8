// The probe addons of a job: what `ctx.probe` offers to operations, and the main thread's CPU clock.
import { createRequire } from 'node:module';

import { loadDatabase } from './addon.mjs';

const require = createRequire(import.meta.url);

/**
 * `ctx.probe`, or null for a job without probes. Each binary is loaded when it is first asked for, so that an
 * operation which needs one only runs in a process with that one.
 *
 * `boundary` and `napi` are the primitives in V8's API and in Node-API, `core` the loops in C, `Replay` the addon's
 * class on a SQLite that plays recorded rows; `dialect` and `rowBuilder` tell how the addon is made. Reading one that was not built throws the reason.
 */
export function openProbe(job) {
  const { probe, addon } = job;
  if (probe === undefined || probe === null) return null;
  return Object.freeze({
    dialect: probe.dialect,
    rowBuilder: probe.row_builder ?? null,
    get boundary() {
      return require(probe.boundary);
    },
    get napi() {
      if (probe.boundary_napi === null) throw new Error('this Node has no Node-API that the probe can be built for');
      return require(probe.boundary_napi);
    },
    get core() {
      if (probe.core === null) throw new Error(probe.core_reason || 'there is no SQLite to loop on');
      return require(probe.core);
    },
    get Replay() {
      if (probe.replay === null) throw new Error(probe.reason || 'there is no addon whose calls could be replayed');
      return loadDatabase({ ...addon, binding: probe.replay });
    },
  });
}

/**
 * Reads the CPU time of the calling thread into `times`: microseconds in user mode, in the kernel, and (of both) in
 * collections. Null where the job has no probe.
 */
export function mainThreadClock(job) {
  if (job.probe === undefined || job.probe === null) return null;
  return require(job.probe.boundary).threadTimes;
}
