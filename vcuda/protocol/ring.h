/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bells, and a ring of commands between a client and its server, in memory that both map.
 *
 * A bell is a value that one side writes and the other waits for. Waiting spins for a while and then sleeps on a futex;
 * a writer wakes only a side that sleeps. It relies on the fences: each side writes its own word before it reads the
 * other's, so at least one of both sees what the other did.
 * vcuda/test/unit/protocol/ring_test.c tries every order of the steps, with stores that reach memory late.
 *
 * Either side may be hostile. A side keeps its own count and takes the other's value once; a wrong one costs a wait or
 * a wake-up too many, or ends the connection.
 */

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "vcuda/protocol/spin.h"

/*
 * Where both sides write often, their words are two cache lines apart. Processors fetch lines in pairs, so with less a
 * write by one side would take the other side's line from its processor.
 */
enum { BELL_APART = 128 };

struct bell {
	_Atomic uint32_t value;
	_Atomic uint32_t sleeps;
};

/* The steps, which the test replaces by its own. */
#ifndef BELL_LOAD
#define BELL_LOAD(word) atomic_load_explicit(word, memory_order_acquire)
#define BELL_STORE(word, to) atomic_store_explicit(word, to, memory_order_release)
#define BELL_FENCE() atomic_thread_fence(memory_order_seq_cst)
#define BELL_SLEEP(word, old, time) \
	((void)syscall(SYS_futex, (uint32_t *)(word), FUTEX_WAIT, (old), (const struct timespec *)(time), NULL, 0))
#define BELL_WAKE(word) ((void)syscall(SYS_futex, (uint32_t *)(word), FUTEX_WAKE, 1, NULL, NULL, 0))
#endif

/** Wakes the other side if it sleeps. Write the value before. */
static inline void bell_wake(struct bell *bell)
{
	BELL_FENCE();
	if (BELL_LOAD(&bell->sleeps) == 0)
		return;
	BELL_STORE(&bell->sleeps, 0);
	BELL_WAKE(&bell->sleeps);
}

/** Writes a value and wakes the other side if it sleeps. */
static inline void bell_ring(struct bell *bell, uint32_t value)
{
	BELL_STORE(&bell->value, value);
	bell_wake(bell);
}

/** Sleeps unless the value is another than @seen; may return early. @time: at most; NULL: for ever. */
static inline void bell_sleep(struct bell *bell, uint32_t seen, const struct timespec *time)
{
	BELL_STORE(&bell->sleeps, 1);
	BELL_FENCE();
	if (BELL_LOAD(&bell->value) == seen)
		BELL_SLEEP(&bell->sleeps, 1, time);
	BELL_STORE(&bell->sleeps, 0);
}

/** Spins until the value is another than @seen, for @nanoseconds. Return: whether it is. */
static inline bool bell_spin(struct bell *bell, uint32_t seen, long nanoseconds)
{
	struct spin spin;

	if (BELL_LOAD(&bell->value) != seen)
		return true;
	spin = spin_begin(nanoseconds);
	while (spin_goes_on(&spin))
		for (int i = 0; i < 64; i++) {
			if (BELL_LOAD(&bell->value) != seen)
				return true;
			spin_pause();
		}
	return false;
}

/**
 * How long to spin the next time, after a wait of @waited nanoseconds that ended in sleep. Who is asked soon after it
 * fell asleep is likely to be asked so again, and whoever sleeps wakes late: @most, if that would have sufficed, or
 * @least.
 */
static inline long bell_learn(long waited, long least, long most)
{
	return waited < most ? most : least;
}

/* Counts and lengths of the command area are in units of this many bytes, and wrap. */
enum { RING_UNIT = 64, RING_UNITS = 16384 };

/* head: how much the client has written; tail: how much the server has done. */
struct ring {
	_Alignas(BELL_APART) struct bell head;
	_Alignas(BELL_APART) struct bell tail;
};

/** Return: how many units lie between two counts. */
static inline uint32_t ring_distance(uint32_t tail, uint32_t head)
{
	return head - tail;
}
