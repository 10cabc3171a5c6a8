/*
 * A SQLite that computes nothing: it plays recorded rows. The sources of the addon under test are compiled against
 * this file in place of the amalgamation (its own build option --sqlite3), so that a call of the addon costs what the
 * addon and Node make of it, and next to nothing else. Nothing that is bound is copied, nothing that is read is
 * converted: that is the work of the real library and counted with it (sqlcipher_bench/native).
 *
 * Special statements:
 *   @replay   one row, one column: 1. No SQLite knows that, so an addon that answers is linked with this file.
 *   @tape     one parameter, a blob: recordings, in the format of tape.mjs, to be played from now on
 *   @rewind   the next call of every statement plays its first recording again
 *   @pair     one parameter, a blob: two pointers, f and d, and a recorded SQL: f(d) is called in every execution of it,
 *             before its first row, where the real library does its work
 * Any other SQL must have been recorded, letter for letter.
 *
 * Recordings of a statement are played in turn, one for each execution, for ever.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlite3.h"

#define TAPE_MAGIC 0x31455041u /* "APE1" */

typedef struct cell cell;
typedef struct recording recording;
typedef struct tape tape;
typedef struct function function;

/* A value as the library holds it. */
struct sqlite3_value {
	int type;
	int bytes;
	sqlite3_int64 integer;
	double number;
	const char *start;
};

/* What one execution of a statement gives. */
struct recording {
	int rows;
	int calls; /* of the function written in JavaScript, before the first row */
	int changes;
	sqlite3_int64 rowid;
	sqlite3_int64 rowid_step;
	sqlite3_value *cells;     /* row by row */
	sqlite3_value *arguments; /* one a call */
};

struct tape {
	tape *next;
	char *sql;
	int parameters;
	int columns;
	int readonly;
	char **names;
	char *function; /* name of the function that it calls, or empty */
	int recordings;
	int position;
	sqlite3_int64 turns;
	recording *all;
	void (*work)(void *); /* the real library's, see @pair */
	void *worker;
};

struct function {
	function *next;
	char *name;
	void *data;
	void (*call)(sqlite3_context *, int, sqlite3_value **);
	void (*destroy)(void *);
};

struct sqlite3_context {
	void *data;
	sqlite3_value result;
};

struct sqlite3 {
	tape *tapes;
	function *functions;
	int changes;
	int total_changes;
	sqlite3_int64 rowid;
	const char *message;
	int code;
};

enum special { PLAY, REPLAY, TAPE, REWIND, PAIR };

struct sqlite3_stmt {
	sqlite3 *db;
	tape *tape;
	enum special special;
	int is_running;
	int status; /* of the execution that runs or ran last */
	int row;
	const recording *playing;
	const sqlite3_value *cells;
	char *sql;
	const void *blob;
	int blob_bytes;
};

static const sqlite3_value one = {SQLITE_INTEGER, 0, 1, 1.0, 0};

/* -- tapes ----------------------------------------------------------------------------------------------- */

struct reader {
	const char *at;
	const char *end;
	int is_short;
};

static const char *take(struct reader *reader, size_t count) {
	const char *start = reader->at;
	if ((size_t)(reader->end - reader->at) < count) {
		reader->is_short = 1;
		return 0;
	}
	reader->at += count;
	return start;
}

static uint32_t take_u32(struct reader *reader) {
	uint32_t value = 0;
	const char *start = take(reader, sizeof value);
	if (start) memcpy(&value, start, sizeof value);
	return value;
}

static double take_double(struct reader *reader) {
	double value = 0;
	const char *start = take(reader, sizeof value);
	if (start) memcpy(&value, start, sizeof value);
	return value;
}

static char *take_text(struct reader *reader, int *length) {
	const uint32_t bytes = take_u32(reader);
	const char *start = take(reader, bytes);
	char *copy = start ? malloc((size_t)bytes + 1) : 0;
	if (copy) {
		memcpy(copy, start, bytes);
		copy[bytes] = 0;
	}
	if (length) *length = start ? (int)bytes : 0;
	return copy;
}

