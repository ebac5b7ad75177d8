/* SPDX-License-Identifier: Apache-2.0 */

/* Graphs, where lists of nodes are passed. */

#include <stdlib.h>
#include <string.h>

#include "vcuda/client/call.h"
#include "vcuda/client/context.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

enum { GRAPH_NODES = WIRE_REPLY / 8 - 1, GRAPH_INFO_WORDS = 4 };

static CUresult graph_list(unsigned op, CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	const uint64_t words[] = {graph, nodes && count ? *count : 0};
	const struct wire_reply *reply;
	uint64_t total;
	CUresult r;

	if (!count)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = call_sync(op, words, 2, NULL, 0, &total, sizeof(total));
	if (r)
		return r;
	if (nodes && *count > total)
		memset(nodes + total, 0, (*count - total) * sizeof(*nodes));
	if (nodes && total > *count)
		total = *count;
	reply = &client.wire->reply[thread_self()->slot];
	if (nodes && total <= GRAPH_NODES && reply->bytes < (1 + total) * 8)
		return CUDA_ERROR_UNKNOWN;
	if (nodes && total <= GRAPH_NODES)
		memcpy(nodes, &reply->word[1], total * sizeof(*nodes));
	else if (nodes)
		r = call_download(0, nodes, total * sizeof(*nodes));
	if (!r)
		*count = total;
	return r;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return graph_list(OP_cuGraphGetNodes, graph, nodes, count);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return graph_list(OP_cuGraphGetRootNodes, graph, nodes, count);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
	return graph_list(OP_cuGraphNodeGetDependencies, node, nodes, count);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
	return graph_list(OP_cuGraphNodeGetDependentNodes, node, nodes, count);
}

/* Both ends of each edge, one behind the other. */
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	CUgraphNode *ends;
	size_t total = 0;
	CUresult r;

	if (!count || (!from != !to))
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = graph_list(OP_cuGraphGetEdges, graph, NULL, &total);
	if (r || !from) {
		*count = r ? *count : total / 2;
		return r;
	}
	if (total / 2 > *count)
		total = *count * 2;
	ends = calloc(total + 1, sizeof(*ends));
	r = ends ? graph_list(OP_cuGraphGetEdges, graph, ends, &total) : CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < *count && !r; i++) {
		from[i] = 2 * i < total ? ends[2 * i] : 0;
		to[i] = 2 * i < total ? ends[2 * i + 1] : 0;
	}
	free(ends);
	if (!r)
		*count = total / 2;
	return r;
}

/* ---- the same with data of edges, which are none: the driver itself refuses to list others without them ---- */

