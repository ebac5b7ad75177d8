/* SPDX-License-Identifier: Apache-2.0 */

/* Maps of tensors, which the server's driver makes. */

#include "vcuda/client/call.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

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
