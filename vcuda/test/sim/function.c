/* SPDX-License-Identifier: Apache-2.0 */

/* Functions: their attributes, their parameters, and how many blocks of them fit. */

#include "sim.h"

enum {
	FUNCTION_ATTRIBUTES = 16,
	MAX_SHARED = 232448,
	THREADS_PER_SM = 2048,
	SHARED_PER_SM = 233472,
	BLOCKS_PER_SM = 32
};

#define FUNCTION(handle)       \
	CUcontext context;     \
	CUfunction of = NULL;  \
	CALL_CONTEXT(context); \
	LEAVE_IF(library_function(context, handle, &of), CUDA_ERROR_INVALID_HANDLE)

static int function_attribute(CUfunction function, int attribute)
{
	switch (attribute) {
	case 0:
		return (int)function->max_threads;
	case 1:
		return (int)function->declared_shared;
	case 3:
		return (int)function->declared_local;
	case 4:
		return (int)function->registers;
	case 5:
		return function->target;
	case 6:
		return 90;
	case 8:
		return function->max_dynamic_shared;
	case 9:
		return function->carveout;
	default:
		return 0;
	}
}

CUresult cuFuncGetAttribute(int *ret, int attribute, CUfunction function)
{
	FUNCTION(function);
	LEAVE_IF(!ret || attribute < 0 || attribute >= FUNCTION_ATTRIBUTES, CUDA_ERROR_INVALID_VALUE);
	*ret = function_attribute(of, attribute);
	LEAVE(CUDA_SUCCESS);
}

static CUresult function_set(CUfunction function, int attribute, int value)
{
	if (attribute == 8 && value >= 0 && value <= MAX_SHARED - (int)function->declared_shared)
		function->max_dynamic_shared = value;
	else if (attribute == 9 && value >= -1 && value <= 100)
		function->carveout = value;
	else if (attribute != 14 && attribute != 15)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
	FUNCTION(function);
	LEAVE(function_set(of, attribute, value));
}

