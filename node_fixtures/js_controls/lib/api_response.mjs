// The API response of 20,000 rows that json_parse and json_stringify work on.

import { randomFrom } from './random.mjs';

const ROWS = 20_000;
const STATUS = ['open', 'paid', 'overdue', 'cancelled'];

const texts = new Map();

/** Its JSON text for `seed`. A string cannot be changed, so the operations of a process may share it. */
export function apiResponseText(seed) {
  let text = texts.get(seed);
  if (text === undefined) {
    text = JSON.stringify(apiResponse(randomFrom(seed)));
    texts.set(seed, text);
  }
  return text;
}

function apiResponse(random) {
  const data = [];
  for (let id = 1; id <= ROWS; id++) {
    const customer = random(100_000);
    data.push({
      id,
      name: `Customer ${customer}`,
      email: `customer.${customer}@host${customer % 40}.example`,
      active: customer % 4 !== 0,
      status: STATUS[customer % STATUS.length],
      balance: random(10_000_000) / 100,
      latitude: random(180_000_000) / 1_000_000 - 90,
      longitude: random(360_000_000) / 1_000_000 - 180,
      created: 1_763_078_400 - random(60 * 86_400),
    });
  }
  return { data, total: ROWS, page: 1 };
}
