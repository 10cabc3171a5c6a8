/*
 * The operations of bench.c inside a Node process, on the SQLite of the addon under test: what an operation
 * costs without any crossing between JavaScript and C++. Node-API, so one source for every Node.
 *
 *   setup(name, options) -> handle    options: mailbox, sql, directory, cipher, key, names ('row', 'call' or
 *                                     'statement': where names of columns are read), pragmas (NAME=VALUE),
 *                                     texts (of the bind_text operations)
 *   loop(handle, from, calls) -> fold, a whole number of 32 bits
 *   run(handle, i) -> what the JavaScript operation returns for its call number `i`
 *   restore(handle), teardown(handle)
 *   worker(handle) -> a Buffer with two pointers, f and d: f(d) makes the next call, for C code in other binaries of the
 *                     process; a call that fails ends the process
 *
 * Everything that fails throws; a handle that failed can still be given to teardown.
 */
#define _GNU_SOURCE
#define NAPI_VERSION 8

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <node_api.h>

#include "bench.h"

#define ARGUMENTS 3

/* Bytes of the addon's strings, freed together. */
struct string {
	struct string *next;
	char bytes[];
};

struct core {
	struct bench bench;
	struct loop loop;
	struct string *strings;
	bool is_open;
	bool has_loop;
	int64_t next; /* number of the call that the worker makes next */
};

/* Where a failure goes: into the native function that is running. */
static _Thread_local jmp_buf failed;
static _Thread_local char failure[1000];

static void leave(const char *sentence) {
	snprintf(failure, sizeof failure, "%s", sentence);
	longjmp(failed, 1);
}

static void need(napi_status status, const char *what) {
	if (status != napi_ok) fail("%s: Node-API says %d", what, (int)status);
}

/* -- JavaScript values ----------------------------------------------------------------------------------- */

static napi_value property(napi_env env, napi_value object, const char *name) {
	napi_value value;
	need(napi_get_named_property(env, object, name, &value), name);
	return value;
}

static struct text text_of_value(napi_env env, struct core *core, napi_value value, const char *what) {
	size_t length;
	need(napi_get_value_string_utf8(env, value, NULL, 0, &length), what);
	struct string *string = allocate(sizeof *string + length + 1);
	string->next = core->strings;
	core->strings = string;
	need(napi_get_value_string_utf8(env, value, string->bytes, length + 1, &length), what);
	return (struct text){string->bytes, (int)length};
}

static const char *string_property(napi_env env, struct core *core, napi_value object, const char *name) {
	return text_of_value(env, core, property(env, object, name), name).start;
}

static uint32_t length_of(napi_env env, napi_value array) {
	uint32_t length;
	need(napi_get_array_length(env, array, &length), "array");
	return length;
}

static napi_value element(napi_env env, napi_value array, uint32_t index) {
	napi_value value;
	need(napi_get_element(env, array, index, &value), "element");
	return value;
}

static int64_t whole_number(napi_env env, napi_value value) {
	int64_t number;
	need(napi_get_value_int64(env, value, &number), "number");
	return number;
}

static napi_value number_value(napi_env env, double number) {
	napi_value value;
	need(napi_create_double(env, number, &value), "number");
	return value;
}

static napi_value column_value(napi_env env, sqlite3_stmt *statement, int column) {
	napi_value value;
	const int bytes = sqlite3_column_bytes(statement, column);
	switch (sqlite3_column_type(statement, column)) {
		case SQLITE_INTEGER:
		case SQLITE_FLOAT: return number_value(env, sqlite3_column_double(statement, column));
		case SQLITE_TEXT: {
			const char *text = (const char *)sqlite3_column_text(statement, column);
			need(napi_create_string_utf8(env, text, (size_t)bytes, &value), "text");
			return value;
		}
		case SQLITE_BLOB:
			need(napi_create_buffer_copy(env, (size_t)bytes, sqlite3_column_blob(statement, column), NULL, &value), "blob");
			return value;
		default: need(napi_get_null(env, &value), "null"); return value;
	}
}

static napi_value row_value(napi_env env, sqlite3_stmt *statement, bool is_array) {
	napi_value row;
	const int columns = sqlite3_column_count(statement);
	need(is_array ? napi_create_array(env, &row) : napi_create_object(env, &row), "row");
	for (int column = 0; column < columns; column++) {
		napi_value value = column_value(env, statement, column);
		if (is_array) need(napi_set_element(env, row, (uint32_t)column, value), "row");
		else need(napi_set_named_property(env, row, sqlite3_column_name(statement, column), value), "row");
	}
	return row;
}

/* First column, or row, of the first row; undefined where there is none. */
static napi_value get_value(napi_env env, struct loop *loop) {
	napi_value value;
	const int code = sqlite3_step(loop->statement);
	if (code == SQLITE_DONE) need(napi_get_undefined(env, &value), "undefined");
	else if (code != SQLITE_ROW) check(loop->db, code, loop->operation->name);
	else if (loop->operation->shape == PLUCK) value = column_value(env, loop->statement, 0);
	else value = row_value(env, loop->statement, false);
	return value;
}

