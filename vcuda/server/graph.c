/* SPDX-License-Identifier: Apache-2.0 */

/* Graphs, and other lists of handles. */

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"

enum { NODES_MAX = WIRE_REPLY / 8 - 1 };

/* The handles of more than an answer can have, to be fetched. */
static CUresult graph_keep_nodes(struct request *q, enum wire_type type, uint64_t *nodes, size_t count, uint64_t owner)
{
	const uint32_t begin = q->reply_bytes;
	CUresult r = CUDA_SUCCESS;

	for (size_t i = 0; i < count && !r; i++) {
		r = request_reply_handle(q, type, nodes[i], owner);
		memcpy(&nodes[i], q->reply + begin, sizeof(nodes[i]));
		q->reply_bytes = begin;
	}
	return r ? r : request_keep_download(q, nodes, count * sizeof(*nodes));
}

/*
 * Asked for with room for @argument[1] of them; the answer has how many there are, and those that there is room for:
 * behind the number, if they fit there.
 */
static CUresult graph_reply_list(struct request *q, enum wire_type of, enum wire_type type,
				 CUresult (*list)(uint64_t, uint64_t *, size_t *))
{
	CUresult r = list ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	_cleanup_free_ CUgraphNode *nodes = NULL;
	uint64_t graph = 0, owner;
	size_t count = 0, room;

	if (!r)
		r = request_handle(q, 0, of, &graph);
	if (!r)
		r = list(graph, NULL, &count);
	if (r)
		return r;
	room = q->argument[1] < count ? q->argument[1] : count;
	request_reply(q, &count, sizeof(count));
	if (room == 0)
		return CUDA_SUCCESS;
	nodes = calloc(room, sizeof(*nodes));
	r = nodes ? list(graph, nodes, &room) : CUDA_ERROR_OUT_OF_MEMORY;
	/* The neighbours of a node are its graph's. */
	owner = of == WIRE_NODE ? handle_parent(q->argument[0]) : q->argument[0];
	if (room > NODES_MAX)
		return r ? r : graph_keep_nodes(q, type, nodes, room, owner);
	for (size_t i = 0; i < room && !r; i++)
		r = request_reply_handle(q, type, nodes[i], owner);
	return r;
}

CUresult serve_cuGraphGetNodes(struct request *q)
{
	return graph_reply_list(q, WIRE_GRAPH, WIRE_NODE, driver.cuGraphGetNodes);
}

CUresult serve_cuGraphGetRootNodes(struct request *q)
{
	return graph_reply_list(q, WIRE_GRAPH, WIRE_NODE, driver.cuGraphGetRootNodes);
}

CUresult serve_cuGraphNodeGetDependencies(struct request *q)
{
	return graph_reply_list(q, WIRE_NODE, WIRE_NODE, driver.cuGraphNodeGetDependencies);
}

CUresult serve_cuGraphNodeGetDependentNodes(struct request *q)
{
	return graph_reply_list(q, WIRE_NODE, WIRE_NODE, driver.cuGraphNodeGetDependentNodes);
}

/* Edges as a list of their ends. */
static CUresult graph_list_ends(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	size_t edges = nodes ? *count / 2 : 0;
	_cleanup_free_ CUgraphNode *ends = nodes ? calloc(2 * edges + 1, sizeof(*ends)) : NULL;
	CUgraphNode *const from = ends, *const to = ends ? ends + edges : NULL;
	CUresult r = nodes && !ends ? CUDA_ERROR_OUT_OF_MEMORY : driver.cuGraphGetEdges(graph, from, to, &edges);

	for (size_t i = 0; nodes && i < edges && !r; i++) {
		nodes[2 * i] = from[i];
		nodes[2 * i + 1] = to[i];
	}
	*count = 2 * edges;
	return r;
}

CUresult serve_cuGraphGetEdges(struct request *q)
{
	return graph_reply_list(q, WIRE_GRAPH, WIRE_NODE, driver.cuGraphGetEdges ? graph_list_ends : NULL);
}

static CUresult graph_list_functions(uint64_t module, uint64_t *functions, size_t *count)
{
	unsigned total = 0;
	CUresult r = driver.cuModuleGetFunctionCount(&total, module);

	if (r)
		return r;
	if (functions)
		r = driver.cuModuleEnumerateFunctions(functions, total < *count ? total : (unsigned)*count, module);
	if (!functions || total < *count)
		*count = total;
	return r;
}