/* Without @nodes the number is not how many there is room for. */
static CUresult graph_clear_data(CUresult r, const CUgraphNode *nodes, CUgraphEdgeData *data, const size_t *count)
{
	if (!r && nodes && data && count)
		memset(data, 0, *count * sizeof(*data));
	return r;
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)
{
	return graph_clear_data(cuGraphGetEdges(graph, from, to, count), from, data, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count)
{
	return graph_clear_data(cuGraphNodeGetDependencies(node, nodes, count), nodes, data, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count)
{
	return graph_clear_data(cuGraphNodeGetDependentNodes(node, nodes, count), nodes, data, count);
}

bool graph_has_data(const CUgraphEdgeData *data, size_t count)
{
	static const CUgraphEdgeData none;

	for (size_t i = 0; data && i < count; i++)
		if (memcmp(&data[i], &none, sizeof(none)) != 0)
			return true;
	return false;
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				   const CUgraphEdgeData *data, size_t count)
{
	return graph_has_data(data, count) ? call_refuse("cuGraphAddDependencies_v2")
					   : cuGraphAddDependencies(graph, from, to, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				      const CUgraphEdgeData *data, size_t count)
{
	return graph_has_data(data, count) ? call_refuse("cuGraphRemoveDependencies_v2")
					   : cuGraphRemoveDependencies(graph, from, to, count);
}

/*
 * What a stream's next node depends on, as the thread was told last, and as much data of edges, which are none. Those
 * that are too many for an answer have memory of their own, which the thread's place has until the thread has ended and
 * another one asks for such memory.
 */
static __thread CUgraphNode graph_few[GRAPH_NODES];
static CUgraphEdgeData graph_none[GRAPH_NODES];
static struct graph_before {
	CUgraphNode *nodes;
	CUgraphEdgeData *data;
	size_t room;
	bool many;
} graph_befores[WIRE_SLOTS];
static struct lock graph_before_lock;

static struct graph_before *graph_before(void)
{
	return &graph_befores[thread_self()->slot];
}

static void graph_free_before(struct graph_before *before)
{
	free(before->nodes);
	free(before->data);
	before->nodes = NULL;
	before->data = NULL;
	before->room = 0;
}

/* With the lock. */
static CUresult graph_make_more_room(struct graph_before *before, size_t count)
{
	for (uint32_t i = 0; i < WIRE_SLOTS; i++)
		if (&graph_befores[i] == before || (graph_befores[i].room && thread_has_ended(i)))
			graph_free_before(&graph_befores[i]);
	before->nodes = calloc(count, sizeof(*before->nodes));
	before->data = calloc(count, sizeof(*before->data));
	if (!before->nodes || !before->data) {
		graph_free_before(before);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	before->room = count;
	return CUDA_SUCCESS;
}

static CUresult graph_make_room(struct graph_before *before, size_t count)
{
	if (count > WIRE_HANDLES)
		return CUDA_ERROR_UNKNOWN;
	before->many = count > GRAPH_NODES;
	if (!before->many)
		return CUDA_SUCCESS;
	LOCK_HOLD(&graph_before_lock);
	return count <= before->room ? CUDA_SUCCESS : graph_make_more_room(before, count);
}

static CUgraphNode *graph_before_nodes(void)
{
	return graph_before()->many ? graph_before()->nodes : graph_few;
}

CUresult on_cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
				      const CUgraphNode **nodes, const CUgraphEdgeData **data, size_t *count)
{
	CUresult r = on_cuStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count);

	/* As many as there are nodes, like the driver; the server is told of no others. */
	if (!r && *status == 1 && data)
		*data = graph_before()->many ? graph_before()->data : graph_none;
	return r;
}

CUresult on_cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *data,
						 size_t count, unsigned flags)
{
	return graph_has_data(data, count) ? call_refuse("cuStreamUpdateCaptureDependencies_v2")
					   : cuStreamUpdateCaptureDependencies(stream, nodes, count, flags);
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned count, CUmodule module)
{
	size_t total = count;

	return functions ? graph_list(OP_cuModuleEnumerateFunctions, module, functions, &total)
			 : call_fail(CUDA_ERROR_INVALID_VALUE);
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library)
{
	size_t total = count;

	return kernels ? graph_list(OP_cuLibraryEnumerateKernels, library, kernels, &total)
		       : call_fail(CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	const uint64_t words[] = {exec, graph};
	/* The answer is looked at after a failure, too, so there has to be a server. */
	CUresult r = call_fail(info ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);

	if (r || !info)
		return r;
	r = call_sync(OP_cuGraphExecUpdate_v2, words, 2, NULL, 0, NULL, 0);
	if (call_reply_bytes() == sizeof(*info))
		memcpy(info, client.wire->reply[thread_self()->slot].word, sizeof(*info));
	return r;
}

/* ---- what a kernel was given ---- */

/*
 * The driver's copies are valid until the node's parameters change. These have the values of the last question about
 * the node, and stay where they are for another that has as many: what a program got from an earlier one it may use.
 */
enum { GRAPH_SHOWN = 1024, GRAPH_SHOWN_WORDS = 7 };

struct shown {
	struct shown *next;
	uint64_t node;
	uint64_t function;
	void *parameters[WIRE_PARAMETERS];
	uint8_t bytes[];
};

static struct lock shown_lock;
static struct shown *shown_nodes[GRAPH_SHOWN];

static void graph_point(struct shown *shown, const struct function *function)
{
	for (unsigned i = 0; i < function->info.parameters; i++)
		shown->parameters[i] = shown->bytes + function->info.parameter[i].offset;
}

/*
 * Takes it. Return: where its values are from now on, to which all addresses lead, also where a program has put others
 * of its own into the list. It ends what is of another node in the same place.
 */
static struct shown *graph_keep_shown(struct shown *shown, const struct function *function)
{
	struct shown **at = &shown_nodes[wire_handle_index(shown->node) % GRAPH_SHOWN], *old;

	LOCK_HOLD(&shown_lock);
	while (*at && wire_handle_index((*at)->node) != wire_handle_index(shown->node))
		at = &(*at)->next;
	old = *at;
	if (old && old->node == shown->node && old->function == shown->function) {
		memcpy(old->bytes, shown->bytes, function->info.bytes);
		graph_point(old, function);
		free(shown);
		return old;
	}
	shown->next = old ? old->next : NULL;
	*at = shown;
	free(old);
	return shown;
}

static CUresult graph_show_values(uint64_t node, uint64_t handle, const struct function *function, void ***ret)
{
	struct shown *shown = malloc(sizeof(*shown) + function->info.bytes);
	CUresult r = shown ? call_download(0, shown->bytes, function->info.bytes) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r) {
		free(shown);
		return r;
	}
	shown->node = node;
	shown->function = handle;
	graph_point(shown, function);
	shown = graph_keep_shown(shown, function);
	*ret = function->info.parameters ? shown->parameters : NULL;
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *parameters)
{
	const struct function *function;
	uint64_t words[GRAPH_SHOWN_WORDS];
	void **values = NULL;
	CUresult r;

	if (!parameters)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = call_sync(OP_cuGraphKernelNodeGetParams_v2, &node, 1, NULL, 0, words, sizeof(words));
	if (!r)
		r = image_function(words[0], &function);
	if (!r && words[5] != function->info.bytes)
		r = CUDA_ERROR_UNKNOWN;
	if (!r)
		r = graph_show_values(node, words[0], function, &values);
	if (r)
		return r;
	*parameters = (CUDA_KERNEL_NODE_PARAMS){
		.gridDimX = (unsigned)words[1],
		.gridDimY = (unsigned)(words[1] >> 32),
		.gridDimZ = (unsigned)words[2],
		.blockDimX = (unsigned)(words[2] >> 32),
		.blockDimY = (unsigned)words[3],
		.blockDimZ = (unsigned)(words[3] >> 32),
		.sharedMemBytes = (unsigned)words[4],
		.kernelParams = values,
		.ctx = words[6] ? context_name(words[6]) : 0,
	};
	if (wire_handle_type(words[0]) == WIRE_KERNEL)
		parameters->kern = words[0];
	else
		parameters->func = words[0];
	return CUDA_SUCCESS;
}

/* What it became in the context in which it is to run. */
static CUresult graph_get_function(CUDA_KERNEL_NODE_PARAMS *parameters)
{
	const bool pushes = parameters->ctx && cuCtxPushCurrent_v2(parameters->ctx) == CUDA_SUCCESS;
	CUresult r = cuKernelGetFunction(&parameters->func, parameters->kern);

	if (pushes)
		(void)cuCtxPopCurrent_v2(NULL);
	return r;
}

/* As before CUDA 12: a kernel of a library is shown as the function that it became. */
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
	CUDA_KERNEL_NODE_PARAMS wide;
	CUresult r;

	if (!parameters)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = cuGraphKernelNodeGetParams_v2(node, &wide);
	if (!r && !wide.func)
		r = graph_get_function(&wide);
	if (!r)
		memcpy(parameters, &wide, sizeof(*parameters));
	return r;
}

