/* SPDX-License-Identifier: Apache-2.0 */

/* Graphs: nodes hold work that is copied into the stream at each launch, one after the other in an order that fits. */

#include <stdlib.h>
#include <string.h>

#include "graph.h"

struct CUgraphExec_st {
	struct object object;
	CUgraph graph;
	unsigned long long flags;
};

CUgraph graph_new(void)
{
	return object_new(OBJECT_GRAPH, sizeof(struct CUgraph_st), NULL);
}

CUgraphNode graph_add(CUgraph graph, enum node_type type, struct work *work, size_t size,
		      const CUgraphNode *dependencies, size_t count)
{
	CUgraphNode node = object_new(OBJECT_NODE, sizeof(*node), NULL);

	node->graph = graph;
	node->type = type;
	node->work = work;
	node->size = size;
	node->dependency_count = count;
	node->dependencies = calloc(count + 1, sizeof(*dependencies));
	graph->nodes = realloc(graph->nodes, (graph->count + 1) * sizeof(*graph->nodes));
	if (!node->dependencies || !graph->nodes)
		abort();
	if (count)
		memcpy(node->dependencies, dependencies, count * sizeof(*dependencies));
	graph->nodes[graph->count++] = node;
	return node;
}

void graph_free_work(CUgraphNode node)
{
	if (node->work && node->type == NODE_KERNEL)
		free(((struct launch *)node->work)->function);
	free(node->work);
	node->work = NULL;
}

static void graph_free_node(CUgraphNode node)
{
	graph_free_work(node);
	if (node->child)
		graph_free(node->child);
	for (unsigned i = 0; i < node->graph_count; i++)
		graph_free(node->graphs[i]);
	free(node->dependencies);
	object_free(node);
}

void graph_free(CUgraph graph)
{
	for (size_t i = 0; i < graph->count; i++)
		graph_free_node(graph->nodes[i]);
	free(graph->nodes);
	user_object_forget(graph);
	object_free(graph);
}

static struct work *graph_copy_work(const struct CUgraphNode_st *node)
{
	struct work *work;
	struct launch *launch;

	if (!node->work)
		return NULL;
	work = malloc(node->size);
	if (!work)
		abort();
	memcpy(work, node->work, node->size);
	if (node->type == NODE_KERNEL) {
		launch = (struct launch *)work;
		launch->function = malloc(sizeof(*launch->function));
		if (!launch->function)
			abort();
		memcpy(launch->function, ((struct launch *)node->work)->function, sizeof(*launch->function));
	}
	return work;
}

static CUgraphNode graph_twin(CUgraph clone, CUgraphNode origin)
{
	for (size_t i = 0; i < clone->count; i++)
		if (clone->nodes[i]->origin == origin)
			return clone->nodes[i];
	return NULL;
}

static CUgraph graph_copy(CUgraph graph)
{
	CUgraph copy = graph_new();

	for (size_t i = 0; i < graph->count; i++) {
		CUgraphNode node = graph->nodes[i];
		CUgraphNode twin = graph_add(copy, node->type, graph_copy_work(node), node->size, node->dependencies,
					     node->dependency_count);

		twin->origin = node;
		twin->event = node->event;
		twin->kernel = node->kernel;
		twin->fill = node->fill;
		twin->copy = node->copy;
		if (node->child)
			twin->child = graph_copy(node->child);
		twin->condition = node->condition;
		twin->condition_type = node->condition_type;
		twin->pointer = node->pointer;
		memcpy(twin->attributes, node->attributes, sizeof(twin->attributes));
		for (; twin->graph_count < node->graph_count; twin->graph_count++)
			twin->graphs[twin->graph_count] = graph_copy(node->graphs[twin->graph_count]);
	}
	for (size_t i = 0; i < copy->count; i++)
		for (size_t j = 0; j < copy->nodes[i]->dependency_count; j++)
			copy->nodes[i]->dependencies[j] = graph_twin(copy, copy->nodes[i]->dependencies[j]);
	user_object_copy(copy, graph);
	return copy;
}

