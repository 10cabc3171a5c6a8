/* See bench.h. */
#define _POSIX_C_SOURCE 200809L

#include "bench.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_SEPARATOR '\x1e'
#define FIELD_SEPARATOR '\x1f'
#define DAYS_30_S (30 * 86400)
#define BATCH_ROWS 100
#define UPDATED 250
/* Of every four messages, the first is updated. */
#define UPDATED_STRIDE 4
#define BLOBS 16
#define DAY_S 86400
/* Odd and no divisor of the number of messages: every one of them once, no two neighbours in a row. */
#define STRIDE 619
/* With ten pages of cache the 50 rows of a call, a page each, are read and deciphered again on every call. */
#define UNCACHED_PAGES "10"
#define BUSY_MS 5000
/* Longest string of V8, which the addon sets as the limit of its connections. */
#define LONGEST_STRING 536870888

static const char *const FIELD_NAMES[FIELDS] = {
	"id", "mailbox", "uid", "date", "subject", "sender", "flags", "size", "body",
};

/* -- errors and files ------------------------------------------------------------------------------------ */

void (*bench_failed)(const char *sentence);

void fail(const char *format, ...) {
	char sentence[1000];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(sentence, sizeof sentence, format, arguments);
	va_end(arguments);
	bench_failed(sentence);
	abort();
}

void check(sqlite3 *db, int code, const char *what) {
	if (code != SQLITE_OK) fail("%s: %s (%s)", what, db ? sqlite3_errmsg(db) : "no database", sqlite3_errstr(code));
}

void *allocate(size_t size) {
	void *memory = calloc(1, size);
	if (!memory) fail("out of memory");
	return memory;
}

char *joined(const char *first, const char *second) {
	size_t size = strlen(first) + strlen(second) + 1;
	char *result = allocate(size);
	snprintf(result, size, "%s%s", first, second);
	return result;
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

static char *read_file(const char *path, size_t *size) {
	FILE *file = fopen(path, "rb");
	if (!file) fail("%s: %s", path, strerror(errno));
	struct stat info;
	if (fstat(fileno(file), &info) != 0 || info.st_size <= 0) fail("%s is empty", path);
	*size = (size_t)info.st_size;
	char *content = allocate(*size + 1);
	if (fread(content, 1, *size, file) != *size) fail("%s: %s", path, strerror(errno));
	fclose(file);
	return content;
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
		if ((field_end == NULL) != (field == FIELDS - 1)) fail("a record of the mailbox has not %d fields", FIELDS);
		if (!field_end) field_end = record_end;
		*field_end = '\0';
		record->fields[field] = (struct text){start, (int)(field_end - start)};
		if (is_numeric(field)) record->numbers[field] = (double)strtoll(start, NULL, 10);
		start = field_end + 1;
	}
	return stop ? stop + 1 : NULL;
}

/* The format is described in sqlcipher_bench/mailbox.py. */
static void read_mailbox(struct mailbox *mailbox, const char *path) {
	size_t size;
	char *content = mailbox->content = read_file(path, &size);
	size_t records = 1;
	for (size_t i = 0; i < size; i++) records += content[i] == RECORD_SEPARATOR;
	mailbox->messages = allocate(records * sizeof(struct message));
	struct message header;
	char *next = cut_record(content, content + size, &header);
	for (int field = 0; field < FIELDS; field++) {
		if (strcmp(header.fields[field].start, FIELD_NAMES[field]) != 0) {
			fail("field %d of the mailbox is %s, not %s", field, header.fields[field].start, FIELD_NAMES[field]);
		}
	}
	while (next) next = cut_record(next, content + size, &mailbox->messages[mailbox->count++]);
	if (mailbox->count < UPDATED * UPDATED_STRIDE) {
		fail("the mailbox has %d messages, %d are needed", mailbox->count, UPDATED * UPDATED_STRIDE);
	}
	for (int i = 0; i < mailbox->count; i++) {
		const char *name = mailbox->messages[i].fields[MAILBOX].start;
		int known = 0;
		while (known < mailbox->names_count && strcmp(mailbox->names[known], name) != 0) known++;
		if (known < mailbox->names_count) continue;
		if (known == MAX_MAILBOXES) fail("the mailbox file has more than %d mailboxes", MAX_MAILBOXES);
		mailbox->names[mailbox->names_count++] = name;
	}
	qsort(mailbox->names, (size_t)mailbox->names_count, sizeof(char *), compare_names);
	mailbox->since = mailbox->messages[mailbox->count - 1].numbers[DATE] - DAYS_30_S;
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
	if (!*result) fail("queries.sql has no section named %s", name);
	return result;
}

