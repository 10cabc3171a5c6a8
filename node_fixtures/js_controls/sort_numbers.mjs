// Sorts a fresh copy of 200,000 integers with a numeric comparator.

import { randomFrom } from './lib/random.mjs';

const COUNT = 200_000;

export function setup(ctx) {
  const random = randomFrom(ctx.seed);
  return { numbers: Array.from({ length: COUNT }, () => random(1_000_000_000)) };
}

export function run(state, _i) {
  return state.numbers.slice().sort((a, b) => a - b);
}
