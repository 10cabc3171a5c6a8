// The timed loop, compiled once per operation so that no two operations share type feedback.

/**
 * Functions over `run` and `state` of one operation:
 * `sync(from, calls)` and `async(from, calls)` call run(state, i) for i from `from` and return the fold of
 * the results, an int32; `forget()` lets go of the last result.
 *
 * The fold is O(1) for every type. Objects and strings also go into a sink: without it V8 may prove that
 * only a length is used and leave out the work, in one release and not in the other.
 * The text differs per operation (`id`), for V8 shares code *and feedback* of equal eval texts.
 */
export function compileLoop(id, name, run, state) {
  const label = `${name.replace(/\W/g, '_')}_${id}`;
  const loops = new Function('run', 'state', source(label))(run, state);
  // Compiles both without a single call of run: the cold pass is to time the operation, not this text.
  loops.sync(0, 0);
  loops.async(0, 0);
  return loops;
}

const source = (label) => `'use strict';
const { isArray } = Array;
const { imul } = Math;
const sink = { value: '' };
function sync_${label}(from, calls) {
  const end = from + calls;
  let fold = 0;
  for (let i = from; i < end; i++) {
    const value = run(state, i);
    ${FOLD}
  }
  return fold;
}
async function async_${label}(from, calls) {
  const end = from + calls;
  let fold = 0;
  for (let i = from; i < end; i++) {
    const value = await run(state, i);
    ${FOLD}
  }
  return fold;
}
return { sync: sync_${label}, async: async_${label}, forget: () => { sink.value = ''; } };
//# sourceURL=investigate-loop-${label}.js
`;

const FOLD = `let part;
    if (typeof value === 'number') part = value | 0;
    else if (typeof value === 'string') { part = value.length; sink.value = value; }
    else if (typeof value === 'boolean') part = value ? 1 : 2;
    else if (value === undefined || value === null) part = 3;
    else { part = isArray(value) ? value.length : 4; sink.value = value; }
    fold = (imul(fold, 31) + part) | 0;`;
