/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes of copies and of functions of the host, changed and asked for what they are. */

#include <stdlib.h>

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

	CALL_CONTEXT(context);
	LEAVE_IF(!where, CUDA_ERROR_INVALID_VALUE);
	LEAVE(node_set_copy(graph_in_exec(exec, node, NODE_COPY), copy, context));
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
