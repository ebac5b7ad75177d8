/* SPDX-License-Identifier: Apache-2.0 */

/* Capture: work of a stream becomes nodes of a graph; events carry it over to other streams, which must come back. */

#include <stdlib.h>
#include <string.h>

#include "graph.h"

enum { MODE_GLOBAL, MODE_OWN_THREAD, MODE_RELAXED, STATUS_NONE = 0, STATUS_ACTIVE, STATUS_INVALIDATED };

struct capture {
	unsigned long long id;
	int mode;
	bool invalidated;
	CUgraph graph;
	CUstream origin;
	pthread_t thread;
	struct capture *next;
};

static struct capture *captures;
static unsigned long long next_id = 1;
static _Thread_local int thread_mode;

static void capture_set_last(CUstream stream, const CUgraphNode *nodes, size_t count)
{
	CUgraphNode *copy = calloc(count + 1, sizeof(*copy));

	if (!copy)
		abort();
	if (count)
		memcpy(copy, nodes, count * sizeof(*copy));
	free(stream->captured);
	stream->captured = copy;
	stream->captured_count = count;
}

/* A blocking stream of the context that is being captured. */
static struct capture *capture_of_blocking(CUcontext context)
{
	for (CUstream stream = object_after(NULL, OBJECT_STREAM); stream; stream = object_after(stream, OBJECT_STREAM))
		if (stream->object.context == context && stream->capture && !(stream->flags & 1))
			return stream->capture;
	return NULL;
}

bool capture_takes(CUstream stream, enum node_type type, struct work *work, size_t size, CUresult *ret)
{
	struct capture *implicit = stream->legacy ? capture_of_blocking(stream->object.context) : NULL;
	CUgraphNode node;

	if (!stream->capture && !implicit)
		return false;
	*ret = implicit                       ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
	       : stream->capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
					      : CUDA_SUCCESS;
	if (implicit)
		implicit->invalidated = true;
	if (*ret) {
		free(work);
		return true;
	}
	node = graph_add(stream->capture->graph, type, work, size, stream->captured, stream->captured_count);
	capture_set_last(stream, &node, 1);
	if (type == NODE_KERNEL) {
		const struct launch *launch = (const struct launch *)work;

		node->kernel.context = launch->context;
		for (CUfunction function = object_after(NULL, OBJECT_FUNCTION); function;
		     function = object_after(function, OBJECT_FUNCTION))
			if (function->module == launch->function->module &&
			    strcmp(function->name, launch->function->name) == 0)
				node->kernel.function = function;
	}
	return true;
}

