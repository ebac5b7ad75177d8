/* SPDX-License-Identifier: Apache-2.0 */

/*
 * server LIBRARY: what an honest client gets from a server that keeps to no rule, as TAP. Each case is a process with our
 * libcuda.so.1 (LIBRARY), whose server is this program: it answers like a real one except in what the case is about. The
 * client has to end with one of the driver's errors, in time, with no signal, and with nothing written beyond its buffers,
 * which end where memory ends.
 */

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vcuda/nvml/types.h"
#include "vcuda/ops.h"
#include "vcuda/protocol/start.h"
#include "vcuda/protocol/types.h"
#include "vcuda/protocol/wire.h"

#define EVERY UINT32_MAX /* of the operations */

enum {
	CONTEXT = 1, /* indexes of handles */
	FUNCTION,
	LOG = 1900,
	SOON = 20, /* seconds that a client has */
	LATE = 80, /* the same where it is the client that has to give up */
};

/* ---- the client's side ---- */

#define FUNCTIONS(X)                                                                                                 \
	X(cuInit, (unsigned))                                                                                        \
	X(cuDeviceGetCount, (int *))                                                                                 \
	X(cuDeviceGetName, (char *, int, int))                                                                       \
	X(cuDevicePrimaryCtxRetain, (uint64_t *, int))                                                               \
	X(cuDevicePrimaryCtxReset_v2, (int))                                                                         \
	X(cuCtxSetCurrent, (uint64_t))                                                                               \
	X(cuCtxSynchronize, (void))                                                                                  \
	X(cuMemAlloc_v2, (uint64_t *, size_t))                                                                       \
	X(cuMemGetInfo_v2, (size_t *, size_t *))                                                                     \
	X(cuMemHostAlloc, (void **, size_t, unsigned))                                                               \
	X(cuMemFreeHost, (void *))                                                                                   \
	X(cuMemAllocManaged, (uint64_t *, size_t, unsigned))                                                         \
	X(cuMemFree_v2, (uint64_t))                                                                                  \
	X(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                                               \
	X(cuModuleLoadDataEx, (uint64_t *, const void *, unsigned, int *, void **))                                  \
	X(cuModuleGetFunction, (uint64_t *, uint64_t, const char *))                                                 \
	X(cuFuncGetName, (const char **, uint64_t))                                                                  \
	X(cuFuncGetAttribute, (int *, int, uint64_t))                                                                \
	X(cuLaunchKernel, (uint64_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, uint64_t, \
			   void **, void **))                                                                        \
	X(cuLaunchHostFunc, (uint64_t, void (*)(void *), void *))                                                    \
	X(cuStreamAddCallback, (uint64_t, void (*)(uint64_t, int, void *), void *, unsigned))                        \
	X(cuLinkCreate_v2, (unsigned, int *, void **, uint64_t *))                                                   \
	X(cuLinkComplete, (uint64_t, void **, size_t *))                                                             \
	X(cuGraphGetNodes, (uint64_t, uint64_t *, size_t *))                                                         \
	X(cuGraphGetEdges, (uint64_t, uint64_t *, uint64_t *, size_t *))                                             \
	X(cuGraphGetEdges_v2, (uint64_t, uint64_t *, uint64_t *, void *, size_t *))                                  \
	X(cuGraphExecUpdate_v2, (uint64_t, uint64_t, void *))                                                        \
	X(cuStreamGetCaptureInfo_v2, (uint64_t, int *, uint64_t *, uint64_t *, const uint64_t **, size_t *))         \
	X(cuOccupancyMaxPotentialBlockSize, (int *, int *, uint64_t, size_t (*)(int), size_t, int))                  \
	X(cuTensorMapEncodeTiled, (void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,                \
				   const uint32_t *, const uint32_t *, int, int, int, int))

#define X(name, arguments) static int(*name) arguments;
FUNCTIONS(X)
#undef X

static const char *library;

static void fail(const char *what, long long got)
{
	printf("# %s: %lld\n", what, got);
	(void)fflush(stdout);
	_exit(1);
}

static void is_failure(const char *what, int result)
{
	if (result <= 0 || result > 999)
		fail(what, result);
}

/* Memory that ends where no memory is, so that a byte too much is a signal. */
static void *guarded(size_t bytes)
{
	const size_t page = 4096, all = (bytes + page - 1) / page * page;
	char *memory = mmap(NULL, all + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || mprotect(memory + all, page, PROT_NONE) < 0)
		fail("memory", 0);
	return memory + all - bytes;
}

static int descriptors_open(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	while (directory && readdir(directory))
		count++;
	if (directory)
		(void)closedir(directory);
	return count;
}

static uint64_t begin(void)
{
	uint64_t context = 0;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		fail("an honest beginning", 0);
	return context;
}

static uint64_t begin_with_module(void)
{
	uint64_t module = 0, function = 0;

	(void)begin();
	if (cuModuleLoadDataEx(&module, ".version 6.0", 0, NULL, NULL) || cuModuleGetFunction(&function, module, "nop"))
		fail("an honest module", 0);
	return function;
}

/* ---- what clients do ---- */

static void client_inits(void)
{
	is_failure("cuInit", cuInit(0));
}

static void client_inits_twice(void)
{
	const int first = cuInit(0), second = cuInit(0);

	is_failure("cuInit", first);
	if (second != first)
		fail("cuInit, a second time", second);
}

static void client_inits_and_keeps_no_descriptor(void)
{
	const int before = descriptors_open();

	is_failure("cuInit", cuInit(0));
	if (descriptors_open() > before)
		fail("descriptors more than before", descriptors_open() - before);
}

static void client_begins(void)
{
	(void)begin();
}

static void client_asks_name(void)
{
	char *name = guarded(300);

	(void)begin();
	if (cuDeviceGetName(name, 300, 0) || strlen(name) > 255)
		fail("the name's length", (long long)strlen(name));
	if (cuDeviceGetName(guarded(7), 7, 0))
		fail("a name that is cut", 0);
}

static void client_allocates(void)
{
	uint64_t pointer;

	(void)begin();
	is_failure("cuMemAlloc", cuMemAlloc_v2(&pointer, 4096));
}

/* The server says of a call without a result of its own what is no result. */
static void client_synchronizes(void)
{
	(void)begin();
	is_failure("cuCtxSynchronize", cuCtxSynchronize());
}

static void client_asks_memory(void)
{
	size_t *numbers = guarded(2 * sizeof(size_t));

	(void)begin();
	is_failure("cuMemGetInfo", cuMemGetInfo_v2(&numbers[0], &numbers[1]));
}

/* More than the ring has room for. */
static void client_launches_for_ever(void)
{
	const uint64_t function = begin_with_module();
	void *parameters[] = {guarded(8)};
	int r = 0;

	for (int i = 0; i < 200000 && !r; i++)
		r = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, parameters, NULL);
	is_failure("launches", r);
}

