// SHA-256 of 8 MB: OpenSSL's work, reached through Node; tells a change of the library from one of V8.

import { createHash } from 'node:crypto';

import { randomFrom } from './lib/random.mjs';

const BYTES = 8 * 1024 * 1024;

export function setup(ctx) {
  const random = randomFrom(ctx.seed);
  // The time does not depend on the content, so a repeated block will do.
  const block = Buffer.from(Array.from({ length: 1024 }, () => random(256)));
  return { bytes: Buffer.alloc(BYTES, block) };
}

export function run(state, _i) {
  return createHash('sha256').update(state.bytes).digest('hex');
}
