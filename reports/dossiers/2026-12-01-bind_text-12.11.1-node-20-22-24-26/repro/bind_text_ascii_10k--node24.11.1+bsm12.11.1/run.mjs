// Runs the programs of this folder on both sides by turns and prints what a call costs, the change, and its spread.
//
//   node run.mjs [PROGRAM...] [--rounds N] [--json FILE] [--baseline-node DIR] [--candidate-node DIR]
//                [--baseline-addon DIR] [--candidate-addon DIR]
//
// Needs what `npm ci --ignore-scripts` installed and, for programs with C++, a compiler, make and Python 3.
// Every figure comes from processes of its own: one for each side and round, the order changing by turns.
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const WORK = path.resolve(process.env.REPRO_WORK ?? path.join(HERE, 'work'));
const FEWEST = 6; // rounds whose whole range is a 95 % interval of the median
const SIDES = ['baseline', 'candidate'];
const facts = JSON.parse(readFileSync(path.join(HERE, 'repro.json'), 'utf8'));

function main() {
  const text = { type: 'string' };
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rounds: text,
      json: text,
      'baseline-node': text,
      'candidate-node': text,
      'baseline-addon': text,
      'candidate-addon': text,
    },
  });
  const rounds = Number(values.rounds ?? facts.rounds);
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a whole number from 1');
  const known = facts.programs.map((program) => program.name);
  const unknown = positionals.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`there is no program ${unknown}; there are ${known.join(', ')}`);
  const chosen = facts.programs.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
  const nodes = SIDES.map((side) => nodeOf(side, values[`${side}-node`]));
  const results = chosen.map((program) => reproduce(program, nodes, rounds, values));
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(results, null, 1));
}

/** Directory of a side's Node, with bin/node and include/node. */
function nodeOf(side, given) {
  const { version } = facts.sides[side];
  const alias = `node-${version}-${process.platform}-${process.arch}`;
  const directory = path.resolve(given ?? path.join(HERE, 'node_modules', alias));
  const node = path.join(directory, 'bin/node');
  if (existsSync(node)) return directory;
  if (facts.sides[side].fetched) {
    throw new Error(
      `${node} is missing: run \`npm ci --ignore-scripts\` first, or where package.json has none ` +
        `for this system, give a directory with bin/node and include/node: --${side}-node DIR`,
    );
  }
  throw new Error(
    `Node ${version} of the ${side} is a build that no registry has; ` +
      `name its directory (with bin/node and include/node): --${side}-node DIR`,
  );
}

function reproduce(program, nodes, rounds, values) {
  console.log(`\n${program.name}: ${program.title}`);
  const places = SIDES.map((side, k) => prepare(program, side, nodes[k], values[`${side}-addon`]));
  const ns = [[], []];
  for (let round = 0; round < rounds; round++) {
    for (const k of round % 2 === 0 ? [0, 1] : [1, 0]) ns[k].push(measure(program, SIDES[k], nodes[k], places[k]));
  }
  const changes = ns[0].map((base, round) => (ns[1][round] / base - 1) * 100);
  const sorted = [...changes].sort(ascending);
  const [low, high] = interval(sorted);
  const result = {
    program: program.name,
    ns_per_call: { baseline: median(ns[0]), candidate: median(ns[1]) },
    change_pct: median(changes),
    interval_pct: [low, high],
    range_pct: [sorted[0], sorted.at(-1)],
    rounds,
    raw_ns_per_call: { baseline: ns[0], candidate: ns[1] },
  };
  SIDES.forEach((side, k) => console.log(`  ${facts.sides[side].title}: ${time(median(ns[k]))} a call`));
  const sure = rounds < FEWEST ? 'too few rounds for an interval' : `95 % interval ${percent(low)} to ${percent(high)}`;
  console.log(
    `  ratio ${(1 + result.change_pct / 100).toFixed(3)}, change ${percent(result.change_pct)}, ${sure}; ` +
      `single rounds ${percent(sorted[0])} to ${percent(sorted.at(-1))} (${rounds} rounds, a process for each side)`,
  );
  return result;
}

// -- what has to be compiled ---------------------------------------------------------------------------------------

/** A copy of the program for one side, with its C++ compiled against that side's headers. */
function prepare(program, side, node, givenAddon) {
  const place = path.join(WORK, side, program.name);
  rmSync(place, { recursive: true, force: true });
  cpSync(path.join(HERE, program.name), place, { recursive: true });
  if (program.compile) compile(place, node);
  return { place, environment: program.addon ? addon(side, node, givenAddon) : {} };
}

/** The addon of a side, compiled once for all programs; what tells a program where it is. */
function addon(side, node, given) {
  const { name, alias, prebuilt } = facts.sides[side].addon;
  const source = path.resolve(given ?? path.join(HERE, 'node_modules', alias ?? ''));
  if (!given && !alias) throw new Error(`the addon of the ${side} is in no registry: --${side}-addon DIR`);
  const place = path.join(WORK, side, 'node_modules', name);
  if (!existsSync(path.join(place, 'compiled'))) {
    const left = prebuilt ? [] : ['prebuilds', 'build'];
    const filter = (from) => !left.includes(path.relative(source, from));
    rmSync(place, { recursive: true, force: true });
    cpSync(source, place, { recursive: true, filter });
    if (!prebuilt) compile(place, node);
    writeFileSync(path.join(place, 'compiled'), '');
  }
  return { REPRO_ADDON: place, REPRO_BINDING: prebuilt ? shipped(place) : built(place) };
}

