/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Device memory. All of it is counted before the driver is asked, and what it refuses is taken back. What pools keep
 * counts, too.
 */

#include "vcuda/server/arena.h"

#include <pthread.h>
#include <string.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"
#include "vcuda/server/share.h"

/* Mappings of physical memory, which exists as long as it has one. One may take a table of its own. */
enum { MAPPINGS = 65536, TABLE = 4096 };
static struct {
	uint64_t at, bytes, memory;
} mappings[MAPPINGS];
static unsigned mapping_count;

CUresult serve_cuMemGetInfo_v2(struct request *q)
{
	CUresult r = request_words(q, 0);
	size_t free = 0, total = 0;

	if (!r)
		r = driver.cuMemGetInfo_v2(&free, &total);
	if (r)
		return r;
	driver_memory_settle();
	if (quota_left() < free)
		free = quota_left();
	if (quota_limit() < total)
		total = quota_limit();
	request_reply(q, &free, sizeof(free));
	request_reply(q, &total, sizeof(total));
	return CUDA_SUCCESS;
}

static void allocation_forget(struct quota_note *note, uint32_t counts);

bool allocation_take(uint64_t bytes)
{
	driver_memory_settle();
	if (quota_try(bytes))
		return true;
	pool_trim();
	(void)quota_reap();
	(void)driver_memory_count();
	return quota_take(bytes);
}

/* Pieces of up to half a page share pages; what is larger has pages of its own. */
enum { PIECE = 512, PIECE_MAX = DRIVER_MEMORY_PAGE / 2 };

/*
 * The driver gives memory in pieces, and rows that begin with one. Counted by its bytes, what is asked for in small
 * ones would take as much as there is.
 */
static bool allocation_round(uint64_t bytes, uint64_t to, uint64_t *ret)
{
	if (__builtin_add_overflow(bytes, to - 1, ret))
		return false;
	*ret &= ~(to - 1);
	return true;
}

/*
 * Memory that is not of a pool. How much of a page the pieces leave that no other fits into, is known afterwards: of
 * those that are little more than a third of a page, it has two.
 */
bool allocation_take_pages(uint64_t bytes, uint64_t *ret)
{
	if (!allocation_round(bytes, bytes > PIECE_MAX ? DRIVER_MEMORY_PAGE : PIECE, ret) || !allocation_take(*ret))
		return false;
	if (*ret <= PIECE_MAX)
		driver_memory_set_dirty_by(*ret);
	return true;
}

/* What was counted becomes the allocation's, or nobody's. */
static CUresult allocation_end(struct request *q, CUresult r, enum quota_kind kind, uint64_t pointer, uint64_t bytes,
			       uint64_t context)
{
	if (!r && !quota_note(kind, pointer, bytes, context)) {
		(void)driver.cuMemFree_v2(pointer);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r) {
		quota_give(bytes);
		return r;
	}
	request_reply(q, &pointer, sizeof(pointer));
	return CUDA_SUCCESS;
}

