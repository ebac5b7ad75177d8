/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program of the driver API alone, for measurements: `measure` loads libcuda.so.1 as the loader finds it, checks that a
 * kernel of PTX adds right, and prints a line "NAME VALUE UNIT" for each thing that it measures; `measure check` stops
 * before measuring, `measure launch` behind the launches. MEASURE_LIBRARY is another library than libcuda.so.1. Larger is better where the unit is GB/s or Gflop/s.
 */

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t handle;

#define FUNCTIONS(X)                                                    \
	X(cuInit, (unsigned))                                           \
	X(cuDeviceGet, (int *, int))                                    \
	X(cuDeviceGetName, (char *, int, int))                          \
	X(cuDevicePrimaryCtxRetain, (handle *, int))                    \
	X(cuCtxSetCurrent, (handle))                                    \
	X(cuCtxGetDevice, (int *))                                      \
	X(cuCtxSynchronize, (void))                                     \
	X(cuModuleLoadData, (handle *, const void *))                   \
	X(cuModuleGetFunction, (handle *, handle, const char *))        \
	X(cuMemAlloc_v2, (handle *, size_t))                            \
	X(cuMemFree_v2, (handle))                                       \
	X(cuMemHostAlloc, (void **, size_t, unsigned))                  \
	X(cuMemFreeHost, (void *))                                      \
	X(cuMemcpyHtoD_v2, (handle, const void *, size_t))              \
	X(cuMemcpyDtoH_v2, (void *, handle, size_t))                    \
	X(cuMemcpyHtoDAsync_v2, (handle, const void *, size_t, handle)) \
	X(cuMemcpyDtoHAsync_v2, (void *, handle, size_t, handle))       \
	X(cuMemsetD8Async, (handle, unsigned char, size_t, handle))     \
	X(cuStreamCreate, (handle *, unsigned))                         \
	X(cuStreamQuery, (handle))                                      \
	X(cuStreamGetFlags, (handle, unsigned *))                       \
	X(cuStreamSynchronize, (handle))                                \
	X(cuEventCreate, (handle *, unsigned))                          \
	X(cuEventRecord, (handle, handle))                              \
	X(cuEventSynchronize, (handle))                                 \
	X(cuEventElapsedTime, (float *, handle, handle))                \
	X(cuPointerGetAttribute, (void *, int, handle))                 \
	X(cuLaunchKernel,                                               \
	  (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **))

#define X(name, arguments) static int(*name) arguments;
FUNCTIONS(X)
#undef X