void read_inputs(struct bench *bench, const char *mailbox) {
	size_t size;
	char *queries = joined(bench->sql, "/queries.sql");
	char *schema = joined(bench->sql, "/schema.sql");
	bench->queries = read_file(queries, &size);
	bench->schema = read_file(schema, &size);
	free(queries);
	free(schema);
	read_mailbox(&bench->mailbox, mailbox);
}

/* -- statements as the addon runs them ------------------------------------------------------------------- */

/* What Database's constructor does. */
static sqlite3 *open_connection(const char *file) {
	sqlite3 *db = NULL;
	check(db, sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL), "open");
	sqlite3_extended_result_codes(db, 1);
	sqlite3_busy_timeout(db, BUSY_MS);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, LONGEST_STRING);
	sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, LONGEST_STRING);
	check(db, sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL), "configure");
	check(db, sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL), "configure");
	return db;
}

/* `what` stands for the statement in error texts: it may hold the key. */
static void execute_as(sqlite3 *db, const char *sql, const char *what) {
	for (;;) {
		sqlite3_stmt *statement = NULL;
		sql += strspn(sql, " ;\t\n\v\f\r");
		int code = sqlite3_prepare_v2(db, sql, -1, &statement, &sql);
		if (!statement) {
			check(db, code, what);
			return;
		}
		do code = sqlite3_step(statement);
		while (code == SQLITE_ROW);
		check(db, sqlite3_finalize(statement), what);
	}
}

void execute(sqlite3 *db, const char *sql) {
	execute_as(db, sql, sql);
}

static void execute_section(struct bench *bench, sqlite3 *db, const char *name) {
	char *sql = section(bench->queries, name);
	execute(db, sql);
	free(sql);
}

/* What Statement's constructor does; the last two calls are for properties of the statement. */
static sqlite3_stmt *prepare(sqlite3 *db, const char *sql) {
	sqlite3_stmt *statement = NULL;
	const char *tail;
	int size = (int)strlen(sql) + 1;
	check(db, sqlite3_prepare_v3(db, sql, size, SQLITE_PREPARE_PERSISTENT, &statement, &tail), sql);
	sqlite3_column_count(statement);
	sqlite3_stmt_readonly(statement);
	return statement;
}

static sqlite3_stmt *prepare_section(struct bench *bench, sqlite3 *db, const char *name) {
	char *sql = section(bench->queries, name);
	sqlite3_stmt *statement = prepare(db, sql);
	free(sql);
	return statement;
}

