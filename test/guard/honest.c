/* SPDX-License-Identifier: Apache-2.0 */

/*
 * honest [--more] THREADS CALLS LUID: a program whose threads make so many calls in all, of each kind that names an adapter, with arguments
 * that lie anywhere, also on two pages of which the second is untouched. None fails, and each list names the adapter and no other; --more: of
 * two hundred lists one may name another, since the kernel preempts itself. The guard cannot read a page that the kernel is moving just then:
 * hardly a call in a million meets one, and succeeds when it is made again.
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dxg.h"

enum { THREADS_MAX = 256, PAGE = 4096, ARENA = 64 * PAGE };

static struct arguments arguments;
static long calls;
static int fd, failed_calls, lists, others, empty, moving;

static int query(void *place, uint32_t handle)
{
	ADAPTERADDRESS address;
	D3DKMT_QUERYADAPTERINFO *call = place;

	*call = (D3DKMT_QUERYADAPTERINFO){
		.hAdapter = handle,
		.Type = QUERY_ADAPTERADDRESS,
		.pPrivateDriverData = (uintptr_t)&address,
		.PrivateDriverDataSize = sizeof(address),
	};
	return dxg_call(fd, LX_DXQUERYADAPTERINFO, call);
}

static int open_and_close(void *place, uint32_t handle)
{
	D3DKMT_OPENADAPTERFROMLUID *call = place;
	int r;

	(void)handle;
	*call = (D3DKMT_OPENADAPTERFROMLUID){.AdapterLuid = arguments.seen[0]};
	r = dxg_call(fd, LX_DXOPENADAPTERFROMLUID, call);
	return r < 0 ? r : dxg_call(fd, LX_DXCLOSEADAPTER, &call->hAdapter);
}

/* What the answer will be in is not touched. */
static int statistics(void *place, uint32_t handle)
{
	D3DKMT_QUERYSTATISTICS *call = place;

	(void)handle;
	call->Type = 0;
	call->AdapterLuid = arguments.seen[0];
	call->hProcess = 0;
	return dxg_call(fd, LX_DXQUERYSTATISTICS, call);
}

/* Of each list one adapter is to be seen. */
static int list(void *place, uint32_t handle)
{
	D3DKMT_ADAPTERINFO infos[8];
	D3DKMT_ENUMADAPTERS3 *call = place;
	int r;

	(void)handle;
	*call = (D3DKMT_ENUMADAPTERS3){.NumAdapters = 8, .pAdapters = (uintptr_t)infos};
	r = dxg_call(fd, LX_DXENUMADAPTERS3, call);
	(void)__atomic_fetch_add(&lists, 1, __ATOMIC_SEQ_CST);
	if (r == 0 && call->NumAdapters == 0)
		(void)__atomic_fetch_add(&empty, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; r == 0 && i < call->NumAdapters; i++) {
		if (memcmp(&infos[i].AdapterLuid, &arguments.seen[0], sizeof(arguments.seen[0])) != 0)
			(void)__atomic_fetch_add(&others, 1, __ATOMIC_SEQ_CST);
		else
			r = dxg_call(fd, LX_DXCLOSEADAPTER, &infos[i].hAdapter);
	}
	*call = (D3DKMT_ENUMADAPTERS3){0};
	return r < 0 ? r : dxg_call(fd, LX_DXENUMADAPTERS3, call);
}

static int (*const kinds[])(void *place, uint32_t handle) = {query, open_and_close, statistics, list};

static char *arena_new(void)
{
	char *arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (arena == MAP_FAILED)
		exit(3);
	return arena;
}

/* In memory of the thread's own. */
static uint32_t open_adapter(D3DKMT_OPENADAPTERFROMLUID *call)
{
	*call = (D3DKMT_OPENADAPTERFROMLUID){.AdapterLuid = arguments.seen[0]};
	if (dxg_call(fd, LX_DXOPENADAPTERFROMLUID, call) < 0)
		exit(3);
	return call->hAdapter;
}

static void *run(void *seed)
{
	unsigned random = (unsigned)(uintptr_t)seed;
	char *arena = arena_new();
	uint32_t handle = open_adapter((void *)arena);

	while (__atomic_fetch_sub(&calls, 1, __ATOMIC_SEQ_CST) > 0) {
		size_t place = (size_t)rand_r(&random) % (ARENA - 1024) & ~(size_t)7;
		size_t kind = (size_t)rand_r(&random) % (sizeof(kinds) / sizeof(kinds[0]));
		int r = kinds[kind](arena + place, handle);

		if (r == -EFAULT) {
			(void)__atomic_fetch_add(&moving, 1, __ATOMIC_SEQ_CST);
			r = kinds[kind](arena + place, handle);
		}
		if (r < 0 && __atomic_fetch_add(&failed_calls, 1, __ATOMIC_SEQ_CST) < 10)
			(void)printf("# a call of kind %zu failed: %d, %s\n", kind, r, strerror(-r));
		if (place % 64 == 0)
			(void)madvise(arena, ARENA, MADV_DONTNEED);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];
	bool more = argc > 1 && strcmp(argv[1], "--more") == 0;
	long count, all;

	argc -= more;
	argv += more;
	if (argc < 4)
		return 2;
	count = strtol(argv[1], NULL, 10);
	all = calls = strtol(argv[2], NULL, 10);
	arguments_read(argc, argv, 3, &arguments);
	if (count < 1 || count > THREADS_MAX || arguments.seen_count != 1)
		return 2;
	fd = dxg_open();
	for (long i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(i + 1)) != 0)
			return 3;
	for (long i = 0; i < count; i++)
		(void)pthread_join(threads[i], NULL);
	tap(failed_calls == 0, "%ld calls of %ld threads: %d failed", all, count, failed_calls);
	tap(moving <= 1 + all / 1000000, "%d met a page that the kernel was moving", moving);
	tap(lists > 0 && others <= (more ? lists / 200 : 0), "%d of %d lists name another adapter", others, lists);
	tap(empty == 0, "%d of %d lists name none", empty, lists);
	return tap_status();
}
