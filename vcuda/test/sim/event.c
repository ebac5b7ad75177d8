/* SPDX-License-Identifier: Apache-2.0 */

/* Events: a place in a stream's order, and the time at which the stream came there. */

#include <stdlib.h>
#include <time.h>

#include "sim.h"

enum { EVENT_NO_TIMING = 2, EVENT_INTERPROCESS = 4 };

struct stamp {
	struct work work;
	CUevent event;
	struct shared_event *shared;
	uint64_t sequence;
};

static void event_stamp(struct work *work, CUcontext context)
{
	struct stamp *stamp = (struct stamp *)work;
	struct timespec now;

	(void)context;
	if (stamp->shared)
		stamp->shared->done++;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	(void)pthread_mutex_lock(&sim_lock);
	if (object_lives(stamp->event, OBJECT_EVENT) && stamp->event->sequence == work->sequence)
		stamp->event->nanoseconds = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	(void)pthread_mutex_unlock(&sim_lock);
}

void event_record(CUevent event, CUstream stream)
{
	struct stamp *stamp = calloc(1, sizeof(*stamp));

	if (!stamp)
		abort();
	stamp->work = (struct work){.run = event_stamp, .always = true};
	stamp->event = event;
	stamp->shared = event->shared;
	if (stamp->shared)
		stamp->shared->begun++;
	event->recorded = true;
	event->capture = NULL;
	event->stream = stream;
	event->sequence = stream_push(stream, &stamp->work);
}

struct shared_wait {
	struct work work;
	const struct shared_event *event;
	unsigned begun;
};

static void event_wait_run(struct work *work, CUcontext context)
{
	const struct shared_wait *wait = (const struct shared_wait *)work;

	(void)context;
	ipc_wait(wait->event, wait->begun);
}

static void event_wait_shared(CUevent event, CUstream stream)
{
	struct shared_wait *wait = calloc(1, sizeof(*wait));

	if (!wait)
		abort();
	wait->work.run = event_wait_run;
	wait->event = event->shared;
	wait->begun = event->shared->begun;
	(void)stream_push(stream, &wait->work);
}

void event_wait(CUevent event, CUstream stream)
{
	struct work *work;

	if (ipc_is_pending(event)) {
		event_wait_shared(event, stream);
		return;
	}

	if (!event->recorded || stream_is_done(event->stream, event->sequence))
		return;
	work = calloc(1, sizeof(*work));
	if (!work)
		abort();
	stream_order(work, event->stream, event->sequence);
	(void)stream_push(stream, work);
}

#define EVENT(event)           \
	CUcontext context;     \
	CALL_CONTEXT(context); \
	LEAVE_IF(!object_is(event, OBJECT_EVENT), CUDA_ERROR_INVALID_HANDLE)

CUresult cuEventCreate(CUevent *ret, unsigned flags)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || flags > 7 || (flags & EVENT_INTERPROCESS && !(flags & EVENT_NO_TIMING)),
		 CUDA_ERROR_INVALID_VALUE);
	*ret = object_new(OBJECT_EVENT, sizeof(**ret), context);
	(*ret)->flags = flags;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned flags)
{
	CUstream stream;

	EVENT(event);
	LEAVE_IF(stream_find(context, handle, &stream), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(flags > 1, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(stream->object.context != event->object.context, CUDA_ERROR_INVALID_HANDLE);
	if (stream->capture)
		LEAVE(capture_record(event, stream));
	event_record(event, stream);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	CUresult r = call_fault(__func__);

	return r ? r : cuEventRecordWithFlags(event, stream, 0);
}

CUresult cuEventQuery(CUevent event)
{
	EVENT(event);
	LEAVE_IF(capture_asked(event), CUDA_ERROR_CAPTURED_EVENT);
	LEAVE_IF(ipc_is_pending(event) || (event->recorded && !stream_is_done(event->stream, event->sequence)),
		 CUDA_ERROR_NOT_READY);
	LEAVE(context->sticky);
}

CUresult cuEventSynchronize(CUevent event)
{
	CUresult r;

	EVENT(event);
	LEAVE_IF(capture_asked(event), CUDA_ERROR_CAPTURED_EVENT);
	if (ipc_is_pending(event)) {
		const unsigned begun = event->shared->begun;
		const struct shared_event *shared = event->shared;

		(void)call_leave(CUDA_SUCCESS);
		ipc_wait(shared, begun);
		return CUDA_SUCCESS;
	}
	LEAVE_IF(!event->recorded, CUDA_SUCCESS);
	object_enter(event);
	object_enter(context);
	r = stream_wait(event->stream, event->sequence);
	object_leave(context);
	object_leave(event);
	LEAVE(r);
}

CUresult cuEventDestroy_v2(CUevent event)
{
	EVENT(event);
	free(event->captured);
	object_free(event);
	LEAVE(CUDA_SUCCESS);
}

static CUresult event_elapsed(float *ret, CUevent from, CUevent to)
{
	if (!ret || !object_is(from, OBJECT_EVENT) || !object_is(to, OBJECT_EVENT) || !from->recorded ||
	    !to->recorded || (from->flags | to->flags) & EVENT_NO_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!stream_is_done(from->stream, from->sequence) || !stream_is_done(to->stream, to->sequence))
		return CUDA_ERROR_NOT_READY;
	*ret = (float)((double)(int64_t)(to->nanoseconds - from->nanoseconds) / 1e6);
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *ret, CUevent from, CUevent to)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE(event_elapsed(ret, from, to));
}

CUresult cuEventElapsedTime(float *ret, CUevent from, CUevent to)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE(event_elapsed(ret, from, to));
}
