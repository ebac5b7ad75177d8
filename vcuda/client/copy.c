/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Copies. What is small goes with the command; page-locked memory is the server's, too; all else passes through
 * chunks of the staging memory.
 */

#include <stdlib.h>
#include <string.h>

#include "vcuda/client/address_map.h"
#include "vcuda/client/call.h"
#include "vcuda/client/client.h"
#include "vcuda/client/context.h"
#include "vcuda/client/copy.h"
#include "vcuda/client/staged.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

enum {
	COPY_INLINE = 32768, /* to the device, with the command */
};

/* ---- through the staging memory ---- */

static CUresult copy_stage(unsigned op, CUdeviceptr device, CUstream stream, uint32_t chunk, size_t bytes)
{
	const uint64_t words[] = {device, stream, chunk, bytes};

	return call_async(op, words, 4, NULL, 0);
}

static size_t copy_piece(const struct staged *staged, size_t bytes, size_t number)
{
	const size_t rest = bytes - number * staged->piece;

	return rest < staged->piece ? rest : staged->piece;
}

static CUresult copy_in_staged(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	struct staged staged;
	CUresult r = staged_begin(bytes, stream, &staged);
	size_t number = 0;

	if (r)
		return r;
	for (size_t done = 0; done < bytes && !r; number++) {
		const uint32_t chunk = staged.chunk[number % staged.depth];
		const size_t piece = copy_piece(&staged, bytes, number);

		if (number >= staged.depth)
			r = staged_wait(chunk);
		staged_copy(staged_chunk(chunk), (const char *)from + done, piece, staged.shared);
		if (!r)
			r = copy_stage(WIRE_STAGE_IN, to + done, stream, chunk, piece);
		done += piece;
	}
	/* The chunks may be filled again once their last copies are done. */
	for (size_t i = number > staged.depth ? number - staged.depth : 0; i < number; i++) {
		CUresult waited = staged_wait(staged.chunk[i % staged.depth]);

		r = r ? r : waited;
	}
	staged_end(&staged);
	return r;
}

static CUresult copy_out_staged(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	struct staged staged;
	CUresult r = staged_begin(bytes, stream, &staged);
	const size_t pieces = r ? 0 : (bytes + staged.piece - 1) / staged.piece;
	struct thread *thread = thread_self();
	uint32_t copy = 0;

	if (r)
		return r;
	for (size_t i = 0; i < pieces + staged.depth && !r; i++) {
		const uint32_t chunk = staged.chunk[i % staged.depth];

		if (i >= staged.depth) {
			const size_t ready = i - staged.depth;

			r = staged_wait(chunk);
			if (!r && ready == pieces - 1)
				call_note_idle(thread, stream, copy);
			if (!r)
				staged_copy((char *)to + ready * staged.piece, staged_chunk(chunk),
					    copy_piece(&staged, bytes, ready), staged.shared);
		}
		if (i < pieces && !r)
			r = copy_stage(WIRE_STAGE_OUT, from + i * staged.piece, stream, chunk,
				       copy_piece(&staged, bytes, i));
		if (i == pieces - 1)
			copy = thread->end;
	}
	/* What was asked for before the error may still be copied into them. */
	for (unsigned i = 0; i < staged.depth && r; i++)
		(void)staged_wait(staged.chunk[i]);
	staged_end(&staged);
	return r;
}

/* ---- to and from the device ---- */