static void *allocate(struct reader *reader, size_t count, size_t size) {
	/* Every entry takes at least one byte of the tape. */
	if (reader->is_short || count > (size_t)(reader->end - reader->at)) {
		reader->is_short = 1;
		count = 0;
	}
	return calloc(count + 1, size);
}

static void take_cell(struct reader *reader, sqlite3_value *cell) {
	cell->type = (int)take_u32(reader);
	switch (cell->type) {
		case SQLITE_INTEGER:
		case SQLITE_FLOAT:
			cell->number = take_double(reader);
			cell->integer = (sqlite3_int64)cell->number;
			break;
		case SQLITE_TEXT:
		case SQLITE_BLOB: cell->start = take_text(reader, &cell->bytes); break;
		default: cell->type = SQLITE_NULL;
	}
}

static tape *take_tape(struct reader *reader) {
	tape *made = calloc(1, sizeof *made);
	int k, c;
	made->sql = take_text(reader, 0);
	made->parameters = (int)take_u32(reader);
	made->readonly = (int)take_u32(reader);
	made->function = take_text(reader, 0);
	made->columns = (int)take_u32(reader);
	made->names = allocate(reader, (size_t)made->columns, sizeof *made->names);
	for (k = 0; k < made->columns && !reader->is_short; k++) made->names[k] = take_text(reader, 0);
	made->recordings = (int)take_u32(reader);
	made->all = allocate(reader, (size_t)made->recordings, sizeof *made->all);
	for (k = 0; k < made->recordings && !reader->is_short; k++) {
		recording *entry = &made->all[k];
		entry->changes = (int)take_u32(reader);
		entry->rowid = (sqlite3_int64)take_double(reader);
		entry->rowid_step = (sqlite3_int64)take_double(reader);
		entry->calls = (int)take_u32(reader);
		entry->arguments = allocate(reader, (size_t)entry->calls, sizeof *entry->arguments);
		for (c = 0; c < entry->calls && !reader->is_short; c++) take_cell(reader, &entry->arguments[c]);
		entry->rows = (int)take_u32(reader);
		entry->cells = allocate(reader, (size_t)entry->rows * (size_t)made->columns, sizeof *entry->cells);
		for (c = 0; c < entry->rows * made->columns && !reader->is_short; c++) take_cell(reader, &entry->cells[c]);
	}
	return made;
}

/* Tapes live as long as the process: a probe plays a handful. */
static int load(sqlite3 *db, const void *start, int bytes) {
	struct reader reader = {start, (const char *)start + bytes, 0};
	uint32_t count, k;
	if (take_u32(&reader) != TAPE_MAGIC) return SQLITE_CORRUPT;
	count = take_u32(&reader);
	for (k = 0; k < count; k++) {
		tape *made = take_tape(&reader);
		if (reader.is_short || made->recordings < 1) return SQLITE_CORRUPT;
		made->next = db->tapes;
		db->tapes = made;
	}
	return SQLITE_OK;
}

static void rewind_all(sqlite3 *db) {
	tape *each;
	for (each = db->tapes; each; each = each->next) {
		each->position = 0;
		each->turns = 0;
	}
}

static function *find_function(sqlite3 *db, const char *name) {
	function *each;
	for (each = db->functions; each; each = each->next)
		if (strcmp(each->name, name) == 0) return each;
	return 0;
}

/* -- statements ------------------------------------------------------------------------------------------ */

static int wrong(sqlite3 *db, int code, const char *message) {
	db->code = code;
	db->message = message;
	return code;
}

static int prepare(sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **made, const char **tail) {
	const size_t length = bytes < 0 ? strlen(sql) : strnlen(sql, (size_t)bytes);
	sqlite3_stmt *statement = calloc(1, sizeof *statement);
	tape *each;
	*made = 0;
	if (tail) *tail = sql + length;
	if (length == 0) {
		free(statement);
		return wrong(db, SQLITE_OK, "not an error");
	}
	statement->db = db;
	statement->sql = malloc(length + 1);
	memcpy(statement->sql, sql, length);
	statement->sql[length] = 0;
	if (strcmp(statement->sql, "@replay") == 0) statement->special = REPLAY;
	else if (strcmp(statement->sql, "@tape") == 0) statement->special = TAPE;
	else if (strcmp(statement->sql, "@rewind") == 0) statement->special = REWIND;
	else if (strcmp(statement->sql, "@pair") == 0) statement->special = PAIR;
	else {
		for (each = db->tapes; each && strcmp(each->sql, statement->sql) != 0; each = each->next) {}
		if (!each) {
			free(statement->sql);
			free(statement);
			return wrong(db, SQLITE_ERROR, "this SQL has not been recorded");
		}
		statement->tape = each;
	}
	*made = statement;
	return wrong(db, SQLITE_OK, "not an error");
}

