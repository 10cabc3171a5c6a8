// Host control of `js` runs: `node host_loop.mjs OUTPUT PASSES PASS_MS` times a fixed integer loop and writes
// the JSON lines of sqlcipher_bench/native/host.c. No allocation, no library: only the machine can change it.
import { writeFileSync } from 'node:fs';
import process from 'node:process';

const ROUNDS = 100_000;

// xorshift32 (Marsaglia 2003).
function loop(seed) {
	let x = seed | 1;
	for (let i = 0; i < ROUNDS; i++) {
		x ^= x << 13;
		x ^= x >>> 17;
		x ^= x << 5;
	}
	return x;
}

function cpuNs(since) {
	const { system, user } = process.cpuUsage(since);
	return (system + user) * 1000;
}

const [output, passCount, passMs] = process.argv.slice(2);
const passNs = BigInt(passMs) * 1_000_000n;
const started = process.hrtime.bigint();
const passes = [];
let fold = 0;
// One more than asked for: the first warms up and is not written.
for (let index = -1; index < Number(passCount); index++) {
	const cpu = process.cpuUsage();
	const start = process.hrtime.bigint();
	let calls = 0;
	let wall = 0n;
	do {
		fold ^= loop(calls);
		calls += 1;
		wall = process.hrtime.bigint() - start;
	} while (wall < passNs);
	const pass = { type: 'pass', op: 'integer_loop', index, calls, wall_ns: Number(wall), cpu_ns: cpuNs(cpu) };
	if (index >= 0) passes.push(pass);
}
const lines = [
	{ type: 'hello', protocol: 1, node: process.version },
	...passes,
	{ type: 'done', wall_ns: Number(process.hrtime.bigint() - started), fold: fold >>> 0 },
];
writeFileSync(output, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
