/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A launch does not wait if the client can tell that the driver will take it. In all other cases it waits, and the
 * driver says what is wrong with it.
 */

#include "vcuda/client/context.h"

#include <stdlib.h>
#include <string.h>

#include "vcuda/client/call.h"
#include "vcuda/client/client.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

enum {
	LAUNCH_WORDS = 7,
	LAUNCH_ATTRIBUTES = 16,
	LAUNCH_MAX_THREADS = 0, /* numbers of CUfunction_attribute */
	LAUNCH_MAX_DYNAMIC = 8,
	/* The words of parameters given as one buffer. */
	LAUNCH_END = 0,
	LAUNCH_BUFFER = 1,
	LAUNCH_BUFFER_BYTES = 2,
};

struct launch {
	uint64_t function;
	unsigned grid[3], block[3], shared;
	CUstream stream;
	const CUlaunchAttribute *attributes;
	unsigned attribute_count;
	void **parameters;
	const void *buffer;
	size_t buffer_bytes;
};

static CUresult launch_read_extra(struct launch *launch, void **extra)
{
	for (; extra && *extra != (void *)LAUNCH_END; extra += 2) {
		if (*extra == (void *)LAUNCH_BUFFER)
			launch->buffer = extra[1];
		else if (*extra == (void *)LAUNCH_BUFFER_BYTES && extra[1])
			launch->buffer_bytes = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static bool launch_is_sure(const struct launch *launch, const struct function *function, CUdevice device)
{
	const uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
	const int32_t *most = client.device[device].attribute;

	for (int i = 0; i < 3; i++)
		if (launch->grid[i] == 0 || launch->block[i] == 0 ||
		    launch->block[i] > (unsigned)most[DEVICE_MAX_BLOCK_X + i] ||
		    launch->grid[i] > (unsigned)most[DEVICE_MAX_GRID_X + i])
			return false;
	return wire_is_stream(launch->stream) && threads <= (uint64_t)function->info.attribute[LAUNCH_MAX_THREADS] &&
	       launch->shared <= (unsigned)function->info.attribute[LAUNCH_MAX_DYNAMIC];
}

static void launch_pack(const struct launch *launch, const struct wire_function *info, uint8_t *to)
{
	if (launch->buffer) {
		memcpy(to, launch->buffer, info->bytes < launch->buffer_bytes ? info->bytes : launch->buffer_bytes);
		return;
	}
	for (unsigned i = 0; i < info->parameters; i++) {
		uint8_t *at = to + info->parameter[i].offset;
		const void *from = launch->parameters[i];

		/* What most are, without a call. */
		if (info->parameter[i].size == 8)
			memcpy(at, from, 8);
		else if (info->parameter[i].size == 4)
			memcpy(at, from, 4);
		else
			memcpy(at, from, info->parameter[i].size);
	}
}

/* What the client itself can tell to be wrong; else the thread that launches, and what is known of the function. */
static CUresult launch_check(const struct launch *launch, struct thread **ret_thread,
			     const struct function **ret_function)
{
	CUresult r = call_enter(ret_thread);

	if (r)
		return r;
	if (!thread_context(*ret_thread))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!launch->function) {
		r = call_context_failure(*ret_thread);
		return r ? r : CUDA_ERROR_INVALID_HANDLE;
	}
	r = image_function(launch->function, ret_function);
	if (r)
		return r;
	if (launch->attribute_count > LAUNCH_ATTRIBUTES || (launch->parameters && launch->buffer))
		return CUDA_ERROR_INVALID_VALUE;
	return (*ret_function)->info.parameters == 0 || launch->parameters || launch->buffer ? CUDA_SUCCESS
											     : CUDA_ERROR_INVALID_VALUE;
}

static void launch_write(const struct launch *launch, const struct wire_function *info, uint64_t *argument)
{
	const size_t attributes = launch->attribute_count * sizeof(CUlaunchAttribute);

	argument[0] = launch->function;
	argument[1] = launch->grid[0] | (uint64_t)launch->grid[1] << 32;
	argument[2] = launch->grid[2] | (uint64_t)launch->block[0] << 32;
	argument[3] = launch->block[1] | (uint64_t)launch->block[2] << 32;
	argument[4] = launch->shared;
	argument[5] = launch->stream;
	argument[6] = launch->attribute_count | (uint64_t)info->bytes << 32;
	if (attributes)
		memcpy(argument + LAUNCH_WORDS, launch->attributes, attributes);
	launch_pack(launch, info, (uint8_t *)(argument + LAUNCH_WORDS) + attributes);
}

static CUresult launch_push(unsigned op, const struct launch *launch)
{
	const struct function *function;
	struct thread *thread;
	struct wire_entry *entry;
	CUresult r = launch_check(launch, &thread, &function);
	size_t bytes;
	bool waits;

	if (!r)
		r = call_failure(thread);
	if (r)
		return r;
	waits = client.waits || client.captures || op == OP_cuLaunchCooperativeKernel ||
		!launch_is_sure(launch, function, thread_context(thread)->device);
	bytes = LAUNCH_WORDS * 8 + launch->attribute_count * sizeof(CUlaunchAttribute) + function->info.bytes;
	entry = call_begin(thread, op, LAUNCH_WORDS, bytes, waits);
	if (!entry)
		return call_lost();
	launch_write(launch, &function->info, wire_arguments(entry));
	call_end();
	return waits ? call_wait(thread, false) : CUDA_SUCCESS;
}

CUresult on_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
			   unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters,
			   void **extra)
{
	struct launch launch = {
		.function = function,
		.grid = {grid_x, grid_y, grid_z},
		.block = {block_x, block_y, block_z},
		.shared = shared,
		.stream = stream,
		.parameters = parameters,
	};

	if (launch_read_extra(&launch, extra))
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	return launch_push(OP_cuLaunchKernel, &launch);
}

