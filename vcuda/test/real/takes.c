/* SPDX-License-Identifier: Apache-2.0 */

/*
 * takes: what the driver takes of a GPU besides what it is asked for, on the driver that the loader finds: for contexts, for
 * arrays of modules and libraries, for local memory of kernels, for limits. After each step a line: MiB that NVML says this
 * process has, MiB that are free by cuMemGetInfo(), MiB that were to be expected of the step (-: not known), and microseconds
 * that NVML took to answer. takes eager: the same with CUDA_MODULE_DATA_LOADING=EAGER.
 */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t handle;

#define FUNCTIONS(X)                                                                                       \
	X(cuInit, (unsigned))                                                                              \
	X(cuDeviceGetAttribute, (int *, int, int))                                                         \
	X(cuDeviceGetPCIBusId, (char *, int, int))                                                         \
	X(cuDevicePrimaryCtxRetain, (handle *, int))                                                       \
	X(cuDevicePrimaryCtxRelease_v2, (int))                                                             \
	X(cuCtxCreate_v2, (handle *, unsigned, int))                                                       \
	X(cuCtxDestroy_v2, (handle))                                                                       \
	X(cuCtxSetCurrent, (handle))                                                                       \
	X(cuCtxSynchronize, (void))                                                                        \
	X(cuCtxGetLimit, (size_t *, int))                                                                  \
	X(cuCtxSetLimit, (int, size_t))                                                                    \
	X(cuMemGetInfo_v2, (size_t *, size_t *))                                                           \
	X(cuMemAlloc_v2, (handle *, size_t))                                                               \
	X(cuMemFree_v2, (handle))                                                                          \
	X(cuModuleLoadData, (handle *, const void *))                                                      \
	X(cuModuleUnload, (handle))                                                                        \
	X(cuModuleGetFunction, (handle *, handle, const char *))                                           \
	X(cuLibraryLoadData, (handle *, const void *, void *, void *, unsigned, void *, void *, unsigned)) \
	X(cuLibraryUnload, (handle))                                                                       \
	X(cuLibraryGetModule, (handle *, handle))                                                          \
	X(cuLibraryGetKernel, (handle *, handle, const char *))                                            \
	X(cuFuncGetAttribute, (int *, int, handle))                                                        \
	X(cuKernelGetFunction, (handle *, handle))                                                         \
	X(cuStreamCreate, (handle *, unsigned))                                                            \
	X(cuStreamDestroy_v2, (handle))                                                                    \
	X(cuGraphCreate, (handle *, unsigned))                                                             \
	X(cuGraphAddKernelNode_v2, (handle *, handle, const handle *, size_t, const void *))               \
	X(cuGraphInstantiateWithFlags, (handle *, handle, unsigned long long))                             \
	X(cuGraphUpload, (handle, handle))                                                                 \
	X(cuGraphLaunch, (handle, handle))                                                                 \
	X(cuGraphExecDestroy, (handle))                                                                    \
	X(cuLaunchKernel,                                                                                  \
	  (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **))

#define X(name, arguments) static int(*name) arguments;
FUNCTIONS(X)
#undef X

static void check(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "takes: %s: %d\n", what, result);
	exit(2);
}
#define CHECK(call) check(call, #call)

/* As nvml.h has it for version 3 of the question. */
struct process {
	unsigned pid;
	unsigned long long used;
	unsigned instances[2];
};
static int (*nvml_processes)(void *, unsigned *, struct process *);
static void *gpu;

static long now_us(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000L + time.tv_nsec / 1000;
}

static void begin_nvml(void)
{
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*init)(void) = NULL, (*find)(const char *, void **) = NULL;
	const long began = now_us();
	char bus[32] = "", space[64] = "";

	(void)!readlink("/proc/self/ns/pid", space, sizeof(space) - 1);
	CHECK(cuDeviceGetPCIBusId(bus, sizeof(bus), 0));
	if (nvml) {
		*(void **)&init = dlsym(nvml, "nvmlInit_v2");
		*(void **)&find = dlsym(nvml, "nvmlDeviceGetHandleByPciBusId_v2");
		*(void **)&nvml_processes = dlsym(nvml, "nvmlDeviceGetComputeRunningProcesses_v3");
	}
	if (!nvml || !init || !find || init() || find(bus, &gpu))
		nvml_processes = NULL;
	printf("# pid %d in %s, GPU %s, NVML %s, ready in %ld us\n", (int)getpid(), space, bus,
	       nvml_processes ? "answers" : "does not answer", now_us() - began);
}

