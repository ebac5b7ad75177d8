/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory pools. Memory is there at once; what is freed in a stream is handed out again to that stream at once, to others when
 * the stream has come there. What a pool keeps above its threshold goes back when it is trimmed.
 */

#include <string.h>
#include <sys/mman.h>

#include "sim.h"

enum { REUSE_FIRST = 1, REUSE_LAST = 3, THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH };

struct CUmemPoolHandle_st {
	struct object object;
	struct device *device;
	bool is_default;
	int reuse[REUSE_LAST + 1];
	uint64_t values[USED_HIGH + 1];
};

static CUmemoryPool pool_new(struct device *device)
{
	CUmemoryPool pool = object_new(OBJECT_POOL, sizeof(*pool), NULL);

	pool->device = device;
	for (int i = REUSE_FIRST; i <= REUSE_LAST; i++)
		pool->reuse[i] = 1;
	return pool;
}

CUmemoryPool pool_default(struct device *device)
{
	if (!device->default_pool) {
		device->default_pool = pool_new(device);
		device->default_pool->is_default = true;
	}
	return device->default_pool;
}

static void pool_count(CUmemoryPool pool, int what, size_t more)
{
	pool->values[what] += more;
	if (pool->values[what + 1] < pool->values[what])
		pool->values[what + 1] = pool->values[what];
}

void pool_forget(struct range *range)
{
	if (!range->freed)
		range->pool->values[USED] -= range->charged;
	range->pool->values[RESERVED] -= range->charged;
}

static bool pool_may_use(const struct range *range, CUmemoryPool pool, size_t size, CUstream stream)
{
	return range->kind == RANGE_POOL && range->pool == pool && range->freed && range->charged == size &&
	       (range->freed_on == stream || stream_is_done(range->freed_on, range->freed_at));
}

