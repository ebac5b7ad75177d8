/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What processes of a container share by handles: memory of a GPU, and events. Each that the driver has made a handle
 * of has a place in the memory of the container's servers. Clients hold a token of it, which none can guess, and never
 * see what the driver made. Memory counts for its place, and so for the container, as long as one server holds it.
 * Files in memory that drivers share have places, too, and so has memory that a driver has made a descriptor of, which
 * stays with the server that has it, until the manager takes another one of it out of there.
 *
 * A server writes its own bit, and may be killed at any moment. Its manager, which takes the numbers of its slot back,
 * takes its bits back, too.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	SHARE_PLACES = 4096,
	SHARE_SLOTS = 256, /* START_QUOTA_SLOTS */
	SHARE_HANDLE = 64, /* bytes of the driver's, and of what a client holds */
	SHARE_READY = -1,
	SHARE_TRIES = 64,
	SHARE_FD = 2048, /* a server's descriptors from here on are those that others of its container may have */
};

/* Where another may come between, which the test makes happen. */
#ifndef SHARE_BETWEEN
#define SHARE_BETWEEN(step) ((void)(step))
#endif

enum share_kind { SHARE_MEMORY = 1, SHARE_EVENT, SHARE_FILE, SHARE_PHYSICAL };

struct share {
	_Atomic uint64_t bytes;
	_Atomic uint64_t holders[SHARE_SLOTS / 64];
	_Atomic int32_t state; /* 0: free; SHARE_READY; else 1 + the slot of the server that is filling or freeing it */
	uint32_t kind;
	uint64_t token[2];
	uint8_t handle[SHARE_HANDLE];
};
_Static_assert(sizeof(struct share) == 128, "places lie in lines of their own");

struct shares {
	_Atomic uint32_t used; /* no place from this one on was ever used */
	uint32_t reserved[31];
	struct share place[SHARE_PLACES];
};

/** Return: how many places are to be looked at. What servers write there may be anything. */
static inline uint32_t share_count(const struct shares *shares)
{
	const uint32_t used = shares->used;

	return used < SHARE_PLACES ? used : SHARE_PLACES;
}

static inline bool share_is_held(const struct share *share)
{
	for (unsigned i = 0; i < SHARE_SLOTS / 64; i++)
		if (share->holders[i])
			return true;
	return false;
}

static inline void share_clear(struct share *share)
{
	share->bytes = 0;
	share->token[0] = share->token[1] = 0;
	share->state = 0;
}

static inline void share_hold(struct share *share, uint32_t slot)
{
	share->holders[slot / 64] |= (uint64_t)1 << slot % 64;
}

/** A server does not hold it any more. The last one frees the place. */
static inline void share_let_go(struct share *share, uint32_t slot)
{
	share->holders[slot / 64] &= ~((uint64_t)1 << slot % 64);
	/* Often enough for servers that keep to it. */
	for (int i = 0; i < SHARE_TRIES && !share_is_held(share); i++) {
		int32_t ready = SHARE_READY;

		SHARE_BETWEEN(1);
		if (!atomic_compare_exchange_strong(&share->state, &ready, (int32_t)slot + 1))
			return;
		SHARE_BETWEEN(2);
		if (!share_is_held(share)) {
			share_clear(share);
			return;
		}
		SHARE_BETWEEN(3);
		/* Another came meanwhile. If it saw that the place was not ready, it goes again. */
		share->state = SHARE_READY;
	}
}

/** The server of a slot has ended, or is about to begin. */
static inline void share_forget_slot(struct shares *shares, uint32_t slot)
{
	const uint64_t bit = (uint64_t)1 << slot % 64;

	for (uint32_t i = 0; i < share_count(shares); i++) {
		struct share *share = &shares->place[i];
		const bool between = share->state == (int32_t)slot + 1;

		if (!between && !(share->holders[slot / 64] & bit))
			continue;
		if (between)
			share->state = SHARE_READY;
		share_let_go(share, slot);
	}
}

/** Return: what shared memory counts; UINT64_MAX: more than there can be. */
static inline uint64_t share_sum(const struct shares *shares)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < share_count(shares); i++)
		if (__builtin_add_overflow(sum, shares->place[i].bytes, &sum))
			return UINT64_MAX;
	return sum;
}