/* ---- captures ---- */

/* Libraries ask this before most of what they do. */
CUresult on_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	const uint64_t word = stream;
	struct context *context;
	CUresult r = context_current(&context);

	if (r)
		return r;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	if (client.captures > 0 || !wire_is_stream(stream))
		return call_sync(OP_cuStreamIsCapturing, &word, 1, NULL, 0, status, sizeof(*status));
	r = call_context_failure(thread_self());
	if (!r)
		*status = 0;
	return r;
}

/* Flags that the driver may not know are its to judge. */
CUresult on_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	const uint64_t words[] = {stream, event, flags};

	if (wire_handle_type(event) != WIRE_EVENT || !wire_is_stream(stream))
		return call_fail(CUDA_ERROR_INVALID_HANDLE);
	return flags ? call_sync(OP_cuStreamWaitEvent, words, 3, NULL, 0, NULL, 0)
		     : call_async(OP_cuStreamWaitEvent, words, 3, NULL, 0);
}

CUresult on_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	const uint64_t words[] = {stream, (uint64_t)mode};
	CUresult r = call_sync(OP_cuStreamBeginCapture_v2, words, 2, NULL, 0, NULL, 0);

	if (!r)
		context_begin_capture(stream);
	return r;
}

CUresult on_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	const uint64_t word = stream;
	uint64_t new = 0;
	CUresult r;

	if (!graph)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = call_sync(OP_cuStreamEndCapture, &word, 1, NULL, 0, &new, sizeof(new));
	*graph = r ? 0 : new;
	/* Neither of a stream that captures, nor of the one where it began. */
	if (client.captures > 0 && r != CUDA_ERROR_ILLEGAL_STATE && r != CUDA_ERROR_INVALID_VALUE &&
	    r != CUDA_ERROR_INVALID_HANDLE && r != CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) {
		context_end_capture(stream);
	}
	return r;
}