static CUresult copy_begin(CUdeviceptr device, const void *host, size_t bytes, CUstream stream, bool *ret_known)
{
	struct context *context;
	CUresult r = context_current(&context);

	if (r)
		return r;
	if (bytes > 0 && (!host || device == 0))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_known = address_map_is_known(device, bytes, 1);
	return wire_is_stream(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult copy_inline(CUdeviceptr to, const void *from, size_t bytes, CUstream stream, bool known)
{
	const uint64_t words[] = {to, stream, bytes};
	const struct call_part part = {from, bytes};

	return known ? call_async(WIRE_COPY_IN, words, 3, &part, 1)
		     : call_sync(WIRE_COPY_IN, words, 3, &part, 1, NULL, 0);
}

/* A wrong range is told by the driver itself, of which a copy of nothing more than the last byte is asked. */
static CUresult copy_probe(CUdeviceptr device, size_t bytes, bool known)
{
	const uint64_t words[] = {device, bytes};

	return known ? CUDA_SUCCESS : call_sync(WIRE_PROBE, words, 2, NULL, 0, NULL, 0);
}

/* @awaited: the stream has done what comes before, if it fills registered memory. */
static CUresult copy_in(CUdeviceptr to, const void *from, size_t bytes, CUstream stream, bool awaited)
{
	const uint64_t words[] = {to, (uint64_t)from, bytes, stream};
	CUDA_MEMCPY3D captured;
	bool known;
	CUresult r = copy_begin(to, from, bytes, stream, &known);

	if (r || bytes == 0)
		return r;
	if (address_map_is_device_alone((uint64_t)from, bytes))
		return cuMemcpyDtoDAsync_v2(to, (CUdeviceptr)from, bytes, stream);
	if (address_map_is_locked(from, bytes))
		return known ? call_async(OP_cuMemcpyHtoDAsync_v2, words, 4, NULL, 0)
			     : call_sync(OP_cuMemcpyHtoDAsync_v2, words, 4, NULL, 0, NULL, 0);
	if (paged_captures_row(stream, to, from, bytes, true, &captured))
		return paged_capture(stream, &captured);
	r = awaited ? CUDA_SUCCESS : staged_await(from, stream);
	if (r)
		return r;
	if (bytes <= COPY_INLINE)
		return copy_inline(to, from, bytes, stream, known);
	r = copy_probe(to, bytes, known);
	return r ? r : copy_in_staged(to, from, bytes, stream);
}

CUresult on_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	return copy_in(to, from, bytes, stream, false);
}

CUresult on_cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	CUresult r = on_cuMemcpyHtoDAsync_v2(to, from, bytes, stream);

	/* From page-locked memory, which may change once the call has returned. */
	if (!r && bytes > 0 && address_map_is_locked(from, bytes))
		return cuStreamSynchronize(stream);
	return managed_finish(r, to, 0, stream);
}

CUresult on_cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	const uint64_t words[] = {(uint64_t)to, from, bytes, stream};
	CUDA_MEMCPY3D captured;
	bool known;
	CUresult r = copy_begin(from, to, bytes, stream, &known);

	if (r || bytes == 0)
		return r;
	if (address_map_is_device_alone((uint64_t)to, bytes))
		return cuMemcpyDtoDAsync_v2((CUdeviceptr)to, from, bytes, stream);
	if (address_map_is_locked(to, bytes))
		return known ? call_async(OP_cuMemcpyDtoHAsync_v2, words, 4, NULL, 0)
			     : call_sync(OP_cuMemcpyDtoHAsync_v2, words, 4, NULL, 0, NULL, 0);
	if (paged_captures_row(stream, from, to, bytes, false, &captured))
		return paged_capture(stream, &captured);
	r = copy_probe(from, bytes, known);
	return r ? r : copy_out_staged(to, from, bytes, stream);
}

CUresult on_cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	CUresult r = on_cuMemcpyDtoHAsync_v2(to, from, bytes, stream);

	if (!r && bytes > 0 && address_map_is_locked(to, bytes))
		r = cuStreamSynchronize(stream);
	return r;
}

CUresult on_cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return bytes == 0 ? call_fail(CUDA_SUCCESS)
			  : managed_finish(cuMemcpyDtoDAsync_v2(to, from, bytes, stream), to, from, stream);
}

