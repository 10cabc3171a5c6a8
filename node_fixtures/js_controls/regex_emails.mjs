// Tests 100,000 e-mail addresses, one in ten of them malformed, against a regular expression.

import { randomFrom } from './lib/random.mjs';

const COUNT = 100_000;
const EMAIL = /^[a-z0-9._%+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}$/;
const MALFORMED = [(name) => `${name}@`, (name) => `@${name}.example`, (name) => `${name} at host.example`];

export function setup(ctx) {
  const random = randomFrom(ctx.seed);
  const addresses = Array.from({ length: COUNT }, () => {
    const name = `user.${random(1_000_000)}`;
    if (random(10) === 0) return MALFORMED[random(MALFORMED.length)](name);
    return `${name}@mail${random(100)}.host${random(40)}.example`;
  });
  return { addresses };
}

export function run(state, _i) {
  let valid = 0;
  for (const address of state.addresses) if (EMAIL.test(address)) valid += 1;
  return valid;
}
