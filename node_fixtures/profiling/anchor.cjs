// Preloaded where V8's own profiler has to do (`--require`): makes one function whose creation V8 logs with its
// own clock, tells what process.hrtime said then, and at the end what was mapped where.
'use strict';
const { readFileSync, writeFileSync } = require('node:fs');
const { dirname, join } = require('node:path');

const folder = dirname(JSON.parse(readFileSync(process.argv[2], 'utf8')).output);
const before = process.hrtime.bigint();
new Function('return 0;\n//# sourceURL=investigate_anchor\n')();
const after = process.hrtime.bigint();
writeFileSync(join(folder, 'anchor.txt'), String((before + after) / 2n));

process.on('exit', () => {
  try {
    writeFileSync(join(folder, 'maps.txt'), readFileSync('/proc/self/maps'));
  } catch {
    // No such file on this system: V8's own list of libraries has to do.
  }
});
