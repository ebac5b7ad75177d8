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
	__u32 size;    /* of the arguments */
	__u32 missing; /* whether some of their pages are not there, so that the driver's copy of them may wait */
};

/**
 * request_look() - whether it may be asked
 *
 * What names an adapter, and all before it, has to be in memory: otherwise a process could hold a page back, and the
 * driver would read what we did not see. Notes the list of an enumeration.
 *
 * Return: 0 or negative errno.
 */
int request_look(struct request *request);

/** Whether what names an adapter names one of the choice, or the call names none. Return: 0; -EINVAL; -EFAULT. */
int request_check(const struct request *request);

/** How far into the arguments a LUID ends; 0: the call has none. A handle may mean another adapter a while later. */
__u32 request_luid_end(const struct request *request);

/** Begins to describe a call. */
void request_begin(struct request *request, unsigned int command, unsigned long arguments);

/** Whether the list of an enumeration is another one than was noted; false if it cannot be read. */
bool request_is_exchanged(const struct request *request);

/** Whether a handle of the process means an adapter that is not in the choice. */
bool request_hides(const struct guard_key *who, struct dxgprocess *process, __u32 handle);