static void client_asks_text(void)
{
	const char *name = NULL;
	const uint64_t function = begin_with_module();

	is_failure("cuFuncGetName", cuFuncGetName(&name, function));
}

static void client_asks_function(void)
{
	const uint64_t function = begin_with_module();
	void *parameters[] = {guarded(8)};

	is_failure("cuLaunchKernel", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, parameters, NULL));
}

static size_t no_shared_memory(int block)
{
	if (block < 1 || block > 1024)
		fail("a block of so many threads", block);
	return 0;
}

static void client_asks_for_block(void)
{
	int grid = 0, block = 0;

	(void)cuOccupancyMaxPotentialBlockSize(&grid, &block, begin_with_module(), no_shared_memory, 0, 0);
}

static void client_loads(void)
{
	uint64_t module = 0;
	int names[] = {5, 6};
	void *values[] = {guarded(16), (void *)16};

	(void)begin();
	is_failure("cuModuleLoadDataEx", cuModuleLoadDataEx(&module, ".version 6.0", 2, names, values));
}

/* Logs of a length that the answer can have, and the caller has no room for. */
static void client_loads_with_small_log(void)
{
	uint64_t module = 0;
	int names[] = {5, 6};
	void *values[] = {guarded(16), (void *)16};

	(void)begin();
	if (cuModuleLoadDataEx(&module, ".version 6.0", 2, names, values) || (size_t)values[1] > 16)
		fail("the log's length", (long long)(size_t)values[1]);
}

static void client_links(void)
{
	uint64_t state = 0;
	void *image;
	size_t bytes;

	(void)begin();
	if (cuLinkCreate_v2(0, NULL, NULL, &state))
		fail("cuLinkCreate", 0);
	is_failure("cuLinkComplete", cuLinkComplete(state, &image, &bytes));
}

static void client_lists(void)
{
	uint64_t *nodes = guarded(4 * sizeof(uint64_t));
	size_t count = 4;
	int r;

	(void)begin();
	r = cuGraphGetNodes(1, nodes, &count);
	if (r == 0 && count > 4)
		fail("nodes that were told", (long long)count);
	/* More than one answer may hold. */
	count = 100000;
	is_failure("cuGraphGetNodes", cuGraphGetNodes(1, guarded(count * sizeof(uint64_t)), &count));
}

static void client_lists_edges(void)
{
	uint64_t *from = guarded(3 * sizeof(uint64_t)), *to = guarded(3 * sizeof(uint64_t));
	size_t count = 3;

	(void)begin();
	if (cuGraphGetEdges(1, from, to, &count) == 0 && count > 3)
		fail("edges that were told", (long long)count);
}

/* Whoever asks how many there are says of no room. */
static void client_counts_edges(void)
{
	size_t count = 1;

	(void)begin();
	(void)cuGraphGetEdges_v2(1, NULL, NULL, guarded(8), &count);
}

/* What the driver says then. */
static void client_has_no_server(void)
{
	enum { NOT_INITIALIZED = 3 };

	if (cuGraphExecUpdate_v2(1, 1, guarded(24)) != NOT_INITIALIZED)
		fail("cuGraphExecUpdate", 0);
}

/* ---- NVML's library, which is beside the other ---- */

#define NVML_FUNCTIONS(X)                                          \
	X(nvmlInit_v2, (void))                                     \
	X(nvmlDeviceGetHandleByIndex_v2, (unsigned, void **))      \
	X(nvmlDeviceGetMemoryInfo, (void *, unsigned long long *)) \
	X(nvmlSystemGetDriverVersion, (char *, unsigned))          \
	X(nvmlDeviceGetComputeRunningProcesses_v3, (void *, unsigned *, void *))

#define X(name, arguments) static int(*name) arguments;
NVML_FUNCTIONS(X)
#undef X