CUresult serve_cuModuleEnumerateFunctions(struct request *q)
{
	return graph_reply_list(
		q, WIRE_MODULE, WIRE_FUNC,
		driver.cuModuleEnumerateFunctions && driver.cuModuleGetFunctionCount ? graph_list_functions : NULL);
}

static CUresult graph_list_kernels(uint64_t library, uint64_t *kernels, size_t *count)
{
	unsigned total = 0;
	CUresult r = driver.cuLibraryGetKernelCount(&total, library);

	if (r)
		return r;
	if (kernels)
		r = driver.cuLibraryEnumerateKernels(kernels, total < *count ? total : (unsigned)*count, library);
	if (!kernels || total < *count)
		*count = total;
	return r;
}

CUresult serve_cuLibraryEnumerateKernels(struct request *q)
{
	return graph_reply_list(q, WIRE_LIBRARY, WIRE_KERNEL,
				driver.cuLibraryEnumerateKernels && driver.cuLibraryGetKernelCount ? graph_list_kernels
												   : NULL);
}

CUresult serve_cuGraphExecUpdate_v2(struct request *q)
{
	CUresult r = driver.cuGraphExecUpdate_v2 ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	CUgraphExecUpdateResultInfo info = {0};
	uint64_t exec = 0, graph = 0;

	if (!r)
		r = request_handle(q, 0, WIRE_EXEC, &exec);
	if (!r)
		r = request_handle(q, 1, WIRE_GRAPH, &graph);
	if (r)
		return r;
	r = driver.cuGraphExecUpdate_v2(exec, graph, &info);
	/* Nodes of the graph are the client's to know, those of the executable are nobody's. */
	info.errorNode = info.errorNode ? handle_give(WIRE_NODE, info.errorNode, q->argument[1], q->header.context) : 0;
	info.errorFromNode =
		info.errorFromNode ? handle_give(WIRE_NODE, info.errorFromNode, q->argument[1], q->header.context) : 0;
	request_reply(q, &info, sizeof(info));
	return r;
}

/* The driver's own array stays as it is. */
static CUresult graph_keep_copy(struct request *q, const CUgraphNode *nodes, size_t count, uint64_t owner)
{
	_cleanup_free_ CUgraphNode *copy = calloc(count, sizeof(*copy));

	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, nodes, count * sizeof(*copy));
	return graph_keep_nodes(q, WIRE_NODE, copy, count, owner);
}

CUresult serve_cuStreamGetCaptureInfo_v2(struct request *q)
{
	enum { INFO_WORDS = 4 };
	CUresult r = driver.cuStreamGetCaptureInfo_v2 ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;
	CUstreamCaptureStatus status = 0;
	const CUgraphNode *nodes = NULL;
	cuuint64_t id = 0;
	CUstream stream = 0;
	CUgraph graph = 0;
	size_t count = 0;
	uint64_t handle;

	if (!r)
		r = request_stream(q, 0, &stream);
	if (!r)
		r = driver.cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &nodes, &count);
	if (r)
		return r;
	if (status != 1)
		count = 0;
	request_reply(q, &status, sizeof(status));
	request_reply(q, &id, sizeof(id));
	/* Until the capture ends well, it is the stream's, as which a thread's own is known, too. */
	handle = handle_known(WIRE_STREAM, stream);
	handle = status == 1 ? handle_give(WIRE_GRAPH, graph, handle, q->header.context) : 0;
	request_reply(q, &handle, sizeof(handle));
	request_reply(q, &count, sizeof(count));
	if (count > NODES_MAX - INFO_WORDS)
		return graph_keep_copy(q, nodes, count, handle);
	for (size_t i = 0; i < count && !r; i++)
		r = request_reply_handle(q, WIRE_NODE, nodes[i], handle);
	return r;
}

/* Whatever it fails with, of several captures at once it is not known which graph is gone. */
CUresult serve_cuStreamEndCapture(struct request *q)
{
	CUresult r = driver.cuStreamEndCapture ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;
	CUstream stream = 0;
	CUgraph graph = 0;

	if (!r)
		r = request_stream(q, 0, &stream);
	if (r)
		return r;
	r = driver.cuStreamEndCapture(stream, &graph);
	/* But one that was there before stays whose it was. */
	if (!r && wire_handle_type(handle_parent(handle_known(WIRE_GRAPH, graph))) == WIRE_STREAM)
		handle_own(handle_known(WIRE_GRAPH, graph));
	else if (r)
		handle_drop_captures();
	return r ? r : request_reply_handle(q, WIRE_GRAPH, graph, 0);
}

