// Says which operations a user's workload file defines, without running any of them.
// Usage: node list_workloads.mjs <workload file> <output file>
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [file, output] = process.argv.slice(2);

const isOperation = (value) =>
  value !== null && typeof value === 'object' && typeof value.run === 'function';

async function list() {
  const loaded = await import(pathToFileURL(file).href);
  const module = loaded.default && typeof loaded.default === 'object' ? { ...loaded.default, ...loaded } : loaded;
  const named = module.workloads ?? {};
  if (named === null || typeof named !== 'object') {
    return { error: '`workloads` must be an object of {setup, run, teardown}' };
  }
  const names = Object.keys(named);
  const broken = names.find((name) => !isOperation(named[name]));
  if (broken !== undefined) {
    return { error: `workloads.${broken} has no function run(state, i)` };
  }
  return { own: typeof module.run === 'function', names };
}

let answer;
try {
  answer = await list();
} catch (error) {
  answer = { error: String((error && error.message) || error).slice(0, 2000) };
}
writeFileSync(output, JSON.stringify(answer));