int sqlite3_prepare_v3(
	sqlite3 *db, const char *sql, int bytes, unsigned flags, sqlite3_stmt **made, const char **tail
) {
	return prepare(db, sql, bytes, made, tail);
}

int sqlite3_prepare_v2(sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **made, const char **tail) {
	return prepare(db, sql, bytes, made, tail);
}

int sqlite3_finalize(sqlite3_stmt *statement) {
	if (!statement) return SQLITE_OK;
	free(statement->sql);
	free(statement);
	return SQLITE_OK;
}

static int pair(sqlite3 *db, const char *start, int bytes) {
	const int pointers = sizeof(void (*)(void *)) + sizeof(void *);
	const int length = bytes - pointers;
	tape *each;
	for (each = length > 0 ? db->tapes : 0; each; each = each->next) {
		if ((int)strlen(each->sql) != length || memcmp(each->sql, start + pointers, (size_t)length) != 0) continue;
		memcpy(&each->work, start, sizeof each->work);
		memcpy(&each->worker, start + sizeof each->work, sizeof each->worker);
		return SQLITE_OK;
	}
	return SQLITE_NOTFOUND;
}

static int step_special(sqlite3_stmt *statement) {
	const int is_first = !statement->is_running;
	statement->is_running = 1;
	switch (statement->special) {
		case REPLAY: statement->cells = &one; return is_first ? SQLITE_ROW : SQLITE_DONE;
		case TAPE:
			statement->status = load(statement->db, statement->blob, statement->blob_bytes);
			if (statement->status == SQLITE_OK) return SQLITE_DONE;
			return wrong(statement->db, SQLITE_CORRUPT, "this is no tape");
		case PAIR:
			statement->status = pair(statement->db, statement->blob, statement->blob_bytes);
			if (statement->status == SQLITE_OK) return SQLITE_DONE;
			return wrong(statement->db, SQLITE_NOTFOUND, "this SQL has not been recorded");
		default: rewind_all(statement->db); return SQLITE_DONE;
	}
}

static int start(sqlite3_stmt *statement) {
	sqlite3 *db = statement->db;
	tape *tape = statement->tape;
	const recording *entry = &tape->all[tape->position];
	int k;
	if (++tape->position == tape->recordings) tape->position = 0;
	statement->is_running = 1;
	statement->playing = entry;
	statement->row = 0;
	statement->cells = entry->cells;
	if (tape->work) tape->work(tape->worker);
	if (entry->calls) {
		function *called = find_function(db, tape->function);
		sqlite3_context context;
		if (!called) return wrong(db, SQLITE_ERROR, "no such function");
		context.data = called->data;
		for (k = 0; k < entry->calls; k++) {
			sqlite3_value *argument = &entry->arguments[k];
			context.result.type = SQLITE_NULL;
			called->call(&context, 1, &argument);
			if (context.result.type < 0) return wrong(db, SQLITE_ERROR, "the function failed");
		}
	}
	if (!tape->readonly) {
		db->changes = entry->changes;
		db->total_changes += entry->changes;
		db->rowid = entry->rowid + entry->rowid_step * tape->turns++;
	}
	return SQLITE_OK;
}

int sqlite3_step(sqlite3_stmt *statement) {
	if (statement->special != PLAY) return step_special(statement);
	if (!statement->is_running) {
		statement->status = start(statement);
		if (statement->status != SQLITE_OK) return statement->status;
	} else {
		statement->cells += statement->tape->columns;
	}
	return statement->row++ < statement->playing->rows ? SQLITE_ROW : SQLITE_DONE;
}

int sqlite3_reset(sqlite3_stmt *statement) {
	statement->is_running = 0;
	return statement->status;
}

