// Strings to bind, four of each kind. A buffer's toString makes a flat string of the wanted width; one put
// together with + or repeat() would be a tree of pieces, and flattening it would be timed instead.

const COUNT = 4;

/** One byte a character, one byte in UTF-8: character j of text k is letter (7j + k) mod 26 from a. */
export function asciiTexts(length) {
  return texts(length, 'latin1', (j, k) => 0x61 + ((7 * j + k) % 26));
}

/** One byte a character, every eighth of them two bytes in UTF-8 (é), the rest as in `asciiTexts`. */
export function latin1Texts(length) {
  return texts(length, 'latin1', (j, k) => (j % 8 === 7 ? 0xe9 : 0x61 + ((7 * j + k) % 26)));
}

/** Two bytes a character, two in UTF-8: Cyrillic, letter (7j + k) mod 32 from а. */
export function twoByteTexts(length) {
  return texts(length, 'utf16le', (j, k) => 0x430 + ((7 * j + k) % 32));
}

function texts(length, encoding, unit) {
  const width = encoding === 'utf16le' ? 2 : 1;
  return Array.from({ length: COUNT }, (_, k) => {
    const bytes = Buffer.alloc(length * width);
    for (let j = 0; j < length; j++) bytes.writeUIntLE(unit(j, k), j * width, width);
    return bytes.toString(encoding);
  });
}
