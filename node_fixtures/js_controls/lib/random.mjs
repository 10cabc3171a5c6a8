// Numbers for the payloads: Math.random cannot be seeded, and every Node release must get the same data.

/** Returns a function that gives whole numbers from 0 to `bound` - 1 (mulberry32, period 2**32). */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = state;
    value = Math.imul(value ^ (value >>> 15), value | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) % bound;
  };
}