static void *begin_with_nvml(void)
{
	char path[4096];
	void *handle, *device = NULL;

	(void)snprintf(path, sizeof(path), "%.*s/libnvidia-ml.so.1", (int)(strrchr(library, '/') - library), library);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
#define X(name, arguments)                                        \
	if (!handle || !(*(void **)&name = dlsym(handle, #name))) \
		fail(#name, 0);
	NVML_FUNCTIONS(X)
#undef X
	if (nvmlInit_v2() || nvmlDeviceGetHandleByIndex_v2(0, &device))
		fail("an honest beginning", 0);
	return device;
}

static void client_lists_processes(void)
{
	enum { INFO = 24, ROOM = 1000 };
	void *device = begin_with_nvml();
	unsigned count = ROOM;

	is_failure("processes", nvmlDeviceGetComputeRunningProcesses_v3(device, &count, guarded(ROOM * INFO)));
}

static void client_asks_usage(void)
{
	unsigned long long *memory = guarded(3 * sizeof(*memory));
	char *version = guarded(80);
	void *device = begin_with_nvml();

	if (nvmlDeviceGetMemoryInfo(device, memory) || memory[1] > memory[0] || memory[2] > memory[0])
		fail("what is free", (long long)memory[1]);
	if (nvmlSystemGetDriverVersion(version, 80) || strlen(version) > 31)
		fail("the version's length", (long long)strlen(version));
}

/* ---- all of NVML, as nvml.def has it ---- */

enum { TEXT = 80, ROUNDS = 40, PLACE = 16384 };

static struct {
	const char *type;
	size_t size;
	unsigned version;
	char *end; /* where no memory is */
} places[] = {
	{"char *", 1, 0, NULL},
	{"const char *", 1, 0, NULL},
	{"unsigned *", sizeof(unsigned), 0, NULL},
	{"int *", sizeof(int), 0, NULL},
	{"unsigned long long *", sizeof(unsigned long long), 0, NULL},
	{"nvmlDevice_t *", sizeof(nvmlDevice_t), 0, NULL},
	{"nvmlPciInfo_t *", sizeof(nvmlPciInfo_t), 0, NULL},
	{"nvmlPciInfoExt_t *", sizeof(nvmlPciInfoExt_t), NVML_VERSION(nvmlPciInfoExt_t, 1), NULL},
	{"nvmlMemory_t *", sizeof(nvmlMemory_t), 0, NULL},
	{"nvmlMemory_v2_t *", sizeof(nvmlMemory_v2_t), NVML_VERSION(nvmlMemory_v2_t, 2), NULL},
	{"nvmlDeviceArchitecture_t *", sizeof(nvmlDeviceArchitecture_t), 0, NULL},
	{"nvmlComputeMode_t *", sizeof(nvmlComputeMode_t), 0, NULL},
	{"nvmlEnableState_t *", sizeof(nvmlEnableState_t), 0, NULL},
	{"nvmlPstates_t *", sizeof(nvmlPstates_t), 0, NULL},
	{"nvmlGpuP2PStatus_t *", sizeof(nvmlGpuP2PStatus_t), 0, NULL},
	{"nvmlBrandType_t *", sizeof(nvmlBrandType_t), 0, NULL},
	{"nvmlIntNvLinkDeviceType_t *", sizeof(nvmlIntNvLinkDeviceType_t), 0, NULL},
	{"nvmlFieldValue_t *", sizeof(nvmlFieldValue_t), 0, NULL},
	{"nvmlUtilization_t *", sizeof(nvmlUtilization_t), 0, NULL},
	{"nvmlTemperature_t *", sizeof(nvmlTemperature_t), NVML_VERSION(nvmlTemperature_t, 1), NULL},
	{"nvmlProcessInfo_v1_t *", sizeof(nvmlProcessInfo_v1_t), 0, NULL},
	{"nvmlProcessInfo_v2_t *", sizeof(nvmlProcessInfo_v2_t), 0, NULL},
	{"nvmlProcessInfo_t *", sizeof(nvmlProcessInfo_t), 0, NULL},
	{"const void **", sizeof(void *), 0, NULL},
	{"const void *", 16, 0, NULL},
};

/* Return: room for @room of the type at @text and no byte more; texts, processes and fields are several. */
static uintptr_t make_place(const char *text, unsigned room)
{
	static const char bus[] = "0000:80:00.0";

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const bool several = places[i].size == 1 || strncmp(text, "nvmlProcessInfo", 15) == 0 ||
				     strncmp(text, "nvmlFieldValue", 14) == 0;
		char *at;

		if (strncmp(text, places[i].type, strlen(places[i].type)) != 0 || text[strlen(places[i].type)] != ',')
			continue;
		if (!places[i].end)
			places[i].end = (char *)guarded(PLACE) + PLACE;
		at = places[i].end - (several ? room : 1) * places[i].size;
		if (strncmp(text, "const char", 10) == 0)
			return (uintptr_t)memcpy(places[i].end - sizeof(bus), bus, sizeof(bus));
		if (places[i].version || strcmp(places[i].type, "unsigned *") == 0)
			memcpy(at, places[i].version ? &places[i].version : &room, sizeof(room));
		return (uintptr_t)at;
	}
	fail(text, 0);
	return 0;
}

/* The arguments of "V(nvmlDevice_t, device) P(char *, name) V(unsigned, length)". */
static void make_arguments(const char *text, void *device, unsigned room, uintptr_t ret[static 4])
{
	for (int i = 0; i < 4 && *text; i++) {
		if (*text == 'P')
			ret[i] = make_place(text + 2, room);
		else
			ret[i] = strncmp(text + 2, "nvmlDevice_t", 12) == 0 ? (uintptr_t)device : room;
		text = strchr(text, ')') + 1;
		text += strspn(text, " ");
	}
}

static void ask_nvml(void *handle, void *device, unsigned room)
{
	static const struct {
		const char *name, *arguments;
	} functions[] = {
#define N(name, arguments) {#name, #arguments},
#define T(name, arguments)
#define A(name, function)
#define R(names)
#include "vcuda/protocol/nvml.def"
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		int (*function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t);
		uintptr_t a[4] = {0};
		int r;

		/* Of its own making, and of no server's. */
		if (strstr(functions[i].name, "Init") || strstr(functions[i].name, "EventSet") ||
		    strcmp(functions[i].name, "nvmlShutdown") == 0)
			continue;
		*(void **)&function = dlsym(handle, functions[i].name);
		make_arguments(functions[i].arguments, device, room, a);
		r = function(a[0], a[1], a[2], a[3]);
		if (r < 0 || r > NVML_ERROR_UNKNOWN)
			fail(functions[i].name, r);
		if (r == 0 && strstr(functions[i].arguments, "P(char *") &&
		    strnlen((char *)a[functions[i].arguments[0] == 'V'], room) == room)
			fail(functions[i].name, room);
		if (r == 0 && strstr(functions[i].arguments, ", processes)") && *(unsigned *)a[1] > WIRE_PROCESSES)
			fail(functions[i].name, *(unsigned *)a[1]);
		/* No text of a server is as long. */
		if (r == NVML_ERROR_INSUFFICIENT_SIZE && strstr(functions[i].arguments, "P(char *") && room > 256)
			fail(functions[i].name, r);
	}
}

static void client_asks_all_of_nvml(void)
{
	void *device = begin_with_nvml(), *handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD);
	int answered = 0;

	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < 2 && nvmlDeviceGetHandleByIndex_v2(i, &device) == 0; i++, answered++)
			ask_nvml(handle, device, round % 3 == 2 ? 250 + round % 8 : round * 2 % TEXT);
	if (answered < ROUNDS)
		fail("devices that answered", answered);
}

static void client_asks_capture(void)
{
	int state;
	size_t count = 0;
	const uint64_t *nodes = NULL;
	uint64_t id, graph;

	(void)begin();
	is_failure("cuStreamGetCaptureInfo", cuStreamGetCaptureInfo_v2(0, &state, &id, &graph, &nodes, &count));
}

static void client_gets_host_memory(void)
{
	const int before = (begin(), descriptors_open());
	void *memory = NULL;

	is_failure("cuMemHostAlloc", cuMemHostAlloc(&memory, 65536, 0));
	if (descriptors_open() > before)
		fail("descriptors more than before", descriptors_open() - before);
}

/* A terabyte of addresses, several times over. */
static void client_takes_host_memory_and_gives_it_back(void)
{
	const size_t quarter = WIRE_ARENA_BYTES / 4;
	char *memory[4] = {NULL};
	void *more;

	(void)begin();
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 4; i++) {
			const size_t bytes =
				round % 2 ? quarter : (size_t)(i + 1) * (WIRE_ARENA_BYTES / 10 / 65536 * 65536);

			if (cuMemHostAlloc((void **)&memory[i], bytes, 0))
				fail("cuMemHostAlloc", round * 10 + i);
			if (memory[i][0] || memory[i][bytes - 1])
				fail("what somebody else wrote", round * 10 + i);
			memory[i][0] = memory[i][bytes - 1] = 1;
		}
		if (round % 2 && cuMemHostAlloc(&more, 65536, 0) == 0)
			fail("more than there is", round);
		for (int i = 0; i < 4; i++)
			if (cuMemFreeHost(memory[(i * 3 + round) % 4]))
				fail("cuMemFreeHost", round);
	}
}

