/* SPDX-License-Identifier: Apache-2.0 */

/*
 * scrub [BYTES]: whether a process sees what another one left on the GPU, on the driver that the loader finds. For each way
 * to get memory and each way to leave it, one process fills BYTES with a pattern (by default nine tenths of what is free) and
 * leaves; then another asks for as much and counts the words that are that pattern, and those that are not 0. The last line
 * of each says "seen" or "nothing". Ends with 1 if something was seen.
 */

#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef uint64_t handle;

#define FUNCTIONS(X)                                            \
	X(cuInit, (unsigned))                                   \
	X(cuDevicePrimaryCtxRetain, (handle *, int))            \
	X(cuCtxSetCurrent, (handle))                            \
	X(cuCtxSynchronize, (void))                             \
	X(cuMemGetInfo_v2, (size_t *, size_t *))                \
	X(cuMemAlloc_v2, (handle *, size_t))                    \
	X(cuMemFree_v2, (handle))                               \
	X(cuMemAllocAsync, (handle *, size_t, handle))          \
	X(cuMemsetD32Async, (handle, unsigned, size_t, handle)) \
	X(cuMemHostAlloc, (void **, size_t, unsigned))          \
	X(cuMemcpyDtoH_v2, (void *, handle, size_t))

#define X(name, arguments) static int(*name) arguments;
FUNCTIONS(X)
#undef X

enum { PATTERN = 0x5ec4e75a, PIECE = 64 << 20, STEP = 256 << 20 };

static void check(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "scrub: %s: %d\n", what, result);
	exit(2);
}
#define CHECK(call) check(call, #call)

static void begin(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	handle context;

#define X(name, arguments)                                        \
	if (!driver || !(*(void **)&name = dlsym(driver, #name))) \
		check(-1, #name);
	FUNCTIONS(X)
#undef X
	CHECK(cuInit(0));
	CHECK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK(cuCtxSetCurrent(context));
}

static int get(int from_pool, handle *ret)
{
	return from_pool ? cuMemAllocAsync(ret, STEP, 0) : cuMemAlloc_v2(ret, STEP);
}

static size_t room(size_t wanted)
{
	size_t free_now = 0, total = 0;

	CHECK(cuMemGetInfo_v2(&free_now, &total));
	free_now = free_now / 10 * 9;
	return wanted && wanted < free_now ? wanted : free_now;
}

/* Fills, says that it has, and leaves in its way. */
static void fill(size_t wanted, int from_pool, char way, int tell)
{
	handle pieces[4096];
	size_t count = 0, bytes;

	begin();
	bytes = room(wanted);
	while ((count + 1) * STEP <= bytes && count < 4096 && get(from_pool, &pieces[count]) == 0)
		CHECK(cuMemsetD32Async(pieces[count++], PATTERN, STEP / 4, 0));
	CHECK(cuCtxSynchronize());
	for (size_t i = 0; way == 'f' && i < count; i++)
		CHECK(cuMemFree_v2(pieces[i]));
	(void)!write(tell, &count, sizeof(count));
	if (way == 'k')
		(void)raise(SIGKILL);
	/* It stays until it is ended, with its memory given back. */
	if (way == 'f')
		(void)pause();
	exit(0);
}

static void look(size_t wanted, int from_pool, uint64_t seen[3])
{
	void *host;
	size_t bytes;

	begin();
	bytes = room(wanted);
	CHECK(cuMemHostAlloc(&host, PIECE, 0));
	for (size_t done = 0; done + STEP <= bytes; done += STEP) {
		handle at;

		if (get(from_pool, &at))
			break;
		for (size_t offset = 0; offset < STEP; offset += PIECE) {
			const uint32_t *word = host;

			CHECK(cuMemcpyDtoH_v2(host, at + offset, PIECE));
			for (size_t i = 0; i < PIECE / 4; i++) {
				seen[0] += word[i] == PATTERN;
				seen[1] += word[i] != 0;
			}
			seen[2] += PIECE / 4;
		}
	}
}

static int tenant(size_t wanted, int from_pool, char way)
{
	uint64_t seen[3] = {0};
	size_t count = 0;
	int pair[2], ended;
	pid_t one, other;

	if (pipe(pair) < 0 || (one = fork()) < 0)
		return 2;
	if (one == 0)
		fill(wanted, from_pool, way, pair[1]);
	(void)close(pair[1]);
	(void)!read(pair[0], &count, sizeof(count));
	if (way != 'f')
		(void)waitpid(one, NULL, 0);
	if (pipe(pair) < 0 || (other = fork()) < 0)
		return 2;
	if (other == 0) {
		look(wanted, from_pool, seen);
		exit(write(pair[1], seen, sizeof(seen)) != sizeof(seen));
	}
	(void)close(pair[1]);
	if (read(pair[0], seen, sizeof(seen)) != sizeof(seen))
		fprintf(stderr, "scrub: the second process could not look\n");
	(void)waitpid(other, &ended, 0);
	if (way == 'f') {
		(void)kill(one, SIGKILL);
		(void)waitpid(one, NULL, 0);
	}
	printf("%s, %s: %zu MiB filled; of %llu MiB looked at, %llu words are the pattern, %llu are not 0: %s\n",
	       from_pool ? "cuMemAllocAsync" : "cuMemAlloc",
	       way == 'k'   ? "killed"
	       : way == 'f' ? "freed, and still there"
			    : "ended",
	       count * (STEP >> 20), (unsigned long long)(seen[2] * 4 >> 20), (unsigned long long)seen[0],
	       (unsigned long long)seen[1], seen[0] ? "seen" : "nothing");
	(void)fflush(stdout);
	return seen[0] > 0 || seen[2] == 0 || count == 0;
}

int main(int argc, char **argv)
{
	const size_t wanted = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
	int failures = 0;

	for (int from_pool = 0; from_pool < 2; from_pool++)
		for (const char *way = "ekf"; *way; way++)
			failures |= tenant(wanted, from_pool, *way);
	return failures;
}
