/* SPDX-License-Identifier: Apache-2.0 */

/*
 * conform: what the CUDA driver API does, checked call by call, as TAP. Needs libcuda.so.1 and nothing else, no toolkit.
 *
 *	conform [GROUP…]        all checks but those of two GPUs (pair) and two processes (share), or those of groups
 *	conform --attributes    every attribute of every device, for comparison on one machine
 *	conform --entries       of each name that is read, from which versions on cuGetProcAddress() gives which of its functions
 *
 * Each group runs in a process of its own, and so does each check that breaks its context. A line ends with what the calls
 * returned, so that the outputs of two drivers can be compared line by line.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum {
	GROUPS_ASKED_FOR = 2, /* the last */
	DEADLINE = 30,
	VALUES_MAX = 2048,
	LINE_SIZE = 4096
};

static const struct group groups[] = {
	{"init", init_checks, true},
	{"error", error_checks, true},
	{"entry", entry_checks, true},
	{"device", device_checks, false},
	{"context", context_checks, true},
	{"memory", memory_checks, false},
	{"pointer", pointer_checks, false},
	{"pool", pool_checks, false},
	{"vmm", vmm_checks, false},
	{"copy", copy_checks, false},
	{"fill", fill_checks, false},
	{"code", code_checks, false},
	{"link", link_checks, false},
	{"library", library_checks, false},
	{"launch", launch_checks, false},
	{"occupancy", occupancy_checks, false},
	{"stream", stream_checks, false},
	{"event", event_checks, false},
	{"word", word_checks, false},
	{"graph", graph_checks, false},
	{"capture", capture_checks, false},
	{"thread", thread_checks, false},
	{"table", table_checks, true},
	{"array", array_checks, false},
	{"reference", reference_checks, false},
	{"print", print_checks, false},
	{"managed", managed_checks, false},
	{"variable", variable_checks, false},
	{"condition", condition_checks, false},
	{"share", share_checks, true},
	{"pair", pair_checks, false},
};

struct driver cu;
CUcontext context;
CUmodule module;
static void *library;
static bool failed;
static char values[VALUES_MAX];
static int results;

static CUresult main_missing(void)
{
	return -1;
}

void *check_symbol(const char *name)
{
	return dlsym(library, name);
}

static void main_resolve(void *member, const char *name)
{
	void *function = dlsym(library, name);

	if (!function)
		function = (void *)main_missing;
	memcpy(member, &function, sizeof(function));
}

static int main_load(void)
{
	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		printf("Bail out! %s\n", dlerror());
		return -1;
	}
