/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The Vulkan driver of a native host, as much as a loader and vulkaninfo need to list it: Vulkan 1.0, a physical device for
 * each GPU that this process may open. Layouts are those of Khronos' vulkan_core.h and vk_icd.h.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "nodes.h"

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, INCOMPLETE = 5, INITIALIZATION_FAILED = -3, FORMAT_NOT_SUPPORTED = -11 };
enum { LOADER_MAGIC = 0x01cdc0de, LOADER_VERSION = 5, VERSION_1_0 = 1 << 22, DISCRETE_GPU = 2 };

/* A loader keeps its own pointer in the first word of every object, and wants to find this there. */
struct object {
	uintptr_t loader;
};

struct properties {
	uint32_t api, driver, vendor, device, type;
	char name[256];
	uint8_t cache_uuid[16];
	uint64_t limits[63];
	uint32_t sparse[5];
};

struct queue_family {
	uint32_t flags, count, timestamp_bits, granularity[3];
};

static struct object instance, physical[NODES_MAX], logical;

static int32_t create_instance(const void *info, const void *allocator, struct object **ret)
{
	(void)info;
	(void)allocator;
	if (!node_reachable("/dev/nvidiactl"))
		return INITIALIZATION_FAILED;
	instance.loader = LOADER_MAGIC;
	*ret = &instance;
	return SUCCESS;
}

static int32_t enumerate_physical_devices(struct object *which, uint32_t *count, struct object **ret)
{
	int minors[NODES_MAX];
	uint32_t found = (uint32_t)nodes_reachable(minors), room = *count;

	(void)which;
	*count = ret && room < found ? room : found;
	for (uint32_t i = 0; ret && i < *count; i++) {
		physical[i].loader = LOADER_MAGIC;
		ret[i] = &physical[i];
	}
	return ret && room < found ? INCOMPLETE : SUCCESS;
}

static void get_properties(struct object *device, struct properties *ret)
{
	(void)device;
	*ret = (struct properties){.api = VERSION_1_0, .vendor = 0x10de, .device = 0x2335, .type = DISCRETE_GPU};
	(void)snprintf(ret->name, sizeof(ret->name), "Simulated GPU of driver %s", DRIVER);
}

static void get_queue_families(struct object *device, uint32_t *count, struct queue_family *ret)
{
	(void)device;
	if (ret && *count > 0)
		*ret = (struct queue_family){.flags = 7, .count = 1, .granularity = {1, 1, 1}};
	*count = 1;
}

/* The numbers of kinds and of heaps of memory, and what is between them. */
static void get_memory(struct object *device, uint32_t ret[130])
{
	(void)device;
	memset(ret, 0, 130 * sizeof(*ret));
}

static void get_features(struct object *device, uint32_t ret[55])
{
	(void)device;
	memset(ret, 0, 55 * sizeof(*ret));
}

static void get_format(struct object *device, uint32_t format, uint32_t ret[3])
{
	(void)device;
	(void)format;
	memset(ret, 0, 3 * sizeof(*ret));
}

static int32_t get_image_format(void)
{
	return FORMAT_NOT_SUPPORTED;
}

static void get_sparse_formats(struct object *device, uint32_t format, uint32_t type, uint32_t samples, uint32_t usage,
			       uint32_t tiling, uint32_t *count, void *ret)
{
	(void)device, (void)format, (void)type, (void)samples, (void)usage, (void)tiling, (void)ret;
	*count = 0;
}

static int32_t enumerate_extensions(const void *device_or_layer, const void *layer, uint32_t *count, void *ret)
{
	(void)device_or_layer, (void)layer, (void)ret;
	*count = 0;
	return SUCCESS;
}

static int32_t enumerate_instance_extensions(const void *layer, uint32_t *count, void *ret)
{
	(void)layer, (void)ret;
	*count = 0;
	return SUCCESS;
}

static int32_t create_device(struct object *device, const void *info, const void *allocator, struct object **ret)
{
	(void)device, (void)info, (void)allocator;
	logical.loader = LOADER_MAGIC;
	*ret = &logical;
	return SUCCESS;
}

/* What is destroyed was never made; what else a device is asked for, it does not have. */
static int32_t nothing(void)
{
	return FORMAT_NOT_SUPPORTED;
}

static void *get_device_function(struct object *device, const char *name)
{
	(void)device;
	/* Only functions of extensions have names that end in capitals. */
	return name[strlen(name) - 1] >= 'a' ? (void *)nothing : NULL;
}

EXPORT int32_t vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version);
EXPORT void *vk_icdGetInstanceProcAddr(struct object *which, const char *name);

int32_t vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version)
{
	if (*version > LOADER_VERSION)
		*version = LOADER_VERSION;
	return SUCCESS;
}

void *vk_icdGetInstanceProcAddr(struct object *which, const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} functions[] = {
		{"vkCreateInstance", create_instance},
		{"vkDestroyInstance", nothing},
		{"vkEnumerateInstanceExtensionProperties", enumerate_instance_extensions},
		{"vkEnumeratePhysicalDevices", enumerate_physical_devices},
		{"vkGetPhysicalDeviceProperties", get_properties},
		{"vkGetPhysicalDeviceFeatures", get_features},
		{"vkGetPhysicalDeviceQueueFamilyProperties", get_queue_families},
		{"vkGetPhysicalDeviceMemoryProperties", get_memory},
		{"vkGetPhysicalDeviceFormatProperties", get_format},
		{"vkGetPhysicalDeviceImageFormatProperties", get_image_format},
		{"vkGetPhysicalDeviceSparseImageFormatProperties", get_sparse_formats},
		{"vkEnumerateDeviceExtensionProperties", enumerate_extensions},
		{"vkCreateDevice", create_device},
		{"vkGetDeviceProcAddr", get_device_function},
	};

	(void)which;
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (strcmp(name, functions[i].name) == 0)
			return functions[i].function;
	return NULL;
}
