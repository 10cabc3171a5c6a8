/*
 * Counts calls of SQLite's functions from outside of it: linked with `ld --wrap=NAME` for each name of the list in
 * counted.h, which the harness writes as lines COUNTED(index, NAME). The linker sends references to NAME in other
 * objects to __wrap_NAME here; calls inside of the amalgamation stay as they are and are not counted.
 *
 * COUNTS_VARIABLE is the name of an environment variable with the path of a file: it gets one number of 64 bits
 * for each name, in order, and can be read at any time.
 *
 * A few functions take a variable number of arguments, so the wrappers are jumps that touch no argument.
 */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_NAMES 1024
#define BYTES (MOST_NAMES * sizeof(uint64_t))

static uint64_t unread[MOST_NAMES];

__attribute__((visibility("hidden"))) uint64_t *call_counts = unread;

__attribute__((constructor)) static void share(void) {
	const char *path = getenv(COUNTS_VARIABLE);
	const int file = path ? open(path, O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
	if (file < 0 || ftruncate(file, BYTES) != 0) abort();
	void *shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (shared == MAP_FAILED) abort();
	close(file);
	call_counts = shared;
}

/* Registers that a call may change before the function begins: the linker's own stubs use them too. */
#if defined __x86_64__
#define COUNT(offset, name) \
	"movq call_counts(%rip), %r11\n" \
	"incq " #offset "*8(%r11)\n" \
	"jmp __real_" #name "\n"
#elif defined __aarch64__
#define COUNT(offset, name) \
	"adrp x16, call_counts\n" \
	"ldr x16, [x16, :lo12:call_counts]\n" \
	"ldr x17, [x16, " #offset "*8]\n" \
	"add x17, x17, 1\n" \
	"str x17, [x16, " #offset "*8]\n" \
	"b __real_" #name "\n"
#else
#error "calls can be counted on x86-64 and AArch64 only"
#endif

#define COUNTED(offset, name) \
	__asm__(".text\n.globl __wrap_" #name "\n.hidden __wrap_" #name "\n.type __wrap_" #name ", %function\n" \
		"__wrap_" #name ":\n" COUNT(offset, name));

#include "counted.h"