bool graph_follows(CUgraphNode later, CUgraphNode earlier)
{
	if (later == earlier)
		return true;
	for (size_t i = 0; i < later->dependency_count; i++)
		if (graph_follows(later->dependencies[i], earlier))
			return true;
	return false;
}

/* ---- making one by calls ---- */

CUresult graph_check(CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
	if (!object_is(graph, OBJECT_GRAPH) || (count && !dependencies))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (!object_is(dependencies[i], OBJECT_NODE) || dependencies[i]->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuGraphCreate(CUgraph *ret, unsigned flags)
{
	CALL(__func__);
	LEAVE_IF(!ret || flags, CUDA_ERROR_INVALID_VALUE);
	*ret = graph_new();
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphDestroy(CUgraph graph)
{
	CALL(__func__);
	LEAVE_IF(!object_is(graph, OBJECT_GRAPH), CUDA_ERROR_INVALID_VALUE);
	graph_free(graph);
	LEAVE(CUDA_SUCCESS);
}

static CUresult graph_launch_of(const CUDA_KERNEL_NODE_PARAMS *parameters, CUcontext context, struct launch **ret)
{
	CUlaunchConfig config = {parameters->grid_x,
				 parameters->grid_y,
				 parameters->grid_z,
				 parameters->block_x,
				 parameters->block_y,
				 parameters->block_z,
				 parameters->shared,
				 NULL,
				 NULL,
				 0};
	CUfunction function = parameters->function ? parameters->function : (CUfunction)parameters->kernel;

	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	/* That of a kernel of a library, which has none itself. */
	if (!parameters->function && parameters->context)
		context = parameters->context;
	return launch_prepare(context, &config, function, parameters->parameters, parameters->extra, ret);
}

static void graph_set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters, struct launch *launch)
{
	graph_free_work(node);
	node->work = &launch->work;
	node->size = sizeof(*launch);
	node->kernel = *parameters;
	node->kernel.context = launch->context;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count,
				 const CUDA_KERNEL_NODE_PARAMS *parameters)
{
	struct launch *launch;
	CUcontext context;
	CUresult r;

	CALL_CONTEXT(context);
	r = !ret || !parameters ? CUDA_ERROR_INVALID_VALUE : graph_check(graph, dependencies, count);
	LEAVE_IF(r, r);
	r = graph_launch_of(parameters, context, &launch);
	LEAVE_IF(r, r);
	*ret = graph_add(graph, NODE_KERNEL, NULL, 0, dependencies, count);
	graph_set_kernel(*ret, parameters, launch);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *ret)
{
	struct launch *launch;

	CALL(__func__);
	LEAVE_IF(!ret || !object_is(node, OBJECT_NODE) || node->type != NODE_KERNEL, CUDA_ERROR_INVALID_VALUE);
	launch = (struct launch *)node->work;
	for (unsigned i = 0; i < launch->function->parameter_count; i++)
		node->pointers[i] = launch->arguments + launch->function->parameters[i].offset;
	*ret = node->kernel;
	ret->grid_x = launch->grid[0];
	ret->grid_y = launch->grid[1];
	ret->grid_z = launch->grid[2];
	ret->block_x = launch->block[0];
	ret->block_y = launch->block[1];
	ret->block_z = launch->block[2];
	ret->shared = launch->shared;
	ret->parameters = node->pointers;
	ret->extra = NULL;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters)
{
	struct launch *launch;
	CUcontext context;
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(!parameters || !object_is(node, OBJECT_NODE) || node->type != NODE_KERNEL, CUDA_ERROR_INVALID_VALUE);
	r = graph_launch_of(parameters, context, &launch);
	LEAVE_IF(r, r);
	graph_set_kernel(node, parameters, launch);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count,
			      const CUDA_MEMCPY3D *what, CUcontext where)
{
	CUcontext context;
	struct copy *copy;
	CUresult r;

	CALL_CONTEXT(context);
	r = !ret || !what || !where ? CUDA_ERROR_INVALID_VALUE : graph_check(graph, dependencies, count);
	LEAVE_IF(r, r);
	r = copy_prepare(context, what, &copy);
	LEAVE_IF(r || !copy, r ? r : CUDA_ERROR_INVALID_VALUE);
	*ret = graph_add(graph, NODE_COPY, &copy->work, sizeof(*copy), dependencies, count);
	(*ret)->copy = *what;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count,
			      const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext where)
{
	CUcontext context;
	struct fill *fill;
	CUresult r;

	CALL_CONTEXT(context);
	r = !ret || !parameters || !where ? CUDA_ERROR_INVALID_VALUE : graph_check(graph, dependencies, count);
	LEAVE_IF(r, r);
	LEAVE_IF(parameters->element != 1 && parameters->element != 2 && parameters->element != 4,
		 CUDA_ERROR_INVALID_VALUE);
	r = fill_prepare(context, parameters, &fill);
	LEAVE_IF(r || !fill, r ? r : CUDA_ERROR_INVALID_VALUE);
	*ret = graph_add(graph, NODE_FILL, &fill->work, sizeof(*fill), dependencies, count);
	(*ret)->fill = *parameters;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphAddHostNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count,
			    const CUDA_HOST_NODE_PARAMS *parameters)
{
	struct host_call *call;
	CUresult r;

	CALL(__func__);
	r = !ret || !parameters || !parameters->function ? CUDA_ERROR_INVALID_VALUE
							 : graph_check(graph, dependencies, count);
	LEAVE_IF(r, r);
	call = calloc(1, sizeof(*call));
	LEAVE_IF(!call, CUDA_ERROR_OUT_OF_MEMORY);
	call->work.run = host_call_run;
	call->function = parameters->function;
	call->data = parameters->data;
	*ret = graph_add(graph, NODE_HOST, &call->work, sizeof(*call), dependencies, count);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
	CUresult r;

	CALL(__func__);
	r = !ret ? CUDA_ERROR_INVALID_VALUE : graph_check(graph, dependencies, count);
	LEAVE_IF(r, r);
	*ret = graph_add(graph, NODE_EMPTY, NULL, 0, dependencies, count);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count,
				  CUgraph child)
{
	CUresult r;

	CALL(__func__);
	r = !ret || !object_is(child, OBJECT_GRAPH) || child == graph ? CUDA_ERROR_INVALID_VALUE
								      : graph_check(graph, dependencies, count);
	LEAVE_IF(r, r);
	*ret = graph_add(graph, NODE_CHILD, NULL, 0, dependencies, count);
	(*ret)->child = graph_copy(child);
	LEAVE(CUDA_SUCCESS);
}

static CUresult graph_add_event(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count,
				CUevent event, enum node_type type)
{
	CUresult r = !ret || !object_is(event, OBJECT_EVENT) ? CUDA_ERROR_INVALID_VALUE
							     : graph_check(graph, dependencies, count);

	if (r)
		return r;
	*ret = graph_add(graph, type, NULL, 0, dependencies, count);
	(*ret)->event = event;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count,
				   CUevent event)
{
	CALL(__func__);
	LEAVE(graph_add_event(ret, graph, dependencies, count, event, NODE_RECORD));
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count,
				 CUevent event)
{
	CALL(__func__);
	LEAVE(graph_add_event(ret, graph, dependencies, count, event, NODE_WAIT));
}

static CUresult graph_depend(CUgraphNode from, CUgraphNode to)
{
	CUgraphNode *more;

	more = realloc(to->dependencies, (to->dependency_count + 1) * sizeof(*more));
	if (!more)
		return CUDA_ERROR_OUT_OF_MEMORY;
	to->dependencies = more;
	more[to->dependency_count++] = from;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	CUresult r;

	CALL(__func__);
	r = graph_check(graph, from, count);
	if (!r)
		r = graph_check(graph, to, count);
	for (size_t i = 0; !r && i < count; i++)
		r = graph_depend(from[i], to[i]);
	LEAVE(r);
}

CUresult cuGraphDestroyNode(CUgraphNode node)
{
	CUgraph graph;
	size_t kept = 0;

	CALL(__func__);
	LEAVE_IF(!object_is(node, OBJECT_NODE), CUDA_ERROR_INVALID_VALUE);
	graph = node->graph;
	for (size_t i = 0; i < graph->count; i++) {
		CUgraphNode other = graph->nodes[i];
		size_t left = 0;

		for (size_t j = 0; j < other->dependency_count; j++)
			if (other->dependencies[j] != node)
				other->dependencies[left++] = other->dependencies[j];
		other->dependency_count = left;
		if (other != node)
			graph->nodes[kept++] = other;
	}
	graph->count = kept;
	graph_free_node(node);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphClone(CUgraph *ret, CUgraph graph)
{
	CALL(__func__);
	LEAVE_IF(!ret || !object_is(graph, OBJECT_GRAPH), CUDA_ERROR_INVALID_VALUE);
	*ret = graph_copy(graph);
	LEAVE(CUDA_SUCCESS);
}

/* ---- asking ---- */

CUresult cuGraphNodeGetType(CUgraphNode node, int *ret)
{
	CALL(__func__);
	LEAVE_IF(!ret || !object_is(node, OBJECT_NODE), CUDA_ERROR_INVALID_VALUE);
	*ret = (int)node->type;
	LEAVE(CUDA_SUCCESS);
}

static CUresult graph_list(CUgraph graph, CUgraphNode *nodes, size_t *count, bool roots)
{
	size_t found = 0;

	if (!count || !object_is(graph, OBJECT_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < graph->count; i++) {
		if (roots && graph->nodes[i]->dependency_count)
			continue;
		if (nodes && found < *count)
			nodes[found] = graph->nodes[i];
		found++;
	}
	for (size_t i = found; nodes && i < *count; i++)
		nodes[i] = NULL;
	if (!nodes || *count > found)
		*count = found;
	return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	CALL(__func__);
	LEAVE(graph_list(graph, nodes, count, false));
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	CALL(__func__);
	LEAVE(graph_list(graph, nodes, count, true));
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	size_t found = 0;

	CALL(__func__);
	LEAVE_IF(!count || !object_is(graph, OBJECT_GRAPH) || !from != !to, CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < graph->count; i++)
		for (size_t j = 0; j < graph->nodes[i]->dependency_count; j++, found++)
			if (from && found < *count) {
				from[found] = graph->nodes[i]->dependencies[j];
				to[found] = graph->nodes[i];
			}
	if (!from || *count > found)
		*count = found;
	LEAVE(CUDA_SUCCESS);
}

/* ---- launching ---- */

CUresult cuGraphInstantiateWithFlags(CUgraphExec *ret, CUgraph graph, unsigned long long flags)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || !object_is(graph, OBJECT_GRAPH) || flags > 15, CUDA_ERROR_INVALID_VALUE);
	*ret = object_new(OBJECT_EXEC, sizeof(**ret), NULL);
	(*ret)->graph = graph_copy(graph);
	object_unlink((*ret)->graph);
	(*ret)->flags = flags;
	(void)object_take(*ret, context->device, config_number("EXEC_BYTES", 0));
	LEAVE(CUDA_SUCCESS);
}

static void graph_push(CUgraph graph, CUstream stream);

static void graph_push_node(CUgraphNode node, CUstream stream)
{
	if (node->disabled)
		;
	else if (node->type == NODE_CHILD)
		graph_push(node->child, stream);
	else if (node->type == NODE_CONDITION && condition_chosen(node))
		graph_push(condition_chosen(node), stream);
	else if (node->type == NODE_RECORD)
		event_record(node->event, stream);
	else if (node->type == NODE_WAIT)
		event_wait(node->event, stream);
	else if (node->work)
		(void)stream_push(stream, graph_copy_work(node));
	node->done = true;
}

static bool graph_is_ready(const struct CUgraphNode_st *node)
{
	for (size_t i = 0; i < node->dependency_count; i++)
		if (!node->dependencies[i]->done)
			return false;
	return !node->done;
}

static void graph_push(CUgraph graph, CUstream stream)
{
	bool again = true;

	for (size_t i = 0; i < graph->count; i++)
		graph->nodes[i]->done = false;
	while (again) {
		again = false;
		for (size_t i = 0; i < graph->count; i++)
			if (graph_is_ready(graph->nodes[i])) {
				graph_push_node(graph->nodes[i], stream);
				again = true;
			}
	}
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
	CUcontext context;
	CUstream stream;
	CUgraphNode node;

	CALL_CONTEXT(context);
	LEAVE_IF(!object_is(exec, OBJECT_EXEC), CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(stream_find(context, handle, &stream), CUDA_ERROR_INVALID_HANDLE);
	if (stream->capture) {
		struct work *empty = calloc(1, sizeof(*empty));
		CUresult r;

		(void)capture_takes(stream, NODE_CHILD, empty, sizeof(*empty), &r);
		LEAVE_IF(r, r);
		node = stream->captured[0];
		node->child = graph_copy(exec->graph);
		LEAVE(CUDA_SUCCESS);
	}
	graph_push(exec->graph, stream);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream handle)
{
	CUcontext context;
	CUstream stream;

	CALL_CONTEXT(context);
	LEAVE_IF(!object_is(exec, OBJECT_EXEC), CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(stream_find(context, handle, &stream), CUDA_ERROR_INVALID_HANDLE);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *ret)
{
	CALL(__func__);
	LEAVE_IF(!ret || !object_is(exec, OBJECT_EXEC), CUDA_ERROR_INVALID_VALUE);
	*ret = exec->flags;
	LEAVE(CUDA_SUCCESS);
}

/* What it is made of stays: streams may have work of it. */
static void graph_forget_objects(CUgraph graph)
{
	for (size_t i = 0; i < graph->count; i++)
		if (graph->nodes[i]->child)
			graph_forget_objects(graph->nodes[i]->child);
	user_object_forget(graph);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	CALL(__func__);
	LEAVE_IF(!object_is(exec, OBJECT_EXEC), CUDA_ERROR_INVALID_VALUE);
	graph_forget_objects(exec->graph);
	object_free(exec);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
					   const CUDA_KERNEL_NODE_PARAMS *parameters)
{
	struct launch *launch;
	CUcontext context;
	CUgraphNode twin;
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(!parameters || !object_is(exec, OBJECT_EXEC), CUDA_ERROR_INVALID_VALUE);
	twin = graph_twin(exec->graph, node);
	LEAVE_IF(!twin || twin->type != NODE_KERNEL, CUDA_ERROR_INVALID_VALUE);
	r = graph_launch_of(parameters, context, &launch);
	LEAVE_IF(r, r);
	graph_set_kernel(twin, parameters, launch);
	LEAVE(CUDA_SUCCESS);
}

/* The same nodes in the same order take the new work; else nothing is changed. */
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *ret)
{
	bool same;

	CALL(__func__);
	LEAVE_IF(!ret || !object_is(exec, OBJECT_EXEC) || !object_is(graph, OBJECT_GRAPH), CUDA_ERROR_INVALID_VALUE);
	*ret = (CUgraphExecUpdateResultInfo){0};
	same = exec->graph->count == graph->count;
	for (size_t i = 0; same && i < graph->count; i++)
		same = graph->nodes[i]->type == exec->graph->nodes[i]->type;
	if (!same)
		ret->result = 2; /* the topology changed */
	LEAVE_IF(!same, 910);
	for (size_t i = 0; i < graph->count; i++) {
		graph_free_work(exec->graph->nodes[i]);
		exec->graph->nodes[i]->work = graph_copy_work(graph->nodes[i]);
		exec->graph->nodes[i]->size = graph->nodes[i]->size;
		if (exec->graph->nodes[i]->child) {
			graph_free(exec->graph->nodes[i]->child);
			exec->graph->nodes[i]->child = graph_copy(graph->nodes[i]->child);
		}
	}
	LEAVE(CUDA_SUCCESS);
}

/* ---- nodes changed, and asked for what they are ---- */

bool graph_is_node(CUgraphNode node, enum node_type type)
{
	return object_is(node, OBJECT_NODE) && node->type == type;
}

CUgraphNode graph_in_exec(CUgraphExec exec, CUgraphNode node, enum node_type type)
{
	CUgraphNode twin = object_is(exec, OBJECT_EXEC) ? graph_twin(exec->graph, node) : NULL;

	return twin && twin->type == type ? twin : NULL;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *ret)
{
	CALL(__func__);
	LEAVE_IF(!ret || !graph_is_node(node, NODE_CHILD), CUDA_ERROR_INVALID_VALUE);
	*ret = node->child;
	LEAVE(CUDA_SUCCESS);
}

static CUresult graph_get_event(CUgraphNode node, CUevent *ret, enum node_type type)
{
	if (!ret || !graph_is_node(node, type))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = node->event;
	return CUDA_SUCCESS;
}

static CUresult graph_set_event(CUgraphNode node, CUevent event)
{
	if (!node || !object_is(event, OBJECT_EVENT))
		return CUDA_ERROR_INVALID_VALUE;
	node->event = event;
	return CUDA_SUCCESS;
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *ret)
{
	CALL(__func__);
	LEAVE(graph_get_event(node, ret, NODE_RECORD));
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *ret)
{
	CALL(__func__);
	LEAVE(graph_get_event(node, ret, NODE_WAIT));
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
	CALL(__func__);
	LEAVE(graph_set_event(graph_is_node(node, NODE_RECORD) ? node : NULL, event));
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
	CALL(__func__);
	LEAVE(graph_set_event(graph_is_node(node, NODE_WAIT) ? node : NULL, event));
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
	CALL(__func__);
	LEAVE(graph_set_event(graph_in_exec(exec, node, NODE_RECORD), event));
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
	CALL(__func__);
	LEAVE(graph_set_event(graph_in_exec(exec, node, NODE_WAIT), event));
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child)
{
	CUgraphNode twin;

	CALL(__func__);
	twin = graph_in_exec(exec, node, NODE_CHILD);
	LEAVE_IF(!twin || !object_is(child, OBJECT_GRAPH) || child->count != twin->child->count,
		 CUDA_ERROR_INVALID_VALUE);
	graph_free(twin->child);
	twin->child = graph_copy(child);
	LEAVE(CUDA_SUCCESS);
}

static CUresult graph_set_fill(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext context)
{
	struct fill *fill;
	CUresult r = !node || !parameters ? CUDA_ERROR_INVALID_VALUE : fill_prepare(context, parameters, &fill);

	if (r || !fill)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	graph_free_work(node);
	node->work = &fill->work;
	node->size = sizeof(*fill);
	node->fill = *parameters;
	return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *ret)
{
	CALL(__func__);
	LEAVE_IF(!ret || !graph_is_node(node, NODE_FILL), CUDA_ERROR_INVALID_VALUE);
	*ret = node->fill;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *parameters)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE(graph_set_fill(graph_is_node(node, NODE_FILL) ? node : NULL, parameters, context));
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *parameters,
					CUcontext where)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!where, CUDA_ERROR_INVALID_VALUE);
	LEAVE(graph_set_fill(graph_in_exec(exec, node, NODE_FILL), parameters, context));
}

