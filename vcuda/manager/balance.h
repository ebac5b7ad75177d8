/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Containers that move by themselves: where a GPU has had more work than another of its model for long, and the work of
 * one container is what makes the difference, that one goes there. Here is what is decided, by what was measured;
 * balance.c has the rest.
 *
 * What is compared is the GPU that has more of both, before and afterwards. So a container that is alone with its work
 * never moves: its new GPU would have as much as the old one had. Nor does one go to and fro: it goes only where a good
 * part is gained, and stays there for long (BALANCE_STAY_TIMES).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	BALANCE_GPUS = 64,
	BALANCE_ALL = 1000,                 /* of a GPU's time */
	BALANCE_LEAST = BALANCE_ALL / 5,    /* so much less must the GPU with more work have */
	BALANCE_STAY_TIMES = 10,            /* as long as the load was unlike, and */
	BALANCE_STAY_LEAST_MS = 600 * 1000, /* so long at least, one stays that was moved, or could not be */
};

/* What a container has on one GPU. */
struct balance_part {
	unsigned on;     /* which GPU */
	unsigned load;   /* of that one's time, in thousandths */
	uint64_t reach;  /* a bit for each GPU that it may be moved to */
	uint64_t memory; /* that would be moved with it */
};

/* Whom a part is to be moved to, and what for. */
struct balance_gain {
	unsigned to, gain; /* 0: nowhere */
};

/** balance_measure() - @loads: of BALANCE_GPUS, in thousandths. Return: the best that can be had by moving one. */
struct balance_gain balance_measure(const unsigned *loads, const struct balance_part *part);

/** Whether one of two, both worth it, is the better one to begin with: it gains more, or as much with less to move. */
bool balance_is_better(const struct balance_part *one, unsigned gain, const struct balance_part *other,
		       unsigned other_gain);
