// Full digest of a result: equal values give equal digests on every Node release.
//
// What releases are free to change is left out: classes and prototypes (node:sqlite rows lost theirs,
// iterators gained a class), the order of keys, Buffer against Uint8Array, functions and symbols.
import { createHash } from 'node:crypto';
import { types } from 'node:util';

const FLUSH_AT = 1 << 16;

/** sha256 (hex) over all `values` in order. */
export function digest(values) {
  const sink = new Sink();
  walk(sink, values);
  return sink.hex();
}

class Sink {
  #hash = createHash('sha256');
  #text = '';

  put(text) {
    this.#text += text;
    if (this.#text.length >= FLUSH_AT) this.#flush();
  }

  bytes(view) {
    this.#flush();
    this.#hash.update(view);
  }

  hex() {
    this.#flush();
    return this.#hash.digest('hex');
  }

  #flush() {
    this.#hash.update(this.#text, 'utf8');
    this.#text = '';
  }
}

/** Iterative, so that a long linked list does not overflow the stack. */
function walk(sink, root) {
  const seen = new Map();
  const sortedKeys = keySorter();
  const frames = [];
  const open = (tag, items) => {
    sink.put(`${tag}${items.length}(`);
    frames.push({ items, next: 0 });
  };

  const visit = (value) => {
    if (typeof value !== 'object' || value === null) {
      sink.put(primitive(value));
      return;
    }
    const known = seen.get(value);
    if (known !== undefined) {
      sink.put(`@${known};`);
      return;
    }
    seen.set(value, seen.size);
    if (Array.isArray(value)) {
      if (!numbers(sink, value)) open('a', value);
    } else if (types.isMap(value)) {
      if (!flatMap(sink, value)) open('M', [...value].flat(1));
    } else if (types.isSet(value)) {
      open('S', [...value]);
    } else if (!leaf(sink, value)) {
      const keys = sortedKeys(value);
      if (!flatObject(sink, value, keys)) open('o', keys.flatMap((key) => [key, value[key]]));
    }
  };

  visit(root);
  while (frames.length > 0) {
    const frame = frames[frames.length - 1];
    if (frame.next < frame.items.length) {
      visit(frame.items[frame.next++]);
    } else {
      frames.pop();
      sink.put(')');
    }
  }
}

const isPrimitive = (value) => typeof value !== 'object' || value === null;

/** An object that holds only primitives, written as `open` would: a table has 20,000 of them. */
function flatObject(sink, object, keys) {
  let text = `o${keys.length * 2}(`;
  for (let k = 0; k < keys.length; k++) {
    const value = object[keys[k]];
    if (!isPrimitive(value)) return false;
    text += primitive(keys[k]) + primitive(value);
  }
  sink.put(`${text})`);
  return true;
}

/** A map from primitives to primitives, written as `open` would. */
function flatMap(sink, map) {
  for (const [key, value] of map) if (!isPrimitive(key) || !isPrimitive(value)) return false;
  sink.put(`M${map.size * 2}(`);
  for (const [key, value] of map) {
    sink.put(primitive(key));
    sink.put(primitive(value));
  }
  sink.put(')');
  return true;
}

function primitive(value) {
  switch (typeof value) {
    case 'number':
      return Object.is(value, -0) ? 'n-0;' : `n${value};`;
    case 'string':
      return `s${value.length}:${value};`;
    case 'bigint':
      return `i${value};`;
    case 'boolean':
      return value ? 't' : 'f';
    case 'undefined':
      return 'u';
    case 'object':
      return '0';
    default:
      return `<${typeof value}>`;
  }
}

/** An array of numbers as raw doubles: a walk would be slow for the 200,000 of a sort. */
function numbers(sink, array) {
  if (array.length < 64) return false;
  for (let k = 0; k < array.length; k++) {
    const value = array[k];
    // NaN has many bit patterns, so an array with one takes the long way.
    if (typeof value !== 'number' || value !== value) return false;
  }
  const doubles = new Float64Array(array);
  sink.put(`d${doubles.length}:`);
  sink.bytes(doubles);
  return true;
}

/** Objects that are one value of their own; true when `value` was one. */
function leaf(sink, value) {
  if (ArrayBuffer.isView(value)) {
    // The tag of a Buffer is that of its Uint8Array.
    sink.put(`b${types.isDataView(value) ? 'DataView' : value[Symbol.toStringTag]}${value.byteLength}:`);
    sink.bytes(value);
  } else if (types.isAnyArrayBuffer(value)) {
    sink.put(`B${value.byteLength}:`);
    sink.bytes(new Uint8Array(value));
  } else if (types.isDate(value)) {
    sink.put(`D${value.getTime()};`);
  } else if (types.isRegExp(value)) {
    sink.put(`R${primitive(value.source)}${primitive(value.flags)}`);
  } else if (types.isNativeError(value) || value instanceof Error) {
    sink.put(`E${primitive(String(value.name))}${primitive(String(value.message))}`);
  } else if (types.isBoxedPrimitive(value)) {
    sink.put(`P${primitive(value.valueOf())}`);
  } else if (types.isPromise(value)) {
    sink.put('<promise>');
  } else {
    return false;
  }
  return true;
}

/** Rows of one table have the same keys: sort them once, not 20,000 times. */
function keySorter() {
  let lastKeys = [];
  let lastSorted = [];
  return (object) => {
    const keys = Object.keys(object);
    const same = keys.length === lastKeys.length && keys.every((key, k) => key === lastKeys[k]);
    if (!same) {
      lastKeys = keys;
      lastSorted = [...keys].sort();
    }
    return lastSorted;
  };
}
