
/** 1,000 synthetic mails of about 3 kB in four mailboxes; the same bytes for a seed everywhere (splitmix64). */
function mailbox(seed) {
  const MASK = (1n << 64n) - 1n;
  let state = BigInt(seed) & MASK;
  const next = () => {
    state = (state + 0x9e3779b97f4a7c15n) & MASK;
    let value = ((state ^ (state >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
    value = ((value ^ (value >> 27n)) * 0x94d049bb133111ebn) & MASK;
    return value ^ (value >> 31n);
  };
  const below = (bound) => Number(next() % BigInt(bound));
  const pick = (values) => values[below(values.length)];
  const WORDS = @@WORDS@@;
  const ACCENTED = @@ACCENTED@@;
  const NAMES = @@NAMES@@;
  const SURNAMES = @@SURNAMES@@;
  const FLAGS = @@FLAGS@@;
  const BOXES = @@BOXES@@;
  const words = (vocabulary, count) => {
    const drawn = [];
    while (drawn.length < count) {
      const bits = next();
      for (let shift = 0n; shift < 60n; shift += 6n) drawn.push(vocabulary[Number((bits >> shift) & 63n)]);
    }
    return drawn.slice(0, count);
  };
  const uids = Object.fromEntries(BOXES.map((box) => [box, 0]));
  const step = Math.floor((60 * 86400) / 1000);
  let order = [];
  return Array.from({ length: 1000 }, (_, index) => {
    if (order.length === 0) {
      order = [...BOXES];
      for (let last = 3; last > 0; last--) {
        const other = below(last + 1);
        [order[last], order[other]] = [order[other], order[last]];
      }
    }
    const box = order.pop();
    uids[box] += 1;
    const vocabulary = (index + 1) % 8 === 0 ? ACCENTED : WORDS;
    const size = 2880 + below(321);
    const lines = [];
    for (let length = 0; length < size; length += lines.at(-1).length + 2) lines.push(words(vocabulary, 10).join(' '));
    let body = Buffer.from(lines.join('\r\n')).subarray(0, size);
    while (body.length > 0 && body.toString().endsWith('\ufffd')) body = body.subarray(0, -1);
    const date = 1763078400 - (999 - index) * step - below(step);
    const sentence = words(WORDS, 12).join(' ');
    const subject = (sentence[0].toUpperCase() + sentence.slice(1)).slice(0, 20 + below(41)).trimEnd().padEnd(20, '.');
    const [name, surname] = [pick(NAMES), pick(SURNAMES)];
    const sender = `${name} ${surname} <${name.toLowerCase()}.${surname.toLowerCase()}@host${below(40)}.example>`;
    const flags = pick(FLAGS);
    return { id: index + 1, mailbox: box, uid: uids[box], date, subject, sender, flags, size: body.length, body: body.toString() };
  });
}