/* ---- memory that they take when they run, and what of it a device keeps ---- */

enum { GRAPH_MEMORY_PIECE = 512, GRAPH_MEMORY_WORDS = 3 };

/*
 * Graph, device, bytes, and nodes before it. It is allocated at each run of the graph, and the server does not see it
 * freed: like memory of captured calls, it counts until the process ends.
 */
CUresult serve_cuGraphAddMemAllocNode(struct request *q)
{
	const unsigned count = q->header.words > GRAPH_MEMORY_WORDS ? q->header.words - GRAPH_MEMORY_WORDS : 0;
	CUresult r =
		driver.cuGraphAddMemAllocNode ? request_words(q, GRAPH_MEMORY_WORDS + count) : CUDA_ERROR_NOT_SUPPORTED;
	CUDA_MEM_ALLOC_NODE_PARAMS parameters = {.poolProps = {.allocType = 1, .location = {.type = 1}}};
	uint64_t graph = 0, before[REQUEST_HANDLES], bytes;
	CUgraphNode node = 0;
	DRIVER_MEMORY_HOLD;

	if (!r)
		r = request_handle(q, 0, WIRE_GRAPH, &graph);
	if (!r)
		r = request_device(q, 1, &parameters.poolProps.location.id);
	if (!r && count > REQUEST_HANDLES)
		r = CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count && !r; i++)
		r = request_handle(q, GRAPH_MEMORY_WORDS + i, WIRE_NODE, &before[i]);
	if (r)
		return r;
	if (__builtin_add_overflow(q->argument[2], GRAPH_MEMORY_PIECE - 1, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	bytes &= ~(uint64_t)(GRAPH_MEMORY_PIECE - 1);
	if (!allocation_take(bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	parameters.bytesize = q->argument[2];
	r = driver.cuGraphAddMemAllocNode(&node, graph, before, count, &parameters);
	if (r) {
		quota_give(bytes);
		return r;
	}
	/* The node is there, and what it takes counts, noted or not. */
	if (!quota_note(QUOTA_GRAPH, parameters.dptr, bytes, 0))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = request_reply_handle(q, WIRE_NODE, node, q->argument[0]);
	if (!r)
		request_reply(q, &parameters.dptr, sizeof(parameters.dptr));
	return r;
}

/* Each of the numbers has 8 bytes. */
CUresult serve_cuDeviceGetGraphMemAttribute(struct request *q)
{
	CUresult r = driver.cuDeviceGetGraphMemAttribute ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	uint64_t value = 0;
	CUdevice device = 0;

	if (!r)
		r = request_device(q, 0, &device);
	if (!r)
		r = driver.cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)q->argument[1], &value);
	if (!r)
		request_reply(q, &value, sizeof(value));
	return r;
}

CUresult serve_cuDeviceSetGraphMemAttribute(struct request *q)
{
	CUresult r = driver.cuDeviceSetGraphMemAttribute ? request_words(q, 3) : CUDA_ERROR_NOT_SUPPORTED;
	CUdevice device = 0;

	if (!r)
		r = request_device(q, 0, &device);
	return r ? r
		 : driver.cuDeviceSetGraphMemAttribute(device, (CUgraphMem_attribute)q->argument[1], &q->argument[2]);
}

/* ---- conditions ---- */

/*
 * Nodes of graphs that run others on a condition. Kernels set it by the driver's number, so the client has that, and
 * here stands which of them it was given for which graph.
 */

enum { CONDITIONS = 65536, CONDITION_NODE = 13, CONDITION_GRAPHS = 64, CONDITION_WORDS = 5 };

static struct condition {
	uint64_t graph; /* its handle, which no other graph will have */
	CUgraphConditionalHandle number;
} conditions[CONDITIONS];
static uint32_t condition_count;

static bool graph_condition_lives(const struct condition *condition)
{
	uint64_t real;

	return handle_look(condition->graph, WIRE_GRAPH, &real);
}

/* Those of graphs that are gone make room. */
static bool graph_condition_add(uint64_t graph, CUgraphConditionalHandle number)
{
	if (condition_count == CONDITIONS)
		for (uint32_t i = condition_count; i > 0; i--)
			if (!graph_condition_lives(&conditions[i - 1]))
				conditions[i - 1] = conditions[--condition_count];
	if (condition_count == CONDITIONS)
		return false;
	conditions[condition_count++] = (struct condition){graph, number};
	return true;
}

static bool graph_condition_is(uint64_t graph, CUgraphConditionalHandle number)
{
	for (uint32_t i = 0; i < condition_count; i++)
		if (conditions[i].number == number && conditions[i].graph == graph)
			return true;
	return false;
}

CUresult serve_cuGraphConditionalHandleCreate(struct request *q)
{
	CUresult r = driver.cuGraphConditionalHandleCreate ? request_words(q, 4) : CUDA_ERROR_NOT_SUPPORTED;
	CUgraphConditionalHandle number = 0;
	uint64_t graph = 0, context = 0;

	if (!r)
		r = request_handle(q, 0, WIRE_GRAPH, &graph);
	if (!r && q->argument[1])
		r = request_handle(q, 1, WIRE_CONTEXT, &context);
	if (!r)
		r = driver.cuGraphConditionalHandleCreate(&number, graph, context, (unsigned)q->argument[2],
							  (unsigned)q->argument[3]);
	if (!r && !graph_condition_add(q->argument[0], number))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r)
		request_reply(q, &number, sizeof(number));
	return r;
}

