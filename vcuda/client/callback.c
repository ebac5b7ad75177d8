/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Host functions. The server's driver reaches one in a thread of its own, which tells us a number; a thread here, made
 * when the first is launched, runs what we keep under that number, and the driver's thread goes on.
 */

#include <stdlib.h>

#include "vcuda/client/call.h"
#include "vcuda/client/client.h"
#include "vcuda/client/context.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

/* ---- what is kept: in pieces, which stay where they are ---- */

enum { CALLBACK_PIECE = 4096, CALLBACK_PIECES = 4096, CALLBACK_PLACE_BITS = 24 };
_Static_assert((1 << CALLBACK_PLACE_BITS) / CALLBACK_PIECE == CALLBACK_PIECES, "a cookie has room for every place");

struct callback {
	CUhostFn function; /* NULL: a free place */
	void *data;
	uint64_t cookie; /* by which the server calls it: its place, and above that a number that no other has had */
	bool stays;      /* in a graph, which may run again */
	uint32_t next;   /* of the free places */
};

static struct lock callback_lock;
static bool callback_thread_is_there;
static struct callback *callback_pieces[CALLBACK_PIECES];
static uint32_t callback_places, callback_free; /* how many there are; the first free one, from 1 on */
static uint64_t callback_number;

static uint32_t callback_place(uint64_t cookie)
{
	return cookie & ((1U << CALLBACK_PLACE_BITS) - 1);
}

/*
 * With the lock held. Return: NULL if it is not kept any more. What was dropped may be called all the same, and its
 * place be another's by then.
 */
static struct callback *callback_find(uint64_t cookie)
{
	const uint32_t place = callback_place(cookie);
	struct callback *callback;

	if (place >= callback_places)
		return NULL;
	callback = &callback_pieces[place / CALLBACK_PIECE][place % CALLBACK_PIECE];
	return callback->function && callback->cookie == cookie ? callback : NULL;
}

static void callback_forget(struct callback *callback, uint32_t place)
{
	*callback = (struct callback){.next = callback_free};
	callback_free = place + 1;
}

/* With the lock held. Return: whether there is a free place now. */
static bool callback_make_room(void)
{
	struct callback *piece;

	if (callback_free)
		return true;
	if (callback_places / CALLBACK_PIECE == CALLBACK_PIECES)
		return false;
	piece = calloc(CALLBACK_PIECE, sizeof(*piece));
	if (!piece)
		return false;
	callback_pieces[callback_places / CALLBACK_PIECE] = piece;
	callback_places += CALLBACK_PIECE;
	for (uint32_t i = CALLBACK_PIECE; i > 0; i--)
		callback_forget(&piece[i - 1], callback_places - CALLBACK_PIECE + i - 1);
	return true;
}

/* ---- the thread that runs them ---- */

static CUresult callback_status; /* what the one that runs in that thread is told */

