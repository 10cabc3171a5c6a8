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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "bench.h"

#define PROTOCOL 1
#define MAX_PASSES 100

struct options {
	bool is_control;
	const char *mailbox;
	const char *scratch;
	const char *output;
	int passes;
	int64_t pass_ns;
};

struct measured {
	const char *name;
	/* Calls of one pass at most, because the rows run out; 0 without limit. */
	int64_t limit;
	/* Calls between two looks at the clock. */
	int stride;
};

/* The first is the host control. */
static const struct measured MEASURED[] = {
	{"select_range", 0, 64}, {"open_key", 0, 1},    {"select_point", 0, 256}, {"insert_row", 0, 16},
	{"insert_batch", 0, 1},  {"update_row", 0, 16}, {"delete_row", 900, 16},
};

/* -- errors, time, output -------------------------------------------------------------------------------- */

static void die(const char *sentence) {
	fprintf(stderr, "host: %s\n", sentence);
	exit(1);
}

static int64_t nanoseconds(clockid_t clock) {
	struct timespec now;
	if (clock_gettime(clock, &now) != 0) fail("clock_gettime: %s", strerror(errno));
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t file_size(const char *path) {
	struct stat info;
	if (stat(path, &info) == 0) return info.st_size;
	if (errno != ENOENT) fail("%s: %s", path, strerror(errno));
	return 0;
}

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

static void put_value(FILE *output, const char *name, int64_t value) {
	fprintf(output, "{\"type\":\"value\",\"name\":\"%s\",\"value\":%" PRId64 "}\n", name, value);
}

/* What the library itself answers: proof of what was measured. */
static void put_hello(FILE *output, struct bench *bench) {
	static const char *const NAMES[] = {
		"encoding",     "auto_vacuum", "journal_mode", "secure_delete",      "synchronous", "foreign_keys",
		"temp_store",   "busy_timeout", "wal_autocheckpoint", "cache_size",  "mmap_size",   "page_size",
	};
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

/* -- measuring ------------------------------------------------------------------------------------------- */

struct pass {
	int64_t calls;
	int64_t wall_ns;
	int64_t cpu_ns;
};

static struct pass run_pass(const struct options *options, const struct measured *measured, struct loop *loop) {
	struct pass pass = {0};
	const int64_t cpu_start = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
	const int64_t start = nanoseconds(CLOCK_MONOTONIC);
	do {
		call_many(loop, pass.calls, measured->stride);
		pass.calls += measured->stride;
		pass.wall_ns = nanoseconds(CLOCK_MONOTONIC) - start;
	} while (pass.wall_ns < options->pass_ns && (measured->limit == 0 || pass.calls < measured->limit));
	pass.cpu_ns = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
	restore(loop);
	return pass;
}

/* One pass to warm up, then those that count; nothing is written while they run. */
static void measure(const struct options *options, FILE *output, struct bench *bench, const struct measured *measured) {
	struct pass passes[MAX_PASSES];
	struct loop loop;
	open_loop(&loop, bench, find_operation(measured->name), bench->db);
	run_pass(options, measured, &loop);
	for (int i = 0; i < options->passes; i++) passes[i] = run_pass(options, measured, &loop);
	close_loop(&loop);
	for (int i = 0; i < options->passes; i++) {
		fprintf(output,
			"{\"type\":\"pass\",\"op\":\"%s\",\"index\":%d,\"calls\":%" PRId64 ",\"wall_ns\":%" PRId64
			",\"cpu_ns\":%" PRId64 "}\n",
			measured->name, i, passes[i].calls, passes[i].wall_ns, passes[i].cpu_ns);
	}
}

static void measure_vacuum(FILE *output, struct bench *bench) {
	const int64_t start = nanoseconds(CLOCK_MONOTONIC);
	execute(bench->db, "VACUUM");
	put_value(output, "vacuum_ns", nanoseconds(CLOCK_MONOTONIC) - start);
	checkpoint(bench);
	put_value(output, "database_after_vacuum_bytes", file_size(bench->file));
}

/* -- main ------------------------------------------------------------------------------------------------ */

static int64_t integer(const char *name, const char *text, int64_t low, int64_t high) {
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno || *end || end == text || value < low || value > high) {
		fail("%s must be %" PRId64 " to %" PRId64 ", not %s", name, low, high, text);
	}
	return value;
}

static void read_option(struct options *options, struct bench *bench, const char *name, const char *value) {
	if (strcmp(name, "--mailbox") == 0) options->mailbox = value;
	else if (strcmp(name, "--sql") == 0) bench->sql = value;
	else if (strcmp(name, "--scratch") == 0) options->scratch = value;
	else if (strcmp(name, "--output") == 0) options->output = value;
	else if (strcmp(name, "--cipher") == 0) bench->cipher = value;
	else if (strcmp(name, "--passes") == 0) options->passes = (int)integer(name, value, 1, MAX_PASSES);
	else if (strcmp(name, "--pass-ms") == 0) options->pass_ns = integer(name, value, 1, 60000) * 1000000;
	else if (strcmp(name, "--pragma") == 0) add_pragma(bench, value);
	else fail("there is no option %s", name);
}

static void read_options(struct options *options, struct bench *bench, int count, char **words) {
	if (count < 2 || (strcmp(words[1], "control") != 0 && strcmp(words[1], "native") != 0)) {
		fail("the first argument is control or native");
	}
	options->is_control = strcmp(words[1], "control") == 0;
	if (count % 2 != 0) fail("the last option has no value");
	for (int i = 2; i < count; i += 2) read_option(options, bench, words[i], words[i + 1]);
	if (!options->mailbox || !bench->sql || !options->scratch || !options->output) {
		fail("--mailbox, --sql, --output and a scratch directory are needed");
	}
}

static void set_up(FILE *output, struct bench *bench) {
	char *wal = joined(bench->file, "-wal");
	const int64_t start = nanoseconds(CLOCK_MONOTONIC);
	create_database(bench);
	load_mailbox(bench);
	const int64_t elapsed_ns = nanoseconds(CLOCK_MONOTONIC) - start;
	put_hello(output, bench);
	put_value(output, "setup_ns", elapsed_ns);
	put_value(output, "wal_bytes", file_size(wal));
	checkpoint(bench);
	put_value(output, "database_bytes", file_size(bench->file));
	free(wal);
}

int main(int count, char **words) {
	bench_failed = die;
	const int64_t start = nanoseconds(CLOCK_MONOTONIC);
	struct options options = {.scratch = getenv("INVESTIGATE_SCRATCH"), .passes = 5, .pass_ns = 40000000};
	struct bench bench = {.cipher = "chacha20", .key = getenv("INVESTIGATE_KEY"), .names = NAMES_PER_CALL};
	read_options(&options, &bench, count, words);
	take_key(&bench);
	read_inputs(&bench, options.mailbox);
	bench.file = joined(options.scratch, "/host.db");
	FILE *output = fopen(options.output, "w");
	if (!output) fail("%s: %s", options.output, strerror(errno));
	set_up(output, &bench);
	const size_t operations = options.is_control ? 1 : sizeof MEASURED / sizeof *MEASURED;
	for (size_t i = 0; i < operations; i++) measure(&options, output, &bench, &MEASURED[i]);
	if (!options.is_control) measure_vacuum(output, &bench);
	close_bench(&bench);
	fprintf(output, "{\"type\":\"done\",\"wall_ns\":%" PRId64 ",\"fold\":%" PRIu64 "}\n",
		nanoseconds(CLOCK_MONOTONIC) - start, bench.fold & 0xffffffffu);
	if (fclose(output) != 0) fail("%s: %s", options.output, strerror(errno));
	return 0;
}
