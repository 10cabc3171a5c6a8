// Parses a 20,000-row API response.

import { apiResponseText } from './lib/api_response.mjs';

export function setup(ctx) {
  return { text: apiResponseText(ctx.seed) };
}

export function run(state, _i) {
  return JSON.parse(state.text);
}