static void check(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "measure: %s: %d\n", what, result);
	exit(1);
}
#define CHECK(call) check(call, #call)

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry nop(.param .u64 a)\n{\n\tret;\n}\n"
	/* c[i] = a[i] + b[i], i < n */
	".visible .entry vectorAdd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n"
	"\t.reg .pred %p<2>;\n\t.reg .f32 %f<4>;\n\t.reg .b32 %r<6>;\n\t.reg .b64 %rd<11>;\n"
	"\tld.param.u64 %rd1, [a];\n\tld.param.u64 %rd2, [b];\n\tld.param.u64 %rd3, [c];\n\tld.param.u32 %r2, [n];\n"
	"\tmov.u32 %r3, %ctaid.x;\n\tmov.u32 %r4, %ntid.x;\n\tmov.u32 %r5, %tid.x;\n\tmad.lo.s32 %r1, %r3, %r4, %r5;\n"
	"\tsetp.ge.u32 %p1, %r1, %r2;\n\t@%p1 bra DONE;\n"
	"\tcvta.to.global.u64 %rd4, %rd1;\n\tmul.wide.u32 %rd5, %r1, 4;\n\tadd.s64 %rd6, %rd4, %rd5;\n"
	"\tcvta.to.global.u64 %rd7, %rd2;\n\tadd.s64 %rd8, %rd7, %rd5;\n"
	"\tld.global.f32 %f1, [%rd8];\n\tld.global.f32 %f2, [%rd6];\n\tadd.f32 %f3, %f2, %f1;\n"
	"\tcvta.to.global.u64 %rd9, %rd3;\n\tadd.s64 %rd10, %rd9, %rd5;\n\tst.global.f32 [%rd10], %f3;\nDONE:\n\tret;\n}\n"
	/* c = a * b, n * n, a thread an element */
	".visible .entry matmul(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n"
	"\t.reg .pred %p<2>;\n\t.reg .f32 %f<4>;\n\t.reg .b32 %r<12>;\n\t.reg .b64 %rd<12>;\n"
	"\tld.param.u64 %rd1, [a];\n\tld.param.u64 %rd2, [b];\n\tld.param.u64 %rd3, [c];\n\tld.param.u32 %r1, [n];\n"
	"\tcvta.to.global.u64 %rd1, %rd1;\n\tcvta.to.global.u64 %rd2, %rd2;\n\tcvta.to.global.u64 %rd3, %rd3;\n"
	"\tmov.u32 %r2, %ctaid.x;\n\tmov.u32 %r3, %ntid.x;\n\tmov.u32 %r4, %tid.x;\n\tmad.lo.s32 %r5, %r2, %r3, %r4;\n"
	"\tmov.u32 %r2, %ctaid.y;\n\tmov.u32 %r3, %ntid.y;\n\tmov.u32 %r4, %tid.y;\n\tmad.lo.s32 %r6, %r2, %r3, %r4;\n"
	"\tmul.lo.s32 %r7, %r6, %r1;\n\tmul.wide.u32 %rd4, %r7, 4;\n\tadd.s64 %rd5, %rd1, %rd4;\n"
	"\tmul.wide.u32 %rd6, %r5, 4;\n\tadd.s64 %rd7, %rd2, %rd6;\n\tmul.wide.u32 %rd8, %r1, 4;\n"
	"\tmov.f32 %f1, 0f00000000;\n\tmov.u32 %r8, 0;\n"
	"LOOP:\n\tld.global.f32 %f2, [%rd5];\n\tld.global.f32 %f3, [%rd7];\n\tfma.rn.f32 %f1, %f2, %f3, %f1;\n"
	"\tadd.s64 %rd5, %rd5, 4;\n\tadd.s64 %rd7, %rd7, %rd8;\n\tadd.s32 %r8, %r8, 1;\n\tsetp.lt.u32 %p1, %r8, %r1;\n\t@%p1 bra LOOP;\n"
	"\tadd.s64 %rd9, %rd3, %rd4;\n\tadd.s64 %rd10, %rd9, %rd6;\n\tst.global.f32 [%rd10], %f1;\n\tret;\n}\n";

static double now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static handle nothing, add, matmul;

static void launch(handle function, unsigned grid, unsigned block, handle stream, void **parameters)
{
	CHECK(cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, parameters, NULL));
}

static void check_addition(void)
{
	enum { COUNT = 100000 };
	float *a = malloc(COUNT * sizeof(float)), *b = malloc(COUNT * sizeof(float)), *c = calloc(COUNT, sizeof(float));
	unsigned count = COUNT;
	handle da, db, dc;
	void *parameters[] = {&da, &db, &dc, &count};

	for (int i = 0; i < COUNT; i++) {
		a[i] = (float)i;
		b[i] = (float)(2 * i);
	}
	CHECK(cuMemAlloc_v2(&da, COUNT * sizeof(float)));
	CHECK(cuMemAlloc_v2(&db, COUNT * sizeof(float)));
	CHECK(cuMemAlloc_v2(&dc, COUNT * sizeof(float)));
	CHECK(cuMemcpyHtoD_v2(da, a, COUNT * sizeof(float)));
	CHECK(cuMemcpyHtoD_v2(db, b, COUNT * sizeof(float)));
	launch(add, (COUNT + 255) / 256, 256, 0, parameters);
	CHECK(cuMemcpyDtoH_v2(c, dc, COUNT * sizeof(float)));
	for (int i = 0; i < COUNT; i++)
		if (c[i] < (float)(3 * i) || c[i] > (float)(3 * i)) {
			fprintf(stderr, "measure: %d + %d is %f\n", i, 2 * i, (double)c[i]);
			exit(1);
		}
	CHECK(cuMemFree_v2(da));
	CHECK(cuMemFree_v2(db));
	CHECK(cuMemFree_v2(dc));
	free(a);
	free(b);
	free(c);
}

