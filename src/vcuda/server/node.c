/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes of graphs, and host functions. */

#include <stdlib.h>
#include <string.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/request.h"

enum { NODES_MAX = WIRE_REPLY / 8 - 1 };

/* Asked for with room for @argument[1] of them; the answer has how many there are, and as many as fit. */
static CUresult node_list(struct request *q, CUresult (*list)(CUgraph, CUgraphNode *, size_t *))
{
	CUresult r = list ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	CUgraphNode nodes[NODES_MAX] = {0};
	uint64_t graph = 0;
	size_t count = 0, room;

	if (!r)
		r = request_handle(q, 0, WIRE_GRAPH, &graph);
	if (!r)
		r = list(graph, NULL, &count);
	if (r)
		return r;
	room = q->argument[1] < NODES_MAX ? q->argument[1] : NODES_MAX;
	request_reply(q, &count, sizeof(count));
	if (room == 0)
		return CUDA_SUCCESS;
	r = list(graph, nodes, &room);
	for (size_t i = 0; i < room && !r; i++)
		request_reply_handle(q, WIRE_NODE, nodes[i], q->argument[0]);
	return r;
}

CUresult serve_cuGraphGetNodes(struct request *q)
{
	return node_list(q, driver.cuGraphGetNodes);
}

CUresult serve_cuGraphGetRootNodes(struct request *q)
{
	return node_list(q, driver.cuGraphGetRootNodes);
}

CUresult serve_cuGraphAddEmptyNode(struct request *q)
{
	CUgraphNode before[NODES_MAX], node = 0;
	CUresult r = driver.cuGraphAddEmptyNode ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
	const unsigned count = q->header.words > 1 ? q->header.words - 1U : 0;
	uint64_t graph = 0;

	if (!r)
		r = count > NODES_MAX ? CUDA_ERROR_INVALID_VALUE : request_words(q, count + 1);
	if (!r)
		r = request_handle(q, 0, WIRE_GRAPH, &graph);
	for (unsigned i = 0; i < count && !r; i++)
		r = request_handle(q, i + 1, WIRE_NODE, &before[i]);
	if (!r)
		r = driver.cuGraphAddEmptyNode(&node, graph, before, count);
	if (!r)
		request_reply_handle(q, WIRE_NODE, node, q->argument[0]);
	return r;
}
