/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Streams: each is a thread that does its work in order. Work of the legacy stream waits for what all blocking streams of its
 * context have, and theirs waits for what it has; that is all there is to its order.
 */

#include <stdlib.h>
#include <string.h>

#include "sim.h"

static unsigned long long next_id = 1;

static bool stream_is_waited_for(const struct work *work)
{
	for (const struct wait *wait = work->waits; wait; wait = wait->next)
		if (!stream_is_done(wait->stream, wait->sequence))
			return true;
	return false;
}

static void stream_do(CUstream stream, struct work *work)
{
	CUcontext context = stream->object.context;

	while (stream_is_waited_for(work) && !context->sticky)
		(void)pthread_cond_wait(&sim_changed, &sim_lock);
	if (work->run && (!context->sticky || work->always)) {
		(void)pthread_mutex_unlock(&sim_lock);
		work->run(work, context);
		(void)pthread_mutex_lock(&sim_lock);
	}
	while (work->waits) {
		struct wait *wait = work->waits;

		work->waits = wait->next;
		free(wait);
	}
	stream->first = work->next;
	if (!stream->first)
		stream->last = &stream->first;
	stream->done = work->sequence;
	stream->late = work->is_noted_late;
	free(work);
	(void)pthread_cond_broadcast(&sim_changed);
}

static void *stream_main(void *argument)
{
	CUstream stream = argument;

	(void)pthread_mutex_lock(&sim_lock);
	while (stream->first || !stream->ending) {
		if (stream->first) {
			stream_do(stream, stream->first);
			if (stream->ending && !stream->first)
				object_unlink(stream);
		} else {
			(void)pthread_cond_wait(&sim_changed, &sim_lock);
		}
	}
	(void)pthread_mutex_unlock(&sim_lock);
	return NULL;
}

CUstream stream_new(CUcontext context, unsigned flags, int priority)
{
	CUstream stream = object_new(OBJECT_STREAM, sizeof(*stream), context);

	stream->flags = flags;
	stream->priority = priority;
	stream->id = next_id++;
	stream->last = &stream->first;
	(void)object_take(stream, context->device, config_number("STREAM_BYTES", 0));
	return stream;
}

/* Work that it has is still done, and its context waits for that. Others may have its address, so it is kept. */
void stream_destroy(CUstream stream)
{
	object_ends(stream);
	stream->ending = true;
	if (!stream->first)
		object_unlink(stream);
	(void)pthread_cond_broadcast(&sim_changed);
}

bool stream_is_done(CUstream stream, uint64_t sequence)
{
	return stream->done >= sequence;
}

void stream_order(struct work *work, CUstream after, uint64_t sequence)
{
	struct wait *wait;

	if (stream_is_done(after, sequence))
		return;
	wait = calloc(1, sizeof(*wait));
	if (!wait)
		abort();
	*wait = (struct wait){.stream = after, .sequence = sequence, .next = work->waits};
	work->waits = wait;
}

static void stream_order_legacy(CUstream stream, struct work *work)
{
	CUcontext context = stream->object.context;

	if (stream->flags & 1)
		return;
	if (!stream->legacy) {
		stream_order(work, context->legacy, context->legacy->queued);
		return;
	}
	for (CUstream other = object_after(NULL, OBJECT_STREAM); other; other = object_after(other, OBJECT_STREAM))
		if (other->object.context == context && other != stream && !(other->flags & 1))
			stream_order(work, other, other->queued);
}

uint64_t stream_push(CUstream stream, struct work *work)
{
	stream_order_legacy(stream, work);
	work->sequence = ++stream->queued;
	work->next = NULL;
	*stream->last = work;
	stream->last = &work->next;
	if (!stream->started) {
		stream->started = true;
		if (pthread_create(&stream->thread, NULL, stream_main, stream))
			abort();
		(void)pthread_detach(stream->thread);
	}
	(void)pthread_cond_broadcast(&sim_changed);
	return work->sequence;
}

CUresult stream_wait(CUstream stream, uint64_t sequence)
{
	while (!stream_is_done(stream, sequence))
		(void)pthread_cond_wait(&sim_changed, &sim_lock);
	stream->late = false;
	print_flush();
	return stream->object.context->sticky;
}

static CUstream stream_of_thread(CUcontext context)
{
	CUstream stream;

	for (stream = object_after(NULL, OBJECT_STREAM); stream; stream = object_after(stream, OBJECT_STREAM))
		if (stream->object.context == context && stream->per_thread &&
		    pthread_equal(stream->owner, pthread_self()))
			return stream;
	stream = stream_new(context, 0, 0);
	stream->per_thread = true;
	stream->owner = pthread_self();
	return stream;
}

/* It has work to do still, but is nobody's any more. */
static bool stream_ends(CUstream stream)
{
	if (stream->ending)
		object_was_used(stream);
	return stream->ending;
}

CUresult stream_find(CUcontext context, CUstream handle, CUstream *ret)
{
	if (handle == CU_STREAM_LEGACY || (!handle && !sim_own_default))
		*ret = context->legacy;
	else if (handle == CU_STREAM_PER_THREAD || !handle)
		*ret = stream_of_thread(context);
	else if (object_is(handle, OBJECT_STREAM) && !stream_ends(handle))
		*ret = handle;
	else
		return CUDA_ERROR_INVALID_HANDLE;
	return CUDA_SUCCESS;
}

