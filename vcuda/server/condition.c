/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Nodes of graphs that run others on a condition. Kernels set it by the driver's number, so the client has that, and
 * here stands which of them it was given for which graph.
 */

#include <stdlib.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/request.h"

enum { CONDITIONS = 65536, CONDITION_NODE = 13, CONDITION_GRAPHS = 64, WORDS = 5 };

static struct condition {
	uint64_t graph; /* its handle, which no other graph will have */
	CUgraphConditionalHandle number;
} conditions[CONDITIONS];
static uint32_t condition_count;

static bool condition_lives(const struct condition *condition)
{
	uint64_t real;

	return handle_look(condition->graph, WIRE_GRAPH, &real);
}

/* Those of graphs that are gone make room. */
static bool condition_add(uint64_t graph, CUgraphConditionalHandle number)
{
	if (condition_count == CONDITIONS)
		for (uint32_t i = condition_count; i > 0; i--)
			if (!condition_lives(&conditions[i - 1]))
				conditions[i - 1] = conditions[--condition_count];
	if (condition_count == CONDITIONS)
		return false;
	conditions[condition_count++] = (struct condition){graph, number};
	return true;
}

static bool condition_is(uint64_t graph, CUgraphConditionalHandle number)
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
	if (!r && !condition_add(q->argument[0], number))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r)
		request_reply(q, &number, sizeof(number));
	return r;
}

/* The node, and its graphs, which are not the client's to end. */
static CUresult condition_reply(struct request *q, CUgraphNode node, const CUDA_CONDITIONAL_NODE_PARAMS *condition)
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
	const unsigned before_count = q->header.words > WORDS ? q->header.words - WORDS : 0;
	CUresult r = driver.cuGraphAddNode_v2 ? request_words(q, WORDS + before_count) : CUDA_ERROR_NOT_SUPPORTED;
	CUgraphNodeParams parameters = {.type = CONDITION_NODE};
	CUDA_CONDITIONAL_NODE_PARAMS *condition = &parameters.conditional;
	uint64_t graph = 0, before[REQUEST_HANDLES];
	CUgraphNode node = 0;

	if (!r)
		r = request_handle(q, 0, WIRE_GRAPH, &graph);
	if (!r && (before_count > REQUEST_HANDLES || !condition_is(q->argument[0], q->argument[1]) ||
		   q->argument[3] == 0 || q->argument[3] > CONDITION_GRAPHS))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && q->argument[4])
		r = request_handle(q, 4, WIRE_CONTEXT, &condition->ctx);
	for (unsigned i = 0; i < before_count && !r; i++)
		r = request_handle(q, WORDS + i, WIRE_NODE, &before[i]);
	if (r)
		return r;
	condition->handle = q->argument[1];
	condition->type = (CUgraphConditionalNodeType)q->argument[2];
	condition->size = (unsigned)q->argument[3];
	r = driver.cuGraphAddNode_v2(&node, graph, before, NULL, before_count, &parameters);
	if (!r && !condition->phGraph_out)
		r = CUDA_ERROR_NOT_SUPPORTED;
	return r ? r : condition_reply(q, node, condition);
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