CUresult on_cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
				      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
				      CUstream stream, void **parameters)
{
	const struct launch launch = {
		.function = function,
		.grid = {grid_x, grid_y, grid_z},
		.block = {block_x, block_y, block_z},
		.shared = shared,
		.stream = stream,
		.parameters = parameters,
	};

	return launch_push(OP_cuLaunchCooperativeKernel, &launch);
}

CUresult on_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
	struct launch launch = {.function = function, .parameters = parameters};

	if (!config || (config->numAttrs && !config->attrs) || launch_read_extra(&launch, extra))
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	launch.grid[0] = config->gridDimX;
	launch.grid[1] = config->gridDimY;
	launch.grid[2] = config->gridDimZ;
	launch.block[0] = config->blockDimX;
	launch.block[1] = config->blockDimY;
	launch.block[2] = config->blockDimZ;
	launch.shared = config->sharedMemBytes;
	launch.stream = config->hStream;
	launch.attributes = config->attrs;
	launch.attribute_count = config->numAttrs;
	return launch_push(OP_cuLaunchKernelEx, &launch);
}

/* ---- kernels in graphs ---- */

/* The same words and bytes as of a launch, behind the handles that the operation takes first. */
static CUresult launch_send_node_here(unsigned op, const uint64_t *first, size_t first_count,
				      const CUDA_KERNEL_NODE_PARAMS *parameters, uint64_t *ret)
{
	enum { FIXED = 6 };
	uint64_t words[FIXED];
	struct launch launch = {.parameters = parameters->kernelParams};
	const struct function *function;
	struct call_part part;
	uint8_t *packed;
	CUresult r;

	launch.function = parameters->func ? parameters->func : parameters->kern;
	r = launch.function ? image_function(launch.function, &function) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = launch_read_extra(&launch, parameters->extra);
	if (!r && function->info.parameters && !launch.parameters && !launch.buffer)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return call_fail(r);
	packed = calloc(1, function->info.bytes + 8);
	if (!packed)
		return CUDA_ERROR_OUT_OF_MEMORY;
	launch_pack(&launch, &function->info, packed);
	words[0] = launch.function;
	words[1] = parameters->gridDimX | (uint64_t)parameters->gridDimY << 32;
	words[2] = parameters->gridDimZ | (uint64_t)parameters->blockDimX << 32;
	words[3] = parameters->blockDimY | (uint64_t)parameters->blockDimZ << 32;
	words[4] = parameters->sharedMemBytes;
	words[5] = function->info.bytes;
	part = (struct call_part){packed, function->info.bytes};
	r = call_with_handles(op, words, FIXED, first, first_count, &part, ret, ret ? sizeof(*ret) : 0);
	free(packed);
	return r;
}

