/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes of graphs by what they are of, in one struct: each has a function of its own, but those with a condition. */

#include <stdlib.h>
#include <string.h>

#include "vcuda/client/address_map.h"
#include "vcuda/client/call.h"
#include "vcuda/client/context.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

enum node_type {
	NODE_KERNEL,
	NODE_COPY,
	NODE_FILL,
	NODE_HOST,
	NODE_GRAPH,
	NODE_EMPTY,
	NODE_WAIT,
	NODE_RECORD,
	NODE_ALLOC = 10,
	NODE_FREE = 11,
	NODE_CONDITION = 13,
};

/* None of its own is the current one. */
static CUcontext node_context(CUcontext context)
{
	CUcontext current = 0;

	return context || cuCtxGetCurrent(&current) ? context : current;
}

static CUDA_MEMSET_NODE_PARAMS node_fill(const CUgraphNodeParams *parameters)
{
	CUDA_MEMSET_NODE_PARAMS fill;

	memcpy(&fill, &parameters->memset, sizeof(fill));
	return fill;
}

/* ---- with a condition ---- */

/* Where the graphs stand that it runs is the program's to read as long as the node is there. */
static CUresult node_keep_graphs(CUDA_CONDITIONAL_NODE_PARAMS *condition, const uint64_t *graphs)
{
	condition->phGraph_out = calloc(condition->size, sizeof(*condition->phGraph_out));
	if (!condition->phGraph_out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(condition->phGraph_out, graphs, condition->size * sizeof(*graphs));
	return CUDA_SUCCESS;
}

static CUresult node_add_condition(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
				   CUDA_CONDITIONAL_NODE_PARAMS *condition)
{
	enum { FIXED = 5, GRAPHS = 64 };
	const uint64_t words[FIXED] = {graph, condition->handle, (uint64_t)condition->type, condition->size,
				       context_handle(condition->ctx)};
	uint64_t out[1 + GRAPHS];
	CUresult r;

	if (condition->size == 0 || condition->size > GRAPHS)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = call_with_handles(OP_cuGraphAddNode_v2, words, FIXED, before, count, NULL, out,
			      (1 + condition->size) * sizeof(*out));
	if (!r)
		r = node_keep_graphs(condition, &out[1]);
	if (!r)
		*node = out[0];
	return r;
}

/* ---- memory ---- */

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
				CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
	enum { FIXED = 3, ON_DEVICE = 1 };
	uint64_t words[FIXED] = {graph}, out[2];
	struct context *context;
	struct range range;
	CUresult r = context_current(&context);

	if (r)
		return r;
	if (!node || !parameters || (count && !before) || count > CALL_HANDLES || parameters->bytesize == 0)
		return CUDA_ERROR_INVALID_VALUE;
	/* Of a device, for itself alone, and not to be shared. */
	if (parameters->poolProps.location.type != ON_DEVICE || parameters->poolProps.handleTypes)
		return call_refuse("cuGraphAddMemAllocNode");
	for (size_t i = 0; i < parameters->accessDescCount; i++)
		if (parameters->accessDescs[i].location.id != parameters->poolProps.location.id)
			return call_refuse("cuGraphAddMemAllocNode");
	words[1] = (uint64_t)parameters->poolProps.location.id;
	words[2] = parameters->bytesize;
	r = call_with_handles(OP_cuGraphAddMemAllocNode, words, FIXED, before, count, NULL, out, sizeof(out));
	if (r)
		return r;
	*node = out[0];
	parameters->dptr = out[1];
	range = (struct range){
		.at = out[1], .bytes = parameters->bytesize, .kind = ADDRESS_MAP_GRAPH, .ordinal = (CUdevice)words[1]};
	return address_map_add(&range);
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
	const uint64_t words[] = {(uint64_t)device, (uint64_t)attribute};

	return value ? call_sync(OP_cuDeviceGetGraphMemAttribute, words, 2, NULL, 0, value, sizeof(uint64_t))
		     : call_fail(CUDA_ERROR_INVALID_VALUE);
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
	uint64_t words[] = {(uint64_t)device, (uint64_t)attribute, 0};

	if (!value)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	memcpy(&words[2], value, sizeof(words[2]));
	return call_sync(OP_cuDeviceSetGraphMemAttribute, words, 3, NULL, 0, NULL, 0);
}

