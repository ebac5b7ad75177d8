/* SPDX-License-Identifier: Apache-2.0 */

/* Contexts, and waiting for what they do. */

#include <stdlib.h>
#include <sys/mman.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/code.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"
#include "vcuda/server/share.h"

/* ---- fences ---- */

/*
 * Asking the driver whether a stream is done takes half a microsecond, and thrice that when it is. So where it is not,
 * the GPU is told to write a number into memory of ours behind all that the stream has to do, and that memory is looked
 * at. The driver is still asked now and then: after a failure, no number is written.
 */

enum {
	FENCE_LOOKS = 256, /* at the memory, for one question to the driver */
	FENCE_BYTES = WIRE_SLOTS * sizeof(uint32_t),
};

/* What a thread of the client waits for; each waits for one thing at a time, so its slot names it. */
struct fence {
	uint64_t stream, context;
	uint64_t handle;           /* of the stream; 0: a null stream has none */
	uint64_t request;          /* the number of the one that waits */
	_Atomic uint32_t *numbers; /* where it is written, once it is */
	uint32_t number;
	unsigned looks;
	bool written;
};

static struct fence marks[WIRE_SLOTS];

/* A context's, registered in it. The client's kernels can write wherever this is, so nothing else is in its pages. */
struct fence_page {
	struct fence_page *next;
	uint64_t context;
	_Atomic uint32_t *numbers;
	CUdeviceptr address;
};

static struct fence_page *fence_pages;
static bool fence_cannot;

/* A context is about to end: nobody waits in it any more. Return: what is to be freed when it has. */
static struct fence_page *fence_take_context(uint64_t context)
{
	struct fence_page **at = &fence_pages, *page;

	while (*at && (*at)->context != context)
		at = &(*at)->next;
	page = *at;
	if (page)
		*at = page->next;
	return page;
}

static void fence_free(struct fence_page *page)
{
	if (!page)
		return;
	(void)munmap(page->numbers, FENCE_BYTES);
	free(page);
}

static bool fence_register(struct fence_page *page)
{
	return arena_register_in(page->context, page->numbers, FENCE_BYTES) &&
	       driver.cuMemHostGetDevicePointer_v2(&page->address, page->numbers, 0) == CUDA_SUCCESS;
}

/* When it is needed. Return: NULL if there is none. */
static struct fence_page *fence_make_page(uint64_t context)
{
	struct fence_page *page = calloc(1, sizeof(*page));
	void *memory = mmap(NULL, FENCE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!page || memory == MAP_FAILED) {
		free(page);
		return NULL;
	}
	page->context = context;
	page->numbers = memory;
	page->next = fence_pages;
	fence_pages = page;
	fence_cannot = !fence_register(page);
	return page;
}

static struct fence_page *fence_page_of(uint64_t context)
{
	struct fence_page *page = fence_pages;

	fence_cannot = fence_cannot || !driver.cuStreamWriteValue32_v2 || !driver.cuMemHostGetDevicePointer_v2;
	while (page && page->context != context)
		page = page->next;
	if (!page && !fence_cannot)
		page = fence_make_page(context);
	return fence_cannot ? NULL : page;
}

static bool fence_write(uint64_t slot)
{
	struct fence *mark = &marks[slot];
	struct fence_page *page = server.wait_spin == 0 ? NULL : fence_page_of(mark->context);

	if (!page)
		return false;
	mark->number++;
	mark->numbers = page->numbers;
	return driver.cuStreamWriteValue32_v2(mark->stream, page->address + slot * sizeof(page->numbers[0]),
					      mark->number, 0) == CUDA_SUCCESS;
}

/* Return: what cuStreamQuery() would. */
static CUresult fence_query(uint64_t slot)
{
	struct fence *mark = &marks[slot];
	const bool first = mark->looks++ == 0;
	CUresult r;

	if (mark->written && mark->numbers[slot] == mark->number)
		return CUDA_SUCCESS;
	if (mark->written && mark->looks % FENCE_LOOKS != 0)
		return CUDA_ERROR_NOT_READY;
	r = driver.cuStreamQuery(mark->stream);
	if (r == CUDA_ERROR_NOT_READY && first)
		mark->written = fence_write(slot);
	return r;
}

