/* SPDX-License-Identifier: Apache-2.0 */

/* Memory of the device and locked memory of the host: taking it, giving it back, and asking what a pointer is. */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim.h"

enum { ALIGNMENT = 512, PITCH = 512, PAGE = 2 << 20 };

void *memory_map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* ---- pages that small pieces share, with PAGES=1 ---- */

enum { PAGES_MAX = 1024 };
static struct {
	unsigned pieces;
	size_t filled;
} pages[SIM_GPUS_MAX][PAGES_MAX];
static unsigned page_last[SIM_GPUS_MAX];

/* A device has a page as long as a piece of it is in use. Return: its number, from 1 on; 0: there is none. */
static unsigned memory_share_page(struct device *device, size_t size)
{
	unsigned *last = &page_last[device->ordinal];

	if (pages[device->ordinal][*last].filled + size > PAGE && ++*last == PAGES_MAX)
		abort();
	if (pages[device->ordinal][*last].pieces == 0 && device_charge(device, PAGE))
		return 0;
	pages[device->ordinal][*last].pieces++;
	pages[device->ordinal][*last].filled += size;
	return *last + 1;
}

static void memory_leave_page(struct device *device, unsigned page)
{
	if (--pages[device->ordinal][page - 1].pieces == 0)
		device_refund(device, PAGE);
}

