// Recordings for the SQLite that only plays them (replay/sqlite3.c).

const MAGIC = 0x31455041;
const INTEGER = 1;
const FLOAT = 2;
const TEXT = 3;
const BLOB = 4;
const NULL = 5;

/**
 * A tape, as a Buffer, of statements:
 * `{sql, parameters, readonly, columns: [name], callee, recordings}`. A recording is what one execution gives:
 * `{rows: [[value]], changes, rowid, rowidStep, calls: [argument]}`, all but rows optional; with `calls`, the SQL
 * function `callee` is called once for each argument before the first row.
 */
export function writeTape(statements) {
  const parts = [];
  const u32 = (number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(number);
    parts.push(bytes);
  };
  const double = (number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(number);
    parts.push(bytes);
  };
  const bytesOf = (bytes) => {
    u32(bytes.length);
    parts.push(bytes);
  };
  const text = (string) => bytesOf(Buffer.from(string, 'utf8'));
  const cell = (value) => {
    if (typeof value === 'number') {
      u32(Number.isInteger(value) ? INTEGER : FLOAT);
      double(value);
    } else if (typeof value === 'string') {
      u32(TEXT);
      text(value);
    } else if (ArrayBuffer.isView(value)) {
      u32(BLOB);
      bytesOf(Buffer.from(value));
    } else if (value === null) {
      u32(NULL);
    } else {
      throw new TypeError(`a ${typeof value} cannot be recorded`);
    }
  };
  u32(MAGIC);
  u32(statements.length);
  for (const statement of statements) {
    text(statement.sql);
    u32(statement.parameters);
    u32(statement.readonly ? 1 : 0);
    text(statement.callee ?? '');
    u32(statement.columns.length);
    for (const column of statement.columns) text(column);
    u32(statement.recordings.length);
    for (const { rows, changes = 0, rowid = 0, rowidStep = 0, calls = [] } of statement.recordings) {
      u32(changes);
      double(rowid);
      double(rowidStep);
      u32(calls.length);
      for (const argument of calls) cell(argument);
      u32(rows.length);
      for (const row of rows) for (const value of row) cell(value);
    }
  }
  return Buffer.concat(parts);
}

/** A database that plays `statements` (see `writeTape`). Throws where its SQLite is a real one. */
export function play(Replay, statements) {
  const replay = new Replay(':memory:');
  if (answerOf(replay) !== 1) throw new Error('the addon was not linked with the SQLite that plays recordings');
  replay.prepare('@tape').run(writeTape(statements));
  return replay;
}

function answerOf(replay) {
  try {
    return replay.prepare('@replay').pluck().get();
  } catch {
    return null;
  }
}
