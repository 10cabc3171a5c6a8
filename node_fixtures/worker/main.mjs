// The measured side: node [flags] main.mjs job.json. Events go to the file named in the job; stdout and
// stderr belong to the program under test. Runs unchanged on every Node from 18 on and needs nothing else.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getHeapStatistics } from 'node:v8';

import { askVersions, loadDatabase } from './addon.mjs';
import { GcLog, collectYoung, settle, stopYoungTasks } from './collector.mjs';
import { digest } from './digest.mjs';
import { Events, describe } from './events.mjs';
import { installGuards, running, step } from './guard.mjs';
import { identity } from './identity.mjs';
import { Operation } from './operation.mjs';
import { coldPass, finish, semiSpaceBytes, timedPass, useThreadClock } from './pass.mjs';
import { mainThreadClock, openProbe } from './probe.mjs';

const { hrtime } = process;
const exit = process.exit.bind(process);

const PROTOCOL = 1;
const CHECKSUM_CALLS = 1;
// In parts, so that the optimised loop is also entered from its start and not only in mid-run.
const WARMUP_PARTS = 4;
const CALIBRATION_BATCH_NS = 25_000_000;
const CALIBRATION_BATCHES = 2;
const CALIBRATION_MIN_CALLS = 3;
const BATCH_LIMIT = 1e8;

class Worker {
  #job;
  #events;
  #gcLog = new GcLog();
  #alive = [];
  #startNs = hrtime.bigint();
  #stage = 'load';
  #ended = false;

  constructor(job, events) {
    this.#job = job;
    this.#events = events;
  }

  async run() {
    if (this.#job.protocol !== PROTOCOL) {
      throw new Error(`the job speaks protocol ${this.#job.protocol}, this worker ${PROTOCOL}`);
    }
    const Database = await this.#load();
    if (this.#job.mode !== 'load') await this.#operations(Database);
    this.#end({ type: 'done', wall_ns: Number(hrtime.bigint() - this.#startNs) });
  }

  /** Last event of a worker that cannot go on. */
  fail(error) {
    this.#end({ type: 'failed', stage: this.#stage, ...describe(error) });
  }

  /** Something ended the process under our feet: almost always process.exit() in an operation. */
  exiting(code) {
    if (this.#ended) return;
    const where = running();
    const place = where === null ? this.#stage : `${where.op}, stage ${where.stage}`;
    process.exitCode = 1;
    this.fail(new Error(`the process was ended with exit code ${code} (process.exit) in ${place}`));
  }

  #end(event) {
    if (this.#ended) return;
    this.#ended = true;
    this.#events.emit(event);
    this.#events.close();
  }

  async #load() {
    const { addon, family, environment } = this.#job;
    const Database = family === 'sqlite' && addon !== null ? loadDatabase(addon) : undefined;
    // Opening a database maps the binary, so ask first and look at the mappings then.
    const addon_versions = Database === undefined ? {} : askVersions(Database);
    const proof = identity(addon?.binding);
    const heap = { heap_limit_bytes: getHeapStatistics().heap_size_limit, semi_space_bytes: semiSpaceBytes() };
    const clock = mainThreadClock(this.#job);
    useThreadClock(clock);
    // Only where nothing is timed for a verdict: the collections would change what a cold pass finds.
    const cost =
      this.#job.mode === 'calibrate' ? { gc_accounting_ns: await this.#gcLog.accountingCostNs() } : {};
    this.#events.emit({ type: 'hello', protocol: PROTOCOL, environment, ...proof, addon_versions, ...heap, ...cost });
    return Database;
  }

  async #operations(Database) {
    this.#stage = 'operations';
    this.#alive = this.#job.operations.map((operation, position) => new Operation(operation, position));
    await this.#each('import', (op) => this.#begin(op, 'setup', 0, () => op.load(), 'import'));
    const probe = openProbe(this.#job);
    await this.#each('setup', (op) => this.#setup(op, context(this.#job, Database, probe, op)));
    await rehearse(this.#gcLog);
    await this.#each('cold', (op) => this.#cold(op));
    await this.#each('checksum', (op) => this.#checksum(op, 'before'));
    stopYoungTasks();
    if (this.#job.mode === 'calibrate') {
      await this.#each('calibrate', (op) => this.#calibrate(op));
    } else {
      await this.#each('warmup', (op) => this.#warmUp(op));
      // Interleaved: noise comes in bursts that last longer than one pass.
      for (let index = 0; index < this.#job.passes; index++) {
        await this.#each('pass', (op) => this.#pass(op, index));
      }
      await this.#each('checksum', (op) => this.#checksum(op, 'after'));
    }
    await this.#each('teardown', (op) => this.#tearDown(op));
  }

  /** `action` for every operation that has not failed yet; one that fails is reported and left out. */
  async #each(stage, action) {
    for (const op of [...this.#alive]) {
      try {
        await action(op);
      } catch (error) {
        this.#alive = this.#alive.filter((other) => other !== op);
        op.forget();
        const failedStage = error?.[STAGE] ?? stage;
        this.#events.emit({ type: 'op_failed', op: op.name, stage: failedStage, ...describe(unwrap(error)) });
      }
    }
  }

  /** Run one guarded step after a `begin` event that names it, should it hang or crash. */
  async #begin(op, stage, index, body, shownStage = stage) {
    this.#events.emit({ type: 'begin', op: op.name, stage, index });
    try {
      return await step(op.name, shownStage, async () => {
        const value = await body();
        // Rejections that nobody handles are announced between turns of the loop: hear of them while it is
        // still known whose they are.
        await settle();
        return value;
      });
    } catch (error) {
      throw new StepError(shownStage, error);
    }
  }

  async #restore(op, index) {
    if (op.canRestore) await this.#begin(op, 'restore', index, () => op.restore());
  }

  async #tearDown(op) {
    if (op.canTearDown) await this.#begin(op, 'teardown', 0, () => op.teardown());
  }

