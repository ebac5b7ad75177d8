/* SPDX-License-Identifier: Apache-2.0 */

/* How many blocks and clusters fit, and how large a block may be. */

#include <string.h>

#include "vcuda/client/call.h"
#include "vcuda/client/client.h"
#include "vcuda/client/context.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

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

/* ---- clusters ---- */

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
