/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stands between a program, or a server, and the driver, which it names as the library that it needs: whoever looks for a
 * function in this one finds the driver's, but for cuLaunchKernel(). Of 200,000 launches behind the first 20,001 it says how
 * long they took in the driver, and how long it was from one to the next.
 */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BEFORE = 20001, COUNT = 200000 };

int cuLaunchKernel(uint64_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
		   unsigned block_y, unsigned block_z, unsigned shared, uint64_t stream, void **parameters,
		   void **extra);

static uint32_t inside[COUNT], between[COUNT];
static uint64_t began, left;
static struct timespec began_time;
static long count = -BEFORE;

static uint64_t between_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
#endif
}

static int between_compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void between_print(const char *name, uint32_t *ticks, double each)
{
	double sum = 0;

	for (int i = 0; i < COUNT; i++)
		sum += ticks[i];
	qsort(ticks, COUNT, sizeof(*ticks), between_compare);
	fprintf(stderr, "%s: mean %.0f ns, median %.0f, 90 of 100 %.0f, 99 of 100 %.0f, most %.0f\n", name,
		sum / (double)COUNT * each, ticks[COUNT / 2] * each, ticks[COUNT / 10 * 9] * each,
		ticks[COUNT / 100 * 99] * each, ticks[COUNT - 1] * each);
}

static void between_tell(uint64_t now)
{
	struct timespec time;
	double each;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	each = ((double)(time.tv_sec - began_time.tv_sec) * 1e9 + (double)(time.tv_nsec - began_time.tv_nsec)) /
	       (double)(now - began);
	between_print("in the driver", inside, each);
	between_print("between", between, each);
}

int cuLaunchKernel(uint64_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
		   unsigned block_y, unsigned block_z, unsigned shared, uint64_t stream, void **parameters,
		   void **extra)
{
	static __typeof__(cuLaunchKernel) *real;
	uint64_t entered;
	int r;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "cuLaunchKernel");
	entered = between_ticks();
	r = real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra);
	if (count >= 0 && count < COUNT) {
		between[count] = (uint32_t)(entered - left);
		left = between_ticks();
		inside[count] = (uint32_t)(left - entered);
	}
	if (++count == 0) {
		(void)clock_gettime(CLOCK_MONOTONIC, &began_time);
		began = left = between_ticks();
	}
	if (count == COUNT)
		between_tell(left);
	return r;
}