CUresult on_cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
				      const CUgraphNode **nodes, size_t *count)
{
	const uint64_t word = stream;
	const struct wire_reply *reply;
	uint64_t out[GRAPH_INFO_WORDS];
	CUresult r;

	if (!status)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = call_sync(OP_cuStreamGetCaptureInfo_v2, &word, 1, NULL, 0, out, sizeof(out));
	if (r)
		return r;
	*status = (CUstreamCaptureStatus)out[0];
	if (*status != 1)
		return CUDA_SUCCESS;
	r = graph_make_room(graph_before(), out[3]);
	reply = &client.wire->reply[thread_self()->slot];
	if (!r && out[3] > GRAPH_NODES - GRAPH_INFO_WORDS)
		r = call_download(0, graph_before_nodes(), out[3] * sizeof(CUgraphNode));
	else if (!r && CLIENT_READ(reply->bytes) < sizeof(out) + out[3] * 8)
		r = CUDA_ERROR_UNKNOWN;
	else if (!r)
		memcpy(graph_before_nodes(), &reply->word[GRAPH_INFO_WORDS], out[3] * sizeof(CUgraphNode));
	if (r)
		return r;
	if (id)
		*id = out[1];
	if (graph)
		*graph = out[2];
	if (nodes)
		*nodes = graph_before_nodes();
	if (count)
		*count = out[3];
	return CUDA_SUCCESS;
}

/* ---- captures into a graph that is there ---- */

CUresult on_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *before,
					const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode)
{
	enum { FIXED = 3 };
	const uint64_t words[FIXED] = {stream, graph, (uint64_t)mode};
	CUresult r;

	if ((count && !before) || count > CALL_HANDLES)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	if (graph_has_data(data, count))
		return call_refuse("cuStreamBeginCaptureToGraph");
	r = call_with_handles(OP_cuStreamBeginCaptureToGraph, words, FIXED, before, count, NULL, NULL, 0);
	if (!r)
		context_begin_capture(stream);
	return r;
}

/* ---- what a graph is made to run with ---- */

CUresult on_cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
	enum { UPLOAD = 2, FAILED = 1 };
	CUresult r;

	if (!exec || !parameters)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = cuGraphInstantiateWithFlags(exec, graph, parameters->flags & ~(cuuint64_t)UPLOAD);
	if (!r && parameters->flags & UPLOAD)
		r = cuGraphUpload(*exec, parameters->hUploadStream);
	parameters->hErrNode_out = 0;
	parameters->result_out = r ? FAILED : 0;
	return r;
}

/* ---- the first forms ---- */

CUresult on_cuStreamBeginCapture(CUstream stream)
{
	enum { CAPTURE_GLOBAL = 0 };

	return on_cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL);
}

CUresult on_cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	return on_cuStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *node, CUgraphExecUpdateResult *result)
{
	CUgraphExecUpdateResultInfo info = {0};
	CUresult r = cuGraphExecUpdate_v2(exec, graph, &info);

	if (node)
		*node = info.errorNode;
	if (result)
		*result = info.result;
	return r;
}

/* The log is what a graph fails with, of which the newer form says the result alone. */
CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t bytes)
{
	CUresult r = cuGraphInstantiateWithFlags(exec, graph, 0);

	if (node)
		*node = 0;
	if (log && bytes)
		log[0] = '\0';
	return r;
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t bytes)
{
	return cuGraphInstantiate_v2(exec, graph, node, log, bytes);
}
