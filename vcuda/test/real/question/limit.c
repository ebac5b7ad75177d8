/* SPDX-License-Identifier: Apache-2.0 */

/* Limits: what a new context has, and what each can be set to. */

#include <stdio.h>

#include "question.h"

enum { LIMITS = 12, VALUES = 5 };

static const size_t values[VALUES] = {0, 1, 3, 4096, (size_t)1 << 20};

struct limit {
	int got, set[VALUES], then[VALUES];
	size_t value, becomes[VALUES];
};

static void limit_try(const void *about, void *ret)
{
	const int number = *(const int *)about;
	struct limit *limit = ret;

	(void)driver_begin();
	limit->got = cu.cuCtxGetLimit(&limit->value, number);
	for (int i = 0; i < VALUES; i++) {
		limit->set[i] = cu.cuCtxSetLimit(number, values[i]);
		limit->then[i] = cu.cuCtxGetLimit(&limit->becomes[i], number);
	}
}

/* One process for each: what is set stays. */
void ask_limits(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (int number = 0; number < LIMITS; number++) {
		struct limit limit = {0};
		char line[512] = "";
		int used = 0, r = alone(limit_try, &number, &limit, sizeof(limit));

		for (int i = 0; i < VALUES; i++)
			used += snprintf(line + used, sizeof(line) - (size_t)used, "; %zu: %d %d %zu", values[i],
					 limit.set[i], limit.then[i], limit.becomes[i]);
		answer(r == 0, "%d: %d %zu; set to%s", number, limit.got, limit.value, line + 1);
	}
}
