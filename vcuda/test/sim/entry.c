/* SPDX-License-Identifier: Apache-2.0 */

/* cuGetProcAddress, and the twins whose default stream is the thread's own. */

#include <string.h>

#include "sim.h"

enum { FOUND = 0, NOT_FOUND = 1, VERSION_TOO_LOW = 2, FLAG_LEGACY = 1, FLAG_OWN_DEFAULT = 2 };

#define ENTRY_NOTHING(name, symbol, version, parameters)
#define ENTRY_TWIN(name, symbol, version, suffix, parameters, arguments) \
	CUresult symbol##_##suffix parameters                            \
	{                                                                \
		CUresult r;                                              \
                                                                         \
		sim_own_default = true;                                  \
		r = symbol arguments;                                    \
		sim_own_default = false;                                 \
		return r;                                                \
	}
CUDA_FUNCTIONS(ENTRY_NOTHING, ENTRY_TWIN)

static const struct entry {
	const char *name;
	int version;
	void *function, *twin;
} entries[] = {
#define ENTRY(name, symbol, version, parameters) {#name, version, (void *)symbol, NULL},
#define ENTRY_WITH_TWIN(name, symbol, version, suffix, parameters, arguments) \
	{#name, version, (void *)symbol, (void *)symbol##_##suffix},
	CUDA_FUNCTIONS(ENTRY, ENTRY_WITH_TWIN)};

CUresult cuGetProcAddress_v2(const char *name, void **ret, int version, cuuint64_t flags, int *ret_status)
{
	const struct entry *best = NULL;
	int status = NOT_FOUND, driver = 0;

	if (!name || !ret || flags > 2)
		return CUDA_ERROR_INVALID_VALUE;
	(void)cuDriverGetVersion(&driver);
	if (ret_status)
		*ret = NULL;
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		if (strcmp(entries[i].name, name) != 0 || entries[i].version > driver)
			continue;
		if (entries[i].version > version)
			status = status == FOUND ? FOUND : VERSION_TOO_LOW;
		else if (!best || entries[i].version > best->version)
			best = &entries[i];
		if (best)
			status = FOUND;
	}
	if (best)
		*ret = flags == FLAG_OWN_DEFAULT && best->twin && version >= 7000 ? best->twin : best->function;
	if (ret_status)
		*ret_status = status;
	return best || ret_status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *name, void **ret, int version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(name, ret, version, flags, NULL);
}

CUresult cuProfilerStart(void)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuProfilerStop(void)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE(CUDA_SUCCESS);
}
