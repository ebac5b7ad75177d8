/* SPDX-License-Identifier: Apache-2.0 */

/* The way into the driver: functions by name and version. */

#include <string.h>

#include "vcuda/client/call.h"
#include "vcuda/client/context.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

struct entry {
	const char *name;
	int version;
	void *function, *twin; /* of the thread's own stream; NULL: the same */
};

#include "vcuda/client_entries.h"

enum {
	ENTRY_FOUND = 0,
	ENTRY_NO_SYMBOL = 1,
	ENTRY_NO_VERSION = 2,
	ENTRY_THREAD_STREAM = 2, /* a flag */
	ENTRY_TWINS = 7000,      /* the version that brought them */
	ENTRY_NEWEST = 13000,    /* the version of CUDA that cuda.def knows */
	ENTRY_COUNT = sizeof(entries) / sizeof(entries[0]),
};

static const struct entry *entry_find(const char *name)
{
	size_t low = 0, high = ENTRY_COUNT;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (strcmp(entries[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ENTRY_COUNT && strcmp(entries[low].name, name) == 0 ? &entries[low] : NULL;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *found)
{
	const struct entry *entry;

	if (!symbol || !function || flags > ENTRY_THREAD_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	*function = NULL;
	entry = entry_find(symbol);
	if (found)
		*found = entry ? ENTRY_NO_VERSION : ENTRY_NO_SYMBOL;
	for (; entry && entry < entries + ENTRY_COUNT && strcmp(entry->name, symbol) == 0; entry++) {
		if (entry->version > version || (flags == ENTRY_THREAD_STREAM && entry->twin && version < ENTRY_TWINS))
			continue;
		*function = flags == ENTRY_THREAD_STREAM && entry->twin ? entry->twin : entry->function;
		if (found)
			*found = ENTRY_FOUND;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

/* The older one leaves @function as it was where it finds nothing. */
CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
	void *found;
	CUresult r = cuGetProcAddress_v2(symbol, function ? &found : NULL, version, flags, NULL);

	if (!r)
		*function = found;
	return r;
}

/* What a server has said is true in children, too. */
CUresult cuDriverGetVersion(int *version)
{
	const int known = client.host.driver_version;

	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = known > 0 && known < ENTRY_NEWEST ? known : ENTRY_NEWEST;
	return CUDA_SUCCESS;
}

CUresult on_cuProfilerStart(void)
{
	return CUDA_SUCCESS;
}

CUresult on_cuProfilerStop(void)
{
	return CUDA_SUCCESS;
}
