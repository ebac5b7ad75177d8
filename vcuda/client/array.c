/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Arrays, tensors and textures: memory that kernels read by other means than its address. How an array lies is the
 * driver's to know, so it copies boxes between arrays and what the server has; ordinary memory of the host passes
 * through the staging memory in pieces, which are whole planes, or rows of one.
 */

#include "vcuda/client/copy.h"

#include <string.h>

#include "vcuda/client/address_map.h"
#include "vcuda/client/call.h"
#include "vcuda/client/context.h"
#include "vcuda/client/staged.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

static CUresult array_send(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	const uint64_t words[] = {sizeof(*copy), stream};
	const struct call_part part = {copy, sizeof(*copy)};

	return call_sync(OP_cuMemcpy3DAsync_v2, words, 2, &part, 1, NULL, 0);
}

/* ---- memory beside an array ---- */

struct array_memory {
	uint64_t at; /* of the first byte */
	size_t pitch, slice;
	bool host;
};

static CUresult array_read_memory(int type, const void *host, CUdeviceptr device, const size_t corner[3], size_t pitch,
				  size_t height, const CUDA_MEMCPY3D *copy, struct array_memory *ret)
{
	const bool unified = type == COPY_UNIFIED;
	size_t last;

	if (type < COPY_HOST || type > COPY_UNIFIED || (pitch && pitch < copy->WidthInBytes) ||
	    (copy->Depth > 1 && height && height < copy->Height))
		return CUDA_ERROR_INVALID_VALUE;
	ret->pitch = pitch ? pitch : copy->WidthInBytes;
	ret->host = type == COPY_HOST || (unified && !address_map_is_device(device));
	if (__builtin_mul_overflow(ret->pitch, height ? height : copy->Height, &ret->slice) ||
	    __builtin_mul_overflow(ret->slice, corner[2] + copy->Depth, &last))
		return CUDA_ERROR_INVALID_VALUE;
	ret->at = (type == COPY_HOST ? (uint64_t)host : device) + corner[2] * ret->slice + corner[1] * ret->pitch +
		  corner[0];
	if (unified && ret->host && !address_map_has_host(ret->at, copy->WidthInBytes))
		return CUDA_ERROR_INVALID_VALUE;
	ret->host = ret->host && !address_map_is_device_alone(ret->at, copy->WidthInBytes);
	return ret->at ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* How much of it lies between the first byte and the last. */
static size_t array_extent(const struct array_memory *memory, const CUDA_MEMCPY3D *copy)
{
	return (copy->Depth - 1) * memory->slice + (copy->Height - 1) * memory->pitch + copy->WidthInBytes;
}

/* ---- pieces of a box ---- */

struct array_pieces {
	size_t planes, rows; /* of one */
	size_t per_plane;    /* pieces; 1 where one has whole planes */
	size_t count;
};

struct array_piece {
	size_t z, y, planes, rows;
};

static struct array_pieces array_divide(const CUDA_MEMCPY3D *copy, size_t bytes)
{
	const size_t plane = copy->WidthInBytes * copy->Height;
	struct array_pieces pieces = {.planes = bytes / plane, .rows = copy->Height, .per_plane = 1};

	if (pieces.planes == 0) {
		pieces.planes = 1;
		pieces.rows = bytes / copy->WidthInBytes;
		pieces.per_plane = (copy->Height + pieces.rows - 1) / pieces.rows;
	}
	pieces.count = (copy->Depth + pieces.planes - 1) / pieces.planes * pieces.per_plane;
	return pieces;
}

static struct array_piece array_piece(const struct array_pieces *pieces, const CUDA_MEMCPY3D *copy, size_t number)
{
	struct array_piece piece = {.z = number / pieces->per_plane * pieces->planes,
				    .y = number % pieces->per_plane * pieces->rows,
				    .planes = pieces->planes,
				    .rows = pieces->rows};

	if (piece.planes > copy->Depth - piece.z)
		piece.planes = copy->Depth - piece.z;
	if (piece.rows > copy->Height - piece.y)
		piece.rows = copy->Height - piece.y;
	return piece;
}

/* Between the host's memory and a chunk, in which rows lie one behind the other. */
static void array_move(const struct array_memory *memory, const struct array_piece *piece, size_t width, uint8_t *chunk,
		       bool in, bool shared)
{
	const bool whole = memory->pitch == width;
	const size_t rows = whole ? 1 : piece->rows, bytes = whole ? width * piece->rows : width;

	for (size_t z = 0; z < piece->planes; z++)
		for (size_t y = 0; y < rows; y++, chunk += bytes) {
			uint8_t *at =
				(uint8_t *)memory->at + (piece->z + z) * memory->slice + (piece->y + y) * memory->pitch;

			if (in)
				staged_copy(chunk, at, bytes, shared && whole);
			else
				staged_copy(at, chunk, bytes, shared && whole);
		}
}

static CUresult array_send_piece(const CUDA_MEMCPY3D *copy, const struct array_piece *piece, uint32_t chunk,
				 CUstream stream)
{
	const uint64_t words[] = {stream, chunk, sizeof(*copy)};
	CUDA_MEMCPY3D part = *copy;
	const struct call_part parts = {&part, sizeof(part)};

	/* Where the other side is does not matter: it is the chunk. */
	part.srcY += piece->y;
	part.dstY += piece->y;
	part.srcZ += piece->z;
	part.dstZ += piece->z;
	part.Height = piece->rows;
	part.Depth = piece->planes;
	return call_sync(WIRE_STAGE_BOX, words, 3, &parts, 1, NULL, 0);
}

static CUresult array_copy_staged(const CUDA_MEMCPY3D *copy, const struct array_memory *memory, CUstream stream,
				  size_t bytes)
{
	const bool in = copy->dstMemoryType == COPY_ARRAY;
	CUresult r = in ? staged_await((const void *)memory->at, stream) : CUDA_SUCCESS;
	struct array_pieces pieces;
	struct staged staged;

	if (!r)
		r = staged_begin(bytes, stream, &staged);
	if (r)
		return r;
	pieces = array_divide(copy, staged.piece);
	for (size_t i = 0; i < pieces.count + staged.depth && !r; i++) {
		const uint32_t chunk = staged.chunk[i % staged.depth];
		struct array_piece piece;

		if (i >= staged.depth && i - staged.depth < pieces.count)
			r = staged_wait(chunk);
		if (i >= staged.depth && i - staged.depth < pieces.count && !r && !in) {
			piece = array_piece(&pieces, copy, i - staged.depth);
			array_move(memory, &piece, copy->WidthInBytes, staged_chunk(chunk), false, staged.shared);
		}
		if (i >= pieces.count || r)
			continue;
		piece = array_piece(&pieces, copy, i);
		if (in)
			array_move(memory, &piece, copy->WidthInBytes, staged_chunk(chunk), true, staged.shared);
		r = array_send_piece(copy, &piece, chunk, stream);
	}
	/* The chunks may be filled again once their last copies are done. */
	for (unsigned i = 0; i < staged.depth && r; i++)
		(void)staged_wait(staged.chunk[i]);
	staged_end(&staged);
	return r;
}

/* ---- copies ---- */

/* With what is not the array as it is read: the driver is told where it begins. */
static CUDA_MEMCPY3D array_place(const CUDA_MEMCPY3D *copy, const struct array_memory *memory, bool source)
{
	CUDA_MEMCPY3D ready = *copy;

	if (source) {
		ready.srcMemoryType = memory->host ? COPY_HOST : COPY_DEVICE;
		ready.srcHost = (const void *)memory->at;
		ready.srcDevice = memory->at;
		ready.srcXInBytes = ready.srcY = ready.srcZ = 0;
		ready.srcPitch = memory->pitch;
		ready.srcHeight = memory->slice / memory->pitch;
	} else {
		ready.dstMemoryType = memory->host ? COPY_HOST : COPY_DEVICE;
		ready.dstHost = (void *)memory->at;
		ready.dstDevice = memory->at;
		ready.dstXInBytes = ready.dstY = ready.dstZ = 0;
		ready.dstPitch = memory->pitch;
		ready.dstHeight = memory->slice / memory->pitch;
	}
	return ready;
}

static CUresult array_copy_memory(const CUDA_MEMCPY3D *copy, bool source, CUstream stream, bool waits)
{
	const size_t from[] = {copy->srcXInBytes, copy->srcY, copy->srcZ};
	const size_t to[] = {copy->dstXInBytes, copy->dstY, copy->dstZ};
	struct array_memory memory = {0};
	CUDA_MEMCPY3D ready;
	size_t bytes;
	CUresult r = source ? array_read_memory(copy->srcMemoryType, copy->srcHost, copy->srcDevice, from,
						copy->srcPitch, copy->srcHeight, copy, &memory)
			    : array_read_memory(copy->dstMemoryType, copy->dstHost, copy->dstDevice, to, copy->dstPitch,
						copy->dstHeight, copy, &memory);

	if (r)
		return r;
	if (__builtin_mul_overflow(copy->WidthInBytes * copy->Height, copy->Depth, &bytes) ||
	    copy->WidthInBytes > WIRE_LARGE_BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	ready = array_place(copy, &memory, source);
	if (!memory.host) {
		r = array_send(&ready, stream);
		return waits ? managed_finish(r, memory.at, 0, stream) : r;
	}
	if (!address_map_is_locked((const void *)memory.at, array_extent(&memory, copy)))
		return array_copy_staged(&ready, &memory, stream, bytes);
	r = array_send(&ready, stream);
	return r || !waits ? r : cuStreamSynchronize(stream);
}

CUresult array_copy(const CUDA_MEMCPY3D *copy, CUstream stream, bool waits)
{
	struct context *context;
	CUresult r = context_current(&context);

	if (r)
		return r;
	if (!wire_is_stream(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (copy->WidthInBytes == 0 || copy->Height == 0 || copy->Depth == 0)
		return CUDA_SUCCESS;
	if (copy->Height > SIZE_MAX / copy->WidthInBytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (copy->srcMemoryType == COPY_ARRAY && copy->dstMemoryType == COPY_ARRAY)
		return array_send(copy, stream);
	return array_copy_memory(copy, copy->dstMemoryType == COPY_ARRAY, stream, waits);
}

CUDA_MEMCPY3D array_box_of(const CUDA_MEMCPY2D *copy)
{
	return (CUDA_MEMCPY3D){
		.srcXInBytes = copy->srcXInBytes,
		.srcY = copy->srcY,
		.srcMemoryType = copy->srcMemoryType,
		.srcHost = copy->srcHost,
		.srcDevice = copy->srcDevice,
		.srcArray = copy->srcArray,
		.srcPitch = copy->srcPitch,
		.dstXInBytes = copy->dstXInBytes,
		.dstY = copy->dstY,
		.dstMemoryType = copy->dstMemoryType,
		.dstHost = copy->dstHost,
		.dstDevice = copy->dstDevice,
		.dstArray = copy->dstArray,
		.dstPitch = copy->dstPitch,
		.WidthInBytes = copy->WidthInBytes,
		.Height = copy->Height,
		.Depth = 1,
	};
}

/* ---- of a line ---- */

struct array_end {
	int type;
	uint64_t at;
	size_t offset;
};

static CUresult array_copy_line(struct array_end to, struct array_end from, size_t bytes, CUstream stream, bool waits)
{
	const CUDA_MEMCPY3D line = {
		.srcXInBytes = from.offset,
		.srcMemoryType = from.type,
		.srcHost = (const void *)from.at,
		.srcDevice = from.at,
		.srcArray = from.at,
		.dstXInBytes = to.offset,
		.dstMemoryType = to.type,
		.dstHost = (void *)to.at,
		.dstDevice = to.at,
		.dstArray = to.at,
		.WidthInBytes = bytes,
		.Height = 1,
		.Depth = 1,
	};

	return array_copy(&line, stream, waits);
}

CUresult on_cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return array_copy_line((struct array_end){COPY_ARRAY, to, offset}, (struct array_end){COPY_DEVICE, from, 0},
			       bytes, stream, true);
}

CUresult on_cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes, CUstream stream)
{
	return array_copy_line((struct array_end){COPY_DEVICE, to, 0}, (struct array_end){COPY_ARRAY, from, offset},
			       bytes, stream, true);
}

CUresult on_cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes,
			    CUstream stream)
{
	return array_copy_line((struct array_end){COPY_ARRAY, to, to_offset},
			       (struct array_end){COPY_ARRAY, from, from_offset}, bytes, stream, true);
}

static CUresult array_copy_in(CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream, bool waits)
{
	return array_copy_line((struct array_end){COPY_ARRAY, to, offset},
			       (struct array_end){COPY_HOST, (uint64_t)from, 0}, bytes, stream, waits);
}

CUresult on_cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream)
{
	return array_copy_in(to, offset, from, bytes, stream, true);
}

CUresult on_cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream)
{
	return array_copy_in(to, offset, from, bytes, stream, false);
}

