/* SPDX-License-Identifier: Apache-2.0 */

/* Copies: all are one of a box with pitches; a line is a box of one row. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

static size_t copy_extent(size_t pitch, size_t slice, size_t width, size_t height, size_t depth)
{
	return (depth - 1) * slice + (height - 1) * pitch + width;
}

static void copy_slowly(size_t bytes)
{
	unsigned long long rate = config_number("COPY_RATE", 0);

	if (rate)
		(void)usleep((useconds_t)(bytes * 1000000 / rate));
}

void copy_run(struct work *work, CUcontext context)
{
	struct copy *copy = (struct copy *)work;

	(void)context;
	copy_slowly(copy->width * copy->height * copy->depth);
	if (copy->locked_from)
		range_must_stay(copy->from);
	if (copy->locked_to)
		range_must_stay(copy->to);
	for (size_t z = 0; z < copy->depth; z++)
		for (size_t y = 0; y < copy->height; y++)
			memmove((void *)(copy->to + z * copy->to_slice + y * copy->to_pitch),
				(const void *)(copy->from + z * copy->from_slice + y * copy->from_pitch), copy->width);
	free(copy->staged);
}

/* Pageable memory of the host: what is not known. */
static bool copy_is_pageable(uintptr_t address)
{
	return !address_map_find(address);
}

static CUresult copy_side(int type, const void *host, CUdeviceptr device, size_t pitch, size_t slice, size_t x,
			  size_t y, size_t z, const struct copy *copy, uintptr_t *ret)
{
	size_t extent = copy_extent(pitch, slice, copy->width, copy->height, copy->depth);
	uintptr_t base = type == CU_MEMORY_HOST ? (uintptr_t)host : (uintptr_t)device;

	if (type == CU_MEMORY_ARRAY)
		return CUDA_SUCCESS;
	if (type != CU_MEMORY_HOST && type != CU_MEMORY_DEVICE && type != CU_MEMORY_UNIFIED)
		return CUDA_ERROR_INVALID_VALUE;
	if (copy->depth > 1 && slice < pitch * copy->height)
		return CUDA_ERROR_INVALID_VALUE;
	if (!base || (pitch < x + copy->width && (pitch || copy->height * copy->depth > 1)))
		return CUDA_ERROR_INVALID_VALUE;
	base += z * slice + y * pitch + x;
	if (type == CU_MEMORY_DEVICE && !range_holds(base, extent))
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_MEMORY_UNIFIED && !copy_is_pageable(base) && !range_holds(base, extent))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = base;
	return CUDA_SUCCESS;
}

/* An array lies as it does, wherever the caller thinks. */
static CUresult copy_array(int type, CUarray array, const size_t corner[3], const struct copy *copy, uintptr_t *ret,
			   size_t *ret_pitch, size_t *ret_slice)
{
	const size_t extent[] = {copy->width, copy->height, copy->depth};

	if (type != CU_MEMORY_ARRAY)
		return CUDA_SUCCESS;
	if (!object_is(array, OBJECT_ARRAY))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_pitch = array->pitch;
	*ret_slice = array->slice;
	return array_box(array, corner, extent, ret);
}

/* An empty box gives no work at all. */
CUresult copy_prepare(CUcontext context, const CUDA_MEMCPY3D *what, struct copy **ret)
{
	struct copy copy = {.width = what->width, .height = what->height, .depth = what->depth, .context = context};
	CUresult r;

	*ret = NULL;
	if (!copy.width || !copy.height || !copy.depth)
		return CUDA_SUCCESS;
	copy.from_pitch = what->src_pitch;
	copy.from_slice = what->src_pitch * (what->src_height ? what->src_height : what->height);
	copy.to_pitch = what->dst_pitch;
	copy.to_slice = what->dst_pitch * (what->dst_height ? what->dst_height : what->height);
	r = copy_side(what->src_type, what->src_host, what->src_device, copy.from_pitch, copy.from_slice, what->src_x,
		      what->src_y, what->src_z, &copy, &copy.from);
	if (!r)
		r = copy_side(what->dst_type, what->dst_host, what->dst_device, copy.to_pitch, copy.to_slice,
			      what->dst_x, what->dst_y, what->dst_z, &copy, &copy.to);
	if (!r)
		r = copy_array(what->src_type, what->src_array, (const size_t[]){what->src_x, what->src_y, what->src_z},
			       &copy, &copy.from, &copy.from_pitch, &copy.from_slice);
	if (!r)
		r = copy_array(what->dst_type, what->dst_array, (const size_t[]){what->dst_x, what->dst_y, what->dst_z},
			       &copy, &copy.to, &copy.to_pitch, &copy.to_slice);
	if (r)
		return r;
	*ret = malloc(sizeof(copy));
	if (!*ret)
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy.work.run = copy_run;
	copy.locked_from = range_is_registered(copy.from);
	copy.locked_to = range_is_registered(copy.to);
	**ret = copy;
	return CUDA_SUCCESS;
}

