/* SPDX-License-Identifier: Apache-2.0 */

/* What an address is. Numbers as in CUpointer_attribute. */

#include <string.h>

#include "vcuda/client/call.h"
#include "vcuda/client/range.h"
#include "vcuda/client_api.h"

enum { POINTER_HOST = 1, POINTER_DEVICE = 2 };

static size_t pointer_value(CUpointer_attribute attribute, const struct range *range, CUdeviceptr pointer,
			    uint64_t *value)
{
	const bool host = range->kind == RANGE_HOST;

	switch (attribute) {
	case 1: /* CONTEXT */
		*value = range->context ? range->context->handle : 0;
		return sizeof(CUcontext);
	case 2: /* MEMORY_TYPE */
		*value = host ? POINTER_HOST : POINTER_DEVICE;
		return sizeof(int);
	case 3: /* DEVICE_POINTER */
	case 4: /* HOST_POINTER */
		*value = pointer;
		return sizeof(uint64_t);
	case 6:  /* SYNC_MEMOPS */
	case 8:  /* IS_MANAGED */
	case 10: /* IS_LEGACY_CUDA_IPC_CAPABLE */
	case 14: /* ALLOWED_HANDLE_TYPES */
	case 15: /* IS_GPU_DIRECT_RDMA_CAPABLE */
		*value = 0;
		return attribute == 14 ? sizeof(uint64_t) : sizeof(char);
	case 7: /* BUFFER_ID */
		*value = range->number;
		return sizeof(uint64_t);
	case 9: /* DEVICE_ORDINAL */
		*value = range->context ? (uint64_t)range->context->device : 0;
		return sizeof(int);
	case 11: /* RANGE_START_ADDR */
		*value = range->at;
		return sizeof(uint64_t);
	case 12: /* RANGE_SIZE */
		*value = range->bytes;
		return sizeof(uint64_t);
	case 16: /* ACCESS_FLAGS: read and write */
		*value = 3;
		return sizeof(int);
	case 17: /* MEMPOOL_HANDLE */
		*value = 0;
		return sizeof(CUmemoryPool);
	case 13: /* MAPPED */
		*value = range->kind != RANGE_RESERVED;
		return sizeof(char);
	default:
		return 0;
	}
}

/* Whether this is of the kind that the attribute is about. */
static bool pointer_has(CUpointer_attribute attribute, const struct range *range)
{
	return attribute != 4 || range->kind == RANGE_HOST;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	struct thread *thread;
	CUresult r = call_enter(&thread);
	uint64_t answer = 0;
	struct range range;
	size_t bytes;

	if (r)
		return r;
	if (!value || !range_find(pointer, &range) || !pointer_has(attribute, &range))
		return CUDA_ERROR_INVALID_VALUE;
	bytes = pointer_value(attribute, &range, pointer, &answer);
	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(value, &answer, bytes);
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr pointer)
{
	static const struct range nothing;
	struct thread *thread;
	CUresult r = call_enter(&thread);
	struct range range;
	bool known;

	if (r)
		return r;
	if (!attributes || !values || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	known = range_find(pointer, &range);
	for (unsigned i = 0; i < count; i++) {
		uint64_t answer = 0;
		const size_t bytes = pointer_value(attributes[i], known ? &range : &nothing, pointer, &answer);

		if (bytes == 0)
			return CUDA_ERROR_INVALID_VALUE;
		if (!known || !pointer_has(attributes[i], &range))
			answer = !known && attributes[i] == 9 ? UINT64_MAX - 1 : 0;
		memcpy(values[i], &answer, bytes);
	}
	return CUDA_SUCCESS;
}