/* Return: what the thread waits for. */
static const struct fence *fence_of(uint64_t slot)
{
	return &marks[slot];
}

/* A thread begins to wait for a stream of a context; @handle: the stream's, or 0. Return: its slot. */
static uint64_t fence_begin(const struct request *q, CUstream stream, uint64_t handle, uint64_t context)
{
	struct fence *mark = &marks[q->header.thread];

	mark->stream = stream;
	mark->handle = handle;
	mark->context = context;
	mark->request = q->number;
	mark->looks = 0;
	mark->written = false;
	return q->header.thread;
}

/* ---- contexts ---- */

/* The client's handles of primary contexts. While the driver makes or ends one, no other thread has it do either. */
enum { PRIMARY_CHANGES = 1 /* no handle */ };
static _Atomic uint64_t primary[START_GPUS];

/* Work of streams that were destroyed: an event behind the last of each. */
enum { ORPHANS = 4096 };
static struct {
	uint64_t event, context;
} orphans[ORPHANS];
static unsigned orphan_count;

static void contexts_end_orphan(unsigned place)
{
	(void)driver.cuEventDestroy_v2(orphans[place].event);
	orphans[place] = orphans[--orphan_count];
}

/* Return: CUDA_SUCCESS if all that was left behind in the context is done. */
static CUresult contexts_query_orphans(uint64_t context)
{
	CUresult r = CUDA_SUCCESS;

	for (unsigned i = orphan_count; i > 0 && !r; i--) {
		if (orphans[i - 1].context != context)
			continue;
		r = driver.cuEventQuery(orphans[i - 1].event);
		if (r != CUDA_ERROR_NOT_READY)
			contexts_end_orphan(i - 1);
	}
	return r;
}

static void contexts_forget_orphans(uint64_t context)
{
	for (unsigned i = orphan_count; i > 0; i--)
		if (orphans[i - 1].context == context)
			orphans[i - 1] = orphans[--orphan_count];
}

/* What a context leaves behind, until it has ended. */
struct remains {
	struct staging *staging;
	struct fence_page *fence;
};

/* Before a context ends: no lane begins anything in it any more, and the lead's data of it are dropped. */
static struct remains contexts_begin_end(uint64_t handle)
{
	handle_hide(handle);
	contexts_forget_orphans(handle);
	lane_forget_context();
	turn_forget_context(handle);
	texture_forget_context(handle);
	return (struct remains){staging_take_context(handle), fence_take_context(handle)};
}

static void contexts_forget(uint64_t handle, struct remains remains)
{
	linker_forget_context(handle);
	arena_forget_context(handle);
	registration_forget_context(handle);
	staging_free(remains.staging);
	fence_free(remains.fence);
	share_held_end_context(handle);
	bound_forget(handle);
	quota_forget_context(handle);
	driver_memory_set_dirty();
	handle_drop(handle);
	lane_forget_context();
}

/* Others go on, but those who wait or work in the context are awaited. */
static struct remains contexts_await(struct request *q, uint64_t handle, struct object_ref context)
{
	const struct remains remains = contexts_begin_end(handle);

	lane_leave(q);
	object_ref_await(context);
	return remains;
}

static void contexts_end(uint64_t handle, struct object_ref context, struct remains remains)
{
	struct wire_failed *failed = &server.wire->failed[wire_failed_of(handle)];
	uint64_t own = handle;

	contexts_forget(handle, remains);
	(void)atomic_compare_exchange_strong(&failed->context, &own, 0);
	object_ref_forget(context);
}

/* The lead's own. From then on a device's number is in use, though there is no handle yet. */
static bool contexts_begun;

bool contexts_have_begun(void)
{
	return contexts_begun;
}

/* What contexts of each GPU have taken at least. One that would be too large is not tried again and again. */
static uint64_t contexts_costs[START_GPUS];

static uint64_t contexts_expect(uint64_t gpu)
{
	const uint64_t cost = contexts_costs[gpu % START_GPUS];

	return cost > server.start.context_bytes ? cost : server.start.context_bytes;
}

