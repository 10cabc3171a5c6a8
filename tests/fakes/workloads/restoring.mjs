// A store that only works when restore() is called as promised: every insert needs a key that is not there.
const setup = () => ({ rows: new Map(), restored: 0 });
const run = (state, i) => {
  if (state.restored === 0) throw new Error('run() before restore()');
  if (state.rows.size >= 50) throw new Error('more rows than one pass inserts: restore() was left out');
  state.rows.set(i, state.restored);
  return state.rows.size;
};
const restore = (state) => {
  state.rows.clear();
  state.restored += 1;
};

export default { setup, run, restore };