/* Return: bytes; -1: it does not say. */
static double own_bytes(long *ret_us)
{
	static struct process list[1024];
	unsigned count = 1024;
	const long began = now_us();
	int r = nvml_processes ? nvml_processes(gpu, &count, list) : -1;

	*ret_us = now_us() - began;
	for (unsigned i = 0; r == 0 && i < count; i++)
		if (list[i].pid == (unsigned)getpid() && list[i].used != UINT64_MAX)
			return (double)list[i].used;
	return -1;
}

static void say(const char *step, double expected)
{
	size_t free_now = 0, total = 0;
	const int known = cuMemGetInfo_v2(&free_now, &total) == 0;
	long us;
	const double own = own_bytes(&us), mib = 1 << 20;
	char words[3][32];

	(void)snprintf(words[0], sizeof(words[0]), own < 0 ? "-" : "%.2f", own / mib);
	(void)snprintf(words[1], sizeof(words[1]), known ? "%.2f" : "-", (double)free_now / mib);
	(void)snprintf(words[2], sizeof(words[2]), expected < 0 ? "-" : "%.2f", expected / mib);
	printf("%-58s own %10s free %10s expected %10s (%ld us)\n", step, words[0], words[1], words[2], us);
}

#define HEAD ".version 7.0\n.target sm_50\n.address_size 64\n"
#define ARRAY ".visible .global .align 4 .b8 array[268435456];\n"
#define LOCAL 16384
#define TEXT(number) #number
#define NUMBER(number) TEXT(number)

static const char simple[] = HEAD ARRAY ".visible .entry simple() { ret; }\n";
static const char empty[] = HEAD ".visible .entry empty() { ret; }\n";
static const char local[] =
	HEAD ".visible .entry local(.param .u64 to, .param .u32 at)\n{\n"
	     ".reg .u64 %d<6>;\n.reg .u32 %r<6>;\n.local .align 4 .b8 room[" NUMBER(
		     LOCAL) "];\n"
			    "ld.param.u64 %d1, [to];\nld.param.u32 %r1, [at];\ncvta.to.global.u64 %d2, %d1;\n"
			    "mov.u64 %d3, room;\ncvt.u64.u32 %d4, %r1;\nadd.u64 %d5, %d3, %d4;\n"
			    "st.local.u32 [%d5], %r1;\nxor.b32 %r2, %r1, 64;\ncvt.u64.u32 %d4, %r2;\n"
			    "add.u64 %d5, %d3, %d4;\nld.local.u32 %r3, [%d5];\nst.global.u32 [%d2], %r3;\nret;\n}\n";

static double threads(void)
{
	int processors, each;

	CHECK(cuDeviceGetAttribute(&processors, 16, 0));
	CHECK(cuDeviceGetAttribute(&each, 39, 0));
	return (double)processors * each;
}

static void try_contexts(void)
{
	handle first, second;
	size_t stack = 0;

	CHECK(cuDevicePrimaryCtxRetain(&first, 0));
	CHECK(cuCtxSetCurrent(first));
	CHECK(cuCtxGetLimit(&stack, 0));
	say("primary context (expected: its stacks alone)", (double)stack * threads());
	CHECK(cuCtxCreate_v2(&second, 0, 0));
	say("a second context", -1);
	CHECK(cuCtxDestroy_v2(second));
	CHECK(cuCtxSetCurrent(first));
	say("it is destroyed", -1);
}

static void try_memory(void)
{
	handle small[3], large;

	CHECK(cuMemAlloc_v2(&large, 64 << 20));
	say("cuMemAlloc of 64 MiB", 64 << 20);
	for (int i = 0; i < 3; i++)
		CHECK(cuMemAlloc_v2(&small[i], 4096));
	say("3 of 4 KiB", 3 * 4096);
	for (int i = 0; i < 3; i++)
		CHECK(cuMemFree_v2(small[i]));
	CHECK(cuMemFree_v2(large));
	say("freed", 0);
}

static void try_arrays(void)
{
	handle module, function, library, kernel;

	CHECK(cuModuleLoadData(&module, simple));
	say("module with an array of 256 MiB", 256 << 20);
	CHECK(cuModuleGetFunction(&function, module, "simple"));
	CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, NULL, NULL));
	CHECK(cuCtxSynchronize());
	say("its kernel has run", 0);
	CHECK(cuModuleUnload(module));
	say("unloaded", 0);
	CHECK(cuLibraryLoadData(&library, simple, NULL, NULL, 0, NULL, NULL, 0));
	say("library with an array of 256 MiB", 256 << 20);
	CHECK(cuLibraryGetModule(&module, library));
	say("its module was asked for", 0);
	CHECK(cuLibraryUnload(library));
	CHECK(cuLibraryLoadData(&library, simple, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuLibraryGetKernel(&kernel, library, "simple"));
	CHECK(cuKernelGetFunction(&function, kernel));
	say("another, and a function of its kernel", 256 << 20);
	CHECK(cuLibraryUnload(library));
	CHECK(cuLibraryLoadData(&library, simple, NULL, NULL, 0, NULL, NULL, 0));
	say("a third", 256 << 20);
	CHECK(cuLibraryGetKernel(&kernel, library, "simple"));
	say("its kernel was asked for", 0);
	CHECK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, NULL, NULL));
	CHECK(cuCtxSynchronize());
	say("its kernel has run", 0);
	CHECK(cuLibraryUnload(library));
	say("unloaded", 0);
}

