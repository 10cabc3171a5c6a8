"""The encrypted mailbox under test: schema, data generator, operations, cipher and PRAGMA profiles.

The files here are read by three programs: the Python harness, the JavaScript operations that run inside the
Node releases under test, and the C program of ``native/``. Whatever all three must agree on therefore stands
in a file that each can read with a few lines: ``schema.sql``, ``queries.sql`` and the mailbox data file.
"""
