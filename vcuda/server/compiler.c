/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/server/code.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"

enum { COMPILER_STACK = 64 << 20 };

struct errand {
	CUresult (*work)(void *user);
	void *user;
	uint64_t context;
	CUresult r;
	bool done;
};

static pthread_mutex_t compiler_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t compiler_changed = PTHREAD_COND_INITIALIZER;
static struct errand *compiler_errand; /* until it is done */
static bool compiler_runs;

static CUresult compiler_run(const struct errand *errand)
{
	CUresult r = driver.cuCtxSetCurrent(errand->context);

	if (r)
		return r;
	r = errand->work(errand->user);
	(void)driver.cuCtxSetCurrent(0);
	return r;
}

static void *compiler_serve(void *unused)
{
	(void)pthread_mutex_lock(&compiler_mutex);
	for (;;) {
		struct errand *errand = compiler_errand;

		if (!errand || errand->done) {
			(void)pthread_cond_wait(&compiler_changed, &compiler_mutex);
			continue;
		}
		(void)pthread_mutex_unlock(&compiler_mutex);
		errand->r = compiler_run(errand);
		(void)pthread_mutex_lock(&compiler_mutex);
		errand->done = true;
		(void)pthread_cond_broadcast(&compiler_changed);
	}
	return unused;
}

static bool compiler_start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (compiler_runs)
		return true;
	if (pthread_attr_init(&attributes) != 0)
		return false;
	(void)pthread_attr_setstacksize(&attributes, COMPILER_STACK);
	compiler_runs = pthread_create(&thread, &attributes, compiler_serve, NULL) == 0;
	(void)pthread_attr_destroy(&attributes);
	return compiler_runs;
}

CUresult compiler_do(CUresult (*work)(void *user), void *user, uint64_t context)
{
	struct errand errand = {.work = work, .user = user, .context = context, .r = CUDA_ERROR_OUT_OF_MEMORY};

	(void)pthread_mutex_lock(&compiler_mutex);
	while (compiler_errand)
		(void)pthread_cond_wait(&compiler_changed, &compiler_mutex);
	if (compiler_start()) {
		compiler_errand = &errand;
		(void)pthread_cond_broadcast(&compiler_changed);
		while (!errand.done)
			(void)pthread_cond_wait(&compiler_changed, &compiler_mutex);
		compiler_errand = NULL;
		(void)pthread_cond_broadcast(&compiler_changed);
	}
	(void)pthread_mutex_unlock(&compiler_mutex);
	return errand.r;
}