char *answer(sqlite3 *db, const char *sql) {
	sqlite3_stmt *statement = prepare(db, sql);
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

/* The addon counts the parameters of a statement before it binds any. */
static void begin_bind(struct loop *loop, sqlite3_stmt *statement) {
	loop->bench->fold += (uint64_t)sqlite3_bind_parameter_count(statement);
}

/* Next parameter after `index` that has no name, as the addon looks for it. */
static int next_index(sqlite3_stmt *statement, int index) {
	while (sqlite3_bind_parameter_name(statement, ++index)) {}
	return index;
}

static int bind_number(struct loop *loop, sqlite3_stmt *statement, int after, double value) {
	int index = next_index(statement, after);
	check(loop->db, sqlite3_bind_double(statement, index, value), "bind");
	return index;
}

static int bind_text(struct loop *loop, sqlite3_stmt *statement, int after, struct text text) {
	int index = next_index(statement, after);
	check(loop->db, sqlite3_bind_text(statement, index, text.start, text.length, SQLITE_TRANSIENT), "bind");
	return index;
}

/* The fields of a message from `first` on. */
static void bind_fields(struct loop *loop, sqlite3_stmt *statement, const struct message *message, int first) {
	int index = 0;
	for (int field = first; field < FIELDS; field++) {
		if (is_numeric(field)) index = bind_number(loop, statement, index, message->numbers[field]);
		else index = bind_text(loop, statement, index, message->fields[field]);
	}
}

static void bind_message(struct loop *loop, sqlite3_stmt *statement, const struct message *message) {
	begin_bind(loop, statement);
	bind_fields(loop, statement, message, ID);
}

static inline void read_name(struct bench *bench, sqlite3_stmt *statement, int column) {
	bench->fold += (uint64_t)*sqlite3_column_name(statement, column);
}

/* Length, and one byte: the copy of all the others is the addon's. */
static inline void fold_bytes(struct bench *bench, const unsigned char *bytes, int length) {
	bench->fold += (uint64_t)length + (length > 0 ? bytes[length - 1] : 0u);
}

static inline void read_value(struct bench *bench, sqlite3_stmt *statement, int column) {
	switch (sqlite3_column_type(statement, column)) {
		case SQLITE_INTEGER:
		case SQLITE_FLOAT:
			bench->number = sqlite3_column_double(statement, column);
			bench->fold += (uint64_t)(int64_t)bench->number;
			break;
		case SQLITE_TEXT: {
			const unsigned char *text = sqlite3_column_text(statement, column);
			fold_bytes(bench, text, sqlite3_column_bytes(statement, column));
			break;
		}
		case SQLITE_BLOB: {
			const unsigned char *blob = sqlite3_column_blob(statement, column);
			fold_bytes(bench, blob, sqlite3_column_bytes(statement, column));
			break;
		}
		default:
			bench->fold += 1;
	}
}

/* For a row that becomes an object; `is_first` is false from the second row of `all` on. */
static inline void read_names(struct loop *loop, bool is_first) {
	struct bench *bench = loop->bench;
	if (bench->names == NAMES_PER_STATEMENT) {
		int prepared = sqlite3_stmt_status(loop->statement, SQLITE_STMTSTATUS_REPREPARE, 0);
		if (prepared == loop->names_read) return;
		loop->names_read = prepared;
	} else if (bench->names == NAMES_PER_CALL && !is_first) {
		return;
	}
	loop->columns = sqlite3_column_count(loop->statement);
	for (int column = 0; column < loop->columns; column++) read_name(bench, loop->statement, column);
}

static inline void read_object(struct loop *loop, bool is_first) {
	read_names(loop, is_first);
	for (int column = 0; column < loop->columns; column++) read_value(loop->bench, loop->statement, column);
}

static inline void read_array(struct loop *loop) {
	int columns = sqlite3_column_count(loop->statement);
	for (int column = 0; column < columns; column++) read_value(loop->bench, loop->statement, column);
}

/* Statement::run(): the addon compares the changes of the connection, then clears the parameters. */
static void run_bound(struct loop *loop, sqlite3_stmt *statement) {
	int before = sqlite3_total_changes(loop->db);
	sqlite3_step(statement);
	check(loop->db, sqlite3_reset(statement), "run");
	loop->changes = sqlite3_total_changes(loop->db) == before ? 0 : sqlite3_changes(loop->db);
	loop->last_id = sqlite3_last_insert_rowid(loop->db);
	sqlite3_clear_bindings(statement);
}

static void run_plain(struct loop *loop, sqlite3_stmt *statement) {
	begin_bind(loop, statement);
	run_bound(loop, statement);
}

static void end_rows(struct loop *loop, int code) {
	if (code != SQLITE_DONE) check(loop->db, code, loop->operation->name);
	check(loop->db, sqlite3_reset(loop->statement), loop->operation->name);
	sqlite3_clear_bindings(loop->statement);
}

/* -- database -------------------------------------------------------------------------------------------- */

bool is_encrypted(const struct bench *bench) {
	return strcmp(bench->cipher, "none") != 0;
}

void add_pragma(struct bench *bench, const char *pragma) {
	if (bench->pragmas_count == MAX_PRAGMAS) fail("there are more than %d PRAGMAs", MAX_PRAGMAS);
	if (!is_word(pragma, "=-") || !strchr(pragma, '=')) fail("PRAGMA %s is not NAME=VALUE", pragma);
	bench->pragmas[bench->pragmas_count++] = pragma;
}

void take_key(struct bench *bench) {
	if (!is_word(bench->cipher, "")) fail("cipher %s is not the name of a scheme", bench->cipher);
	if (!is_encrypted(bench)) return;
	if (!bench->key || !*bench->key) fail("there is no key: INVESTIGATE_KEY is not set");
	bench->cipher_sql = sqlite3_mprintf("PRAGMA cipher = %Q", bench->cipher);
	bench->key_sql = sqlite3_mprintf("PRAGMA key = %Q", bench->key);
	if (!bench->cipher_sql || !bench->key_sql) fail("out of memory");
}

/* A connection with the key, and nothing else. */
static sqlite3 *open_with_key(const struct bench *bench, const char *file) {
	sqlite3 *db = open_connection(file);
	if (!is_encrypted(bench)) return db;
	execute_as(db, bench->cipher_sql, "PRAGMA cipher");
	/* Error texts never hold this one. */
	execute_as(db, bench->key_sql, "PRAGMA key");
	return db;
}

/* Whether `pragma` (NAME=VALUE) sets what the line "PRAGMA NAME = ..." sets. */
static bool replaces(const char *pragma, const char *line) {
	size_t length = strcspn(pragma, "=");
	return strncmp(line, "PRAGMA ", 7) == 0 && strncmp(line + 7, pragma, length) == 0 && line[7 + length] == ' ';
}

static void set_pragma(sqlite3 *db, const char *pragma) {
	char sql[200];
	int length = (int)strcspn(pragma, "=");
	sqlite3_snprintf(sizeof sql, sql, "PRAGMA %.*s = '%q'", length, pragma, pragma + length + 1);
	execute(db, sql);
}

/* Properties of the file: set again, auto_vacuum would write to it. */
static bool is_of_the_file(const char *line) {
	return replaces("encoding=", line) || replaces("auto_vacuum=", line);
}

/* The production profile with the replacements in their place: the order matters, see queries.sql. */
static void apply_pragmas(struct bench *bench, sqlite3 *db, bool is_new_file) {
	bool used[MAX_PRAGMAS] = {false};
	char *sql = section(bench->queries, "pragmas");
	char *rest;
	for (char *line = strtok_r(sql, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		int found = 0;
		while (found < bench->pragmas_count && !replaces(bench->pragmas[found], line)) found++;
		if (found < bench->pragmas_count) used[found] = true;
		if (!is_new_file && is_of_the_file(line)) continue;
		if (found < bench->pragmas_count) set_pragma(db, bench->pragmas[found]);
		else execute(db, line);
	}
	free(sql);
	for (int i = 0; i < bench->pragmas_count; i++) {
		if (!used[i]) set_pragma(db, bench->pragmas[i]);
	}
}

static void remove_database(const char *file) {
	static const char *const SUFFIXES[] = {"", "-wal", "-shm", "-journal"};
	for (size_t i = 0; i < sizeof SUFFIXES / sizeof *SUFFIXES; i++) {
		char *stale = joined(file, SUFFIXES[i]);
		if (unlink(stale) != 0 && errno != ENOENT) fail("%s: %s", stale, strerror(errno));
		free(stale);
	}
}

void create_database(struct bench *bench) {
	remove_database(bench->file);
	bench->db = open_with_key(bench, bench->file);
	apply_pragmas(bench, bench->db, true);
}

sqlite3 *open_database(struct bench *bench, const char *file) {
	sqlite3 *db = open_with_key(bench, file);
	apply_pragmas(bench, db, false);
	return db;
}

void load_mailbox(struct bench *bench) {
	execute(bench->db, bench->schema);
	struct loop loop = {.bench = bench, .db = bench->db};
	loop.statement = prepare_section(bench, bench->db, "load_message");
	execute(bench->db, "BEGIN IMMEDIATE");
	for (int i = 0; i < bench->mailbox.count; i++) {
		bind_message(&loop, loop.statement, &bench->mailbox.messages[i]);
		run_bound(&loop, loop.statement);
	}
	execute_section(bench, bench->db, "load_attachments");
	execute(bench->db, "COMMIT");
	check(bench->db, sqlite3_finalize(loop.statement), "load");
}

/* A library without ciphers ignores the key, and nobody would notice. */
static void assert_encryption(const struct bench *bench) {
	char header[16] = {0};
	FILE *file = fopen(bench->file, "rb");
	if (!file || fread(header, 1, sizeof header, file) != sizeof header) fail("%s cannot be read", bench->file);
	fclose(file);
	bool is_plain = memcmp(header, "SQLite format 3", sizeof header) == 0;
	if (is_plain == is_encrypted(bench)) fail(is_plain ? "the database is not encrypted" : "the database is encrypted");
}

void checkpoint(struct bench *bench) {
	execute_section(bench, bench->db, "checkpoint");
	assert_encryption(bench);
}

void close_bench(struct bench *bench) {
	if (bench->db) check(bench->db, sqlite3_close(bench->db), "close");
	free(bench->mailbox.content);
	free(bench->mailbox.messages);
	free(bench->queries);
	free(bench->schema);
	free(bench->file);
	sqlite3_free(bench->cipher_sql);
	sqlite3_free(bench->key_sql);
	*bench = (struct bench){.fold = bench->fold};
}

/* -- parameters of the operations ------------------------------------------------------------------------ */

static struct text text_of(const char *word) {
	return (struct text){word, (int)strlen(word)};
}

static void bind_range(struct loop *loop, int64_t i) {
	const struct mailbox *mailbox = &loop->bench->mailbox;
	int index = bind_text(loop, loop->statement, 0, text_of(mailbox->names[i % mailbox->names_count]));
	bind_number(loop, loop->statement, index, mailbox->since);
}

static void bind_point(struct loop *loop, int64_t i) {
	const int count = loop->bench->mailbox.count;
	bind_number(loop, loop->statement, 0, (double)(i % count * STRIDE % count + 1));
}

static void bind_blob(struct loop *loop, int64_t i) {
	bind_number(loop, loop->statement, 0, (double)(loop->operation->first_id + i % BLOBS));
}

static void bind_one_text(struct loop *loop, int64_t i) {
	bind_text(loop, loop->statement, 0, loop->texts[i % TEXTS]);
}

static void bind_insert(struct loop *loop, int64_t i) {
	const struct mailbox *mailbox = &loop->bench->mailbox;
	bind_fields(loop, loop->statement, &mailbox->messages[i % mailbox->count], MAILBOX);
}

static int nth_updated(int64_t i) {
	return (int)(i % UPDATED) * UPDATED_STRIDE + 1;
}

static void bind_update(struct loop *loop, int64_t i) {
	/* The other value every time round, so that every call changes the row. */
	const char *flags = i / UPDATED % 2 ? "\\Seen \\Flagged \\Deleted" : "\\Seen \\Answered";
	int index = bind_text(loop, loop->statement, 0, text_of(flags));
	bind_number(loop, loop->statement, index, nth_updated(i));
}

/* Oldest first, as mail expires. Not the newest: as long as it stands, new rows get ids beyond the mailbox's. */
static void bind_delete(struct loop *loop, int64_t i) {
	(void)i;
	bind_number(loop, loop->statement, 0, loop->bench->mailbox.messages[loop->dirty].numbers[ID]);
}

static void undo_inserts(struct loop *loop) {
	begin_bind(loop, loop->undo);
	bind_number(loop, loop->undo, 0, loop->bench->mailbox.count);
	run_bound(loop, loop->undo);
}

static void undo_updates(struct loop *loop) {
	for (int k = 0; k < UPDATED; k++) {
		const struct message *message = &loop->bench->mailbox.messages[nth_updated(k) - 1];
		begin_bind(loop, loop->statement);
		int index = bind_text(loop, loop->statement, 0, message->fields[FLAGS]);
		bind_number(loop, loop->statement, index, message->numbers[ID]);
		run_bound(loop, loop->statement);
	}
}

static void undo_deletes(struct loop *loop) {
	for (int64_t k = 0; k < loop->dirty; k++) {
		bind_message(loop, loop->undo, &loop->bench->mailbox.messages[k]);
		run_bound(loop, loop->undo);
	}
}

static const struct operation OPERATIONS[] = {
	{.name = "open_key", .shape = OPEN, .connection = READER},
	{.name = "select_point", .shape = GET, .bind = bind_point},
	{.name = "select_range", .shape = ALL, .bind = bind_range},
	{.name = "select_range_raw", .shape = RAW, .bind = bind_range},
	{.name = "select_iterate", .shape = ITERATE, .bind = bind_range},
	{.name = "select_uncached", .shape = ALL, .connection = OWN, .bind = bind_range},
	{.name = "select_blob_3k", .shape = PLUCK, .bind = bind_blob, .first_id = 1},
	{.name = "select_blob_30k", .shape = PLUCK, .bind = bind_blob, .first_id = 101},
	{.name = "select_blob_100k", .shape = PLUCK, .bind = bind_blob, .first_id = 201},
	{.name = "bind_text_ascii_20", .shape = PLUCK, .bind = bind_one_text},
	{.name = "bind_text_ascii_200", .shape = PLUCK, .bind = bind_one_text},
	{.name = "bind_text_ascii_2k", .shape = PLUCK, .bind = bind_one_text},
	{.name = "bind_text_ascii_10k", .shape = PLUCK, .bind = bind_one_text},
	{.name = "bind_text_latin1_2k", .shape = PLUCK, .bind = bind_one_text},
	{.name = "bind_text_twobyte_2k", .shape = PLUCK, .bind = bind_one_text},
	{.name = "select_udf", .shape = PLUCK, .connection = OWN, .bind = bind_range},
	{
		.name = "insert_row",
		.shape = RUN,
		.connection = WRITER,
		.bind = bind_insert,
		.undo = undo_inserts,
		.undo_section = "undo_inserts",
		.gives_id = true,
	},
	{
		.name = "insert_batch",
		.shape = BATCH,
		.connection = WRITER,
		.bind = bind_insert,
		.undo = undo_inserts,
		.undo_section = "undo_inserts",
		.gives_id = true,
	},
	{.name = "update_row", .shape = RUN, .connection = WRITER, .bind = bind_update, .undo = undo_updates},
	{
		.name = "delete_row",
		.shape = RUN,
		.connection = WRITER,
		.bind = bind_delete,
		.undo = undo_deletes,
		.undo_section = "load_message",
	},
};

const struct operation *find_operation(const char *name) {
	for (size_t i = 0; i < sizeof OPERATIONS / sizeof *OPERATIONS; i++) {
		if (strcmp(OPERATIONS[i].name, name) == 0) return &OPERATIONS[i];
	}
	return NULL;
}

/* -- loops ----------------------------------------------------------------------------------------------- */

/* What the JavaScript function of select_udf does, without JavaScript. Dates are whole numbers. */
static void call_js(sqlite3_context *context, int count, sqlite3_value **values) {
	(void)count;
	struct loop *loop = sqlite3_user_data(context);
	double date = 0;
	switch (sqlite3_value_type(values[0])) {
		case SQLITE_INTEGER:
		case SQLITE_FLOAT: date = sqlite3_value_double(values[0]); break;
		default: loop->bench->fold += 1;
	}
	sqlite3_result_double(context, (double)((int64_t)date % DAY_S));
}

static bool is_named(const struct loop *loop, const char *name) {
	return strcmp(loop->operation->name, name) == 0;
}

void open_loop(struct loop *loop, struct bench *bench, const struct operation *operation, sqlite3 *db) {
	*loop = (struct loop){.bench = bench, .operation = operation, .db = db, .names_read = -1};
	if (is_named(loop, "select_uncached")) execute(db, "PRAGMA cache_size = " UNCACHED_PAGES);
	if (is_named(loop, "select_udf")) {
		check(db, sqlite3_create_function_v2(db, "call_js", 1, SQLITE_UTF8, loop, call_js, NULL, NULL, NULL), "function");
	}
	loop->sql = section(bench->queries, operation->name);
	loop->statement = prepare(db, loop->sql);
	if (!operation->undo) return;
	loop->begin = prepare(db, "BEGIN IMMEDIATE");
	loop->commit = prepare(db, "COMMIT");
	if (operation->undo_section) loop->undo = prepare_section(bench, db, operation->undo_section);
}

void close_loop(struct loop *loop) {
	sqlite3_stmt **statements[] = {&loop->statement, &loop->undo, &loop->begin, &loop->commit};
	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
		if (*statements[i]) check(loop->db, sqlite3_finalize(*statements[i]), "finalize");
		*statements[i] = NULL;
	}
	free(loop->sql);
	loop->sql = NULL;
}

void begin_call(struct loop *loop, int64_t i) {
	begin_bind(loop, loop->statement);
	if (loop->operation->bind) loop->operation->bind(loop, i);
}

void end_call(struct loop *loop) {
	end_rows(loop, SQLITE_DONE);
}

static void get_row(struct loop *loop) {
	int code = sqlite3_step(loop->statement);
	if (code == SQLITE_ROW) {
		if (loop->operation->shape == GET) read_object(loop, true);
		else read_value(loop->bench, loop->statement, 0);
		code = SQLITE_DONE;
	}
	end_rows(loop, code);
}

static void get_rows(struct loop *loop) {
	const enum shape shape = loop->operation->shape;
	bool is_first = true;
	int code;
	while ((code = sqlite3_step(loop->statement)) == SQLITE_ROW) {
		if (shape == RAW) read_array(loop);
		else read_object(loop, is_first);
		is_first = shape == ITERATE;
	}
	end_rows(loop, code);
}

static void run_statement(struct loop *loop, int64_t i) {
	begin_call(loop, i);
	run_bound(loop, loop->statement);
	loop->bench->fold += (uint64_t)loop->changes + (uint64_t)loop->last_id;
	loop->dirty++;
}

static void run_batch(struct loop *loop, int64_t i) {
	const int64_t first = i % (loop->bench->mailbox.count / BATCH_ROWS) * BATCH_ROWS;
	run_plain(loop, loop->begin);
	for (int64_t k = first; k < first + BATCH_ROWS; k++) run_statement(loop, k);
	const sqlite3_int64 last_id = loop->last_id;
	const int changes = loop->changes;
	run_plain(loop, loop->commit);
	loop->last_id = last_id;
	loop->changes = changes;
}

/* Opens, derives the key, reads once, closes. */
static void open_once(struct loop *loop) {
	struct loop inner = {.bench = loop->bench, .operation = loop->operation, .names_read = -1};
	inner.db = open_with_key(loop->bench, loop->bench->file);
	inner.statement = prepare(inner.db, loop->sql);
	begin_call(&inner, 0);
	const int code = sqlite3_step(inner.statement);
	if (code != SQLITE_ROW) check(inner.db, code == SQLITE_DONE ? SQLITE_ERROR : code, "open_key");
	read_object(&inner, true);
	end_rows(&inner, SQLITE_DONE);
	close_loop(&inner);
	check(inner.db, sqlite3_close(inner.db), "close");
}

static void apply_undo(struct loop *loop) {
	run_plain(loop, loop->begin);
	loop->operation->undo(loop);
	loop->dirty = 0;
	run_plain(loop, loop->commit);
}

void call_once(struct loop *loop, int64_t i) {
	switch (loop->operation->shape) {
		case GET:
		case PLUCK:
			begin_call(loop, i);
			get_row(loop);
			break;
		case ALL:
		case RAW:
		case ITERATE:
			begin_call(loop, i);
			get_rows(loop);
			break;
		case RUN:
			/* Only a warm-up, or a pass of more calls than there are messages, comes here: they are put back. */
			if (loop->operation->bind == bind_delete && loop->dirty == loop->bench->mailbox.count - 1) apply_undo(loop);
			run_statement(loop, i);
			break;
		case BATCH: run_batch(loop, i); break;
		case OPEN: open_once(loop); break;
	}
}

void call_many(struct loop *loop, int64_t from, int64_t calls) {
	for (int64_t i = from; i < from + calls; i++) call_once(loop, i);
}

void restore(struct loop *loop) {
	if (!loop->operation->undo || loop->dirty == 0) return;
	apply_undo(loop);
	execute_section(loop->bench, loop->db, "checkpoint");
}
