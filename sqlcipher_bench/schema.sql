-- The mailbox. Statements end with a semicolon at the end of a line; comments have a line of their own.
-- Both the JavaScript operations and the C program run this file as it is, after the PRAGMAs of queries.sql.

CREATE TABLE messages (
  id INTEGER PRIMARY KEY,
  mailbox TEXT NOT NULL,
  uid INTEGER NOT NULL,
  date INTEGER NOT NULL,
  subject TEXT NOT NULL,
  sender TEXT NOT NULL,
  flags TEXT NOT NULL,
  size INTEGER NOT NULL,
  body TEXT NOT NULL
);

CREATE INDEX messages_mailbox_date ON messages (mailbox, date);

CREATE TABLE attachments (
  id INTEGER PRIMARY KEY,
  content BLOB NOT NULL
);