  async #setup(op, ctx) {
    const start = hrtime.bigint();
    await this.#begin(op, 'setup', 1, () => op.setup(ctx));
    this.#events.emit({ type: 'setup', op: op.name, wall_ns: Number(hrtime.bigint() - start) });
  }

  async #cold(op) {
    const calls = Math.max(1, op.job.cold_calls);
    await this.#restore(op, 0);
    const [event] = await this.#begin(op, 'cold', 0, async () => {
      // The set-ups' garbage is not the cold pass's.
      collectYoung();
      const reading = await coldPass(op, calls);
      return finish(this.#gcLog, { op: op.name, phase: 'cold', index: 0, calls }, [reading]);
    });
    op.forget();
    this.#events.emit(event);
  }

  async #pass(op, index) {
    const { loops: calls, laps = 1 } = op.job;
    await this.#restore(op, index);
    const events = await this.#begin(op, 'pass', index, async () => {
      // An operation alone in its process inherits nothing but its own garbage, and is to pay for it.
      const shared = this.#job.operations.length > 1;
      if (shared) op.young.prepare(index);
      const readings = [];
      for (let lap = 0; lap < laps; lap++) readings.push(await timedPass(op, calls));
      const timed = { op: op.name, phase: 'pass', index, calls };
      const passes = await finish(this.#gcLog, timed, readings);
      if (shared) op.young.learn({ collected: passes.some((pass) => pass.gc.length > 0) });
      return passes;
    });
    op.forget();
    events.forEach((event) => this.#events.emit(event));
  }

  async #checksum(op, when) {
    await this.#restore(op, 0);
    const value = await this.#begin(op, 'checksum', 0, async () => digest(await op.values(CHECKSUM_CALLS)));
    this.#events.emit({ type: 'checksum', op: op.name, when, value });
  }

  async #warmUp(op) {
    const total = op.job.warmup_calls;
    for (let part = 0, done = 0; part < WARMUP_PARTS; part++) {
      const calls = Math.floor((total * (part + 1)) / WARMUP_PARTS) - done;
      done += calls;
      if (calls > 0) await this.#batch(op, 'warmup', part, calls);
    }
    op.forget();
  }

  /** Wall time (ns) of `calls` calls. */
  async #batch(op, stage, index, calls) {
    await this.#restore(op, index);
    return this.#begin(op, stage, index, async () => {
      const { start, end } = await timedPass(op, calls);
      op.young.learn({ collected: true });
      return Number(end - start);
    });
  }

  async #calibrate(op) {
    let spentNs = 0;
    const warmNs = this.#job.calibrate_ns * (op.job.warmup_factor ?? 1);
    const leastCalls = Math.max(CALIBRATION_MIN_CALLS, op.job.warmup_calls);
    let warmCalls = 0;
    let nsPerCall = 0;
    let index = 0;
    for (let calls = 1; spentNs < warmNs || warmCalls < leastCalls; ) {
      const wallNs = await this.#batch(op, 'calibrate', index++, calls);
      spentNs += wallNs;
      warmCalls += calls;
      nsPerCall = wallNs / calls;
      // Doubling, but never so far that one batch overshoots the time given.
      calls = Math.min(calls * 2, callsIn(this.#job.calibrate_ns / 4, nsPerCall));
    }
    const calls = callsIn(CALIBRATION_BATCH_NS, nsPerCall);
    let fastestNs = Infinity;
    for (let k = 0; k < CALIBRATION_BATCHES; k++) {
      fastestNs = Math.min(fastestNs, await this.#batch(op, 'calibrate', index++, calls));
    }
    op.forget();
    this.#events.emit({ type: 'calibration', op: op.name, calls, wall_ns: fastestNs, total_calls: op.next });
  }
}

/** Let V8 compile the code around the clock, or the first operation's cold pass would pay for it. */
async function rehearse(gcLog) {
  for (const run of [() => 0, async () => 0]) {
    const op = new Operation({ name: 'rehearsal' }, 0);
    op.use({ run });
    await op.setup({});
    await finish(gcLog, {}, [await coldPass(op, 2)]);
    await finish(gcLog, {}, [await timedPass(op, 2)]);
  }
}

function callsIn(ns, nsPerCall) {
  return Math.max(1, Math.min(BATCH_LIMIT, Math.floor(ns / Math.max(nsPerCall, 1e-3))));
}

const STAGE = Symbol('stage');

/** Carries the stage of a failed step; the error inside may be any value, frozen or a primitive. */
class StepError extends Error {
  constructor(stage, inner) {
    super('');
    this[STAGE] = stage;
    this.inner = inner;
  }
}

function unwrap(error) {
  return error instanceof StepError ? error.inner : error;
}

/** What a module's setup() gets. */
function context(job, Database, probe, op) {
  const dir = join(job.scratch, `${op.position}-${op.name.replace(/[^\w.-]/g, '_')}`);
  mkdirSync(dir, { recursive: true });
  const ctx = { dir, seed: job.seed, params: Object.freeze({ ...job.params }) };
  if (job.mailbox !== null) ctx.mailbox = job.mailbox;
  if (probe !== null) ctx.probe = probe;
  if (Database !== undefined) {
    const { kind, encrypted } = job.addon;
    Object.assign(ctx, { Database, addon: Object.freeze({ kind, encrypted }), cipher: job.cipher });
  }
  return Object.freeze(ctx);
}

async function main(path) {
  const job = JSON.parse(readFileSync(path, 'utf8'));
  const events = new Events(job.output);
  const worker = new Worker(job, events);
  installGuards((error) => {
    worker.fail(error);
    exit(1);
  });
  process.on('exit', (code) => worker.exiting(code));
  try {
    await worker.run();
  } catch (error) {
    worker.fail(error);
    exit(1);
  }
  // Operations may have left timers or handles behind.
  exit(0);
}

main(process.argv[2]).catch((error) => {
  process.stderr.write(`worker: ${describe(error).message}\n`);
  exit(1);
});
