/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Objects of the program's that graphs keep. What the driver calls when nobody has one any more, and in whichever
 * thread, tells a thread here, which tells the client: the driver's does not wait for that.
 */

#include <pthread.h>
#include <stdlib.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/request.h"

struct user_object {
	struct user_object *next;
	uint64_t cookie, handle;
};

static pthread_mutex_t user_object_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t user_object_ended = PTHREAD_COND_INITIALIZER;
static struct user_object *user_object_first, **user_object_last = &user_object_first;
static bool user_object_thread_is_there;

static void *user_object_serve(void *nothing)
{
	for (;;) {
		struct user_object *one;

		(void)pthread_mutex_lock(&user_object_mutex);
		while (!user_object_first)
			(void)pthread_cond_wait(&user_object_ended, &user_object_mutex);
		one = user_object_first;
		user_object_first = one->next;
		if (!user_object_first)
			user_object_last = &user_object_first;
		(void)pthread_mutex_unlock(&user_object_mutex);
		callback_reached((void *)one->cookie);
		free(one);
	}
	return nothing;
}

/* The driver may give its name to another at once. */
static void user_object_end(void *data)
{
	struct user_object *one = data;

	if (one->handle)
		handle_drop(one->handle);
	one->next = NULL;
	(void)pthread_mutex_lock(&user_object_mutex);
	*user_object_last = one;
	user_object_last = &one->next;
	(void)pthread_cond_signal(&user_object_ended);
	(void)pthread_mutex_unlock(&user_object_mutex);
}

static bool user_object_begin(void)
{
	pthread_t thread;

	if (!user_object_thread_is_there)
		user_object_thread_is_there = pthread_create(&thread, NULL, user_object_serve, NULL) == 0;
	return user_object_thread_is_there;
}

CUresult serve_cuUserObjectCreate(struct request *q)
{
	CUresult r = driver.cuUserObjectCreate && driver.cuUserObjectRelease ? request_words(q, 3)
									     : CUDA_ERROR_NOT_SUPPORTED;
	struct user_object *one;
	CUuserObject real = 0;

	if (r)
		return r;
	one = user_object_begin() ? calloc(1, sizeof(*one)) : NULL;
	if (!one)
		return CUDA_ERROR_OUT_OF_MEMORY;
	one->cookie = q->argument[0];
	r = driver.cuUserObjectCreate(&real, one, user_object_end, (unsigned)q->argument[1], (unsigned)q->argument[2]);
	if (r) {
		free(one);
		return r;
	}
	one->handle = handle_give(WIRE_OBJECT, real, 0, 0);
	/* It ends here, and the client is told so. */
	if (!one->handle) {
		(void)driver.cuUserObjectRelease(real, (unsigned)q->argument[1]);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	request_reply(q, &one->handle, sizeof(one->handle));
	return CUDA_SUCCESS;
}
