
/** Four flat strings, @@WHAT@@. */
const texts = [0, 1, 2, 3].map((k) => {
  const bytes = Buffer.alloc(LENGTH * WIDTH);
  for (let j = 0; j < LENGTH; j++) bytes.writeUIntLE(@@UNIT@@, j * WIDTH, WIDTH);
  return bytes.toString(WIDTH === 2 ? 'utf16le' : 'latin1');
});
