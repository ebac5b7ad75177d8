/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sets of events, of which none ever comes: no GPU of a container has any to register. nvidia-smi makes a set before it
 * asks for anything else.
 */

#include <stdlib.h>
#include <time.h>

#include "vcuda/nvml/nvml_session.h"
#include "vcuda/nvml_api.h"

struct nvmlEventSet_st {
	char nothing;
};

static nvmlReturn_t event_enter(const void *place)
{
	LOCK_HOLD(nvml_session_lock());
	return nvml_session_enter_for(place);
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	nvmlReturn_t r = event_enter(set);
	nvmlEventSet_t made = r ? NULL : malloc(sizeof(*made));

	if (r)
		return r;
	if (!made)
		return NVML_ERROR_MEMORY;
	*set = made;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	nvmlReturn_t r = event_enter(set);

	if (!r)
		free(set);
	return r;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned milliseconds)
{
	const struct timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
	nvmlReturn_t r = event_enter(set && data ? set : NULL);

	if (r)
		return r;
	(void)nanosleep(&time, NULL);
	return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
	unsigned none = 0;
	nvmlReturn_t r = nvmlDeviceIsMigDeviceHandle(device, types ? &none : NULL);

	if (!r && types)
		*types = none;
	return r;
}
