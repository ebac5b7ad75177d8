/* SPDX-License-Identifier: Apache-2.0 */

/* Chunks of the staging memory, and threads that help to fill and to empty them: one is slower than the bus. */

#include "vcuda/client/staged.h"

#include <string.h>

#include "vcuda/client/address_map.h"
#include "vcuda/client/call.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

enum { STAGED_SHARED = 1 << 20, STAGED_HELPERS = 3 };

/* ---- threads that help with memcpy ---- */

static struct lock helper_lock; /* one large copy at a time has their help */
static unsigned helper_count;
static struct helper {
	struct bell begin, end;
	void *to;
	const void *from;
	size_t bytes;
} helpers[STAGED_HELPERS];

static void *staged_help(void *argument)
{
	struct helper *helper = argument;
	uint32_t seen = 0;

	for (;;) {
		if (!bell_spin(&helper->begin, seen, 4 * client.spin)) {
			bell_sleep(&helper->begin, seen, NULL);
			continue;
		}
		seen++;
		memcpy(helper->to, helper->from, helper->bytes);
		bell_ring(&helper->end, seen);
	}
	return NULL;
}

static void staged_get_help(void)
{
	while (helper_count < STAGED_HELPERS && helper_count < client.copy_threads &&
	       background_start(staged_help, &helpers[helper_count]))
		helper_count++;
}

static void staged_wait_for_help(struct helper *helper, uint32_t seen)
{
	while (BELL_LOAD(&helper->end.value) == seen)
		if (!bell_spin(&helper->end, seen, 1000000))
			bell_sleep(&helper->end, seen, NULL);
}

void staged_copy(void *to, const void *from, size_t bytes, bool shared)
{
	const size_t share = shared ? (bytes / (helper_count + 1)) & ~(size_t)63 : 0;

	for (unsigned i = 0; shared && i < helper_count; i++) {
		helpers[i].to = (char *)to + i * share;
		helpers[i].from = (const char *)from + i * share;
		helpers[i].bytes = share;
		bell_ring(&helpers[i].begin, helpers[i].begin.value + 1);
	}
	memcpy((char *)to + helper_count * share, (const char *)from + helper_count * share,
	       bytes - helper_count * share);
	for (unsigned i = 0; shared && i < helper_count; i++)
		staged_wait_for_help(&helpers[i], helpers[i].begin.value - 1);
}

/* ---- chunks ---- */

static struct lock chunk_lock;
static bool chunk_taken[WIRE_CHUNKS];
static struct bell chunk_freed;

/* Return: how many chunks were free of those between two numbers, at most staged->depth, which are the copy's now. */
static unsigned staged_take_chunks(struct staged *staged, uint32_t from, uint32_t to)
{
	unsigned count = 0;

	LOCK_HOLD(&chunk_lock);
	for (uint32_t i = from; i < to && count < staged->depth; i++)
		if (!chunk_taken[i]) {
			chunk_taken[i] = true;
			staged->chunk[count++] = i;
		}
	return count;
}

/*
 * A copy has its chunks until its stream has come to it, which may be behind what other threads have still to copy. So
 * none waits for chunks of such: where there are no others, it waits for its stream, with none, and then has those that
 * are kept for copies that begin at once.
 */
static CUresult staged_wait_for_chunks(struct staged *staged, uint32_t from, uint32_t to, CUstream stream)
{
	CUresult r = cuStreamSynchronize(stream);

	while (!r) {
		const uint32_t seen = BELL_LOAD(&chunk_freed.value);
		const unsigned count = staged_take_chunks(staged, from, to);

		if (count > 0) {
			staged->depth = count;
			break;
		}
		bell_sleep(&chunk_freed, seen, &(const struct timespec){.tv_nsec = 1000000});
	}
	return r;
}

static void staged_give_chunk(uint32_t chunk)
{
	lock_take(&chunk_lock);
	chunk_taken[chunk] = false;
	bell_ring(&chunk_freed, chunk_freed.value + 1);
	lock_release(&chunk_lock);
}

CUresult staged_wait(uint32_t chunk)
{
	const uint64_t word = chunk;

	return call_sync(WIRE_STAGE_WAIT, &word, 1, NULL, 0, NULL, 0);
}

CUresult staged_begin(size_t bytes, CUstream stream, struct staged *ret)
{
	enum { SPARE_SMALL = 4, SPARE_LARGE = 2 };
	const bool large = bytes > WIRE_SMALL_BYTES;
	const uint32_t from = large ? WIRE_SMALL : 0, to = large ? WIRE_CHUNKS : WIRE_SMALL;
	struct staged staged = {.piece = large ? WIRE_LARGE_BYTES : WIRE_SMALL_BYTES,
				.shared = bytes >= STAGED_SHARED && !call_server_is_near()};
	const size_t pieces = (bytes + staged.piece - 1) / staged.piece;
	CUresult r = CUDA_SUCCESS;
	unsigned count;

	staged.depth = pieces < STAGED_DEPTH ? (unsigned)pieces : STAGED_DEPTH;
	count = staged_take_chunks(&staged, from, to - (large ? SPARE_LARGE : SPARE_SMALL));
	if (count > 0)
		staged.depth = count;
	else
		r = staged_wait_for_chunks(&staged, from, to, stream);
	if (r)
		return r;
	/* Whoever has their help may wait for long. */
	staged.shared = staged.shared && lock_try(&helper_lock);
	if (staged.shared)
		staged_get_help();
	*ret = staged;
	return CUDA_SUCCESS;
}

void staged_end(const struct staged *staged)
{
	if (staged->shared)
		lock_release(&helper_lock);
	for (unsigned i = 0; i < staged->depth; i++)
		staged_give_chunk(staged->chunk[i]);
}

CUresult staged_await(const void *from, CUstream stream)
{
	struct range range;

	return address_map_find((uint64_t)from, &range) && range.kind == ADDRESS_MAP_REGISTERED
		       ? cuStreamSynchronize(stream)
		       : CUDA_SUCCESS;
}
