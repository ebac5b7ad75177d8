/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Nobody says when a thread ends: what could, pthread_key_create(), is in a library of its own in older C libraries.
 * So a place is taken over when its thread is found dead, or when a thread comes with the number of one that was.
 */

#include "vcuda/client/thread.h"

#include <errno.h>
#include <signal.h>

static struct lock thread_lock;
static struct thread threads[WIRE_SLOTS];
static __thread struct thread *thread_own;

static bool thread_is_dead(int id)
{
	return syscall(SYS_tgkill, syscall(SYS_getpid), id, 0) < 0 && errno == ESRCH;
}

static struct thread *thread_take(int id)
{
	struct thread *dead = NULL;

	for (uint32_t i = 0; i < WIRE_SLOTS; i++) {
		struct thread *thread = &threads[i];

		if (thread->id == 0 || thread->id == id) {
			thread->slot = i;
			return thread;
		}
	}
	for (uint32_t i = 0; i < WIRE_SLOTS && !dead; i++)
		if (thread_is_dead(threads[i].id))
			dead = &threads[i];
	return dead;
}

/* In its first call. */
static __attribute__((noinline)) struct thread *thread_begin(void)
{
	const int id = (int)syscall(SYS_gettid);
	struct thread *thread;

	LOCK_HOLD(&thread_lock);
	thread = thread_take(id);
	if (!thread)
		return NULL;
	thread->id = id;
	thread->depth = 0;
	thread->calls_back = false;
	thread_own = thread;
	return thread;
}

struct thread *thread_self(void)
{
	return thread_own ? thread_own : thread_begin();
}

void thread_forget(void)
{
	thread_lock = (struct lock){0};
}
