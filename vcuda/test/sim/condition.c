/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes by what they are of, in one struct; those that run graphs on a condition; memory of graphs. */

#include <stdlib.h>
#include <string.h>

#include "graph.h"

enum { CONDITIONS = 256, IF, WHILE, SWITCH };

/* The number of one is its place. What kernels could set is what it begins with: none of these kernels sets any. */
static struct {
	CUgraph graph;
	unsigned value;
} conditions[CONDITIONS];
static unsigned condition_count;

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *ret, CUgraph graph, CUcontext where, unsigned value,
					unsigned flags)
{
	CUcontext context;

	CALL_CONTEXT(context);
	(void)where;
	LEAVE_IF(!ret || !object_is(graph, OBJECT_GRAPH) || flags > 1, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(condition_count == CONDITIONS - 1, CUDA_ERROR_OUT_OF_MEMORY);
	*ret = ++condition_count;
	conditions[*ret].graph = graph;
	conditions[*ret].value = flags ? value : 0;
	LEAVE(CUDA_SUCCESS);
}

CUgraph condition_chosen(CUgraphNode node)
{
	const unsigned value = conditions[node->condition].value;

	if (node->condition_type == SWITCH - IF)
		return value < node->graph_count ? node->graphs[value] : NULL;
	if (value)
		return node->graphs[0];
	return node->condition_type == 0 && node->graph_count == 2 ? node->graphs[1] : NULL;
}

static CUresult condition_add(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count,
			      CUDA_CONDITIONAL_NODE_PARAMS *what)
{
	CUgraphNode node;
	CUresult r = graph_check(graph, dependencies, count);

	/* A server that hands over a number that it was not given has not looked. */
	if (object_strict() && (what->handle == 0 || what->handle > condition_count))
		abort();
	if (r || what->handle == 0 || what->handle > condition_count || conditions[what->handle].graph != graph ||
	    what->type < 0 || what->type > 2 || what->size == 0 || what->size > CONDITION_GRAPHS ||
	    (what->type == 1 && what->size != 1) || (what->type == 0 && what->size > 2))
		return CUDA_ERROR_INVALID_VALUE;
	node = graph_add(graph, NODE_CONDITION, NULL, 0, dependencies, count);
	node->condition = (unsigned)what->handle;
	node->condition_type = what->type;
	node->graph_count = what->size;
	for (unsigned i = 0; i < what->size; i++)
		node->graphs[i] = graph_new();
	what->graphs = node->graphs;
	*ret = node;
	return CUDA_SUCCESS;
}

/* ---- memory ---- */

CUresult cuGraphAddMemAllocNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count,
				CUDA_MEM_ALLOC_NODE_PARAMS *what)
{
	CUcontext context;
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || !what || !what->bytes || what->pool.location.type != 1, CUDA_ERROR_INVALID_VALUE);
	r = graph_check(graph, dependencies, count);
	LEAVE_IF(r, r);
	r = memory_alloc(context, what->bytes, &what->pointer);
	LEAVE_IF(r, r);
	address_map_find(what->pointer)->of_graph = true;
	*ret = graph_add(graph, NODE_ALLOC, NULL, 0, dependencies, count);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count,
			       CUdeviceptr pointer)
{
	CUcontext context;
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || !address_map_find(pointer), CUDA_ERROR_INVALID_VALUE);
	r = graph_check(graph, dependencies, count);
	LEAVE_IF(r, r);
	*ret = graph_add(graph, NODE_FREE, NULL, 0, dependencies, count);
	(*ret)->pointer = pointer;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *ret)
{
	CALL(__func__);
	LEAVE_IF(!ret || !graph_is_node(node, NODE_FREE), CUDA_ERROR_INVALID_VALUE);
	*ret = node->pointer;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	CALL(__func__);
	LEAVE(device_get(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *ret)
{
	CALL(__func__);
	LEAVE_IF(!device_get(device), CUDA_ERROR_INVALID_DEVICE);
	LEAVE_IF(!ret || attribute < 0 || attribute > 3, CUDA_ERROR_INVALID_VALUE);
	memset(ret, 0, sizeof(cuuint64_t));
	LEAVE(CUDA_SUCCESS);
}

/* What was the most can be forgotten, nothing else. */
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, int attribute, void *value)
{
	CALL(__func__);
	LEAVE_IF(!device_get(device), CUDA_ERROR_INVALID_DEVICE);
	LEAVE_IF(!value || (attribute != 1 && attribute != 3) || *(cuuint64_t *)value, CUDA_ERROR_INVALID_VALUE);
	LEAVE(CUDA_SUCCESS);
}

/* ---- of any type ---- */

static CUcontext condition_context(CUcontext context)
{
	CUcontext current = NULL;

	return context || cuCtxGetCurrent(&current) ? context : current;
}

CUresult cuGraphAddNode_v2(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies,
			   const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *what)
{
	(void)data;
	if (!ret || !what)
		return call_initialized() ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
	switch ((enum node_type)what->type) {
	case NODE_KERNEL:
		return cuGraphAddKernelNode_v2(ret, graph, dependencies, count, &what->kernel);
	case NODE_COPY:
		return cuGraphAddMemcpyNode(ret, graph, dependencies, count, &what->copy.copy,
					    condition_context(what->copy.context));
	case NODE_FILL:
		return cuGraphAddMemsetNode(ret, graph, dependencies, count, &what->fill.fill,
					    condition_context(what->fill.context));
	case NODE_HOST:
		return cuGraphAddHostNode(ret, graph, dependencies, count, &what->host);
	case NODE_CHILD:
		return cuGraphAddChildGraphNode(ret, graph, dependencies, count, what->child);
	case NODE_EMPTY:
		return cuGraphAddEmptyNode(ret, graph, dependencies, count);
	case NODE_WAIT:
		return cuGraphAddEventWaitNode(ret, graph, dependencies, count, what->event);
	case NODE_RECORD:
		return cuGraphAddEventRecordNode(ret, graph, dependencies, count, what->event);
	case NODE_ALLOC:
		return cuGraphAddMemAllocNode(ret, graph, dependencies, count, &what->alloc);
	case NODE_FREE:
		return cuGraphAddMemFreeNode(ret, graph, dependencies, count, what->pointer);
	case NODE_CONDITION:
		CALL(__func__);
		LEAVE(condition_add(ret, graph, dependencies, count, &what->conditional));
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphAddNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count,
			CUgraphNodeParams *what)
{
	return cuGraphAddNode_v2(ret, graph, dependencies, NULL, count, what);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *what)
{
	if (!what)
		return CUDA_ERROR_INVALID_VALUE;
	if (what->type == NODE_KERNEL)
		return cuGraphKernelNodeSetParams_v2(node, &what->kernel);
	if (what->type == NODE_COPY)
		return cuGraphMemcpyNodeSetParams(node, &what->copy.copy);
	if (what->type == NODE_FILL)
		return cuGraphMemsetNodeSetParams(node, &what->fill.fill);
	return what->type == NODE_HOST ? cuGraphHostNodeSetParams(node, &what->host) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *what)
{
	if (!what)
		return CUDA_ERROR_INVALID_VALUE;
	if (what->type == NODE_KERNEL)
		return cuGraphExecKernelNodeSetParams_v2(exec, node, &what->kernel);
	if (what->type == NODE_COPY)
		return cuGraphExecMemcpyNodeSetParams(exec, node, &what->copy.copy,
						      condition_context(what->copy.context));
	if (what->type == NODE_FILL)
		return cuGraphExecMemsetNodeSetParams(exec, node, &what->fill.fill,
						      condition_context(what->fill.context));
	return what->type == NODE_HOST ? cuGraphExecHostNodeSetParams(exec, node, &what->host)
				       : CUDA_ERROR_INVALID_VALUE;
}

/* ---- attributes of kernels, which change nothing here ---- */

enum { ATTRIBUTES = 16 };

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, int attribute, CUstreamAttrValue *ret)
{
	CALL(__func__);
	LEAVE_IF(!ret || !graph_is_node(node, NODE_KERNEL) || attribute < 1 || attribute >= ATTRIBUTES,
		 CUDA_ERROR_INVALID_VALUE);
	*ret = node->attributes[attribute];
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, int attribute, const CUstreamAttrValue *value)
{
	CALL(__func__);
	LEAVE_IF(!value || !graph_is_node(node, NODE_KERNEL) || attribute < 1 || attribute >= ATTRIBUTES,
		 CUDA_ERROR_INVALID_VALUE);
	node->attributes[attribute] = *value;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from)
{
	CALL(__func__);
	LEAVE_IF(!graph_is_node(to, NODE_KERNEL) || !graph_is_node(from, NODE_KERNEL), CUDA_ERROR_INVALID_VALUE);
	memcpy(to->attributes, from->attributes, sizeof(to->attributes));
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *ret, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *how)
{
	CUresult r =
		how ? cuGraphInstantiateWithFlags(ret, graph, how->flags & ~(cuuint64_t)2) : CUDA_ERROR_INVALID_VALUE;

	if (how) {
		how->error_node = NULL;
		how->result = r ? 1 : 0;
	}
	return r;
}
