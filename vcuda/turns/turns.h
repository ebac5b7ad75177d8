/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose turn it is (vcuda/protocol/turns.h). A stride scheduler: what a container has had of a GPU's time, divided by
 * its weight, is its pass, and the turn goes to the least one of those that wait. A container that was away has no
 * claim to what it did not use: its pass is at least the one of the container with the last turn.
 *
 * Nothing that servers write is trusted: it says which of them wait, and when they are done. One that does not say so
 * is waited for once, and then others have their turns beside it; what it has begun is counted on, as if it had turns,
 * up to half a second: the driver may have held it up, and then it had nothing of that.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vcuda/protocol/turns.h"

enum {
	TURNS_GPUS = 64,
	TURNS_SERVERS = 256, /* of a GPU; more go without turns */
	TURNS_LONG_US = 8000,
	TURNS_SHORT_US = 1000,   /* of one whose last turn's work is not done */
	TURNS_TAKE_US = 20000,   /* for a server to begin with its turn */
	TURNS_GRACE_US = 100000, /* for what it has begun, behind its turn's end */
	TURNS_QUIET_US = 50000,  /* so long without a rival, a server needs no turns */
	TURNS_CLAIM_US = 200000, /* to what others had, who needed it as much */
	TURNS_DEBT_US = 500000,  /* that others have before whoever had more */
	TURNS_SCAN_US = 5000,
};

struct turns;

struct turns *turns_new(void);

/** Nobody waits for turns any more. */
void turns_free(struct turns *turns);

/**
 * turns_add() - a container
 * @order: who, its weight and GPUs
 *
 * The pages are borrowed until turns_drop(). Return: 0; -ENOSPC; -ENOMEM.
 */
int turns_add(struct turns *turns, const struct turns_order *order, const struct start_quota *quota,
	      struct start_turns *page);

/** Its servers need no turns any more. @ret_quota, @ret_page: of turns_add(). Return: whether there is such a one. */
bool turns_drop(struct turns *turns, uint32_t user, const struct start_quota **ret_quota,
		struct start_turns **ret_page);

void turns_weigh(struct turns *turns, uint32_t user, uint32_t share);

/** Whether servers are to measure how long GPUs have work. */
void turns_measure(struct turns *turns, bool measured);

/** turns_look() - do what is to be done. @now: microseconds. Return: when to look again; INT64_MAX: never by itself. */
int64_t turns_look(struct turns *turns, int64_t now);
