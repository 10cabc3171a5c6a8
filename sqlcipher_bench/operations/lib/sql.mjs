// The SQL of the operations, from the files that the C program reads too (their format stands in queries.sql).

import { readFileSync } from 'node:fs';

const NAME_LINE = '-- name:';

export const schema = readFileSync(new URL('../../schema.sql', import.meta.url), 'utf8');

const sections = parseSections(readFileSync(new URL('../../queries.sql', import.meta.url), 'utf8'));

/** The SQL of one section. */
export function sql(name) {
  const text = sections.get(name);
  if (text === undefined) throw new Error(`queries.sql has no section named ${name}`);
  return text;
}

function parseSections(text) {
  const result = new Map();
  let names = [];
  let lines = [];
  const close = () => {
    for (const name of names) result.set(name, lines.join('\n').trim());
    names = [];
    lines = [];
  };
  for (const line of text.split('\n')) {
    if (line.startsWith(NAME_LINE)) {
      if (lines.some((other) => other.trim() !== '')) close();
      names.push(line.slice(NAME_LINE.length).trim());
    } else if (names.length > 0 && !line.startsWith('--')) {
      lines.push(line);
    }
  }
  close();
  return result;
}