static CUresult array_copy_out(void *to, CUarray from, size_t offset, size_t bytes, CUstream stream, bool waits)
{
	return array_copy_line((struct array_end){COPY_HOST, (uint64_t)to, 0},
			       (struct array_end){COPY_ARRAY, from, offset}, bytes, stream, waits);
}

CUresult on_cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t bytes, CUstream stream)
{
	return array_copy_out(to, from, offset, bytes, stream, true);
}

CUresult on_cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes, CUstream stream)
{
	return array_copy_out(to, from, offset, bytes, stream, false);
}

/* ---- textures and texture references: what may be left out and what has fractions ---- */

CUresult cuTexObjectCreate(CUtexObject *texture, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *how,
			   const CUDA_RESOURCE_VIEW_DESC *view)
{
	const size_t bytes = view ? sizeof(*view) : 0;
	const uint64_t words[] = {sizeof(*resource), sizeof(*how), bytes};
	const struct call_part parts[] = {{resource, sizeof(*resource)}, {how, sizeof(*how)}, {view, bytes}};

	if (!texture || !resource || !how)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	return call_sync(OP_cuTexObjectCreate, words, 3, parts, view ? 3 : 2, texture, sizeof(*texture));
}

static uint64_t array_float_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

CUresult cuTexRefSetMipmapLevelBias(CUtexref reference, float bias)
{
	const uint64_t words[] = {reference, array_float_bits(bias)};

	return call_sync(OP_cuTexRefSetMipmapLevelBias, words, 2, NULL, 0, NULL, 0);
}

