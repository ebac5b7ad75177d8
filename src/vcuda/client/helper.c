/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/client/helper.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

#pragma weak pthread_create

bool helper_can_start(void)
{
	return pthread_create != NULL;
}

/* What a thread's own instructions raise ends the process if it is blocked, whatever the program wants done then. */
static void helper_fill(sigset_t *ret)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};

	(void)sigfillset(ret);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		(void)sigdelset(ret, own[i]);
}

bool helper_start(void *(*run)(void *data), void *data)
{
	sigset_t all, before;
	pthread_t thread;
	int r;

	if (!helper_can_start())
		return false;
	/* Of the calling thread alone; the function of that name is in the library of threads. */
	helper_fill(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, NULL, run, data);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return r == 0;
}