int sqlite3_clear_bindings(sqlite3_stmt *statement) { return SQLITE_OK; }

int sqlite3_bind_parameter_count(sqlite3_stmt *statement) {
	if (statement->special == PLAY) return statement->tape->parameters;
	return statement->special == TAPE || statement->special == PAIR;
}

const char *sqlite3_bind_parameter_name(sqlite3_stmt *statement, int index) { return 0; }

int sqlite3_bind_null(sqlite3_stmt *statement, int index) { return SQLITE_OK; }
int sqlite3_bind_int(sqlite3_stmt *statement, int index, int value) { return SQLITE_OK; }
int sqlite3_bind_int64(sqlite3_stmt *statement, int index, sqlite3_int64 value) { return SQLITE_OK; }
int sqlite3_bind_double(sqlite3_stmt *statement, int index, double value) { return SQLITE_OK; }

int sqlite3_bind_text(sqlite3_stmt *statement, int index, const char *text, int bytes, void (*destroy)(void *)) {
	if (destroy != SQLITE_STATIC && destroy != SQLITE_TRANSIENT) destroy((void *)text);
	return SQLITE_OK;
}

int sqlite3_bind_text64(
	sqlite3_stmt *statement, int index, const char *text, sqlite3_uint64 bytes, void (*destroy)(void *),
	unsigned char encoding
) {
	return sqlite3_bind_text(statement, index, text, (int)bytes, destroy);
}

int sqlite3_bind_blob(sqlite3_stmt *statement, int index, const void *blob, int bytes, void (*destroy)(void *)) {
	if (statement->special == TAPE || statement->special == PAIR) {
		/* The caller keeps it alive while the statement runs, which is all that a tape needs. */
		statement->blob = blob;
		statement->blob_bytes = bytes;
	}
	if (destroy != SQLITE_STATIC && destroy != SQLITE_TRANSIENT) destroy((void *)blob);
	return SQLITE_OK;
}

int sqlite3_bind_blob64(
	sqlite3_stmt *statement, int index, const void *blob, sqlite3_uint64 bytes, void (*destroy)(void *)
) {
	return sqlite3_bind_blob(statement, index, blob, (int)bytes, destroy);
}

/* -- rows ------------------------------------------------------------------------------------------------ */

int sqlite3_column_count(sqlite3_stmt *statement) {
	return statement->special == PLAY ? statement->tape->columns : statement->special == REPLAY;
}

int sqlite3_data_count(sqlite3_stmt *statement) { return sqlite3_column_count(statement); }

const char *sqlite3_column_name(sqlite3_stmt *statement, int column) {
	return statement->special == PLAY ? statement->tape->names[column] : "replay";
}

const char *sqlite3_column_table_name(sqlite3_stmt *statement, int column) { return 0; }
const char *sqlite3_column_origin_name(sqlite3_stmt *statement, int column) { return 0; }
const char *sqlite3_column_database_name(sqlite3_stmt *statement, int column) { return 0; }
const char *sqlite3_column_decltype(sqlite3_stmt *statement, int column) { return 0; }

int sqlite3_column_type(sqlite3_stmt *statement, int column) { return statement->cells[column].type; }
int sqlite3_column_int(sqlite3_stmt *statement, int column) { return (int)statement->cells[column].integer; }

sqlite3_int64 sqlite3_column_int64(sqlite3_stmt *statement, int column) {
	return statement->cells[column].integer;
}

double sqlite3_column_double(sqlite3_stmt *statement, int column) { return statement->cells[column].number; }

const unsigned char *sqlite3_column_text(sqlite3_stmt *statement, int column) {
	return (const unsigned char *)statement->cells[column].start;
}

const void *sqlite3_column_blob(sqlite3_stmt *statement, int column) { return statement->cells[column].start; }
int sqlite3_column_bytes(sqlite3_stmt *statement, int column) { return statement->cells[column].bytes; }

sqlite3_value *sqlite3_column_value(sqlite3_stmt *statement, int column) {
	return (sqlite3_value *)&statement->cells[column];
}

