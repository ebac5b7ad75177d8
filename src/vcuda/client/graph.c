/* SPDX-License-Identifier: Apache-2.0 */

/* Graphs, where lists of nodes are passed. */

#include <string.h>

#include "vcuda/client/call.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

enum { GRAPH_NODES = WIRE_REPLY / 8 - 1 };

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
	if (nodes && (total > GRAPH_NODES || reply->bytes < (1 + total) * 8))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (nodes)
		memcpy(nodes, &reply->word[1], total * sizeof(*nodes));
	*count = total;
	return CUDA_SUCCESS;
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
	CUgraphNode ends[GRAPH_NODES] = {0};
	size_t total = count && from && to ? *count * 2 : 0;
	CUresult r;

	if (!count || (!from != !to))
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	if (total > GRAPH_NODES)
		total = GRAPH_NODES & ~1;
	r = graph_list(OP_cuGraphGetEdges, graph, from ? ends : NULL, &total);
	if (r)
		return r;
	for (size_t i = 0; from && i < *count; i++) {
		from[i] = 2 * i < total ? ends[2 * i] : 0;
		to[i] = 2 * i < total ? ends[2 * i + 1] : 0;
	}
	*count = total / 2;
	return CUDA_SUCCESS;
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
	CUresult r;

	if (!info)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = call_sync(OP_cuGraphExecUpdate_v2, words, 2, NULL, 0, NULL, 0);
	if (call_reply_bytes() == sizeof(*info))
		memcpy(info, client.wire->reply[thread_self()->slot].word, sizeof(*info));
	return r;
}

/* ---- captures ---- */

/* Flags that the driver may not know are its to judge. */
CUresult on_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	const uint64_t words[] = {stream, event, flags};

	if (wire_handle_type(event) != WIRE_EVENT)
		return call_fail(CUDA_ERROR_INVALID_HANDLE);
	return flags ? call_sync(OP_cuStreamWaitEvent, words, 3, NULL, 0, NULL, 0)
		     : call_async(OP_cuStreamWaitEvent, words, 3, NULL, 0);
}

CUresult on_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	const uint64_t words[] = {stream, (uint64_t)mode};
	CUresult r = call_sync(OP_cuStreamBeginCapture_v2, words, 2, NULL, 0, NULL, 0);

	/* What is not allowed meanwhile is told at once, so nothing is deferred. */
	if (!r)
		client.captures++;
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
	    r != CUDA_ERROR_INVALID_HANDLE)
		client.captures--;
	return r;
}

CUresult on_cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
				      const CUgraphNode **nodes, size_t *count)
{
	static __thread CUgraphNode kept[GRAPH_NODES];
	const uint64_t word = stream;
	const struct wire_reply *reply;
	uint64_t out[4];
	CUresult r;

	if (!status)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = call_sync(OP_cuStreamGetCaptureInfo_v2, &word, 1, NULL, 0, out, sizeof(out));
	if (r)
		return r;
	*status = (CUstreamCaptureStatus)out[0];
	if (*status != 1)
		return CUDA_SUCCESS;
	reply = &client.wire->reply[thread_self()->slot];
	if (out[3] > GRAPH_NODES - 4 || reply->bytes < sizeof(out) + out[3] * 8)
		return CUDA_ERROR_NOT_SUPPORTED;
	memcpy(kept, &reply->word[4], out[3] * 8);
	if (id)
		*id = out[1];
	if (graph)
		*graph = out[2];
	if (nodes)
		*nodes = kept;
	if (count)
		*count = out[3];
	return CUDA_SUCCESS;
}
