/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/server/arena.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { ARENA_STEP = 65536, REGISTER_PORTABLE = 1, REGISTER_MAPPED = 2 };

/* Where neither programs, libraries and stacks nor the driver's own reservations are. */
static const uint64_t arena_addresses[WIRE_ARENAS] = {
	0x300000000000,
	0x280000000000,
	0x380000000000,
	0x200000000000,
};

struct piece {
	uint64_t at, bytes, context;
	bool registered;
	bool whole; /* the client has it */
};

static pthread_mutex_t arena_mutex = PTHREAD_MUTEX_INITIALIZER; /* of the pieces, and of what the client was sent */
static struct piece *pieces;                                    /* by address */
static size_t piece_count, piece_room;
static uint64_t offers[WIRE_ARENAS];

void arena_offer(uint64_t ret_offers[])
{
	for (int i = 0; i < WIRE_ARENAS; i++) {
		void *at = (void *)arena_addresses[i];
		void *memory = mmap(at, WIRE_ARENA_BYTES, PROT_NONE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

		offers[i] = memory == at ? (uint64_t)at : 0;
		if (memory != MAP_FAILED && memory != at)
			(void)munmap(memory, WIRE_ARENA_BYTES);
		ret_offers[i] = offers[i];
	}
}

int32_t arena_choose(int64_t offer)
{
	if (server.arena)
		return -1;
	server.arena = offer >= 0 && offer < WIRE_ARENAS ? offers[offer] : 0;
	for (int i = 0; i < WIRE_ARENAS; i++) {
		if (i != offer && offers[i])
			(void)munmap((void *)offers[i], WIRE_ARENA_BYTES);
		/* What is there from now on is not ours to take. */
		offers[i] = 0;
	}
	return server.arena ? (int32_t)offer : -1;
}

static void arena_unlock(pthread_mutex_t *const *mutex)
{
	(void)pthread_mutex_unlock(*mutex);
}

#define ARENA_HOLD()                                                                 \
	pthread_mutex_t *const held __attribute__((cleanup(arena_unlock), unused)) = \
		((void)pthread_mutex_lock(&arena_mutex), &arena_mutex)

/* Return: the place of the first piece that begins behind @at. */
static size_t arena_search(uint64_t at)
{
	size_t low = 0, high = piece_count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (pieces[middle].at > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Return: the piece that @at is in; NULL. */
static struct piece *arena_find(uint64_t at)
{
	const size_t place = arena_search(at);

	return place > 0 && at - pieces[place - 1].at < pieces[place - 1].bytes ? &pieces[place - 1] : NULL;
}

bool arena_has(uint64_t at, uint64_t bytes)
{
	const struct piece *piece;

	ARENA_HOLD();
	piece = arena_find(at);
	return piece && piece->whole && bytes <= piece->bytes - (at - piece->at);
}

bool arena_register(void *at, uint64_t bytes)
{
	return driver.cuMemHostRegister_v2 &&
	       driver.cuMemHostRegister_v2(at, bytes, REGISTER_PORTABLE | REGISTER_MAPPED) == CUDA_SUCCESS;
}

bool arena_register_in(uint64_t context, void *at, uint64_t bytes)
{
	CUcontext real = 0, popped;
	bool registered;

	if (!handle_look(context, WIRE_CONTEXT, &real) || driver.cuCtxPushCurrent_v2(real))
		return false;
	registered = arena_register(at, bytes);
	(void)driver.cuCtxPopCurrent_v2(&popped);
	return registered;
}

static bool arena_make_room(void)
{
	struct piece *larger;

	if (piece_count < piece_room)
		return true;
	larger = realloc(pieces, (piece_room * 2 + 64) * sizeof(*pieces));
	if (!larger)
		return false;
	pieces = larger;
	piece_room = piece_room * 2 + 64;
	return true;
}

/* The place is the piece's from now on. */
static CUresult arena_take_place(uint64_t at, uint64_t bytes, uint64_t context)
{
	size_t place;

	ARENA_HOLD();
	place = arena_search(at);
	if (arena_find(at) || (place < piece_count && pieces[place].at - at < bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!arena_make_room())
		return CUDA_ERROR_OUT_OF_MEMORY;
	memmove(&pieces[place + 1], &pieces[place], (piece_count++ - place) * sizeof(*pieces));
	pieces[place] = (struct piece){.at = at, .bytes = bytes, .context = context};
	return CUDA_SUCCESS;
}

static void arena_remove(size_t place)
{
	memmove(&pieces[place], &pieces[place + 1], (--piece_count - place) * sizeof(*pieces));
}

static void arena_give_place(uint64_t at)
{
	ARENA_HOLD();
	arena_remove(arena_search(at) - 1);
}

/* What the driver keeps is locked, and counts, and is the client's still. Return: false if its context has ended. */
static bool arena_keep(uint64_t at)
{
	struct piece *piece;

	ARENA_HOLD();
	piece = arena_find(at);
	piece->whole = piece->registered;
	return piece->whole;
}

/* Nobody copies from or to it any more. Return: whether there was one at @at. */
static bool arena_close(uint64_t at, struct piece *ret)
{
	struct piece *piece;

	ARENA_HOLD();
	piece = arena_find(at);
	if (!piece || piece->at != at || !piece->whole)
		return false;
	*ret = *piece;
	piece->whole = false;
	return true;
}

/* A client that keeps the memory would keep the pages, too, which count as the server's. */
static void arena_free(void *at, uint64_t bytes)
{
	if (at)
		(void)madvise(at, bytes, MADV_REMOVE);
}

static void arena_unmap(uint64_t at, uint64_t bytes)
{
	arena_free((void *)at, bytes);
	(void)mmap((void *)at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* The client has no piece that arena_exit() does not see. One byte, since a message without any has no descriptor. */
static int arena_give(uint64_t at, bool registered)
{
	struct piece *piece;
	int r;

	ARENA_HOLD();
	piece = arena_find(at);
	r = server_send_shared("", 1, MSG_DONTWAIT);
	piece->whole = r == 0;
	piece->registered = registered;
	return r;
}

/* A piece of what was counted. */
static CUresult arena_fill(uint64_t at, uint64_t bytes, bool reached)
{
	bool registered;
	void *memory;

	memory = mmap((void *)at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, START_SHARED,
		      (off_t)(WIRE_ARENA_OFFSET + at - server.arena));
	if (memory == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	registered = arena_register(memory, bytes);
	if (reached && !registered) {
		arena_unmap(at, bytes);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (arena_give(at, registered) == 0)
		return CUDA_SUCCESS;
	if (registered && driver.cuMemHostUnregister)
		(void)driver.cuMemHostUnregister(memory);
	arena_unmap(at, bytes);
	return CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult arena_begin_add(uint64_t offset, uint64_t bytes, uint64_t context)
{
	if (!server.arena || bytes == 0 || bytes % ARENA_STEP || offset % ARENA_STEP || bytes > WIRE_ARENA_BYTES ||
	    offset > WIRE_ARENA_BYTES - bytes)
		return CUDA_ERROR_INVALID_VALUE;
	return arena_take_place(server.arena + offset, bytes, context);
}

CUresult arena_end_add(uint64_t offset, uint64_t bytes, bool reached)
{
	const uint64_t at = server.arena + offset;
	CUresult r;

	if (!quota_lock(bytes)) {
		arena_give_place(at);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = arena_fill(at, bytes, reached);
	if (r) {
		quota_unlock(bytes);
		arena_give_place(at);
	}
	return r;
}

CUresult arena_begin_drop(uint64_t offset, uint64_t *ret_bytes, bool *ret_registered)
{
	struct piece piece;

	if (!arena_close(server.arena + offset, &piece))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_bytes = piece.bytes;
	*ret_registered = piece.registered;
	return CUDA_SUCCESS;
}

CUresult arena_end_drop(uint64_t offset, uint64_t bytes, bool registered)
{
	const uint64_t at = server.arena + offset;
	CUresult r = CUDA_SUCCESS;

	if (registered && driver.cuMemHostUnregister)
		r = driver.cuMemHostUnregister((void *)at);
	if (r && arena_keep(at))
		return r;
	arena_unmap(at, bytes);
	quota_unlock(bytes);
	arena_give_place(at);
	return CUDA_SUCCESS;
}

void arena_forget_context(uint64_t context)
{
	ARENA_HOLD();
	for (size_t i = 0; i < piece_count; i++)
		if (pieces[i].context == context)
			pieces[i].registered = false;
}

/* It stays locked, so that nothing is sent any more; a second thread that ends the process waits for the first. */
void arena_stop(void)
{
	(void)pthread_mutex_lock(&arena_mutex);
}

_Noreturn void arena_exit(int exit_status)
{
	for (size_t i = 0; i < piece_count; i++)
		arena_free((void *)pieces[i].at, pieces[i].bytes);
	arena_free(server.staging, WIRE_STAGING_BYTES);
	arena_free(server.wire, sizeof(*server.wire));
	_exit(exit_status);
}

void server_end(const char *why)
{
	/* Shared memory that is freed at the end reads as zeros, of which no client is accused that was killed. */
	arena_stop();
	server_tell(START_EVENT_HOSTILE, 0, why);
	server.wire->state = WIRE_DEAD;
	arena_exit(1);
}
