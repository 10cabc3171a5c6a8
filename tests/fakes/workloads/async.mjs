// Asynchronous in every function.
import { promisify } from 'node:util';

const sleep = promisify(setTimeout);

export async function setup() {
  await sleep(1);
  return { open: 0 };
}

export async function run(state, i) {
  state.open += 1;
  if (state.open !== 1) throw new Error('a call began before the one before it had ended');
  await null;
  state.open -= 1;
  return { row: i };
}

export async function teardown() {
  await sleep(1);
}
