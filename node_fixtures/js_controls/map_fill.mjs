// Fills a Map with 200,000 string keys. The keys exist already: the Map is timed, not the making of strings.

const COUNT = 200_000;

export function setup(_ctx) {
  return { keys: Array.from({ length: COUNT }, (_, index) => `key-${index}`) };
}

export function run(state, _i) {
  const { keys } = state;
  const map = new Map();
  for (let index = 0; index < keys.length; index++) map.set(keys[index], index);
  return map;
}
