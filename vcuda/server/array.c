/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Arrays: memory that textures and surfaces are made of, in a layout of the GPU's own. The bytes of
 * the elements are counted before the driver is asked; what it takes besides, afterwards.
 */

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"

/* Of an array that gets its memory later, by a function that is not offered. */
enum { ARRAY_SPARSE = 0x40, ARRAY_DEFERRED = 0x80 };

/* Bytes of one channel of an element. Formats that are packed or compressed have no more than 2. */
static uint64_t array_channel_bytes(CUarray_format format)
{
	enum { U8 = 1, U32 = 3, S8 = 8, S32 = 0xa, FLOAT = 0x20 };

	if (format == U8 || format == S8)
		return 1;
	return format == U32 || format == S32 || format == FLOAT ? 4 : 2;
}

/* Return: whether the bytes of all elements, with those of the smaller levels, are a number at all. */
static bool array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels, uint64_t *ret)
{
	uint64_t bytes = array_channel_bytes(array->Format) * array->NumChannels;

	if (__builtin_mul_overflow(bytes, array->Width, &bytes) ||
	    __builtin_mul_overflow(bytes, array->Height ? array->Height : 1, &bytes) ||
	    __builtin_mul_overflow(bytes, array->Depth ? array->Depth : 1, &bytes))
		return false;
	/* Each level has a quarter of the one before, or, of a line, half. */
	*ret = bytes;
	return levels <= 1 || !__builtin_add_overflow(bytes, array->Height > 1 ? bytes / 3 : bytes, ret);
}

static CUresult array_check(const CUDA_ARRAY3D_DESCRIPTOR *array)
{
	return array->Flags & (ARRAY_SPARSE | ARRAY_DEFERRED) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

static CUresult array_end(enum wire_type type, uint64_t real)
{
	return type == WIRE_ARRAY ? driver.cuArrayDestroy(real) : driver.cuMipmappedArrayDestroy(real);
}

/* The bytes that were counted become the array's, or are given back. */
static CUresult array_keep(struct request *q, CUresult r, enum wire_type type, uint64_t real, uint64_t bytes)
{
	uint64_t handle = 0;

	if (!r && driver_memory_fits())
		handle = handle_give(type, real, 0, q->header.context);
	if (handle && !quota_note(QUOTA_ARRAY, handle, bytes, q->header.context)) {
		handle_drop(handle);
		handle = 0;
	}
	if (handle) {
		request_reply(q, &handle, sizeof(handle));
		return CUDA_SUCCESS;
	}
	if (!r)
		(void)array_end(type, real);
	quota_give(bytes);
	return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult serve_cuArrayCreate_v2(struct request *q)
{
	CUresult r = driver.cuArrayCreate_v2 ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;
	CUDA_ARRAY_DESCRIPTOR array = {0};
	CUDA_ARRAY3D_DESCRIPTOR box;
	uint64_t real = 0, bytes;
	DRIVER_MEMORY_HOLD;

	if (!r)
		r = request_struct(q, 0, &array, sizeof(array));
	box = (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = array.Width, .Height = array.Height, .Format = array.Format, .NumChannels = array.NumChannels};
	if (r)
		return r;
	if (!array_bytes(&box, 1, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!allocation_take_pages(bytes, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = driver.cuArrayCreate_v2(&real, &array);
	return array_keep(q, r, WIRE_ARRAY, real, bytes);
}

/* A struct, and for a mipmapped one the number of its levels. */
static CUresult array_read(struct request *q, unsigned words, CUDA_ARRAY3D_DESCRIPTOR *ret)
{
	CUresult r = request_words(q, words);

	if (!r)
		r = request_struct(q, 0, ret, sizeof(*ret));
	return r ? r : array_check(ret);
}

CUresult serve_cuArray3DCreate_v2(struct request *q)
{
	CUDA_ARRAY3D_DESCRIPTOR array = {0};
	CUresult r = driver.cuArray3DCreate_v2 ? array_read(q, 1, &array) : CUDA_ERROR_NOT_SUPPORTED;
	uint64_t real = 0, bytes;
	DRIVER_MEMORY_HOLD;

	if (r)
		return r;
	if (!array_bytes(&array, 1, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!allocation_take_pages(bytes, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = driver.cuArray3DCreate_v2(&real, &array);
	return array_keep(q, r, WIRE_ARRAY, real, bytes);
}

CUresult serve_cuMipmappedArrayCreate(struct request *q)
{
	CUDA_ARRAY3D_DESCRIPTOR array = {0};
	CUresult r = driver.cuMipmappedArrayCreate ? array_read(q, 2, &array) : CUDA_ERROR_NOT_SUPPORTED;
	const uint64_t levels = q->argument[1];
	uint64_t real = 0, bytes;
	DRIVER_MEMORY_HOLD;

	if (r)
		return r;
	if (levels > UINT32_MAX || !array_bytes(&array, (unsigned)levels, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!allocation_take_pages(bytes, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = driver.cuMipmappedArrayCreate(&real, &array, (unsigned)levels);
	return array_keep(q, r, WIRE_MIPMAP, real, bytes);
}