/* The node, and its graphs, which are not the client's to end. */
static CUresult graph_condition_reply(struct request *q, CUgraphNode node,
				      const CUDA_CONDITIONAL_NODE_PARAMS *condition)
{
	CUresult r = request_reply_handle(q, WIRE_NODE, node, q->argument[0]);
	const uint64_t handle = r ? 0 : handle_known(WIRE_NODE, node);

	for (unsigned i = 0; i < condition->size && !r; i++)
		r = request_reply_handle(q, WIRE_GRAPH, condition->phGraph_out[i], handle);
	return r;
}

/* Graph, nodes before it, condition, kind of node, context: nodes of other types have functions of their own. */
CUresult serve_cuGraphAddNode_v2(struct request *q)
{
	const unsigned before_count = q->header.words > CONDITION_WORDS ? q->header.words - CONDITION_WORDS : 0;
	CUresult r =
		driver.cuGraphAddNode_v2 ? request_words(q, CONDITION_WORDS + before_count) : CUDA_ERROR_NOT_SUPPORTED;
	CUgraphNodeParams parameters = {.type = CONDITION_NODE};
	CUDA_CONDITIONAL_NODE_PARAMS *condition = &parameters.conditional;
	uint64_t graph = 0, before[REQUEST_HANDLES];
	CUgraphNode node = 0;

	if (!r)
		r = request_handle(q, 0, WIRE_GRAPH, &graph);
	if (!r && (before_count > REQUEST_HANDLES || !graph_condition_is(q->argument[0], q->argument[1]) ||
		   q->argument[3] == 0 || q->argument[3] > CONDITION_GRAPHS))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && q->argument[4])
		r = request_handle(q, 4, WIRE_CONTEXT, &condition->ctx);
	for (unsigned i = 0; i < before_count && !r; i++)
		r = request_handle(q, CONDITION_WORDS + i, WIRE_NODE, &before[i]);
	if (r)
		return r;
	condition->handle = q->argument[1];
	condition->type = (CUgraphConditionalNodeType)q->argument[2];
	condition->size = (unsigned)q->argument[3];
	r = driver.cuGraphAddNode_v2(&node, graph, before, NULL, before_count, &parameters);
	if (!r && !condition->phGraph_out)
		r = CUDA_ERROR_NOT_SUPPORTED;
	return r ? r : graph_condition_reply(q, node, condition);
}

/* The graph that is added to stays whose it was. */
CUresult serve_cuStreamBeginCaptureToGraph(struct request *q)
{
	enum { FIXED = 3 };
	const unsigned count = q->header.words > FIXED ? q->header.words - FIXED : 0;
	CUresult r = driver.cuStreamBeginCaptureToGraph ? request_words(q, FIXED + count) : CUDA_ERROR_NOT_SUPPORTED;
	uint64_t graph = 0, before[REQUEST_HANDLES];
	CUstream stream = 0;

	if (!r)
		r = request_stream(q, 0, &stream);
	if (!r)
		r = request_handle(q, 1, WIRE_GRAPH, &graph);
	if (!r && count > REQUEST_HANDLES)
		r = CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count && !r; i++)
		r = request_handle(q, FIXED + i, WIRE_NODE, &before[i]);
	return r ? r
		 : driver.cuStreamBeginCaptureToGraph(stream, graph, before, NULL, count,
						      (CUstreamCaptureMode)q->argument[2]);
}
