/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/client/background.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

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
