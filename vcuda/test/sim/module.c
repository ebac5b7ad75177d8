/* SPDX-License-Identifier: Apache-2.0 */

/* Modules: what an image has in it (PTX text, a fatbin with PTX, what the linker made), their functions and variables. */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

enum { JIT_INFO = 3, JIT_INFO_SIZE, JIT_ERROR, JIT_ERROR_SIZE, FATBIN_PTX = 1, MODULE_PACKED = 0x5a };

struct fatbin_header {
	uint32_t magic;
	uint16_t version, size;
	uint64_t payload;
};

/* A longer one has 64 bytes. */
struct fatbin_entry {
	uint16_t kind, version;
	uint32_t size;
	uint64_t payload;
	uint32_t compressed;
};

/* What nobody but the simulation can read: each byte is another one. */
static const char *module_unpack(const char *packed, size_t length)
{
	char *text = calloc(1, length + 1);

	if (!text)
		abort();
	for (size_t i = 0; i < length; i++)
		text[i] = (char)(packed[i] ^ MODULE_PACKED);
	return text;
}

static const char *module_fatbin_text(const struct fatbin_header *header)
{
	const char *at = (const char *)header + header->size, *end = at + header->payload;

	while (at + offsetof(struct fatbin_entry, compressed) <= end) {
		const struct fatbin_entry *entry = (const void *)at;

		if (entry->kind == FATBIN_PTX && entry->size >= 64 && entry->compressed)
			return module_unpack(at + entry->size, entry->compressed);
		if (entry->kind == FATBIN_PTX)
			return at + entry->size;
		at += entry->size + entry->payload;
	}
	return NULL;
}

const char *module_text(const void *image)
{
	const struct fatbin_header *header = image;

	if (memcmp(image, "\177ELF", 4) == 0)
		return link_text(image);
	if (header->magic == 0xba55ed50)
		return module_fatbin_text(header);
	return image;
}

static CUresult module_place_globals(CUcontext context, CUmodule module)
{
	for (unsigned i = 0; i < module->global_count; i++) {
		struct global *global = &module->globals[i];
		CUresult r = (global->managed ? managed_alloc : memory_alloc)(context, global->size, &global->address);

		if (r)
			return r;
		memcpy((void *)(uintptr_t)global->address, global->initial,
		       global->size < sizeof(global->initial) ? global->size : sizeof(global->initial));
	}
	return CUDA_SUCCESS;
}

/* A compiler takes its time, in which other threads do what they will. */
void module_compile(CUcontext context)
{
	const unsigned long long time = config_number("COMPILE_US", 0);

	if (!time)
		return;
	object_enter(context);
	(void)pthread_mutex_unlock(&sim_lock);
	(void)usleep((useconds_t)time);
	(void)pthread_mutex_lock(&sim_lock);
	object_leave(context);
}

CUresult module_new(CUcontext context, const void *image, struct ptx_log *log, CUmodule *ret)
{
	const char *text = module_text(image);
	CUmodule module;
	CUresult r;

	if (!text)
		return CUDA_ERROR_INVALID_IMAGE;
	module = object_new(OBJECT_MODULE, sizeof(*module), context);
	r = ptx_parse(text, module, log);
	if (!r)
		r = module_place_globals(context, module);
	if (r)
		module_free(module);
	else
		*ret = module;
	return r == PTX_UNRESOLVED ? CUDA_ERROR_INVALID_PTX : r;
}

void module_free(CUmodule module)
{
	struct range *range;

	for (unsigned i = 0; i < module->function_count; i++)
		object_free(module->functions[i]);
	for (unsigned i = 0; i < module->global_count; i++) {
		range = address_map_find(module->globals[i].address);
		if (range && module->globals[i].address) {
			device_refund(range->device, range->charged);
			address_map_remove(range);
		}
	}
	reference_free_of(module);
	object_free(module);
}

