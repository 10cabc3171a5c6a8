// What really runs: versions, files, inodes and GNU build ids, for the hello event.
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, readSync, realpathSync, statSync } from 'node:fs';

const PT_NOTE = 4;
const NT_GNU_BUILD_ID = 3;
const NOTES_LIMIT = 1 << 20;

export function identity(binding) {
  const node = existsSync('/proc/self/exe') ? '/proc/self/exe' : process.execPath;
  const mapped = binding ? mappedPath(binding) : null;
  return {
    versions: { ...process.versions },
    config_sha256: createHash('sha256').update(canonicalJson(process.config)).digest('hex'),
    exec_path: process.execPath,
    exec_argv: [...process.execArgv],
    node_inode: statSync(node).ino,
    node_build_id: buildId(node),
    binding_path: mapped,
    binding_inode: mapped === null ? null : statSync(mapped).ino,
    binding_build_id: mapped === null ? null : buildId(mapped),
  };
}

/** JSON with sorted keys and no spaces. */
export function canonicalJson(value) {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`).join(',')}}`;
}

/** `path` as the kernel has it mapped; null when it was not loaded. Off Linux: its real path. */
function mappedPath(path) {
  const real = realpathSync(path);
  if (!existsSync('/proc/self/maps')) return real;
  for (const line of readFileSync('/proc/self/maps', 'utf8').split('\n')) {
    // address perms offset dev inode path
    const found = /^\S+ \S+ \S+ \S+ \d+ +(\/.*)$/.exec(line);
    if (found !== null && (found[1] === real || found[1] === path)) return found[1];
  }
  return null;
}

/** GNU build id of an ELF file, hex; null where there is none or the file is something else. */
export function buildId(path) {
  const fd = openSync(path, 'r');
  try {
    const header = readAt(fd, 0, 64);
    if (header.length < 52 || header.readUInt32BE(0) !== 0x7f454c46) return null;
    const elf = elfReader(header);
    const table = elf.programHeaders(header);
    const entries = readAt(fd, table.offset, table.size * table.count);
    for (let at = 0; at + table.size <= entries.length; at += table.size) {
      if (elf.u32(entries, at) !== PT_NOTE) continue;
      const segment = elf.segment(entries, at);
      const id = findBuildId(readAt(fd, segment.offset, Math.min(segment.size, NOTES_LIMIT)), elf.u32);
      if (id !== null) return id;
    }
    return null;
  } finally {
    closeSync(fd);
  }
}

function elfReader(header) {
  const is64 = header[4] === 2;
  const little = header[5] === 1;
  const u16 = (b, at) => (little ? b.readUInt16LE(at) : b.readUInt16BE(at));
  const u32 = (b, at) => (little ? b.readUInt32LE(at) : b.readUInt32BE(at));
  const u64 = (b, at) => Number(little ? b.readBigUInt64LE(at) : b.readBigUInt64BE(at));
  return is64
    ? {
        u32,
        programHeaders: (b) => ({ offset: u64(b, 32), size: u16(b, 54), count: u16(b, 56) }),
        segment: (b, at) => ({ offset: u64(b, at + 8), size: u64(b, at + 32) }),
      }
    : {
        u32,
        programHeaders: (b) => ({ offset: u32(b, 28), size: u16(b, 42), count: u16(b, 44) }),
        segment: (b, at) => ({ offset: u32(b, at + 4), size: u32(b, at + 16) }),
      };
}

function findBuildId(notes, u32) {
  const aligned = (n) => (n + 3) & ~3;
  for (let at = 0; at + 12 <= notes.length; ) {
    const nameSize = u32(notes, at);
    const size = u32(notes, at + 4);
    const name = notes.toString('latin1', at + 12, at + 12 + nameSize);
    const start = at + 12 + aligned(nameSize);
    if (name === 'GNU\0' && u32(notes, at + 8) === NT_GNU_BUILD_ID) {
      return notes.toString('hex', start, start + size);
    }
    at = start + aligned(size);
  }
  return null;
}

function readAt(fd, position, length) {
  const buffer = Buffer.alloc(length);
  return buffer.subarray(0, readSync(fd, buffer, 0, length, position));
}