CUresult capture_forbids(CUstream stream)
{
	struct capture *implicit = stream->legacy ? capture_of_blocking(stream->object.context) : NULL;

	if (implicit) {
		implicit->invalidated = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	if (!stream->capture)
		return CUDA_SUCCESS;
	stream->capture->invalidated = true;
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult capture_forbids_any(void)
{
	for (struct capture *capture = captures; capture; capture = capture->next) {
		bool own = pthread_equal(capture->thread, pthread_self());

		if (thread_mode == MODE_RELAXED || capture->mode == MODE_RELAXED ||
		    ((capture->mode == MODE_OWN_THREAD || thread_mode == MODE_OWN_THREAD) && !own))
			continue;
		capture->invalidated = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return CUDA_SUCCESS;
}

CUresult capture_record(CUevent event, CUstream stream)
{
	if (stream->capture->invalidated)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	free(event->captured);
	event->captured = calloc(stream->captured_count + 1, sizeof(*event->captured));
	if (!event->captured)
		abort();
	memcpy(event->captured, stream->captured, stream->captured_count * sizeof(*event->captured));
	event->captured_count = stream->captured_count;
	event->capture = stream->capture;
	return CUDA_SUCCESS;
}

bool capture_asked(CUevent event)
{
	if (event->capture)
		event->capture->invalidated = true;
	return event->capture;
}

bool capture_concerns(CUevent event, CUstream stream)
{
	return event->capture || stream->capture;
}

/* The stream joins the capture that the event comes from. */
CUresult capture_wait(CUevent event, CUstream stream)
{
	CUgraphNode *all;
	size_t count = event->captured_count;

	if (!event->capture) {
		stream->capture->invalidated = true;
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	if (event->capture->invalidated)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream->capture && stream->capture != event->capture)
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	if (!stream->capture)
		capture_set_last(stream, NULL, 0);
	stream->capture = event->capture;
	all = calloc(count + stream->captured_count + 1, sizeof(*all));
	if (!all)
		abort();
	memcpy(all, event->captured, count * sizeof(*all));
	for (size_t i = 0; i < stream->captured_count; i++)
		all[count++] = stream->captured[i];
	capture_set_last(stream, all, count);
	free(all);
	return CUDA_SUCCESS;
}

#define CAPTURED(handle)       \
	CUcontext context;     \
	CUstream stream;       \
	CALL_CONTEXT(context); \
	LEAVE_IF(stream_find(context, handle, &stream), CUDA_ERROR_INVALID_HANDLE)

/* Into a graph that is there, behind nodes of it; NULL: a new one. */
static CUresult capture_begin(CUstream stream, CUgraph graph, const CUgraphNode *nodes, size_t count, int mode)
{
	struct capture *capture;

	if (mode < 0 || mode > 2)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (stream->capture)
		return 401;
	capture = calloc(1, sizeof(*capture));
	if (!capture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*capture = (struct capture){.id = next_id++,
				    .mode = mode,
				    .graph = graph ? graph : graph_new(),
				    .origin = stream,
				    .next = captures};
	capture->thread = pthread_self();
	captures = capture;
	stream->capture = capture;
	capture_set_last(stream, nodes, count);
	return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream handle, int mode)
{
	CAPTURED(handle);
	LEAVE(capture_begin(stream, NULL, NULL, 0, mode));
}

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode *nodes,
				     const CUgraphEdgeData *data, size_t count, int mode)
{
	CUresult r;

	CAPTURED(handle);
	(void)data;
	r = graph_check(graph, nodes, count);
	LEAVE_IF(r, r);
	LEAVE(capture_begin(stream, graph, nodes, count, mode));
}

/* Whether what other streams captured leads back to the stream in which it began. */
static bool capture_is_joined(const struct capture *capture)
{
	for (CUstream stream = object_after(NULL, OBJECT_STREAM); stream;
	     stream = object_after(stream, OBJECT_STREAM)) {
		if (stream->capture != capture || stream == capture->origin)
			continue;
		for (size_t i = 0; i < stream->captured_count; i++) {
			bool joined = false;

			for (size_t j = 0; j < capture->origin->captured_count; j++)
				joined |= graph_follows(capture->origin->captured[j], stream->captured[i]);
			if (!joined)
				return false;
		}
	}
	return true;
}

static void capture_end(struct capture *capture)
{
	for (CUstream stream = object_after(NULL, OBJECT_STREAM); stream; stream = object_after(stream, OBJECT_STREAM))
		if (stream->capture == capture)
			stream->capture = NULL;
	for (CUevent event = object_after(NULL, OBJECT_EVENT); event; event = object_after(event, OBJECT_EVENT))
		if (event->capture == capture)
			event->capture = NULL;
	for (struct capture **place = &captures; *place; place = &(*place)->next)
		if (*place == capture) {
			*place = capture->next;
			break;
		}
	free(capture);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *ret)
{
	struct capture *capture;
	CUresult r = CUDA_SUCCESS;

	CAPTURED(handle);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	capture = stream->capture;
	LEAVE_IF(!capture, 401);
	capture->invalidated |= capture->origin != stream;
	LEAVE_IF(capture->origin != stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	/* It ends all the same. */
	if (capture->mode != MODE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
		r = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	else if (capture->invalidated)
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (!capture_is_joined(capture))
		r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	*ret = r ? NULL : capture->graph;
	if (r)
		graph_free(capture->graph);
	capture_end(capture);
	LEAVE(r);
}

static int capture_status(const struct CUstream_st *stream)
{
	return !stream->capture ? STATUS_NONE : stream->capture->invalidated ? STATUS_INVALIDATED : STATUS_ACTIVE;
}

CUresult cuStreamIsCapturing(CUstream handle, int *ret)
{
	CAPTURED(handle);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(stream->legacy && capture_of_blocking(context), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	*ret = capture_status(stream);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, int *ret, cuuint64_t *ret_id, CUgraph *ret_graph,
				   const CUgraphNode **ret_dependencies, size_t *ret_count)
{
	CAPTURED(handle);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(stream->legacy && capture_of_blocking(context), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	*ret = capture_status(stream);
	LEAVE_IF(*ret != STATUS_ACTIVE, CUDA_SUCCESS);
	if (ret_id)
		*ret_id = stream->capture->id;
	if (ret_graph)
		*ret_graph = stream->capture->graph;
	if (ret_dependencies)
		*ret_dependencies = stream->captured;
	if (ret_count)
		*ret_count = stream->captured_count;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *dependencies, size_t count, unsigned flags)
{
	CAPTURED(handle);
	LEAVE_IF(flags > 1 || (count && !dependencies), CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(!stream->capture, 401);
	for (size_t i = 0; i < count; i++)
		LEAVE_IF(!object_is(dependencies[i], OBJECT_NODE), CUDA_ERROR_INVALID_VALUE);
	if (flags == 0) {
		CUgraphNode *all = calloc(count + stream->captured_count + 1, sizeof(*all));

		LEAVE_IF(!all, CUDA_ERROR_OUT_OF_MEMORY);
		memcpy(all, stream->captured, stream->captured_count * sizeof(*all));
		if (count)
			memcpy(all + stream->captured_count, dependencies, count * sizeof(*all));
		capture_set_last(stream, all, count + stream->captured_count);
		free(all);
	} else {
		capture_set_last(stream, dependencies, count);
	}
	LEAVE(CUDA_SUCCESS);
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
	int before = thread_mode;

	CALL(__func__);
	LEAVE_IF(!mode, CUDA_ERROR_INVALID_VALUE);
	thread_mode = *mode;
	*mode = before;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamBeginCapture(CUstream handle)
{
	return cuStreamBeginCapture_v2(handle, 0);
}

CUresult cuStreamGetCaptureInfo(CUstream handle, int *ret, cuuint64_t *ret_id)
{
	return cuStreamGetCaptureInfo_v2(handle, ret, ret_id, NULL, NULL, NULL);
}