static napi_value all_values(napi_env env, struct loop *loop) {
	napi_value rows;
	int code;
	need(napi_create_array(env, &rows), "rows");
	for (uint32_t count = 0; (code = sqlite3_step(loop->statement)) == SQLITE_ROW; count++) {
		napi_value row = row_value(env, loop->statement, loop->operation->shape == RAW);
		need(napi_set_element(env, rows, count, row), "rows");
	}
	if (code != SQLITE_DONE) check(loop->db, code, loop->operation->name);
	return rows;
}

static napi_value record(napi_env env, const char *first, double first_number, const char *second, double second_number) {
	napi_value object;
	need(napi_create_object(env, &object), "record");
	need(napi_set_named_property(env, object, first, number_value(env, first_number)), first);
	if (second) need(napi_set_named_property(env, object, second, number_value(env, second_number)), second);
	return object;
}

/* A call as in the loop, and what its JavaScript twin would return. */
static napi_value value_of_call(napi_env env, struct loop *loop, int64_t i) {
	const enum shape shape = loop->operation->shape;
	if (shape == GET || shape == PLUCK || shape == ALL || shape == RAW || shape == ITERATE) {
		begin_call(loop, i);
		napi_value value = shape == GET || shape == PLUCK ? get_value(env, loop) : all_values(env, loop);
		end_call(loop);
		return value;
	}
	call_once(loop, i);
	if (shape == OPEN) return record(env, "tables", loop->bench->number, NULL, 0);
	if (!loop->operation->gives_id) return number_value(env, loop->changes);
	return record(env, "changes", loop->changes, "lastInsertRowid", (double)loop->last_id);
}

/* -- an operation's life --------------------------------------------------------------------------------- */

static void copy_file(const char *from, const char *to) {
	char block[1 << 16];
	FILE *source = fopen(from, "rb");
	if (!source) fail("%s: %s", from, strerror(errno));
	FILE *target = fopen(to, "wb");
	if (!target) fail("%s: %s", to, strerror(errno));
	for (size_t count; (count = fread(block, 1, sizeof block, source)) > 0;) {
		if (fwrite(block, 1, count, target) != count) fail("%s: %s", to, strerror(errno));
	}
	fclose(source);
	if (fclose(target) != 0) fail("%s: %s", to, strerror(errno));
}

/* The connection that the JavaScript operation has when it is alone in its process. */
static sqlite3 *connect(struct core *core, enum connection connection, const char *writer) {
	if (connection == READER) return core->bench.db;
	if (connection == OWN) return open_database(&core->bench, core->bench.file);
	copy_file(core->bench.file, writer);
	return open_database(&core->bench, writer);
}

static enum names names_of(const char *word) {
	if (strcmp(word, "row") == 0) return NAMES_PER_ROW;
	if (strcmp(word, "call") == 0) return NAMES_PER_CALL;
	if (strcmp(word, "statement") == 0) return NAMES_PER_STATEMENT;
	fail("names of columns are read per row, call or statement, not per %s", word);
}

static void take_options(napi_env env, struct core *core, napi_value options) {
	struct bench *bench = &core->bench;
	bench->sql = string_property(env, core, options, "sql");
	bench->cipher = string_property(env, core, options, "cipher");
	bench->key = string_property(env, core, options, "key");
	bench->names = names_of(string_property(env, core, options, "names"));
	napi_value pragmas = property(env, options, "pragmas");
	for (uint32_t i = 0; i < length_of(env, pragmas); i++) {
		add_pragma(bench, text_of_value(env, core, element(env, pragmas, i), "pragma").start);
	}
	take_key(bench);
}

static void take_texts(napi_env env, struct core *core, napi_value texts) {
	const uint32_t count = length_of(env, texts);
	if (count != 0 && count != TEXTS) fail("there are %u texts, not %d", count, TEXTS);
	for (uint32_t i = 0; i < count; i++) core->loop.texts[i] = text_of_value(env, core, element(env, texts, i), "text");
}

static void set_up(napi_env env, struct core *core, const char *name, napi_value options) {
	struct bench *bench = &core->bench;
	const struct operation *operation = find_operation(name);
	if (!operation) fail("there is no operation %s", name);
	take_options(env, core, options);
	read_inputs(bench, string_property(env, core, options, "mailbox"));
	const char *directory = string_property(env, core, options, "directory");
	bench->file = joined(directory, "/core.db");
	create_database(bench);
	core->is_open = true;
	load_mailbox(bench);
	checkpoint(bench);
	char *writer = joined(directory, "/core-writer.db");
	sqlite3 *db = connect(core, operation->connection, writer);
	free(writer);
	open_loop(&core->loop, bench, operation, db);
	core->has_loop = true;
	take_texts(env, core, property(env, options, "texts"));
}

static void tear_down(struct core *core) {
	if (core->has_loop) {
		sqlite3 *db = core->loop.db;
		core->has_loop = false;
		close_loop(&core->loop);
		if (db != core->bench.db) check(db, sqlite3_close(db), "close");
	}
	if (core->is_open) {
		core->is_open = false;
		close_bench(&core->bench);
	}
	while (core->strings) {
		struct string *next = core->strings->next;
		free(core->strings);
		core->strings = next;
	}
}

