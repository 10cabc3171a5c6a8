/*
 * The encrypted mailbox without Node: the SQL of the operations in C loops, on the addon's own SQLite.
 *
 *   host control --mailbox FILE --sql DIRECTORY --output FILE [--scratch DIRECTORY] [--cipher NAME]
 *                [--pragma NAME=VALUE ...] [--passes N] [--pass-ms N]
 *   host native  (the same arguments)
 *
 * `control` runs select_range only: it tells whether the machine drifts, about 0.3 s after set-up. `native`
 * runs every operation and measures VACUUM and the sizes of the files.
 *
 * The key comes in the environment variable INVESTIGATE_KEY; the cipher `none` needs no key. The database is
 * made in the scratch directory, INVESTIGATE_SCRATCH where none is named. Results are JSON lines in the output
 * file: `hello`, `value` and `pass` lines, `done`. Times are integers in nanoseconds.
 * Errors go to stderr as one line, with exit status 1; the output file then has no `done`.
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sqlite3.h"

#define PROTOCOL 1
#define RECORD_SEPARATOR '\x1e'
#define FIELD_SEPARATOR '\x1f'
#define DAYS_30_S (30 * 86400)
#define BATCH 100
#define UPDATED 250
#define MAX_PASSES 100
#define MAX_PRAGMAS 16
#define MAX_MAILBOXES 16
/* Odd and no divisor of the number of messages: every one of them once, no two neighbours in a row. */
#define STRIDE 619

enum field { ID, MAILBOX, UID, DATE, SUBJECT, SENDER, FLAGS, SIZE, BODY, FIELDS };

static const char *const FIELD_NAMES[FIELDS] = {
	"id", "mailbox", "uid", "date", "subject", "sender", "flags", "size", "body",
};

struct text {
	const char *start;
	int length;
};

struct message {
	struct text fields[FIELDS];
	/* Values of the numeric fields, read once: the loops bind numbers as a program has them. */
	sqlite3_int64 numbers[FIELDS];
};

struct mailbox {
	struct message *messages;
	int count;
	const char *names[MAX_MAILBOXES];
	int names_count;
	sqlite3_int64 since;
};

struct options {
	bool is_control;
	const char *mailbox;
	const char *sql;
	const char *scratch;
	const char *output;
	const char *cipher;
	const char *pragmas[MAX_PRAGMAS];
	int pragmas_count;
	int passes;
	int64_t pass_ns;
};

struct bench {
	struct options options;
	struct mailbox mailbox;
	char *queries;
	char *schema;
	char *file;
	char *wal;
	const char *key;
	sqlite3 *db;
	FILE *output;
	/* Folded into the output, so that no compiler can drop the work. */
	uint64_t fold;
};

struct operation {
	const char *name;
	const char *section;
	/* Makes call number `i` with the prepared statement. */
	void (*run)(struct bench *, sqlite3_stmt *, int64_t i);
	/* Puts the database back, untimed; NULL where nothing changes. */
	void (*restore)(struct bench *, int64_t calls);
	/* Calls of one pass at most, because the rows run out; 0 without limit. */
	int64_t limit;
	/* Calls between two looks at the clock. */
	int stride;
};

