/* SPDX-License-Identifier: Apache-2.0 */

/* Devices, as far as all of them are alike. */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

static void device_ordinals(void)
{
	int count = 0, device = -7;

	OK(cu.cuDeviceGetCount(&count));
	TRUE(count >= 1);
	IS(101, cu.cuDeviceGet(&device, -1));
	IS(101, cu.cuDeviceGet(&device, count));
	OK(cu.cuDeviceGet(&device, 0));
	IS(0, device);
	IS(1, cu.cuDeviceGet(NULL, 0));
	IS(1, cu.cuDeviceGetCount(NULL));
}

static void device_name(void)
{
	char name[256] = "", small[5] = "xxxx";

	OK(cu.cuDeviceGetName(name, sizeof(name), 0));
	TRUE(strlen(name) > 4);
	OK(cu.cuDeviceGetName(small, 4, 0));
	TRUE(strncmp(small, name, 3) == 0 && small[3] == '\0');
	IS(101, cu.cuDeviceGetName(name, sizeof(name), 77));
	IS(1, cu.cuDeviceGetName(NULL, 10, 0));
}

static void device_attributes(void)
{
	/* Threads of a block, its dimensions, warp, shared memory, unified addressing, streams' priorities. */
	static const int attributes[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 31, 41, 78, 90};
	int value;

	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		value = -1;
		OK(cu.cuDeviceGetAttribute(&value, attributes[i], 0));
		NOTE(value);
	}
}

static void device_attribute_errors(void)
{
	int value;

	IS(1, cu.cuDeviceGetAttribute(&value, 0, 0));
	IS(1, cu.cuDeviceGetAttribute(&value, 100000, 0));
	IS(1, cu.cuDeviceGetAttribute(&value, -1, 0));
	IS(101, cu.cuDeviceGetAttribute(&value, 1, -1));
	IS(1, cu.cuDeviceGetAttribute(NULL, 1, 0));
}

static void device_uuid(void)
{
	static const CUuuid nothing;
	CUuuid first = {{0}}, second = {{0}};

	OK(cu.cuDeviceGetUuid(&first, 0));
	OK(cu.cuDeviceGetUuid_v2(&second, 0));
	TRUE(memcmp(&first, &second, sizeof(first)) == 0);
	TRUE(memcmp(&first, &nothing, sizeof(first)) != 0);
	IS(101, cu.cuDeviceGetUuid(&first, 99));
	IS(1, cu.cuDeviceGetUuid(NULL, 0));
}

static void device_luid(void)
{
	char luid[8];
	unsigned mask;

	NOTE(cu.cuDeviceGetLuid(luid, &mask, 0));
}

static void device_memory(void)
{
	size_t total = 0, free_bytes = 0, all = 0;

	OK(cu.cuDeviceTotalMem_v2(&total, 0));
	TRUE(total >= 256 << 20);
	OK(cu.cuMemGetInfo_v2(&free_bytes, &all));
	TRUE(all <= total && all >= total / 2);
	TRUE(free_bytes <= all);
	IS(101, cu.cuDeviceTotalMem_v2(&total, 50));
	IS(1, cu.cuDeviceTotalMem_v2(NULL, 0));
}

static void device_pci(void)
{
	char id[32] = "", small[6];
	int device = -1;

	OK(cu.cuDeviceGetPCIBusId(id, sizeof(id), 0));
	IS(12, (int)strlen(id));
	OK(cu.cuDeviceGetByPCIBusId(&device, id));
	IS(0, device);
	IS(101, cu.cuDeviceGetByPCIBusId(&device, "0000:fe:1f.7"));
	NOTE(cu.cuDeviceGetByPCIBusId(&device, "nonsense"));
	NOTE(cu.cuDeviceGetPCIBusId(small, 0, 0));
	IS(1, cu.cuDeviceGetByPCIBusId(&device, NULL));
}

/* Without the function, without the domain, with a domain as NVML writes it, and in the other case. */
static void device_pci_forms(void)
{
	char id[32] = "", form[32];
	int device = -1;

	OK(cu.cuDeviceGetPCIBusId(id, sizeof(id), 0));
	(void)snprintf(form, sizeof(form), "%.10s", id);
	OK(cu.cuDeviceGetByPCIBusId(&device, form));
	IS(0, device);
	device = -1;
	if (strncmp(id, "0000:", 5) == 0)
		OK(cu.cuDeviceGetByPCIBusId(&device, id + 5));
	IS(0, device);
	device = -1;
	(void)snprintf(form, sizeof(form), "0000%s", id);
	OK(cu.cuDeviceGetByPCIBusId(&device, form));
	IS(0, device);
	for (char *at = form; *at; at++)
		*at = (char)toupper((unsigned char)*at);
	OK(cu.cuDeviceGetByPCIBusId(&device, form));
}

static void device_capability(void)
{
	int major = 0, minor = -1, attribute = 0;

	OK(cu.cuDeviceComputeCapability(&major, &minor, 0));
	OK(cu.cuDeviceGetAttribute(&attribute, 75, 0));
	TRUE(major == attribute && major >= 5);
	OK(cu.cuDeviceGetAttribute(&attribute, 76, 0));
	TRUE(minor == attribute);
}

static void device_properties(void)
{
	CUdevprop properties;
	int warp = 0;

	memset(&properties, 0, sizeof(properties));
	OK(cu.cuDeviceGetProperties(&properties, 0));
	OK(cu.cuDeviceGetAttribute(&warp, 10, 0));
	NOTE(properties.max_threads_per_block);
	NOTE(properties.max_threads_dim[2]);
	NOTE(properties.max_grid_size[1]);
	NOTE(properties.shared_memory_per_block);
	TRUE(properties.simd_width == warp);
	IS(101, cu.cuDeviceGetProperties(&properties, 9));
}

static void device_peers(void)
{
	int value = -1;

	OK(cu.cuDeviceCanAccessPeer(&value, 0, 0));
	IS(0, value);
	IS(101, cu.cuDeviceCanAccessPeer(&value, 0, 63));
	NOTE(cu.cuDeviceGetP2PAttribute(&value, 2, 0, 0));
	IS(101, cu.cuDeviceGetP2PAttribute(&value, 2, 0, 63));
}

static void device_affinity(void)
{
	int value = -1;

	OK(cu.cuDeviceGetExecAffinitySupport(&value, 0, 0));
	IS(0, value);
	NOTE(cu.cuDeviceGetExecAffinitySupport(&value, 55, 0));
}

static void device_texture(void)
{
	size_t width = 0;

	OK(cu.cuDeviceGetTexture1DLinearMaxWidth(&width, 0x20, 4, 0));
	TRUE(width >= 1 << 20);
	IS(101, cu.cuDeviceGetTexture1DLinearMaxWidth(&width, 0x20, 4, 63));
}

const struct check device_checks[] = {
	{"ordinals", device_ordinals, false},
	{"name, cut to its room", device_name, false},
	{"attributes", device_attributes, false},
	{"attributes that are none", device_attribute_errors, false},
	{"UUID", device_uuid, false},
	{"LUID", device_luid, false},
	{"total memory", device_memory, false},
	{"PCI address", device_pci, false},
	{"PCI address in other forms", device_pci_forms, false},
	{"compute capability", device_capability, false},
	{"properties", device_properties, false},
	{"peers", device_peers, false},
	{"execution affinity", device_affinity, false},
	{"width of a texture", device_texture, false},
	END,
};