/* -- the functions --------------------------------------------------------------------------------------- */

static napi_value thrown(napi_env env) {
	bool is_pending = false;
	napi_is_exception_pending(env, &is_pending);
	if (!is_pending) napi_throw_error(env, NULL, failure);
	return NULL;
}

static void take_arguments(napi_env env, napi_callback_info info, size_t wanted, napi_value *arguments) {
	size_t count = ARGUMENTS;
	need(napi_get_cb_info(env, info, &count, arguments, NULL, NULL), "arguments");
	if (count != wanted) fail("there are %zu arguments, not %zu", count, wanted);
}

static struct core *core_of(napi_env env, napi_value handle) {
	void *core;
	need(napi_get_value_external(env, handle, &core), "handle");
	return core;
}

static struct loop *loop_of(napi_env env, napi_value handle) {
	struct core *core = core_of(env, handle);
	if (!core->has_loop) fail("the operation is not set up");
	return &core->loop;
}

static napi_value js_setup(napi_env env, napi_callback_info info) {
	napi_value arguments[ARGUMENTS], handle;
	/* Freed by nobody: a process sets up a handful, and a handle may outlive its tear-down. */
	if (setjmp(failed)) return thrown(env);
	take_arguments(env, info, 2, arguments);
	struct core *core = allocate(sizeof *core);
	need(napi_create_external(env, core, NULL, NULL, &handle), "handle");
	set_up(env, core, text_of_value(env, core, arguments[0], "name").start, arguments[1]);
	return handle;
}

static napi_value js_loop(napi_env env, napi_callback_info info) {
	napi_value arguments[ARGUMENTS], fold;
	if (setjmp(failed)) return thrown(env);
	take_arguments(env, info, 3, arguments);
	struct loop *loop = loop_of(env, arguments[0]);
	loop->bench->fold = 0;
	call_many(loop, whole_number(env, arguments[1]), whole_number(env, arguments[2]));
	need(napi_create_int32(env, (int32_t)(loop->bench->fold & 0x7fffffff), &fold), "fold");
	return fold;
}

static napi_value js_run(napi_env env, napi_callback_info info) {
	napi_value arguments[ARGUMENTS];
	if (setjmp(failed)) return thrown(env);
	take_arguments(env, info, 2, arguments);
	return value_of_call(env, loop_of(env, arguments[0]), whole_number(env, arguments[1]));
}

/* There is nobody to throw to: the caller is C, and its caller the addon under test. */
static void work(void *given) {
	struct core *core = given;
	if (setjmp(failed)) {
		fprintf(stderr, "the loop in C failed: %s\n", failure);
		abort();
	}
	call_once(&core->loop, core->next++);
}

static napi_value js_worker(napi_env env, napi_callback_info info) {
	napi_value arguments[ARGUMENTS], pointers;
	struct {
		void (*call)(void *);
		void *data;
	} worker = {work, NULL};
	if (setjmp(failed)) return thrown(env);
	take_arguments(env, info, 1, arguments);
	loop_of(env, arguments[0]);
	worker.data = core_of(env, arguments[0]);
	need(napi_create_buffer_copy(env, sizeof worker, &worker, NULL, &pointers), "pointers");
	return pointers;
}

static napi_value js_restore(napi_env env, napi_callback_info info) {
	napi_value arguments[ARGUMENTS];
	if (setjmp(failed)) return thrown(env);
	take_arguments(env, info, 1, arguments);
	restore(loop_of(env, arguments[0]));
	return NULL;
}

static napi_value js_teardown(napi_env env, napi_callback_info info) {
	napi_value arguments[ARGUMENTS];
	if (setjmp(failed)) return thrown(env);
	take_arguments(env, info, 1, arguments);
	tear_down(core_of(env, arguments[0]));
	return NULL;
}

/* Node has an SQLite of its own since 22.5, whose symbols win in a library that was linked carelessly. */
static void assert_own_sqlite(void) {
	Dl_info mine, sqlite;
	static const char HERE;
	if (!dladdr(&HERE, &mine) || !dladdr((void *)(uintptr_t)sqlite3_open_v2, &sqlite)) fail("dladdr knows no symbol");
	if (mine.dli_fbase != sqlite.dli_fbase) fail("SQLite of %s would be measured; link with -Bsymbolic", sqlite.dli_fname);
}

NAPI_MODULE_INIT() {
	static const struct {
		const char *name;
		napi_callback function;
	} FUNCTIONS[] = {
		{"setup", js_setup}, {"loop", js_loop}, {"run", js_run}, {"restore", js_restore}, {"teardown", js_teardown},
		{"worker", js_worker},
	};
	bench_failed = leave;
	if (setjmp(failed)) return thrown(env);
	assert_own_sqlite();
	for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++) {
		napi_value function;
		need(napi_create_function(env, FUNCTIONS[i].name, NAPI_AUTO_LENGTH, FUNCTIONS[i].function, NULL, &function), "function");
		need(napi_set_named_property(env, exports, FUNCTIONS[i].name, function), "function");
	}
	return exports;
}
