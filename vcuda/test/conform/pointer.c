/* SPDX-License-Identifier: Apache-2.0 */

/* What is known of a pointer. */

#include <stdlib.h>

#include "check.h"

enum { CONTEXT = 1, TYPE, DEVICE, HOST, SYNC = 6, ID, MANAGED, ORDINAL, IPC, START, SIZE, MAPPED };

static void pointer_device(void)
{
	CUdeviceptr pointer = check_alloc(5000), value = 0;
	CUcontext of = NULL;
	unsigned type = 99, managed = 99;
	int ordinal = -1, mapped = -1;
	size_t size = 0;

	OK(cu.cuPointerGetAttribute(&of, CONTEXT, pointer));
	TRUE(of == context);
	OK(cu.cuPointerGetAttribute(&type, TYPE, pointer + 100));
	IS(2, type);
	OK(cu.cuPointerGetAttribute(&value, DEVICE, pointer + 100));
	TRUE(value == pointer + 100);
	OK(cu.cuPointerGetAttribute(&managed, MANAGED, pointer));
	NOTE(managed & 0xff);
	OK(cu.cuPointerGetAttribute(&ordinal, ORDINAL, pointer));
	IS(0, ordinal);
	OK(cu.cuPointerGetAttribute(&value, START, pointer + 77));
	TRUE(value == pointer);
	OK(cu.cuPointerGetAttribute(&size, SIZE, pointer));
	NOTE(size);
	OK(cu.cuPointerGetAttribute(&mapped, MAPPED, pointer));
	NOTE(mapped & 0xff);
	NOTE(cu.cuPointerGetAttribute(&value, HOST, pointer));
	OK(cu.cuMemFree_v2(pointer));
	IS(1, cu.cuPointerGetAttribute(&type, TYPE, 4096));
}

static void pointer_host(void)
{
	char *pointer = (char *)check_pinned(5000);
	CUdeviceptr value = 0;
	unsigned type = 99;
	void *host = NULL;
	int ordinal = -1;

	OK(cu.cuPointerGetAttribute(&type, TYPE, (uintptr_t)pointer));
	IS(1, type);
	OK(cu.cuPointerGetAttribute(&host, HOST, (uintptr_t)pointer + 5));
	TRUE(host == pointer + 5);
	OK(cu.cuPointerGetAttribute(&value, DEVICE, (uintptr_t)pointer + 5));
	TRUE(value == (uintptr_t)pointer + 5);
	OK(cu.cuPointerGetAttribute(&ordinal, ORDINAL, (uintptr_t)pointer));
	NOTE(ordinal);
	OK(cu.cuMemFreeHost(pointer));
}

static void pointer_unknown(void)
{
	unsigned type = 99;
	char *memory = malloc(64);

	IS(1, cu.cuPointerGetAttribute(&type, TYPE, (uintptr_t)memory));
	IS(1, cu.cuPointerGetAttribute(&type, TYPE, 0));
	IS(1, cu.cuPointerGetAttribute(&type, 999, (uintptr_t)memory));
	free(memory);
}

static void pointer_identity(void)
{
	CUdeviceptr first = check_alloc(4096), second = check_alloc(4096);
	unsigned long long a = 0, b = 0, again = 0;

	OK(cu.cuPointerGetAttribute(&a, ID, first));
	OK(cu.cuPointerGetAttribute(&again, ID, first + 8));
	OK(cu.cuPointerGetAttribute(&b, ID, second));
	TRUE(a == again && a != b);
	OK(cu.cuMemFree_v2(first));
	OK(cu.cuMemFree_v2(second));
}

static void pointer_several(void)
{
	int attributes[] = {TYPE, ORDINAL, DEVICE};
	CUdeviceptr pointer = check_alloc(4096), value = 0;
	unsigned type = 99;
	int ordinal = 99;
	void *data[] = {&type, &ordinal, &value};
	char local[16];

	OK(cu.cuPointerGetAttributes(3, attributes, data, pointer));
	IS(2, type);
	IS(0, ordinal);
	TRUE(value == pointer);
	OK(cu.cuMemFree_v2(pointer));
	type = 99;
	OK(cu.cuPointerGetAttributes(2, attributes, data, (uintptr_t)local));
	IS(0, type);
	NOTE(ordinal);
	NOTE(cu.cuPointerGetAttributes(0, attributes, data, pointer));
}

static void pointer_several_nowhere(void)
{
	int attributes[] = {TYPE, ORDINAL}, type = 99;
	CUdeviceptr pointer = check_alloc(4096);
	void *data[] = {&type, NULL};

	IS(1, cu.cuPointerGetAttributes(2, attributes, data, pointer));
	OK(cu.cuMemFree_v2(pointer));
}

static void pointer_set(void)
{
	CUdeviceptr pointer = check_alloc(4096);
	unsigned value = 1, found = 9;

	OK(cu.cuPointerSetAttribute(&value, SYNC, pointer));
	OK(cu.cuPointerGetAttribute(&found, SYNC, pointer));
	NOTE(found & 0xff);
	IS(1, cu.cuPointerSetAttribute(&value, TYPE, pointer));
	OK(cu.cuMemFree_v2(pointer));
}

const struct check pointer_checks[] = {
	{"of the device", pointer_device, false},
	{"of the host", pointer_host, false},
	{"unknown", pointer_unknown, false},
	{"identity of a piece", pointer_identity, false},
	{"several attributes at once", pointer_several, false},
	{"several attributes, one of them without a place", pointer_several_nowhere, false},
	{"setting an attribute", pointer_set, false},
	END,
};