/* A kernel of a library is to run in the context that is named, if one is; a function has its own. */
static CUresult launch_send_node(unsigned op, const uint64_t *first, size_t first_count,
				 const CUDA_KERNEL_NODE_PARAMS *parameters, uint64_t *ret)
{
	const bool elsewhere = !parameters->func && parameters->ctx;
	CUresult r = elsewhere ? cuCtxPushCurrent_v2(parameters->ctx) : CUDA_SUCCESS;

	if (r)
		return r;
	r = launch_send_node_here(op, first, first_count, parameters, ret);
	if (elsewhere)
		(void)cuCtxPopCurrent_v2(NULL);
	return r;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
				 const CUDA_KERNEL_NODE_PARAMS *parameters)
{
	uint64_t *first;
	CUresult r;

	if (!node || !parameters || (count && !before) || count >= CALL_HANDLES)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	first = malloc((1 + count) * sizeof(*first));
	if (!first)
		return call_fail(CUDA_ERROR_OUT_OF_MEMORY);
	first[0] = graph;
	if (count)
		memcpy(&first[1], before, count * sizeof(*before));
	r = launch_send_node(OP_cuGraphAddKernelNode_v2, first, 1 + count, parameters, node);
	free(first);
	return r;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters)
{
	return parameters ? launch_send_node(OP_cuGraphKernelNodeSetParams_v2, &node, 1, parameters, NULL)
			  : call_fail(CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
					   const CUDA_KERNEL_NODE_PARAMS *parameters)
{
	const uint64_t first[] = {exec, node};

	return parameters ? launch_send_node(OP_cuGraphExecKernelNodeSetParams_v2, first, 2, parameters, NULL)
			  : call_fail(CUDA_ERROR_INVALID_VALUE);
}

/* ---- the same as before CUDA 12, without kernels of libraries ---- */

static const CUDA_KERNEL_NODE_PARAMS *launch_widen(const CUDA_KERNEL_NODE_PARAMS_v1 *old, CUDA_KERNEL_NODE_PARAMS *to)
{
	if (!old)
		return NULL;
	memset(to, 0, sizeof(*to));
	memcpy(to, old, sizeof(*old));
	return to;
}

CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
			      const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
	CUDA_KERNEL_NODE_PARAMS wide;

	return cuGraphAddKernelNode_v2(node, graph, before, count, launch_widen(parameters, &wide));
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
	CUDA_KERNEL_NODE_PARAMS wide;

	return cuGraphKernelNodeSetParams_v2(node, launch_widen(parameters, &wide));
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
	CUDA_KERNEL_NODE_PARAMS wide;

	return cuGraphExecKernelNodeSetParams_v2(exec, node, launch_widen(parameters, &wide));
}

/* Events: where the driver answers otherwise than to all that lack a place for a result. */

static CUresult event_elapsed(unsigned op, float *milliseconds, CUevent begin, CUevent end)
{
	const uint64_t words[] = {begin, end};

	if (!milliseconds)
		return call_fail(CUDA_ERROR_INVALID_HANDLE);
	return call_sync(op, words, 2, NULL, 0, milliseconds, sizeof(*milliseconds));
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end)
{
	return event_elapsed(OP_cuEventElapsedTime, milliseconds, begin, end);
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent begin, CUevent end)
{
	return event_elapsed(OP_cuEventElapsedTime_v2, milliseconds, begin, end);
}

/* ---- how many blocks and clusters fit, and how large a block may be ---- */

enum {
	OCCUPANCY_WARP = 32,
	OCCUPANCY_BLOCK = 1024,    /* threads: more has no GPU, whatever the server says */
	OCCUPANCY_ATTRIBUTES = 16, /* of a launch */
	OCCUPANCY_MAX_THREADS = 0, /* number of a CUfunction_attribute */
};