/* What the server did not give back with its context, in a piece and in a part of one, it gives back when asked again. */
static void client_frees_what_a_context_had(void)
{
	const size_t sizes[] = {1 << 20, 64};

	for (int i = 0; i < 2; i++) {
		uint64_t managed = 0;

		(void)begin();
		if (cuMemAllocManaged(&managed, sizes[i], 1))
			fail("cuMemAllocManaged", i);
		*(volatile int *)managed = 9;
		(void)cuDevicePrimaryCtxReset_v2(0);
		(void)begin();
		if (*(volatile int *)managed != 9)
			fail("what is in it", i);
		if (cuMemFree_v2(managed))
			fail("cuMemFree", i);
		if (cuMemFree_v2(managed) != 1)
			fail("the next time", i);
	}
}

static int called;

static void client_is_called(void *nothing)
{
	(void)nothing;
	called++;
}

/* A flood of calls runs what was asked for once, and takes no time. */
static void client_is_called_back(void)
{
	struct rusage usage;

	(void)begin();
	for (int i = 0; i < 3; i++)
		if (cuLaunchHostFunc(0, client_is_called, NULL))
			fail("cuLaunchHostFunc", 0);
	(void)sleep(3);
	(void)getrusage(RUSAGE_SELF, &usage);
	if (called > 3)
		fail("calls", called);
	if (usage.ru_utime.tv_sec >= 1)
		fail("seconds of work", usage.ru_utime.tv_sec);
}

static void client_counts(uint64_t stream, int status, void *data)
{
	(void)stream, (void)status;
	++*(int *)data;
}

/* What it was told has failed is not called, and nothing else in its place. */
static void client_is_called_for_what_failed(void)
{
	int first = 0, second = 0;

	(void)begin();
	is_failure("the first", cuStreamAddCallback(0, client_counts, &first, 0));
	if (cuStreamAddCallback(0, client_counts, &second, 0))
		fail("the second", 0);
	if (first || second)
		fail("calls before the second was reached", first * 10 + second);
	if (cuCtxSynchronize())
		fail("cuCtxSynchronize", 0);
	if (first || second != 1)
		fail("calls", first * 10 + second);
}

/* A server that takes a second, and says that one should spin for four. */
static void client_waits_without_work(void)
{
	struct rusage usage;

	(void)begin();
	(void)cuCtxSynchronize();
	(void)getrusage(RUSAGE_SELF, &usage);
	if (usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000 > 500)
		fail("milliseconds of work", usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000);
}

/* From one processor to the next, twice around. */
static void client_goes_from_one_to_another(void)
{
	cpu_set_t all, one;

	(void)begin();
	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		fail("sched_getaffinity", 0);
	for (size_t i = 0; i < 2 * (size_t)CPU_SETSIZE; i++) {
		const size_t processor = i % CPU_SETSIZE;

		if (!CPU_ISSET(processor, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(processor, &one);
		if (sched_setaffinity(0, sizeof(one), &one) < 0 || cuCtxSynchronize())
			fail("a call from processor", (long long)processor);
	}
}

static void client_copies(void)
{
	uint64_t pointer = 0;

	(void)begin();
	if (cuMemAlloc_v2(&pointer, 1 << 20))
		fail("cuMemAlloc", 0);
	is_failure("cuMemcpyDtoH", cuMemcpyDtoH_v2(guarded(1 << 20), pointer, 1 << 20));
}

/* ---- the server's side ---- */

struct answer {
	int32_t result;
	uint32_t bytes;
	bool silent;
	uint64_t word[WIRE_REPLY / 8];
};

struct host {
	int socket, shared;
	struct wire *wire;
	uint32_t tail, sequence;
};

/* As image.c of the client has it. */
struct logs {
	uint64_t handle;
	uint32_t info_bytes, error_bytes;
	char info[LOG], error[LOG];
	float time;
};

static int make_memory(uint64_t bytes, int seals)
{
	const int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
		abort();
	return fd;
}

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static void send_with(int socket, const void *data, size_t bytes, const int descriptors[], size_t count)
{
	struct iovec vector = {(void *)data, bytes};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(64 * sizeof(int))];
	} control = {.header = {.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS,
				.cmsg_len = CMSG_LEN(count * sizeof(int))}};
	const struct msghdr message = {.msg_iov = &vector,
				       .msg_iovlen = 1,
				       .msg_control = count ? &control : NULL,
				       .msg_controllen = count ? CMSG_SPACE(count * sizeof(int)) : 0};

	memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
	(void)sendmsg(socket, &message, MSG_NOSIGNAL);
}

static void greet(struct host *host, uint64_t bytes, int seals)
{
	const struct wire_greeting greeting = {.magic = WIRE_MAGIC};

	host->shared = make_memory(bytes, seals);
	host->wire = mmap(NULL, sizeof(*host->wire), PROT_READ | PROT_WRITE, MAP_SHARED, host->shared, 0);
	if (host->wire == MAP_FAILED)
		abort();
	host->wire->magic = WIRE_MAGIC;
	host->wire->ops = OP_DIGEST;
	host->wire->state = WIRE_READY;
	host->wire->arena[0] = 0x300000000000;
	send_with(host->socket, &greeting, sizeof(greeting), &host->shared, 1);
}

static void answer_device(struct wire_device *device)
{
	device->total = 1 << 30;
	for (int i = 1; i < WIRE_ATTRIBUTES; i++) {
		device->attribute[i] = 1024;
		device->known[i] = 1;
	}
	(void)snprintf(device->name, sizeof(device->name), "hostile");
}

static void answer_arena(struct host *host)
{
	const int fd = make_memory(WIRE_SHARED_BYTES, SEALS);
	const char byte = 0;

	send_with(host->socket, &byte, 1, &fd, 1);
	(void)close(fd);
}

/* As a real server answers. */
static void answer_honestly(struct host *host, const struct wire_entry *entry, struct answer *a)
{
	struct wire_function *function = (struct wire_function *)a->word;
	struct wire_host hello = {13000, 1, 0, 1};

	memset(a, 0, sizeof(*a));
	a->bytes = WIRE_REPLY;
	if (entry->op == WIRE_HELLO)
		memcpy(a->word, &hello, sizeof(hello));
	else if (entry->op == WIRE_DEVICE)
		answer_device((struct wire_device *)a->word);
	else if (entry->op == WIRE_ARENA_ADD)
		answer_arena(host);
	else if (entry->op == OP_cuDevicePrimaryCtxRetain)
		a->word[0] = wire_handle(WIRE_CONTEXT, 1, CONTEXT, 0);
	else if (entry->op == OP_cuMemAlloc_v2)
		a->word[0] = 0x7f0000000000;
	else if (entry->op == OP_cuModuleLoadDataEx || entry->op == OP_cuLinkCreate_v2 ||
		 entry->op == OP_cuLinkComplete)
		a->bytes = sizeof(struct logs);
	else if (entry->op == OP_cuModuleGetFunction)
		a->word[0] = wire_handle(WIRE_FUNC, 1, FUNCTION, 0);
	if (entry->op == WIRE_FUNCTION) {
		function->attribute[0] = function->attribute[8] = 1024;
		function->parameters = 1;
		function->bytes = 8;
		function->parameter[0].size = 8;
	}
	if (entry->op == OP_cuModuleLoadDataEx || entry->op == OP_cuLinkCreate_v2)
		a->word[0] = 1;
}

