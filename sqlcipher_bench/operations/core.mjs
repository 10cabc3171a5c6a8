// The SQL of each operation in a C loop, on the same SQLite as the addon's and with the same sqlite3 calls
// (sqlcipher_bench/native): what an operation costs without the crossing between JavaScript and C++.
//
// Every operation makes a database of its own, as its twin does when it is alone in its process.

import { fileURLToPath } from 'node:url';

import { PASSPHRASE, isEncrypted } from './lib/database.mjs';
import { settingsOf } from './lib/pragmas.mjs';
import { asciiTexts, latin1Texts, twoByteTexts } from './lib/text.mjs';

const SQL = fileURLToPath(new URL('..', import.meta.url));

// Where the addon reads the names of a row's columns, by the way in which its binary makes row objects.
const NAMES = { set: 'row', bulk: 'call', factory: 'statement' };

/** Where nobody has looked: what releases 12.3 and later do. */
function usualRowBuilder(probe) {
  if (probe.dialect === 'napi') return 'factory';
  return Number(process.versions.modules) < 127 ? 'set' : 'bulk';
}

function workload(name, texts = () => []) {
  return {
    setup: (ctx) => {
      const { core, rowBuilder } = ctx.probe;
      const handle = core.setup(name, {
        mailbox: ctx.mailbox,
        sql: SQL,
        directory: ctx.dir,
        cipher: isEncrypted(ctx) ? ctx.cipher : 'none',
        key: PASSPHRASE,
        names: NAMES[rowBuilder ?? usualRowBuilder(ctx.probe)],
        pragmas: [...settingsOf(ctx.params)].map(([pragma, value]) => `${pragma}=${value}`),
        texts: texts(),
      });
      return { core, handle };
    },
    // The worker calls this in place of its own loop: the calls themselves are made in C.
    loop: (state, from, calls) => state.core.loop(state.handle, from, calls),
    run: (state, i) => state.core.run(state.handle, i),
    teardown: (state) => state.core.teardown(state.handle),
  };
}

function writer(name) {
  return { ...workload(name), restore: (state) => state.core.restore(state.handle) };
}

export const workloads = {
  'core.open_key': workload('open_key'),
  'core.select_point': workload('select_point'),
  'core.select_range': workload('select_range'),
  'core.select_range_raw': workload('select_range_raw'),
  'core.select_iterate': workload('select_iterate'),
  'core.select_uncached': workload('select_uncached'),
  'core.select_blob_3k': workload('select_blob_3k'),
  'core.select_blob_30k': workload('select_blob_30k'),
  'core.select_blob_100k': workload('select_blob_100k'),
  'core.bind_text_ascii_20': workload('bind_text_ascii_20', () => asciiTexts(20)),
  'core.bind_text_ascii_200': workload('bind_text_ascii_200', () => asciiTexts(200)),
  'core.bind_text_ascii_2k': workload('bind_text_ascii_2k', () => asciiTexts(2000)),
  'core.bind_text_ascii_10k': workload('bind_text_ascii_10k', () => asciiTexts(10000)),
  'core.bind_text_latin1_2k': workload('bind_text_latin1_2k', () => latin1Texts(2000)),
  'core.bind_text_twobyte_2k': workload('bind_text_twobyte_2k', () => twoByteTexts(2000)),
  'core.select_udf': workload('select_udf'),
  'core.insert_row': writer('insert_row'),
  'core.insert_batch': writer('insert_batch'),
  'core.update_row': writer('update_row'),
  'core.delete_row': writer('delete_row'),
};
