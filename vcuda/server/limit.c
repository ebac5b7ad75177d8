/* SPDX-License-Identifier: Apache-2.0 */

/* What kernels have of a context besides: stacks, and what cuCtxSetLimit() sets the size of. */

#include "vcuda/server/limit.h"

#include "vcuda/driver_api.h"
#include "vcuda/server/allocation.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/overhead.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"
#include "vcuda/server/server.h"

enum { DEVICE_PROCESSORS = 16, DEVICE_PROCESSOR_THREADS = 39 };

enum limit { LIMIT_STACK, LIMIT_PRINT, LIMIT_HEAP, LIMITS, LIMIT_DEPTH = LIMITS, LIMIT_LAUNCHES, LIMIT_KNOWN = 9 };

/* What the driver takes for a limit of that size: a stack for each thread that can be there at once. */
static CUresult limit_measure(uint32_t limit, uint64_t value, uint64_t *ret)
{
	int processors = 0, threads = 0;
	CUdevice device = 0;
	CUresult r;

	*ret = limit < LIMITS ? value : 0;
	if (limit != LIMIT_STACK)
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
static CUresult limit_ask_default(uint32_t limit, uint64_t *ret)
{
	static struct {
		bool known;
		uint64_t value;
	} defaults[START_GPUS][LIMIT_LAUNCHES + 1], *kept;
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
static CUresult limit_judge(uint32_t limit, uint64_t value)
{
	uint64_t most = 0;
	size_t now;
	CUresult r;

	if (limit == LIMIT_DEPTH || limit == LIMIT_LAUNCHES) {
		r = limit_ask_default(limit, &most);
		return !r && quota_is_limited() && value > most ? CUDA_ERROR_OUT_OF_MEMORY : r;
	}
	if (!quota_is_limited() || limit <= LIMIT_KNOWN || !driver.cuCtxGetLimit)
		return CUDA_SUCCESS;
	r = driver.cuCtxGetLimit(&now, (CUlimit)limit);
	return r ? r : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

static const enum quota_kind limit_kinds[LIMITS] = {QUOTA_STACKS, QUOTA_PRINTS, QUOTA_HEAP};

/*
 * Counts what the driver is about to take more than it has for a context. It makes some of these smaller only later or
 * never, so what was counted stays until the context's end.
 */
static CUresult limit_take(uint32_t limit, uint64_t value, uint64_t context, uint64_t *ret)
{
	CUresult r = limit_measure(limit, value, ret);
	const uint64_t had = r || *ret == 0 ? 0 : quota_noted(limit_kinds[limit], context);

	*ret = *ret > had ? *ret - had : 0;
	if (!r && *ret > 0 && !allocation_take(*ret))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	return r;
}

static void limit_note(uint32_t limit, uint64_t bytes, uint64_t context)
{
	if (bytes > 0 && !quota_note(limit_kinds[limit], context, bytes, context))
		quota_give(bytes);
}

CUresult serve_cuCtxSetLimit(struct request *q)
{
	CUresult r = driver.cuCtxSetLimit ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	const uint32_t limit = (uint32_t)q->argument[0];
	uint64_t bytes = 0;
	OVERHEAD_HOLD;

	if (!r)
		r = limit_judge(limit, q->argument[1]);
	if (!r)
		r = limit_take(limit, q->argument[1], q->header.context, &bytes);
	if (r)
		return r;
	r = driver.cuCtxSetLimit((CUlimit)limit, q->argument[1]);
	if (r)
		quota_give(bytes);
	else
		limit_note(limit, bytes, q->header.context);
	overhead_stir();
	return r;
}

/* ---- stacks ---- */

uint64_t limit_ask_stack(void)
{
	size_t each = 0;

	return driver.cuCtxGetLimit && !driver.cuCtxGetLimit(&each, (CUlimit)LIMIT_STACK) ? each : 0;
}

uint64_t limit_of_stacks(uint64_t each)
{
	uint64_t bytes;

	return limit_measure(LIMIT_STACK, each, &bytes) ? 0 : bytes;
}

CUresult limit_take_stacks(uint64_t each, uint64_t context)
{
	uint64_t bytes = 0;
	CUresult r = CUDA_SUCCESS;
	OVERHEAD_HOLD;

	if (quota_is_limited() && each > 0)
		r = limit_take(LIMIT_STACK, each, context, &bytes);
	if (!r)
		limit_note(LIMIT_STACK, bytes, context);
	return r;
}
