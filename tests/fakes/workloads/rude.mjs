// Workloads without manners: they print, end the process, or change the globals.
const setup = () => null;

export const workloads = {
  exits: {
    setup,
    run: (_state, i) => {
      if (i === 5) process.exit(0);
      return i;
    },
  },
  aborts: {
    setup,
    run: (_state, i) => {
      if (i === 5) process.abort();
      return i;
    },
  },
  prints: {
    setup,
    run: (_state, i) => {
      process.stdout.write(`{"type":"done","wall_ns":${i}}\n`);
      return i;
    },
  },
  breaks_globals: {
    setup: () => {
      JSON.stringify = () => 'broken';
      globalThis.setImmediate = () => {};
      globalThis.Promise = class {};
      process.hrtime = null;
      process.resourceUsage = null;
      process.exit = () => {};
    },
    run: (_state, i) => i,
  },
  leaves_timer: { setup: () => setInterval(() => {}, 1000), run: (_state, i) => i },
};