static void contexts_learn(uint64_t handle, uint64_t gpu)
{
	uint64_t *cost = &contexts_costs[gpu % START_GPUS];
	const uint64_t bytes = quota_noted(QUOTA_STACKS, handle) + quota_noted(QUOTA_CONTEXT, handle);

	if (*cost == 0 || bytes < *cost)
		*cost = bytes;
}

/*
 * What the driver has taken for a context, which is current, is known now, and stands beside what was expected.
 * Stacks are a part of it. Where the driver does not say, they are all of it that is known. Return: whether it fits.
 */
static bool contexts_count(uint64_t handle, uint64_t gpu, uint64_t expected)
{
	const uint64_t stack = quota_is_limited() ? context_limits_ask_stack() : 0,
		       stacks = context_limits_of_stacks(stack);
	const uint64_t among = stacks < expected ? stacks : expected;
	bool fits;

	code_load_libraries();
	DRIVER_MEMORY_HOLD;
	(void)quota_note(QUOTA_STACKS, handle, among, handle);
	(void)quota_note(QUOTA_CONTEXT, handle, expected - among, handle);
	driver_memory_add_context();
	fits = driver_memory_fits();
	if (!driver_memory_is_known())
		return !context_limits_take_stacks(stack, handle);
	driver_memory_note(QUOTA_STACKS, handle, stacks - among, handle);
	driver_memory_note(QUOTA_CONTEXT, handle, UINT64_MAX, handle);
	contexts_learn(handle, gpu);
	return fits;
}

/*
 * What was expected is counted. Until the context is, other threads of the client find no handle of it, which they
 * could guess: nothing of theirs is in a context that is ended again. Return: CUDA_SUCCESS; whatever else, and the
 * context is to be ended.
 */