/* At once, behind what the stream does before: the driver does not let the program go on, either. */
static CUresult copy_within_host(uint64_t to, uint64_t from, size_t bytes, CUstream stream, bool waits)
{
	const CUDA_MEMCPY3D row = {.srcMemoryType = COPY_HOST,
				   .srcHost = (const void *)from,
				   .srcPitch = bytes,
				   .dstMemoryType = COPY_HOST,
				   .dstHost = (void *)to,
				   .dstPitch = bytes,
				   .WidthInBytes = bytes,
				   .Height = 1,
				   .Depth = 1};
	CUresult r;

	if (!waits && paged_captures(stream, &row))
		return paged_capture(stream, &row);
	r = cuStreamSynchronize(stream);
	if (!r)
		memmove((void *)to, (const void *)from, bytes);
	return r;
}

/* What is known to be the device's is; the rest is the host's. */
static CUresult copy_any(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream, bool waits)
{
	const bool to_device = address_map_is_device(to), from_device = address_map_is_device(from);
	struct thread *thread;
	CUresult r = call_enter(&thread);

	if (r || bytes == 0)
		return r;
	if (to_device && from_device)
		return waits ? on_cuMemcpyDtoD_v2(to, from, bytes, stream)
			     : cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
	if ((!to_device && !address_map_has_host(to, bytes)) || (!from_device && !address_map_has_host(from, bytes)))
		return thread_context(thread) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
	if (to_device)
		return waits ? on_cuMemcpyHtoD_v2(to, (const void *)from, bytes, stream)
			     : on_cuMemcpyHtoDAsync_v2(to, (const void *)from, bytes, stream);
	if (from_device)
		return waits ? on_cuMemcpyDtoH_v2((void *)to, from, bytes, stream)
			     : on_cuMemcpyDtoHAsync_v2((void *)to, from, bytes, stream);
	return copy_within_host(to, from, bytes, stream, waits);
}

CUresult on_cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy_any(to, from, bytes, stream, true);
}

CUresult on_cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy_any(to, from, bytes, stream, false);
}

CUresult on_cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
			 CUstream stream)
{
	return managed_finish(cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, stream), to, from, stream);
}

/* ---- in two dimensions ---- */

struct plane {
	uint64_t at;
	size_t pitch;
	bool device;
};

static CUresult copy_plane(int type, const void *host, CUdeviceptr device, size_t x, size_t y, size_t pitch,
			   size_t width, struct plane *ret)
{
	if (type < COPY_HOST || type > COPY_UNIFIED || (pitch && pitch < width))
		return CUDA_ERROR_INVALID_VALUE;
	ret->pitch = pitch ? pitch : width;
	ret->at = (type == COPY_HOST ? (uint64_t)host : device) + y * ret->pitch + x;
	ret->device = type == COPY_DEVICE || (type == COPY_UNIFIED && address_map_is_device(device)) ||
		      (type == COPY_HOST && address_map_is_device_alone(ret->at, width));
	return CUDA_SUCCESS;
}

/* Of an address that may be the device's or the host's, and is not known to be the device's. */
static bool copy_is_there(int type, const struct plane *plane, size_t width)
{
	return type != COPY_UNIFIED || plane->device || address_map_has_host(plane->at, width);
}

/*
 * What has neither side on the device is copied at once, behind what the stream does before it. For registered memory
 * the stream is waited for once, not for each row.
 */
static CUresult copy_turn(const struct plane *to, const struct plane *from, CUstream stream)
{
	if (from->device)
		return CUDA_SUCCESS;
	return to->device ? staged_await((const void *)from->at, stream) : cuStreamSynchronize(stream);
}

