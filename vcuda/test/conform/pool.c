/* SPDX-License-Identifier: Apache-2.0 */

/* Memory pools and memory in the order of a stream. */

#include "check.h"

enum { FOLLOW = 1, THRESHOLD = 4, RESERVED, RESERVED_HIGH, USED, USED_HIGH };

static CUmemoryPool pool_make(void)
{
	CUmemPoolProps properties = {.alloc_type = 1, .location = {1, 0}};
	CUmemoryPool pool = NULL;

	OK(cu.cuMemPoolCreate(&pool, &properties));
	return pool;
}

static uint64_t pool_value(CUmemoryPool pool, int attribute)
{
	uint64_t value = 0;

	OK(cu.cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

static void pool_async(void)
{
	CUdeviceptr pointer = 0;
	uint32_t word = 0;

	OK(cu.cuMemAllocAsync(&pointer, 4096, NULL));
	OK(cu.cuMemsetD32Async(pointer, 42, 1024, NULL));
	OK(cu.cuMemcpyDtoHAsync_v2(&word, pointer + 4092, 4, NULL));
	OK(cu.cuMemFreeAsync(pointer, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	IS(42, word);
}

static void pool_async_zero(void)
{
	CUdeviceptr pointer = 5;

	NOTE(cu.cuMemAllocAsync(&pointer, 0, NULL));
	NOTE(pointer == 0);
	NOTE(cu.cuMemFreeAsync(0, NULL));
	NOTE(cu.cuMemAllocAsync(NULL, 16, NULL));
}

static void pool_async_huge(void)
{
	CUdeviceptr pointer = 0;

	IS(2, cu.cuMemAllocAsync(&pointer, (size_t)1 << 50, NULL));
	OK(cu.cuMemAllocAsync(&pointer, 512, NULL));
	OK(cu.cuMemFreeAsync(pointer, NULL));
	OK(cu.cuStreamSynchronize(NULL));
}

static void pool_free_sync(void)
{
	CUdeviceptr pointer = 0;

	OK(cu.cuMemAllocAsync(&pointer, 1 << 20, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	OK(cu.cuMemFree_v2(pointer));
	pointer = check_alloc(1 << 20);
	NOTE(cu.cuMemFreeAsync(pointer, NULL));
}

static void pool_reuse(void)
{
	CUdeviceptr first = 0, second = 0;
	CUstream stream = NULL;

	OK(cu.cuStreamCreate(&stream, 1));
	OK(cu.cuMemAllocAsync(&first, 1 << 20, stream));
	OK(cu.cuMemFreeAsync(first, stream));
	OK(cu.cuMemAllocAsync(&second, 1 << 20, stream));
	TRUE(first == second);
	OK(cu.cuMemFreeAsync(second, stream));
	OK(cu.cuStreamSynchronize(stream));
	OK(cu.cuStreamDestroy_v2(stream));
}

static void pool_default(void)
{
	CUmemoryPool first = NULL, second = NULL;

	OK(cu.cuDeviceGetDefaultMemPool(&first, 0));
	OK(cu.cuDeviceGetMemPool(&second, 0));
	TRUE(first && first == second);
	IS(1, cu.cuMemPoolDestroy(first));
	IS(101, cu.cuDeviceGetDefaultMemPool(&first, 44));
	NOTE(cu.cuDeviceGetMemPool(&first, 44));
}

static void pool_own(void)
{
	CUmemoryPool pool = pool_make(), found = NULL, other = NULL;
	CUdeviceptr pointer = 0;

	OK(cu.cuDeviceSetMemPool(0, pool));
	OK(cu.cuDeviceGetMemPool(&found, 0));
	TRUE(found == pool);
	OK(cu.cuDeviceGetDefaultMemPool(&other, 0));
	TRUE(other != pool);
	OK(cu.cuMemAllocAsync(&pointer, 1 << 20, NULL));
	TRUE(pool_value(pool, USED) == 1 << 20);
	OK(cu.cuMemFreeAsync(pointer, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	OK(cu.cuDeviceSetMemPool(0, other));
	OK(cu.cuMemPoolDestroy(pool));
}

static void pool_from(void)
{
	CUmemoryPool pool = pool_make();
	CUdeviceptr pointer = 0;

	OK(cu.cuMemAllocFromPoolAsync(&pointer, 1 << 20, pool, NULL));
	OK(cu.cuMemsetD8_v2(pointer, 1, 1 << 20));
	OK(cu.cuMemFreeAsync(pointer, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	OK(cu.cuMemPoolDestroy(pool));
}

static void pool_attributes(void)
{
	CUmemoryPool pool = pool_make();
	uint64_t keep = 1 << 30, zero = 0;
	int follow = 9;

	OK(cu.cuMemPoolGetAttribute(pool, FOLLOW, &follow));
	NOTE(follow);
	follow = 0;
	OK(cu.cuMemPoolSetAttribute(pool, FOLLOW, &follow));
	OK(cu.cuMemPoolGetAttribute(pool, FOLLOW, &follow));
	NOTE(follow);
	NOTE(pool_value(pool, THRESHOLD));
	OK(cu.cuMemPoolSetAttribute(pool, THRESHOLD, &keep));
	NOTE(pool_value(pool, THRESHOLD));
	NOTE(pool_value(pool, USED));
	OK(cu.cuMemPoolSetAttribute(pool, USED_HIGH, &zero));
	NOTE(cu.cuMemPoolSetAttribute(pool, USED, &zero));
	NOTE(cu.cuMemPoolGetAttribute(pool, 99, &zero));
	OK(cu.cuMemPoolDestroy(pool));
}

static void pool_counts(void)
{
	CUmemoryPool pool = pool_make();
	CUdeviceptr first = 0, second = 0;
	uint64_t keep = (uint64_t)1 << 40;

	OK(cu.cuMemPoolSetAttribute(pool, THRESHOLD, &keep));
	OK(cu.cuMemAllocFromPoolAsync(&first, 1 << 20, pool, NULL));
	OK(cu.cuMemAllocFromPoolAsync(&second, 1 << 20, pool, NULL));
	NOTE(pool_value(pool, USED) >> 20);
	TRUE(pool_value(pool, RESERVED) >= 2 << 20);
	OK(cu.cuMemFreeAsync(first, NULL));
	OK(cu.cuMemFreeAsync(second, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	NOTE(pool_value(pool, USED) >> 20);
	NOTE(pool_value(pool, USED_HIGH) >> 20);
	TRUE(pool_value(pool, RESERVED) > 0);
	OK(cu.cuMemPoolTrimTo(pool, 0));
	NOTE(pool_value(pool, RESERVED));
	OK(cu.cuMemPoolDestroy(pool));
}

static void pool_access(void)
{
	CUmemAccessDesc access = {{1, 0}, 3};
	CUmemLocation location = {1, 0};
	CUmemoryPool pool = pool_make();
	int flags = 9;

	OK(cu.cuMemPoolGetAccess(&flags, pool, &location));
	IS(3, flags);
	OK(cu.cuMemPoolSetAccess(pool, &access, 1));
	access.flags = 0;
	NOTE(cu.cuMemPoolSetAccess(pool, &access, 1));
	OK(cu.cuMemPoolDestroy(pool));
}

static void pool_errors(void)
{
	CUmemPoolProps properties = {.alloc_type = 1, .location = {1, 44}};
	CUmemoryPool pool = NULL;

	NOTE(cu.cuMemPoolCreate(&pool, &properties));
	properties.alloc_type = 0;
	properties.location.id = 0;
	NOTE(cu.cuMemPoolCreate(&pool, &properties));
	IS(1, cu.cuMemPoolCreate(NULL, &properties));
	IS(1, cu.cuMemPoolCreate(&pool, NULL));
}

/* What a context has from the device's pool, when the context is no more. */
static void pool_outlives(void)
{
	CUdeviceptr pointer = 0;
	CUmemoryPool pool = NULL;
	CUcontext other = NULL;
	uint32_t word = 0;

	OK(cu.cuDeviceGetMemPool(&pool, 0));
	OK(cu.cuCtxCreate_v2(&other, 0, 0));
	OK(cu.cuMemAllocAsync(&pointer, 64 << 20, NULL));
	OK(cu.cuMemsetD32Async(pointer, 42, 1024, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	NOTE(pool_value(pool, USED) >> 20);
	OK(cu.cuCtxDestroy_v2(other));
	OK(cu.cuCtxSetCurrent(context));
	NOTE(pool_value(pool, USED) >> 20);
	NOTE(cu.cuMemcpyDtoH_v2(&word, pointer, 4));
	NOTE(word);
	NOTE(cu.cuMemFreeAsync(pointer, NULL));
	NOTE(cu.cuCtxSynchronize());
	NOTE(pool_value(pool, USED) >> 20);
}

static CUmemoryPool pool_of(CUdeviceptr pointer)
{
	enum { MEMPOOL_HANDLE = 17 };
	CUmemoryPool pool = NULL;

	OK(cu.cuPointerGetAttribute(&pool, MEMPOOL_HANDLE, pointer));
	return pool;
}

/* Of a device and a pool, and of no context. */
static void pool_pointer(void)
{
	enum { CONTEXT = 1, ORDINAL = 9, MEMPOOL_HANDLE = 17 };
	int attributes[] = {CONTEXT, ORDINAL, MEMPOOL_HANDLE}, ordinal = 9;
	CUmemoryPool pool = pool_make(), device = NULL, found = NULL;
	CUdeviceptr pointers[4] = {0};
	CUcontext of = context;
	void *values[] = {&of, &ordinal, &found};

	OK(cu.cuDeviceGetDefaultMemPool(&device, 0));
	OK(cu.cuMemAllocFromPoolAsync(&pointers[0], 4096, pool, NULL));
	OK(cu.cuMemAllocAsync(&pointers[1], 4096, NULL));
	OK(cu.cuDeviceSetMemPool(0, pool));
	OK(cu.cuMemAllocAsync(&pointers[2], 4096, NULL));
	OK(cu.cuPointerGetAttributes(3, attributes, values, pointers[0] + 8));
	TRUE(!of && ordinal == 0 && found == pool);
	TRUE(pool_of(pointers[1]) == device);
	TRUE(pool_of(pointers[2]) == pool);
	pointers[3] = check_alloc(4096);
	TRUE(!pool_of(pointers[3]));
	OK(cu.cuMemFree_v2(pointers[3]));
	OK(cu.cuMemFreeAsync(pointers[0], NULL));
	OK(cu.cuMemFreeAsync(pointers[2], NULL));
	OK(cu.cuStreamSynchronize(NULL));
	/* The device takes memory from its own again. */
	OK(cu.cuMemPoolDestroy(pool));
	OK(cu.cuMemAllocAsync(&pointers[2], 4096, NULL));
	TRUE(pool_of(pointers[2]) == device);
	OK(cu.cuMemFreeAsync(pointers[1], NULL));
	OK(cu.cuMemFreeAsync(pointers[2], NULL));
	OK(cu.cuStreamSynchronize(NULL));
}

const struct check pool_checks[] = {
	{"memory in the order of a stream", pool_async, false},
	{"none at all", pool_async_zero, true},
	{"more than there is", pool_async_huge, false},
	{"freed out of order", pool_free_sync, true},
	{"what was freed in a stream comes again", pool_reuse, false},
	{"the default one", pool_default, false},
	{"one of our own as the device's", pool_own, false},
	{"memory of one's own", pool_from, false},
	{"attributes", pool_attributes, false},
	{"counts and trimming", pool_counts, false},
	{"access", pool_access, false},
	{"nonsense", pool_errors, false},
	{"what is known of a pointer to its memory", pool_pointer, false},
	{"memory that outlives its context", pool_outlives, true},
	END,
};
