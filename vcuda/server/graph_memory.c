/* SPDX-License-Identifier: Apache-2.0 */

/* Memory that graphs take when they run, and what of it a device keeps. */

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"

enum { GRAPH_MEMORY_PIECE = 512, GRAPH_MEMORY_WORDS = 3 };

/*
 * Graph, device, bytes, and nodes before it. It is taken whenever the graph runs, and given back by nobody that could
 * be seen: like what a capture allocates, it counts until the process ends.
 */
CUresult serve_cuGraphAddMemAllocNode(struct request *q)
{
	const unsigned count = q->header.words > GRAPH_MEMORY_WORDS ? q->header.words - GRAPH_MEMORY_WORDS : 0;
	CUresult r =
		driver.cuGraphAddMemAllocNode ? request_words(q, GRAPH_MEMORY_WORDS + count) : CUDA_ERROR_NOT_SUPPORTED;
	CUDA_MEM_ALLOC_NODE_PARAMS parameters = {.poolProps = {.allocType = 1, .location = {.type = 1}}};
	uint64_t graph = 0, before[REQUEST_HANDLES], bytes;
	CUgraphNode node = 0;
	DRIVER_MEMORY_HOLD;

	if (!r)
		r = request_handle(q, 0, WIRE_GRAPH, &graph);
	if (!r)
		r = request_device(q, 1, &parameters.poolProps.location.id);
	if (!r && count > REQUEST_HANDLES)
		r = CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count && !r; i++)
		r = request_handle(q, GRAPH_MEMORY_WORDS + i, WIRE_NODE, &before[i]);
	if (r)
		return r;
	if (__builtin_add_overflow(q->argument[2], GRAPH_MEMORY_PIECE - 1, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	bytes &= ~(uint64_t)(GRAPH_MEMORY_PIECE - 1);
	if (!allocation_take(bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	parameters.bytesize = q->argument[2];
	r = driver.cuGraphAddMemAllocNode(&node, graph, before, count, &parameters);
	if (!r && !quota_note(QUOTA_GRAPH, parameters.dptr, bytes, 0))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r) {
		quota_give(bytes);
		return r;
	}
	r = request_reply_handle(q, WIRE_NODE, node, q->argument[0]);
	if (!r)
		request_reply(q, &parameters.dptr, sizeof(parameters.dptr));
	return r;
}

/* Each of the numbers has 8 bytes. */
CUresult serve_cuDeviceGetGraphMemAttribute(struct request *q)
{
	CUresult r = driver.cuDeviceGetGraphMemAttribute ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	uint64_t value = 0;
	CUdevice device = 0;

	if (!r)
		r = request_device(q, 0, &device);
	if (!r)
		r = driver.cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)q->argument[1], &value);
	if (!r)
		request_reply(q, &value, sizeof(value));
	return r;
}

CUresult serve_cuDeviceSetGraphMemAttribute(struct request *q)
{
	CUresult r = driver.cuDeviceSetGraphMemAttribute ? request_words(q, 3) : CUDA_ERROR_NOT_SUPPORTED;
	CUdevice device = 0;

	if (!r)
		r = request_device(q, 0, &device);
	return r ? r
		 : driver.cuDeviceSetGraphMemAttribute(device, (CUgraphMem_attribute)q->argument[1], &q->argument[2]);
}
