// Runs node-gyp: `node gyp.mjs NODE_GYP LOG [ARGUMENT...]`.
//
// Two things that a plain call cannot do without a shell: the addons' gyp actions run a program called `node`,
// so the running one comes first on PATH; and all output goes to the file LOG, which keeps the first error
// however much follows it.
import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';

const [gyp, log, ...args] = process.argv.slice(2);
const file = openSync(log, 'wx');
const env = { ...process.env, PATH: [path.dirname(process.execPath), process.env.PATH].join(path.delimiter) };
const { error, signal, status } = spawnSync(process.execPath, [gyp, ...args], {
	env,
	stdio: ['ignore', file, file],
});
closeSync(file);
if (error) throw error;
if (signal) process.kill(process.pid, signal);
process.exitCode = status ?? 1;
