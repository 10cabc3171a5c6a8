// Stands in for the C compiler: `node cc.mjs COMPILER ARGUMENT...`.
//
// SQLite's one file, sqlite3.c, is nine tenths of an addon build, and its object comes out bit for bit the same
// for every Node version. So it is compiled once and kept in the directory SHARED_OBJECTS under a digest of
// all that decides it: the compiler, the flags, and the source as the preprocessor hands it on. Definitions and
// include paths, which do differ between Node versions, act through the latter. Everything else is just compiled.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, renameSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';

const SHARED_SOURCE = 'sqlite3.c';
const PREPROCESSED_BYTES = 256 * 2 ** 20;
// Act before or beside the compilation proper; the second kind has its value in the next word.
const NOT_DECISIVE = /^(?:-[DIUM].|-c$)/;
const NOT_DECISIVE_PAIR = new Set(['-D', '-I', '-U', '-MF', '-MT', '-MQ', '-o', '-include', '-isystem']);

function main([compiler, ...args]) {
	const folder = process.env.SHARED_OBJECTS;
	const source = args.find((word) => path.basename(word) === SHARED_SOURCE);
	const output = args[args.indexOf('-o') + 1];
	// Debug information holds paths and line numbers: such an object is not the same everywhere.
	const canBeShared = folder && source && args.includes('-c') && args.includes('-o') && !args.some(isDebug);
	if (!canBeShared) return run(compiler, args);
	const key = digest(compiler, args, source);
	if (key === null) return run(compiler, args);
	const shared = path.join(folder, `${key}.o`);
	if (existsSync(shared)) {
		copyFileSync(shared, output);
		return 0;
	}
	const status = run(compiler, args);
	if (status === 0) {
		mkdirSync(folder, { recursive: true });
		const partial = `${shared}.${process.pid}.partial`;
		copyFileSync(output, partial);
		renameSync(partial, shared);
	}
	return status;
}

function isDebug(word) {
	return word.startsWith('-g') && word !== '-g0';
}

/** Digest of what decides the object file; null where the preprocessor fails, so that the compiler says why. */
function digest(compiler, args, source) {
	const version = spawnSync(compiler, ['--version'], { encoding: 'utf8' });
	// -P: without line markers, which name paths. The dependency file that make reads is written here already.
	const preprocessing = args.filter((word, index) => word !== '-c' && word !== '-o' && args[index - 1] !== '-o');
	const text = spawnSync(compiler, [...preprocessing, '-E', '-P'], { maxBuffer: PREPROCESSED_BYTES });
	if (version.status !== 0 || text.status !== 0) return null;
	const flags = args.filter(
		(word, index) =>
			word !== source &&
			!NOT_DECISIVE.test(word) &&
			!NOT_DECISIVE_PAIR.has(word) &&
			!NOT_DECISIVE_PAIR.has(args[index - 1]),
	);
	return createHash('sha256').update(JSON.stringify([version.stdout, flags])).update(text.stdout).digest('hex');
}

function run(command, args) {
	const { error, signal, status } = spawnSync(command, args, { stdio: 'inherit' });
	if (error) throw error;
	if (signal) process.kill(process.pid, signal);
	return status ?? 1;
}

process.exitCode = main(process.argv.slice(2));
