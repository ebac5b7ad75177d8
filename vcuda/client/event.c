/* SPDX-License-Identifier: Apache-2.0 */

/* Events: where the driver answers otherwise than to all that lack a place for a result. */

#include "vcuda/client/call.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

static CUresult event_elapsed(unsigned op, float *milliseconds, CUevent begin, CUevent end)
{
	const uint64_t words[] = {begin, end};

	if (!milliseconds)
		return call_fail(CUDA_ERROR_INVALID_HANDLE);
	return call_sync(op, words, 2, NULL, 0, milliseconds, sizeof(*milliseconds));
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end)
{
	return event_elapsed(OP_cuEventElapsedTime, milliseconds, begin, end);
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent begin, CUevent end)
{
	return event_elapsed(OP_cuEventElapsedTime_v2, milliseconds, begin, end);
}