/* -- errors and time ------------------------------------------------------------------------------------- */

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...) {
	va_list arguments;
	va_start(arguments, format);
	fputs("host: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

static void check(sqlite3 *db, int code, const char *what) {
	if (code != SQLITE_OK) die("%s: %s (%s)", what, db ? sqlite3_errmsg(db) : "no database", sqlite3_errstr(code));
}

static int64_t nanoseconds(clockid_t clock) {
	struct timespec now;
	if (clock_gettime(clock, &now) != 0) die("clock_gettime: %s", strerror(errno));
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* -- files ----------------------------------------------------------------------------------------------- */

static void *allocate(size_t size) {
	void *memory = calloc(1, size);
	if (!memory) die("out of memory");
	return memory;
}

static char *joined(const char *first, const char *second) {
	size_t size = strlen(first) + strlen(second) + 1;
	char *result = allocate(size);
	snprintf(result, size, "%s%s", first, second);
	return result;
}

static char *read_file(const char *path, size_t *size) {
	FILE *file = fopen(path, "rb");
	if (!file) die("%s: %s", path, strerror(errno));
	struct stat info;
	if (fstat(fileno(file), &info) != 0 || info.st_size <= 0) die("%s is empty", path);
	*size = (size_t)info.st_size;
	char *content = allocate(*size + 1);
	if (fread(content, 1, *size, file) != *size) die("%s: %s", path, strerror(errno));
	fclose(file);
	return content;
}

static int64_t file_size(const char *path) {
	struct stat info;
	if (stat(path, &info) == 0) return info.st_size;
	if (errno != ENOENT) die("%s: %s", path, strerror(errno));
	return 0;
}

static int compare_names(const void *left, const void *right) {
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static bool is_numeric(int field) {
	return field == ID || field == UID || field == DATE || field == SIZE;
}

/* Cuts one record into its fields, ending each with a NUL. Returns where the next record begins, or NULL. */
static char *cut_record(char *start, char *end, struct message *record) {
	char *stop = memchr(start, RECORD_SEPARATOR, (size_t)(end - start));
	char *record_end = stop ? stop : end;
	*record_end = '\0';
	for (int field = 0; field < FIELDS; field++) {
		char *field_end = memchr(start, FIELD_SEPARATOR, (size_t)(record_end - start));
		if ((field_end == NULL) != (field == FIELDS - 1)) die("a record of the mailbox has not %d fields", FIELDS);
		if (!field_end) field_end = record_end;
		*field_end = '\0';
		record->fields[field] = (struct text){start, (int)(field_end - start)};
		if (is_numeric(field)) record->numbers[field] = strtoll(start, NULL, 10);
		start = field_end + 1;
	}
	return stop ? stop + 1 : NULL;
}

/* The format is described in sqlcipher_bench/mailbox.py. */
static struct mailbox read_mailbox(const char *path) {
	size_t size;
	char *content = read_file(path, &size);
	size_t records = 1;
	for (size_t i = 0; i < size; i++) records += content[i] == RECORD_SEPARATOR;
	struct mailbox mailbox = {.messages = allocate(records * sizeof(struct message))};
	struct message header;
	char *next = cut_record(content, content + size, &header);
	for (int field = 0; field < FIELDS; field++) {
		if (strcmp(header.fields[field].start, FIELD_NAMES[field]) != 0) {
			die("field %d of the mailbox is %s, not %s", field, header.fields[field].start, FIELD_NAMES[field]);
		}
	}
	while (next) next = cut_record(next, content + size, &mailbox.messages[mailbox.count++]);
	if (mailbox.count < BATCH) die("the mailbox has %d messages, %d are needed", mailbox.count, BATCH);
	for (int i = 0; i < mailbox.count; i++) {
		const char *name = mailbox.messages[i].fields[MAILBOX].start;
		int known = 0;
		while (known < mailbox.names_count && strcmp(mailbox.names[known], name) != 0) known++;
		if (known < mailbox.names_count) continue;
		if (known == MAX_MAILBOXES) die("the mailbox file has more than %d mailboxes", MAX_MAILBOXES);
		mailbox.names[mailbox.names_count++] = name;
	}
	qsort(mailbox.names, (size_t)mailbox.names_count, sizeof(char *), compare_names);
	mailbox.since = mailbox.messages[mailbox.count - 1].numbers[DATE] - DAYS_30_S;
	return mailbox;
}

/* The SQL of one section of queries.sql, whose format stands on top of that file. The caller frees it. */
static char *section(const char *queries, const char *name) {
	static const char MARK[] = "-- name: ";
	char *result = allocate(strlen(queries) + 1);
	bool is_inside = false;
	bool has_sql = false;
	for (const char *line = queries; *line;) {
		size_t length = strcspn(line, "\n");
		if (strncmp(line, MARK, sizeof MARK - 1) == 0) {
			if (has_sql && is_inside) break;
			if (has_sql) has_sql = false;
			size_t name_length = length - (sizeof MARK - 1);
			is_inside |= name_length == strlen(name) && strncmp(line + sizeof MARK - 1, name, name_length) == 0;
		} else if (length > 0 && strncmp(line, "--", 2) != 0) {
			has_sql = true;
			if (is_inside) strncat(strncat(result, line, length), "\n", 2);
		}
		line += length + (line[length] == '\n');
	}
	if (!*result) die("queries.sql has no section named %s", name);
	return result;
}

/* -- output ---------------------------------------------------------------------------------------------- */

static void put_string(FILE *output, const char *text) {
	fputc('"', output);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\') fputc('\\', output);
		if (c < 0x20) fprintf(output, "\\u%04x", c);
		else fputc(c, output);
	}
	fputc('"', output);
}

static void put_value(struct bench *bench, const char *name, int64_t value) {
	fprintf(bench->output, "{\"type\":\"value\",\"name\":\"%s\",\"value\":%" PRId64 "}\n", name, value);
}

/* First column of the first row as text; empty where there is none. The caller frees it. */
static char *answer(sqlite3 *db, const char *sql) {
	sqlite3_stmt *statement;
	check(db, sqlite3_prepare_v2(db, sql, -1, &statement, NULL), sql);
	char *result = NULL;
	int code = sqlite3_step(statement);
	if (code == SQLITE_ROW) {
		const unsigned char *text = sqlite3_column_text(statement, 0);
		result = joined(text ? (const char *)text : "", "");
	} else if (code != SQLITE_DONE) {
		check(db, code, sql);
	}
	check(db, sqlite3_finalize(statement), sql);
	return result ? result : joined("", "");
}

/* -- database -------------------------------------------------------------------------------------------- */

static bool is_encrypted(const struct bench *bench) {
	return strcmp(bench->options.cipher, "none") != 0;
}

static void execute(sqlite3 *db, const char *sql) {
	check(db, sqlite3_exec(db, sql, NULL, NULL, NULL), sql);
}

static void execute_section(struct bench *bench, const char *name) {
	char *sql = section(bench->queries, name);
	execute(bench->db, sql);
	free(sql);
}

/* A connection with the key, and nothing else. Error texts never hold the statement: it holds the key. */
static sqlite3 *open_with_key(const struct bench *bench) {
	sqlite3 *db = NULL;
	check(db, sqlite3_open_v2(bench->file, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL), "open");
	if (!is_encrypted(bench)) return db;
	static const char *const FORMATS[] = {"PRAGMA cipher = %Q", "PRAGMA key = %Q"};
	const char *const values[] = {bench->options.cipher, bench->key};
	for (int i = 0; i < 2; i++) {
		char *sql = sqlite3_mprintf(FORMATS[i], values[i]);
		if (!sql) die("out of memory");
		check(db, sqlite3_exec(db, sql, NULL, NULL, NULL), i ? "PRAGMA key" : "PRAGMA cipher");
		sqlite3_free(sql);
	}
	return db;
}

/* Whether `pragma` (NAME=VALUE) sets what the line "PRAGMA NAME = ..." sets. */
static bool replaces(const char *pragma, const char *line) {
	size_t length = strcspn(pragma, "=");
	return strncmp(line, "PRAGMA ", 7) == 0 && strncmp(line + 7, pragma, length) == 0 && line[7 + length] == ' ';
}

static void set_pragma(sqlite3 *db, const char *pragma) {
	size_t length = strcspn(pragma, "=");
	char *sql = sqlite3_mprintf("PRAGMA %.*s = '%s'", (int)length, pragma, pragma + length + 1);
	if (!sql) die("out of memory");
	execute(db, sql);
	sqlite3_free(sql);
}

/* The production profile with the replacements in their place: the order matters, see queries.sql. */
static void apply_pragmas(struct bench *bench) {
	bool used[MAX_PRAGMAS] = {false};
	const struct options *options = &bench->options;
	char *sql = section(bench->queries, "pragmas");
	for (char *line = strtok(sql, "\n"); line; line = strtok(NULL, "\n")) {
		int found = 0;
		while (found < options->pragmas_count && !replaces(options->pragmas[found], line)) found++;
		if (found == options->pragmas_count) {
			execute(bench->db, line);
		} else {
			set_pragma(bench->db, options->pragmas[found]);
			used[found] = true;
		}
	}
	free(sql);
	for (int i = 0; i < options->pragmas_count; i++) {
		if (!used[i]) set_pragma(bench->db, options->pragmas[i]);
	}
}

static sqlite3_stmt *prepare(struct bench *bench, const char *section_name) {
	sqlite3_stmt *statement;
	char *sql = section(bench->queries, section_name);
	check(bench->db, sqlite3_prepare_v3(bench->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL), sql);
	free(sql);
	return statement;
}

static void bind_number(struct bench *bench, sqlite3_stmt *statement, int index, sqlite3_int64 value) {
	check(bench->db, sqlite3_bind_int64(statement, index, value), "bind");
}

static void bind_text(struct bench *bench, sqlite3_stmt *statement, int index, const char *text, int length) {
	/* SQLITE_TRANSIENT: the addon lets SQLite copy as well. */
	check(bench->db, sqlite3_bind_text(statement, index, text, length, SQLITE_TRANSIENT), "bind");
}

static void bind_message(struct bench *bench, sqlite3_stmt *statement, const struct message *message, int first) {
	for (int field = first; field < FIELDS; field++) {
		const struct text *text = &message->fields[field];
		if (is_numeric(field)) bind_number(bench, statement, field - first + 1, message->numbers[field]);
		else bind_text(bench, statement, field - first + 1, text->start, text->length);
	}
}

/* Reads all rows, every column once, as the addon does before it makes JavaScript values of them. */
static void read_rows(struct bench *bench, sqlite3_stmt *statement) {
	int code;
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		int columns = sqlite3_column_count(statement);
		for (int column = 0; column < columns; column++) {
			if (sqlite3_column_type(statement, column) == SQLITE_INTEGER) {
				bench->fold += (uint64_t)sqlite3_column_int64(statement, column);
			} else {
				const unsigned char *text = sqlite3_column_text(statement, column);
				int length = sqlite3_column_bytes(statement, column);
				bench->fold += (uint64_t)length + (length > 0 ? text[length - 1] : 0u);
			}
		}
	}
	if (code != SQLITE_DONE) check(bench->db, code, sqlite3_sql(statement));
	check(bench->db, sqlite3_reset(statement), "reset");
	check(bench->db, sqlite3_clear_bindings(statement), "clear");
}

static void run_write(struct bench *bench, sqlite3_stmt *statement) {
	int code = sqlite3_step(statement);
	if (code != SQLITE_DONE) check(bench->db, code, sqlite3_sql(statement));
	bench->fold += (uint64_t)sqlite3_changes(bench->db) + (uint64_t)sqlite3_last_insert_rowid(bench->db);
	check(bench->db, sqlite3_reset(statement), "reset");
	check(bench->db, sqlite3_clear_bindings(statement), "clear");
}

static void load(struct bench *bench) {
	execute(bench->db, bench->schema);
	sqlite3_stmt *statement = prepare(bench, "load_message");
	execute(bench->db, "BEGIN IMMEDIATE");
	for (int i = 0; i < bench->mailbox.count; i++) {
		bind_message(bench, statement, &bench->mailbox.messages[i], ID);
		run_write(bench, statement);
	}
	check(bench->db, sqlite3_finalize(statement), "load");
	execute_section(bench, "load_attachments");
	execute(bench->db, "COMMIT");
}

/* A library without ciphers ignores the key, and nobody would notice. */
static void assert_encryption(const struct bench *bench) {
	size_t size;
	char *content = read_file(bench->file, &size);
	bool is_plain = size >= 16 && memcmp(content, "SQLite format 3", 16) == 0;
	free(content);
	if (is_plain == is_encrypted(bench)) die(is_plain ? "the database is not encrypted" : "the database is encrypted");
}

/* -- operations ------------------------------------------------------------------------------------------ */

static int nth_id(const struct bench *bench, int64_t i) {
	return (int)(i * STRIDE % bench->mailbox.count) + 1;
}

static void run_range(struct bench *bench, sqlite3_stmt *statement, int64_t i) {
	const char *name = bench->mailbox.names[i % bench->mailbox.names_count];
	bind_text(bench, statement, 1, name, (int)strlen(name));
	bind_number(bench, statement, 2, bench->mailbox.since);
	read_rows(bench, statement);
}

static void run_point(struct bench *bench, sqlite3_stmt *statement, int64_t i) {
	bind_number(bench, statement, 1, nth_id(bench, i));
	read_rows(bench, statement);
}

static void run_insert(struct bench *bench, sqlite3_stmt *statement, int64_t i) {
	bind_message(bench, statement, &bench->mailbox.messages[i % bench->mailbox.count], MAILBOX);
	run_write(bench, statement);
}

static void run_insert_batch(struct bench *bench, sqlite3_stmt *statement, int64_t i) {
	execute(bench->db, "BEGIN IMMEDIATE");
	for (int64_t k = 0; k < BATCH; k++) run_insert(bench, statement, i * BATCH + k);
	execute(bench->db, "COMMIT");
}

static int nth_updated(const struct bench *bench, int64_t i) {
	return (int)(i % UPDATED * 4 % bench->mailbox.count) + 1;
}

static void run_update(struct bench *bench, sqlite3_stmt *statement, int64_t i) {
	/* The other value every time round, so that every call changes the row. */
	const char *flags = i / UPDATED % 2 ? "\\Seen \\Flagged \\Deleted" : "\\Seen \\Answered";
	bind_text(bench, statement, 1, flags, (int)strlen(flags));
	bind_number(bench, statement, 2, nth_updated(bench, i));
	run_write(bench, statement);
}

static void run_delete(struct bench *bench, sqlite3_stmt *statement, int64_t i) {
	bind_number(bench, statement, 1, nth_id(bench, i));
	run_write(bench, statement);
}

static void run_open_key(struct bench *bench, sqlite3_stmt *statement, int64_t i) {
	(void)statement;
	(void)i;
	sqlite3 *db = open_with_key(bench);
	char *sql = section(bench->queries, "open_key");
	char *tables = answer(db, sql);
	bench->fold += (uint64_t)strtoll(tables, NULL, 10);
	free(tables);
	free(sql);
	check(db, sqlite3_close(db), "close");
}

static void restore_inserts(struct bench *bench, int64_t calls) {
	(void)calls;
	sqlite3_stmt *statement = prepare(bench, "undo_inserts");
	bind_number(bench, statement, 1, bench->mailbox.count);
	run_write(bench, statement);
	check(bench->db, sqlite3_finalize(statement), "undo");
	execute_section(bench, "checkpoint");
}

static void restore_updates(struct bench *bench, int64_t calls) {
	sqlite3_stmt *statement = prepare(bench, "update_row");
	execute(bench->db, "BEGIN IMMEDIATE");
	for (int64_t i = 0; i < calls && i < UPDATED; i++) {
		const int id = nth_updated(bench, i);
		const struct text *flags = &bench->mailbox.messages[id - 1].fields[FLAGS];
		bind_text(bench, statement, 1, flags->start, flags->length);
		bind_number(bench, statement, 2, id);
		run_write(bench, statement);
	}
	check(bench->db, sqlite3_finalize(statement), "restore");
	execute(bench->db, "COMMIT");
	execute_section(bench, "checkpoint");
}

static void restore_deletes(struct bench *bench, int64_t calls) {
	sqlite3_stmt *statement = prepare(bench, "load_message");
	execute(bench->db, "BEGIN IMMEDIATE");
	for (int64_t i = 0; i < calls; i++) {
		bind_message(bench, statement, &bench->mailbox.messages[nth_id(bench, i) - 1], ID);
		run_write(bench, statement);
	}
	check(bench->db, sqlite3_finalize(statement), "restore");
	execute(bench->db, "COMMIT");
	execute_section(bench, "checkpoint");
}

/* Deletes stop before the last message: rows inserted later must get ids beyond those of the mailbox. */
static const struct operation OPERATIONS[] = {
	{"select_range", "select_range", run_range, NULL, 0, 64},
	{"open_key", "open_key", run_open_key, NULL, 0, 1},
	{"select_point", "select_point", run_point, NULL, 0, 256},
	{"insert_row", "insert_row", run_insert, restore_inserts, 0, 16},
	{"insert_batch", "insert_batch", run_insert_batch, restore_inserts, 0, 1},
	{"update_row", "update_row", run_update, restore_updates, 0, 16},
	{"delete_row", "delete_row", run_delete, restore_deletes, 900, 16},
};

struct pass {
	int64_t calls;
	int64_t wall_ns;
	int64_t cpu_ns;
};

static struct pass run_pass(struct bench *bench, const struct operation *operation, sqlite3_stmt *statement) {
	struct pass pass = {0};
	const int64_t cpu_start = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
	const int64_t start = nanoseconds(CLOCK_MONOTONIC);
	do {
		for (int k = 0; k < operation->stride; k++) operation->run(bench, statement, pass.calls++);
		pass.wall_ns = nanoseconds(CLOCK_MONOTONIC) - start;
	} while (pass.wall_ns < bench->options.pass_ns && (operation->limit == 0 || pass.calls < operation->limit));
	pass.cpu_ns = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
	if (operation->restore) operation->restore(bench, pass.calls);
	return pass;
}

/* One pass to warm up, then those that count; nothing is written while they run. */
static void measure(struct bench *bench, const struct operation *operation) {
	struct pass passes[MAX_PASSES];
	sqlite3_stmt *statement = prepare(bench, operation->section);
	run_pass(bench, operation, statement);
	for (int i = 0; i < bench->options.passes; i++) passes[i] = run_pass(bench, operation, statement);
	check(bench->db, sqlite3_finalize(statement), operation->name);
	for (int i = 0; i < bench->options.passes; i++) {
		fprintf(bench->output,
			"{\"type\":\"pass\",\"op\":\"%s\",\"index\":%d,\"calls\":%" PRId64 ",\"wall_ns\":%" PRId64
			",\"cpu_ns\":%" PRId64 "}\n",
			operation->name, i, passes[i].calls, passes[i].wall_ns, passes[i].cpu_ns);
	}
}

static void measure_vacuum(struct bench *bench) {
	const int64_t start = nanoseconds(CLOCK_MONOTONIC);
	execute(bench->db, "VACUUM");
	put_value(bench, "vacuum_ns", nanoseconds(CLOCK_MONOTONIC) - start);
	execute_section(bench, "checkpoint");
	put_value(bench, "database_after_vacuum_bytes", file_size(bench->file));
}

/* -- main ------------------------------------------------------------------------------------------------ */

/* What the library itself answers: proof of what was measured. */
static void put_hello(struct bench *bench) {
	static const char *const NAMES[] = {
		"encoding",     "auto_vacuum", "journal_mode", "secure_delete",      "synchronous", "foreign_keys",
		"temp_store",   "busy_timeout", "wal_autocheckpoint", "cache_size",  "mmap_size",   "page_size",
	};
	FILE *output = bench->output;
	char *cipher = is_encrypted(bench) ? answer(bench->db, "PRAGMA cipher") : joined("none", "");
	fprintf(output, "{\"type\":\"hello\",\"protocol\":%d,\"sqlite\":", PROTOCOL);
	put_string(output, sqlite3_libversion());
	fputs(",\"cipher\":", output);
	put_string(output, cipher);
	fputs(",\"pragmas\":{", output);
	for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
		char *sql = joined("PRAGMA ", NAMES[i]);
		char *value = answer(bench->db, sql);
		fprintf(output, "%s\"%s\":", i ? "," : "", NAMES[i]);
		put_string(output, value);
		free(value);
		free(sql);
	}
	fputs("}}\n", output);
	free(cipher);
}

static bool is_word(const char *text, const char *others) {
	static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	size_t length = strlen(text);
	if (length == 0 || length > 64) return false;
	for (; *text; text++) {
		if (!strchr(LETTERS, *text) && !strchr(others, *text)) return false;
	}
	return true;
}

static int64_t integer(const char *name, const char *text, int64_t low, int64_t high) {
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno || *end || end == text || value < low || value > high) {
		die("%s must be %" PRId64 " to %" PRId64 ", not %s", name, low, high, text);
	}
	return value;
}

