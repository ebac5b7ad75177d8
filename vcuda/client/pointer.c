/* SPDX-License-Identifier: Apache-2.0 */

/* What an address is. Numbers as in CUpointer_attribute. */

#include <string.h>

#include "vcuda/client/address_map.h"
#include "vcuda/client/call.h"
#include "vcuda/client_api.h"

enum { POINTER_HOST = 1, POINTER_DEVICE = 2, POINTER_OF_DEVICE = 3, POINTER_OF_HOST = 4, POINTER_ORDINAL = 9 };

#define POINTER_NO_DEVICE ((uint64_t)-2) /* CU_DEVICE_INVALID */

static uint64_t pointer_context(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return range->context ? range->context->name : 0;
}

static uint64_t pointer_memory_type(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return address_map_is_host(range) ? POINTER_HOST : POINTER_DEVICE;
}

static uint64_t pointer_itself(const struct range *range, CUdeviceptr pointer)
{
	(void)range;
	return pointer;
}

static uint64_t pointer_on_device(const struct range *range, CUdeviceptr pointer)
{
	return address_map_on_device(range, pointer);
}

static uint64_t pointer_nothing(const struct range *range, CUdeviceptr pointer)
{
	(void)range, (void)pointer;
	return 0;
}

static uint64_t pointer_managed(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return address_map_is_managed(range);
}

static uint64_t pointer_can_be_given(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return range->kind == ADDRESS_MAP_DEVICE;
}

static uint64_t pointer_waits(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return range->waits;
}

static uint64_t pointer_number(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return range->number;
}

/* Of what is mapped at an address. Return: whether anything is. */
static bool pointer_read_properties(CUdeviceptr pointer, CUmemAllocationProp *ret)
{
	CUmemGenericAllocationHandle memory;
	struct range mapping;
	CUresult r;

	if (!address_map_find_mapping(pointer, &mapping) || cuMemRetainAllocationHandle(&memory, (void *)pointer))
		return false;
	r = cuMemGetAllocationPropertiesFromHandle(ret, memory);
	(void)cuMemRelease(memory);
	return !r;
}

static uint64_t pointer_device(const struct range *range, CUdeviceptr pointer)
{
	enum { ON_DEVICE = 1 };
	CUmemAllocationProp properties;

	if (range->kind != ADDRESS_MAP_RESERVED)
		return (uint64_t)(range->context ? range->context->device : range->ordinal);
	return pointer_read_properties(pointer, &properties) && properties.location.type == ON_DEVICE
		       ? (uint64_t)properties.location.id
		       : POINTER_NO_DEVICE;
}

static uint64_t pointer_handle_types(const struct range *range, CUdeviceptr pointer)
{
	CUmemAllocationProp properties;

	return range->kind == ADDRESS_MAP_RESERVED && pointer_read_properties(pointer, &properties)
		       ? (uint64_t)properties.requestedHandleTypes
		       : 0;
}

static uint64_t pointer_pool(const struct range *range, CUdeviceptr pointer)
{
	CUmemoryPool pool = range->pool;

	(void)pointer;
	if (range->kind != ADDRESS_MAP_ASYNC)
		return 0;
	if (!pool)
		(void)cuDeviceGetDefaultMemPool(&pool, range->ordinal);
	return pool;
}

static uint64_t pointer_start(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return range->at;
}

static uint64_t pointer_bytes(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return range->bytes;
}

static uint64_t pointer_mapped(const struct range *range, CUdeviceptr pointer)
{
	struct range mapping;

	return range->kind != ADDRESS_MAP_RESERVED || address_map_find_mapping(pointer, &mapping);
}

static uint64_t pointer_access(const struct range *range, CUdeviceptr pointer)
{
	enum { READ_AND_WRITE = 3 };

	(void)range, (void)pointer;
	return READ_AND_WRITE;
}

/* By the numbers of CUpointer_attribute: how large the value is, and what. */
static const struct {
	size_t bytes;
	uint64_t (*value)(const struct range *range, CUdeviceptr pointer);
} pointer_attributes[] = {
	[1] = {sizeof(CUcontext), pointer_context},
	[2] = {sizeof(int), pointer_memory_type},
	[POINTER_OF_DEVICE] = {sizeof(CUdeviceptr), pointer_on_device},
	[POINTER_OF_HOST] = {sizeof(void *), pointer_itself},
	[6] = {sizeof(int), pointer_waits},       /* SYNC_MEMOPS */
	[7] = {sizeof(uint64_t), pointer_number}, /* BUFFER_ID */
	[8] = {sizeof(int), pointer_managed},     /* IS_MANAGED */
	[POINTER_ORDINAL] = {sizeof(int), pointer_device},
	[10] = {sizeof(int), pointer_can_be_given}, /* IS_LEGACY_CUDA_IPC_CAPABLE */
	[11] = {sizeof(uint64_t), pointer_start},
	[12] = {sizeof(uint64_t), pointer_bytes},
	[13] = {sizeof(int), pointer_mapped},
	[14] = {sizeof(uint64_t), pointer_handle_types}, /* ALLOWED_HANDLE_TYPES */
	[15] = {sizeof(int), pointer_nothing},           /* IS_GPU_DIRECT_RDMA_CAPABLE */
	[16] = {sizeof(int), pointer_access},
	[17] = {sizeof(CUmemoryPool), pointer_pool}, /* MEMPOOL_HANDLE */
};

/* Return: the size of the value; 0 if there is no such attribute. */
static size_t pointer_value(CUpointer_attribute attribute, const struct range *range, CUdeviceptr pointer,
			    uint64_t *value)
{
	if (attribute < 0 || (size_t)attribute >= sizeof(pointer_attributes) / sizeof(pointer_attributes[0]) ||
	    !pointer_attributes[attribute].value)
		return 0;
	*value = pointer_attributes[attribute].value(range, pointer);
	return pointer_attributes[attribute].bytes;
}

/* Whether this is of the kind that the attribute is about. */
static bool pointer_has(CUpointer_attribute attribute, const struct range *range)
{
	if (attribute == POINTER_OF_DEVICE)
		return range->kind != ADDRESS_MAP_REGISTERED || range->device;
	return attribute != POINTER_OF_HOST || address_map_is_host(range) || address_map_is_managed(range);
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
	if (!value || !address_map_find(pointer, &range) || !pointer_has(attribute, &range))
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
	known = address_map_find(pointer, &range);
	for (unsigned i = 0; i < count; i++) {
		uint64_t answer = 0;
		const size_t bytes = pointer_value(attributes[i], known ? &range : &nothing, pointer, &answer);

		if (bytes == 0 || !values[i])
			return CUDA_ERROR_INVALID_VALUE;
		if (!known || !pointer_has(attributes[i], &range))
			answer = !known && attributes[i] == POINTER_ORDINAL ? POINTER_NO_DEVICE : 0;
		memcpy(values[i], &answer, bytes);
	}
	return CUDA_SUCCESS;
}
