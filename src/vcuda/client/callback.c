/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Host functions. The server's driver reaches one in a thread of its own, which tells us a number; a thread here, made
 * when the first is launched, runs what we keep under that number, and the driver's thread goes on.
 */

#include <pthread.h>
#include <stdlib.h>

#include "vcuda/client/call.h"
#include "vcuda/client/context.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

enum { CALLBACKS = 16384 };

#pragma weak pthread_create

static struct lock callback_lock;
static bool callback_thread_is_there;
static struct {
	CUhostFn function;
	void *data;
	bool stays; /* in a graph, which may run again */
} callbacks[CALLBACKS];
static uint32_t callback_next;

static void callback_run(struct wire_callback *call)
{
	const uint64_t cookie = CLIENT_READ(call->cookie);
	CUhostFn function = NULL;
	void *data = NULL;

	if (cookie >= CALLBACKS)
		return;
	lock_take(&callback_lock);
	function = callbacks[cookie].function;
	data = callbacks[cookie].data;
	if (!callbacks[cookie].stays)
		callbacks[cookie].function = NULL;
	lock_release(&callback_lock);
	if (function)
		function(data);
}

static void *callback_serve(void *nothing)
{
	struct bell *calls = &client.wire->calls;
	struct thread *thread = thread_self();

	if (thread)
		thread->calls_back = true;
	for (uint32_t done = 0;;) {
		struct wire_callback *call = &client.wire->callback[done % WIRE_CALLBACKS];

		if (BELL_LOAD(&calls->value) == done) {
			if (!bell_spin(calls, done, client.spin))
				bell_sleep(calls, done, NULL);
			continue;
		}
		/* No server has more under way: what it says means nothing any more. */
		if (BELL_LOAD(&calls->value) - done > WIRE_CALLBACKS)
			return NULL;
		callback_run(call);
		done++;
		bell_ring(&call->done, done);
	}
	return nothing;
}

static CUresult callback_keep(CUhostFn function, void *data, bool stays, uint64_t *ret)
{
	pthread_t thread;

	LOCK_HOLD(&callback_lock);
	if (!callback_thread_is_there) {
		if (!pthread_create)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (pthread_create(&thread, NULL, callback_serve, NULL) != 0)
			return CUDA_ERROR_OPERATING_SYSTEM;
		callback_thread_is_there = true;
	}
	for (uint32_t i = 0; i < CALLBACKS; i++) {
		const uint32_t place = callback_next++ % CALLBACKS;

		if (callbacks[place].function)
			continue;
		callbacks[place].function = function;
		callbacks[place].data = data;
		callbacks[place].stays = stays;
		*ret = place;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult callback_look(CUstream stream, bool *ret_captured)
{
	CUstreamCaptureStatus status = 0;
	CUresult r = client.captures > 0 ? cuStreamIsCapturing(stream, &status) : CUDA_SUCCESS;

	*ret_captured = status != 0;
	return r;
}

CUresult on_cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
	uint64_t words[] = {stream, 0};
	struct context *context;
	CUresult r = context_current(&context);
	bool captured;

	if (r)
		return r;
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	r = callback_look(stream, &captured);
	if (!r)
		r = callback_keep(function, data, captured, &words[1]);
	return r ? r : call_async(OP_cuLaunchHostFunc, words, 2, NULL, 0);
}

/* What the older kind of callback gets besides its data. */
struct callback_status {
	CUstreamCallback function;
	CUstream stream;
	void *data;
};

static void callback_run_older(void *argument)
{
	const struct callback_status call = *(const struct callback_status *)argument;

	free(argument);
	call.function(call.stream, CUDA_SUCCESS, call.data);
}

CUresult on_cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *data, unsigned flags)
{
	struct callback_status *call;
	struct context *context;
	CUresult r = context_current(&context);
	bool captured;

	if (r)
		return r;
	if (!function || flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = callback_look(stream, &captured);
	/* The question ends the capture, as the driver does here. */
	if (r || captured)
		return r ? r : cuStreamQuery(stream);
	call = malloc(sizeof(*call));
	if (!call)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*call = (struct callback_status){function, stream, data};
	r = on_cuLaunchHostFunc(stream, callback_run_older, call);
	if (r)
		free(call);
	return r;
}

/* ---- in graphs ---- */

/* With a number in place of the data; the server knows where to put its own function. */
static CUresult callback_keep_node(const CUDA_HOST_NODE_PARAMS *parameters, CUDA_HOST_NODE_PARAMS *ret)
{
	uint64_t cookie;
	struct thread *thread;
	CUresult r = call_enter(&thread);

	if (r)
		return r;
	if (!parameters || !parameters->fn)
		return CUDA_ERROR_INVALID_VALUE;
	r = callback_keep(parameters->fn, parameters->userData, true, &cookie);
	*ret = (CUDA_HOST_NODE_PARAMS){.userData = (void *)cookie};
	return r;
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
			    const CUDA_HOST_NODE_PARAMS *parameters)
{
	const uint64_t words[] = {graph, count * sizeof(*before), count, sizeof(*parameters)};
	CUDA_HOST_NODE_PARAMS ready;
	const struct call_part parts[] = {{before, count * sizeof(*before)}, {&ready, sizeof(ready)}};
	CUresult r;

	if (!node || (count && !before) || count > CALL_HANDLES)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = callback_keep_node(parameters, &ready);
	return r ? r : call_sync(OP_cuGraphAddHostNode, words, 4, parts, 2, node, sizeof(*node));
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)
{
	const uint64_t words[] = {node, sizeof(*parameters)};
	CUDA_HOST_NODE_PARAMS ready;
	const struct call_part part = {&ready, sizeof(ready)};
	CUresult r = callback_keep_node(parameters, &ready);

	return r ? r : call_sync(OP_cuGraphHostNodeSetParams, words, 2, &part, 1, NULL, 0);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)
{
	const uint64_t words[] = {exec, node, sizeof(*parameters)};
	CUDA_HOST_NODE_PARAMS ready;
	const struct call_part part = {&ready, sizeof(ready)};
	CUresult r = callback_keep_node(parameters, &ready);

	return r ? r : call_sync(OP_cuGraphExecHostNodeSetParams, words, 3, &part, 1, NULL, 0);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *parameters)
{
	uint64_t cookie;
	CUresult r;

	if (!parameters)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = call_sync(OP_cuGraphHostNodeGetParams, &node, 1, NULL, 0, &cookie, sizeof(cookie));
	if (r)
		return r;
	if (cookie >= CALLBACKS)
		return CUDA_ERROR_UNKNOWN;
	LOCK_HOLD(&callback_lock);
	*parameters = (CUDA_HOST_NODE_PARAMS){callbacks[cookie].function, callbacks[cookie].data};
	return CUDA_SUCCESS;
}