static CUresult contexts_make(CUcontext real, uint64_t gpu, uint64_t expected, uint64_t *ret)
{
	const uint64_t handle = handle_make_hidden(WIRE_CONTEXT, real);

	if (!handle || !turn_add_context(handle, server.granted[gpu])) {
		handle_drop(handle);
		quota_give(expected);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	(void)driver.cuCtxSetCurrent(real);
	lane_forget_context();
	if (!contexts_count(handle, gpu, expected)) {
		turn_forget_context(handle);
		contexts_forget(handle, (struct remains){NULL, NULL});
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = handle;
	return CUDA_SUCCESS;
}

/* What other threads loaded while the context, which is current, was not found, is not in it. One may end it by now. */
static void contexts_load_again(uint64_t handle)
{
	struct object_ref hold;

	if (!quota_is_limited() || !handle_take(handle, &hold))
		return;
	code_load_libraries();
	driver_memory_set_dirty();
	object_ref_let_go(hold);
}

/* A lane that was told of the handle before has no context for it. */
static void contexts_reply(struct request *q, uint64_t handle)
{
	handle_show(handle);
	contexts_load_again(handle);
	lane_forget_context();
	request_reply(q, &handle, sizeof(handle));
}

CUresult serve_cuDevicePrimaryCtxRetain(struct request *q)
{
	CUresult r = request_words(q, 1);
	const uint64_t expected = contexts_expect(q->argument[0]);
	CUcontext real = 0;
	uint64_t handle = 0;
	CUdevice device;

	if (!r)
		r = request_device(q, 0, &device);
	if (r)
		return r;
	if (primary[q->argument[0]])
		return CUDA_ERROR_INVALID_VALUE;
	if (!allocation_take(expected))
		return CUDA_ERROR_OUT_OF_MEMORY;
	primary[q->argument[0]] = PRIMARY_CHANGES;
	contexts_begun = true;
	lane_leave(q);
	r = driver.cuDevicePrimaryCtxRetain(&real, device);
	if (r) {
		quota_give(expected);
		primary[q->argument[0]] = 0;
		return r;
	}
	quota_use_gpu(server.granted[q->argument[0]]);
	r = contexts_make(real, q->argument[0], expected, &handle);
	if (r)
		(void)driver.cuDevicePrimaryCtxRelease_v2(device);
	/* Before it is found: it is not to be destroyed as others are. */
	primary[q->argument[0]] = handle;
	if (!r)
		contexts_reply(q, handle);
	return r;
}

static CUresult contexts_end_primary(struct request *q, CUresult (*end)(CUdevice))
{
	CUresult r = request_words(q, 1);
	struct object_ref context = {WIRE_CONTEXT, 0};
	struct remains remains;
	uint64_t handle;
	CUdevice device;

	if (!r)
		r = request_device(q, 0, &device);
	if (r)
		return r;
	handle = primary[q->argument[0]];
	if (!handle)
		return end(device);
	/* A handle that is not found yet is of a context that another thread still makes. */
	if (handle == PRIMARY_CHANGES || !handle_look(handle, WIRE_CONTEXT, &context.real))
		return CUDA_ERROR_INVALID_CONTEXT;
	primary[q->argument[0]] = PRIMARY_CHANGES;
	remains = contexts_await(q, handle, context);
	r = end(device);
	contexts_end(handle, context, remains);
	primary[q->argument[0]] = 0;
	return r;
}

/* After a reset there is nothing to release. */
CUresult serve_cuDevicePrimaryCtxRelease_v2(struct request *q)
{
	if (q->argument[0] < START_GPUS && !primary[q->argument[0]])
		return request_words(q, 1);
	return contexts_end_primary(q, driver.cuDevicePrimaryCtxRelease_v2);
}

/* After it, nothing is held: what this process had retained is released, too, so that a later one begins anew. */
CUresult serve_cuDevicePrimaryCtxReset_v2(struct request *q)
{
	const bool was = q->argument[0] < START_GPUS && primary[q->argument[0]];
	CUresult r = contexts_end_primary(q, driver.cuDevicePrimaryCtxReset_v2);

	if (!r && was)
		(void)driver.cuDevicePrimaryCtxRelease_v2(server.gpu[q->argument[0]]);
	return r;
}

CUresult serve_cuDevicePrimaryCtxSetFlags_v2(struct request *q)
{
	CUresult r = request_words(q, 2);
	CUdevice device;

	if (!r)
		r = request_device(q, 0, &device);
	return r ? r : driver.cuDevicePrimaryCtxSetFlags_v2(device, (unsigned)q->argument[1]);
}

CUresult serve_cuCtxCreate_v2(struct request *q)
{
	CUresult r = request_words(q, 2);
	const uint64_t expected = contexts_expect(q->argument[1]);
	CUcontext real = 0, popped = 0;
	uint64_t handle = 0;
	CUdevice device;

	if (!r)
		r = request_device(q, 1, &device);
	if (r)
		return r;
	if (!allocation_take(expected))
		return CUDA_ERROR_OUT_OF_MEMORY;
	contexts_begun = true;
	lane_leave(q);
	r = driver.cuCtxCreate_v2(&real, (unsigned)q->argument[0], device);
	if (r) {
		quota_give(expected);
		return r;
	}
	(void)driver.cuCtxPopCurrent_v2(&popped);
	quota_use_gpu(server.granted[q->argument[1]]);
	r = contexts_make(real, q->argument[1], expected, &handle);
	if (r)
		(void)driver.cuCtxDestroy_v2(real);
	else
		contexts_reply(q, handle);
	return r;
}

CUresult serve_cuCtxDestroy_v2(struct request *q)
{
	CUresult r = request_words(q, 1);
	struct object_ref context = {WIRE_CONTEXT, 0};
	struct remains remains;

	if (!r)
		r = request_handle(q, 0, WIRE_CONTEXT, &context.real);
	for (int i = 0; i < START_GPUS && !r; i++)
		if (primary[i] == q->argument[0])
			r = CUDA_ERROR_INVALID_CONTEXT;
	if (r)
		return r;
	remains = contexts_await(q, q->argument[0], context);
	r = driver.cuCtxDestroy_v2(context.real);
	contexts_end(q->argument[0], context, remains);
	return r;
}

CUresult serve_cuThreadExchangeStreamCaptureMode(struct request *q)
{
	CUresult r = request_words(q, 1);
	CUstreamCaptureMode mode = (CUstreamCaptureMode)q->argument[0];
	uint64_t word;

	if (!r)
		r = driver.cuThreadExchangeStreamCaptureMode(&mode);
	word = (uint64_t)mode;
	request_reply(q, &word, sizeof(word));
	return r;
}

/* ---- waiting ---- */

/* What a destroyed stream has still to do, cuCtxSynchronize() waits for, too. */
static void contexts_leave_behind(CUstream stream, uint64_t context)
{
	enum { EVENT_WITHOUT_TIME = 2 };
	CUcontext real = 0, popped;
	uint64_t event = 0;

	if (orphan_count == ORPHANS)
		(void)contexts_query_orphans(context);
	/* With so many it is better to wait. */
	if (orphan_count == ORPHANS) {
		(void)driver.cuStreamSynchronize(stream);
		return;
	}
	/* It may be another than the thread's. */
	if (!handle_look(context, WIRE_CONTEXT, &real) || driver.cuCtxPushCurrent_v2(real))
		return;
	if (!driver.cuEventCreate(&event, EVENT_WITHOUT_TIME)) {
		if (driver.cuEventRecord(event, stream)) {
			(void)driver.cuEventDestroy_v2(event);
		} else {
			orphans[orphan_count].event = event;
			orphans[orphan_count++].context = context;
		}
	}
	(void)driver.cuCtxPopCurrent_v2(&popped);
}

CUresult serve_cuStreamDestroy_v2(struct request *q)
{
	CUresult r = request_words(q, 1);
	CUstream stream = 0;

	if (!r)
		r = request_handle(q, 0, WIRE_STREAM, &stream);
	/* A capture ends when a stream of it is asked, though not when one that has come back to it is destroyed. */
	if (!r && staging_check_capture(stream))
		handle_drop_captures();
	else if (!r && driver.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
		contexts_leave_behind(stream, handle_context(q->argument[0]));
	return r ? r : request_end(q, 0, WIRE_STREAM, driver.cuStreamDestroy_v2);
}

/* After it, pools may keep less. */
static CUresult contexts_wait(CUresult (*wait)(uint64_t), uint64_t object)
{
	const CUresult r = wait(object);

	if (allocation_was_freed_in_streams())
		pool_settle();
	return r;
}

/*
 * Memory that was freed in a stream returns to its pool, and the output of kernels arrives, only after a wait in the
 * driver; a query is not enough. The same holds where kernels failed.
 */
static CUresult contexts_end_wait(CUresult r, CUresult (*wait)(uint64_t), uint64_t object)
{
	const bool waits = r ? print_is_possible() : allocation_was_freed_in_streams() || print_is_possible();

	if (r == CUDA_ERROR_NOT_READY || !waits)
		return r;
	if (r)
		(void)wait(object);
	return r ? r : contexts_wait(wait, object);
}

/* Which request heard that the null stream of a context is done: there is nothing to ask for the next one. */
static struct {
	uint64_t context, request;
} contexts_done;

/*
 * Return: what cuStreamQuery() would. The null stream has two names. Who waits over and over asks every other time:
 * work elsewhere may fail meanwhile.
 */
static CUresult contexts_ask(uint64_t slot)
{
	const struct fence *mark = fence_of(slot);
	const bool null = mark->context && (mark->stream == WIRE_STREAM_NULL || mark->stream == WIRE_STREAM_LEGACY);
	CUresult r;

	if (null && mark->context == contexts_done.context && mark->request == contexts_done.request + 1)
		return CUDA_SUCCESS;
	r = fence_query(slot);
	if (!r && null) {
		contexts_done.context = mark->context;
		contexts_done.request = mark->request;
	}
	return r;
}

/* By the lane that has the lead: nothing else was asked of the stream since the wait began. */
static CUresult contexts_query_stream(uint64_t slot)
{
	const struct fence *mark = fence_of(slot);
	const CUresult r = contexts_ask(slot);

	if (!r && mark->handle)
		handle_rest(mark->handle);
	return contexts_end_wait(r, driver.cuStreamSynchronize, mark->stream);
}

static CUresult contexts_block_stream(uint64_t slot)
{
	return contexts_wait(driver.cuStreamSynchronize, fence_of(slot)->stream);
}

CUresult serve_cuStreamSynchronize(struct request *q)
{
	CUresult r = request_words(q, 1);
	struct object_ref hold = {WIRE_NULL, 0};
	CUstream stream = 0;
	uint64_t context;

	if (!r)
		r = request_stream(q, 0, &stream);
	if (r)
		return r;
	if (stream >= WIRE_STREAM_NAMES)
		hold.type = WIRE_STREAM;
	hold.real = stream;
	context = request_stream_context(q, 0);
	return request_wait(q, hold, context, contexts_query_stream, contexts_block_stream,
			    fence_begin(q, stream, request_stream_handle(q, 0), context));
}

/* Whether the client knows that all is done which was asked of the stream. @handle: 0: a null stream */
static bool contexts_stream_rests(const struct request *q, uint64_t handle)
{
	const uint64_t stream = q->argument[0];

	if (stream == WIRE_STREAM_NULL || stream == WIRE_STREAM_LEGACY)
		return contexts_done.context == q->header.context && contexts_done.request + 1 == q->number;
	return handle_rests(handle);
}

/*
 * The memory that a fence is written to is seen before the driver has noted its own write, so that for some
 * microseconds it calls a stream busy that was waited for. It is asked all the same, for what has failed meanwhile.
 */
CUresult serve_cuStreamQuery(struct request *q)
{
	CUresult r = driver.cuStreamQuery ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;
	const uint64_t handle = r ? 0 : request_stream_handle(q, 0);
	const bool rests = !r && contexts_stream_rests(q, handle);
	CUstream stream = 0;

	/* Nothing is asked of one that rests: it goes on to. */
	if (!r && !(rests && handle && handle_look(handle, WIRE_STREAM, &stream)))
		r = request_stream(q, 0, &stream);
	if (r)
		return r;
	r = driver.cuStreamQuery(stream);
	if (r == CUDA_ERROR_NOT_READY && rests)
		r = CUDA_SUCCESS;
	if (r)
		return r;
	if (handle && !rests)
		handle_rest(handle);
	if (stream == WIRE_STREAM_NULL || stream == WIRE_STREAM_LEGACY) {
		contexts_done.context = q->header.context;
		contexts_done.request = q->number;
	}
	return r;
}

static CUresult contexts_query_event(uint64_t event)
{
	return contexts_end_wait(driver.cuEventQuery(event), driver.cuEventSynchronize, event);
}

static CUresult contexts_block_event(uint64_t event)
{
	return contexts_wait(driver.cuEventSynchronize, event);
}

CUresult serve_cuEventSynchronize(struct request *q)
{
	CUresult r = request_words(q, 1);
	uint64_t event = 0;

	if (!r)
		r = request_handle(q, 0, WIRE_EVENT, &event);
	if (r)
		return r;
	return request_wait(q, (struct object_ref){WIRE_EVENT, event}, handle_context(q->argument[0]),
			    contexts_query_event, contexts_block_event, event);
}

static CUresult contexts_synchronize(uint64_t nothing)
{
	(void)nothing;
	return driver.cuCtxSynchronize();
}

static CUresult contexts_block_context(uint64_t slot)
{
	return contexts_wait(contexts_synchronize, slot);
}

/*
 * A context is done when all its streams are. Those that nothing was asked of since they were done are not asked again,
 * nor is the driver at the end: there is nothing left that it could wait for, and what has failed says so.
 */
static CUresult contexts_query_context(uint64_t slot)
{
	const uint64_t context = fence_of(slot)->context;
	CUresult r = contexts_ask(slot);
	uint32_t place = 0;
	CUstream stream;
	uint64_t handle;

	while (!r && (handle = handle_next_busy(context, &place, &stream))) {
		r = driver.cuStreamQuery(stream);
		if (!r)
			handle_rest(handle);
	}
	if (!r)
		r = contexts_query_orphans(context);
	return contexts_end_wait(r, contexts_synchronize, 0);
}

CUresult serve_cuCtxSynchronize(struct request *q)
{
	CUresult r = request_words(q, 0);

	if (r)
		return r;
	return request_wait(q, (struct object_ref){WIRE_NULL, 0}, 0, contexts_query_context, contexts_block_context,
			    fence_begin(q, 0, 0, q->header.context));
}