/* ---- of any type ---- */

static CUresult node_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
			 CUgraphNodeParams *parameters)
{
	const CUDA_MEMSET_NODE_PARAMS fill = node_fill(parameters);

	switch ((enum node_type)parameters->type) {
	case NODE_KERNEL:
		return cuGraphAddKernelNode_v2(node, graph, before, count, &parameters->kernel);
	case NODE_COPY:
		return cuGraphAddMemcpyNode(node, graph, before, count, &parameters->memcpy.copyParams,
					    node_context(parameters->memcpy.copyCtx));
	case NODE_FILL:
		return cuGraphAddMemsetNode(node, graph, before, count, &fill, node_context(parameters->memset.ctx));
	case NODE_HOST:
		return cuGraphAddHostNode(node, graph, before, count, &parameters->host);
	case NODE_GRAPH:
		return cuGraphAddChildGraphNode(node, graph, before, count, parameters->graph.graph);
	case NODE_EMPTY:
		return cuGraphAddEmptyNode(node, graph, before, count);
	case NODE_WAIT:
		return cuGraphAddEventWaitNode(node, graph, before, count, parameters->eventRecord.event);
	case NODE_RECORD:
		return cuGraphAddEventRecordNode(node, graph, before, count, parameters->eventRecord.event);
	case NODE_ALLOC:
		return cuGraphAddMemAllocNode(node, graph, before, count, &parameters->alloc);
	case NODE_FREE:
		return cuGraphAddMemFreeNode(node, graph, before, count, parameters->free.dptr);
	case NODE_CONDITION:
		return node_add_condition(node, graph, before, count, &parameters->conditional);
	}
	return call_refuse("cuGraphAddNode");
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
			CUgraphNodeParams *parameters)
{
	if (!node || !parameters || (count && !before) || count > CALL_HANDLES)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	return node_add(node, graph, before, count, parameters);
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, const CUgraphEdgeData *data,
			   size_t count, CUgraphNodeParams *parameters)
{
	return graph_has_data(data, count) ? call_refuse("cuGraphAddNode_v2")
					   : cuGraphAddNode(node, graph, before, count, parameters);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *parameters)
{
	CUDA_MEMSET_NODE_PARAMS fill;

	if (!parameters)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	fill = node_fill(parameters);
	switch ((enum node_type)parameters->type) {
	case NODE_KERNEL:
		return cuGraphKernelNodeSetParams_v2(node, &parameters->kernel);
	case NODE_COPY:
		return cuGraphMemcpyNodeSetParams(node, &parameters->memcpy.copyParams);
	case NODE_FILL:
		return cuGraphMemsetNodeSetParams(node, &fill);
	case NODE_HOST:
		return cuGraphHostNodeSetParams(node, &parameters->host);
	case NODE_WAIT:
		return cuGraphEventWaitNodeSetEvent(node, parameters->eventRecord.event);
	case NODE_RECORD:
		return cuGraphEventRecordNodeSetEvent(node, parameters->eventRecord.event);
	default:
		return call_refuse("cuGraphNodeSetParams");
	}
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *parameters)
{
	CUDA_MEMSET_NODE_PARAMS fill;

	if (!parameters)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	fill = node_fill(parameters);
	switch ((enum node_type)parameters->type) {
	case NODE_KERNEL:
		return cuGraphExecKernelNodeSetParams_v2(exec, node, &parameters->kernel);
	case NODE_COPY:
		return cuGraphExecMemcpyNodeSetParams(exec, node, &parameters->memcpy.copyParams,
						      node_context(parameters->memcpy.copyCtx));
	case NODE_FILL:
		return cuGraphExecMemsetNodeSetParams(exec, node, &fill, node_context(parameters->memset.ctx));
	case NODE_HOST:
		return cuGraphExecHostNodeSetParams(exec, node, &parameters->host);
	case NODE_GRAPH:
		return cuGraphExecChildGraphNodeSetParams(exec, node, parameters->graph.graph);
	case NODE_WAIT:
		return cuGraphExecEventWaitNodeSetEvent(exec, node, parameters->eventRecord.event);
	case NODE_RECORD:
		return cuGraphExecEventRecordNodeSetEvent(exec, node, parameters->eventRecord.event);
	default:
		return call_refuse("cuGraphExecNodeSetParams");
	}
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