int sqlite3_value_type(sqlite3_value *value) { return value->type; }
int sqlite3_value_int(sqlite3_value *value) { return (int)value->integer; }
sqlite3_int64 sqlite3_value_int64(sqlite3_value *value) { return value->integer; }
double sqlite3_value_double(sqlite3_value *value) { return value->number; }
const unsigned char *sqlite3_value_text(sqlite3_value *value) { return (const unsigned char *)value->start; }
const void *sqlite3_value_blob(sqlite3_value *value) { return value->start; }
int sqlite3_value_bytes(sqlite3_value *value) { return value->bytes; }

/* -- functions written in JavaScript --------------------------------------------------------------------- */

int sqlite3_create_function_v2(
	sqlite3 *db, const char *name, int arguments, int flags, void *data,
	void (*call)(sqlite3_context *, int, sqlite3_value **),
	void (*step)(sqlite3_context *, int, sqlite3_value **), void (*final)(sqlite3_context *),
	void (*destroy)(void *)
) {
	function *made = calloc(1, sizeof *made);
	made->name = strdup(name);
	made->data = data;
	made->call = call;
	made->destroy = destroy;
	made->next = db->functions;
	db->functions = made;
	return SQLITE_OK;
}

int sqlite3_create_window_function(
	sqlite3 *db, const char *name, int arguments, int flags, void *data,
	void (*step)(sqlite3_context *, int, sqlite3_value **), void (*final)(sqlite3_context *),
	void (*value)(sqlite3_context *), void (*inverse)(sqlite3_context *, int, sqlite3_value **),
	void (*destroy)(void *)
) {
	if (destroy) destroy(data);
	return wrong(db, SQLITE_MISUSE, "nothing but scalar functions can be replayed");
}

int sqlite3_create_module_v2(
	sqlite3 *db, const char *name, const sqlite3_module *module, void *data, void (*destroy)(void *)
) {
	if (destroy) destroy(data);
	return wrong(db, SQLITE_MISUSE, "nothing but scalar functions can be replayed");
}

int sqlite3_declare_vtab(sqlite3 *db, const char *sql) { return SQLITE_MISUSE; }
int sqlite3_vtab_config(sqlite3 *db, int option, ...) { return SQLITE_MISUSE; }

void *sqlite3_user_data(sqlite3_context *context) { return context->data; }
void *sqlite3_aggregate_context(sqlite3_context *context, int bytes) { return 0; }
sqlite3 *sqlite3_context_db_handle(sqlite3_context *context) { return 0; }

void sqlite3_result_double(sqlite3_context *context, double value) {
	context->result.type = SQLITE_FLOAT;
	context->result.number = value;
}

void sqlite3_result_int(sqlite3_context *context, int value) {
	context->result.type = SQLITE_INTEGER;
	context->result.integer = value;
}

void sqlite3_result_int64(sqlite3_context *context, sqlite3_int64 value) {
	context->result.type = SQLITE_INTEGER;
	context->result.integer = value;
}

void sqlite3_result_null(sqlite3_context *context) { context->result.type = SQLITE_NULL; }

void sqlite3_result_text(sqlite3_context *context, const char *text, int bytes, void (*destroy)(void *)) {
	context->result.type = SQLITE_TEXT;
	if (destroy != SQLITE_STATIC && destroy != SQLITE_TRANSIENT) destroy((void *)text);
}

void sqlite3_result_blob(sqlite3_context *context, const void *blob, int bytes, void (*destroy)(void *)) {
	context->result.type = SQLITE_BLOB;
	if (destroy != SQLITE_STATIC && destroy != SQLITE_TRANSIENT) destroy((void *)blob);
}

void sqlite3_result_error(sqlite3_context *context, const char *message, int bytes) { context->result.type = -1; }

/* -- connections ----------------------------------------------------------------------------------------- */

int sqlite3_open_v2(const char *name, sqlite3 **made, int flags, const char *vfs) {
	*made = calloc(1, sizeof **made);
	if (!*made) return SQLITE_NOMEM;
	(*made)->message = "not an error";
	return SQLITE_OK;
}

int sqlite3_open(const char *name, sqlite3 **made) { return sqlite3_open_v2(name, made, 0, 0); }

