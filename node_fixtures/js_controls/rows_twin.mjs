// What select_range does on the JavaScript side, without SQLite: 50 row objects of 4 columns, the strings new.

import { randomFrom } from './lib/random.mjs';

const ROWS = 50;
const MESSAGES = 1000;

export function setup(ctx) {
  const random = randomFrom(ctx.seed);
  // Two bytes of rubbish in front, so that the columns can be cut out again: a slice is a new string.
  const messages = Array.from({ length: MESSAGES }, (_, index) => ({
    id: index + 1,
    subject: `--Quarterly report ${random(100_000)}, second draft`,
    sender: `--Grace Hopper <grace.hopper.${random(1000)}@host${random(40)}.example>`,
    date: 1_763_078_400 - random(60 * 86_400),
  }));
  return { messages };
}

export function run(state, i) {
  const { messages } = state;
  const rows = [];
  const first = (i % (MESSAGES / ROWS)) * ROWS;
  for (let index = first; index < first + ROWS; index++) {
    const { id, subject, sender, date } = messages[index];
    rows.push({ id, subject: subject.slice(2), sender: sender.slice(2), date });
  }
  return rows;
}
