/* SPDX-License-Identifier: Apache-2.0 */

/*
 * holds BYTES: a program that has data in a GPU's memory while its server is suspended, resumed and moved. It reads a
 * word a line: "check" compares all of it with what was put there, and puts something else there; "launch" has a kernel
 * add 1 to a number and fetches it; "spin" waits for a kernel of about two seconds; "table" asks for a table of the driver
 * that nobody has. It answers each with a line, which says how long that took. The end of the input is the end of the program.
 */

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint64_t handle;

#define FUNCTIONS(X)                                             \
	X(cuInit, (unsigned))                                    \
	X(cuDevicePrimaryCtxRetain, (handle *, int))             \
	X(cuCtxSetCurrent, (handle))                             \
	X(cuCtxSynchronize, (void))                              \
	X(cuGetExportTable, (const void **, const void *))       \
	X(cuModuleLoadData, (handle *, const void *))            \
	X(cuModuleGetFunction, (handle *, handle, const char *)) \
	X(cuMemAlloc_v2, (handle *, size_t))                     \
	X(cuMemcpyHtoD_v2, (handle, const void *, size_t))       \
	X(cuMemcpyDtoH_v2, (void *, handle, size_t))             \
	X(cuLaunchKernel,                                        \
	  (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **))

#define X(name, arguments) static int(*name) arguments;
FUNCTIONS(X)
#undef X

enum { PART = 32 << 20 };

#define SPIN_CLOCKS 4000000000

/* With names of those that the simulated driver has. */
static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .entry vectorAdd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n"
	".reg .u64 %x, %y, %z;\n.reg .f32 %f, %g;\n"
	"ld.param.u64 %x, [a];\nld.param.u64 %y, [b];\nld.param.u64 %z, [c];\n"
	"ld.global.f32 %f, [%x];\nld.global.f32 %g, [%y];\nadd.f32 %f, %f, %g;\nst.global.f32 [%z], %f;\nret;\n}\n"
	".visible .entry spin(.param .u64 clocks)\n{\n"
	".reg .u64 %b, %e, %n;\n.reg .pred %p;\n"
	"ld.param.u64 %n, [clocks];\nmov.u64 %b, %clock64;\n"
	"AGAIN:\nmov.u64 %e, %clock64;\nsub.u64 %e, %e, %b;\nsetp.lt.u64 %p, %e, %n;\n@%p bra AGAIN;\nret;\n}\n";

static void check(int result, const char *what)
{
	if (result == 0)
		return;
	printf("%s: error %d\n", what, result);
	(void)fflush(stdout);
	exit(1);
}
#define CHECK(name, ...) check(name(__VA_ARGS__), #name)

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

static double now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* No two words of it are the same within a round. */
static void make(uint64_t *part, size_t at, size_t bytes, unsigned round)
{
	for (size_t i = 0; i < bytes / sizeof(*part); i++)
		part[i] = ((at / sizeof(*part) + i) * 2 + 1) * 0x9e3779b97f4a7c15 + round;
}

static void put(handle memory, size_t bytes, uint64_t *part, unsigned round)
{
	for (size_t at = 0; at < bytes; at += PART) {
		const size_t size = bytes - at < PART ? bytes - at : PART;

		make(part, at, size, round);
		CHECK(cuMemcpyHtoD_v2, memory + at, part, size);
	}
}

/* Return: how many parts are not as they were put there. */
static size_t compare(handle memory, size_t bytes, uint64_t *part, uint64_t *other, unsigned round)
{
	size_t wrong = 0;

	for (size_t at = 0; at < bytes; at += PART) {
		const size_t size = bytes - at < PART ? bytes - at : PART;

		make(part, at, size, round);
		CHECK(cuMemcpyDtoH_v2, other, memory + at, size);
		wrong += memcmp(part, other, size) != 0;
	}
	return wrong;
}

/* Return: one more, as the GPU has it. */
static float launch(handle function, handle words, float count)
{
	const float both[] = {1, count};
	handle a = words, b = words + sizeof(float), c = words + 2 * sizeof(float);
	unsigned n = 1;
	void *parameters[] = {&a, &b, &c, &n};
	float sum = 0;

	CHECK(cuMemcpyHtoD_v2, words, both, sizeof(both));
	CHECK(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, 0, parameters, NULL);
	CHECK(cuMemcpyDtoH_v2, &sum, c, sizeof(sum));
	return sum;
}

static void spin(handle function)
{
	uint64_t clocks = SPIN_CLOCKS;
	void *parameters[] = {&clocks};

	CHECK(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, 0, parameters, NULL);
	CHECK(cuCtxSynchronize);
}

static bool has_no_table(void)
{
	const void *table = NULL;

	return cuGetExportTable(&table, "no table of that") != 0;
}

int main(int argc, char **argv)
{
	const size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 0) : 1 << 20;
	uint64_t *part = malloc(PART), *other = malloc(PART);
	handle context = 0, module = 0, add = 0, spinner = 0, memory = 0, words = 0;
	unsigned round = 0;
	float count = 0;
	char line[64];

	if (!part || !other)
		return 1;
	load();
	CHECK(cuInit, 0);
	CHECK(cuDevicePrimaryCtxRetain, &context, 0);
	CHECK(cuCtxSetCurrent, context);
	CHECK(cuModuleLoadData, &module, ptx);
	CHECK(cuModuleGetFunction, &add, module, "vectorAdd");
	CHECK(cuModuleGetFunction, &spinner, module, "spin");
	CHECK(cuMemAlloc_v2, &memory, bytes);
	CHECK(cuMemAlloc_v2, &words, 3 * sizeof(float));
	put(memory, bytes, part, round);
	puts("held");
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		const double began = now();
		const char *answer;

		if (strncmp(line, "check", strlen("check")) == 0) {
			answer = compare(memory, bytes, part, other, round) ? "wrong" : "right";
			put(memory, bytes, part, ++round);
		} else if (strncmp(line, "spin", strlen("spin")) == 0) {
			spin(spinner);
			answer = "spun";
		} else if (strncmp(line, "table", strlen("table")) == 0) {
			answer = has_no_table() ? "none" : "there";
		} else {
			answer = launch(add, words, count) == count + 1 ? "launched" : "miscounted";
			count++;
		}
		printf("%s %.1f ms\n", answer, now() - began);
		(void)fflush(stdout);
	}
	return 0;
}
