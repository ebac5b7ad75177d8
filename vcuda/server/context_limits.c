/* SPDX-License-Identifier: Apache-2.0 */

/* What kernels have of a context besides: stacks, and what cuCtxSetLimit() sets the size of. */

#include "vcuda/server/quota.h"

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/request.h"
#include "vcuda/server/server.h"

enum { DEVICE_PROCESSORS = 16, DEVICE_PROCESSOR_THREADS = 39 };

enum limit {
	CONTEXT_LIMITS_STACK,
	CONTEXT_LIMITS_PRINT,
	CONTEXT_LIMITS_HEAP,
	LIMITS,
	CONTEXT_LIMITS_DEPTH = LIMITS,
	CONTEXT_LIMITS_LAUNCHES,
	CONTEXT_LIMITS_KNOWN = 9
};

/* What the driver takes for a limit of that size: a stack for each thread that can be there at once. */
static CUresult context_limits_measure(uint32_t limit, uint64_t value, uint64_t *ret)
{
	int processors = 0, threads = 0;
	CUdevice device = 0;
	CUresult r;

	*ret = limit < LIMITS ? value : 0;
	if (limit != CONTEXT_LIMITS_STACK)
		return CUDA_SUCCESS;
	r = driver.cuCtxGetDevice(&device);
	if (!r)
		r = driver.cuDeviceGetAttribute(&processors, DEVICE_PROCESSORS, device);
	if (!r)
		r = driver.cuDeviceGetAttribute(&threads, DEVICE_PROCESSOR_THREADS, device);
	if (__builtin_mul_overflow(value, (uint64_t)processors * (uint64_t)threads, ret))
		*ret = UINT64_MAX;
	return r;
}

/* What a new context of the current one's GPU has of it: what the first had, before it was set. Executor's thread. */
static CUresult context_limits_ask_default(uint32_t limit, uint64_t *ret)
{
	static struct {
		bool known;
		uint64_t value;
	} defaults[START_GPUS][CONTEXT_LIMITS_LAUNCHES + 1], *kept;
	CUdevice device = 0;
	size_t now = 0;
	unsigned i = 0;
	CUresult r = driver.cuCtxGetLimit ? driver.cuCtxGetDevice(&device) : CUDA_ERROR_NOT_SUPPORTED;

	while (i < START_GPUS - 1 && server.gpu[i] != device)
		i++;
	kept = &defaults[i][limit];
	if (!r && !kept->known) {
		r = driver.cuCtxGetLimit(&now, (CUlimit)limit);
		kept->known = !r;
		kept->value = now;
	}
	*ret = kept->value;
	return r;
}

/*
 * For kernels that launch kernels, the driver takes memory that nobody documents the size of. With a quota, more than
 * what a new context has of these is refused as it would refuse it: less can be asked for then. Limits of newer
 * drivers may be of memory, too; those that are known besides are not.
 */
static CUresult context_limits_check(uint32_t limit, uint64_t value)
{
	uint64_t most = 0;
	size_t now;
	CUresult r;

	if (limit == CONTEXT_LIMITS_DEPTH || limit == CONTEXT_LIMITS_LAUNCHES) {
		r = context_limits_ask_default(limit, &most);
		return !r && quota_is_limited() && value > most ? CUDA_ERROR_OUT_OF_MEMORY : r;
	}
	if (!quota_is_limited() || limit <= CONTEXT_LIMITS_KNOWN || !driver.cuCtxGetLimit)
		return CUDA_SUCCESS;
	r = driver.cuCtxGetLimit(&now, (CUlimit)limit);
	return r ? r : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

static const enum quota_kind context_limits_kinds[LIMITS] = {QUOTA_STACKS, QUOTA_PRINTS, QUOTA_HEAP};

/* What the driver takes for a limit: in all, and how much of that is counted, but not noted for the context yet. */
struct context_limits_need {
	uint64_t all, taken;
};

/* Return: how much of it was not noted for the context. */
static uint64_t context_limits_lack(uint32_t limit, uint64_t all, uint64_t context)
{
	const uint64_t had = all == 0 ? 0 : quota_noted(context_limits_kinds[limit], context);

	return all > had ? all - had : 0;
}

/*
 * Counts what the driver is about to take more than it has for a context. It makes some of these smaller only later or
 * never, so what was counted stays until the context's end.
 */
static CUresult context_limits_take(uint32_t limit, uint64_t value, uint64_t context, struct context_limits_need *ret)
{
	CUresult r = context_limits_measure(limit, value, &ret->all);
	DRIVER_MEMORY_HOLD;

	if (r)
		return r;
	ret->taken = context_limits_lack(limit, ret->all, context);
	if (ret->taken > 0 && !allocation_take(ret->taken))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	return r;
}

/* Another thread may have set the same limit meanwhile: what both have counted is there once. */
static void context_limits_note(uint32_t limit, struct context_limits_need need, uint64_t context)
{
	DRIVER_MEMORY_HOLD;
	const uint64_t lack = context_limits_lack(limit, need.all, context),
		       bytes = lack < need.taken ? lack : need.taken;

	quota_give(need.taken - bytes);
	if (bytes > 0 && !quota_note(context_limits_kinds[limit], context, bytes, context))
		quota_give(bytes);
}

/* Others get memory while the driver waits: what it takes is counted before. */
static CUresult context_limits_set(uint32_t limit, uint64_t value, uint64_t context)
{
	struct context_limits_need need = {0};
	CUresult r = context_limits_take(limit, value, context, &need);

	if (r)
		return r;
	r = driver.cuCtxSetLimit((CUlimit)limit, value);
	if (r)
		quota_give(need.taken);
	else
		context_limits_note(limit, need, context);
	driver_memory_set_dirty();
	return r;
}

CUresult serve_cuCtxSetLimit(struct request *q)
{
	CUresult r = driver.cuCtxSetLimit ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	const uint32_t limit = (uint32_t)q->argument[0];

	if (!r)
		r = context_limits_check(limit, q->argument[1]);
	if (r)
		return r;
	/* For larger stacks the driver waits until nothing runs. */
	lane_leave(q);
	return context_limits_set(limit, q->argument[1], q->header.context);
}

/* ---- stacks ---- */

uint64_t context_limits_ask_stack(void)
{
	size_t each = 0;

	return driver.cuCtxGetLimit && !driver.cuCtxGetLimit(&each, (CUlimit)CONTEXT_LIMITS_STACK) ? each : 0;
}

uint64_t context_limits_of_stacks(uint64_t each)
{
	uint64_t bytes;

	return context_limits_measure(CONTEXT_LIMITS_STACK, each, &bytes) ? 0 : bytes;
}

CUresult context_limits_take_stacks(uint64_t each, uint64_t context)
{
	struct context_limits_need need = {0};
	CUresult r = CUDA_SUCCESS;
	DRIVER_MEMORY_HOLD;

	if (quota_is_limited() && each > 0)
		r = context_limits_take(CONTEXT_LIMITS_STACK, each, context, &need);
	if (!r)
		context_limits_note(CONTEXT_LIMITS_STACK, need, context);
	return r;
}
