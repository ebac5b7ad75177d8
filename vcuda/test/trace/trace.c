/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A libcuda.so.1 that stands between a program and TRACE_LIBRARY, the driver's or vCUDA's, and writes to TRACE_LOG.PID:
 *
 *   fails NAME RESULT        the first call of a function that returned this
 *   missing NAME VERSION     a name that cuGetProcAddress() did not find
 *   table UUID RESULT WORDS  a table that was asked for
 *   calls COUNT NAME         at the end
 *
 * It is how one sees what a program of others wants of the driver, and where that differs. UUID[N] is a slot of a table;
 * some return nothing, so that what they "fail" with is by chance.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	PLACES = 4096,
	PLACE_BYTES = 16,
	DEPTH = 24,
	RESULTS = 1000,
	NAME = 64,
	UUID = 16,
	TABLE_WORDS = 512,
	PAGE = 4096
};

#define HIDDEN __attribute__((visibility("hidden")))

extern char trace_places[] HIDDEN;
extern const char trace_names[] HIDDEN;

HIDDEN __thread struct {
	unsigned long depth, unused;
	struct {
		void *from;
		unsigned long place;
	} entry[DEPTH];
} trace_thread __attribute__((tls_model("initial-exec")));

HIDDEN void *trace_real[PLACES];
static char names[PLACES][NAME];
static unsigned long counts[PLACES];
static bool told[PLACES][RESULTS];
static int used, out = -1;
static int (*real_table)(const void **, const unsigned char *);
static int (*real_address)(const char *, void **, int, unsigned long);
static int (*real_address_v2)(const char *, void **, int, unsigned long, int *);

HIDDEN void *trace_back(int result);

void *trace_back(int result)
{
	const unsigned long i = --trace_thread.depth, place = trace_thread.entry[i].place;

	counts[place]++;
	if (result > 0 && result < RESULTS && !told[place][result]) {
		told[place][result] = true;
		dprintf(out, "fails %s %d\n", names[place], result);
	}
	return trace_thread.entry[i].from;
}

/* Where calls of a function go that the program gets without a name that is exported. */
static void *trace_place(void *function, const char *name)
{
	int i = 0;

	while (i < used && trace_real[i] != function)
		i++;
	if (i == used) {
		if (used == PLACES)
			return function;
		used++;
		trace_real[i] = function;
		(void)snprintf(names[i], NAME, "%s", name);
	}
	return trace_places + (size_t)i * PLACE_BYTES;
}

static void trace_end(void)
{
	for (int i = 0; i < used; i++)
		if (counts[i])
			dprintf(out, "calls %lu %s\n", counts[i], names[i]);
}

static __attribute__((constructor)) void trace_begin(void)
{
	const char *library = getenv("TRACE_LIBRARY"), *log = getenv("TRACE_LOG");
	void *handle = library ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : NULL;
	char path[512];

	if (!handle) {
		fprintf(stderr, "trace: no TRACE_LIBRARY: %s\n", library ? dlerror() : "not set");
		_exit(99);
	}
	(void)snprintf(path, sizeof(path), "%s.%d", log ? log : "/tmp/trace", getpid());
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	for (const char *name = trace_names; *name && used < PLACES; name += strlen(name) + 1) {
		trace_real[used] = dlsym(handle, name);
		(void)snprintf(names[used++], NAME, "%s", name);
	}
	real_table = dlsym(handle, "cuGetExportTable");
	real_address = dlsym(handle, "cuGetProcAddress");
	real_address_v2 = dlsym(handle, "cuGetProcAddress_v2");
	(void)atexit(trace_end);
}

int cuGetExportTable(const void **table, const unsigned char *uuid);

/* The tables are changed where they are: the program compares their addresses. */
static size_t trace_slots(const unsigned char *uuid, void **table)
{
	const size_t bytes = (size_t)table[0], first = bytes <= TABLE_WORDS * sizeof(*table);
	const size_t words = first ? bytes / sizeof(*table) : 3;
	char *page = (char *)((size_t)table & ~(size_t)(PAGE - 1));

	/* Not where an address is a part of what is asked for. */
	if (uuid[0] == 0xd4 || mprotect(page, (size_t)((char *)(table + words) - page), PROT_READ | PROT_WRITE) != 0)
		return words;
	for (size_t i = first; i < words; i++) {
		char name[NAME];

		if ((char *)table[i] >= trace_places && (char *)table[i] < trace_places + (size_t)PLACES * PLACE_BYTES)
			continue;
		(void)snprintf(name, sizeof(name), "%02x%02x%02x%02x[%zu]", uuid[0], uuid[1], uuid[2], uuid[3], i);
		if (table[i])
			table[i] = trace_place(table[i], name);
	}
	return words;
}

int cuGetExportTable(const void **table, const unsigned char *uuid)
{
	const int r = real_table(table, uuid);
	char text[2 * UUID + 1];

	for (int i = 0; i < UUID; i++)
		(void)snprintf(text + (size_t)(2 * i), 3, "%02x", uuid[i]);
	dprintf(out, "table %s %d %zu\n", text, r, r || !*table ? 0 : trace_slots(uuid, (void **)*table));
	return r;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long flags, int *status);
int cuGetProcAddress(const char *name, void **function, int version, unsigned long flags);

static int trace_found(int r, const char *name, void **function, int version)
{
	char place[NAME];

	if (r || !function || !*function) {
		dprintf(out, "missing %s %d\n", name ? name : "", version);
		return r;
	}
	(void)snprintf(place, sizeof(place), "%s@%d", name, version);
	if (strcmp(name, "cuGetProcAddress") == 0)
		*function = version >= 12000 ? (void *)cuGetProcAddress_v2 : (void *)cuGetProcAddress;
	else if (strcmp(name, "cuGetExportTable") == 0)
		*function = (void *)cuGetExportTable;
	else
		*function = trace_place(*function, place);
	return r;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long flags, int *status)
{
	return trace_found(real_address_v2(name, function, version, flags, status), name, function, version);
}

int cuGetProcAddress(const char *name, void **function, int version, unsigned long flags)
{
	return trace_found(real_address(name, function, version, flags), name, function, version);
}