CUresult cuKernelGetAttribute(int *ret, int attribute, CUkernel kernel, CUdevice device)
{
	FUNCTION((CUfunction)kernel);
	LEAVE_IF(!device_get(device), CUDA_ERROR_INVALID_DEVICE);
	LEAVE_IF(!ret || attribute < 0 || attribute >= FUNCTION_ATTRIBUTES, CUDA_ERROR_INVALID_VALUE);
	*ret = function_attribute(of, attribute);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel, CUdevice device)
{
	FUNCTION((CUfunction)kernel);
	LEAVE_IF(!device_get(device), CUDA_ERROR_INVALID_DEVICE);
	LEAVE(function_set(of, attribute, value));
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, int config, CUdevice device)
{
	FUNCTION((CUfunction)kernel);
	LEAVE_IF(!device_get(device), CUDA_ERROR_INVALID_DEVICE);
	LEAVE_IF(config < 0 || config > 3, CUDA_ERROR_INVALID_VALUE);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuFuncSetCacheConfig(CUfunction function, int config)
{
	FUNCTION(function);
	LEAVE_IF(config < 0 || config > 3, CUDA_ERROR_INVALID_VALUE);
	of->cache_config = config;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuFuncSetSharedMemConfig(CUfunction function, int config)
{
	FUNCTION(function);
	LEAVE_IF(config < 0 || config > 2, CUDA_ERROR_INVALID_VALUE);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuFuncGetModule(CUmodule *ret, CUfunction function)
{
	FUNCTION(function);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = of->module;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuFuncGetName(const char **ret, CUfunction function)
{
	FUNCTION(function);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = of->name;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuKernelGetName(const char **ret, CUkernel kernel)
{
	FUNCTION((CUfunction)kernel);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = of->name;
	LEAVE(CUDA_SUCCESS);
}

static CUresult function_parameter(CUfunction function, size_t index, size_t *ret_offset, size_t *ret_size)
{
	if (index >= function->parameter_count || !ret_offset)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_offset = function->parameters[index].offset;
	if (ret_size)
		*ret_size = function->parameters[index].size;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *ret_offset, size_t *ret_size)
{
	FUNCTION(function);
	LEAVE(function_parameter(of, index, ret_offset, ret_size));
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *ret_offset, size_t *ret_size)
{
	FUNCTION((CUfunction)kernel);
	LEAVE(function_parameter(of, index, ret_offset, ret_size));
}

CUresult cuFuncIsLoaded(int *ret, CUfunction function)
{
	FUNCTION(function);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = 1;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuFuncLoad(CUfunction function)
{
	FUNCTION(function);
	LEAVE(CUDA_SUCCESS);
}

/* ---- occupancy ---- */

static int function_blocks(CUfunction function, int block, size_t shared)
{
	size_t all = function->declared_shared + shared + 1024;
	int blocks, threads = (block + 31) / 32 * 32;

	if (block > (int)function->max_threads || shared > (size_t)function->max_dynamic_shared)
		return 0;
	blocks = THREADS_PER_SM / threads;
	if (blocks > (int)(SHARED_PER_SM / all))
		blocks = (int)(SHARED_PER_SM / all);
	return blocks < BLOCKS_PER_SM ? blocks : BLOCKS_PER_SM;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *ret, CUfunction function, int block, size_t shared,
							      unsigned flags)
{
	FUNCTION(function);
	LEAVE_IF(!ret || block <= 0 || flags > 1, CUDA_ERROR_INVALID_VALUE);
	*ret = function_blocks(of, block, shared);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ret, CUfunction function, int block, size_t shared)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(ret, function, block, shared, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *ret_grid, int *ret_block, CUfunction function,
						   CUoccupancyB2DSize size_of, size_t shared, int limit, unsigned flags)
{
	int best = 0, most = 0, max;

	FUNCTION(function);
	LEAVE_IF(!ret_grid || !ret_block || flags > 1, CUDA_ERROR_INVALID_VALUE);
	max = limit > 0 && limit < (int)of->max_threads ? limit : (int)of->max_threads;
	for (int block = max; block > 0; block -= block % 32 ? block % 32 : 32) {
		int blocks = function_blocks(of, block, size_of ? size_of(block) : shared);

		if (blocks * block > most) {
			most = blocks * block;
			best = block;
		}
	}
	*ret_block = best;
	*ret_grid = best ? most / best * device_attribute(context->device, 16) : 0;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *ret_grid, int *ret_block, CUfunction function,
					  CUoccupancyB2DSize size_of, size_t shared, int limit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(ret_grid, ret_block, function, size_of, shared, limit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *ret, CUfunction function, int blocks, int block)
{
	size_t size;

	FUNCTION(function);
	LEAVE_IF(!ret || blocks <= 0 || block <= 0, CUDA_ERROR_INVALID_VALUE);
	size = SHARED_PER_SM / (size_t)blocks;
	size = size > 1024 + of->declared_shared ? size - 1024 - of->declared_shared : 0;
	*ret = size < (size_t)of->max_dynamic_shared ? size : (size_t)of->max_dynamic_shared;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuOccupancyMaxPotentialClusterSize(int *ret, CUfunction function, const CUlaunchConfig *config)
{
	FUNCTION(function);
	LEAVE_IF(!ret || !config, CUDA_ERROR_INVALID_VALUE);
	*ret = 8;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuOccupancyMaxActiveClusters(int *ret, CUfunction function, const CUlaunchConfig *config)
{
	unsigned blocks = 1;

	FUNCTION(function);
	LEAVE_IF(!ret || !config, CUDA_ERROR_INVALID_VALUE);
	for (unsigned i = 0; i < config->attribute_count; i++)
		if (config->attributes[i].id == 4)
			blocks = config->attributes[i].value.cluster.x * config->attributes[i].value.cluster.y *
				 config->attributes[i].value.cluster.z;
	LEAVE_IF(!blocks, CUDA_ERROR_INVALID_VALUE);
	*ret = function_blocks(of, (int)(config->block_x * config->block_y * config->block_z), config->shared) *
	       device_attribute(context->device, 16) / (int)blocks;
	LEAVE(CUDA_SUCCESS);
}
