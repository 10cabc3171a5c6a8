// Prints nanoseconds per call. Run it under two releases of Node; ../run.sh does, by turns.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';

// run.mjs compiles the addon for each Node, and says where it and its binary are.
const require = createRequire(import.meta.url);
const Addon = require(process.env.REPRO_ADDON ?? "better-sqlite3-multiple-ciphers");
class Database extends Addon {
  constructor(name) {
    super(name, process.env.REPRO_BINDING ? { nativeBinding: process.env.REPRO_BINDING } : {});
  }
}

const KEY = ["PRAGMA cipher = 'chacha20'", "PRAGMA key = 'a public passphrase for synthetic mail'"];
const FILE_PRAGMAS = ["PRAGMA encoding = 'UTF-8'", "PRAGMA auto_vacuum = FULL"];
const PRAGMAS = ["PRAGMA journal_mode = WAL", "PRAGMA secure_delete = ON", "PRAGMA synchronous = NORMAL", "PRAGMA foreign_keys = ON", "PRAGMA temp_store = 1", "PRAGMA busy_timeout = 30000"];
const SQL = "SELECT length(?);";
const LENGTH = 10000;
const WIDTH = 1;

/** Four flat strings, ASCII. */
const texts = [0, 1, 2, 3].map((k) => {
  const bytes = Buffer.alloc(LENGTH * WIDTH);
  for (let j = 0; j < LENGTH; j++) bytes.writeUIntLE(0x61 + ((7 * j + k) % 26), j * WIDTH, WIDTH);
  return bytes.toString(WIDTH === 2 ? 'utf16le' : 'latin1');
});

const directory = mkdtempSync(join(process.env.REPRO_TMP ?? tmpdir(), 'repro-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
const file = join(directory, 'mail.db');

function openWithKey(name) {
  const connection = new Database(name);
  for (const pragma of KEY) connection.exec(pragma);
  return connection;
}

const db = openWithKey(file);
for (const pragma of [...FILE_PRAGMAS, ...PRAGMAS]) db.exec(pragma);
const statement = db.prepare(SQL).pluck();
const run = (i) => statement.get(texts[i & 3]);

let sink;
function loop(from, to) {
  for (let i = from; i < to; i++) sink = run(i);
}

await time({ warmup: 18347, calls: 8358, passes: 8, loop });

/**
 * Prints nanoseconds per call: lower quartile over passes of the time without GC, plus the mean GC pause.
 * A burst on the machine cannot move it, and the collector cannot hide. `loop(from, to)` makes the calls.
 */
async function time({ warmup, calls, passes, loop, restore = () => {} }) {
  const pauses = [];
  const observer = new PerformanceObserver((list) => pauses.push(...list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  let next = 0;
  const pass = async (count) => {
    await restore();
    await new Promise((resolve) => setTimeout(resolve, 5));
    const start = performance.now();
    await loop(next, (next += count));
    return { start, end: performance.now() };
  };
  for (let part = 0; part < 4; part++) await pass(Math.ceil(warmup / 4));
  const spans = [];
  for (let k = 0; k < passes; k++) spans.push(await pass(calls));
  await new Promise((resolve) => setTimeout(resolve, 50)); // entries of the collector arrive late
  observer.disconnect();
  const collecting = spans.map(({ start, end }) => {
    const own = pauses.filter((pause) => pause.startTime >= start && pause.startTime < end);
    return own.reduce((total, pause) => total + pause.duration, 0);
  });
  const rest = spans.map(({ start, end }, k) => end - start - collecting[k]).sort((a, b) => a - b);
  const place = (passes - 1) / 4;
  const low = rest[Math.floor(place)];
  const quartile = low + (rest[Math.ceil(place)] - low) * (place % 1);
  const pause = collecting.reduce((total, ms) => total + ms, 0) / passes;
  const perCall = (ms) => (ms / calls) * 1e6;
  console.log(JSON.stringify({ node: process.version, ns_per_call: perCall(quartile + pause), gc_ns_per_call: perCall(pause) }));
}
