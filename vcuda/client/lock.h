/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A mutex on a futex: the C library's differ from one to the next, and some want a library that is not loaded. */

#include "vcuda/protocol/ring.h"

struct lock {
	_Atomic uint32_t state; /* 0: free; 1: taken; 2: taken, and somebody sleeps */
};

static inline void lock_take(struct lock *lock)
{
	uint32_t old = 0;

	if (atomic_compare_exchange_strong(&lock->state, &old, 1))
		return;
	while (atomic_exchange(&lock->state, 2) != 0)
		BELL_SLEEP(&lock->state, 2, NULL);
}

/** Return: whether it was free. */
static inline bool lock_try(struct lock *lock)
{
	uint32_t old = 0;

	return atomic_compare_exchange_strong(&lock->state, &old, 1);
}

static inline void lock_release(struct lock *lock)
{
	if (atomic_exchange(&lock->state, 0) == 2)
		BELL_WAKE(&lock->state);
}

static inline void lock_releasep(struct lock *const *lock)
{
	lock_release(*lock);
}

/* Until the end of the block. */
#define LOCK_HOLD(which) \
	struct lock *const held __attribute__((cleanup(lock_releasep), unused)) = (lock_take(which), (which))