int sqlite3_close(sqlite3 *db) {
	function *each, *next;
	if (!db) return SQLITE_OK;
	for (each = db->functions; each; each = next) {
		next = each->next;
		if (each->destroy) each->destroy(each->data);
		free(each->name);
		free(each);
	}
	free(db);
	return SQLITE_OK;
}

int sqlite3_close_v2(sqlite3 *db) { return sqlite3_close(db); }

int sqlite3_changes(sqlite3 *db) { return db->changes; }
int sqlite3_total_changes(sqlite3 *db) { return db->total_changes; }
sqlite3_int64 sqlite3_last_insert_rowid(sqlite3 *db) { return db->rowid; }
int sqlite3_get_autocommit(sqlite3 *db) { return 1; }
int sqlite3_errcode(sqlite3 *db) { return db->code; }
int sqlite3_extended_errcode(sqlite3 *db) { return db->code; }
const char *sqlite3_errmsg(sqlite3 *db) { return db->message; }
const char *sqlite3_errstr(int code) { return "an error"; }
sqlite3_mutex *sqlite3_db_mutex(sqlite3 *db) { return 0; }
sqlite3 *sqlite3_db_handle(sqlite3_stmt *statement) { return statement->db; }
const char *sqlite3_db_filename(sqlite3 *db, const char *name) { return ""; }
int sqlite3_extended_result_codes(sqlite3 *db, int on) { return SQLITE_OK; }
int sqlite3_busy_timeout(sqlite3 *db, int milliseconds) { return SQLITE_OK; }
int sqlite3_limit(sqlite3 *db, int id, int value) { return value; }
int sqlite3_db_config(sqlite3 *db, int option, ...) { return SQLITE_OK; }
int sqlite3_config(int option, ...) { return SQLITE_OK; }
int sqlite3_initialize(void) { return SQLITE_OK; }
int sqlite3_key(sqlite3 *db, const void *key, int bytes) { return SQLITE_OK; }
int sqlite3_rekey(sqlite3 *db, const void *key, int bytes) { return SQLITE_OK; }
void sqlite3_interrupt(sqlite3 *db) {}

int sqlite3_load_extension(sqlite3 *db, const char *file, const char *entry, char **message) {
	return SQLITE_ERROR;
}

int sqlite3_stmt_readonly(sqlite3_stmt *statement) {
	return statement->special == PLAY ? statement->tape->readonly : statement->special == REPLAY;
}

int sqlite3_stmt_busy(sqlite3_stmt *statement) { return statement->is_running; }
int sqlite3_stmt_status(sqlite3_stmt *statement, int operation, int reset) { return 0; }
const char *sqlite3_sql(sqlite3_stmt *statement) { return statement->sql; }
char *sqlite3_expanded_sql(sqlite3_stmt *statement) { return 0; }

sqlite3_backup *sqlite3_backup_init(sqlite3 *to, const char *to_name, sqlite3 *from, const char *from_name) {
	return 0;
}

int sqlite3_backup_step(sqlite3_backup *backup, int pages) { return SQLITE_ERROR; }
int sqlite3_backup_finish(sqlite3_backup *backup) { return SQLITE_ERROR; }
int sqlite3_backup_remaining(sqlite3_backup *backup) { return 0; }
int sqlite3_backup_pagecount(sqlite3_backup *backup) { return 0; }

unsigned char *sqlite3_serialize(sqlite3 *db, const char *schema, sqlite3_int64 *bytes, unsigned int flags) {
	return 0;
}

int sqlite3_deserialize(
	sqlite3 *db, const char *schema, unsigned char *data, sqlite3_int64 size, sqlite3_int64 room, unsigned flags
) {
	return SQLITE_ERROR;
}

/* -- memory ---------------------------------------------------------------------------------------------- */

void *sqlite3_malloc(int bytes) { return malloc((size_t)bytes); }
void *sqlite3_malloc64(sqlite3_uint64 bytes) { return malloc((size_t)bytes); }
void sqlite3_free(void *memory) { free(memory); }

char *sqlite3_mprintf(const char *format, ...) {
	va_list arguments;
	char *text = malloc(1000);
	va_start(arguments, format);
	if (text) vsnprintf(text, 1000, format, arguments);
	va_end(arguments);
	return text;
}
