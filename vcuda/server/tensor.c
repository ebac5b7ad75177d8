/* SPDX-License-Identifier: Apache-2.0 */

/* Maps of tensors: numbers that the driver makes of other numbers, and which kernels are given. */

#include <string.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/request.h"

/* What all kinds of maps have, with arrays as the driver takes them. */
struct tensor {
	void *address;
	const cuuint64_t *dimensions, *strides;
	cuuint32_t rank, element[TENSOR_RANKS];
	const uint64_t *own; /* words of the kind */
};

static CUresult tensor_read(struct request *q, bool offered, unsigned own, struct tensor *ret)
{
	CUresult r = offered ? request_words(q, TENSOR_OWN + own) : CUDA_ERROR_NOT_SUPPORTED;
	const uint64_t *word = q->argument;

	if (r || word[TENSOR_RANK] == 0 || word[TENSOR_RANK] > TENSOR_RANKS)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	ret->rank = (cuuint32_t)word[TENSOR_RANK];
	ret->address = (void *)word[TENSOR_ADDRESS];
	ret->dimensions = (const cuuint64_t *)&word[TENSOR_DIMENSIONS];
	ret->strides = (const cuuint64_t *)&word[TENSOR_STRIDES];
	for (unsigned i = 0; i < TENSOR_RANKS; i++)
		ret->element[i] = (cuuint32_t)word[TENSOR_ELEMENT + i];
	ret->own = &word[TENSOR_OWN];
	return CUDA_SUCCESS;
}

CUresult serve_cuTensorMapEncodeTiled(struct request *q)
{
	cuuint32_t box[TENSOR_RANKS];
	struct tensor tensor;
	CUresult r = tensor_read(q, driver.cuTensorMapEncodeTiled, TENSOR_RANKS, &tensor);
	const uint64_t *word = q->argument;
	CUtensorMap map = {0};

	if (r)
		return r;
	for (unsigned i = 0; i < TENSOR_RANKS; i++)
		box[i] = (cuuint32_t)tensor.own[i];
	r = driver.cuTensorMapEncodeTiled(&map, (int)word[TENSOR_TYPE], tensor.rank, tensor.address, tensor.dimensions,
					  tensor.strides, box, tensor.element, (int)word[TENSOR_INTERLEAVE],
					  (int)word[TENSOR_SWIZZLE], (int)word[TENSOR_PROMOTION],
					  (int)word[TENSOR_FILL]);
	request_reply(q, &map, sizeof(map));
	return r;
}

CUresult serve_cuTensorMapEncodeIm2col(struct request *q)
{
	int lower[TENSOR_RANKS], upper[TENSOR_RANKS];
	struct tensor tensor;
	CUresult r = tensor_read(q, driver.cuTensorMapEncodeIm2col, 2 + 2 * TENSOR_RANKS, &tensor);
	const uint64_t *word = q->argument;
	CUtensorMap map = {0};

	if (r)
		return r;
	for (unsigned i = 0; i < TENSOR_RANKS; i++) {
		lower[i] = (int)tensor.own[2 + i];
		upper[i] = (int)tensor.own[2 + TENSOR_RANKS + i];
	}
	r = driver.cuTensorMapEncodeIm2col(&map, (int)word[TENSOR_TYPE], tensor.rank, tensor.address, tensor.dimensions,
					   tensor.strides, lower, upper, (cuuint32_t)tensor.own[0],
					   (cuuint32_t)tensor.own[1], tensor.element, (int)word[TENSOR_INTERLEAVE],
					   (int)word[TENSOR_SWIZZLE], (int)word[TENSOR_PROMOTION],
					   (int)word[TENSOR_FILL]);
	request_reply(q, &map, sizeof(map));
	return r;
}

CUresult serve_cuTensorMapEncodeIm2colWide(struct request *q)
{
	enum { WIDE_WORDS = 5 };
	struct tensor tensor;
	CUresult r = tensor_read(q, driver.cuTensorMapEncodeIm2colWide, WIDE_WORDS, &tensor);
	const uint64_t *word = q->argument;
	CUtensorMap map = {0};

	if (r)
		return r;
	r = driver.cuTensorMapEncodeIm2colWide(
		&map, (int)word[TENSOR_TYPE], tensor.rank, tensor.address, tensor.dimensions, tensor.strides,
		(int)tensor.own[2], (int)tensor.own[3], (cuuint32_t)tensor.own[0], (cuuint32_t)tensor.own[1],
		tensor.element, (int)word[TENSOR_INTERLEAVE], (int)tensor.own[4], (int)word[TENSOR_SWIZZLE],
		(int)word[TENSOR_PROMOTION], (int)word[TENSOR_FILL]);
	request_reply(q, &map, sizeof(map));
	return r;
}

CUresult serve_cuTensorMapReplaceAddress(struct request *q)
{
	CUresult r = driver.cuTensorMapReplaceAddress ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	CUtensorMap map;

	if (!r)
		r = request_struct(q, 1, &map, sizeof(map));
	if (!r)
		r = driver.cuTensorMapReplaceAddress(&map, (void *)q->argument[0]);
	if (!r)
		request_reply(q, &map, sizeof(map));
	return r;
}