function built(place) {
  const folder = path.join(place, 'build/Release');
  const found = readdirSync(folder).filter((file) => file.endsWith('.node') && file !== 'test_extension.node');
  if (found.length !== 1) throw new Error(`${folder} holds ${found.length} addons, expected one`);
  return path.join(folder, found[0]);
}

function shipped(place) {
  const libc = process.report?.getReport().header.glibcVersionRuntime || process.platform !== 'linux' ? '' : 'musl';
  return path.join(place, 'prebuilds', `${process.platform}${libc}-${process.arch}.node`);
}

function compile(place, node) {
  console.log(`  compiling ${path.relative(HERE, place)} ...`);
  const args = [nodeGyp(), 'rebuild', '--release', `--nodedir=${node}`, '--jobs', 'max'];
  // Packages ask for a program called `node` while they are compiled.
  const search = [path.dirname(process.execPath), process.env.PATH].join(path.delimiter);
  const link = path.relative(path.join(place, 'build'), emptyNodeLibrary()); // relative: no space of the user's
  const env = { ...process.env, PATH: search, LDFLAGS: `-L${link} ${process.env.LDFLAGS ?? ''}` };
  const options = { cwd: place, env, encoding: 'utf8', maxBuffer: 1 << 28 };
  const { status, stdout, stderr, error } = spawnSync(process.execPath, args, options);
  if (error) throw error;
  if (status !== 0) throw new Error(`${place} does not compile:\n${`${stdout}${stderr}`.slice(-4000)}`);
}

/**
 * Directory with a libnode.a in which nothing is, found before any other: node-gyp as Debian has it links addons with
 * Debian's own Node (-lnode), and two of them in one process crash it.
 */
function emptyNodeLibrary() {
  const folder = path.join(WORK, 'link');
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'libnode.a'), '!<arch>\n');
  return folder;
}

/** node-gyp comes with npm, which says where when it runs a script. */
function nodeGyp() {
  const beside = path.resolve(path.dirname(process.execPath), '../lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js');
  const found = [process.env.npm_config_node_gyp, beside].find((file) => file && existsSync(file));
  if (found === undefined) throw new Error('there is no node-gyp here: start with `npm start`, npm brings one');
  return found;
}

// -- one process ---------------------------------------------------------------------------------------------------

function measure(program, side, node, { place, environment }) {
  const { flags, variables } = facts.sides[side];
  const env = { ...process.env, ...variables, ...environment, REPRO_TMP: temporary() };
  delete env.NODE_OPTIONS;
  const command = path.join(node, 'bin/node');
  const args = [...flags, path.join(place, program.script)];
  const options = { cwd: place, env, encoding: 'utf8', timeout: 300_000 };
  const { status, signal, stdout, stderr, error } = spawnSync(command, args, options);
  if (error) throw error;
  let value;
  try {
    value = JSON.parse(stdout.trim().split('\n').at(-1)).ns_per_call;
  } catch {
    value = undefined;
  }
  if (status === 0 && Number.isFinite(value) && value > 0) return value;
  throw new Error(`${program.name} ended with ${signal ?? `status ${status}`} on the ${side}:\n${(stderr || stdout).slice(-2000)}`);
}

/** In memory where that is possible, unless the measurement was made on the disk. */
function temporary() {
  if (process.env.REPRO_TMP) return process.env.REPRO_TMP;
  if (facts.disk) return WORK;
  try {
    accessSync('/dev/shm', constants.W_OK);
    return '/dev/shm';
  } catch {
    return tmpdir();
  }
}

// -- numbers -------------------------------------------------------------------------------------------------------

function ascending(a, b) {
  return a - b;
}

function median(values) {
  const sorted = [...values].sort(ascending);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

/** Interval of the median by order statistics, at least 95 %; the whole range where there are too few rounds. */
function interval(sorted) {
  const n = sorted.length;
  let tail = 0.5 ** n;
  let below = 0;
  for (let term = tail; tail + (term * (n - below)) / (below + 1) <= 0.025; tail += term) {
    term = (term * (n - below)) / (below + 1);
    below += 1;
  }
  return [sorted[below], sorted[n - 1 - below]];
}

function percent(value) {
  return `${value >= 0 ? '+' : ''}${value.toFixed(1)} %`;
}

function time(ns) {
  const [size, unit] = ns < 1e3 ? [1, 'ns'] : ns < 1e6 ? [1e3, 'µs'] : [1e6, 'ms'];
  return `${(ns / size).toPrecision(4)} ${unit}`;
}

try {
  mkdirSync(WORK, { recursive: true });
  // What the addon depends on is looked for in the directories above it.
  const above = path.join(WORK, 'node_modules');
  if (!WORK.startsWith(HERE + path.sep) && !existsSync(above)) symlinkSync(path.join(HERE, 'node_modules'), above);
  main();
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exitCode = 1;
}
