/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes of copies and of functions of the host, changed and asked for what they are. */

#include <stdlib.h>
#include <string.h>

#include "graph.h"

static CUresult node_set_copy(CUgraphNode node, const CUDA_MEMCPY3D *what, CUcontext context)
{
	struct copy *copy;
	CUresult r = !node || !what ? CUDA_ERROR_INVALID_VALUE : copy_prepare(context, what, &copy);

	if (r || !copy)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	graph_free_work(node);
	node->work = &copy->work;
	node->size = sizeof(*copy);
	node->copy = *what;
	return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *ret)
{
	CALL(__func__);
	LEAVE_IF(!ret || !graph_is_node(node, NODE_COPY), CUDA_ERROR_INVALID_VALUE);
	*ret = node->copy;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE(node_set_copy(graph_is_node(node, NODE_COPY) ? node : NULL, copy, context));
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext where)
{
	CUcontext context;
	CUgraphNode twin;

	CALL_CONTEXT(context);
	twin = graph_in_exec(exec, node, NODE_COPY);
	LEAVE_IF(!where || !copy || !twin, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(copy->height != 1 || copy->depth != 1 || twin->copy.height != 1 || twin->copy.depth != 1,
		 CUDA_ERROR_INVALID_VALUE);
	/* Whose memory it is stays. */
	LEAVE_IF(copy->src_type != twin->copy.src_type || copy->dst_type != twin->copy.dst_type,
		 CUDA_ERROR_INVALID_VALUE);
	LEAVE(node_set_copy(twin, copy, context));
}

static CUresult node_set_host(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)
{
	struct host_call *call;

	if (!node || !parameters || !parameters->function)
		return CUDA_ERROR_INVALID_VALUE;
	call = (struct host_call *)node->work;
	call->function = parameters->function;
	call->data = parameters->data;
	return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *ret)
{
	const struct host_call *call;

	CALL(__func__);
	LEAVE_IF(!ret || !graph_is_node(node, NODE_HOST), CUDA_ERROR_INVALID_VALUE);
	call = (const struct host_call *)node->work;
	*ret = (CUDA_HOST_NODE_PARAMS){call->function, call->data};
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)
{
	CALL(__func__);
	LEAVE(node_set_host(graph_is_node(node, NODE_HOST) ? node : NULL, parameters));
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)
{
	CALL(__func__);
	LEAVE(node_set_host(graph_in_exec(exec, node, NODE_HOST), parameters));
}

/* ---- with data of edges, of which there are none ---- */

static CUresult node_clear_data(CUresult r, CUgraphEdgeData *data, const size_t *count)
{
	if (!r && data && count)
		memset(data, 0, *count * sizeof(*data));
	return r;
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)
{
	return node_clear_data(cuGraphGetEdges(graph, from, to, count), data, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count)
{
	return node_clear_data(cuGraphNodeGetDependencies(node, nodes, count), data, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count)
{
	return node_clear_data(cuGraphNodeGetDependentNodes(node, nodes, count), data, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				   const CUgraphEdgeData *data, size_t count)
{
	(void)data;
	return cuGraphAddDependencies(graph, from, to, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				      const CUgraphEdgeData *data, size_t count)
{
	(void)data;
	return cuGraphRemoveDependencies(graph, from, to, count);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, int *ret, cuuint64_t *ret_id, CUgraph *ret_graph,
				   const CUgraphNode **ret_nodes, const CUgraphEdgeData **ret_data, size_t *ret_count)
{
	static CUgraphEdgeData none[64];
	CUresult r = cuStreamGetCaptureInfo_v2(stream, ret, ret_id, ret_graph, ret_nodes, ret_count);

	if (!r && *ret == 1 && ret_data)
		*ret_data = none;
	return r;
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *data,
					      size_t count, unsigned flags)
{
	(void)data;
	return cuStreamUpdateCaptureDependencies(stream, nodes, count, flags);
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *ret, void **ret_green)
{
	if (ret_green)
		*ret_green = NULL;
	return cuStreamGetCtx(stream, ret);
}