#define TIME(name, count, call)                                           \
	do {                                                              \
		const double begin_ = now();                              \
		for (int i_ = 0; i_ < (count); i_++)                      \
			call;                                             \
		printf("%s %.4f us\n", name, (now() - begin_) / (count)); \
	} while (0)

/* Something that somebody asks for: by then, who serves it may be asleep, this processor is not. */
static double after(double gap, int count, void (*ask)(void))
{
	double sum = 0;

	for (int i = 0; i < count; i++) {
		double at = now();

		while (now() - at < gap)
			;
		at = now();
		ask();
		sum += now() - at;
	}
	return sum / count;
}

static void ask_stream(void)
{
	(void)cuStreamQuery(0);
}

static void measure_late_call(const char *name, double gap, int count)
{
	printf("call-after-%s %.4f us\n", name, after(gap, count, ask_stream));
}

/* What this machine itself takes to wake a thread that sleeps on a futex, and to hear of it. */
static _Atomic uint32_t floor_asked, floor_answered;

static void *floor_thread(void *argument)
{
	for (uint32_t seen = 0;; seen++) {
		while (floor_asked == seen)
			(void)syscall(SYS_futex, &floor_asked, FUTEX_WAIT, seen, NULL, NULL, 0);
		floor_answered = seen + 1;
	}
	return argument;
}

static void ask_floor(void)
{
	const uint32_t number = ++floor_asked;

	(void)syscall(SYS_futex, &floor_asked, FUTEX_WAKE, 1, NULL, NULL, 0);
	while (floor_answered != number)
		;
}

static void measure_floor(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, floor_thread, NULL) != 0)
		return;
	printf("wake-up-after-300us %.4f us\n", after(300, 500, ask_floor));
	printf("wake-up-after-5ms %.4f us\n", after(5000, 200, ask_floor));
}

static void measure_launches(void)
{
	handle address = 0;
	void *parameters[] = {&address};
	double begin;

	for (int i = 0; i < 20000; i++)
		launch(nothing, 1, 32, 0, parameters);
	CHECK(cuCtxSynchronize());
	begin = now();
	for (int i = 0; i < 200000; i++)
		launch(nothing, 1, 32, 0, parameters);
	CHECK(cuCtxSynchronize());
	printf("launch %.4f us\n", (now() - begin) / 200000);
}

static void measure_calls(void)
{
	handle address = 0, buffer, event;
	void *parameters[] = {&address};
	char bytes[65536] = {0};
	unsigned flags;
	int device;

	CHECK(cuMemAlloc_v2(&buffer, 4 << 20));
	CHECK(cuEventCreate(&event, 2));
	TIME("launch-and-wait", 20000, (launch(nothing, 1, 32, 0, parameters), CHECK(cuStreamSynchronize(0))));
	TIME("launch-and-wait-context", 20000, (launch(nothing, 1, 32, 0, parameters), CHECK(cuCtxSynchronize())));
	TIME("call", 200000, (void)cuStreamQuery(0));
	TIME("call-of-nothing", 200000, (void)cuStreamGetFlags(0, &flags));
	measure_late_call("300us", 300, 500);
	measure_late_call("5ms", 5000, 200);
	TIME("context-get-device", 1000000, (void)cuCtxGetDevice(&device));
	TIME("pointer-get-attribute", 200000, (void)cuPointerGetAttribute(&device, 2, buffer));
	TIME("event-record", 100000, CHECK(cuEventRecord(event, 0)));
	CHECK(cuCtxSynchronize());
	TIME("copy-to-4K", 20000, CHECK(cuMemcpyHtoD_v2(buffer, bytes, 4096)));
	TIME("copy-from-4", 20000, CHECK(cuMemcpyDtoH_v2(bytes, buffer, 4)));
	TIME("copy-from-64K", 5000, CHECK(cuMemcpyDtoH_v2(bytes, buffer, 65536)));
	CHECK(cuMemFree_v2(buffer));
	TIME("allocate-and-free-4M", 500, (CHECK(cuMemAlloc_v2(&buffer, 4 << 20)), CHECK(cuMemFree_v2(buffer))));
}