static void read_option(struct options *options, const char *name, const char *value) {
	if (strcmp(name, "--mailbox") == 0) options->mailbox = value;
	else if (strcmp(name, "--sql") == 0) options->sql = value;
	else if (strcmp(name, "--scratch") == 0) options->scratch = value;
	else if (strcmp(name, "--output") == 0) options->output = value;
	else if (strcmp(name, "--cipher") == 0) options->cipher = value;
	else if (strcmp(name, "--passes") == 0) options->passes = (int)integer(name, value, 1, MAX_PASSES);
	else if (strcmp(name, "--pass-ms") == 0) options->pass_ns = integer(name, value, 1, 60000) * 1000000;
	else if (strcmp(name, "--pragma") == 0) {
		/* It becomes part of a statement, so it is a word, an equals sign and a word or number. */
		if (options->pragmas_count == MAX_PRAGMAS) die("there are more than %d --pragma", MAX_PRAGMAS);
		if (!is_word(value, "=-") || !strchr(value, '=')) die("--pragma %s is not NAME=VALUE", value);
		options->pragmas[options->pragmas_count++] = value;
	} else die("there is no option %s", name);
}

static struct options read_options(int count, char **words) {
	struct options options = {
		.scratch = getenv("INVESTIGATE_SCRATCH"),
		.cipher = "chacha20",
		.passes = 5,
		.pass_ns = 40000000,
	};
	if (count < 2 || (strcmp(words[1], "control") != 0 && strcmp(words[1], "native") != 0)) {
		die("the first argument is control or native");
	}
	options.is_control = strcmp(words[1], "control") == 0;
	if (count % 2 != 0) die("the last option has no value");
	for (int i = 2; i < count; i += 2) read_option(&options, words[i], words[i + 1]);
	if (!options.mailbox || !options.sql || !options.scratch || !options.output) {
		die("--mailbox, --sql, --output and a scratch directory are needed");
	}
	if (!is_word(options.cipher, "")) die("--cipher %s is not the name of a scheme", options.cipher);
	return options;
}