/* A row at a time; rows without gaps are one. Between two places of the device the driver copies planes itself. */
static CUresult copy_rows(const struct plane *to, const struct plane *from, size_t width, size_t height,
			  CUstream stream, bool waits)
{
	CUresult r = CUDA_SUCCESS;

	if (to->device && from->device) {
		const uint64_t words[] = {to->at, to->pitch, from->at, from->pitch, width, height, stream};

		r = call_sync(OP_cuMemcpy2DAsync_v2, words, 7, NULL, 0, NULL, 0);
		return waits ? managed_finish(r, to->at, from->at, stream) : r;
	}
	if (to->pitch == width && from->pitch == width) {
		if (__builtin_mul_overflow(width, height, &width))
			return CUDA_ERROR_INVALID_VALUE;
		height = 1;
	}
	for (size_t y = 0; y < height && !r; y++) {
		const uint64_t target = to->at + y * to->pitch, source = from->at + y * from->pitch;

		if (to->device)
			r = copy_in(target, (const void *)source, width, stream, true);
		else if (from->device)
			r = on_cuMemcpyDtoHAsync_v2((void *)target, source, width, stream);
		else
			memmove((void *)target, (const void *)source, width);
	}
	return r || !waits ? r : cuStreamSynchronize(stream);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *copy, CUstream stream, bool waits)
{
	struct plane to, from;
	CUDA_MEMCPY3D box;
	struct context *context;
	CUresult r = context_current(&context);

	if (r)
		return r;
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	box = array_box_of(copy);
	if (!waits && paged_captures(stream, &box))
		return paged_capture(stream, &box);
	if (copy->srcMemoryType == COPY_ARRAY || copy->dstMemoryType == COPY_ARRAY)
		return array_copy(&box, stream, waits);
	r = copy_plane(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstXInBytes, copy->dstY,
		       copy->dstPitch, copy->WidthInBytes, &to);
	if (!r)
		r = copy_plane(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcXInBytes, copy->srcY,
			       copy->srcPitch, copy->WidthInBytes, &from);
	if (r || copy->WidthInBytes == 0 || copy->Height == 0)
		return r;
	if (!copy_is_there(copy->dstMemoryType, &to, copy->WidthInBytes) ||
	    !copy_is_there(copy->srcMemoryType, &from, copy->WidthInBytes))
		return CUDA_ERROR_INVALID_VALUE;
	r = copy_turn(&to, &from, stream);
	return r ? r : copy_rows(&to, &from, copy->WidthInBytes, copy->Height, stream, waits);
}

CUresult on_cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	return copy_2d(copy, stream, true);
}

CUresult on_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	return copy_2d(copy, stream, true);
}

CUresult on_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	return copy_2d(copy, stream, false);
}

/* From its first plane on, and how far it is from one to the next; 0: they have no gaps. */
static CUresult copy_planes(const CUDA_MEMCPY3D *copy, size_t z, size_t height, struct plane *plane, size_t *ret_slice)
{
	if (copy->Depth > 1 && height && height < copy->Height)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_slice = (height ? height : copy->Height) * plane->pitch;
	plane->at += z * *ret_slice;
	return CUDA_SUCCESS;
}

/* A plane at a time. */
static CUresult copy_3d(const CUDA_MEMCPY3D *copy, CUstream stream, bool waits)
{
	struct plane to, from;
	struct context *context;
	size_t to_slice, from_slice;
	CUresult r = context_current(&context);

	if (r)
		return r;
	if (!copy || copy->srcLOD || copy->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	if (!waits && paged_captures(stream, copy))
		return paged_capture(stream, copy);
	if (copy->srcMemoryType == COPY_ARRAY || copy->dstMemoryType == COPY_ARRAY)
		return array_copy(copy, stream, waits);
	r = copy_plane(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstXInBytes, copy->dstY,
		       copy->dstPitch, copy->WidthInBytes, &to);
	if (!r)
		r = copy_plane(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcXInBytes, copy->srcY,
			       copy->srcPitch, copy->WidthInBytes, &from);
	if (r || copy->WidthInBytes == 0 || copy->Height == 0)
		return r;
	r = copy_planes(copy, copy->dstZ, copy->dstHeight, &to, &to_slice);
	if (!r)
		r = copy_planes(copy, copy->srcZ, copy->srcHeight, &from, &from_slice);
	if (r)
		return r;
	if (!copy_is_there(copy->dstMemoryType, &to, copy->WidthInBytes) ||
	    !copy_is_there(copy->srcMemoryType, &from, copy->WidthInBytes))
		return CUDA_ERROR_INVALID_VALUE;
	r = copy_turn(&to, &from, stream);
	for (size_t z = 0; z < copy->Depth && !r; z++) {
		r = copy_rows(&to, &from, copy->WidthInBytes, copy->Height, stream, waits && z + 1 == copy->Depth);
		to.at += to_slice;
		from.at += from_slice;
	}
	return r;
}

CUresult on_cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	return copy_3d(copy, stream, true);
}

