/* SPDX-License-Identifier: Apache-2.0 */

/*
 * turns CLOCKS HOW BEGIN SECONDS: a program that has kernels of so many clocks run, one behind the other, from now on, and says how
 * many were done in the SECONDS behind BEGIN, which is a time of CLOCK_REALTIME in seconds. HOW is "wait" (for each one), "queue"
 * (32 of them before it waits), "streams" (the same in eight), "rest" (a millisecond of the processor's work behind each), "capture"
 * (a graph of four), "ahead" (16 in one of two streams while the other's are under way) or "endless" (one that does not end, and then as
 * "wait" in another stream).
 */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint64_t handle;

#define FUNCTIONS(X)                                                           \
	X(cuInit, (unsigned))                                                  \
	X(cuDevicePrimaryCtxRetain, (handle *, int))                           \
	X(cuCtxSetCurrent, (handle))                                           \
	X(cuCtxSynchronize, (void))                                            \
	X(cuStreamCreate, (handle *, unsigned))                                \
	X(cuStreamSynchronize, (handle))                                       \
	X(cuStreamBeginCapture_v2, (handle, int))                              \
	X(cuStreamEndCapture, (handle, handle *))                              \
	X(cuGraphInstantiateWithFlags, (handle *, handle, unsigned long long)) \
	X(cuGraphLaunch, (handle, handle))                                     \
	X(cuModuleLoadData, (handle *, const void *))                          \
	X(cuModuleGetFunction, (handle *, handle, const char *))               \
	X(cuLaunchKernel,                                                      \
	  (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **))

#define X(name, arguments) static int(*name) arguments;
FUNCTIONS(X)
#undef X

enum { STREAMS = 8, QUEUE = 32, GRAPH = 4, NON_BLOCKING = 1 };

#define ENDLESS_CLOCKS 400000000000

/* With the name of one that the simulated driver has. */
static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .entry spin(.param .u64 clocks)\n{\n"
	".reg .u64 %b, %e, %n;\n.reg .pred %p;\n"
	"ld.param.u64 %n, [clocks];\nmov.u64 %b, %clock64;\n"
	"AGAIN:\nmov.u64 %e, %clock64;\nsub.u64 %e, %e, %b;\nsetp.lt.u64 %p, %e, %n;\n@%p bra AGAIN;\nret;\n}\n";

static void check(int result, const char *what)
{
	if (result == 0)
		return;
	printf("%s: error %d\n", what, result);
	exit(1);
}
#define CHECK(name, ...) check(name(__VA_ARGS__), #name)

static handle spinner, streams[STREAMS], graph;

static void load(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	if (!driver) {
		puts(dlerror());
		exit(1);
	}
#define X(name, arguments)                         \
	*(void **)&name = dlsym(driver, #name);    \
	if (!name) {                               \
		printf("there is no %s\n", #name); \
		exit(1);                           \
	}
	FUNCTIONS(X)
#undef X
}

static double now(clockid_t clock)
{
	struct timespec time;

	(void)clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void spin(uint64_t clocks, handle stream)
{
	void *parameters[] = {&clocks};

	CHECK(cuLaunchKernel, spinner, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static void make_graph(uint64_t clocks)
{
	handle made;

	CHECK(cuStreamBeginCapture_v2, streams[0], 0);
	for (int i = 0; i < GRAPH; i++)
		spin(clocks, streams[0]);
	CHECK(cuStreamEndCapture, streams[0], &made);
	CHECK(cuGraphInstantiateWithFlags, &graph, made, 0);
}

static int queue(uint64_t clocks, int count)
{
	for (int i = 0; i < QUEUE; i++)
		spin(clocks, count ? streams[i % count] : 0);
	CHECK(cuCtxSynchronize);
	return QUEUE;
}

/* Something is under way all the time. */
static int queue_ahead(uint64_t clocks)
{
	static unsigned round;
	const handle stream = streams[round++ % 2];

	for (int i = 0; i < QUEUE / 2; i++)
		spin(clocks, stream);
	CHECK(cuStreamSynchronize, streams[round % 2]);
	return QUEUE / 2;
}

/* Return: how many kernels. */
static int work(const char *how, uint64_t clocks)
{
	double until;

	if (strcmp(how, "queue") == 0)
		return queue(clocks, 0);
	if (strcmp(how, "streams") == 0)
		return queue(clocks, STREAMS);
	if (strcmp(how, "ahead") == 0)
		return queue_ahead(clocks);
	if (strcmp(how, "capture") == 0) {
		CHECK(cuGraphLaunch, graph, streams[0]);
		CHECK(cuStreamSynchronize, streams[0]);
		return GRAPH;
	}
	spin(clocks, streams[0]);
	CHECK(cuStreamSynchronize, streams[0]);
	until = now(CLOCK_MONOTONIC) + 1e-3;
	while (strcmp(how, "rest") == 0 && now(CLOCK_MONOTONIC) < until)
		;
	return 1;
}

int main(int argc, char **argv)
{
	const uint64_t clocks = argc > 4 ? strtoull(argv[1], NULL, 0) : 0;
	const double begin = argc > 4 ? atof(argv[3]) : 0, end = argc > 4 ? begin + atof(argv[4]) : 0;
	handle context, module;
	long count = 0;
	double time;

	if (argc < 5)
		return 2;
	load();
	CHECK(cuInit, 0);
	CHECK(cuDevicePrimaryCtxRetain, &context, 0);
	CHECK(cuCtxSetCurrent, context);
	CHECK(cuModuleLoadData, &module, ptx);
	CHECK(cuModuleGetFunction, &spinner, module, "spin");
	for (int i = 0; i < STREAMS; i++)
		CHECK(cuStreamCreate, &streams[i], NON_BLOCKING);
	if (strcmp(argv[2], "capture") == 0)
		make_graph(clocks);
	if (strcmp(argv[2], "endless") == 0)
		spin(ENDLESS_CLOCKS, streams[1]);
	while ((time = now(CLOCK_REALTIME)) < end) {
		const int done = work(argv[2], clocks);

		count += time >= begin ? done : 0;
	}
	printf("%ld kernels\n", count);
	(void)fflush(stdout);
	_Exit(0);
}
