// The addon under test, as a class that needs no options to find its own binary.
import module, { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

// Addons built with the headers of Node 24.19.0 abort when V8 collects one of their wrapped objects while no
// context is entered (node_object_wrap.h of that release; 24.18 and 24.22 do not). What set-ups opened, prepared
// and dropped must not end a measurement, so the first objects stay reachable; a workload that makes them in
// every call gets past the limit, and that abort is what its users would see.
const KEPT_OBJECTS = 1000;
const kept = [];

function keep(wrapped) {
  if (kept.length < KEPT_OBJECTS) kept.push(wrapped);
  return wrapped;
}

/** `Database` of the job's addon. Throws when this Node cannot load it. */
export function loadDatabase(addon) {
  if (addon.kind === 'node:sqlite') {
    // Releases before 18.6 have no isBuiltin.
    if (module.isBuiltin?.('node:sqlite') !== true) throw new Error(whyNoNodeSqlite());
    return require('node:sqlite').DatabaseSync;
  }
  const exported = require(addon.entry);
  const Base = typeof exported === 'function' ? exported : exported.default;
  if (typeof Base !== 'function') throw new TypeError(`${addon.entry} does not export a Database class`);
  return class Database extends Base {
    constructor(file, options) {
      super(file, { nativeBinding: addon.binding, ...options });
      keep(this);
    }

    prepare(...text) {
      return keep(super.prepare(...text));
    }
  };
}

/** Releases from 22.5 on have it; those before 22.13 and 23.4 show it only on demand. */
function whyNoNodeSqlite() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major > 22 || (major === 22 && minor >= 5)
    ? `Node ${process.version} has node:sqlite only under a flag; add --node-flags=--experimental-sqlite`
    : `Node ${process.version} has no node:sqlite; 22.5 was the first`;
}

/** What the library itself says it is; opening a database also maps the binary. */
export function askVersions(Database) {
  const database = new Database(':memory:');
  try {
    const versions = { sqlite: ask(database, 'SELECT sqlite_version() AS value') };
    const cipher = askIfKnown(database, 'SELECT sqlite3mc_version() AS value');
    if (cipher !== null) versions.cipher = cipher;
    return versions;
  } finally {
    database.close();
  }
}

function ask(database, sql) {
  return String(database.prepare(sql).get().value);
}

function askIfKnown(database, sql) {
  try {
    return ask(database, sql);
  } catch {
    return null; // a build without ciphers has no such function
  }
}