CUresult on_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	return copy_3d(copy, stream, false);
}

static bool copy_side_is_device(int type, CUdeviceptr device)
{
	return type == COPY_DEVICE || type == COPY_ARRAY || (type == COPY_UNIFIED && address_map_is_device(device));
}

/* What is the host's has no context, so it is as any other copy. */
static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *copy, CUstream stream, bool waits)
{
	const uint64_t words[] = {sizeof(*copy), stream};
	CUDA_MEMCPY3D_PEER ready;
	struct call_part part;
	CUresult r;

	if (!copy)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	ready = *copy;
	if (!copy_side_is_device(ready.srcMemoryType, ready.srcDevice) ||
	    !copy_side_is_device(ready.dstMemoryType, ready.dstDevice))
		return copy_3d((const CUDA_MEMCPY3D *)copy, stream, waits);
	ready.srcMemoryType = ready.srcMemoryType == COPY_ARRAY ? COPY_ARRAY : COPY_DEVICE;
	ready.dstMemoryType = ready.dstMemoryType == COPY_ARRAY ? COPY_ARRAY : COPY_DEVICE;
	ready.srcContext = context_handle(ready.srcContext);
	ready.dstContext = context_handle(ready.dstContext);
	part = (struct call_part){&ready, sizeof(ready)};
	r = call_sync(OP_cuMemcpy3DPeerAsync, words, 2, &part, 1, NULL, 0);
	return waits ? managed_finish(r, ready.dstMemoryType == COPY_DEVICE ? ready.dstDevice : 0,
				      ready.srcMemoryType == COPY_DEVICE ? ready.srcDevice : 0, stream)
		     : r;
}

CUresult on_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
	return copy_3d_peer(copy, stream, true);
}

CUresult on_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
	return copy_3d_peer(copy, stream, false);
}

/* ---- filling, which waits where the host may read ---- */

#define COPY_FILL(bits, type)                                                                                     \
	CUresult on_cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count, CUstream stream)               \
	{                                                                                                         \
		return managed_finish(cuMemsetD##bits##Async(to, value, count, stream), to, 0, stream);           \
	}                                                                                                         \
	CUresult on_cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, \
					   CUstream stream)                                                       \
	{                                                                                                         \
		return managed_finish(cuMemsetD2D##bits##Async(to, pitch, value, width, height, stream), to, 0,   \
				      stream);                                                                    \
	}

COPY_FILL(8, unsigned char)
COPY_FILL(16, unsigned short)
COPY_FILL(32, unsigned)

/* ---- many at once ---- */

/* One after the other, which is an order that they may have. What may be read later is read now. */
static CUresult copy_batch(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
			   const CUmemcpyAttributes *attributes, const size_t *begins, size_t attribute_count,
			   size_t *failed, CUstream stream)
{
	CUresult r = CUDA_SUCCESS;

	if (failed)
		*failed = SIZE_MAX;
	if (!to || !from || !bytes || count == 0 || !attributes || !begins || attribute_count == 0 || begins[0] != 0)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < count && !r; i++) {
		r = copy_any(to[i], from[i], bytes[i], stream, false);
		if (r && failed)
			*failed = i;
	}
	return r;
}

CUresult on_cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
			       CUmemcpyAttributes *attributes, size_t *begins, size_t attribute_count, size_t *failed,
			       CUstream stream)
{
	return copy_batch(to, from, bytes, count, attributes, begins, attribute_count, failed, stream);
}

CUresult on_cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
				  CUmemcpyAttributes *attributes, size_t *begins, size_t attribute_count,
				  CUstream stream)
{
	return copy_batch(to, from, bytes, count, attributes, begins, attribute_count, NULL, stream);
}

/* ---- many boxes at once ---- */