static void try_local(void)
{
	unsigned at = 128;
	handle module, function, to;
	void *arguments[] = {&to, &at};
	int bytes = 0;

	CHECK(cuMemAlloc_v2(&to, 4096));
	CHECK(cuModuleLoadData(&module, local));
	CHECK(cuModuleGetFunction(&function, module, "local"));
	CHECK(cuFuncGetAttribute(&bytes, 3, function));
	say("kernel with local memory is loaded", 0);
	printf("# it has %d bytes for each thread\n", bytes);
	CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, arguments, NULL));
	say("launched (expected: of all threads)", (double)bytes * threads());
	CHECK(cuCtxSynchronize());
	say("it has run", 0);
	CHECK(cuModuleUnload(module));
	CHECK(cuMemFree_v2(to));
	say("unloaded", 0);
}

static void try_streams(void)
{
	handle streams[100];

	for (int i = 0; i < 100; i++)
		CHECK(cuStreamCreate(&streams[i], 1));
	say("100 streams", -1);
	for (int i = 0; i < 100; i++)
		CHECK(cuStreamDestroy_v2(streams[i]));
	say("destroyed", 0);
}

/* As cuda.h has it. */
struct node {
	handle function;
	unsigned grid[3], block[3], shared;
	void **arguments, **extra;
	handle kernel, context;
};

static void try_graphs(void)
{
	handle module, graph, node, exec[2];
	struct node parameters = {.grid = {1, 1, 1}, .block = {1, 1, 1}};

	CHECK(cuModuleLoadData(&module, empty));
	CHECK(cuModuleGetFunction(&parameters.function, module, "empty"));
	CHECK(cuGraphCreate(&graph, 0));
	for (int i = 0; i < 1000; i++)
		CHECK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &parameters));
	say("graph of 1000 kernels", -1);
	for (int i = 0; i < 2; i++) {
		CHECK(cuGraphInstantiateWithFlags(&exec[i], graph, 0));
		say("instantiated", -1);
	}
	CHECK(cuGraphUpload(exec[0], 0));
	CHECK(cuCtxSynchronize());
	say("the first one is uploaded", -1);
	for (int i = 0; i < 2; i++) {
		CHECK(cuGraphLaunch(exec[i], 0));
		CHECK(cuCtxSynchronize());
		say("one has run", -1);
	}
	for (int i = 0; i < 2; i++)
		CHECK(cuGraphExecDestroy(exec[i]));
	say("both are destroyed", 0);
	CHECK(cuModuleUnload(module));
}

static void try_limits(void)
{
	CHECK(cuCtxSetLimit(0, 2 * LOCAL));
	say("limit of stacks, twice as much (expected: in all)", 2.0 * LOCAL * threads());
	CHECK(cuCtxSetLimit(0, 1024));
	say("limit of stacks, 1 KiB", 1024 * threads());
	CHECK(cuCtxSetLimit(2, 256 << 20));
	say("limit of the heap, 256 MiB", 256 << 20);
	CHECK(cuCtxSetLimit(1, 64 << 20));
	say("limit of the printf buffer, 64 MiB", 64 << 20);
}

int main(int argc, char **argv)
{
	void *driver;

	if (argc > 1 && strcmp(argv[1], "eager") == 0)
		(void)setenv("CUDA_MODULE_DATA_LOADING", "EAGER", 1);
	driver = dlopen("libcuda.so.1", RTLD_NOW);
#define X(name, arguments)                                        \
	if (!driver || !(*(void **)&name = dlsym(driver, #name))) \
		check(-1, #name);
	FUNCTIONS(X)
#undef X
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(cuInit(0));
	begin_nvml();
	say("initialized", -1);
	try_contexts();
	try_memory();
	try_arrays();
	try_streams();
	try_graphs();
	try_local();
	try_limits();
	CHECK(cuDevicePrimaryCtxRelease_v2(0));
	say("the context is gone", 0);
	return 0;
}