#define RESOLVE(name, symbol, version, parameters) main_resolve(&cu.symbol, #symbol);
#define RESOLVE_TWIN(name, symbol, version, suffix, parameters, arguments) \
	main_resolve(&cu.symbol, #symbol);                                 \
	main_resolve(&cu.symbol##_##suffix, #symbol "_" #suffix);
	CUDA_FUNCTIONS(RESOLVE, RESOLVE_TWIN)
	return 0;
}

/* ---- what checks call ---- */

void got(long long value)
{
	size_t used = strlen(values);

	(void)snprintf(values + used, sizeof(values) - used, " %lld", value);
}

void got_text(const char *text)
{
	size_t used = strlen(values);

	(void)snprintf(values + used, sizeof(values) - used, " %s", text ? text : "NULL");
}

void want(long long value, long long right)
{
	got(value);
	if (value == right)
		return;
	failed = true;
	got_text("(not");
	got(right);
	got_text(")");
}

/* All functions at once: one that is loaded when it is first launched waits for what runs then. */
void check_load(void)
{
	CUfunction functions[64];
	unsigned count = 0;

	if (module)
		return;
	if (cu.cuModuleLoadData(&module, kernels_ptx) != CUDA_SUCCESS)
		got_text("(kernels not loaded)");
	(void)cu.cuModuleGetFunctionCount(&count, module);
	if (count > 64 || cu.cuModuleEnumerateFunctions(functions, count, module) != CUDA_SUCCESS)
		return;
	for (unsigned i = 0; i < count; i++)
		(void)cu.cuFuncLoad(functions[i]);
}

CUfunction check_function(const char *name)
{
	CUfunction function = NULL;

	check_load();
	if (cu.cuModuleGetFunction(&function, module, name) != CUDA_SUCCESS)
		got_text("(no kernel)");
	return function;
}

CUdeviceptr check_alloc(size_t bytes)
{
	CUdeviceptr pointer = 0;

	if (cu.cuMemAlloc_v2(&pointer, bytes) != CUDA_SUCCESS)
		got_text("(no memory)");
	return pointer;
}

CUdeviceptr check_words(const uint32_t *words, size_t count)
{
	CUdeviceptr pointer = check_alloc(count * sizeof(*words));

	if (cu.cuMemcpyHtoD_v2(pointer, words, count * sizeof(*words)) != CUDA_SUCCESS)
		got_text("(not copied)");
	return pointer;
}

uint32_t check_word(CUdeviceptr address)
{
	uint32_t word = 0xdeadbeef;

	if (cu.cuMemcpyDtoH_v2(&word, address, sizeof(word)) != CUDA_SUCCESS)
		got_text("(not read)");
	return word;
}

CUresult check_launch(const char *name, unsigned threads, CUstream stream, void **parameters)
{
	return cu.cuLaunchKernel(check_function(name), 1, 1, 1, threads, 1, 1, 0, stream, parameters, NULL);
}

uint32_t *check_pinned(size_t bytes)
{
	void *pointer = NULL;

	if (cu.cuMemHostAlloc(&pointer, bytes, 0) != CUDA_SUCCESS) {
		got_text("(no pinned memory)");
		pointer = calloc(1, bytes);
	}
	memset(pointer, 0, bytes);
	return pointer;
}

void check_gate(volatile uint32_t *gate, CUstream stream)
{
	*gate = 0;
	if (check_launch("gate", 1, stream, PARAMETERS(&gate)) != CUDA_SUCCESS)
		got_text("(no gate)");
}

/* ---- one process: a group, or one check of it ---- */

CUresult check_begin(void)
{
	CUresult r = cu.cuInit(0);

	if (!r)
		r = cu.cuDevicePrimaryCtxRetain(&context, 0);
	if (!r)
		r = cu.cuCtxSetCurrent(context);
	return r;
}

static void main_check(int number, const struct check *check)
{
	failed = false;
	values[0] = '\0';
	(void)dprintf(results, "B%d\n", number);
	(void)alarm(DEADLINE);
	check->run();
	(void)alarm(0);
	(void)dprintf(results, "%c%s\n", failed ? 'F' : 'P', values);
}

/* Only says that there is none where the driver is not to be had. */
static int main_group(const struct group *group, int only)
{
	int r = group->bare ? 0 : check_begin();

	if (r) {
		(void)dprintf(results, "N%d\n", r);
		return 0;
	}
	for (int i = 0; group->checks[i].title; i++)
		if (only < 0 ? !group->checks[i].alone : i == only)
			main_check(i, &group->checks[i]);
	return 0;
}

/* ---- the parent ---- */

static int number, failures;

static void main_print(const struct group *group, int index, bool passed, const char *what)
{
	number++;
	failures += !passed;
	printf("%s %d - %s: %s:%s\n", passed ? "ok" : "not ok", number, group->name, group->checks[index].title, what);
	(void)fflush(stdout);
}

static FILE *main_start(const struct group *group, int only, pid_t *ret_pid)
{
	char text[16], fd[16];
	int ends[2];

	if (pipe(ends))
		exit(2);
	(void)snprintf(text, sizeof(text), "%d", only);
	(void)snprintf(fd, sizeof(fd), "%d", ends[1]);
	*ret_pid = fork();
	if (*ret_pid == 0) {
		(void)close(ends[0]);
		(void)execl("/proc/self/exe", "conform", "--run", group->name, text, fd, (char *)NULL);
		_exit(127);
	}
	(void)close(ends[1]);
	return fdopen(ends[0], "r");
}

/* Which checks of the group this process has: those together, or the one. */
static bool main_has(const struct group *group, int only, int index)
{
	return only < 0 ? !group->checks[index].alone : index == only;
}

static void main_run(const struct group *group, int only)
{
	char line[LINE_SIZE], end[64] = " ended";
	int running = -1, next = 0, status = 0;
	FILE *file;
	pid_t pid;

	file = main_start(group, only, &pid);
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == 'B')
			running = atoi(line + 1);
		else if (line[0] == 'N')
			(void)snprintf(end, sizeof(end), " no context, error %.9s", line + 1);
		if (line[0] != 'P' && line[0] != 'F')
			continue;
		main_print(group, running, line[0] == 'P', line + 1);
		next = running + 1;
		running = -1;
	}
	if (file)
		(void)fclose(file);
	(void)waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		(void)snprintf(end, sizeof(end), " ended by signal %d", WTERMSIG(status));
	for (; group->checks[next].title; next++)
		if (main_has(group, only, next))
			main_print(group, next, false,
				   next == running || only >= 0 || strstr(end, "no context") ? end : " not run");
}

