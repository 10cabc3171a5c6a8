// Changing rows. All four operations share one database; before every pass, each puts back what any of them changed.

import { acquireWriter, release, restoreWriter } from './lib/database.mjs';
import { sql } from './lib/sql.mjs';

const BATCH = 100;
// Updates and deletions cycle through a part of the mailbox, or putting the rest back would outlast the pass.
const UPDATED = 250;
const NEW_FLAGS = ['\\Seen \\Answered', '\\Seen \\Flagged \\Deleted'];

function restore(state) {
  restoreWriter(state.writer);
}

function teardown(state) {
  release(state.writer);
}

function setupInsert(ctx) {
  const writer = acquireWriter(ctx);
  const { messages } = writer.mailbox;
  const statement = writer.db.prepare(sql('insert_row'));
  const undoStatement = writer.db.prepare(sql('undo_inserts'));
  const state = { writer, statement, messages, inserted: 0 };
  writer.undo.set(state, {
    dirty: () => state.inserted > 0,
    apply: () => {
      undoStatement.run(messages.length);
      state.inserted = 0;
    },
  });
  return state;
}

function insert(state, message) {
  return state.statement.run(
    message.mailbox,
    message.uid,
    message.date,
    message.subject,
    message.sender,
    message.flags,
    message.size,
    message.body,
  );
}

function setupUpdate(ctx) {
  const writer = acquireWriter(ctx);
  const messages = writer.mailbox.messages.filter((message) => message.id % 4 === 1).slice(0, UPDATED);
  const statement = writer.db.prepare(sql('update_row'));
  const state = { writer, statement, ids: messages.map((message) => message.id), updated: 0 };
  writer.undo.set(state, {
    dirty: () => state.updated > 0,
    apply: () => {
      for (const message of messages) statement.run(message.flags, message.id);
      state.updated = 0;
    },
  });
  return state;
}

function setupDelete(ctx) {
  const writer = acquireWriter(ctx);
  const { messages } = writer.mailbox;
  // Oldest first, as mail expires; neighbours are also put back without touching every page of the table.
  // Not the newest: as long as it stands, inserted rows get ids beyond those of the mailbox.
  const order = messages.slice(0, -1);
  const statement = writer.db.prepare(sql('delete_row'));
  const load = writer.db.prepare(sql('load_message'));
  const state = { writer, statement, ids: order.map((message) => message.id), deleted: 0, refill: null };
  const putBack = () => {
    for (const m of order.slice(0, state.deleted)) {
      load.run(m.id, m.mailbox, m.uid, m.date, m.subject, m.sender, m.flags, m.size, m.body);
    }
    state.deleted = 0;
  };
  state.refill = () => {
    writer.begin.run();
    putBack();
    writer.commit.run();
  };
  writer.undo.set(state, { dirty: () => state.deleted > 0, apply: putBack });
  return state;
}

export const workloads = {
  insert_row: {
    setup: setupInsert,
    run: (state, i) => {
      state.inserted += 1;
      return insert(state, state.messages[i % 1000]);
    },
    restore,
    teardown,
  },
  insert_batch: {
    setup: setupInsert,
    run: (state, i) => {
      state.inserted += 1;
      const { messages, writer } = state;
      const first = (i % 10) * BATCH;
      let result;
      writer.begin.run();
      for (let k = first; k < first + BATCH; k++) result = insert(state, messages[k]);
      writer.commit.run();
      return result;
    },
    restore,
    teardown,
  },
  update_row: {
    setup: setupUpdate,
    run: (state, i) => {
      state.updated += 1;
      // The other value every time round, so that every call changes the row.
      return state.statement.run(NEW_FLAGS[Math.floor(i / UPDATED) % 2], state.ids[i % UPDATED]).changes;
    },
    restore,
    teardown,
  },
  delete_row: {
    setup: setupDelete,
    run: (state, _i) => {
      // Only a warm-up, or a pass of more calls than there are messages, comes here: the rows are put back.
      if (state.deleted === state.ids.length) state.refill();
      const { changes } = state.statement.run(state.ids[state.deleted]);
      state.deleted += 1;
      return changes;
    },
    restore,
    teardown,
  },
};
