// The PRAGMA profile: the production one from queries.sql, changed by parameters (--param journal_mode=DELETE).

import { sql } from './sql.mjs';

// Name -> value as one writes it -> what the database answers. A parameter reaches SQL only through this table.
const WORDS = {
  encoding: { 'UTF-8': 'UTF-8', 'UTF-16LE': 'UTF-16le', 'UTF-16BE': 'UTF-16be' },
  auto_vacuum: { NONE: 0, FULL: 1, INCREMENTAL: 2 },
  journal_mode: wordsOf(['DELETE', 'TRUNCATE', 'PERSIST', 'MEMORY', 'WAL', 'OFF'], (word) => word.toLowerCase()),
  secure_delete: { OFF: 0, ON: 1, FAST: 2 },
  synchronous: { OFF: 0, NORMAL: 1, FULL: 2, EXTRA: 3 },
  foreign_keys: { OFF: 0, ON: 1 },
  temp_store: { DEFAULT: 0, FILE: 1, MEMORY: 2 },
  busy_timeout: {},
  wal_autocheckpoint: {},
  cache_size: {},
  mmap_size: {},
};

// Asked for or not, what the database answers depends on the build: an addon may be compiled without mmap.
const UNVERIFIED = new Set(['mmap_size']);

// Properties of the file. Set again on a file that has them, auto_vacuum would write to it, and every other
// connection would throw its page cache away.
const OF_THE_FILE = new Set(['encoding', 'auto_vacuum']);

/** Applies settings to a connection that has its key, and makes sure that they are in effect. */
export function applyPragmas(db, settings, { isNewFile }) {
  for (const [name, value] of settings) {
    if (isNewFile || !OF_THE_FILE.has(name)) db.exec(`PRAGMA ${name} = ${quoted(name, value)}`);
  }
  for (const [name, value] of settings) {
    if (UNVERIFIED.has(name)) continue;
    const answer = Object.values(db.prepare(`PRAGMA ${name}`).get())[0];
    const expected = expectedAnswer(name, value);
    if (answer !== expected) {
      throw new Error(`PRAGMA ${name} was set to ${value}, but the database answers ${answer}, not ${expected}`);
    }
  }
}

/** The profile as a Map of name -> value, in the order of application; parameters of other names are left alone. */
export function settingsOf(params) {
  const settings = new Map();
  for (const [, name, value] of sql('pragmas').matchAll(/^PRAGMA (\w+) = '?([\w-]+)'?;$/gm)) {
    settings.set(name, value);
  }
  for (const name of Object.keys(WORDS)) {
    if (params[name] === undefined) continue;
    const value = String(params[name]).toUpperCase();
    if (expectedAnswer(name, value) === undefined) {
      const words = Object.keys(WORDS[name]).join(', ') || 'a whole number';
      throw new Error(`parameter ${name}=${params[name]} is not a value of that PRAGMA: use ${words}`);
    }
    settings.set(name, value);
  }
  return settings;
}

function expectedAnswer(name, value) {
  const words = WORDS[name];
  if (Object.prototype.hasOwnProperty.call(words, value)) return words[value];
  if (!/^-?\d{1,12}$/.test(value)) return undefined;
  const known = Object.values(words);
  return known.length === 0 || known.includes(Number(value)) ? Number(value) : undefined;
}

function quoted(name, value) {
  return name === 'encoding' ? `'${value}'` : value;
}

function wordsOf(words, answer) {
  return Object.fromEntries(words.map((word) => [word, answer(word)]));
}
