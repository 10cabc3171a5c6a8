// Runs one step of one operation so that it can fail in every way but keep the process going: a throw,
// a rejection, an error from a timer of its own, or a promise that nothing will ever resolve.
// Kept here because a workload may replace globals.
const { Promise } = globalThis;

let current = null;

/** The step that is running: `{op, stage}`, or null between steps. */
export function running() {
  return current === null ? null : { op: current.op, stage: current.stage };
}

/**
 * Result of `body()`, awaited; rejects with whatever went wrong while it ran.
 *
 * A promise pending for ever while timers keep the process alive is not seen here: that is the harness's
 * timeout.
 */
export function step(op, stage, body) {
  return new Promise((resolve, reject) => {
    current = { op, stage, reject };
    (async () => body())().then(resolve, reject);
  }).finally(() => {
    current = null;
  });
}

const FUNCTION_OF_STAGE = {
  import: 'the module',
  setup: 'setup()',
  restore: 'restore()',
  teardown: 'teardown()',
};

export function installGuards(onStray) {
  // The event loop is empty although a step is pending: nothing is left that could resolve its promise.
  process.on('beforeExit', () => {
    if (current === null) return;
    const what = FUNCTION_OF_STAGE[current.stage] ?? 'run()';
    const returned = current.stage === 'import' ? 'awaits' : 'returned';
    current.reject(new Error(`never settled: ${what} ${returned} a promise that nothing will resolve`));
  });
  const fail = (error) => (current === null ? onStray(error) : current.reject(error));
  process.on('uncaughtException', fail);
  process.on('unhandledRejection', fail);
}