CUresult cuGraphNodeFindInClone(CUgraphNode *ret, CUgraphNode node, CUgraph clone)
{
	CALL(__func__);
	LEAVE_IF(!ret || !object_is(node, OBJECT_NODE) || !object_is(clone, OBJECT_GRAPH), CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(!graph_twin(clone, node), CUDA_ERROR_INVALID_VALUE);
	*ret = graph_twin(clone, node);
	LEAVE(CUDA_SUCCESS);
}

static CUresult graph_list_found(const CUgraphNode *found, size_t found_count, CUgraphNode *nodes, size_t *count)
{
	for (size_t i = 0; nodes && i < *count; i++)
		nodes[i] = i < found_count ? found[i] : NULL;
	if (!nodes || *count > found_count)
		*count = found_count;
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
	CALL(__func__);
	LEAVE_IF(!count || !object_is(node, OBJECT_NODE), CUDA_ERROR_INVALID_VALUE);
	LEAVE(graph_list_found(node->dependencies, node->dependency_count, nodes, count));
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
	CUgraphNode found[256];
	size_t found_count = 0;

	CALL(__func__);
	LEAVE_IF(!count || !object_is(node, OBJECT_NODE), CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < node->graph->count; i++)
		for (size_t j = 0; j < node->graph->nodes[i]->dependency_count && found_count < 256; j++)
			if (node->graph->nodes[i]->dependencies[j] == node)
				found[found_count++] = node->graph->nodes[i];
	LEAVE(graph_list_found(found, found_count, nodes, count));
}

static CUgraphNode graph_switchable(CUgraphExec exec, CUgraphNode node)
{
	CUgraphNode twin = object_is(exec, OBJECT_EXEC) ? graph_twin(exec->graph, node) : NULL;

	return twin && twin->type <= NODE_FILL ? twin : NULL;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned *ret)
{
	CALL(__func__);
	LEAVE_IF(!ret || !graph_switchable(exec, node), CUDA_ERROR_INVALID_VALUE);
	*ret = !graph_switchable(exec, node)->disabled;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled)
{
	CALL(__func__);
	LEAVE_IF(!graph_switchable(exec, node), CUDA_ERROR_INVALID_VALUE);
	graph_switchable(exec, node)->disabled = !enabled;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	CUresult r;

	CALL(__func__);
	r = graph_check(graph, from, count);
	if (!r)
		r = graph_check(graph, to, count);
	for (size_t i = 0; !r && i < count; i++) {
		size_t left = 0;

		for (size_t j = 0; j < to[i]->dependency_count; j++)
			if (to[i]->dependencies[j] != from[i])
				to[i]->dependencies[left++] = to[i]->dependencies[j];
		r = left == to[i]->dependency_count ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
		to[i]->dependency_count = left;
	}
	LEAVE(r);
}

/* ---- kernels before CUDA 12 ---- */

static CUDA_KERNEL_NODE_PARAMS graph_widen(const CUDA_KERNEL_NODE_PARAMS_v1 *old)
{
	CUDA_KERNEL_NODE_PARAMS wide = {0};

	if (old)
		memcpy(&wide, old, sizeof(*old));
	return wide;
}

CUresult cuGraphAddKernelNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count,
			      const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
	const CUDA_KERNEL_NODE_PARAMS wide = graph_widen(parameters);

	return cuGraphAddKernelNode_v2(ret, graph, dependencies, count, parameters ? &wide : NULL);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *ret)
{
	CUDA_KERNEL_NODE_PARAMS wide;
	CUresult r = cuGraphKernelNodeGetParams_v2(node, ret ? &wide : NULL);

	if (!r && !wide.function)
		r = cuKernelGetFunction(&wide.function, wide.kernel);
	if (!r)
		memcpy(ret, &wide, sizeof(*ret));
	return r;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
	const CUDA_KERNEL_NODE_PARAMS wide = graph_widen(parameters);

	return cuGraphKernelNodeSetParams_v2(node, parameters ? &wide : NULL);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
	const CUDA_KERNEL_NODE_PARAMS wide = graph_widen(parameters);

	return cuGraphExecKernelNodeSetParams_v2(exec, node, parameters ? &wide : NULL);
}

/* ---- the first forms of others ---- */

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *ret_node, int *ret)
{
	CUgraphExecUpdateResultInfo info = {0};
	CUresult r = cuGraphExecUpdate_v2(exec, graph, &info);

	if (ret_node)
		*ret_node = info.error_node;
	if (ret)
		*ret = info.result;
	return r;
}

CUresult cuGraphInstantiate_v2(CUgraphExec *ret, CUgraph graph, CUgraphNode *ret_node, char *log, size_t size)
{
	if (ret_node)
		*ret_node = NULL;
	if (log && size)
		log[0] = '\0';
	return cuGraphInstantiateWithFlags(ret, graph, 0);
}

CUresult cuGraphInstantiate(CUgraphExec *ret, CUgraph graph, CUgraphNode *ret_node, char *log, size_t size)
{
	return cuGraphInstantiate_v2(ret, graph, ret_node, log, size);
}
