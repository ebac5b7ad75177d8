/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The OpenCL driver of a native host, as much as a loader needs to list it: a platform whose devices are the GPUs that this
 * process may open. Numbers and the order of the table are those of Khronos' CL/cl.h and CL/cl_icd.h.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "nodes.h"

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, DEVICE_NOT_FOUND = -1, INVALID_VALUE = -30 };
enum { DEVICE_TYPE_GPU = 4 };

struct dispatch;

/* A loader looks for the table in the first word of every object. */
struct object {
	const struct dispatch *dispatch;
};

struct dispatch {
	int (*get_platform_ids)(uint32_t room, struct object **ret, uint32_t *ret_count);
	int (*get_platform_info)(struct object *platform, uint32_t what, size_t room, void *ret, size_t *ret_size);
	int (*get_device_ids)(struct object *platform, uint64_t type, uint32_t room, struct object **ret,
			      uint32_t *ret_count);
	int (*get_device_info)(struct object *device, uint32_t what, size_t room, void *ret, size_t *ret_size);
	int (*unused[160])(void);
};

static const struct dispatch table;
static struct object platform = {&table}, devices[NODES_MAX];

struct text_buffer {
	uint32_t what;
	const char *value;
};

static const struct text_buffer platform_texts[] = {
	{0x900, "FULL_PROFILE"},
	{0x901, "OpenCL 1.2 simulated"},
	{0x902, "Simulated NVIDIA CUDA"},
	{0x903, "NVIDIA Corporation"},
	{0x904, "cl_khr_icd"},
	{0x920, "NV"},
	{0, NULL},
};
static const struct text_buffer device_texts[] = {
	{0x102b, "Simulated GPU"}, {0x102c, "NVIDIA Corporation"}, {0x102d, DRIVER},     {0x102e, "FULL_PROFILE"},
	{0x102f, "OpenCL 1.2"},    {0x1030, "cl_khr_icd"},         {0x103d, "OpenCL C"}, {0, NULL},
};

static int answer(const void *value, size_t size, size_t room, void *ret, size_t *ret_size)
{
	if (ret_size)
		*ret_size = size;
	if (ret && room < size)
		return INVALID_VALUE;
	if (ret)
		memcpy(ret, value, size);
	return SUCCESS;
}

static int answer_text(const struct text_buffer *texts, uint32_t what, size_t room, void *ret, size_t *ret_size)
{
	for (; texts->value; texts++)
		if (texts->what == what)
			return answer(texts->value, strlen(texts->value) + 1, room, ret, ret_size);
	return INVALID_VALUE;
}

static int get_platform_ids(uint32_t room, struct object **ret, uint32_t *ret_count)
{
	if (!node_reachable("/dev/nvidiactl"))
		return -1001; /* CL_PLATFORM_NOT_FOUND_KHR */
	if (ret && room > 0)
		*ret = &platform;
	if (ret_count)
		*ret_count = 1;
	return SUCCESS;
}

static int get_platform_info(struct object *which, uint32_t what, size_t room, void *ret, size_t *ret_size)
{
	(void)which;
	return answer_text(platform_texts, what, room, ret, ret_size);
}

static int get_device_ids(struct object *which, uint64_t type, uint32_t room, struct object **ret, uint32_t *ret_count)
{
	int minors[NODES_MAX];
	uint32_t count = type & (DEVICE_TYPE_GPU | 1) ? (uint32_t)nodes_reachable(minors) : 0;

	(void)which;
	if (ret_count)
		*ret_count = count;
	for (uint32_t i = 0; ret && i < count && i < room; i++) {
		devices[i].dispatch = &table;
		ret[i] = &devices[i];
	}
	return count > 0 ? SUCCESS : DEVICE_NOT_FOUND;
}

static int get_device_info(struct object *device, uint32_t what, size_t room, void *ret, size_t *ret_size)
{
	const uint64_t type = DEVICE_TYPE_GPU;

	(void)device;
	return what == 0x1000 ? answer(&type, sizeof(type), room, ret, ret_size)
			      : answer_text(device_texts, what, room, ret, ret_size);
}

static const struct dispatch table = {
	.get_platform_ids = get_platform_ids,
	.get_platform_info = get_platform_info,
	.get_device_ids = get_device_ids,
	.get_device_info = get_device_info,
};

EXPORT int clGetPlatformInfo(struct object *which, uint32_t what, size_t room, void *ret, size_t *ret_size);
EXPORT void *clGetExtensionFunctionAddress(const char *name);

int clGetPlatformInfo(struct object *which, uint32_t what, size_t room, void *ret, size_t *ret_size)
{
	return get_platform_info(which, what, room, ret, ret_size);
}

void *clGetExtensionFunctionAddress(const char *name)
{
	return strcmp(name, "clIcdGetPlatformIDsKHR") == 0 ? (void *)get_platform_ids : NULL;
}
