/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once

/* What a guarded thread asks the driver, read from its memory before the driver does. */

#include "guard/bpf/kernel.h"
#include "guard/layout.h"

struct request {
	struct guard_key key;
	__u64 process;   /* the driver's object for the caller, struct dxgprocess */
	__u64 arguments; /* the caller's */
	__u64 list;      /* of an enumeration: the caller's array, and its room */
	__u32 room;
	__u32 number;
};

/**
 * request_look() - whether it may be asked; what cannot be read now may not
 *
 * Notes the list of an enumeration.
 *
 * Return: 0 or negative errno.
 */
int request_look(struct request *request);

/** Whether a handle of the process means an adapter that is not in the choice. */
bool request_hides(const struct guard_key *who, struct dxgprocess *process, __u32 handle);