/* What every call on a stream begins with. */
#define STREAM(handle)         \
	CUcontext context;     \
	CUstream stream;       \
	CALL_CONTEXT(context); \
	LEAVE_IF(stream_find(context, handle, &stream), CUDA_ERROR_INVALID_HANDLE)

CUresult cuStreamCreateWithPriority(CUstream *ret, unsigned flags, int priority)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || flags > 1, CUDA_ERROR_INVALID_VALUE);
	*ret = stream_new(context, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamCreate(CUstream *ret, unsigned flags)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || flags > 1, CUDA_ERROR_INVALID_VALUE);
	*ret = stream_new(context, flags, 0);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!object_is(handle, OBJECT_STREAM) || stream_ends(handle), CUDA_ERROR_INVALID_HANDLE);
	stream_destroy(handle);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamGetPriority(CUstream handle, int *ret)
{
	STREAM(handle);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = stream->priority;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamGetFlags(CUstream handle, unsigned *ret)
{
	STREAM(handle);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = stream->flags;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *ret)
{
	STREAM(handle);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = stream->id;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *ret)
{
	STREAM(handle);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = stream->object.context;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *ret)
{
	STREAM(handle);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = stream->object.context->device->ordinal;
	LEAVE(CUDA_SUCCESS);
}

/* For some microseconds a driver has not noted yet that the GPU has written a word, which the host has seen already. */
static bool stream_was_late(CUstream stream)
{
	const bool was = stream->late;

	stream->late = false;
	return was;
}

CUresult cuStreamQuery(CUstream handle)
{
	CUresult r;

	STREAM(handle);
	r = capture_forbids(stream);
	LEAVE_IF(r, r);
	LEAVE_IF(!stream_is_done(stream, stream->queued) || stream_was_late(stream), CUDA_ERROR_NOT_READY);
	LEAVE(stream->object.context->sticky);
}

CUresult cuStreamSynchronize(CUstream handle)
{
	CUresult r;

	STREAM(handle);
	r = capture_forbids(stream);
	LEAVE_IF(r, r);
	/* Of the legacy stream it means those that it waits for, too. */
	if (stream->legacy) {
		struct work *work = calloc(1, sizeof(*work));

		LEAVE_IF(!work, CUDA_ERROR_OUT_OF_MEMORY);
		(void)stream_push(stream, work);
	}
	object_enter(stream);
	object_enter(context);
	r = stream_wait(stream, stream->queued);
	object_leave(context);
	object_leave(stream);
	LEAVE(r);
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags)
{
	STREAM(handle);
	LEAVE_IF(!object_is(event, OBJECT_EVENT), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(flags > 1, CUDA_ERROR_INVALID_VALUE);
	if (capture_concerns(event, stream))
		LEAVE(capture_wait(event, stream));
	event_wait(event, stream);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamCopyAttributes(CUstream to_handle, CUstream from_handle)
{
	CUstream to;

	STREAM(from_handle);
	LEAVE_IF(stream_find(context, to_handle, &to), CUDA_ERROR_INVALID_HANDLE);
	memcpy(to->attributes, stream->attributes, sizeof(to->attributes));
	LEAVE(CUDA_SUCCESS);
}

/* Access policy window, synchronization policy, priority, memory synchronization domain and its map. */
static bool stream_knows(int attribute)
{
	return attribute == 1 || attribute == 3 || attribute == 8 || attribute == 9 || attribute == 10;
}

CUresult cuStreamGetAttribute(CUstream handle, int attribute, CUstreamAttrValue *ret)
{
	STREAM(handle);
	LEAVE_IF(!ret || !stream_knows(attribute), CUDA_ERROR_INVALID_VALUE);
	memset(ret, 0, sizeof(*ret));
	if (attribute == 8)
		ret->priority = stream->priority;
	else
		*ret = stream->attributes[attribute];
	if (attribute == 3 && !ret->sync_policy)
		ret->sync_policy = -1;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamSetAttribute(CUstream handle, int attribute, const CUstreamAttrValue *value)
{
	STREAM(handle);
	LEAVE_IF(!value || !stream_knows(attribute), CUDA_ERROR_INVALID_VALUE);
	if (attribute == 8)
		stream->priority = value->priority;
	else
		stream->attributes[attribute] = *value;
	LEAVE(CUDA_SUCCESS);
}

/* ---- functions of the host in a stream ---- */

void host_call_run(struct work *work, CUcontext context)
{
	struct host_call *call = (struct host_call *)work;

	sim_in_callback = true;
	if (call->callback)
		call->callback(call->stream, context->sticky, call->data);
	else
		call->function(call->data);
	sim_in_callback = false;
}

static CUresult stream_call(CUstream stream, const struct host_call *what)
{
	struct host_call *call = malloc(sizeof(*call));
	CUresult r;

	if (!call)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*call = *what;
	call->work = (struct work){.run = host_call_run, .always = what->callback != NULL};
	if (capture_takes(stream, NODE_HOST, &call->work, sizeof(*call), &r))
		return r;
	(void)stream_push(stream, &call->work);
	return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *data)
{
	STREAM(handle);
	LEAVE_IF(!function, CUDA_ERROR_INVALID_VALUE);
	LEAVE(stream_call(stream, &(struct host_call){.function = function, .data = data}));
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback function, void *data, unsigned flags)
{
	CUresult r;

	STREAM(handle);
	LEAVE_IF(!function || flags, CUDA_ERROR_INVALID_VALUE);
	r = capture_forbids(stream);
	LEAVE_IF(r, r);
	LEAVE(stream_call(stream, &(struct host_call){.callback = function, .data = data, .stream = handle}));
}
