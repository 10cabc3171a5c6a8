// The primitives of the boundary, one operation each, through V8's API and (names with `napi.`) through Node-API.
//
// The names say the size: utf8_value_ascii_2k is a string of 2,000 characters, row_bulk_50x4 a call that makes 50 rows
// of 4 columns, so that time = a + b x rows + c x rows x columns can be fitted over a grid.

import { asciiTexts, latin1Texts, twoByteTexts } from '../../sqlcipher_bench/operations/lib/text.mjs';

const LENGTHS = { 20: 20, 200: 200, '2k': 2000, '10k': 10_000 };
const TEXTS = { ascii: asciiTexts, latin1: latin1Texts, twobyte: twoByteTexts };
const BLOBS = { '3k': 3000, '30k': 30_000, '100k': 100_000 };
export const GRID_ROWS = [1, 50, 200];
export const GRID_COLUMNS = [1, 4, 12];
const ARRAYS = [50, 200, 1000];

const DIALECTS = { '': (probe) => probe.boundary, 'napi.': (probe) => probe.napi };

// Column names and values as in the mailbox: an id, a subject, a sender, a date, and again.
const columnNames = (count) => Array.from({ length: count }, (_, c) => ['id', 'subject', 'sender', 'date'][c % 4] + (c < 4 ? '' : c));
const cell = (row, c) =>
  [row + 1, `Re: the minutes of meeting ${row}`, `sender${row % 40}@example.org`, 1_700_000_000 + row * 60][c % 4];

// What an addon on Node-API has JavaScript do for it: there is nothing faster in that API.
function rowMaker(columns) {
  const values = columns.map((_, c) => `v${c}`);
  const pairs = columns.map((column, c) => `${JSON.stringify(column)}: v${c}`);
  return new Function(`return (${values.join(', ')}) => ({ ${pairs.join(', ')} });`)();
}
const makeArray = (...rows) => rows;
function append(array, ...rows) {
  const offset = array.length;
  for (let k = 0; k < rows.length; k++) array[offset + k] = rows[k];
}

function tableOf(native, columns, rows) {
  return new native.Table(columns, rows, rowMaker(columns), makeArray, append);
}

function ofTexts(native, texts) {
  return tableOf(native, ['text'], texts.map((text) => [text]));
}

function grid(native, rows, columns) {
  const values = Array.from({ length: rows }, (_, r) => Array.from({ length: columns }, (_, c) => cell(r, c)));
  return tableOf(native, columnNames(columns), values);
}

export const workloads = {};

for (const [prefix, open] of Object.entries(DIALECTS)) {
  const add = (name, setup, run) => {
    workloads[prefix + name] = { setup: (ctx) => setup(open(ctx.probe)), run };
  };
  add('call_noop', (native) => ({ noop: native.noop }), (state, _i) => state.noop());
  add('call_args', (native) => ({ args: native.args }), (state, i) => state.args(i, 2, 3.5, 4));
  for (const [encoding, texts] of Object.entries(TEXTS)) {
    for (const [label, length] of Object.entries(LENGTHS)) {
      add(
        `utf8_value_${encoding}_${label}`,
        (native) => ({ utf8: native.utf8, texts: texts(length) }),
        (state, i) => state.utf8(state.texts[i & 3]),
      );
      add(
        `string_new_${encoding}_${label}`,
        (native) => ({ table: ofTexts(native, texts(length)) }),
        (state, _i) => state.table.text(),
      );
    }
  }
  for (const rows of GRID_ROWS) {
    for (const columns of GRID_COLUMNS) {
      const setup = (native) => ({ table: grid(native, rows, columns) });
      add(`row_set_${rows}x${columns}`, setup, (state, _i) => state.table.rowSet());
      add(`row_bulk_${rows}x${columns}`, setup, (state, _i) => state.table.rowBulk());
      add(`row_template_${rows}x${columns}`, setup, (state, _i) => state.table.rowTemplate());
    }
  }
  for (const count of ARRAYS) {
    add(
      `array_of_rows_${count}`,
      (native) => ({ table: grid(native, 1, 1), count }),
      (state, _i) => state.table.arrayOfRows(state.count),
    );
  }
  for (const [label, bytes] of Object.entries(BLOBS)) {
    add(
      `buffer_copy_${label}`,
      (native) => ({ table: tableOf(native, ['blob'], [[Buffer.alloc(bytes, 7)]]) }),
      (state, _i) => state.table.blob(),
    );
  }
  add('unwrap', (native) => ({ table: grid(native, 1, 4) }), (state, _i) => state.table.unwrap());
  add(
    'callback_js',
    (native) => ({ table: tableOf(native, ['date'], [[1_700_000_000]]), callback: (date) => date % 86400 }),
    (state, _i) => state.table.callback(state.callback),
  );
}