CUresult cuTexRefSetMipmapLevelClamp(CUtexref reference, float least, float most)
{
	const uint64_t words[] = {reference, array_float_bits(least), array_float_bits(most)};

	return call_sync(OP_cuTexRefSetMipmapLevelClamp, words, 3, NULL, 0, NULL, 0);
}

CUresult cuTexRefSetBorderColor(CUtexref reference, float *color)
{
	const uint64_t words[] = {reference, sizeof(struct wire_color)};
	const struct call_part part = {color, sizeof(struct wire_color)};

	if (!color)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	return call_sync(OP_cuTexRefSetBorderColor, words, 2, &part, 1, NULL, 0);
}

CUresult cuTexRefGetBorderColor(float *color, CUtexref reference)
{
	const uint64_t words[] = {reference};

	if (!color)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	return call_sync(OP_cuTexRefGetBorderColor, words, 1, NULL, 0, color, sizeof(struct wire_color));
}

CUresult cuTexRefSetAddress_v2(size_t *offset, CUtexref reference, CUdeviceptr pointer, size_t bytes)
{
	const uint64_t words[] = {reference, pointer, bytes, offset != NULL};

	return call_sync(OP_cuTexRefSetAddress_v2, words, 4, NULL, 0, offset, offset ? sizeof(*offset) : 0);
}

