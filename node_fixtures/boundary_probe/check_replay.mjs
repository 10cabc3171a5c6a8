// Does the replay load, and is its SQLite the one that plays recordings? `node check_replay.mjs ENTRY BINDING`; status 1
// and one line on stderr where it is not.
import { loadDatabase } from '../worker/addon.mjs';
import { play } from './tape.mjs';

const [entry, binding] = process.argv.slice(2);

try {
  const Replay = loadDatabase({ kind: 'package', entry, binding });
  const statement = { sql: 'a', parameters: 1, readonly: true, columns: ['b', 'c'], recordings: [{ rows: [[1, 'x']] }] };
  const replay = play(Replay, [statement]);
  const row = replay.prepare('a').get('y');
  if (row.b !== 1 || row.c !== 'x') throw new Error('it does not give what was recorded');
  replay.close();
} catch (error) {
  process.stderr.write(`${String(error?.message ?? error).split('\n')[0]}\n`);
  process.exitCode = 1;
}