typedef void twist(struct host *host, const struct wire_entry *entry, struct answer *answer);

static void answer_entry(struct host *host, const struct wire_entry *entry, twist *changes)
{
	static struct answer answer;
	struct wire_reply *reply;

	answer_honestly(host, entry, &answer);
	if (changes)
		changes(host, entry, &answer);
	if (entry->slot >= WIRE_SLOTS || answer.silent)
		return;
	reply = &host->wire->reply[entry->slot];
	reply->result = answer.result;
	reply->bytes = answer.bytes;
	memcpy(reply->word, answer.word, sizeof(answer.word));
	bell_ring(&reply->done, entry->sequence);
}

static bool client_has_left(const struct host *host, int milliseconds)
{
	struct pollfd socket = {.fd = host->socket, .events = POLLRDHUP};

	return poll(&socket, 1, milliseconds) > 0;
}

static void serve(struct host *host, twist *changes)
{
	struct ring *ring = &host->wire->ring;

	while (!client_has_left(host, 0)) {
		const uint8_t *at = host->wire->command + (size_t)(host->tail % RING_UNITS) * RING_UNIT;
		struct wire_entry entry;

		if (BELL_LOAD(&ring->head.value) == host->tail) {
			bell_sleep(&ring->head, host->tail, &(const struct timespec){.tv_nsec = 20000000});
			continue;
		}
		memcpy(&entry, at, sizeof(entry));
		host->tail += (uint32_t)wire_units(entry.bytes);
		if (entry.op != WIRE_FILLER)
			answer_entry(host, &entry, changes);
		bell_ring(&ring->tail, host->tail);
	}
}

/* ---- greetings ---- */

static void host_says_nothing(struct host *host)
{
	(void)client_has_left(host, LATE * 1000);
}

static void host_closes(struct host *host)
{
	(void)close(host->socket);
}

static void host_greets_short(struct host *host)
{
	send_with(host->socket, "x", 1, NULL, 0);
	(void)client_has_left(host, SOON * 1000);
}

static void host_greets_with_another_magic(struct host *host)
{
	const struct wire_greeting greeting = {.magic = 1};
	const int none = make_memory(4096, 0);

	send_with(host->socket, &greeting, sizeof(greeting), &none, 1);
	(void)client_has_left(host, SOON * 1000);
}

static void host_greets_with(struct host *host, int32_t result, size_t count)
{
	const struct wire_greeting greeting = {.magic = WIRE_MAGIC, .result = result};
	int fds[64];

	for (size_t i = 0; i < count; i++)
		fds[i] = make_memory(4096, SEALS);
	send_with(host->socket, &greeting, sizeof(greeting), fds, count);
	(void)client_has_left(host, SOON * 1000);
}

static void host_fails_with_a_number_of_its_own(struct host *host)
{
	host_greets_with(host, -5, 0);
}

static void host_sends_no_descriptor(struct host *host)
{
	host_greets_with(host, 0, 0);
}

static void host_sends_two_descriptors(struct host *host)
{
	host_greets_with(host, 0, 2);
}

static void host_sends_many_descriptors(struct host *host)
{
	host_greets_with(host, 0, 40);
}

static void host_sends_failure_and_descriptors(struct host *host)
{
	host_greets_with(host, 2, 3);
}

static void host_shares_small_ring(struct host *host)
{
	greet(host, 4096, SEALS);
	(void)client_has_left(host, SOON * 1000);
}

static void host_shares_small_staging(struct host *host)
{
	greet(host, WIRE_STAGING_OFFSET + 4096, SEALS);
	(void)client_has_left(host, SOON * 1000);
}

/* It could be cut off at any moment, which would be a signal for the client. */
static void host_shares_unsealed(struct host *host)
{
	greet(host, WIRE_SHARED_BYTES, 0);
	(void)client_has_left(host, SOON * 1000);
}

static void host_shares(struct host *host, int fd)
{
	const struct wire_greeting greeting = {.magic = WIRE_MAGIC};

	send_with(host->socket, &greeting, sizeof(greeting), &fd, 1);
	(void)client_has_left(host, SOON * 1000);
}

static void host_shares_pipe(struct host *host)
{
	int fds[2];

	if (pipe(fds) < 0)
		abort();
	host_shares(host, fds[0]);
}

static void host_shares_device(struct host *host)
{
	host_shares(host, open("/dev/zero", O_RDWR | O_CLOEXEC));
}

/* ---- servers that greet well ---- */

#define TWIST(name)                                                              \
	static void name(struct host *host __attribute__((unused)),              \
			 const struct wire_entry *entry __attribute__((unused)), \
			 struct answer *a __attribute__((unused)))
