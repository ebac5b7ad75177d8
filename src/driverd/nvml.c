/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The little of nvml.h and cuda.h that is asked for. Their functions return 0 for success; handles are pointers. A GPU
 * that has no parts, or cannot, says so by an error and is passed over.
 */

#include "driverd/nvml.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "driverd/message.h"

typedef struct nvmlDevice_st *nvml_device;

static struct {
	int (*init)(void);
	int (*count)(unsigned *count);
	int (*device)(unsigned index, nvml_device *device);
	int (*uuid)(nvml_device device, char *uuid, unsigned size);
	int (*part_count)(nvml_device device, unsigned *count);
	int (*part)(nvml_device device, unsigned index, nvml_device *part);
	int (*gpu_instance)(nvml_device part, unsigned *id);
	int (*compute_instance)(nvml_device part, unsigned *id);
} nvml;

static const struct {
	const char *name;
	void *function;
} symbols[] = {
	{"nvmlInit_v2", &nvml.init},
	{"nvmlDeviceGetCount_v2", &nvml.count},
	{"nvmlDeviceGetHandleByIndex_v2", &nvml.device},
	{"nvmlDeviceGetUUID", &nvml.uuid},
	{"nvmlDeviceGetMaxMigDeviceCount", &nvml.part_count},
	{"nvmlDeviceGetMigDeviceHandleByIndex", &nvml.part},
	{"nvmlDeviceGetGpuInstanceId", &nvml.gpu_instance},
	{"nvmlDeviceGetComputeInstanceId", &nvml.compute_instance},
};

static void *nvml_load(const char *path)
{
	return path[0] == '/' ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
}

static const char *nvml_why_not_loaded(const char *path)
{
	return path[0] == '/' ? dlerror() : "its path is not absolute";
}

/* Return: the name of a function that is missing; NULL if all are there. */
static const char *nvml_find_symbols(void *library)
{
	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		void *function = dlsym(library, symbols[i].name);

		if (!function)
			return symbols[i].name;
		memcpy(symbols[i].function, &function, sizeof(function));
	}
	return NULL;
}

static char *nvml_read_uuid(nvml_device device)
{
	char *uuid = calloc(1, DRIVERD_UUID_MAX + 1);

	if (!uuid)
		abort();
	if (nvml.uuid(device, uuid, DRIVERD_UUID_MAX) == 0 && !memchr(uuid, '\0', DRIVERD_UUID_MAX + 1))
		uuid[DRIVERD_UUID_MAX] = '\0';
	return uuid;
}

static void nvml_add_part(nvml_device gpu, unsigned index, struct driverd_answer *answer)
{
	unsigned gpu_instance, compute_instance;
	nvml_device part;

	if (answer->part_count == DRIVERD_PARTS_MAX || nvml.part(gpu, index, &part) != 0 ||
	    nvml.gpu_instance(part, &gpu_instance) != 0 || nvml.compute_instance(part, &compute_instance) != 0)
		return;
	answer->parts[answer->part_count++] = (struct driverd_mig_part){
		.uuid = nvml_read_uuid(part),
		.gpu_uuid = nvml_read_uuid(gpu),
		.gpu_instance = gpu_instance,
		.compute_instance = compute_instance,
	};
}

static void nvml_add_parts(nvml_device gpu, struct driverd_answer *answer)
{
	unsigned count = 0;

	if (nvml.part_count(gpu, &count) != 0)
		return;
	for (unsigned i = 0; i < count && i < DRIVERD_PARTS_MAX; i++)
		nvml_add_part(gpu, i, answer);
}

static void nvml_ask(struct driverd_answer *answer)
{
	unsigned count = 0;
	nvml_device gpu;
	int r;

	r = nvml.init();
	if (r == 0)
		r = nvml.count(&count);
	if (r != 0)
		return answer_failure(answer, DRIVERD_REFUSED, "NVML returned %d (are the nodes in /dev accessible?)",
				      r);
	answer->parts = calloc(DRIVERD_PARTS_MAX, sizeof(*answer->parts));
	if (!answer->parts)
		abort();
	for (unsigned i = 0; i < count && i < DRIVERD_PARTS_MAX; i++)
		if (nvml.device(i, &gpu) == 0)
			nvml_add_parts(gpu, answer);
}

void nvml_list_parts(const char *path, struct driverd_answer *answer)
{
	const char *missing;
	void *library;

	library = nvml_load(path);
	if (!library)
		return answer_failure(answer, DRIVERD_NOT_LOADED, "%s", nvml_why_not_loaded(path));
	missing = nvml_find_symbols(library);
	if (missing)
		return answer_failure(answer, DRIVERD_NO_SYMBOLS, "it has no %s", missing);
	nvml_ask(answer);
}

/* This function alone needs neither cuInit() nor a device. */
void cuda_read_version(const char *path, struct driverd_answer *answer)
{
	int (*get_version)(int *version);
	void *library, *function;
	int r;

	library = nvml_load(path);
	if (!library)
		return answer_failure(answer, DRIVERD_NOT_LOADED, "%s", nvml_why_not_loaded(path));
	function = dlsym(library, "cuDriverGetVersion");
	if (!function)
		return answer_failure(answer, DRIVERD_NO_SYMBOLS, "it has no cuDriverGetVersion");
	memcpy(&get_version, &function, sizeof(function));
	r = get_version(&answer->version);
	if (r != 0)
		answer_failure(answer, DRIVERD_REFUSED, "cuDriverGetVersion returned %d", r);
}
