/* SPDX-License-Identifier: Apache-2.0 */

/* Host functions: the driver's thread that has reached one tells the client its number, and waits. */

#include <pthread.h>
#include <stdlib.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/request.h"

static pthread_mutex_t callback_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t callback_given;

static void callback_give(uint64_t cookie, CUresult status)
{
	struct wire_callback *call;
	uint32_t number;

	(void)pthread_mutex_lock(&callback_mutex);
	number = callback_given++;
	call = &server.wire->callback[number % WIRE_CALLBACKS];
	call->cookie = cookie;
	call->status = (int32_t)status;
	bell_ring(&server.wire->calls, callback_given);
	/* One after the other, as the driver has one thread for them. */
	while (BELL_LOAD(&call->done.value) != number + 1) {
		const uint32_t seen = BELL_LOAD(&call->done.value);

		if (seen != number + 1 && !bell_spin(&call->done, seen, server.spin))
			bell_sleep(&call->done, seen, NULL);
	}
	(void)pthread_mutex_unlock(&callback_mutex);
}

static void callback_reached(void *cookie)
{
	callback_give((uint64_t)cookie, CUDA_SUCCESS);
}

/* Of the older kind, which the driver calls in a failed context, too. */
static void callback_reached_with_status(CUstream stream, CUresult status, void *cookie)
{
	(void)stream;
	callback_give((uint64_t)cookie, status);
}

/* Of a node that the client made, whose data is the number; one of another's making has none. */
CUresult serve_cuGraphHostNodeGetParams(struct request *q)
{
	CUresult r = driver.cuGraphHostNodeGetParams ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;
	CUDA_HOST_NODE_PARAMS parameters = {0};
	uint64_t node = 0, cookie;

	if (!r)
		r = request_handle(q, 0, WIRE_NODE, &node);
	if (!r)
		r = driver.cuGraphHostNodeGetParams(node, &parameters);
	if (!r && parameters.fn != callback_reached)
		r = CUDA_ERROR_NOT_SUPPORTED;
	cookie = (uint64_t)parameters.userData;
	if (!r)
		request_reply(q, &cookie, sizeof(cookie));
	return r;
}

CUresult serve_cuLaunchHostFunc(struct request *q)
{
	CUresult r = driver.cuLaunchHostFunc ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	CUstream stream = 0;

	if (!r)
		r = request_stream(q, 0, &stream);
	return r ? r : driver.cuLaunchHostFunc(stream, callback_reached, (void *)q->argument[1]);
}

CUresult serve_cuStreamAddCallback(struct request *q)
{
	CUresult r = driver.cuStreamAddCallback ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	CUstream stream = 0;

	if (!r)
		r = request_stream(q, 0, &stream);
	return r ? r : driver.cuStreamAddCallback(stream, callback_reached_with_status, (void *)q->argument[1], 0);
}

/* What the client sent in place of the function is not looked at. */
CUresult callback_check_host(CUDA_HOST_NODE_PARAMS *parameters)
{
	parameters->fn = callback_reached;
	return CUDA_SUCCESS;
}

/* ---- user objects ---- */

/*
 * Objects of the program's that graphs keep. When the last graph drops one, the driver calls a function in any thread.
 * That passes it on to a thread here, which informs the client, so the driver's thread does not wait for the client.
 */

struct callback_object {
	struct callback_object *next;
	uint64_t cookie, handle;
};

static pthread_mutex_t callback_object_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t callback_object_ended = PTHREAD_COND_INITIALIZER;
static struct callback_object *callback_object_first, **callback_object_last = &callback_object_first;
static bool callback_object_thread_is_there;

static void *callback_object_serve(void *nothing)
{
	for (;;) {
		struct callback_object *one;

		(void)pthread_mutex_lock(&callback_object_mutex);
		while (!callback_object_first)
			(void)pthread_cond_wait(&callback_object_ended, &callback_object_mutex);
		one = callback_object_first;
		callback_object_first = one->next;
		if (!callback_object_first)
			callback_object_last = &callback_object_first;
		(void)pthread_mutex_unlock(&callback_object_mutex);
		callback_reached((void *)one->cookie);
		free(one);
	}
	return nothing;
}

/* The driver may give its name to another at once. */
static void callback_object_end(void *data)
{
	struct callback_object *one = data;

	if (one->handle)
		handle_drop(one->handle);
	one->next = NULL;
	(void)pthread_mutex_lock(&callback_object_mutex);
	*callback_object_last = one;
	callback_object_last = &one->next;
	(void)pthread_cond_signal(&callback_object_ended);
	(void)pthread_mutex_unlock(&callback_object_mutex);
}

static bool callback_object_begin(void)
{
	pthread_t thread;

	if (!callback_object_thread_is_there)
		callback_object_thread_is_there = pthread_create(&thread, NULL, callback_object_serve, NULL) == 0;
	return callback_object_thread_is_there;
}

CUresult serve_cuUserObjectCreate(struct request *q)
{
	CUresult r = driver.cuUserObjectCreate && driver.cuUserObjectRelease ? request_words(q, 3)
									     : CUDA_ERROR_NOT_SUPPORTED;
	struct callback_object *one;
	CUuserObject real = 0;

	if (r)
		return r;
	one = callback_object_begin() ? calloc(1, sizeof(*one)) : NULL;
	if (!one)
		return CUDA_ERROR_OUT_OF_MEMORY;
	one->cookie = q->argument[0];
	r = driver.cuUserObjectCreate(&real, one, callback_object_end, (unsigned)q->argument[1],
				      (unsigned)q->argument[2]);
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
