/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The calling thread: its place for replies, and its stack of contexts. */

#include "vcuda/client/client.h"

struct context {
	uint64_t handle;
	CUdevice device;
	unsigned flags;
	unsigned attached; /* by cuCtxAttach() */
	bool primary;
	_Atomic bool gone;
	struct context *next;
};

enum { THREAD_CONTEXTS = 64 };

struct thread {
	_Atomic int id; /* of the kernel; 0: nobody's */
	uint32_t slot, sequence;
	bool calls_back; /* it runs host functions, which may not call the driver */
	int depth;
	struct context *stack[THREAD_CONTEXTS]; /* not freed while the process lives */
};

/** Return: the calling thread's; NULL if there are too many threads. */
struct thread *thread_self(void);

/** No thread is about to get its place. */
void thread_forget(void);

/** Return: the current context of a thread, or NULL. */
static inline struct context *thread_context(const struct thread *thread)
{
	return thread->depth > 0 ? thread->stack[thread->depth - 1] : NULL;
}