static void set_up(struct bench *bench) {
	static const char *const SUFFIXES[] = {"", "-wal", "-shm", "-journal"};
	for (size_t i = 0; i < sizeof SUFFIXES / sizeof *SUFFIXES; i++) {
		char *stale = joined(bench->file, SUFFIXES[i]);
		if (unlink(stale) != 0 && errno != ENOENT) die("%s: %s", stale, strerror(errno));
		free(stale);
	}
	const int64_t start = nanoseconds(CLOCK_MONOTONIC);
	bench->db = open_with_key(bench);
	apply_pragmas(bench);
	load(bench);
	const int64_t elapsed_ns = nanoseconds(CLOCK_MONOTONIC) - start;
	put_hello(bench);
	put_value(bench, "setup_ns", elapsed_ns);
	put_value(bench, "wal_bytes", file_size(bench->wal));
	execute_section(bench, "checkpoint");
	put_value(bench, "database_bytes", file_size(bench->file));
	assert_encryption(bench);
}

int main(int count, char **words) {
	const int64_t start = nanoseconds(CLOCK_MONOTONIC);
	struct bench bench = {.options = read_options(count, words)};
	bench.key = getenv("INVESTIGATE_KEY");
	if (is_encrypted(&bench) && (!bench.key || !*bench.key)) die("INVESTIGATE_KEY is not set");
	size_t size;
	char *queries = joined(bench.options.sql, "/queries.sql");
	char *schema = joined(bench.options.sql, "/schema.sql");
	bench.queries = read_file(queries, &size);
	bench.schema = read_file(schema, &size);
	bench.mailbox = read_mailbox(bench.options.mailbox);
	bench.file = joined(bench.options.scratch, "/host.db");
	bench.wal = joined(bench.file, "-wal");
	bench.output = fopen(bench.options.output, "w");
	if (!bench.output) die("%s: %s", bench.options.output, strerror(errno));
	set_up(&bench);
	const size_t operations = bench.options.is_control ? 1 : sizeof OPERATIONS / sizeof *OPERATIONS;
	for (size_t i = 0; i < operations; i++) measure(&bench, &OPERATIONS[i]);
	if (!bench.options.is_control) measure_vacuum(&bench);
	check(bench.db, sqlite3_close(bench.db), "close");
	fprintf(bench.output, "{\"type\":\"done\",\"wall_ns\":%" PRId64 ",\"fold\":%" PRIu64 "}\n",
		nanoseconds(CLOCK_MONOTONIC) - start, bench.fold & 0xffffffffu);
	if (fclose(bench.output) != 0) die("%s: %s", bench.options.output, strerror(errno));
	return 0;
}