static void main_run_group(const struct group *group)
{
	main_run(group, -1);
	for (int i = 0; group->checks[i].title; i++)
		if (group->checks[i].alone)
			main_run(group, i);
}

static int main_attributes(void)
{
	int count = 0, value;

	if (main_load() || cu.cuInit(0) || cu.cuDeviceGetCount(&count))
		return 1;
	for (int device = 0; device < count; device++)
		for (int i = 1; i <= 150; i++) {
			CUresult r = cu.cuDeviceGetAttribute(&value, i, device);

			printf("device %d attribute %d: %d %d\n", device, i, r, r ? 0 : value);
		}
	return 0;
}

/* A letter for each function that a name has had, in the order of versions; "-" where there is none. */
static void main_print_entry(const char *name, cuuint64_t flags)
{
	static const int versions[] = {2000,  2010,  2020,  3000,  3010,  3020,  4000,  4010,  4020,  5000,  5050,
				       6000,  6050,  7000,  7050,  8000,  9000,  9010,  9020,  10000, 10010, 10020,
				       11000, 11010, 11020, 11030, 11040, 11050, 11060, 11070, 11080, 12000, 12010,
				       12020, 12030, 12040, 12050, 12060, 12080, 12090, 13000};
	void *before = NULL;
	char letter = 'a';

	printf("%s %d:", name, (int)flags);
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		void *function = NULL;
		int status = 0;

		if (cu.cuGetProcAddress_v2(name, &function, versions[i], flags, &status) != CUDA_SUCCESS)
			function = NULL;
		if (function != before)
			printf(" %d=%c", versions[i], function ? letter++ : '-');
		before = function;
	}
	printf("\n");
}

static int main_entries(void)
{
	char name[128];

	if (main_load() || cu.cuInit(0))
		return 1;
	while (scanf("%127s", name) == 1) {
		main_print_entry(name, 0);
		main_print_entry(name, 2);
	}
	return 0;
}

static const struct group *main_find(const char *name)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (strcmp(groups[i].name, name) == 0)
			return &groups[i];
	fprintf(stderr, "conform: there is no group %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--attributes") == 0)
		return main_attributes();
	if (argc == 2 && strcmp(argv[1], "--entries") == 0)
		return main_entries();
	if (argc == 5 && strcmp(argv[1], "--run") == 0) {
		results = atoi(argv[4]);
		(void)fcntl(results, F_SETFD, FD_CLOEXEC);
		return main_load() ? 2 : main_group(main_find(argv[2]), atoi(argv[3]));
	}
	(void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	if (main_load())
		return 2;
	for (int i = 1; i < argc; i++)
		main_run_group(main_find(argv[i]));
	for (size_t i = 0; argc < 2 && i < sizeof(groups) / sizeof(groups[0]) - GROUPS_ASKED_FOR; i++)
		main_run_group(&groups[i]);
	printf("1..%d\n", number);
	return failures > 0;
}
