// Its calls are made outside of the generated loop: the fold tells from where to where.
export const workloads = {
  looped: {
    setup: (ctx) => ({ calls: [], probe: ctx.probe }),
    run: (state, i) => i,
    loop: (state, from, calls) => from * 1000 + calls,
  },
  probed: {
    setup: (ctx) => ({ probe: ctx.probe }),
    run: (state) => [state.probe.core.counted(), state.probe.dialect, state.probe.rowBuilder],
  },
  unprobed: {
    setup: (ctx) => ({ seen: 'probe' in ctx }),
    run: (state) => state.seen,
  },
  replaying: {
    setup: (ctx) => ({ Replay: ctx.probe.Replay }),
    run: () => 0,
  },
  loop_is_no_function: { run: () => 0, loop: 3 },
};