static int compare_times(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_rate(const char *name, const char *way, size_t bytes, double *times, size_t count)
{
	qsort(times, count, sizeof(*times), compare_times);
	printf("%s-%s-%zuM %.3f GB/s\n", name, way, bytes >> 20, (double)bytes / times[count / 2] / 1e3);
}

/* Medians of 400 MiB each way, but of five copies at least: the first ones are slower, and single ones vary. */
static void measure_copy(const char *name, void *host, handle device, size_t bytes)
{
	static double to[400], from[400];
	const size_t fitting = (400U << 20) / bytes, count = fitting < 5 ? 5 : fitting;

	for (size_t i = 0; i < count; i++) {
		const double begin = now();
		double middle;

		CHECK(cuMemcpyHtoD_v2(device, host, bytes));
		CHECK(cuCtxSynchronize());
		middle = now();
		CHECK(cuMemcpyDtoH_v2(host, device, bytes));
		from[i] = now() - middle;
		to[i] = middle - begin;
	}
	print_rate(name, "to", bytes, to, count);
	print_rate(name, "from", bytes, from, count);
}

static void measure_copies(size_t largest)
{
	static const size_t sizes[] = {1 << 20, 4 << 20, 64 << 20, 1 << 30};
	void *plain, *locked;
	handle device;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && sizes[i] <= largest; i++) {
		plain = mmap(NULL, sizes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		CHECK(cuMemHostAlloc(&locked, sizes[i], 0));
		CHECK(cuMemAlloc_v2(&device, sizes[i]));
		memset(plain, 1, sizes[i]);
		memset(locked, 1, sizes[i]);
		measure_copy("pinned", locked, device, sizes[i]);
		measure_copy("pageable", plain, device, sizes[i]);
		CHECK(cuMemFree_v2(device));
		CHECK(cuMemFreeHost(locked));
		(void)munmap(plain, sizes[i]);
	}
}

static void measure_matmul(unsigned size)
{
	const size_t bytes = (size_t)size * size * sizeof(float);
	handle a, b, c;
	void *parameters[] = {&a, &b, &c, &size};
	double begin = 0;

	CHECK(cuMemAlloc_v2(&a, bytes));
	CHECK(cuMemAlloc_v2(&b, bytes));
	CHECK(cuMemAlloc_v2(&c, bytes));
	CHECK(cuMemsetD8Async(a, 0, bytes, 0));
	CHECK(cuMemsetD8Async(b, 0, bytes, 0));
	for (int i = 0; i < 11; i++) {
		if (i == 1) {
			CHECK(cuCtxSynchronize());
			begin = now();
		}
		CHECK(cuLaunchKernel(matmul, size / 32, size / 32, 1, 32, 32, 1, 0, 0, parameters, NULL));
	}
	CHECK(cuCtxSynchronize());
	printf("matmul %.3f Gflop/s\n", 2.0 * size * size * size * 10 / (now() - begin) / 1e3);
}

int main(int argc, char **argv)
{
	const char *other = getenv("MEASURE_LIBRARY");
	void *library = dlopen(other ? other : "libcuda.so.1", RTLD_NOW);
	double begin = now();
	handle context, module;
	char name[128];
	int device;

	if (!library) {
		fprintf(stderr, "measure: %s\n", dlerror());
		return 1;
	}
#define X(name, arguments) *(void **)&name = dlsym(library, #name);
	FUNCTIONS(X)
#undef X
	begin = now();
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDeviceGetName(name, sizeof(name), device));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	printf("start %.1f ms\n", (now() - begin) / 1e3);
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&nothing, module, "nop"));
	CHECK(cuModuleGetFunction(&add, module, "vectorAdd"));
	CHECK(cuModuleGetFunction(&matmul, module, "matmul"));
	check_addition();
	fprintf(stderr, "measure: %s adds\n", name);
	if (argc > 1 && strcmp(argv[1], "check") == 0)
		return 0;
	measure_launches();
	if (argc > 1 && strcmp(argv[1], "launch") == 0)
		return 0;
	measure_calls();
	measure_floor();
	measure_copies(argc > 1 ? strtoull(argv[1], NULL, 0) : 1 << 30);
	measure_matmul(argc > 2 ? (unsigned)atoi(argv[2]) : 4096);
	return 0;
}