/* What is larger than half a page has pages of its own. */
CUresult memory_alloc(CUcontext context, size_t bytes, CUdeviceptr *ret)
{
	const size_t piece = bytes > PAGE / 2 ? PAGE : ALIGNMENT;
	const bool shares = piece < PAGE && config_number("PAGES", 0);
	size_t size = (bytes + piece - 1) & ~(piece - 1);
	unsigned page = 0;
	struct range *range;
	void *memory;

	if (size < bytes ||
	    (shares ? !(page = memory_share_page(context->device, size)) : device_charge(context->device, size)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	memory = memory_map(size);
	if (!memory) {
		device_refund(context->device, shares ? 0 : size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	range = address_map_add(ADDRESS_MAP_DEVICE, memory, bytes, context);
	range->charged = shares ? 0 : size;
	range->page = page;
	*ret = (CUdeviceptr)(uintptr_t)memory;
	return CUDA_SUCCESS;
}

static void memory_free(struct range *range)
{
	ipc_forget(range);
	if (range->charged)
		device_refund(range->device, range->charged);
	if (range->page)
		memory_leave_page(range->device, range->page);
	if (range->kind == RANGE_POOL)
		pool_forget(range);
	if (range->kind == ADDRESS_MAP_DEVICE || range->kind == ADDRESS_MAP_HOST || range->kind == RANGE_POOL ||
	    range->kind == RANGE_MANAGED || range->kind == RANGE_TAKEN)
		(void)munmap((void *)range->start, range->size);
	address_map_remove(range);
}

/* What a pool has given out is the device's, and outlives the context in which it was asked for. */
void memory_free_all(CUcontext context)
{
	struct range *range;

	while ((range = range_next(NULL, context)))
		if (range->kind == RANGE_POOL && !range->freed)
			range->context = NULL;
		else
			memory_free(range);
}

CUresult cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
	CUcontext context;

	CALL_CONTEXT(context);
	if (ret_free)
		*ret_free = context->device->memory - context->device->used;
	if (ret_total)
		*ret_total = context->device->memory;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes)
{
	CUcontext context;
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || !bytes, CUDA_ERROR_INVALID_VALUE);
	r = capture_forbids_any();
	LEAVE_IF(r, r);
	LEAVE(memory_alloc(context, bytes, ret));
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *ret, size_t *ret_pitch, size_t width, size_t height, unsigned element)
{
	CUcontext context;
	size_t pitch = (width + PITCH - 1) & ~(size_t)(PITCH - 1);
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || !ret_pitch || !width || !height || (element != 4 && element != 8 && element != 16),
		 CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(pitch < width || height > SIZE_MAX / pitch, CUDA_ERROR_OUT_OF_MEMORY);
	r = memory_alloc(context, pitch * height, ret);
	if (!r)
		*ret_pitch = pitch;
	LEAVE(r);
}

/* Whether it is what cuMemFree() is for. */
static bool memory_is_freed_so(const struct range *range)
{
	return range->kind == ADDRESS_MAP_DEVICE || range->kind == RANGE_POOL || range->kind == RANGE_MANAGED;
}

/* Work that may use it is done first. */
CUresult cuMemFree_v2(CUdeviceptr pointer)
{
	struct range *range;
	CUcontext context;
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(!pointer, CUDA_SUCCESS);
	r = capture_forbids_any();
	LEAVE_IF(r, r);
	range = address_map_find(pointer);
	LEAVE_IF(!range || range->start != pointer || !memory_is_freed_so(range), CUDA_ERROR_INVALID_VALUE);
	context_drain(range->context ? range->context : context);
	range = address_map_find(pointer);
	LEAVE_IF(!range || range->start != pointer || range->freed, CUDA_ERROR_INVALID_VALUE);
	if (!range->of_graph)
		memory_free(range);
	object_tell_late();
	LEAVE(context->sticky);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *ret, size_t *ret_bytes, CUdeviceptr pointer)
{
	struct range *range;
	CUcontext context;
	uintptr_t start;
	size_t size;

	CALL_CONTEXT(context);
	range = address_map_find(pointer);
	start = range ? range->start : 0;
	size = range ? range->size : 0;
	if (range && range->kind == ADDRESS_MAP_RESERVED)
		size = vmm_range(pointer, &start);
	LEAVE_IF(!size, CUDA_ERROR_NOT_FOUND);
	if (ret)
		*ret = start;
	if (ret_bytes)
		*ret_bytes = size;
	LEAVE(CUDA_SUCCESS);
}

/* ---- the host's ---- */

CUresult cuMemHostAlloc(void **ret, size_t bytes, unsigned flags)
{
	size_t size = (bytes + 4095) & ~(size_t)4095;
	struct range *range;
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || flags > 7, CUDA_ERROR_INVALID_VALUE);
	*ret = NULL;
	LEAVE_IF(!bytes, CUDA_SUCCESS);
	*ret = memory_map(size);
	LEAVE_IF(!*ret, CUDA_ERROR_OUT_OF_MEMORY);
	range = address_map_add(ADDRESS_MAP_HOST, *ret, bytes, context);
	range->flags = flags | 2;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemAllocHost_v2(void **ret, size_t bytes)
{
	CUresult r = call_fault(__func__);

	return r ? r : cuMemHostAlloc(ret, bytes, 0);
}

CUresult cuMemFreeHost(void *pointer)
{
	struct range *range;
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!pointer, CUDA_SUCCESS);
	range = address_map_find((uintptr_t)pointer);
	LEAVE_IF(!range || range->kind != ADDRESS_MAP_HOST || range->start != (uintptr_t)pointer,
		 CUDA_ERROR_INVALID_VALUE);
	context_drain(range->context);
	memory_free(range);
	LEAVE(context->sticky);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ret, void *pointer, unsigned flags)
{
	struct range *range;
	CUcontext context;

	CALL_CONTEXT(context);
	range = address_map_find((uintptr_t)pointer);
	LEAVE_IF(!ret || flags || !range || !range_is_host(range), CUDA_ERROR_INVALID_VALUE);
	*ret = (CUdeviceptr)(uintptr_t)pointer;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemHostGetFlags(unsigned *ret, void *pointer)
{
	struct range *range;
	CUcontext context;

	CALL_CONTEXT(context);
	range = address_map_find((uintptr_t)pointer);
	LEAVE_IF(!ret || !range || (!range_is_host(range) && range->kind != RANGE_MANAGED), CUDA_ERROR_INVALID_VALUE);
	*ret = range->kind == RANGE_MANAGED ? 2 : range->flags;
	LEAVE(CUDA_SUCCESS);
}

/* Whether all pages of it are there. */
static bool memory_is_mapped(void *pointer, size_t bytes)
{
	uintptr_t start = (uintptr_t)pointer & ~(uintptr_t)4095;

	return msync((void *)start, (uintptr_t)pointer - start + bytes, MS_ASYNC) == 0;
}

CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags)
{
	struct range *range;
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!pointer || !bytes || flags > 15, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(!config_number("HOST_REGISTER", 1), CUDA_ERROR_NOT_SUPPORTED);
	LEAVE_IF(bytes > config_number("PINNED_MAX", SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	range = address_map_find_in((uintptr_t)pointer, bytes);
	LEAVE_IF(range && range->kind == RANGE_MANAGED, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(range, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	LEAVE_IF(!memory_is_mapped(pointer, bytes), CUDA_ERROR_INVALID_VALUE);
	range = address_map_add(RANGE_REGISTERED, pointer, bytes, context);
	range->flags = flags;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemHostUnregister(void *pointer)
{
	struct range *range;
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!pointer, CUDA_ERROR_INVALID_VALUE);
	range = address_map_find((uintptr_t)pointer);
	LEAVE_IF(!range || range->kind != RANGE_REGISTERED || range->start != (uintptr_t)pointer,
		 CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	context_drain(range->context);
	/* It may have ended with its context meanwhile. */
	range = address_map_find((uintptr_t)pointer);
	LEAVE_IF(!range || range->kind != RANGE_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	memory_free(range);
	LEAVE(CUDA_SUCCESS);
}

/* ---- what a pointer is ---- */

#define PUT(type, value) (*(type *)ret = (type)(value), CUDA_SUCCESS)

static CUresult memory_attribute(const struct range *range, int attribute, CUdeviceptr pointer, void *ret)
{
	bool host = range_is_host(range);

	switch (attribute) {
	case 1:
		return PUT(CUcontext, range->kind == RANGE_POOL ? NULL : range->context);
	case 2:
		return PUT(unsigned, host ? CU_MEMORY_HOST : CU_MEMORY_DEVICE);
	case 3:
		return PUT(CUdeviceptr, pointer);
	case 4:
		return host || range->kind == RANGE_MANAGED ? PUT(uintptr_t, pointer) : CUDA_ERROR_INVALID_VALUE;
	case 6:
		return PUT(unsigned, range->sync_memops);
	case 7:
		return PUT(unsigned long long, range->id);
	case 8:
		return PUT(unsigned, range->kind == RANGE_MANAGED);
	case 9:
		return PUT(int, range->device ? range->device->ordinal : -2);
	case 10:
		return PUT(int, range->kind == ADDRESS_MAP_DEVICE);
	case 11:
		return PUT(CUdeviceptr, range->start);
	case 12:
		return PUT(size_t, range->size);
	case 13:
		return PUT(int, 1);
	case 14:
		return PUT(unsigned long long, 0);
	case 15:
		return PUT(int, 0);
	case 16:
		return PUT(int, 3);
	case 17:
		return PUT(CUmemoryPool, range->of_graph ? NULL : range->pool);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Mapped handles look like device memory without a context. */
static CUresult memory_attribute_of(CUdeviceptr pointer, int attribute, void *ret)
{
	struct range mapped = {.kind = ADDRESS_MAP_DEVICE};
	struct range *range = address_map_find(pointer);

	if (range && range->kind != ADDRESS_MAP_RESERVED)
		return memory_attribute(range, attribute, pointer, ret);
	if (!range || !vmm_holds(pointer, 1, &mapped.device))
		return CUDA_ERROR_INVALID_VALUE;
	/* All that is reserved, whatever of it is mapped. */
	mapped.start = range->start;
	mapped.size = range->size;
	return memory_attribute(&mapped, attribute, pointer, ret);
}

CUresult cuPointerGetAttribute(void *ret, int attribute, CUdeviceptr pointer)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || attribute < 1 || attribute > 21, CUDA_ERROR_INVALID_VALUE);
	LEAVE(memory_attribute_of(pointer, attribute, ret));
}

static size_t memory_attribute_size(int attribute)
{
	switch (attribute) {
	case 1:
	case 3:
	case 4:
	case 7:
	case 11:
	case 12:
	case 14:
	case 17:
		return 8;
	default:
		return 4;
	}
}

CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **data, CUdeviceptr pointer)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!count || !attributes || !data, CUDA_ERROR_INVALID_VALUE);
	for (unsigned i = 0; i < count; i++) {
		LEAVE_IF(!data[i] || attributes[i] < 1 || attributes[i] > 21, CUDA_ERROR_INVALID_VALUE);
		memset(data[i], 0, memory_attribute_size(attributes[i]));
		if (attributes[i] == 9)
			*(int *)data[i] = -2;
		(void)memory_attribute_of(pointer, attributes[i], data[i]);
	}
	LEAVE(CUDA_SUCCESS);
}

CUresult cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr pointer)
{
	struct range *range;
	CUcontext context;

	CALL_CONTEXT(context);
	range = address_map_find(pointer);
	LEAVE_IF(!value || attribute != 6 || !range || range->kind != ADDRESS_MAP_DEVICE, CUDA_ERROR_INVALID_VALUE);
	range->sync_memops = *(const unsigned *)value != 0;
	LEAVE(CUDA_SUCCESS);
}