/* ---- maps of tensors, which the server's driver makes ---- */

enum { TENSOR_OWN_MAX = 2 + 2 * TENSOR_RANKS };

/* What all kinds have in the order of the API, and then what the kind has of its own. */
struct tensor {
	int type;
	cuuint32_t rank;
	const void *address;
	const cuuint64_t *dimensions, *strides;
	const cuuint32_t *element;
	int interleave, swizzle, promotion, fill;
	unsigned own_count;
	uint64_t own[TENSOR_OWN_MAX];
};

static CUresult tensor_encode(unsigned op, const struct tensor *tensor, CUtensorMap *map)
{
	uint64_t words[TENSOR_OWN + TENSOR_OWN_MAX] = {
		[TENSOR_TYPE] = (uint64_t)tensor->type,       [TENSOR_RANK] = tensor->rank,
		[TENSOR_ADDRESS] = (uint64_t)tensor->address, [TENSOR_INTERLEAVE] = (uint64_t)tensor->interleave,
		[TENSOR_SWIZZLE] = (uint64_t)tensor->swizzle, [TENSOR_PROMOTION] = (uint64_t)tensor->promotion,
		[TENSOR_FILL] = (uint64_t)tensor->fill,
	};
	const cuuint32_t rank = tensor->rank;

	if (!map || !tensor->dimensions || !tensor->element || rank == 0 || rank > TENSOR_RANKS ||
	    (rank > 1 && !tensor->strides))
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	for (unsigned i = 0; i < rank; i++) {
		words[TENSOR_DIMENSIONS + i] = tensor->dimensions[i];
		words[TENSOR_STRIDES + i] = i + 1 < rank ? tensor->strides[i] : 0;
		words[TENSOR_ELEMENT + i] = tensor->element[i];
	}
	for (unsigned i = 0; i < tensor->own_count; i++)
		words[TENSOR_OWN + i] = tensor->own[i];
	return call_sync(op, words, TENSOR_OWN + tensor->own_count, NULL, 0, map, sizeof(*map));
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
				const cuuint64_t *dimensions, const cuuint64_t *strides, const cuuint32_t *box,
				const cuuint32_t *element, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
				CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	struct tensor tensor = {type,       rank,    address,   dimensions, strides,      element,
				interleave, swizzle, promotion, fill,       TENSOR_RANKS, {0}};

	if (!box)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	for (unsigned i = 0; i < rank && i < TENSOR_RANKS; i++)
		tensor.own[i] = box[i];
	return tensor_encode(OP_cuTensorMapEncodeTiled, &tensor, map);
}

