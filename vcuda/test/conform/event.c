/* SPDX-License-Identifier: Apache-2.0 */

/* Events. */

#include "check.h"

static void event_create(void)
{
	CUevent event = NULL;

	for (unsigned flags = 0; flags < 4; flags++) {
		OK(cu.cuEventCreate(&event, flags));
		OK(cu.cuEventDestroy_v2(event));
	}
	NOTE(cu.cuEventCreate(&event, 4));
	NOTE(cu.cuEventCreate(&event, 99));
	IS(1, cu.cuEventCreate(NULL, 0));
}

static void event_unrecorded(void)
{
	CUevent event = NULL;

	OK(cu.cuEventCreate(&event, 0));
	OK(cu.cuEventQuery(event));
	OK(cu.cuEventSynchronize(event));
	OK(cu.cuEventDestroy_v2(event));
}

static void event_query(void)
{
	uint32_t *pinned = check_pinned(4096);
	CUstream stream = NULL;
	CUevent event = NULL;

	OK(cu.cuStreamCreate(&stream, 1));
	OK(cu.cuEventCreate(&event, 0));
	check_gate(pinned, stream);
	OK(cu.cuEventRecord(event, stream));
	IS(600, cu.cuEventQuery(event));
	*(volatile uint32_t *)pinned = 1;
	OK(cu.cuEventSynchronize(event));
	OK(cu.cuEventQuery(event));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuEventDestroy_v2(event));
	OK(cu.cuMemFreeHost(pinned));
}

static void event_elapsed(void)
{
	uint64_t clocks = 20000000;
	CUevent from = NULL, to = NULL;
	float time = -1;

	OK(cu.cuEventCreate(&from, 0));
	OK(cu.cuEventCreate(&to, 1));
	OK(cu.cuEventRecord(from, NULL));
	OK(check_launch("spin", 1, NULL, PARAMETERS(&clocks)));
	OK(cu.cuEventRecordWithFlags(to, NULL, 0));
	OK(cu.cuEventSynchronize(to));
	OK(cu.cuEventElapsedTime(&time, from, to));
	TRUE(time > 3 && time < 1000);
	OK(cu.cuEventElapsedTime_v2(&time, from, to));
	TRUE(time > 3 && time < 1000);
	OK(cu.cuEventElapsedTime(&time, to, from));
	TRUE(time < -3);
	IS(400, cu.cuEventElapsedTime(NULL, from, to));
	OK(cu.cuEventDestroy_v2(from));
	OK(cu.cuEventDestroy_v2(to));
}

static void event_elapsed_errors(void)
{
	uint32_t *pinned = check_pinned(4096);
	CUevent timed = NULL, untimed = NULL, never = NULL, busy = NULL;
	CUstream stream = NULL;
	float time = -1;

	OK(cu.cuStreamCreate(&stream, 1));
	OK(cu.cuEventCreate(&timed, 0));
	OK(cu.cuEventCreate(&untimed, 2));
	OK(cu.cuEventCreate(&never, 0));
	OK(cu.cuEventCreate(&busy, 0));
	OK(cu.cuEventRecord(timed, NULL));
	OK(cu.cuEventRecord(untimed, NULL));
	OK(cu.cuCtxSynchronize());
	IS(400, cu.cuEventElapsedTime(&time, timed, untimed));
	IS(400, cu.cuEventElapsedTime(&time, timed, never));
	check_gate(pinned, stream);
	OK(cu.cuEventRecord(busy, stream));
	IS(600, cu.cuEventElapsedTime(&time, timed, busy));
	*(volatile uint32_t *)pinned = 1;
	OK(cu.cuStreamSynchronize(stream));
	OK(cu.cuEventElapsedTime(&time, timed, busy));
	OK(cu.cuEventDestroy_v2(timed));
	OK(cu.cuEventDestroy_v2(untimed));
	OK(cu.cuEventDestroy_v2(never));
	OK(cu.cuEventDestroy_v2(busy));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuMemFreeHost(pinned));
}

static void event_again(void)
{
	uint32_t *pinned = check_pinned(4096);
	CUstream stream = NULL;
	CUevent event = NULL;

	OK(cu.cuStreamCreate(&stream, 1));
	OK(cu.cuEventCreate(&event, 2));
	OK(cu.cuEventRecord(event, stream));
	OK(cu.cuEventSynchronize(event));
	check_gate(pinned, stream);
	OK(cu.cuEventRecord(event, stream));
	IS(600, cu.cuEventQuery(event));
	*(volatile uint32_t *)pinned = 1;
	OK(cu.cuStreamSynchronize(stream));
	OK(cu.cuEventQuery(event));
	OK(cu.cuEventDestroy_v2(event));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuMemFreeHost(pinned));
}

static void event_destroyed(void)
{
	uint32_t *pinned = check_pinned(4096);
	CUstream first = NULL, second = NULL;
	CUevent event = NULL;

	OK(cu.cuStreamCreate(&first, 1));
	OK(cu.cuStreamCreate(&second, 1));
	OK(cu.cuEventCreate(&event, 2));
	check_gate(pinned, first);
	OK(cu.cuEventRecord(event, first));
	OK(cu.cuStreamWaitEvent(second, event, 0));
	OK(cu.cuEventDestroy_v2(event));
	IS(600, cu.cuStreamQuery(second));
	*(volatile uint32_t *)pinned = 1;
	OK(cu.cuStreamSynchronize(second));
	OK(cu.cuStreamDestroy_v2(first));
	OK(cu.cuStreamDestroy_v2(second));
	OK(cu.cuMemFreeHost(pinned));
}

static void event_other_context(void)
{
	CUcontext other = NULL;
	CUevent event = NULL;
	CUstream stream = NULL;

	OK(cu.cuEventCreate(&event, 2));
	OK(cu.cuStreamCreate(&stream, 1));
	OK(cu.cuCtxCreate_v2(&other, 0, 0));
	NOTE(cu.cuEventRecord(event, NULL));
	NOTE(cu.cuEventRecord(event, stream));
	NOTE(cu.cuEventSynchronize(event));
	OK(cu.cuStreamWaitEvent(NULL, event, 0));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuCtxDestroy_v2(other));
	OK(cu.cuEventDestroy_v2(event));
	OK(cu.cuStreamDestroy_v2(stream));
}

static void event_own_default(void)
{
	CUevent event = NULL;

	OK(cu.cuEventCreate(&event, 0));
	OK(cu.cuEventRecord_ptsz(event, NULL));
	OK(cu.cuEventRecordWithFlags_ptsz(event, NULL, 0));
	OK(cu.cuEventSynchronize(event));
	OK(cu.cuEventDestroy_v2(event));
}

const struct check event_checks[] = {
	{"flags", event_create, false},
	{"never recorded", event_unrecorded, false},
	{"query", event_query, false},
	{"elapsed time", event_elapsed, false},
	{"elapsed time of others", event_elapsed_errors, false},
	{"recorded again", event_again, false},
	{"destroyed while one waits for it", event_destroyed, false},
	{"of another context", event_other_context, true},
	{"in the thread's own default stream", event_own_default, false},
	END,
};
