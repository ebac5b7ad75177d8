/* SPDX-License-Identifier: Apache-2.0 */

/* cuMemset*: a value of one, two or four bytes over rows. */

#include <stdlib.h>
#include <string.h>

#include "sim.h"

void fill_run(struct work *work, CUcontext context)
{
	const struct fill *fill = (const struct fill *)work;

	(void)context;
	for (size_t y = 0; y < fill->height; y++)
		for (size_t x = 0; x < fill->width; x++)
			memcpy((void *)(fill->to + y * fill->pitch + x * fill->element), &fill->value, fill->element);
}

CUresult fill_prepare(CUcontext context, const CUDA_MEMSET_NODE_PARAMS *what, struct fill **ret)
{
	size_t row = what->width * what->element;

	(void)context;
	*ret = NULL;
	if (!what->width || !what->height)
		return CUDA_SUCCESS;
	if (what->to % what->element || (what->height > 1 && (what->pitch < row || what->pitch % what->element)))
		return CUDA_ERROR_INVALID_VALUE;
	if (what->width > SIZE_MAX / what->element || !range_holds(what->to, (what->height - 1) * what->pitch + row))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = malloc(sizeof(**ret));
	if (!*ret)
		return CUDA_ERROR_OUT_OF_MEMORY;
	**ret = (struct fill){.work = {.run = fill_run},
			      .to = what->to,
			      .pitch = what->pitch,
			      .width = what->width,
			      .height = what->height,
			      .value = what->value,
			      .element = what->element};
	return CUDA_SUCCESS;
}

static CUresult fill_push(CUcontext context, const CUDA_MEMSET_NODE_PARAMS *what, CUstream handle)
{
	struct fill *fill;
	CUstream stream;
	CUresult r;

	if (stream_find(context, handle, &stream))
		return CUDA_ERROR_INVALID_HANDLE;
	r = fill_prepare(context, what, &fill);
	if (r || !fill || capture_takes(stream, NODE_FILL, &fill->work, sizeof(*fill), &r))
		return r;
	(void)stream_push(stream, &fill->work);
	return CUDA_SUCCESS;
}

#define FILL(bits, type)                                                                                              \
	static CUresult fill_rows_##bits(const char *name, CUdeviceptr to, size_t pitch, type value, size_t width,    \
					 size_t height, CUstream stream)                                              \
	{                                                                                                             \
		CUcontext context;                                                                                    \
		CUresult r = call_enter_context(name, &context);                                                      \
                                                                                                                      \
		if (r)                                                                                                \
			return r;                                                                                     \
		return call_leave(fill_push(                                                                          \
			context, &(CUDA_MEMSET_NODE_PARAMS){to, pitch, value, sizeof(type), width, height}, stream)); \
	}                                                                                                             \
	CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count)                                       \
	{                                                                                                             \
		return fill_rows_##bits(__func__, to, 0, value, count, 1, NULL);                                      \
	}                                                                                                             \
	CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream)                    \
	{                                                                                                             \
		return fill_rows_##bits(__func__, to, 0, value, count, 1, stream);                                    \
	}                                                                                                             \
	CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height)        \
	{                                                                                                             \
		return fill_rows_##bits(__func__, to, pitch, value, width, height, NULL);                             \
	}                                                                                                             \
	CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height,      \
					  CUstream stream)                                                            \
	{                                                                                                             \
		return fill_rows_##bits(__func__, to, pitch, value, width, height, stream);                           \
	}

FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)