CUresult module_global(CUmodule module, const char *name, CUdeviceptr *ret, size_t *ret_bytes)
{
	for (unsigned i = 0; i < module->global_count; i++) {
		if (strcmp(module->globals[i].name, name) != 0)
			continue;
		if (ret)
			*ret = module->globals[i].address;
		if (ret_bytes)
			*ret_bytes = module->globals[i].size;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult module_managed(CUmodule module, const char *name, CUdeviceptr *ret, size_t *ret_bytes)
{
	for (unsigned i = 0; i < module->global_count; i++)
		if (module->globals[i].managed && strcmp(module->globals[i].name, name) == 0)
			return module_global(module, name, ret, ret_bytes);
	return CUDA_ERROR_NOT_FOUND;
}

CUresult module_read_file(const char *path, void **ret, size_t *ret_size)
{
	FILE *file = path ? fopen(path, "re") : NULL;
	char *text;
	size_t size;

	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	if (!file)
		return CUDA_ERROR_FILE_NOT_FOUND;
	text = calloc(1, 1 << 20);
	if (!text)
		abort();
	size = fread(text, 1, (1 << 20) - 1, file);
	(void)fclose(file);
	*ret = text;
	if (ret_size)
		*ret_size = size;
	return CUDA_SUCCESS;
}

/* The buffers that the caller gives for messages. */
void jit_options(unsigned count, const int *options, void **values, struct ptx_log *info, struct ptx_log *error)
{
	for (unsigned i = 0; i < count; i++) {
		if (options[i] == JIT_INFO)
			info->text = values[i];
		else if (options[i] == JIT_INFO_SIZE)
			info->size = (uint32_t)(uintptr_t)values[i];
		else if (options[i] == JIT_ERROR)
			error->text = values[i];
		else if (options[i] == JIT_ERROR_SIZE)
			error->size = (uint32_t)(uintptr_t)values[i];
	}
	if (error->text && error->size)
		error->text[0] = '\0';
	if (info->text && info->size)
		info->text[0] = '\0';
}

/* How much was written comes back in the place of the sizes. */
void jit_report(unsigned count, const int *options, void **values, const struct ptx_log *info,
		const struct ptx_log *error)
{
	for (unsigned i = 0; i < count; i++)
		if (options[i] == JIT_INFO_SIZE || options[i] == JIT_ERROR_SIZE) {
			const struct ptx_log *log = options[i] == JIT_INFO_SIZE ? info : error;

			values[i] = (void *)(uintptr_t)(log->used ? log->used + 1 : 0);
		}
}

CUresult cuModuleLoadDataEx(CUmodule *ret, const void *image, unsigned count, int *options, void **values)
{
	struct ptx_log info = {0}, error = {0};
	CUcontext context;
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || !image || (count && (!options || !values)), CUDA_ERROR_INVALID_VALUE);
	jit_options(count, options, values, &info, &error);
	module_compile(context);
	r = module_new(context, image, &error, ret);
	jit_report(count, options, values, &info, &error);
	LEAVE(r);
}

CUresult cuModuleLoadData(CUmodule *ret, const void *image)
{
	CUresult r = call_fault(__func__);

	return r ? r : cuModuleLoadDataEx(ret, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *ret, const void *image)
{
	CUresult r = call_fault(__func__);

	return r ? r : cuModuleLoadDataEx(ret, image, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *ret, const char *path)
{
	CUcontext context;
	void *image;
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	r = module_read_file(path, &image, NULL);
	LEAVE_IF(r, r);
	r = module_new(context, image, NULL, ret);
	free(image);
	LEAVE(r);
}

CUresult cuModuleUnload(CUmodule module)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!object_is(module, OBJECT_MODULE) || module->library, CUDA_ERROR_INVALID_HANDLE);
	context_drain(module->object.context);
	module_free(module);
	object_tell_late();
	LEAVE(CUDA_SUCCESS);
}

CUresult cuModuleGetLoadingMode(int *ret)
{
	CALL(__func__);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = 2;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuModuleGetFunction(CUfunction *ret, CUmodule module, const char *name)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!object_is(module, OBJECT_MODULE), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(!ret || !name || !*name, CUDA_ERROR_INVALID_VALUE);
	for (unsigned i = 0; i < module->function_count; i++)
		if (strcmp(module->functions[i]->name, name) == 0) {
			*ret = module->functions[i];
			LEAVE(CUDA_SUCCESS);
		}
	LEAVE(CUDA_ERROR_NOT_FOUND);
}

CUresult cuModuleGetFunctionCount(unsigned *ret, CUmodule module)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!object_is(module, OBJECT_MODULE), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = module->function_count;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuModuleEnumerateFunctions(CUfunction *ret, unsigned count, CUmodule module)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!object_is(module, OBJECT_MODULE), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(!ret || !count, CUDA_ERROR_INVALID_VALUE);
	for (unsigned i = 0; i < count; i++)
		ret[i] = i < module->function_count ? module->functions[i] : NULL;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *ret, size_t *ret_bytes, CUmodule module, const char *name)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!object_is(module, OBJECT_MODULE), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(!name, CUDA_ERROR_INVALID_VALUE);
	LEAVE(module_global(module, name, ret, ret_bytes));
}