static CUresult pool_alloc(CUcontext context, CUmemoryPool pool, size_t bytes, CUstream stream, CUdeviceptr *ret)
{
	size_t size = (bytes + 511) & ~(size_t)511;
	struct range *range;
	void *memory;

	for (range = range_next(NULL, context); range; range = range_next(range, context))
		if (pool_may_use(range, pool, size, stream)) {
			range->freed = false;
			range->size = bytes;
			pool_count(pool, USED, size);
			*ret = range->start;
			return CUDA_SUCCESS;
		}
	if (size < bytes || device_charge(pool->device, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	memory = memory_map(size);
	if (!memory) {
		device_refund(pool->device, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	range = address_map_add(RANGE_POOL, memory, bytes, context);
	range->device = pool->device;
	range->charged = size;
	range->pool = pool;
	pool_count(pool, RESERVED, size);
	pool_count(pool, USED, size);
	*ret = (CUdeviceptr)(uintptr_t)memory;
	return CUDA_SUCCESS;
}

CUresult pool_free(CUcontext context, struct range *range, CUstream stream)
{
	/* One that has outlived its context. */
	if (!range->context)
		range->context = context;
	range->freed = true;
	range->freed_on = stream;
	range->freed_at = stream->queued;
	range->pool->values[USED] -= range->charged;
	return CUDA_SUCCESS;
}

static CUmemoryPool pool_current(struct device *device)
{
	return device->pool ? device->pool : pool_default(device);
}

static CUresult pool_alloc_async(CUdeviceptr *ret, size_t bytes, CUmemoryPool pool, CUstream handle, CUcontext context)
{
	CUstream stream;
	CUresult r;

	if (stream_find(context, handle, &stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!bytes) {
		*ret = 0;
		return CUDA_SUCCESS;
	}
	/* Of the stream's device, whatever context is current. */
	if (!pool)
		pool = pool_current(stream->object.context->device);
	r = pool_alloc(stream->object.context, pool, bytes, stream, ret);
	/* The memory is there from now on, and stays. */
	if (!r && capture_takes(stream, NODE_EMPTY, NULL, 0, &r))
		address_map_find(*ret)->of_graph = true;
	return r;
}

CUresult cuMemAllocAsync(CUdeviceptr *ret, size_t bytes, CUstream stream)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE(pool_alloc_async(ret, bytes, NULL, stream, context));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ret, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!object_is(pool, OBJECT_POOL), CUDA_ERROR_INVALID_VALUE);
	LEAVE(pool_alloc_async(ret, bytes, pool, stream, context));
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle)
{
	struct range *range;
	CUcontext context;
	CUstream stream;
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(!pointer, CUDA_SUCCESS);
	LEAVE_IF(stream_find(context, handle, &stream), CUDA_ERROR_INVALID_HANDLE);
	range = address_map_find(pointer);
	LEAVE_IF(!range || range->start != pointer || range->freed, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(range->kind == RANGE_MANAGED, CUDA_ERROR_NOT_SUPPORTED);
	if (range->kind == ADDRESS_MAP_DEVICE) {
		(void)call_leave(CUDA_SUCCESS);
		return cuMemFree_v2(pointer);
	}
	LEAVE_IF(range->kind != RANGE_POOL, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(capture_takes(stream, NODE_EMPTY, NULL, 0, &r), r);
	LEAVE_IF(range->of_graph, CUDA_SUCCESS);
	LEAVE(pool_free(context, range, stream));
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *ret, CUdevice device)
{
	CALL(__func__);
	LEAVE_IF(!device_get(device), CUDA_ERROR_INVALID_DEVICE);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = pool_default(device_get(device));
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *ret, CUdevice device)
{
	struct device *of;

	CALL(__func__);
	of = device_get(device);
	LEAVE_IF(!of || !ret, CUDA_ERROR_INVALID_VALUE);
	*ret = pool_current(of);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	CALL(__func__);
	LEAVE_IF(!device_get(device), CUDA_ERROR_INVALID_DEVICE);
	LEAVE_IF(!object_is(pool, OBJECT_POOL) || pool->device != device_get(device), CUDA_ERROR_INVALID_VALUE);
	device_get(device)->pool = pool;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemPoolCreate(CUmemoryPool *ret, const CUmemPoolProps *properties)
{
	CALL(__func__);
	LEAVE_IF(!ret || !properties || properties->alloc_type != 1 || properties->location.type != 1,
		 CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(!device_get(properties->location.id), CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(properties->handle_types, CUDA_ERROR_NOT_SUPPORTED);
	*ret = pool_new(device_get(properties->location.id));
	LEAVE(CUDA_SUCCESS);
}

/* All that is free in it, until no more is left than is to be kept. */
static void pool_trim(CUmemoryPool pool, size_t keep)
{
	for (CUcontext context = object_after(NULL, OBJECT_CONTEXT); context;
	     context = object_after(context, OBJECT_CONTEXT))
		for (struct range *range = range_next(NULL, context), *next; range; range = next) {
			next = range_next(range, context);
			if (range->kind != RANGE_POOL || range->pool != pool || !range->freed ||
			    pool->values[RESERVED] <= keep)
				continue;
			(void)stream_wait(range->freed_on, range->freed_at);
			device_refund(range->device, range->charged);
			pool_forget(range);
			(void)munmap((void *)range->start, range->size);
			address_map_remove(range);
		}
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	CALL(__func__);
	LEAVE_IF(!object_is(pool, OBJECT_POOL) || pool->is_default, CUDA_ERROR_INVALID_VALUE);
	pool_trim(pool, 0);
	if (pool->device->pool == pool)
		pool->device->pool = NULL;
	object_unlink(pool);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	CALL(__func__);
	LEAVE_IF(!object_is(pool, OBJECT_POOL), CUDA_ERROR_INVALID_VALUE);
	pool_trim(pool, keep);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
	CALL(__func__);
	LEAVE_IF(!object_is(pool, OBJECT_POOL) || !value, CUDA_ERROR_INVALID_VALUE);
	if (attribute >= REUSE_FIRST && attribute <= REUSE_LAST)
		pool->reuse[attribute] = *(int *)value != 0;
	else if (attribute == THRESHOLD)
		pool->values[THRESHOLD] = *(uint64_t *)value;
	else if ((attribute == RESERVED_HIGH || attribute == USED_HIGH) && *(uint64_t *)value == 0)
		pool->values[attribute] = pool->values[attribute - 1];
	else
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *ret)
{
	CALL(__func__);
	LEAVE_IF(!object_is(pool, OBJECT_POOL) || !ret || attribute < REUSE_FIRST || attribute > USED_HIGH,
		 CUDA_ERROR_INVALID_VALUE);
	if (attribute <= REUSE_LAST)
		*(int *)ret = pool->reuse[attribute];
	else
		*(uint64_t *)ret = pool->values[attribute];
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	CALL(__func__);
	LEAVE_IF(!object_is(pool, OBJECT_POOL) || !map || !count, CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < count; i++) {
		LEAVE_IF(map[i].location.type != 1, CUDA_ERROR_INVALID_VALUE);
		LEAVE_IF(!device_get(map[i].location.id), CUDA_ERROR_INVALID_DEVICE);
		LEAVE_IF(device_get(map[i].location.id) == pool->device && map[i].flags != 3,
			 CUDA_ERROR_INVALID_DEVICE);
	}
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemPoolGetAccess(int *ret, CUmemoryPool pool, CUmemLocation *location)
{
	CALL(__func__);
	LEAVE_IF(!ret || !object_is(pool, OBJECT_POOL) || !location || location->type != 1, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(!device_get(location->id), CUDA_ERROR_INVALID_DEVICE);
	*ret = device_get(location->id) == pool->device ? 3 : 0;
	LEAVE(CUDA_SUCCESS);
}
