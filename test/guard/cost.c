/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cost [LUID]: what a call of /dev/dxg takes, in nanoseconds of the machine's clock. In a guest that counts its instructions (QEMU's -icount
 * shift=0, see test/guard/count) that is their number.
 */

#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "dxg.h"

enum { CALLS = 2000, ROUNDS = 5, PAGE = 4096 };

static int fd, ends[2];
static uint32_t handle;
static D3DKMT_ADAPTERINFO infos[64];
static volatile char *page;

/* What every program pays: a call of this type that is no business of the driver's. */
static void other_device(void)
{
	int waiting;

	(void)ioctl(ends[0], FIONREAD, &waiting);
}

/* The driver does nothing for it; a look at its handle is made all the same. */
static void close_nothing(void)
{
	uint32_t nothing = 0;

	(void)dxg_call(fd, LX_DXCLOSEADAPTER, &nothing);
}

static void close_unknown(void)
{
	uint32_t unknown = handle + 0x4000;

	(void)dxg_call(fd, LX_DXCLOSEADAPTER, &unknown);
}

static void query(void)
{
	(void)dxg_bus(fd, handle);
}

static void enumerate_close(void)
{
	uint32_t count = 0;

	(void)dxg_enumerate3(fd, infos, 64, &count);
	for (uint32_t i = 0; i < count; i++)
		(void)dxg_call(fd, LX_DXCLOSEADAPTER, &infos[i].hAdapter);
}

/* A fault of the program's own, and one of the kernel's, which are those that the guard looks at on x86. */
static void touch(void)
{
	(void)madvise((void *)page, PAGE, MADV_DONTNEED);
	*page = 1;
}

static void have_touched(void)
{
	char byte;

	(void)madvise((void *)page, PAGE, MADV_DONTNEED);
	(void)!write(ends[1], (char *)page, 1);
	(void)!read(ends[0], &byte, 1);
}

static double measure(void (*call)(void))
{
	double best = 1e12;

	for (int round = 0; round < ROUNDS; round++) {
		struct timespec start, end;
		double took;

		(void)clock_gettime(CLOCK_MONOTONIC_RAW, &start);
		for (int i = 0; i < CALLS; i++)
			call();
		(void)clock_gettime(CLOCK_MONOTONIC_RAW, &end);
		took = ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) /
		       (double)CALLS;
		best = took < best ? took : best;
	}
	return best;
}

int main(int argc, char **argv)
{
	struct arguments arguments;

	arguments_read(argc, argv, 1, &arguments);
	fd = dxg_open();
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return 2;
	if (arguments.seen_count != 1 || pipe(ends) < 0 || dxg_open_luid(fd, arguments.seen[0], 0, &handle) < 0)
		return 2;
	(void)printf(
		"FIONREAD of a pipe %.0f, CloseAdapter of no handle %.0f, of an unknown one %.0f, QueryAdapterInfo %.0f, "
		"EnumAdapters3 and closing %.0f, a page dropped and touched %.0f, or read by the kernel %.0f\n",
		measure(other_device), measure(close_nothing), measure(close_unknown), measure(query),
		measure(enumerate_close), measure(touch), measure(have_touched));
	return 0;
}