/* Near the limit, the page that a piece has begun may be more than was left. */
static CUresult allocation_end_pages(struct request *q, CUresult r, uint64_t pointer, uint64_t bytes)
{
	if (!r && bytes <= PIECE_MAX && quota_left() < DRIVER_MEMORY_PAGE && !driver_memory_fits()) {
		(void)driver.cuMemFree_v2(pointer);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return allocation_end(q, r, QUOTA_POINTER, pointer, bytes, q->header.context);
}

CUresult serve_cuMemAlloc_v2(struct request *q)
{
	CUresult r = request_words(q, 1);
	CUdeviceptr pointer = 0;
	uint64_t bytes;
	DRIVER_MEMORY_HOLD;

	if (r)
		return r;
	if (!allocation_take_pages(q->argument[0], &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = driver.cuMemAlloc_v2(&pointer, q->argument[0]);
	return allocation_end_pages(q, r, pointer, bytes);
}

CUresult serve_cuMemAllocPitch_v2(struct request *q)
{
	enum { PITCH_MAX = 4096 }; /* what the driver may round a row up by */
	CUresult r = request_words(q, 3);
	const uint64_t width = q->argument[0], height = q->argument[1];
	CUdeviceptr pointer = 0;
	uint64_t bytes, more;
	size_t pitch = 0;
	DRIVER_MEMORY_HOLD;

	if (r)
		return r;
	if (__builtin_add_overflow(width, PITCH_MAX, &more) || __builtin_mul_overflow(more, height, &more) ||
	    !allocation_round(width, PIECE, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!allocation_take_pages(bytes * height, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = driver.cuMemAllocPitch_v2(&pointer, &pitch, width, height, (unsigned)q->argument[2]);
	/* Some other pitch is known only now. */
	if (!r && pitch * height > bytes) {
		if (quota_take(pitch * height - bytes)) {
			bytes = pitch * height;
		} else {
			(void)driver.cuMemFree_v2(pointer);
			r = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	r = allocation_end_pages(q, r, pointer, bytes);
	if (!r)
		request_reply(q, &pitch, sizeof(pitch));
	return r;
}

CUresult serve_cuMemFree_v2(struct request *q)
{
	CUresult r = request_words(q, 1);
	struct share_held *shared;
	struct quota_note *note;
	uint32_t counts;

	if (r)
		return r;
	shared = share_held_begin_end(SHARE_MEMORY, q->argument[0]);
	note = quota_take_note(QUOTA_POINTER, q->argument[0]);
	lane_leave(q);
	counts = driver_memory_counts();
	r = driver.cuMemFree_v2(q->argument[0]);
	if (r) {
		quota_put_note(note);
		share_held_show(shared);
		return r;
	}
	share_held_end_freed(shared);
	allocation_forget(note, counts);
	return CUDA_SUCCESS;
}

/* ---- pools ---- */

static _Atomic bool allocation_freed_in_streams;

bool allocation_was_freed_in_streams(void)
{
	return allocation_freed_in_streams;
}

/*
 * What was freed to a pool counts as the pool's before it counts as nobody's. A page that others share is not free.
 * Where the driver was asked meanwhile how much there is, it may have been free for it, and counted still.
 */
static void allocation_forget(struct quota_note *note, uint32_t counts)
{
	const uint64_t bytes = quota_note_bytes(note);
	DRIVER_MEMORY_HOLD;

	pool_settle();
	if (bytes <= PIECE_MAX)
		driver_memory_set_dirty_by(bytes);
	quota_end_note(note);
	if (counts != driver_memory_counts())
		driver_memory_set_dirty();
}

/* It is of the device that the stream is of, whichever is current. */
static bool allocation_add_pools(uint64_t pool)
{
	bool added = true;

	if (pool || !driver.cuDeviceGetMemPool)
		return !pool || pool_add(pool);
	for (uint32_t i = 0; i < server.start.gpu_count && added; i++)
		added = driver.cuDeviceGetMemPool(&pool, server.gpu[i]) || pool_add(pool);
	return added;
}

/*
 * Memory that a captured call allocates is allocated at each run of the graph, and the server does not see it freed: a
 * captured call that frees it does so within the run. So it counts until the process ends.
 */
static bool allocation_is_captured(CUstream stream)
{
	CUstreamCaptureStatus status = 0;

	return driver.cuStreamIsCapturing && !driver.cuStreamIsCapturing(stream, &status) && status;
}

/*
 * Counts what is to come from a pool. Memory that was freed on the same stream may be what the driver gives, and that
 * is counted already. Return: whether the driver may be asked; how much was counted for it.
 */
static bool allocation_take_from_pool(uint64_t bytes, bool captured, uint64_t *ret)
{
	uint64_t again, cached;

	*ret = bytes;
	driver_memory_settle();
	if (quota_try(bytes))
		return true;
	pool_trim();
	(void)quota_reap();
	(void)driver_memory_count();
	cached = captured ? 0 : pool_cached();
	again = bytes < cached ? bytes : cached;
	*ret = bytes - again;
	return quota_take(*ret);
}

/* What the driver has given from a pool. Return: whether that is not too much. */
static bool allocation_fits(void)
{
	pool_settle();
	if (!quota_is_exceeded())
		return true;
	pool_trim();
	return !quota_is_exceeded();
}

static CUresult allocation_from_pool(struct request *q, uint64_t pool, CUstream stream)
{
	const bool captured = allocation_is_captured(stream);
	uint64_t bytes, counted;
	CUdeviceptr pointer = 0;
	CUresult r;

	if (!allocation_round(q->argument[0], PIECE, &bytes) || !allocation_add_pools(pool) ||
	    !allocation_take_from_pool(bytes, captured, &counted))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = pool ? driver.cuMemAllocFromPoolAsync(&pointer, q->argument[0], pool, stream)
		 : driver.cuMemAllocAsync(&pointer, q->argument[0], stream);
	if (r) {
		quota_give(counted);
		return r;
	}
	quota_count(bytes - counted);
	if (!captured && !allocation_fits()) {
		(void)driver.cuMemFree_v2(pointer);
		pool_trim();
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* It is the device's, and outlives the context. */
	r = allocation_end(q, r, captured ? QUOTA_GRAPH : QUOTA_POINTER, pointer, bytes, 0);
	if (!r)
		request_reply(q, &(uint64_t){captured}, sizeof(uint64_t));
	return r;
}

/* Of a device, which the driver refuses to destroy. */
static bool allocation_is_default_pool(uint64_t pool)
{
	uint64_t own = 0;

	for (uint32_t i = 0; i < server.start.gpu_count; i++)
		if (!driver.cuDeviceGetDefaultMemPool || driver.cuDeviceGetDefaultMemPool(&own, server.gpu[i]) ||
		    own == pool)
			return true;
	return false;
}

/* No device takes memory from it any more. */
static void allocation_leave_pool(uint64_t pool)
{
	uint64_t current = 0, own = 0;

	for (uint32_t i = 0; i < server.start.gpu_count; i++)
		if (driver.cuDeviceGetMemPool && driver.cuDeviceSetMemPool &&
		    !driver.cuDeviceGetMemPool(&current, server.gpu[i]) && current == pool &&
		    !driver.cuDeviceGetDefaultMemPool(&own, server.gpu[i]))
			(void)driver.cuDeviceSetMemPool(server.gpu[i], own);
}

/* Return: whether it is ended once nothing of it is in use any more. */
static bool allocation_keep_pool(uint64_t pool)
{
	if (allocation_is_default_pool(pool))
		return false;
	allocation_leave_pool(pool);
	return true;
}

static CUresult allocation_end_pool(uint64_t pool)
{
	return pool_end(pool, allocation_keep_pool);
}

CUresult serve_cuMemPoolDestroy(struct request *q)
{
	CUresult r = driver.cuMemPoolDestroy ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;

	return r ? r : request_end(q, 0, WIRE_POOL, allocation_end_pool);
}

CUresult serve_cuMemAllocAsync(struct request *q)
{
	CUresult r = driver.cuMemAllocAsync ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	CUstream stream = 0;
	DRIVER_MEMORY_HOLD;

	if (!r)
		r = request_stream(q, 1, &stream);
	return r ? r : allocation_from_pool(q, 0, stream);
}

CUresult serve_cuMemAllocFromPoolAsync(struct request *q)
{
	CUresult r = driver.cuMemAllocFromPoolAsync ? request_words(q, 3) : CUDA_ERROR_NOT_SUPPORTED;
	uint64_t pool = 0;
	CUstream stream = 0;
	DRIVER_MEMORY_HOLD;

	if (!r)
		r = request_handle(q, 1, WIRE_POOL, &pool);
	if (!r)
		r = request_stream(q, 2, &stream);
	return r ? r : allocation_from_pool(q, pool, stream);
}

CUresult serve_cuMemFreeAsync(struct request *q)
{
	CUresult r = driver.cuMemFreeAsync ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	CUstream stream = 0;
	bool captured;
	DRIVER_MEMORY_HOLD;

	if (!r)
		r = request_stream(q, 1, &stream);
	captured = !r && allocation_is_captured(stream);
	if (!r)
		r = driver.cuMemFreeAsync(q->argument[0], stream);
	allocation_freed_in_streams = true;
	if (r || captured)
		return r;
	share_held_end_key(SHARE_MEMORY, q->argument[0]);
	allocation_forget(quota_take_note(QUOTA_POINTER, q->argument[0]), driver_memory_counts());
	return CUDA_SUCCESS;
}

CUresult serve_cuMemPoolSetAttribute(struct request *q)
{
	CUresult r = driver.cuMemPoolSetAttribute ? request_words(q, 3) : CUDA_ERROR_NOT_SUPPORTED;
	uint64_t pool = 0;

	if (!r)
		r = request_handle(q, 0, WIRE_POOL, &pool);
	return r ? r : driver.cuMemPoolSetAttribute(pool, (CUmemPool_attribute)q->argument[1], &q->argument[2]);
}

CUresult serve_cuMemPoolGetAttribute(struct request *q)
{
	CUresult r = driver.cuMemPoolGetAttribute ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	uint64_t pool = 0, value = 0;

	if (!r)
		r = request_handle(q, 0, WIRE_POOL, &pool);
	if (!r)
		r = driver.cuMemPoolGetAttribute(pool, (CUmemPool_attribute)q->argument[1], &value);
	request_reply(q, &value, sizeof(value));
	return r;
}

/* ---- physical memory and its mappings ---- */

/* The driver does not look at which device is meant. */
CUresult serve_cuMemGetAllocationGranularity(struct request *q)
{
	CUresult r = driver.cuMemGetAllocationGranularity ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	CUmemAllocationProp properties = {0};
	size_t bytes = 0;

	if (!r)
		r = request_struct(q, 0, &properties, sizeof(properties));
	if (!r && (unsigned)properties.location.id >= server.start.gpu_count)
		properties.location.id = 0;
	/* Of the host's memory there is none, but NCCL goes on only where the question alone is answered. */
	if (!r && !request_is_host(&properties.location))
		r = request_check_properties(&properties);
	properties.win32HandleMetaData = NULL;
	if (!r)
		r = driver.cuMemGetAllocationGranularity(&bytes, &properties,
							 (CUmemAllocationGranularity_flags)q->argument[1]);
	if (!r)
		request_reply(q, &bytes, sizeof(bytes));
	return r;
}

/* What is counted for it is taken back when neither handles nor mappings hold it. */
static void allocation_let_go(uint64_t real)
{
	if (quota_hold(QUOTA_PHYSICAL, real, -1))
		share_held_end_key(SHARE_PHYSICAL, real);
}

CUresult allocation_hold(struct request *q, uint64_t real)
{
	const uint64_t handle = handle_give(WIRE_MEMORY, real, 0, 0);

	if (!handle) {
		(void)driver.cuMemRelease(real);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	handle_hold(handle);
	(void)quota_hold(QUOTA_PHYSICAL, real, 1);
	request_reply(q, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

CUresult serve_cuMemCreate(struct request *q)
{
	CUresult r = driver.cuMemCreate ? request_words(q, 3) : CUDA_ERROR_NOT_SUPPORTED;
	const uint64_t bytes = q->argument[0];
	CUmemGenericAllocationHandle real = 0;
	CUmemAllocationProp properties = {0};
	DRIVER_MEMORY_HOLD;

	if (!r)
		r = request_struct(q, 1, &properties, sizeof(properties));
	if (!r)
		r = request_check_properties(&properties);
	if (r)
		return r;
	if (!allocation_take(bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = driver.cuMemCreate(&real, bytes, &properties, q->argument[2]);
	if (!r && !quota_note(QUOTA_PHYSICAL, real, bytes, 0)) {
		(void)driver.cuMemRelease(real);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r) {
		quota_give(bytes);
		return r;
	}
	r = allocation_hold(q, real);
	(void)quota_forget(QUOTA_PHYSICAL, real);
	return r;
}

static bool allocation_is_mapped(CUdeviceptr at)
{
	for (unsigned i = 0; i < mapping_count; i++)
		if (at >= mappings[i].at && at - mappings[i].at < mappings[i].bytes)
			return true;
	return false;
}

/* Of what the client has mapped: a pool's own, or others', would be held without being counted. */
CUresult serve_cuMemRetainAllocationHandle(struct request *q)
{
	CUresult r = driver.cuMemRetainAllocationHandle ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;
	CUmemGenericAllocationHandle real = 0;

	if (!r && !allocation_is_mapped(q->argument[0]))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = driver.cuMemRetainAllocationHandle(&real, (void *)q->argument[0]);
	return r ? r : allocation_hold(q, real);
}

CUresult serve_cuMemRelease(struct request *q)
{
	CUresult r = driver.cuMemRelease ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;
	uint64_t real = 0;
	DRIVER_MEMORY_HOLD;

	if (!r)
		r = request_handle(q, 0, WIRE_MEMORY, &real);
	if (!r)
		r = driver.cuMemRelease(real);
	if (r)
		return r;
	(void)handle_let_go(q->argument[0]);
	allocation_let_go(real);
	return CUDA_SUCCESS;
}

CUresult serve_cuMemMap(struct request *q)
{
	CUresult r = driver.cuMemMap ? request_words(q, 5) : CUDA_ERROR_NOT_SUPPORTED;
	uint64_t real = 0;

	if (!r)
		r = request_handle(q, 3, WIRE_MEMORY, &real);
	if (!r && mapping_count == MAPPINGS)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r)
		r = driver.cuMemMap(q->argument[0], q->argument[1], q->argument[2], real, q->argument[4]);
	if (r)
		return r;
	mappings[mapping_count].at = q->argument[0];
	mappings[mapping_count].bytes = q->argument[1];
	mappings[mapping_count].memory = real;
	mapping_count++;
	(void)quota_hold(QUOTA_PHYSICAL, real, 1);
	driver_memory_set_dirty_by(TABLE);
	return CUDA_SUCCESS;
}

CUresult serve_cuMemUnmap(struct request *q)
{
	CUresult r = driver.cuMemUnmap ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	DRIVER_MEMORY_HOLD;

	if (!r)
		r = driver.cuMemUnmap(q->argument[0], q->argument[1]);
	for (unsigned i = mapping_count; i > 0 && !r; i--) {
		const uint64_t offset = mappings[i - 1].at - q->argument[0];

		if (offset >= q->argument[1] || mappings[i - 1].bytes > q->argument[1] - offset)
			continue;
		allocation_let_go(mappings[i - 1].memory);
		mappings[i - 1] = mappings[--mapping_count];
	}
	return r;
}

CUresult serve_cuMemSetAccess(struct request *q)
{
	CUmemAccessDesc access[START_GPUS];
	CUresult r = driver.cuMemSetAccess ? request_words(q, 3) : CUDA_ERROR_NOT_SUPPORTED;
	const uint64_t count = q->argument[2];

	if (r || count == 0 || count > START_GPUS || q->header.bytes < 24 + count * sizeof(*access))
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	memcpy(access, &q->argument[3], count * sizeof(*access));
	for (uint64_t i = 0; i < count && !r; i++)
		r = request_check_location(&access[i].location);
	return r ? r : driver.cuMemSetAccess(q->argument[0], q->argument[1], access, count);
}

CUresult serve_cuMemPoolSetAccess(struct request *q)
{
	CUmemAccessDesc access[START_GPUS];
	CUresult r = driver.cuMemPoolSetAccess ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	const uint64_t count = q->argument[1];
	uint64_t pool = 0;

	if (!r)
		r = request_handle(q, 0, WIRE_POOL, &pool);
	if (r || count == 0 || count > START_GPUS || q->header.bytes < 16 + count * sizeof(*access))
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	memcpy(access, &q->argument[2], count * sizeof(*access));
	for (uint64_t i = 0; i < count && !r; i++)
		r = request_check_location(&access[i].location);
	return r ? r : driver.cuMemPoolSetAccess(pool, access, count);
}

CUresult serve_cuPointerSetAttribute(struct request *q)
{
	enum { SYNC_MEMOPS = 6 };
	CUresult r = driver.cuPointerSetAttribute ? request_words(q, 3) : CUDA_ERROR_NOT_SUPPORTED;

	if (r || q->argument[0] != SYNC_MEMOPS)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	return driver.cuPointerSetAttribute(&q->argument[2], SYNC_MEMOPS, q->argument[1]);
}

/* Operations on words: their addresses are the GPU's to judge. */
static CUresult allocation_operate(struct request *q,
				   CUresult (*operate)(CUstream stream, unsigned count,
						       CUstreamBatchMemOpParams *operations, unsigned flags))
{
	enum { OPERATIONS = 256, OPERATION_LAST = 6 };
	CUstreamBatchMemOpParams operations[OPERATIONS];
	CUresult r = operate ? request_words(q, 3) : CUDA_ERROR_NOT_SUPPORTED;
	const uint64_t count = q->argument[1];
	CUstream stream = 0;

	if (!r)
		r = request_stream(q, 0, &stream);
	if (r || count == 0 || count > OPERATIONS || q->header.bytes < 24 + count * sizeof(*operations))
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	memcpy(operations, &q->argument[3], count * sizeof(*operations));
	for (uint64_t i = 0; i < count; i++)
		if (operations[i].operation < 1 || operations[i].operation > OPERATION_LAST)
			return CUDA_ERROR_INVALID_VALUE;
	return operate(stream, (unsigned)count, operations, (unsigned)q->argument[2]);
}

CUresult serve_cuStreamBatchMemOp(struct request *q)
{
	return allocation_operate(q, driver.cuStreamBatchMemOp);
}

CUresult serve_cuStreamBatchMemOp_v2(struct request *q)
{
	return allocation_operate(q, driver.cuStreamBatchMemOp_v2);
}
