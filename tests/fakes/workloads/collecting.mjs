// One that gives the collector work and one that gives it none.
export const workloads = {
  garbage: {
    setup: () => ({ ring: new Array(1000).fill(null) }),
    run: (state, i) => {
      state.ring[i % 1000] = { i, text: `row ${i}`, list: [i, i + 1, i + 2] };
      return state.ring[i % 1000];
    },
  },
  quiet: {
    setup: () => ({ x: 1 }),
    run: (state, i) => {
      state.x = (state.x + i) & 0xffff;
      return state.x;
    },
  },
};