enum { BOX_POINTER = 1, BOX_ARRAY = 2 };

/* Return: the size of an element of an array; 0 if it is compressed, or has planes. */
static size_t copy_element_bytes(CUarray array)
{
	static const struct {
		CUarray_format format;
		size_t bytes;
	} formats[] = {{0x01, 1}, {0x02, 2}, {0x03, 4}, {0x08, 1}, {0x09, 2}, {0x0a, 4}, {0x10, 2}, {0x20, 4}};
	CUDA_ARRAY3D_DESCRIPTOR descriptor;

	if (cuArray3DGetDescriptor_v2(&descriptor, array))
		return 0;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (formats[i].format == descriptor.Format)
			return formats[i].bytes * descriptor.NumChannels;
	return 0;
}

/* Both sides' elements are those of the one that is an array. */
static CUresult copy_box_element(const CUDA_MEMCPY3D_BATCH_OP *box, size_t *ret)
{
	const CUmemcpy3DOperand *sides[] = {&box->src, &box->dst};
	size_t element = 1;

	for (int i = 0; i < 2; i++) {
		if (sides[i]->type != BOX_POINTER && sides[i]->type != BOX_ARRAY)
			return CUDA_ERROR_INVALID_VALUE;
		if (sides[i]->type == BOX_ARRAY)
			element = copy_element_bytes(sides[i]->op.array.array);
	}
	*ret = element;
	return element ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult copy_box(const CUDA_MEMCPY3D_BATCH_OP *box, CUstream stream)
{
	const CUmemcpy3DOperand *src = &box->src, *dst = &box->dst;
	CUDA_MEMCPY3D copy = {.Height = box->extent.height, .Depth = box->extent.depth};
	size_t element;
	CUresult r = copy_box_element(box, &element);

	if (r)
		return r;
	if (box->extent.width == 0 || box->extent.height == 0 || box->extent.depth == 0 ||
	    __builtin_mul_overflow(box->extent.width, element, &copy.WidthInBytes))
		return CUDA_ERROR_INVALID_VALUE;
	copy.srcMemoryType = src->type == BOX_ARRAY ? COPY_ARRAY : COPY_UNIFIED;
	copy.dstMemoryType = dst->type == BOX_ARRAY ? COPY_ARRAY : COPY_UNIFIED;
	if (src->type == BOX_ARRAY) {
		copy.srcArray = src->op.array.array;
		copy.srcXInBytes = src->op.array.offset.x * element;
		copy.srcY = src->op.array.offset.y;
		copy.srcZ = src->op.array.offset.z;
	} else {
		copy.srcDevice = src->op.ptr.ptr;
		copy.srcPitch = src->op.ptr.rowLength * element;
		copy.srcHeight = src->op.ptr.layerHeight ? src->op.ptr.layerHeight : copy.Height;
	}
	if (dst->type == BOX_ARRAY) {
		copy.dstArray = dst->op.array.array;
		copy.dstXInBytes = dst->op.array.offset.x * element;
		copy.dstY = dst->op.array.offset.y;
		copy.dstZ = dst->op.array.offset.z;
	} else {
		copy.dstDevice = dst->op.ptr.ptr;
		copy.dstPitch = dst->op.ptr.rowLength * element;
		copy.dstHeight = dst->op.ptr.layerHeight ? dst->op.ptr.layerHeight : copy.Height;
	}
	return copy_3d(&copy, stream, false);
}

CUresult on_cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *boxes, size_t *failed, unsigned long long flags,
				 CUstream stream)
{
	CUresult r = CUDA_SUCCESS;

	if (failed)
		*failed = SIZE_MAX;
	if (count == 0 || !boxes || flags)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < count && !r; i++) {
		r = copy_box(&boxes[i], stream);
		if (r && failed)
			*failed = i;
	}
	return r;
}

CUresult on_cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *boxes, unsigned long long flags,
				    CUstream stream)
{
	return on_cuMemcpy3DBatchAsync(count, boxes, NULL, flags, stream);
}
