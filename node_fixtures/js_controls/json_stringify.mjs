// Stringifies a 20,000-row API response.

import { apiResponseText } from './lib/api_response.mjs';

export function setup(ctx) {
  return { response: JSON.parse(apiResponseText(ctx.seed)) };
}

export function run(state, _i) {
  return JSON.stringify(state.response);
}
