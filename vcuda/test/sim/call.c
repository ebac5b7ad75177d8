/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How every call begins and ends: faults that the configuration asks for, whether the driver was initialized in this very
 * process, the lock. FAULTS is a list of NAME@N=WHAT: at the n-th call of NAME (or at every one, "*") it returns the error
 * WHAT, or "hang" or "crash".
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

enum { FAULTS_MAX = 16 };

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t sim_changed = PTHREAD_COND_INITIALIZER;
_Thread_local bool sim_own_default;
_Thread_local bool sim_in_callback;

static struct fault {
	char name[64];
	unsigned at, seen; /* at 0: every time */
	int result;        /* -1 hangs, -2 crashes */
} faults[FAULTS_MAX];
static unsigned fault_count;
static pthread_once_t faults_once = PTHREAD_ONCE_INIT;
static pid_t initialized;

static void call_read_faults(void)
{
	const char *value = config_value("FAULTS");
	char *text = value ? strdup(value) : NULL, *rest = NULL;

	for (char *one = text ? strtok_r(text, ";, ", &rest) : NULL; one && fault_count < FAULTS_MAX;
	     one = strtok_r(NULL, ";, ", &rest)) {
		struct fault *fault = &faults[fault_count];
		char at[16], what[16];

		if (sscanf(one, "%63[^@]@%15[^=]=%15s", fault->name, at, what) != 3)
			continue;
		fault->at = at[0] == '*' ? 0 : (unsigned)strtoul(at, NULL, 10);
		fault->result = strcmp(what, "hang") == 0    ? -1
				: strcmp(what, "crash") == 0 ? -2
							     : (int)strtol(what, NULL, 10);
		fault_count++;
	}
	free(text);
}

CUresult call_fault(const char *name)
{
	(void)pthread_once(&faults_once, call_read_faults);
	for (unsigned i = 0; i < fault_count; i++) {
		if (strcmp(faults[i].name, name) != 0)
			continue;
		if (faults[i].at && __atomic_add_fetch(&faults[i].seen, 1, __ATOMIC_RELAXED) != faults[i].at)
			continue;
		if (faults[i].result == -1)
			for (;;)
				(void)pause();
		if (faults[i].result == -2)
			(void)raise(SIGSEGV);
		return faults[i].result;
	}
	return CUDA_SUCCESS;
}

bool call_initialized(void)
{
	return initialized == getpid();
}

CUresult call_enter(const char *name)
{
	CUresult r = call_fault(name);

	if (r)
		return r;
	if (!call_initialized())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (sim_in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	(void)pthread_mutex_lock(&sim_lock);
	while (sim_locked)
		(void)pthread_cond_wait(&sim_changed, &sim_lock);
	return CUDA_SUCCESS;
}

CUresult call_enter_context(const char *name, CUcontext *ret)
{
	CUresult r = call_enter(name);

	if (r)
		return r;
	*ret = context_current();
	if (!*ret)
		return call_leave(CUDA_ERROR_INVALID_CONTEXT);
	if (!object_is(*ret, OBJECT_CONTEXT))
		return call_leave(CUDA_ERROR_CONTEXT_IS_DESTROYED);
	if ((*ret)->sticky) {
		print_flush();
		return call_leave((*ret)->sticky);
	}
	return CUDA_SUCCESS;
}

CUresult call_leave(CUresult r)
{
	(void)pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuInit(unsigned flags)
{
	CUresult r = call_fault(__func__);

	if (r)
		return r;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (initialized)
		return call_initialized() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
	(void)pthread_mutex_lock(&sim_lock);
	r = device_init();
	if (!r) {
		initialized = getpid();
		checkpoint_begin();
	}
	return call_leave(r);
}

CUresult cuDriverGetVersion(int *ret)
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (int)config_number("VERSION", 13000);
	return CUDA_SUCCESS;
}
