// Reads the mailbox data file; its format is described in sqlcipher_bench/mailbox.py.

import { readFileSync } from 'node:fs';

const DAYS_30_S = 30 * 86400;

/** Returns {messages: [{id, mailbox, ...}], mailboxes: [name], since: seconds}; one read for a process. */
export function readMailbox(path) {
  const records = readFileSync(path, 'utf8').split('\x1e');
  const fields = records[0].split('\x1f');
  const numeric = new Set(['id', 'uid', 'date', 'size']);
  const messages = records.slice(1).map((record) => {
    const message = {};
    record.split('\x1f').forEach((value, index) => {
      const field = fields[index];
      // Fields are cut out of one long string: a copy is flat, small, and does not keep the file alive.
      message[field] = numeric.has(field) ? Number(value) : Buffer.from(value).toString();
    });
    return message;
  });
  const mailboxes = [...new Set(messages.map((message) => message.mailbox))].sort();
  return { messages, mailboxes, since: messages[messages.length - 1].date - DAYS_30_S };
}
