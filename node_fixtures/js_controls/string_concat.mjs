// Concatenates 50,000 strings.

import { randomFrom } from './lib/random.mjs';

const COUNT = 50_000;

export function setup(ctx) {
  const random = randomFrom(ctx.seed);
  return { parts: Array.from({ length: COUNT }, () => `item-${random(100_000)};`) };
}

export function run(state, _i) {
  let text = '';
  for (const part of state.parts) text += part;
  return text;
}
