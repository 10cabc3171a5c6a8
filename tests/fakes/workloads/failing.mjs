// Every way an operation can fail, each as a workload of its own.
import { promisify } from 'node:util';

const sleep = promisify(setTimeout);

const setup = () => ({});
const throwAt = (limit) => (_state, i) => {
  if (i >= limit) throw new RangeError(`no more than ${limit} calls`);
  return i;
};

export const workloads = {
  setup_throws: {
    setup: () => {
      throw new Error('no such table: message');
    },
    run: () => 0,
  },
  cold_throws: { setup, run: throwAt(0) },
  pass_throws: { setup, run: throwAt(20) },
  rejects: { setup, run: async (_state, i) => throwAt(20)(_state, i) },
  throws_a_string: {
    setup,
    run: () => {
      throw 'just text';
    },
  },
  long_message: {
    setup,
    run: () => {
      throw new Error('x'.repeat(10_000));
    },
  },
  never_settles: { setup, run: () => new Promise(() => {}) },
  never_settles_later: { setup, run: (_state, i) => (i < 20 ? Promise.resolve(i) : new Promise(() => {})) },
  setup_never_settles: { setup: () => new Promise(() => {}), run: () => 0 },
  stray_error: {
    setup,
    run: async () => {
      setTimeout(() => {
        throw new Error('from a timer');
      }, 0);
      await sleep(20);
    },
  },
  stray_rejection: {
    setup,
    run: () => {
      Promise.reject(new Error('nobody listens'));
      return 1;
    },
  },
  sometimes_async: { setup, run: (_state, i) => (i === 0 ? 1 : Promise.resolve(1)) },
  teardown_throws: {
    setup,
    run: () => 1,
    teardown: () => {
      throw new Error('cannot close');
    },
  },
  fine: { setup, run: (_state, i) => `value ${i}` },
};
