/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shares of a GPU's time. NVIDIA's driver divides it badly: a process with long kernels gets nearly all of it. So while
 * several containers have work for a GPU, one server at a time has its turn there, for some milliseconds, and gives it
 * back when what it has begun is done. ctr-gpu-vcuda-turns decides whose turn it is: that of the container with the
 * least of the GPU's time for its weight. Two servers of one container are one to it.
 *
 * What it measures is its own clock, from where it gives a turn to where it has it back, so nobody can say that it took
 * less. A server that was taken over could begin work out of turn; a container cannot, since the server is not its own.
 *
 * For each container there are two pages: one that its servers write (start_quota.needs), which the decider reads, and
 * this one, which the decider writes and the servers read. Who has no rival reads one word of it.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "vcuda/protocol/start.h"

struct start_turns {
	/* Another number for each time that the decider looked, while there are rivals. */
	_Atomic uint32_t beat;
	/* Of each server, a bit for each of the container's GPUs: where others have work. */
	_Atomic uint32_t rivals[START_QUOTA_SLOTS];
	/* The number of its turn while it is one, or 0. A futex(2). */
	_Atomic uint32_t turn[START_GPUS][START_QUOTA_SLOTS];
	/* Nanoseconds that it has had of turns. */
	_Atomic uint64_t spent[START_GPUS][START_QUOTA_SLOTS];
};

/* In start_quota.needs, what a server says of a GPU. */
enum turn_need {
	TURN_WANTED = 1, /* it waits for its turn */
	TURN_USED = 2,   /* it uses its turn, or what it has begun is not done */
};

/* In start_turns.rivals: how long the GPUs have work is measured, where there is no rival, too. */
#define TURN_MEASURED (1U << 31)

/* Weights: what containers have is as these are to each other. */
enum { TURN_SHARE_USUAL = 100, TURN_SHARE_MOST = 1000 };

/* How the manager talks to the decider, which it starts with nothing but this as descriptor 3, a SOCK_SEQPACKET. */
enum { TURNS_MANAGER = 3, TURNS_CONTAINERS = 256 };

enum turns_order_kind {
	/*
	 * With two descriptors: the container's start_quota, open to be read, and its start_turns. Of one that is there
	 * already: its GPUs are others now.
	 */
	TURNS_ADD = 1,
	TURNS_DROP,
	TURNS_WEIGH,
	TURNS_MEASURE, /* all containers, if the share is not 0 */
};

struct turns_order {
	uint32_t kind;
	uint32_t user; /* which container: that of its servers, which no two have */
	uint32_t share;
	uint32_t gpu_count;
	uint8_t gpus[START_GPUS][16]; /* their UUIDs, as servers count them */
};
