/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The ways into the driver: functions by name and version, and the tables that cuGetExportTable() gives. NVIDIA's CUDA
 * runtime and the libraries upon it call the driver by the tables, too. What the program asks for is only compared with
 * what is here; a table and a slot of it are constants.
 */

#include "vcuda/client/table.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vcuda/build.h"
#include "vcuda/client/call.h"
#include "vcuda/client/context.h"
#include "vcuda/client_api.h"

enum { TABLE_MARKS = 1024, TABLE_TOOL_MARKS = 14, TABLE_UUID = 16, TABLE_UUID_TEXT = 37 };

struct table {
	uint8_t uuid[TABLE_UUID];
	const void *const *words; /* NULL: programs go on without it */
};

/* On stderr, which is the container's unless the program has another. Once: programs ask again and again. */
static void table_warn(const char *what, const char *which, const char *why)
{
	static _Atomic bool said;
	const char *const parts[] = {"ctr-gpu: vCUDA: ", what, which, why, "\n"};
	char line[256] = {0};

	if (atomic_exchange(&said, true))
		return;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		strncat(line, parts[i], sizeof(line) - strlen(line) - 1);
	if (write(STDERR_FILENO, line, strlen(line)) < 0)
		return;
}

static CUresult table_refuse_slot(const char *slot)
{
	(void)call_tell(START_EVENT_TABLE, slot);
	table_warn("no table ", slot, " of NVIDIA's driver here; if the program fails, that is why");
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult table_do_nothing(void)
{
	return CUDA_SUCCESS;
}

static CUresult table_have_none(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

#include "vcuda/client_tables.h"

static const struct table *table_find(const uint8_t uuid[TABLE_UUID])
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (memcmp(tables[i].uuid, uuid, TABLE_UUID) == 0)
			return &tables[i];
	return NULL;
}

static void table_format_uuid(const uint8_t uuid[TABLE_UUID], char text[TABLE_UUID_TEXT])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < TABLE_UUID; i++) {
		*text++ = digits[uuid[i] >> 4];
		*text++ = digits[uuid[i] & 15];
		if (i == 3 || i == 5 || i == 7 || i == 9)
			*text++ = '-';
	}
	*text = '\0';
}

CUresult cuGetExportTable(const void **table, const CUuuid *uuid)
{
	const struct table *found;
	char text[TABLE_UUID_TEXT];

	if (!table || !uuid)
		return CUDA_ERROR_INVALID_VALUE;
	found = table_find((const uint8_t *)uuid->bytes);
	*table = found ? found->words : NULL;
	if (found)
		return found->words ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	table_format_uuid((const uint8_t *)uuid->bytes, text);
	(void)call_tell(START_EVENT_TABLE, text);
	if (!VCUDA_INTEGRITY && strncmp(text, "d4082055-", 9) == 0)
		table_warn("this build is for programs of the driver API only, not of NVIDIA's CUDA runtime", "", "");
	else
		table_warn("no table ", text, " of NVIDIA's driver here; if the program fails, that is why");
	return CUDA_ERROR_INVALID_VALUE;
}

/* ---- code ---- */

CUresult table_load_module(CUmodule *module, const void *image)
{
	return cuModuleLoadFatBinary(module, image);
}

CUresult table_load_module_for(CUmodule *module, const void *image, void *first, void *second, unsigned number)
{
	(void)first, (void)second, (void)number;
	return cuModuleLoadFatBinary(module, image);
}

CUresult table_load_module_from(const void *image, CUmodule *module, void *first, void *second, unsigned number)
{
	(void)first, (void)second, (void)number;
	return cuModuleLoadFatBinary(module, image);
}

uint64_t table_each_function(CUcontext context, CUmodule module, table_function *call, void *argument)
{
	CUfunction *functions = NULL;
	unsigned count = 0, given = 0;

	(void)context;
	if (!call || cuModuleGetFunctionCount(&count, module) || count == 0)
		return 0;
	functions = calloc(count, sizeof(*functions));
	if (functions && cuModuleEnumerateFunctions(functions, count, module) == CUDA_SUCCESS)
		for (const char *name; given < count && cuFuncGetName(&name, functions[given]) == CUDA_SUCCESS; given++)
			call(argument, functions[given], name);
	free(functions);
	return given;
}

/* ---- tools: there are none ---- */

void table_calls_watched(void **marks, size_t *count)
{
	static uint64_t none[TABLE_MARKS];

	*marks = none;
	*count = TABLE_MARKS;
}

void table_tools_watched(void **marks, size_t *count)
{
	static uint64_t none[TABLE_TOOL_MARKS];

	*marks = none;
	*count = TABLE_TOOL_MARKS;
}

/* ---- contexts and streams ---- */

/* A primary one that was reset keeps nothing. */
static CUresult table_context(CUcontext name, struct context **ret)
{
	struct thread *thread;
	CUresult r = call_enter(&thread);

	if (r)
		return r;
	*ret = name ? context_find(name) : thread_context(thread);
	if (*ret && !(*ret)->gone)
		return CUDA_SUCCESS;
	return name && context_is_former(name) ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult table_storage_put(CUcontext name, const void *key, void *value, context_storage_end *end)
{
	struct context *context;
	CUresult r = table_context(name, &context);

	return r ? r : context_storage_put(context, key, value, end);
}

CUresult table_storage_delete(CUcontext name, const void *key)
{
	struct context *context;
	CUresult r = table_context(name, &context);

	return r ? r : context_storage_delete(context, key);
}

CUresult table_storage_get(void **value, CUcontext name, const void *key)
{
	struct context *context;
	CUresult r = table_context(name, &context);

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	*value = NULL;
	return r ? r : context_storage_get(context, key, value);
}

CUresult table_check_context(CUcontext context, uint32_t *special, const void **more)
{
	(void)context, (void)more;
	if (special)
		*special = 0;
	return CUDA_SUCCESS;
}

CUresult table_context_device(CUcontext context, CUdevice *device)
{
	return cuCtxGetDevice_v2(device, context);
}

CUresult table_stream_of(CUcontext context, CUstream stream, void **ret, int of_thread)
{
	(void)context;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!wire_is_stream(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (stream == WIRE_STREAM_NULL)
		stream = of_thread ? WIRE_STREAM_THREAD : WIRE_STREAM_LEGACY;
	*ret = (void *)stream;
	return CUDA_SUCCESS;
}

CUresult table_stream_number(CUcontext context, void *stream, uint64_t *number)
{
	unsigned long long id;
	CUresult r;

	(void)context;
	if (!stream || !number)
		return CUDA_ERROR_INVALID_VALUE;
	r = cuStreamGetId((CUstream)stream, &id);
	if (!r)
		*number = id;
	return r;
}

#if VCUDA_INTEGRITY
void table_tell_addresses(struct table_addresses *ret)
{
	*ret = (struct table_addresses){words_runtime, words_integrity, words_integrity[1]};
}
#endif

/* ---- functions by name and version ---- */

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

static const struct entry *table_find_entry(const char *name)
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
	entry = table_find_entry(symbol);
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
