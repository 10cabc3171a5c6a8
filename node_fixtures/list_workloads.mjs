// Says which operations a user's workload file defines, without running any of them.
// Usage: node list_workloads.mjs <workload file> <output file>
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { basename } from 'node:path';
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

/** `SyntaxError in line 3: Unexpected token '}'`: an import does not say where, a check of the file does. */
function described(error) {
  if (error === null || typeof error !== 'object' || typeof error.message !== 'string') return String(error);
  const name = typeof error.name === 'string' ? error.name : 'Error';
  return `${name}${name === 'SyntaxError' ? place() : ''}: ${error.message}`;
}

function place() {
  const checked = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8', timeout: 10_000 });
  const [, line] = checked.stderr?.split('\n', 1)[0].match(/:(\d+)$/) ?? [];
  return line === undefined || !checked.stderr.includes(basename(file)) ? '' : ` in line ${line}`;
}

let answer;
try {
  answer = await list();
} catch (error) {
  answer = { error: described(error).slice(0, 2000) };
}
writeFileSync(output, JSON.stringify(answer));