/* What is read of pageable memory is read before the call returns. */
static CUresult copy_stage(struct copy *copy)
{
	size_t size = copy_extent(copy->from_pitch, copy->from_slice, copy->width, copy->height, copy->depth);

	copy->staged = malloc(size);
	if (!copy->staged)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy->staged, (const void *)copy->from, size);
	copy->from = (uintptr_t)copy->staged;
	return CUDA_SUCCESS;
}

/* In the stream; a synchronous copy, and one into pageable memory, is done when this returns. */
static CUresult copy_push(CUcontext context, const CUDA_MEMCPY3D *what, CUstream handle, bool wait)
{
	struct copy *copy;
	CUstream stream;
	uint64_t sequence;
	CUresult r;

	if (stream_find(context, handle, &stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (wait) {
		r = capture_forbids_any();
		if (r)
			return r;
	}
	r = copy_prepare(context, what, &copy);
	if (r || !copy)
		return r;
	if (capture_takes(stream, NODE_COPY, &copy->work, sizeof(*copy), &r))
		return r;
	wait |= copy_is_pageable(copy->to);
	if (!wait && copy_is_pageable(copy->from)) {
		r = copy_stage(copy);
		if (r)
			return r;
	}
	sequence = stream_push(stream, &copy->work);
	return wait ? stream_wait(stream, sequence) : CUDA_SUCCESS;
}

static CUDA_MEMCPY3D copy_line(int to_type, uintptr_t to, int from_type, uintptr_t from, size_t bytes)
{
	return (CUDA_MEMCPY3D){.src_type = from_type,
			       .src_host = (const void *)from,
			       .src_device = from,
			       .src_pitch = bytes,
			       .dst_type = to_type,
			       .dst_host = (void *)to,
			       .dst_device = to,
			       .dst_pitch = bytes,
			       .width = bytes,
			       .height = 1,
			       .depth = 1};
}

static CUDA_MEMCPY3D copy_plane(const CUDA_MEMCPY2D *copy)
{
	return (CUDA_MEMCPY3D){.src_x = copy->src_x,
			       .src_y = copy->src_y,
			       .src_type = copy->src_type,
			       .src_host = copy->src_host,
			       .src_device = copy->src_device,
			       .src_array = copy->src_array,
			       .src_pitch = copy->src_pitch,
			       .dst_x = copy->dst_x,
			       .dst_y = copy->dst_y,
			       .dst_type = copy->dst_type,
			       .dst_host = copy->dst_host,
			       .dst_device = copy->dst_device,
			       .dst_array = copy->dst_array,
			       .dst_pitch = copy->dst_pitch,
			       .width = copy->width,
			       .height = copy->height,
			       .depth = 1};
}

#define COPY(box, stream, wait)                                 \
	do {                                                    \
		CUcontext context;                              \
		CUDA_MEMCPY3D box_;                             \
		CALL_CONTEXT(context);                          \
		box_ = box;                                     \
		LEAVE(copy_push(context, &box_, stream, wait)); \
	} while (0)
#define COPY_OF(copy, box, stream, wait)                        \
	do {                                                    \
		CUcontext context;                              \
		CUDA_MEMCPY3D box_;                             \
		CALL_CONTEXT(context);                          \
		LEAVE_IF(!(copy), CUDA_ERROR_INVALID_VALUE);    \
		box_ = box;                                     \
		LEAVE(copy_push(context, &box_, stream, wait)); \
	} while (0)

enum { HOST = CU_MEMORY_HOST, DEVICE = CU_MEMORY_DEVICE, UNIFIED = CU_MEMORY_UNIFIED };

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	COPY(copy_line(UNIFIED, to, UNIFIED, from, bytes), NULL, true);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	COPY(copy_line(UNIFIED, to, UNIFIED, from, bytes), stream, false);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
	COPY(copy_line(DEVICE, to, HOST, (uintptr_t)from, bytes), NULL, true);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	COPY(copy_line(DEVICE, to, HOST, (uintptr_t)from, bytes), stream, false);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
	COPY(copy_line(HOST, (uintptr_t)to, DEVICE, from, bytes), NULL, true);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	COPY(copy_line(HOST, (uintptr_t)to, DEVICE, from, bytes), stream, false);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	COPY(copy_line(DEVICE, to, DEVICE, from, bytes), NULL, true);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	COPY(copy_line(DEVICE, to, DEVICE, from, bytes), stream, false);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes)
{
	if (!to_context || !from_context)
		return CUDA_ERROR_INVALID_CONTEXT;
	COPY(copy_line(DEVICE, to, DEVICE, from, bytes), NULL, true);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
			   CUstream stream)
{
	if (!to_context || !from_context)
		return CUDA_ERROR_INVALID_CONTEXT;
	COPY(copy_line(DEVICE, to, DEVICE, from, bytes), stream, false);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
	COPY_OF(copy, copy_plane(copy), NULL, true);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy)
{
	COPY_OF(copy, copy_plane(copy), NULL, true);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	COPY_OF(copy, copy_plane(copy), stream, false);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy)
{
	COPY_OF(copy, *copy, NULL, true);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	COPY_OF(copy, *copy, stream, false);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D *copy)
{
	COPY_OF(copy, *copy, NULL, true);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	COPY_OF(copy, *copy, stream, false);
}

/* ---- lines of arrays ---- */

static CUDA_MEMCPY3D copy_line_array(CUDA_MEMCPY3D line, CUarray to, size_t to_x, CUarray from, size_t from_x)
{
	line.dst_array = to;
	line.dst_x = to_x;
	line.src_array = from;
	line.src_x = from_x;
	return line;
}

enum { ARRAY = CU_MEMORY_ARRAY };

CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes)
{
	COPY(copy_line_array(copy_line(ARRAY, 0, DEVICE, from, bytes), to, offset, NULL, 0), NULL, true);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes)
{
	COPY(copy_line_array(copy_line(DEVICE, to, ARRAY, 0, bytes), NULL, 0, from, offset), NULL, true);
}

CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t bytes)
{
	COPY(copy_line_array(copy_line(ARRAY, 0, HOST, (uintptr_t)from, bytes), to, offset, NULL, 0), NULL, true);
}

CUresult cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t bytes)
{
	COPY(copy_line_array(copy_line(HOST, (uintptr_t)to, ARRAY, 0, bytes), NULL, 0, from, offset), NULL, true);
}

CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes)
{
	COPY(copy_line_array(copy_line(ARRAY, 0, ARRAY, 0, bytes), to, to_offset, from, from_offset), NULL, true);
}

CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream)
{
	COPY(copy_line_array(copy_line(ARRAY, 0, HOST, (uintptr_t)from, bytes), to, offset, NULL, 0), stream, false);
}

CUresult cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes, CUstream stream)
{
	COPY(copy_line_array(copy_line(HOST, (uintptr_t)to, ARRAY, 0, bytes), NULL, 0, from, offset), stream, false);
}

/* ---- many at once ---- */

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
			       CUmemcpyAttributes *attributes, size_t *begins, size_t attribute_count, CUstream stream)
{
	CUresult r = !to || !from || !bytes || !count || !attributes || !begins || !attribute_count || begins[0]
			     ? CUDA_ERROR_INVALID_VALUE
			     : CUDA_SUCCESS;

	for (size_t i = 0; i < count && !r; i++)
		r = cuMemcpyAsync(to[i], from[i], bytes[i], stream);
	return r;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
			    CUmemcpyAttributes *attributes, size_t *begins, size_t attribute_count, size_t *failed,
			    CUstream stream)
{
	if (failed)
		*failed = SIZE_MAX;
	return cuMemcpyBatchAsync_v2(to, from, bytes, count, attributes, begins, attribute_count, stream);
}

static size_t copy_box_element(const CUDA_MEMCPY3D_BATCH_OP *box)
{
	const CUmemcpy3DOperand *side = box->from.type == 2 ? &box->from : &box->to;
	CUDA_ARRAY3D_DESCRIPTOR what;

	if (side->type != 2 || cuArray3DGetDescriptor_v2(&what, side->array.array))
		return 1;
	return array_element(what.format, what.channels);
}

static CUresult copy_box(const CUDA_MEMCPY3D_BATCH_OP *box, CUstream stream)
{
	const size_t element = copy_box_element(box);
	const CUmemcpy3DOperand *from = &box->from, *to = &box->to;
	CUDA_MEMCPY3D copy = {.width = box->width * element, .height = box->height, .depth = box->depth};

	if (from->type < 1 || from->type > 2 || to->type < 1 || to->type > 2 || !box->width || !box->height ||
	    !box->depth)
		return CUDA_ERROR_INVALID_VALUE;
	copy.src_type = from->type == 2 ? CU_MEMORY_ARRAY : UNIFIED;
	copy.dst_type = to->type == 2 ? CU_MEMORY_ARRAY : UNIFIED;
	if (from->type == 2) {
		copy.src_array = from->array.array;
		copy.src_x = from->array.x * element;
		copy.src_y = from->array.y;
		copy.src_z = from->array.z;
	} else {
		copy.src_device = from->pointer.at;
		copy.src_pitch = (from->pointer.row ? from->pointer.row : box->width) * element;
		copy.src_height = from->pointer.rows ? from->pointer.rows : box->height;
	}
	if (to->type == 2) {
		copy.dst_array = to->array.array;
		copy.dst_x = to->array.x * element;
		copy.dst_y = to->array.y;
		copy.dst_z = to->array.z;
	} else {
		copy.dst_device = to->pointer.at;
		copy.dst_pitch = (to->pointer.row ? to->pointer.row : box->width) * element;
		copy.dst_height = to->pointer.rows ? to->pointer.rows : box->height;
	}
	return cuMemcpy3DAsync_v2(&copy, stream);
}

CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *boxes, unsigned long long flags, CUstream stream)
{
	CUresult r = !count || !boxes || flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

	for (size_t i = 0; i < count && !r; i++)
		r = copy_box(&boxes[i], stream);
	return r;
}

CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *boxes, size_t *failed, unsigned long long flags,
			      CUstream stream)
{
	if (failed)
		*failed = SIZE_MAX;
	return cuMemcpy3DBatchAsync_v2(count, boxes, flags, stream);
}
