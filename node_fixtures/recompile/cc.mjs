// Stands in for a compiler in a rebuild that takes something from another build: `node cc.mjs COMPILER ARGUMENT...`.
//
// FLAG_CHANGES names a JSON file: by source file (or binary, where one is linked) the words to leave out of the command
// line, each once, and those to put at its end. REPLACED_OBJECT names an object file that is taken in place of compiling
// sqlite3.c. What is left goes to COMPILER, C by way of ../compile/cc.mjs (COMPILE_RECIPE), which shares objects.
import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';

const SHARED_SOURCE = 'sqlite3.c';
const SOURCE = /\.(?:c|cc|cpp|cxx)$/;

function main([compiler, ...args]) {
	const { FLAG_CHANGES, REPLACED_OBJECT, COMPILE_RECIPE } = process.env;
	const subject = subjectOf(args);
	const changes = FLAG_CHANGES ? JSON.parse(readFileSync(FLAG_CHANGES, 'utf8')) : {};
	const given = Object.hasOwn(changes, subject) ? changed(args, changes[subject]) : args;
	if (REPLACED_OBJECT && subject === SHARED_SOURCE && given.includes('-c')) {
		// make asks for no dependency file of it: it makes an empty one where there is none.
		copyFileSync(REPLACED_OBJECT, given[given.indexOf('-o') + 1]);
		return 0;
	}
	return compiler === 'gcc' && COMPILE_RECIPE
		? run(process.execPath, [COMPILE_RECIPE, compiler, ...given])
		: run(compiler, given);
}

/** Name of what a command line compiles or links. */
function subjectOf(args) {
	const name = args.includes('-c') ? args.find((word) => SOURCE.test(word)) : args[args.indexOf('-o') + 1];
	return path.basename(name ?? '');
}

function changed(args, { without, added }) {
	const left = [...without];
	const kept = args.filter((word) => {
		const at = left.indexOf(word);
		if (at < 0) return true;
		left.splice(at, 1);
		return false;
	});
	return [...kept, ...added];
}

function run(command, args) {
	const { error, signal, status } = spawnSync(command, args, { stdio: 'inherit' });
	if (error) throw error;
	if (signal) process.kill(process.pid, signal);
	return status ?? 1;
}

process.exitCode = main(process.argv.slice(2));
