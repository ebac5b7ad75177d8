/* SPDX-License-Identifier: Apache-2.0 */

/* Host functions: the driver's thread that has reached one tells the client its number, and waits. */

#include <pthread.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/request.h"

static pthread_mutex_t callback_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t callback_given;

void callback_reached(void *cookie)
{
	struct wire_callback *call;
	uint32_t number;

	(void)pthread_mutex_lock(&callback_mutex);
	number = callback_given++;
	call = &server.wire->callback[number % WIRE_CALLBACKS];
	call->cookie = (uint64_t)cookie;
	bell_ring(&server.wire->calls, callback_given);
	/* One after the other, as the driver has one thread for them. */
	while (BELL_LOAD(&call->done.value) != number + 1) {
		const uint32_t seen = BELL_LOAD(&call->done.value);

		if (seen != number + 1 && !bell_spin(&call->done, seen, server.spin))
			bell_sleep(&call->done, seen, NULL);
	}
	(void)pthread_mutex_unlock(&callback_mutex);
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

/* What the client sent in place of the function is not looked at. */
CUresult callback_check_host(CUDA_HOST_NODE_PARAMS *parameters)
{
	parameters->fn = callback_reached;
	return CUDA_SUCCESS;
}