/* The corners have a number for each dimension but the first and the last, which are channels and images. */
CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
				 const cuuint64_t *dimensions, const cuuint64_t *strides, const int *lower,
				 const int *upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *element,
				 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
				 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	struct tensor tensor = {type,       rank,    address,   dimensions, strides,        element,
				interleave, swizzle, promotion, fill,       TENSOR_OWN_MAX, {channels, pixels}};

	if (!lower || !upper)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	for (unsigned i = 0; i + 2 < rank && i < TENSOR_RANKS; i++) {
		tensor.own[2 + i] = (uint64_t)lower[i];
		tensor.own[2 + TENSOR_RANKS + i] = (uint64_t)upper[i];
	}
	return tensor_encode(OP_cuTensorMapEncodeIm2col, &tensor, map);
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
				     const cuuint64_t *dimensions, const cuuint64_t *strides, int lower, int upper,
				     cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *element,
				     CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
				     CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
				     CUtensorMapFloatOOBfill fill)
{
	const struct tensor tensor = {
		type,      rank,    address,    dimensions,
		strides,   element, interleave, swizzle,
		promotion, fill,    5,          {channels, pixels, (uint64_t)lower, (uint64_t)upper, (uint64_t)mode}};

	return tensor_encode(OP_cuTensorMapEncodeIm2colWide, &tensor, map);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
	const uint64_t words[] = {(uint64_t)address, sizeof(*map)};
	const struct call_part part = {map, sizeof(*map)};

	if (!map)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	return call_sync(OP_cuTensorMapReplaceAddress, words, 2, &part, 1, map, sizeof(*map));
}
