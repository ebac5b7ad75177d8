/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Nobody says when a thread ends: what could, pthread_key_create(), is in a library of its own in older C libraries.
 * So a place is taken over when its thread is found dead, or when a thread comes with the number of one that was.
 */

#include "vcuda/client/client.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "vcuda/client/call.h"

static struct lock thread_lock;
static struct thread threads[WIRE_SLOTS];
static __thread struct thread *thread_own;

static bool thread_is_dead(int id)
{
	return syscall(SYS_tgkill, syscall(SYS_getpid), id, 0) < 0 && errno == ESRCH;
}

bool thread_has_ended(uint32_t slot)
{
	const int id = threads[slot].id;

	return id != 0 && thread_is_dead(id);
}

/* What a thread that was cancelled waits for may still come. */
static bool thread_has_answer(const struct thread *thread)
{
	return BELL_LOAD(&client.wire->reply[thread->slot].done.value) == thread->sequence;
}

static struct thread *thread_take(int id)
{
	struct thread *dead = NULL;

	for (uint32_t i = 0; i < WIRE_SLOTS; i++) {
		struct thread *thread = &threads[i];

		if (thread->id == 0 || (thread->id == id && thread_has_answer(thread))) {
			thread->slot = i;
			return thread;
		}
	}
	for (uint32_t i = 0; i < WIRE_SLOTS && !dead; i++)
		if (thread_is_dead(threads[i].id) && thread_has_answer(&threads[i]))
			dead = &threads[i];
	return dead;
}

/* What the driver keeps for a thread, and what failed, was the one's that had the place. */
static void thread_renew(struct thread *thread)
{
	client.wire->reply[thread->slot].deferred = 0;
	if (call_begin(thread, WIRE_THREAD, 0, 0, false))
		call_end();
}

/* Once, on stderr: what its calls fail with says nothing of threads. */
static void thread_warn(void)
{
	static const char text[] = "ctr-gpu: vCUDA: more than 1024 threads of this program call CUDA; those above get "
				   "CUDA_ERROR_OUT_OF_MEMORY until others end\n";
	static _Atomic bool said;

	_Static_assert(WIRE_SLOTS == 1024, "as the text says");
	if (!atomic_exchange(&said, true) && write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		return;
}

/* In its first call. */
static __attribute__((noinline)) struct thread *thread_begin(void)
{
	const int id = (int)syscall(SYS_gettid);
	struct thread *thread;
	bool used;

	lock_take(&thread_lock);
	thread = thread_take(id);
	used = thread && thread->id != 0;
	if (thread) {
		thread->id = id;
		thread->depth = 0;
		thread->calls_back = false;
		thread->unwatched = false;
	}
	lock_release(&thread_lock);
	thread_own = thread;
	if (!thread)
		thread_warn();
	if (used)
		thread_renew(thread);
	return thread;
}

struct thread *thread_self(void)
{
	return thread_own ? thread_own : thread_begin();
}

void thread_forget(void)
{
	thread_lock = (struct lock){0};
	/* The next server's replies count from there. */
	for (uint32_t i = 0; i < WIRE_SLOTS; i++)
		threads[i].sequence = 0;
}

#pragma weak pthread_create

bool background_can_start(void)
{
	return pthread_create != NULL;
}

/* What a thread's own instructions raise ends the process if it is blocked, whatever the program wants done then. */
static void background_fill(sigset_t *ret)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};

	(void)sigfillset(ret);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		(void)sigdelset(ret, own[i]);
}

bool background_start(void *(*run)(void *data), void *data)
{
	sigset_t all, before;
	pthread_t thread;
	int r;

	if (!background_can_start())
		return false;
	/* Of the calling thread alone; the function of that name is in the library of threads. */
	background_fill(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, NULL, run, data);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return r == 0;
}
