// The garbage collector: what it did inside a window of time, and when it runs.
import { PerformanceObserver, performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

// Kept here because a workload may replace globals.
const { Promise, setImmediate } = globalThis;
const { hrtime } = process;

const NAME_OF_KIND = {
  1: 'scavenge',
  2: 'minor_mark_sweep',
  4: 'mark_sweep_compact',
  8: 'incremental',
  16: 'weak',
};

const ACCOUNTING_COLLECTIONS = 80;

const yieldToLoop = () => new Promise((resolve) => setImmediate(resolve));

/** Entries of the main thread's collections, by window. */
export class GcLog {
  #entries = [];
  #observer = new PerformanceObserver((list) => this.#entries.push(...list.getEntries()));
  #originNs;

  constructor() {
    this.#observer.observe({ entryTypes: ['gc'] });
    const before = hrtime.bigint();
    const sinceOriginNs = BigInt(Math.round(performance.now() * 1e6));
    this.#originNs = (before + hrtime.bigint()) / 2n - sinceOriginNs;
  }

  /**
   * Collections that started in each of some windows `{ start, end }` of `hrtime`, as `Gc` values of the protocol.
   *
   * Entries reach JS through a native immediate: after one turn of the event loop all of them are there
   * (measured on Node 18, 20, 22, 24 and 26, with 160 collections in one synchronous second). The second
   * turn is a reserve.
   */
  async take(windows) {
    await yieldToLoop();
    await yieldToLoop();
    // Node 14 has no takeRecords, and the kind of a collection in the entry itself.
    this.#entries.push(...(this.#observer.takeRecords?.() ?? []));
    const found = windows.map(({ start, end }) => this.#within(start, end));
    this.#entries.length = 0;
    return found;
  }

  #within(startNs, endNs) {
    const from = Number(startNs - this.#originNs) / 1e6;
    const to = Number(endNs - this.#originNs) / 1e6;
    const kinds = new Map();
    for (const entry of this.#entries) {
      const { startTime, duration } = entry;
      if (startTime < from || startTime > to) continue;
      const number = (entry.detail ?? entry).kind;
      const kind = NAME_OF_KIND[number] ?? `kind_${number}`;
      const gc = kinds.get(kind) ?? { kind, count: 0, pause_ns: 0 };
      gc.count += 1;
      gc.pause_ns += Math.round(duration * 1e6);
      kinds.set(kind, gc);
    }
    return [...kinds.values()];
  }

  /**
   * What the accounting adds to one collection, in ns: lower quartile with an observer less that without.
   *
   * Without means without any: V8 is asked about collections as long as one observer is left. In the order
   * off, on, on, off, and each after another collection: the second of two in a row is 3 us faster, which is
   * more than what is looked for (about 1 us). Costs some 20 ms.
   */
  async accountingCostNs() {
    const times = { on: [], off: [] };
    for (let k = 0; k < ACCOUNTING_COLLECTIONS; k++) {
      const arm = ((k >> 1) ^ k) & 1 ? 'on' : 'off';
      if (arm === 'off') this.#observer.disconnect();
      await yieldToLoop();
      times[arm].push(timedMinorGc());
      if (arm === 'off') this.#observer.observe({ entryTypes: ['gc'] });
    }
    await yieldToLoop();
    this.#entries.length = 0;
    return Math.max(0, Math.round(lowerQuartile(times.on) - lowerQuartile(times.off)));
  }
}

function timedMinorGc() {
  minorGc();
  const start = hrtime.bigint();
  minorGc();
  return Number(hrtime.bigint() - start);
}

function lowerQuartile(values) {
  return values.sort((a, b) => a - b)[values.length >> 2];
}

/** Turns of the event loop, for whatever an operation left to be delivered. */
export async function settle() {
  await yieldToLoop();
  await yieldToLoop();
}

/**
 * `gc({type: 'minor'})` without `--expose-gc` on the command line. The flag is taken back at once: the hash
 * of all flags decides whether V8 accepts cached code.
 */
function exposeMinorGc() {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  return () => gc({ type: 'minor' });
}

const minorGc = exposeMinorGc();

/** Empty the young generation. Minor, because a full collection ages (and in the end drops) bytecode. */
export function collectYoung() {
  minorGc();
}

/**
 * Let the young generation be collected only when it is full.
 *
 * V8 also collects it from a task of the event loop when it is four fifths full. The harness turns the loop
 * between passes, outside of the clock, so that task would take most collections out of the passes: of
 * JSON.parse on Node 20, 0.83 scavenges per pass in one long loop, none with the task, 0.47 without it.
 * Called after the cold passes: it changes the flag hash, so modules loaded for the first time would compile
 * without V8's code cache.
 */
export function stopYoungTasks() {
  const v8Major = Number(process.versions.v8.split('.')[0]);
  setFlagsFromString(v8Major < 11 ? '--no-scavenge-task' : '--no-minor-gc-task');
}
