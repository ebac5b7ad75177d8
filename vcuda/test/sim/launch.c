/* SPDX-License-Identifier: Apache-2.0 */

/* Launches: what is wrong with one is said at once; what goes wrong in the kernel stays with the context. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static void launch_free(struct launch *launch)
{
	free(launch->function);
	launch->function = NULL;
}

void launch_run(struct work *work, CUcontext context)
{
	struct launch *launch = (struct launch *)work;

	if (launch->function->run)
		launch->function->run(launch);
	else
		(void)fprintf(stderr, "simulated driver: it has no kernel \"%s\"\n", launch->function->name);
	(void)pthread_mutex_lock(&sim_lock);
	if (!launch->function->run)
		launch->error = CUDA_ERROR_LAUNCH_FAILED;
	if (launch->error && !context->sticky)
		context->sticky = launch->error;
	(void)pthread_mutex_unlock(&sim_lock);
	launch_free(launch);
}

static CUresult launch_arguments(struct launch *launch, const struct CUfunc_st *function, void **parameters,
				 void **extra)
{
	const void *buffer = NULL;
	size_t size = 0;

	if (parameters && extra)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; parameters && i < function->parameter_count; i++)
		memcpy(launch->arguments + function->parameters[i].offset, parameters[i], function->parameters[i].size);
	for (; extra && *extra; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			size = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (buffer && size > sizeof(launch->arguments))
		return CUDA_ERROR_INVALID_VALUE;
	if (buffer)
		memcpy(launch->arguments, buffer, size);
	if (function->parameter_count && !parameters && !buffer)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static bool launch_fits(const CUlaunchConfig *config, const struct CUfunc_st *function)
{
	if (!config->grid_x || !config->grid_y || !config->grid_z || !config->block_x || !config->block_y ||
	    !config->block_z)
		return false;
	if (config->grid_x > 2147483647 || config->grid_y > 65535 || config->grid_z > 65535)
		return false;
	if (config->block_x > 1024 || config->block_y > 1024 || config->block_z > 64 ||
	    config->block_x * config->block_y * config->block_z > function->max_threads)
		return false;
	return config->shared <= (unsigned)function->max_dynamic_shared;
}

CUresult launch_prepare(CUcontext context, const CUlaunchConfig *config, CUfunction handle, void **parameters,
			void **extra, struct launch **ret)
{
	struct launch *launch;
	CUfunction function;
	CUresult r = library_function(context, handle, &function);

	if (r)
		return r;
	if (!launch_fits(config, function))
		return CUDA_ERROR_INVALID_VALUE;
	r = context_take_local(context, function->declared_local);
	if (r)
		return r;
	launch = calloc(1, sizeof(*launch));
	if (!launch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = launch_arguments(launch, function, parameters, extra);
	if (r) {
		free(launch);
		return r;
	}
	launch->work.run = launch_run;
	launch->context = context;
	launch->function = malloc(sizeof(*function));
	if (!launch->function)
		abort();
	memcpy(launch->function, function, sizeof(*function));
	memcpy(launch->grid, (unsigned[]){config->grid_x, config->grid_y, config->grid_z}, sizeof(launch->grid));
	memcpy(launch->block, (unsigned[]){config->block_x, config->block_y, config->block_z}, sizeof(launch->block));
	launch->shared = config->shared;
	*ret = launch;
	return CUDA_SUCCESS;
}

static CUresult launch_push(CUcontext context, const CUlaunchConfig *config, CUfunction function, void **parameters,
			    void **extra)
{
	struct launch *launch;
	CUstream stream;
	CUresult r = stream_find(context, config->stream, &stream);

	if (r)
		return r;
	r = launch_prepare(context, config, function, parameters, extra, &launch);
	if (r || capture_takes(stream, NODE_KERNEL, &launch->work, sizeof(*launch), &r))
		return r;
	(void)stream_push(stream, &launch->work);
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
			unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters,
			void **extra)
{
	CUlaunchConfig config = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0};
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE(launch_push(context, &config, function, parameters, extra));
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!config || (config->attribute_count && !config->attributes), CUDA_ERROR_INVALID_VALUE);
	LEAVE(launch_push(context, config, function, parameters, extra));
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
				   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
				   CUstream stream, void **parameters)
{
	CUlaunchConfig config = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0};
	CUcontext context;
	int blocks;
	CUresult r;

	r = cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, (int)(block_x * block_y * block_z), shared);
	CALL_CONTEXT(context);
	LEAVE_IF(!r && (size_t)grid_x * grid_y * grid_z >
				 (size_t)blocks * (size_t)device_attribute(context->device, 16),
		 720);
	LEAVE(launch_push(context, &config, function, parameters, NULL));
}