static void callback_run(const struct wire_callback *call)
{
	const uint64_t cookie = CLIENT_READ(call->cookie);
	struct callback *callback, now = {0};

	lock_take(&callback_lock);
	callback = callback_find(cookie);
	if (callback)
		now = *callback;
	if (callback && !callback->stays)
		callback_forget(callback, callback_place(cookie));
	lock_release(&callback_lock);
	callback_status = client_result(CLIENT_READ(call->status));
	if (now.function)
		now.function(now.data);
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

/* Return: CUDA_SUCCESS, and the cookie. */
static CUresult callback_keep(CUhostFn function, void *data, bool stays, uint64_t *ret)
{
	struct callback *callback;
	uint32_t place;

	LOCK_HOLD(&callback_lock);
	if (!callback_thread_is_there) {
		if (!background_can_start())
			return CUDA_ERROR_NOT_SUPPORTED;
		if (!background_start(callback_serve, NULL))
			return CUDA_ERROR_OPERATING_SYSTEM;
		callback_thread_is_there = true;
	}
	if (!callback_make_room())
		return CUDA_ERROR_OUT_OF_MEMORY;
	place = callback_free - 1;
	callback = &callback_pieces[place / CALLBACK_PIECE][place % CALLBACK_PIECE];
	callback_free = callback->next;
	*ret = ++callback_number << CALLBACK_PLACE_BITS | place;
	*callback = (struct callback){function, data, *ret, stays, 0};
	return CUDA_SUCCESS;
}

/* Return: whether it was still there, so that it has not run and will not. */
static bool callback_drop(uint64_t cookie)
{
	struct callback *callback;

	LOCK_HOLD(&callback_lock);
	callback = callback_find(cookie);
	if (!callback)
		return false;
	callback_forget(callback, callback_place(cookie));
	return true;
}

/* ---- in streams ---- */

static CUresult callback_look(CUstream stream, bool *ret_captured)
{
	CUstreamCaptureStatus status = 0;
	CUresult r = client.captures > 0 ? cuStreamIsCapturing(stream, &status) : CUDA_SUCCESS;

	*ret_captured = status != 0;
	return r;
}

/* The older kind is called whatever becomes of the context, once it is in the stream: whether it is, has to be true. */
static CUresult callback_push(unsigned op, const uint64_t words[2])
{
	struct thread *thread;
	CUresult r;

	if (op == OP_cuLaunchHostFunc)
		return call_async(op, words, 2, NULL, 0);
	r = call_enter(&thread);
	if (!r)
		r = call_failure(thread);
	return r ? r : call_sync(op, words, 2, NULL, 0, NULL, 0);
}

/* Whoever is told of a failure takes away what the function works on, so it has to be true that it does not run. */
static CUresult callback_launch(unsigned op, CUstream stream, CUhostFn function, void *data, bool stays)
{
	uint64_t words[] = {stream, 0};
	CUresult r = callback_keep(function, data, stays, &words[1]);

	if (r)
		return r;
	r = callback_push(op, words);
	return r && callback_drop(words[1]) ? r : CUDA_SUCCESS;
}

CUresult on_cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
	struct context *context;
	CUresult r = context_current(&context);
	bool captured;

	if (r)
		return r;
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	if (!wire_is_stream(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	r = callback_look(stream, &captured);
	return r ? r : callback_launch(OP_cuLaunchHostFunc, stream, function, data, captured);
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
	call.function(call.stream, callback_status, call.data);
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
	if (!wire_is_stream(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	r = callback_look(stream, &captured);
	/* The question ends the capture, as the driver does here. */
	if (r || captured)
		return r ? r : cuStreamQuery(stream);
	call = malloc(sizeof(*call));
	if (!call)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*call = (struct callback_status){function, stream, data};
	r = callback_launch(OP_cuStreamAddCallback, stream, callback_run_older, call, false);
	if (r)
		free(call);
	return r;
}

/* ---- what graphs keep ---- */

CUresult cuUserObjectCreate(CUuserObject *object, void *data, CUhostFn destroy, unsigned references, unsigned flags)
{
	uint64_t words[] = {0, references, flags};
	CUresult r = call_fail(object && destroy ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);

	if (!r)
		r = callback_keep(destroy, data, false, &words[0]);
	if (r)
		return r;
	r = call_sync(OP_cuUserObjectCreate, words, 3, NULL, 0, object, sizeof(*object));
	if (r)
		(void)callback_drop(words[0]);
	return r;
}

/* ---- in graphs ---- */

/* With a number in place of the data; the server knows where to put its own function. */
static CUresult callback_keep_node(const CUDA_HOST_NODE_PARAMS *parameters, CUDA_HOST_NODE_PARAMS *ret)
{
	uint64_t cookie = 0;
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

/* Without a node that has it, it is not kept. Return: @r. */
static CUresult callback_settle(CUresult r, const CUDA_HOST_NODE_PARAMS *kept)
{
	if (r)
		(void)callback_drop((uint64_t)kept->userData);
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
	if (r)
		return r;
	r = call_sync(OP_cuGraphAddHostNode, words, 4, parts, 2, node, sizeof(*node));
	return callback_settle(r, &ready);
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)
{
	const uint64_t words[] = {node, sizeof(*parameters)};
	CUDA_HOST_NODE_PARAMS ready;
	const struct call_part part = {&ready, sizeof(ready)};
	CUresult r = callback_keep_node(parameters, &ready);

	if (r)
		return r;
	r = call_sync(OP_cuGraphHostNodeSetParams, words, 2, &part, 1, NULL, 0);
	return callback_settle(r, &ready);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)
{
	const uint64_t words[] = {exec, node, sizeof(*parameters)};
	CUDA_HOST_NODE_PARAMS ready;
	const struct call_part part = {&ready, sizeof(ready)};
	CUresult r = callback_keep_node(parameters, &ready);

	if (r)
		return r;
	r = call_sync(OP_cuGraphExecHostNodeSetParams, words, 3, &part, 1, NULL, 0);
	return callback_settle(r, &ready);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *parameters)
{
	const struct callback *callback;
	uint64_t cookie;
	CUresult r;

	if (!parameters)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = call_sync(OP_cuGraphHostNodeGetParams, &node, 1, NULL, 0, &cookie, sizeof(cookie));
	if (r)
		return r;
	LOCK_HOLD(&callback_lock);
	callback = callback_find(cookie);
	if (!callback)
		return CUDA_ERROR_UNKNOWN;
	*parameters = (CUDA_HOST_NODE_PARAMS){callback->function, callback->data};
	return CUDA_SUCCESS;
}