/* A server whose answers to @of, or to EVERY call, are as the body behind it makes them. */
#define HOST(name, twists, of)                           \
	TWIST(twists##_answer);                          \
	TWIST(twists)                                    \
	{                                                \
		if ((of) == EVERY || entry->op == (of))  \
			twists##_answer(host, entry, a); \
	}                                                \
	static void name(struct host *host)              \
	{                                                \
		greet(host, WIRE_SHARED_BYTES, SEALS);   \
		serve(host, twists);                     \
	}                                                \
	TWIST(twists##_answer)

HOST(host_is_silent_to_hello, twist_hello_silent, EVERY)
{
	a->silent = entry->op == WIRE_HELLO;
}

HOST(host_rings_for_ever, twist_rings, EVERY)
{
	a->silent = entry->op == WIRE_HELLO;
	/* Values that are none of the client's, one after the other. */
	while (a->silent && !client_has_left(host, 0))
		for (int i = 0; i < 100; i++)
			bell_ring(&host->wire->reply[entry->slot].done, 0x80000000U + (uint32_t)i);
}

HOST(host_has_minus_one_device, twist_minus_one, WIRE_HELLO)
{
	struct wire_host *hello = (struct wire_host *)a->word;

	hello->device_count = -1;
}

HOST(host_has_no_device, twist_no_device, WIRE_HELLO)
{
	struct wire_host *hello = (struct wire_host *)a->word;

	hello->device_count = 0;
}

HOST(host_has_many_devices, twist_many, WIRE_HELLO)
{
	struct wire_host *hello = (struct wire_host *)a->word;

	hello->device_count = 0x7fffffff;
}

HOST(host_answers_hello_short, twist_hello_short, WIRE_HELLO)
{
	a->bytes = 3;
}

HOST(host_has_a_name_without_end, twist_name, WIRE_DEVICE)
{
	struct wire_device *device = (struct wire_device *)a->word;

	memset(device->name, 'x', sizeof(device->name));
	memset(device->bus, 'x', sizeof(device->bus));
}

HOST(host_offers_any_address, twist_nothing, EVERY)
{
}

static void host_has_addresses_of_others(struct host *host)
{
	greet(host, WIRE_SHARED_BYTES, SEALS);
	host->wire->arena[0] = 0x1000;
	host->wire->arena[1] = UINT64_MAX - 4095;
	host->wire->arena[2] = 0xffff800000000000;
	host->wire->arena[3] = (uint64_t)(uintptr_t)environ | 1;
	serve(host, twist_nothing);
}

HOST(host_results_are_negative, twist_negative, OP_cuMemAlloc_v2)
{
	a->result = -7;
}

HOST(host_results_are_no_numbers, twist_large, OP_cuMemAlloc_v2)
{
	a->result = 0x7fffffff;
}

HOST(host_is_sticky_with_nonsense, twist_sticky, EVERY)
{
	for (int i = 0; i < WIRE_FAILED; i++) {
		host->wire->failed[i].result = -9;
		host->wire->failed[i].context = wire_handle(WIRE_CONTEXT, 1, CONTEXT, 0);
	}
}

HOST(host_defers_nonsense, twist_deferred, OP_cuCtxSynchronize)
{
	for (int i = 0; i < WIRE_SLOTS; i++)
		host->wire->reply[i].deferred = 123456;
}

HOST(host_answers_short, twist_short, OP_cuMemGetInfo_v2)
{
	a->bytes = 8;
}

HOST(host_dies_while_it_is_waited_for, twist_dies, OP_cuCtxSynchronize)
{
	_exit(0);
}

HOST(host_dies_amid_a_copy, twist_dies_in_copy, WIRE_STAGE_WAIT)
{
	_exit(0);
}

HOST(host_dies_before_launches, twist_dies_at_function, OP_cuLaunchKernel)
{
	_exit(0);
}

HOST(host_tells_a_long_text, twist_text, OP_cuFuncGetName)
{
	a->bytes = 0xffffffff;
}

HOST(host_has_too_many_parameters, twist_parameters, WIRE_FUNCTION)
{
	struct wire_function *function = (struct wire_function *)a->word;

	function->parameters = 0x10000000;
}

HOST(host_has_parameters_beyond, twist_beyond, WIRE_FUNCTION)
{
	struct wire_function *function = (struct wire_function *)a->word;

	function->bytes = 8;
	function->parameter[0].offset = 60000;
}

HOST(host_has_large_parameters, twist_larger, WIRE_FUNCTION)
{
	struct wire_function *function = (struct wire_function *)a->word;

	function->bytes = 0xfffffff0;
	function->parameter[0].offset = 0;
}

HOST(host_has_blocks_without_end, twist_attributes, WIRE_FUNCTION)
{
	enum { MOST_THREADS = 0 };
	struct wire_function *function = (struct wire_function *)a->word;

	function->attribute[MOST_THREADS] = INT32_MAX;
}

HOST(host_logs_too_much, twist_logs, OP_cuModuleLoadDataEx)
{
	struct logs *logs = (struct logs *)a->word;

	logs->error_bytes = 0xfffffff0;
}

HOST(host_logs_more_than_asked, twist_logs_more, OP_cuModuleLoadDataEx)
{
	struct logs *logs = (struct logs *)a->word;

	logs->error_bytes = LOG;
	memset(logs->error, 'x', LOG);
}

HOST(host_links_too_much, twist_links, OP_cuLinkComplete)
{
	struct logs *logs = (struct logs *)a->word;

	logs->handle = (uint64_t)1 << 60;
}

/* And what was linked is not to be had. */
HOST(host_links_and_keeps, twist_keeps, EVERY)
{
	struct logs *logs = (struct logs *)a->word;

	if (entry->op == OP_cuLinkComplete)
		logs->handle = 1 << 20;
	if (entry->op == WIRE_DOWNLOAD)
		a->bytes = 0;
}

HOST(host_has_many_nodes, twist_nodes, EVERY)
{
	if (entry->op == OP_cuGraphGetNodes || entry->op == OP_cuGraphGetEdges)
		a->word[0] = 0x1fffffffffffffff;
	/* Those that do not fit into the answer are not to be had. */
	if (entry->op == WIRE_DOWNLOAD)
		a->bytes = 0;
}

/* Everything but how many devices there are. */
static void twist_bytes(const struct wire_entry *entry, struct answer *a, unsigned *seed)
{
	struct wire_host *hello = (struct wire_host *)a->word;
	const bool begins = entry->op == WIRE_HELLO || entry->op == WIRE_DEVICE;

	for (size_t i = 0; i < sizeof(a->word); i++)
		((uint8_t *)a->word)[i] = seed ? (uint8_t)rand_r(seed) : 0xff;
	if (entry->op == WIRE_HELLO)
		hello->device_count = START_GPUS;
	if (!begins && seed && rand_r(seed) % 4 == 0)
		a->result = rand_r(seed) - RAND_MAX / 2;
	if (!begins && seed && rand_r(seed) % 4 == 0)
		a->bytes = (uint32_t)rand_r(seed) * 2;
	/* A count that is believed now and then. */
	if (entry->op == WIRE_USAGE && (!seed || rand_r(seed) % 2))
		((struct wire_usage *)a->word)->count = seed ? (uint32_t)rand_r(seed) % (WIRE_PROCESSES + 10) : 1;
}

HOST(host_answers_by_chance, twist_by_chance, EVERY)
{
	static unsigned seed = 20;

	twist_bytes(entry, a, &seed);
}

HOST(host_answers_ones, twist_ones, EVERY)
{
	twist_bytes(entry, a, NULL);
}

HOST(host_has_an_odd_edge, twist_edges, OP_cuGraphGetEdges)
{
	a->word[0] = 5;
}

HOST(host_captures_much, twist_captures, OP_cuStreamGetCaptureInfo_v2)
{
	a->word[0] = 1;
	a->word[3] = 0x10000000;
}

/* An arena of the case's own: @bytes, @seals, and how many descriptors. */
static void serve_arena(struct host *host, uint64_t bytes, int seals, size_t count)
{
	struct ring *ring;

	greet(host, WIRE_SHARED_BYTES, SEALS);
	ring = &host->wire->ring;
	while (!client_has_left(host, 0)) {
		const uint8_t *at = host->wire->command + (size_t)(host->tail % RING_UNITS) * RING_UNIT;
		struct wire_entry entry;
		int fds[64];

		if (BELL_LOAD(&ring->head.value) == host->tail) {
			bell_sleep(&ring->head, host->tail, &(const struct timespec){.tv_nsec = 20000000});
			continue;
		}
		memcpy(&entry, at, sizeof(entry));
		host->tail += (uint32_t)wire_units(entry.bytes);
		if (entry.op == WIRE_ARENA_ADD) {
			for (size_t i = 0; i < count; i++)
				fds[i] = make_memory(bytes, seals);
			if (count)
				send_with(host->socket, "", 1, fds, count);
			entry.op = OP_cuCtxSynchronize;
		}
		answer_entry(host, &entry, twist_nothing);
		bell_ring(&ring->tail, host->tail);
	}
}

/* Every other time. */
HOST(host_keeps_memory, twist_keeps_memory, WIRE_ARENA_DROP)
{
	static int count;

	a->result = count++ % 2 == 0 ? CUDA_ERROR_UNKNOWN : 0;
}

static void host_sends_no_arena(struct host *host)
{
	serve_arena(host, 0, 0, 0);
}

static void host_sends_small_arena(struct host *host)
{
	serve_arena(host, WIRE_ARENA_OFFSET + 4096, SEALS, 1);
}

static void host_sends_unsealed_arena(struct host *host)
{
	serve_arena(host, WIRE_SHARED_BYTES, 0, 1);
}

static void host_sends_many_arenas(struct host *host)
{
	serve_arena(host, WIRE_SHARED_BYTES, SEALS, 7);
}

HOST(host_calls_back_for_ever, twist_calls, OP_cuLaunchHostFunc)
{
	for (int i = 0; i < WIRE_CALLBACKS; i++)
		host->wire->callback[i].cookie = (uint64_t)i * 0x100000001;
	bell_ring(&host->wire->calls, 0xfffffff0);
}

static uint64_t entry_argument(const struct host *host, const struct wire_entry *entry, unsigned number)
{
	const uint32_t from = host->tail - (uint32_t)wire_units(entry->bytes);

	return wire_arguments(
		(struct wire_entry *)&host->wire->command[(size_t)(from % RING_UNITS) * RING_UNIT])[number];
}

/* Until it has run. */
static void call_back(struct host *host, uint32_t number, uint64_t cookie)
{
	struct wire_callback *call = &host->wire->callback[number];

	call->cookie = cookie;
	bell_ring(&host->wire->calls, number + 1);
	while (BELL_LOAD(&call->done.value) != number + 1 && !client_has_left(host, 0))
		bell_sleep(&call->done, BELL_LOAD(&call->done.value), &(const struct timespec){.tv_nsec = 20000000});
}

/* The first has failed, and is called once the second has its place. */
HOST(host_calls_back_what_failed, twist_late_call, EVERY)
{
	static uint64_t cookie[2];
	static unsigned count;

	if (entry->op == OP_cuStreamAddCallback) {
		a->result = count == 0 ? CUDA_ERROR_UNKNOWN : 0;
		cookie[count++ % 2] = entry_argument(host, entry, 1);
		if (count == 2)
			call_back(host, 0, cookie[0]);
	}
	if (entry->op == OP_cuCtxSynchronize)
		call_back(host, 1, cookie[1]);
}

TWIST(twist_spins)
{
	if (entry->op == OP_cuCtxSynchronize)
		(void)usleep(1500000);
}

static void host_wants_spinning(struct host *host)
{
	greet(host, WIRE_SHARED_BYTES, SEALS);
	/* Read after the greeting at the earliest. */
	host->wire->spin = host->wire->wait_spin = host->wire->copy_threads = UINT32_MAX;
	serve(host, twist_spins);
}

/* Whether the client is where it says, which may run on one processor alone. */
HOST(host_asks_where, twist_where, OP_cuCtxSynchronize)
{
	struct ucred client = {0};
	socklen_t size = sizeof(client);
	cpu_set_t allowed;

	CPU_ZERO(&allowed);
	(void)getsockopt(host->socket, SOL_SOCKET, SO_PEERCRED, &client, &size);
	(void)sched_getaffinity(client.pid, sizeof(allowed), &allowed);
	if (CPU_COUNT(&allowed) != 1 || !CPU_ISSET(host->wire->caller.processor, &allowed))
		a->result = CUDA_ERROR_UNKNOWN;
}

HOST(host_has_done_too_much, twist_tail, OP_cuLaunchKernel)
{
	bell_ring(&host->wire->ring.tail, host->tail + 0x40000000);
	(void)client_has_left(host, SOON * 1000);
}

HOST(host_has_many_processes, twist_processes, WIRE_USAGE)
{
	((struct wire_usage *)a->word)->count = WIRE_PROCESSES + 1;
}

HOST(host_uses_more_than_there_is, twist_usage, WIRE_USAGE)
{
	struct wire_usage *usage = (struct wire_usage *)a->word;

	*usage = (struct wire_usage){.total = 1 << 20, .used = UINT64_MAX};
	memset(usage->driver, '5', sizeof(usage->driver));
}

/* ---- cases ---- */

static const struct {
	const char *title;
	void (*host)(struct host *host);
	void (*client)(void);
	int seconds;
} cases[] = {
	{"no greeting, for ever", host_says_nothing, client_inits, LATE},
	{"no answer to hello, for ever", host_is_silent_to_hello, client_inits, LATE},
	{"answers to hello that are none, for ever", host_rings_for_ever, client_inits, LATE},
	{"closed at once", host_closes, client_inits, SOON},
	{"a greeting too short", host_greets_short, client_inits, SOON},
	{"a greeting of another protocol", host_greets_with_another_magic, client_inits_and_keeps_no_descriptor, SOON},
	{"a failure that is no number of the driver's", host_fails_with_a_number_of_its_own, client_inits, SOON},
	{"no descriptor", host_sends_no_descriptor, client_inits, SOON},
	{"two descriptors", host_sends_two_descriptors, client_inits_and_keeps_no_descriptor, SOON},
	{"forty descriptors", host_sends_many_descriptors, client_inits_and_keeps_no_descriptor, SOON},
	{"a failure with descriptors", host_sends_failure_and_descriptors, client_inits_and_keeps_no_descriptor, SOON},
	{"a ring of one page", host_shares_small_ring, client_inits, SOON},
	{"staging memory of one page", host_shares_small_staging, client_inits, SOON},
	{"memory that can be cut off", host_shares_unsealed, client_inits, SOON},
	{"a pipe as memory", host_shares_pipe, client_inits_and_keeps_no_descriptor, SOON},
	{"a device as memory", host_shares_device, client_inits_and_keeps_no_descriptor, SOON},
	{"fewer devices than none", host_has_minus_one_device, client_inits, SOON},
	{"no device, asked for twice", host_has_no_device, client_inits_twice, SOON},
	{"more devices than there can be", host_has_many_devices, client_inits, SOON},
	{"an answer to hello that is too short", host_answers_hello_short, client_inits, SOON},
	{"a name without end", host_has_a_name_without_end, client_asks_name, SOON},
	{"addresses that are in use, or none", host_has_addresses_of_others, client_begins, SOON},
	{"an honest server", host_offers_any_address, client_begins, SOON},
	{"a negative result", host_results_are_negative, client_allocates, SOON},
	{"a result that is no number of the driver's", host_results_are_no_numbers, client_allocates, SOON},
	{"a lasting failure that is none", host_is_sticky_with_nonsense, client_synchronizes, SOON},
	{"an earlier failure that is none", host_defers_nonsense, client_synchronizes, SOON},
	{"an answer that is too short", host_answers_short, client_asks_memory, SOON},
	{"dead while a call waits", host_dies_while_it_is_waited_for, client_synchronizes, SOON},
	{"dead amid a copy", host_dies_amid_a_copy, client_copies, SOON},
	{"dead before launches", host_dies_before_launches, client_launches_for_ever, SOON},
	{"more done than was asked for", host_has_done_too_much, client_launches_for_ever, SOON},
	{"a text of 4 GiB", host_tells_a_long_text, client_asks_text, SOON},
	{"a function of too many parameters", host_has_too_many_parameters, client_asks_function, SOON},
	{"a parameter beyond all", host_has_parameters_beyond, client_asks_function, SOON},
	{"parameters of 4 GiB", host_has_large_parameters, client_asks_function, SOON},
	{"blocks of 2,147,483,647 threads", host_has_blocks_without_end, client_asks_for_block, SOON},
	{"a log of 4 GiB", host_logs_too_much, client_loads, SOON},
	{"a log larger than asked for", host_logs_more_than_asked, client_loads_with_small_log, SOON},
	{"a linked image of an exbibyte", host_links_too_much, client_links, SOON},
	{"a linked image that is not to be had", host_links_and_keeps, client_links, SOON},
	{"more nodes than there can be", host_has_many_nodes, client_lists, SOON},
	{"more edges than there can be", host_has_many_nodes, client_lists_edges, SOON},
	{"a number of edges that were not asked for", host_has_many_nodes, client_counts_edges, SOON},
	{"nobody there", host_closes, client_has_no_server, SOON},
	{"more processes than there can be", host_has_many_processes, client_lists_processes, SOON},
	{"more used than there is, by a driver without end", host_uses_more_than_there_is, client_asks_usage, SOON},
	{"NVML's answers by chance", host_answers_by_chance, client_asks_all_of_nvml, SOON},
	{"NVML's answers of ones", host_answers_ones, client_asks_all_of_nvml, SOON},
	{"half an edge", host_has_an_odd_edge, client_lists_edges, SOON},
	{"more that is captured than there can be", host_captures_much, client_asks_capture, SOON},
	{"no page-locked memory", host_sends_no_arena, client_gets_host_memory, SOON},
	{"page-locked memory that is too small", host_sends_small_arena, client_gets_host_memory, SOON},
	{"page-locked memory that can be cut off", host_sends_unsealed_arena, client_gets_host_memory, SOON},
	{"page-locked memory sevenfold", host_sends_many_arenas, client_gets_host_memory, SOON},
	{"page-locked memory, six terabytes one after the other", host_offers_any_address,
	 client_takes_host_memory_and_gives_it_back, SOON},
	{"managed memory that stays when its context ends", host_keeps_memory, client_frees_what_a_context_had, SOON},
	{"host functions without number", host_calls_back_for_ever, client_is_called_back, SOON},
	{"a host function that it said has failed", host_calls_back_what_failed, client_is_called_for_what_failed,
	 SOON},
	{"an honest server that asks where its client is", host_asks_where, client_goes_from_one_to_another, SOON},
	{"a wish that one spins for seconds", host_wants_spinning, client_waits_without_work, SOON},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static _Noreturn void run_client(size_t index, const char *path)
{
	void *handle;

	(void)setenv(START_SOCKET_VARIABLE, path, 1);
	(void)alarm((unsigned)cases[index].seconds);
	handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
#define X(name, arguments)                                        \
	if (!handle || !(*(void **)&name = dlsym(handle, #name))) \
		fail(#name, 0);
	FUNCTIONS(X)
#undef X
	cases[index].client();
	_exit(0);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	(void)unlink(path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 4) < 0)
		abort();
	return fd;
}

/* The server is a process, too, so that it can die. */
static int run_case(size_t index)
{
	char path[64];
	struct host host = {0};
	int listener, ended = 0;
	pid_t client, server;

	(void)snprintf(path, sizeof(path), "/tmp/vcuda-hostile-%d-%zu", (int)getpid(), index);
	listener = listen_at(path);
	server = fork();
	if (server == 0) {
		host.socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		(void)close(listener);
		cases[index].host(&host);
		_exit(0);
	}
	(void)close(listener);
	client = fork();
	if (client == 0)
		run_client(index, path);
	(void)waitpid(client, &ended, 0);
	(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
	(void)unlink(path);
	if (ended)
		printf("# ended with %#x\n", (unsigned)ended);
	return ended != 0;
}

static int tell(size_t index, bool failed)
{
	printf("%s %zu - hostile server: %s\n", failed ? "not ok" : "ok", index + 1, cases[index].title);
	(void)fflush(stdout);
	return failed;
}

int main(int argc, char **argv)
{
	pid_t late[CASES] = {0};
	int failures = 0, ended = 0;

	if (argc < 2)
		return 2;
	library = argv[1];
	(void)signal(SIGPIPE, SIG_IGN);
	/* Those in which somebody has to lose patience wait beside the others. */
	for (size_t i = 0; i < CASES; i++)
		if (cases[i].seconds == LATE && (argc < 3 || strstr(cases[i].title, argv[2])) &&
		    (late[i] = fork()) == 0)
			_exit(run_case(i));
	for (size_t i = 0; i < CASES; i++)
		if (cases[i].seconds != LATE && (argc < 3 || strstr(cases[i].title, argv[2])))
			failures += tell(i, run_case(i));
	for (size_t i = 0; i < CASES; i++)
		if (late[i] && waitpid(late[i], &ended, 0) == late[i])
			failures += tell(i, ended != 0);
	printf("1..%d\n", CASES);
	return failures > 0;
}
