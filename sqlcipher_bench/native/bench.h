/*
 * The encrypted mailbox in C: what the host program (host.c) and the core addon (core_addon.c) share.
 *
 * Every operation makes the sqlite3 calls that the addon under test makes for one call of its JavaScript twin,
 * in the same order: parameters are counted and asked for their names, numbers are bound as doubles, names of
 * columns are read where the addon reads them, changes are counted before and after. What the addon does on
 * top of that, JavaScript values, is left out.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sqlite3.h"

#define MAX_MAILBOXES 16
#define MAX_PRAGMAS 16
#define TEXTS 4

enum field { ID, MAILBOX, UID, DATE, SUBJECT, SENDER, FLAGS, SIZE, BODY, FIELDS };

struct text {
	const char *start;
	int length;
};

struct message {
	struct text fields[FIELDS];
	/* Values of the numeric fields, read once: numbers of JavaScript, hence doubles. */
	double numbers[FIELDS];
};

struct mailbox {
	char *content;
	struct message *messages;
	int count;
	const char *names[MAX_MAILBOXES];
	int names_count;
	double since;
};

/* Where the addon reads the names of columns of rows that become objects: it depends on its release and on the
   Node it was compiled for. */
enum names {
	NAMES_PER_ROW,
	/* Once for all rows of `all`; for `get` and `iterate` with every row. */
	NAMES_PER_CALL,
	/* With the first row of a statement, and again when SQLite has prepared it anew. */
	NAMES_PER_STATEMENT,
};

struct bench {
	/* Folder that holds queries.sql and schema.sql. */
	const char *sql;
	const char *cipher;
	const char *key;
	char *cipher_sql;
	char *key_sql;
	/* NAME=VALUE, replacing or following those of the production profile. */
	const char *pragmas[MAX_PRAGMAS];
	int pragmas_count;
	enum names names;
	struct mailbox mailbox;
	char *queries;
	char *schema;
	char *file;
	/* Made the file, and keeps it open. */
	sqlite3 *db;
	/* Folded into the output, so that no compiler can drop the work. */
	uint64_t fold;
	/* The last number read. */
	double number;
};

/* Method of the addon that an operation calls, and what becomes of a row. */
enum shape { GET, PLUCK, ALL, RAW, ITERATE, RUN, BATCH, OPEN };

/* Database that it uses: the one that is only read, a further connection to that, or a copy that is written. */
enum connection { READER, OWN, WRITER };

struct loop;

struct operation {
	/* Of the operation, and of its section in queries.sql. */
	const char *name;
	enum shape shape;
	enum connection connection;
	/* Binds the parameters of call number `i`; NULL where there are none. */
	void (*bind)(struct loop *, int64_t i);
	/* Puts the rows back, inside a transaction; NULL where nothing changes. */
	void (*undo)(struct loop *);
	/* Section of the statement that `undo` needs besides the operation's own. */
	const char *undo_section;
	/* Whether the caller gets the id of the new row beside the number of changes. */
	bool gives_id;
	/* Id of the first attachment read. */
	int first_id;
};

/* An operation on a connection, ready to be called. */
struct loop {
	struct bench *bench;
	const struct operation *operation;
	sqlite3 *db;
	char *sql;
	sqlite3_stmt *statement;
	sqlite3_stmt *undo;
	sqlite3_stmt *begin;
	sqlite3_stmt *commit;
	/* Strings of the bind_text operations. */
	struct text texts[TEXTS];
	/* Calls since the rows were put back. */
	int64_t dirty;
	/* Times that SQLite had prepared the statement anew when its names were read; -1 before. */
	int names_read;
	int columns;
	/* Of the last call that wrote. */
	int changes;
	sqlite3_int64 last_id;
};

/* Called with one sentence when something fails; must not return. To be set before anything else. */
extern void (*bench_failed)(const char *sentence);

__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);

void check(sqlite3 *db, int code, const char *what);
void *allocate(size_t size);
char *joined(const char *first, const char *second);
bool is_encrypted(const struct bench *bench);

/* Takes NAME=VALUE, which stays the caller's. It becomes part of a statement: a word, "=", a word or number. */
void add_pragma(struct bench *bench, const char *pragma);

/* Makes the statements of cipher and key; fails where the cipher is no word, or needs a key and has none. */
void take_key(struct bench *bench);

/* Reads the SQL and the mailbox. */
void read_inputs(struct bench *bench, const char *mailbox);

/* Makes `bench->file` anew and opens it: key and PRAGMAs, but nothing in it. */
void create_database(struct bench *bench);

/* Loads the mailbox, without the checkpoint. */
void load_mailbox(struct bench *bench);

/* Everything into the database file; fails where that is not encrypted, or is against the wish. */
void checkpoint(struct bench *bench);

/* Closes and frees what the functions above made. */
void close_bench(struct bench *bench);

/* A further connection to `file`, with key and PRAGMAs. The caller closes it. */
sqlite3 *open_database(struct bench *bench, const char *file);

/* Runs statements one after the other, as the addon's exec() does. */
void execute(sqlite3 *db, const char *sql);

/* First column of the first row as text; empty where there is none. The caller frees it. */
char *answer(sqlite3 *db, const char *sql);

/* NULL where there is no such operation. */
const struct operation *find_operation(const char *name);

/* Prepares an operation on `db`, the connection that `operation->connection` asks for. `loop` must not move. */
void open_loop(struct loop *loop, struct bench *bench, const struct operation *operation, sqlite3 *db);
void close_loop(struct loop *loop);

/* Call number `i`, or `calls` of them from `from`. */
void call_once(struct loop *loop, int64_t i);
void call_many(struct loop *loop, int64_t from, int64_t calls);

/* The part of call number `i` before the first sqlite3_step, for those who read the rows themselves. */
void begin_call(struct loop *loop, int64_t i);
void end_call(struct loop *loop);

/* Undoes all calls since the last time, and checkpoints. */
void restore(struct loop *loop);

#endif
