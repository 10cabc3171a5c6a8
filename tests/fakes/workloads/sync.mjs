// A well-behaved synchronous workload that remembers how it was called.
import { existsSync } from 'node:fs';

export function setup(ctx) {
  if ('Database' in ctx) throw new Error('a js workload has no Database');
  if (!existsSync(ctx.dir)) throw new Error('ctx.dir is missing');
  if (!Object.isFrozen(ctx.params)) throw new Error('ctx.params can be changed');
  return { scale: Number(ctx.params.scale ?? '1') + ctx.seed, seen: [] };
}

export function run(state, i) {
  if (state.seen.length > 0 && i !== state.seen[state.seen.length - 1] + 1) throw new Error(`i went to ${i}`);
  state.seen.push(i);
  return i * state.scale;
}
