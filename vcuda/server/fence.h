/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Marks behind what a stream has to do. */

#include "vcuda/server/request.h"

/* What a thread of the client waits for; each waits for one thing at a time, so its slot names it. */
struct fence {
	uint64_t stream, context;
	uint64_t request;          /* the number of the one that waits */
	_Atomic uint32_t *numbers; /* where it is written, once it is */
	uint32_t number;
	unsigned looks;
	bool written;
};

/** A thread begins to wait for a stream of a context. Return: its slot. */
uint64_t fence_begin(const struct request *q, CUstream stream, uint64_t context);

/** Return: what cuStreamQuery() would. */
CUresult fence_query(uint64_t slot);

/** Return: what the thread waits for. */
const struct fence *fence_of(uint64_t slot);

struct fence_page;

/** A context is about to end: nobody waits in it any more. Return: what is to be freed when it has. */
struct fence_page *fence_take_context(uint64_t context);
void fence_free(struct fence_page *page);