struct occupancy {
	CUfunction function;
	CUoccupancyB2DSize dynamic; /* the shared memory of a block */
	unsigned flags;
	int block, blocks; /* the best so far */
	int threads;       /* of a processor that it keeps busy */
};

static CUresult occupancy_try(struct occupancy *best, int block)
{
	int blocks = 0;
	CUresult r = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, best->function, block,
									  best->dynamic(block), best->flags);

	if (!r && (blocks < 0 || blocks > OCCUPANCY_BLOCK))
		return CUDA_ERROR_UNKNOWN;
	if (!r && block * blocks > best->threads) {
		best->block = block;
		best->blocks = blocks;
		best->threads = block * blocks;
	}
	return r;
}

/*
 * The server cannot call the program's function, so sizes are tried here as the documentation has it: whole warps, from
 * the largest down, until no smaller one could keep more threads busy.
 */
static CUresult occupancy_search(struct occupancy *best, int limit, int *ret_processors)
{
	const struct function *function;
	struct context *context;
	CUresult r = context_current(&context);
	int threads, most;

	if (!r)
		r = image_function(best->function, &function);
	if (r)
		return r;
	most = function->info.attribute[OCCUPANCY_MAX_THREADS];
	if (most > OCCUPANCY_BLOCK)
		most = OCCUPANCY_BLOCK;
	if (limit > 0 && limit < most)
		most = limit;
	threads = device_attribute(context->device, DEVICE_PROCESSOR_THREADS);
	*ret_processors = device_attribute(context->device, DEVICE_PROCESSORS);
	for (int warps = (most + OCCUPANCY_WARP - 1) / OCCUPANCY_WARP; warps > 0 && best->threads < threads; warps--) {
		const int block = warps * OCCUPANCY_WARP;

		r = occupancy_try(best, block < most ? block : most);
		if (r)
			return r;
	}
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
						   CUoccupancyB2DSize dynamic, size_t shared, int limit, unsigned flags)
{
	const uint64_t words[] = {function, shared, (uint64_t)limit, flags};
	struct occupancy best = {.function = function, .dynamic = dynamic, .flags = flags};
	uint64_t out[2];
	int processors = 0;
	CUresult r;

	if (!grid || !block)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	if (dynamic) {
		r = occupancy_search(&best, limit, &processors);
		out[0] = (uint64_t)best.blocks * (uint64_t)processors;
		out[1] = (uint64_t)best.block;
	} else {
		r = call_sync(OP_cuOccupancyMaxPotentialBlockSizeWithFlags, words, 4, NULL, 0, out, sizeof(out));
	}
	if (r)
		return r;
	*grid = (int)out[0];
	*block = (int)out[1];
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function, CUoccupancyB2DSize dynamic,
					  size_t shared, int limit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, dynamic, shared, limit, 0);
}

/* ---- how many clusters fit ---- */

/* The words of a launch, without its parameters. */
static CUresult occupancy_count(unsigned op, int *count, CUfunction function, const CUlaunchConfig *config)
{
	struct call_part part;

	if (!count || !config || (config->numAttrs && !config->attrs) || config->numAttrs > OCCUPANCY_ATTRIBUTES)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	const uint64_t words[] = {
		function,
		config->gridDimX | (uint64_t)config->gridDimY << 32,
		config->gridDimZ | (uint64_t)config->blockDimX << 32,
		config->blockDimY | (uint64_t)config->blockDimZ << 32,
		config->sharedMemBytes,
		config->hStream,
		config->numAttrs,
	};

	part = (struct call_part){config->attrs, config->numAttrs * sizeof(*config->attrs)};
	return call_sync(op, words, sizeof(words) / sizeof(words[0]), &part, config->numAttrs ? 1 : 0, count,
			 sizeof(*count));
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function, const CUlaunchConfig *config)
{
	return occupancy_count(OP_cuOccupancyMaxPotentialClusterSize, size, function, config);
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const CUlaunchConfig *config)
{
	return occupancy_count(OP_cuOccupancyMaxActiveClusters, clusters, function, config);
}
