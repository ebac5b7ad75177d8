/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The monotonic clock: setting the time of day does not move it. */

#include <stdint.h>
#include <time.h>

static inline int64_t clock_now_ns(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/** The time of day, which may be set; all containers of a host have the same. */
static inline int64_t clock_day_ns(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t clock_now_us(void)
{
	return clock_now_ns() / 1000;
}

static inline int64_t clock_now_ms(void)
{
	return clock_now_ns() / 1000000;
}
