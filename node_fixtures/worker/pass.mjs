// The clock around the calls. Inside of it nothing happens but the calls.
import { openSync, readSync } from 'node:fs';
import { getHeapSpaceStatistics } from 'node:v8';

import { isThenable } from './operation.mjs';

const { hrtime, memoryUsage, resourceUsage } = process;

// The main thread's CPU clock, where a probe was built: it writes [user, system, in collections] in microseconds.
let readThreadTimes = null;
const timesBefore = new Float64Array(3);
const timesAfter = new Float64Array(3);

export function useThreadClock(readTimes) {
  readThreadTimes = readTimes;
}

// Without a probe the kernel's own account of the main thread stands in: its first number is the time on a processor
// in ns, of user and kernel together. Opened once and read into one buffer, so that a pass finds no garbage of ours.
const ACCOUNT_BYTES = 96;
const account = openAccount();
const accountBefore = Buffer.alloc(ACCOUNT_BYTES);
const accountAfter = Buffer.alloc(ACCOUNT_BYTES);

/** Null where the system keeps no such account (not Linux, or a kernel without it). */
function openAccount() {
  try {
    return openSync('/proc/self/schedstat', 'r');
  } catch {
    return null;
  }
}

/** Right after `resourceUsage`, which makes the kernel bring the account up to date: else it is a tick old. */
function readAccount(buffer) {
  if (account === null || readThreadTimes !== null) return;
  buffer.fill(0);
  readSync(account, buffer, 0, ACCOUNT_BYTES, 0);
}

/** CPU time before the calls: the account is read outside of what `resourceUsage` then bounds. */
function usageBefore() {
  if (account !== null && readThreadTimes === null) {
    resourceUsage();
    readAccount(accountBefore);
  }
  return resourceUsage();
}

/** CPU time after the calls. */
function usageAfter() {
  const usage = resourceUsage();
  readAccount(accountAfter);
  return usage;
}

/**
 * The operation's very first calls in this process; the fold is that of the calls after the first.
 *
 * Returns what `finish` makes a `Pass` event of.
 */
export async function coldPass(operation, calls) {
  const usage = usageBefore();
  if (readThreadTimes !== null) readThreadTimes(timesBefore);
  const start = hrtime.bigint();
  const first = operation.callOnce();
  operation.isAsync = isThenable(first);
  let fold;
  if (operation.isAsync) {
    await first;
    fold = await operation.callMany(calls - 1);
  } else {
    fold = operation.callMany(calls - 1);
  }
  const end = hrtime.bigint();
  if (readThreadTimes !== null) readThreadTimes(timesAfter);
  return reading(usage, start, end, usageAfter(), fold);
}

/** `calls` calls of an operation that has run before. */
export async function timedPass(operation, calls) {
  if (operation.isAsync) {
    const usage = usageBefore();
    if (readThreadTimes !== null) readThreadTimes(timesBefore);
    const start = hrtime.bigint();
    const fold = await operation.callMany(calls);
    const end = hrtime.bigint();
    if (readThreadTimes !== null) readThreadTimes(timesAfter);
    return reading(usage, start, end, usageAfter(), fold);
  }
  return syncPass(operation, calls);
}

function syncPass(operation, calls) {
  const usage = usageBefore();
  if (readThreadTimes !== null) readThreadTimes(timesBefore);
  const start = hrtime.bigint();
  const fold = operation.callMany(calls);
  const end = hrtime.bigint();
  if (readThreadTimes !== null) readThreadTimes(timesAfter);
  return reading(usage, start, end, usageAfter(), fold);
}

function reading(before, start, end, after, fold) {
  const main = readThreadTimes === null ? accountTimes() : threadTimes();
  return { before, start, end, after, fold, main };
}

/** `Pass` events from readings in a row: collections, memory and differences, all of it outside the clock. */
export async function finish(gcLog, { op, phase, index, calls }, readings) {
  const memory = memoryUsage();
  const semi_space_bytes = semiSpaceBytes();
  const collections = await gcLog.take(readings);
  return readings.map(({ before, start, end, after, fold, main }, lap) => ({
    type: 'pass',
    op,
    phase,
    index,
    lap,
    calls,
    start_ns: Number(start),
    wall_ns: Number(end - start),
    cpu_user_us: after.userCPUTime - before.userCPUTime,
    cpu_system_us: after.systemCPUTime - before.systemCPUTime,
    gc: collections[lap],
    involuntary_switches: after.involuntaryContextSwitches - before.involuntaryContextSwitches,
    voluntary_switches: after.voluntaryContextSwitches - before.voluntaryContextSwitches,
    rss_bytes: memory.rss,
    heap_used_bytes: memory.heapUsed,
    external_bytes: memory.external,
    fold,
    ...main,
    semi_space_bytes,
  }));
}

/** CPU time of the main thread in the pass that was read last, by the kernel's account. */
function accountTimes() {
  if (account === null) return {};
  const [before, after] = [accountBefore, accountAfter].map((buffer) => parseInt(buffer.toString('latin1'), 10));
  // A kernel that keeps no account says 0.
  return before > 0 && after >= before ? { main_cpu_us: Math.round((after - before) / 1000) } : {};
}

/** The same by the probe's clock. */
function threadTimes() {
  return {
    main_cpu_us: Math.round(timesAfter[0] - timesBefore[0]) + Math.round(timesAfter[1] - timesBefore[1]),
    main_user_us: Math.round(timesAfter[0] - timesBefore[0]),
    main_system_us: Math.round(timesAfter[1] - timesBefore[1]),
    main_gc_cpu_us: Math.round(timesAfter[2] - timesBefore[2]),
  };
}

/** Half of the young generation as it is committed now. */
export function semiSpaceBytes() {
  const space = getHeapSpaceStatistics().find((one) => one.space_name === 'new_space');
  return Math.floor((space?.space_size ?? 0) / 2);
}
