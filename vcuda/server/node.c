/* SPDX-License-Identifier: Apache-2.0 */

/* Graphs, and other lists of handles. */

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/request.h"

enum { NODES_MAX = WIRE_REPLY / 8 - 1 };

/* The handles of more than an answer can have, to be fetched. */
static CUresult node_keep(struct request *q, enum wire_type type, uint64_t *nodes, size_t count, uint64_t owner)
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
static CUresult node_list(struct request *q, enum wire_type of, enum wire_type type,
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
		return r ? r : node_keep(q, type, nodes, room, owner);
	for (size_t i = 0; i < room && !r; i++)
		r = request_reply_handle(q, type, nodes[i], owner);
	return r;
}

CUresult serve_cuGraphGetNodes(struct request *q)
{
	return node_list(q, WIRE_GRAPH, WIRE_NODE, driver.cuGraphGetNodes);
}

CUresult serve_cuGraphGetRootNodes(struct request *q)
{
	return node_list(q, WIRE_GRAPH, WIRE_NODE, driver.cuGraphGetRootNodes);
}

CUresult serve_cuGraphNodeGetDependencies(struct request *q)
{
	return node_list(q, WIRE_NODE, WIRE_NODE, driver.cuGraphNodeGetDependencies);
}

CUresult serve_cuGraphNodeGetDependentNodes(struct request *q)
{
	return node_list(q, WIRE_NODE, WIRE_NODE, driver.cuGraphNodeGetDependentNodes);
}

/* Edges as a list of their ends. */
static CUresult node_list_ends(CUgraph graph, CUgraphNode *nodes, size_t *count)
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
	return node_list(q, WIRE_GRAPH, WIRE_NODE, driver.cuGraphGetEdges ? node_list_ends : NULL);
}

static CUresult node_list_functions(uint64_t module, uint64_t *functions, size_t *count)
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
	return node_list(q, WIRE_MODULE, WIRE_FUNC,
			 driver.cuModuleEnumerateFunctions && driver.cuModuleGetFunctionCount ? node_list_functions
											      : NULL);
}

static CUresult node_list_kernels(uint64_t library, uint64_t *kernels, size_t *count)
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
	return node_list(q, WIRE_LIBRARY, WIRE_KERNEL,
			 driver.cuLibraryEnumerateKernels && driver.cuLibraryGetKernelCount ? node_list_kernels : NULL);
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
static CUresult node_keep_copy(struct request *q, const CUgraphNode *nodes, size_t count, uint64_t owner)
{
	_cleanup_free_ CUgraphNode *copy = calloc(count, sizeof(*copy));

	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, nodes, count * sizeof(*copy));
	return node_keep(q, WIRE_NODE, copy, count, owner);
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
		return node_keep_copy(q, nodes, count, handle);
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
