/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a container may have by vCUDA: as the settings say it, as its plan has it, as the manager is asked and keeps it.
 * One that is added is added here, and where it is read, sent (vcuda/protocol/control.c), kept and shown.
 */

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

struct vcuda_limits {
	uint64_t memory;      /* of its GPUs together, with a share (base/str.h); 0: what they have */
	uint64_t host_memory; /* of the host, for its servers; 0: half of it */
	unsigned max_clients; /* processes of it that use CUDA at once */
	unsigned idle;        /* seconds of rest after which it is suspended; 0: never */
	unsigned share;       /* of its GPUs' time, in proportion to others'; 0: as usual, 100 */
	unsigned balance;     /* seconds of unlike load after which it may be moved to another GPU; 0: never */
};

/* Which of them are meant. */
enum vcuda_limit {
	VCUDA_LIMIT_MEMORY = 1,
	VCUDA_LIMIT_HOST_MEMORY = 2,
	VCUDA_LIMIT_MAX_CLIENTS = 4,
	VCUDA_LIMIT_IDLE = 8,
	VCUDA_LIMIT_SHARE = 16,
	VCUDA_LIMIT_BALANCE = 32,
};

enum { VCUDA_LIMIT_LONGEST_S = 30 * 24 * 3600 /* of those that are seconds */ };

/** Adds what lists and the audit show of them to an object, which may be NULL without memory. Return: the object. */
json_t *vcuda_limits_pack(const struct vcuda_limits *limits, json_t *object);

/** Prints the same in a line for people, without the host's. */
void vcuda_limits_print(const struct vcuda_limits *limits, FILE *file);

/** Return: an object for a file, of which vcuda_limits_read() makes the same limits; NULL without memory. */
json_t *vcuda_limits_write(const struct vcuda_limits *limits);

/** What is not there is 0, and the share as usual. */
struct vcuda_limits vcuda_limits_read(const json_t *object);
