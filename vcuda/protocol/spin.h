/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Spinning, of threads that wait for what another process writes, on processors that nobody else wants: a program
 * may have as many threads as there are processors, and they may spin, too, as OpenMP's do.
 */

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

static inline void spin_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Nanoseconds */
enum {
	SPIN_POLITE = 20000,     /* a thread that spins for longer yields to others */
	SPIN_LATE = 50000,       /* a pause this long shows that others want the processor, */
	SPIN_CROWDED = 20000000, /* which is assumed for so long after it; */
	SPIN_SHORT = 5000,       /* meanwhile a thread spins for so long only */
};

/** Until when threads of this process spin for a short time only. Weak: one, whichever files include this. */
__attribute__((weak, visibility("hidden"))) _Atomic int64_t spin_crowded;

struct spin {
	int64_t began, last, until;
	bool late; /* it ended since others had the processor */
};

/* @nanoseconds: 0: not at all */
static inline struct spin spin_begin(long nanoseconds)
{
	const int64_t now = nanoseconds > 0 ? clock_now_ns() : 0;
	const bool crowded = now < atomic_load_explicit(&spin_crowded, memory_order_relaxed);

	return (struct spin){now, now, now + (crowded && nanoseconds > SPIN_SHORT ? SPIN_SHORT : nanoseconds), false};
}

/** Return: whether to go on, to be asked each time that what is waited for is not there. */
static inline bool spin_goes_on(struct spin *spin)
{
	int64_t now;

	if (spin->until == 0)
		return false;
	now = clock_now_ns();
	if (now - spin->last > SPIN_LATE) {
		atomic_store_explicit(&spin_crowded, now + SPIN_CROWDED, memory_order_relaxed);
		spin->late = true;
		return false;
	}
	spin->last = now;
	if (now >= spin->until)
		return false;
	if (now - spin->began > SPIN_POLITE)
		(void)sched_yield();
	return true;
}
