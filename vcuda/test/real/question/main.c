/* SPDX-License-Identifier: Apache-2.0 */

/*
 * question GROUP [ARGUMENT…]: what only a real driver can say, as TAP. Needs libcuda.so.1 as the loader finds it.
 *
 *	addresses        whether it takes a process's own memory, which it was never told of, for the device's
 *	unified          whether kernels reach such memory, and whether a process can say that they shall not
 *	limits           what the limits of a new context are, and what they can be set to
 *	contexts         what NVML says that a process has, of which memory contexts are a part
 *	taken [IMAGE…]   a line for each way to take memory: its name, what cuMemGetInfo() has less, what the calls returned
 *	images IMAGE…    of what parts an image is
 *	linkers          whether a linker can be used by several threads, one after the other
 *	tables           what slots of tables that no document describes do
 *	waits            which functions wait for what the GPU does already
 *	sharing          how memory and events get from one process to another
 */

#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "question.h"

enum { DEADLINE = 20 };

static const struct {
	const char *name;
	void (*ask)(int argc, char **argv);
} groups[] = {
	{"addresses", ask_addresses}, {"unified", ask_unified}, {"taken", ask_taken},     {"limits", ask_limits},
	{"contexts", ask_contexts},   {"images", ask_images},   {"linkers", ask_linkers}, {"waits", ask_waits},
	{"tables", ask_tables},       {"sharing", ask_sharing},
};

struct driver cu;
static int failures;
static const char *group;

void answer(bool right, const char *format, ...)
{
	va_list list;

	failures += !right;
	printf("%s - %s: ", right ? "ok" : "not ok", group);
	va_start(list, format);
	(void)vprintf(format, list);
	va_end(list);
	printf("\n");
	(void)fflush(stdout);
}

void remark(const char *format, ...)
{
	va_list list;

	printf("# %s: ", group);
	va_start(list, format);
	(void)vprintf(format, list);
	va_end(list);
	printf("\n");
	(void)fflush(stdout);
}

static CUresult missing(void)
{
	return -1;
}

static void resolve(void *library, void *member, const char *name)
{
	void *function = dlsym(library, name);

	if (!function)
		function = (void *)missing;
	memcpy(member, &function, sizeof(function));
}

void driver_open(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "question: %s\n", dlerror());
		_exit(2);
	}
#define RESOLVE(name, symbol, version, parameters) resolve(library, &cu.symbol, #symbol);
#define RESOLVE_TWIN(name, symbol, version, suffix, parameters, arguments) resolve(library, &cu.symbol, #symbol);
	CUDA_FUNCTIONS(RESOLVE, RESOLVE_TWIN)
}

CUcontext driver_begin(void)
{
	CUcontext context = NULL;
	CUresult r;

	driver_open();
	r = cu.cuInit(0);
	if (!r)
		r = cu.cuDevicePrimaryCtxRetain(&context, 0);
	if (!r)
		r = cu.cuCtxSetCurrent(context);
	if (!r)
		return context;
	fprintf(stderr, "question: no context: %d\n", r);
	_exit(2);
}

CUfunction driver_function(const char *text, const char *name)
{
	CUfunction function = NULL;
	CUmodule module = NULL;

	if (cu.cuModuleLoadData(&module, text) == CUDA_SUCCESS)
		(void)cu.cuModuleGetFunction(&function, module, name);
	return function;
}

int alone(void (*ask)(const void *about, void *ret), const void *about, void *ret, size_t bytes)
{
	int ends[2], status = 0;
	ssize_t count;
	pid_t pid;

	(void)fflush(stdout);
	if (pipe(ends) < 0 || (pid = fork()) < 0)
		exit(2);
	if (pid == 0) {
		(void)close(ends[0]);
		(void)alarm(DEADLINE);
		ask(about, ret);
		_exit(write(ends[1], ret, bytes) != (ssize_t)bytes);
	}
	(void)close(ends[1]);
	count = read(ends[0], ret, bytes);
	(void)close(ends[0]);
	(void)waitpid(pid, &status, 0);
	if (count == (ssize_t)bytes)
		return 0;
	return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(groups) / sizeof(groups[0]); i++)
		if (strcmp(argv[1], groups[i].name) == 0) {
			group = groups[i].name;
			groups[i].ask(argc - 2, argv + 2);
			return failures > 0;
		}
	fprintf(stderr, "question: which one?\n");
	return 2;
}
