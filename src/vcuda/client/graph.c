/* SPDX-License-Identifier: Apache-2.0 */

/* Graphs, where lists of nodes are passed. */

#include <string.h>

#include "vcuda/client/call.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

enum { GRAPH_NODES = WIRE_REPLY / 8 - 1, GRAPH_BEFORE = 64 };

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

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count)
{
	uint64_t words[1 + GRAPH_BEFORE] = {graph};

	if (!node || (count && !before))
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	if (count > GRAPH_BEFORE)
		return call_fail(CUDA_ERROR_NOT_SUPPORTED);
	memcpy(&words[1], before, count * sizeof(*before));
	return call_sync(OP_cuGraphAddEmptyNode, words, 1 + (unsigned)count, NULL, 0, node, sizeof(*node));
}
