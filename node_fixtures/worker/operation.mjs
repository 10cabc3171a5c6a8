// One operation: its module, its state, its counter, its loop.
import { pathToFileURL } from 'node:url';

import { compileLoop } from './loop.mjs';
import { YoungLevel } from './young.mjs';

export class Operation {
  name;
  position;
  job;
  /** Next value of `i`; counts up over the whole process, so that keys made of it stay unique. */
  next = 0;
  /** Whether run() returns promises; known after the cold pass. */
  isAsync = false;
  young;
  #functions = null;
  #state;
  #loop = null;

  constructor(job, position) {
    this.job = job;
    this.name = job.name;
    this.position = position;
    this.young = new YoungLevel(position);
  }

  /** Import the module. The query gives each operation an instance, hence type feedback, of its own. */
  async load() {
    const url = pathToFileURL(this.job.module);
    url.search = `operation=${this.position}`;
    this.use(pick(await import(url.href), this.job.workload, this.job.module));
  }

  /**
   * Take `{setup, run, loop, teardown, restore}`; all but run may be missing. `loop(state, from, calls)` stands in for
   * `calls` calls of run from `i = from` and returns their fold: for loops that are to run outside JavaScript.
   */
  use(functions) {
    this.#functions = functions;
  }

  async setup(ctx) {
    this.#state = await this.#functions.setup?.(ctx);
    this.#loop = compileLoop(this.position, this.name, this.#functions.run, this.#state);
  }

  get canRestore() {
    return this.#functions.restore !== undefined;
  }

  get canTearDown() {
    return this.#functions.teardown !== undefined;
  }

  async restore() {
    await this.#functions.restore?.(this.#state);
  }

  async teardown() {
    await this.#functions.teardown?.(this.#state);
  }

  /** One call, not awaited: the first of all, which tells whether run() is asynchronous. */
  callOnce() {
    return this.#functions.run(this.#state, this.next++);
  }

  /** `calls` calls; the fold, or a promise of it if the operation is asynchronous. */
  callMany(calls) {
    const from = this.next;
    this.next += calls;
    if (this.#functions.loop !== undefined) return this.#functions.loop(this.#state, from, calls);
    return this.isAsync ? this.#loop.async(from, calls) : this.#loop.sync(from, calls);
  }

  /** Values of `calls` untimed calls. */
  async values(calls) {
    const values = [];
    for (let k = 0; k < calls; k++) {
      const value = this.callOnce();
      if (isThenable(value) !== this.isAsync) {
        throw new TypeError('run() returns a promise only sometimes; it must on every call or on none');
      }
      values.push(await value);
    }
    return values;
  }

  /** Let go of the last result, so that no other operation's collector has to carry it. */
  forget() {
    this.#loop?.forget();
  }
}

export function isThenable(value) {
  return typeof value?.then === 'function';
}

/** The functions of the module or of one of its `workloads`, from named exports or from the default one. */
function pick(module, workload, path) {
  const candidates = [module, module.default].filter((value) => value !== null && typeof value === 'object');
  const named = candidates.map((candidate) => candidate.workloads).find(isObject);
  const found =
    workload === null
      ? candidates.find((candidate) => typeof candidate.run === 'function')
      : named !== undefined && Object.prototype.hasOwnProperty.call(named, workload)
        ? named[workload]
        : undefined;
  if (found === undefined) throw new TypeError(missing(path, workload, named));
  return checked(found, path);
}

function checked(found, path) {
  const { setup, run, loop, teardown, restore } = found;
  if (typeof run !== 'function') throw new TypeError(`${path}: the workload has no function run(state, i)`);
  for (const [name, value] of Object.entries({ setup, loop, teardown, restore })) {
    if (value !== undefined && typeof value !== 'function') {
      throw new TypeError(`${path}: ${name} is not a function`);
    }
  }
  return { setup, run, loop, teardown, restore };
}

function missing(path, workload, named) {
  const names = named === undefined ? '' : Object.keys(named).join(', ');
  if (workload !== null) return `${path} has no workload '${workload}'; it has: ${names || 'none'}`;
  const hint = names ? ` of its own, only workloads: ${names}` : '; write export function run(state, i)';
  return `${path} exports no function run${hint}`;
}

function isObject(value) {
  return value !== null && typeof value === 'object';
}
