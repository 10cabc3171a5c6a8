// Preloaded into workers that are profiled (`--require`): makes one script whose compilation V8 logs with its own
// clock, tells what process.hrtime said then, and at the end what was mapped where.
'use strict';
const { readFileSync, writeFileSync } = require('node:fs');
const { dirname, join } = require('node:path');
const { Script } = require('node:vm');

const folder = dirname(JSON.parse(readFileSync(process.argv[2], 'utf8')).output);
const before = process.hrtime.bigint();
new Script('0', { filename: 'investigate_anchor' }).runInThisContext();
const after = process.hrtime.bigint();
writeFileSync(join(folder, 'anchor.txt'), String((before + after) / 2n));

process.on('exit', () => {
  try {
    writeFileSync(join(folder, 'maps.txt'), readFileSync('/proc/self/maps'));
  } catch {
    // No such file on this system: V8's own list of libraries has to do.
  }
});
