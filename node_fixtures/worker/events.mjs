// The events file: one JSON object a line, written synchronously so that a crash loses nothing.
import { closeSync, openSync, writeSync } from 'node:fs';

// Kept here because a workload may replace globals.
const { stringify } = JSON;

const MESSAGE_LIMIT = 2000;
const STACK_LIMIT = 4000;

export class Events {
  #fd;

  constructor(path) {
    this.#fd = openSync(path, 'w');
  }

  emit(event) {
    const line = Buffer.from(`${stringify(event)}\n`);
    for (let written = 0; written < line.length; ) {
      written += writeSync(this.#fd, line, written);
    }
  }

  close() {
    closeSync(this.#fd);
  }
}

/** `{message, stack}` of anything that can be thrown, cut to the limits of the protocol. */
export function describe(error) {
  try {
    const isError = error instanceof Error || typeof error?.message === 'string';
    const text = isError ? `${error.name ?? 'Error'}: ${error.message}` : `thrown: ${String(error)}`;
    const stack = typeof error?.stack === 'string' ? error.stack : '';
    return { message: text.slice(0, MESSAGE_LIMIT), stack: stack.slice(0, STACK_LIMIT) };
  } catch {
    return { message: 'thrown: a value that cannot be shown', stack: '' };
  }
}
