// Handing a string to SQLite: `SELECT length(?)` does nothing else, so the conversion to UTF-8 is what is timed.
// Every `run` is written out: operations that share a function would share its type feedback.

import { acquireReader, prepareScalar, release } from './lib/database.mjs';
import { asciiTexts, latin1Texts, twoByteTexts } from './lib/text.mjs';
import { sql } from './lib/sql.mjs';

function setupTexts(name, texts) {
  return (ctx) => {
    const reader = acquireReader(ctx);
    return { reader, statement: prepareScalar(ctx, reader.db, sql(name)), texts: texts() };
  };
}

function teardown(state) {
  release(state.reader);
}

export const workloads = {
  bind_text_ascii_20: {
    setup: setupTexts('bind_text_ascii_20', () => asciiTexts(20)),
    run: (state, i) => state.statement.get(state.texts[i & 3]),
    teardown,
  },
  bind_text_ascii_200: {
    setup: setupTexts('bind_text_ascii_200', () => asciiTexts(200)),
    run: (state, i) => state.statement.get(state.texts[i & 3]),
    teardown,
  },
  bind_text_ascii_2k: {
    setup: setupTexts('bind_text_ascii_2k', () => asciiTexts(2000)),
    run: (state, i) => state.statement.get(state.texts[i & 3]),
    teardown,
  },
  bind_text_ascii_10k: {
    setup: setupTexts('bind_text_ascii_10k', () => asciiTexts(10000)),
    run: (state, i) => state.statement.get(state.texts[i & 3]),
    teardown,
  },
  bind_text_latin1_2k: {
    setup: setupTexts('bind_text_latin1_2k', () => latin1Texts(2000)),
    run: (state, i) => state.statement.get(state.texts[i & 3]),
    teardown,
  },
  bind_text_twobyte_2k: {
    setup: setupTexts('bind_text_twobyte_2k', () => twoByteTexts(2000)),
    run: (state, i) => state.statement.get(state.texts[i & 3]),
    teardown,
  },
};
