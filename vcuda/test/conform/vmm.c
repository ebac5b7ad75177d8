/* SPDX-License-Identifier: Apache-2.0 */

/* Virtual memory: addresses, memory, and what is mapped where. */

#include "check.h"

enum { PIECE = 2 << 20 };

static const CUmemAllocationProp properties = {.type = 1, .location = {1, 0}};
static const CUmemAccessDesc access = {{1, 0}, 3};

static void vmm_granularity(void)
{
	CUmemAllocationProp wrong = properties;
	size_t size = 0;

	OK(cu.cuMemGetAllocationGranularity(&size, &properties, 0));
	NOTE(size);
	OK(cu.cuMemGetAllocationGranularity(&size, &properties, 1));
	NOTE(size);
	IS(1, cu.cuMemGetAllocationGranularity(NULL, &properties, 0));
	IS(1, cu.cuMemGetAllocationGranularity(&size, NULL, 0));
	wrong.location.id = 44;
	NOTE(cu.cuMemGetAllocationGranularity(&size, &wrong, 0));
}

static void vmm_reserve(void)
{
	CUdeviceptr address = 0;

	OK(cu.cuMemAddressReserve(&address, 4 * PIECE, 0, 0, 0));
	TRUE(address && address % PIECE == 0);
	NOTE(cu.cuMemAddressFree(address, PIECE));
	NOTE(cu.cuMemAddressFree(address + PIECE, 3 * PIECE));
	OK(cu.cuMemAddressFree(address, 4 * PIECE));
	NOTE(cu.cuMemAddressFree(address, 4 * PIECE));
	IS(1, cu.cuMemAddressReserve(&address, 4096 + 1, 0, 0, 0));
	IS(1, cu.cuMemAddressReserve(&address, 0, 0, 0, 0));
	IS(1, cu.cuMemAddressReserve(NULL, PIECE, 0, 0, 0));
	OK(cu.cuMemAddressReserve(&address, PIECE, 64 << 20, 0, 0));
	TRUE(address % (64 << 20) == 0);
	OK(cu.cuMemAddressFree(address, PIECE));
}

static void vmm_create(void)
{
	CUmemGenericAllocationHandle handle = 0;
	CUmemAllocationProp found, wrong = properties;

	OK(cu.cuMemCreate(&handle, PIECE, &properties, 0));
	OK(cu.cuMemGetAllocationPropertiesFromHandle(&found, handle));
	IS(1, found.type);
	IS(1, found.location.type);
	IS(0, found.location.id);
	OK(cu.cuMemRelease(handle));
	IS(1, cu.cuMemCreate(&handle, PIECE + 4096, &properties, 0));
	IS(1, cu.cuMemCreate(&handle, 0, &properties, 0));
	IS(2, cu.cuMemCreate(&handle, (size_t)1 << 50, &properties, 0));
	wrong.location.id = 44;
	NOTE(cu.cuMemCreate(&handle, PIECE, &wrong, 0));
	wrong = properties;
	wrong.type = 0;
	IS(1, cu.cuMemCreate(&handle, PIECE, &wrong, 0));
	NOTE(cu.cuMemCreate(&handle, PIECE, &properties, 1));
}

static CUdeviceptr vmm_make(size_t pieces)
{
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr address = 0;

	OK(cu.cuMemAddressReserve(&address, pieces * PIECE, 0, 0, 0));
	for (size_t i = 0; i < pieces; i++) {
		OK(cu.cuMemCreate(&handle, PIECE, &properties, 0));
		OK(cu.cuMemMap(address + i * PIECE, PIECE, 0, handle, 0));
		OK(cu.cuMemRelease(handle));
	}
	return address;
}

static void vmm_end(CUdeviceptr address, size_t pieces)
{
	OK(cu.cuMemUnmap(address, pieces * PIECE));
	OK(cu.cuMemAddressFree(address, pieces * PIECE));
}

static void vmm_use(void)
{
	CUdeviceptr address = vmm_make(2);
	uint32_t value = 77, count = 1;
	CUdeviceptr at = address + PIECE - 4;

	OK(cu.cuMemSetAccess(address, 2 * PIECE, &access, 1));
	OK(cu.cuMemsetD32_v2(address, 5, 2 * PIECE / 4));
	OK(check_launch("fill", 32, NULL, PARAMETERS(&at, &value, &count)));
	IS(77, check_word(address + PIECE - 4));
	IS(5, check_word(address + PIECE));
	vmm_end(address, 2);
}

static void vmm_no_access(void)
{
	CUdeviceptr address = vmm_make(1);
	uint32_t value = 77, count = 1;

	OK(check_launch("fill", 32, NULL, PARAMETERS(&address, &value, &count)));
	IS(700, cu.cuCtxSynchronize());
	IS(700, cu.cuCtxSynchronize());
}

static void vmm_read_only(void)
{
	CUmemAccessDesc reading = {{1, 0}, 1};
	CUdeviceptr address = vmm_make(1);

	NOTE(cu.cuMemSetAccess(address, PIECE, &reading, 1));
	vmm_end(address, 1);
}

static void vmm_get_access(void)
{
	CUmemLocation location = {1, 0};
	CUdeviceptr address = vmm_make(1);
	unsigned long long flags = 9;

	OK(cu.cuMemGetAccess(&flags, &location, address));
	IS(0, (long long)flags);
	OK(cu.cuMemSetAccess(address, PIECE, &access, 1));
	OK(cu.cuMemGetAccess(&flags, &location, address));
	IS(3, (long long)flags);
	vmm_end(address, 1);
	NOTE(cu.cuMemGetAccess(&flags, &location, address));
}

static void vmm_map_errors(void)
{
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr address = 0;

	OK(cu.cuMemAddressReserve(&address, 2 * PIECE, 0, 0, 0));
	OK(cu.cuMemCreate(&handle, PIECE, &properties, 0));
	IS(801, cu.cuMemMap(address, 2 * PIECE, 0, handle, 0));
	IS(801, cu.cuMemMap(address, PIECE, PIECE, handle, 0));
	IS(1, cu.cuMemMap(address + 4096, PIECE, 0, handle, 0));
	IS(1, cu.cuMemMap(address, PIECE, 0, handle, 1));
	NOTE(cu.cuMemSetAccess(address, PIECE, &access, 1));
	OK(cu.cuMemMap(address, PIECE, 0, handle, 0));
	NOTE(cu.cuMemMap(address, PIECE, 0, handle, 0));
	OK(cu.cuMemMap(address + PIECE, PIECE, 0, handle, 0));
	OK(cu.cuMemSetAccess(address, 2 * PIECE, &access, 1));
	OK(cu.cuMemsetD32_v2(address, 31, 1));
	IS(31, check_word(address + PIECE));
	OK(cu.cuMemRelease(handle));
	vmm_end(address, 2);
}

static void vmm_unmap_errors(void)
{
	CUdeviceptr address = vmm_make(2);

	IS(1, cu.cuMemUnmap(address, PIECE / 2));
	IS(1, cu.cuMemUnmap(address + 4096, PIECE));
	OK(cu.cuMemUnmap(address, PIECE));
	NOTE(cu.cuMemUnmap(address, PIECE));
	OK(cu.cuMemUnmap(address + PIECE, PIECE));
	OK(cu.cuMemAddressFree(address, 2 * PIECE));
}

static void vmm_retain(void)
{
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr address = vmm_make(1);

	OK(cu.cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)address));
	TRUE(handle != 0);
	OK(cu.cuMemRelease(handle));
	vmm_end(address, 1);
	NOTE(cu.cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)address));
}

/* What is known of an address, of which memory is mapped to the second half of what is reserved. */
static void vmm_pointer(void)
{
	enum { CONTEXT = 1, TYPE, ORDINAL = 9, START = 11, SIZE, MAPPED };
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr address = 0, start = 0;
	CUcontext of = context;
	int ordinal = 9, mapped = 9;
	unsigned type = 9;
	size_t bytes = 0;

	OK(cu.cuMemAddressReserve(&address, 2 * PIECE, 0, 0, 0));
	OK(cu.cuMemCreate(&handle, PIECE, &properties, 0));
	OK(cu.cuMemMap(address + PIECE, PIECE, 0, handle, 0));
	OK(cu.cuMemRelease(handle));
	OK(cu.cuPointerGetAttribute(&of, CONTEXT, address + PIECE));
	OK(cu.cuPointerGetAttribute(&type, TYPE, address + PIECE));
	OK(cu.cuPointerGetAttribute(&ordinal, ORDINAL, address + PIECE + 5));
	OK(cu.cuPointerGetAttribute(&mapped, MAPPED, address + 2 * PIECE - 1));
	TRUE(!of && type == 2 && ordinal == 0 && mapped & 1);
	OK(cu.cuPointerGetAttribute(&start, START, address + PIECE));
	OK(cu.cuPointerGetAttribute(&bytes, SIZE, address + PIECE));
	TRUE(start == address && bytes == 2 * PIECE);
	OK(cu.cuMemUnmap(address + PIECE, PIECE));
	OK(cu.cuMemAddressFree(address, 2 * PIECE));
}

/* What memory has around an address. Driver 580 on an H100 does not know it where nobody has set access. */
static void vmm_range(void)
{
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr address = 0, start = 0;
	size_t bytes = 0;

	OK(cu.cuMemAddressReserve(&address, 2 * PIECE, 0, 0, 0));
	OK(cu.cuMemCreate(&handle, PIECE, &properties, 0));
	OK(cu.cuMemMap(address + PIECE, PIECE, 0, handle, 0));
	OK(cu.cuMemRelease(handle));
	NOTE(cu.cuMemGetAddressRange_v2(&start, &bytes, address + PIECE));
	OK(cu.cuMemSetAccess(address + PIECE, PIECE, &access, 1));
	NOTE(cu.cuMemGetAddressRange_v2(&start, &bytes, address + PIECE + 77));
	NOTE(start == address + PIECE);
	NOTE(bytes == PIECE);
	NOTE(cu.cuMemGetAddressRange_v2(&start, &bytes, address));
	OK(cu.cuMemUnmap(address + PIECE, PIECE));
	NOTE(cu.cuMemGetAddressRange_v2(&start, &bytes, address + PIECE));
	OK(cu.cuMemAddressFree(address, 2 * PIECE));
}

static void vmm_remap(void)
{
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr address = 0;

	OK(cu.cuMemAddressReserve(&address, 2 * PIECE, 0, 0, 0));
	OK(cu.cuMemCreate(&handle, PIECE, &properties, 0));
	OK(cu.cuMemMap(address, PIECE, 0, handle, 0));
	OK(cu.cuMemSetAccess(address, PIECE, &access, 1));
	OK(cu.cuMemsetD32_v2(address, 1234, 1));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuMemUnmap(address, PIECE));
	OK(cu.cuMemMap(address + PIECE, PIECE, 0, handle, 0));
	OK(cu.cuMemSetAccess(address + PIECE, PIECE, &access, 1));
	IS(1234, check_word(address + PIECE));
	OK(cu.cuMemUnmap(address + PIECE, PIECE));
	OK(cu.cuMemRelease(handle));
	OK(cu.cuMemAddressFree(address, 2 * PIECE));
}

static void vmm_info(void)
{
	size_t before = 0, after = 0, total = 0;
	CUmemGenericAllocationHandle handle = 0;

	OK(cu.cuMemGetInfo_v2(&before, &total));
	OK(cu.cuMemCreate(&handle, 32 << 20, &properties, 0));
	OK(cu.cuMemGetInfo_v2(&after, &total));
	NOTE((before - after) >> 20);
	OK(cu.cuMemRelease(handle));
	OK(cu.cuMemGetInfo_v2(&after, &total));
	TRUE(before == after);
}

static void vmm_export(void)
{
	CUmemGenericAllocationHandle handle = 0;
	int fd = -1;

	OK(cu.cuMemCreate(&handle, PIECE, &properties, 0));
	NOTE(cu.cuMemExportToShareableHandle(&fd, handle, 1, 0) != 0); /* which one: share.c */
	OK(cu.cuMemRelease(handle));
}

/* Memory of the host: what NCCL asks first. */
static void vmm_host_granularity(void)
{
	CUmemAllocationProp host = properties;
	size_t size = 0;

	host.location.type = 3;
	host.requested_handle_types = 1;
	NOTE(cu.cuMemGetAllocationGranularity(&size, &host, 0));
	NOTE(size);
}

static void vmm_shareable(void)
{
	CUmemAllocationProp shareable = properties;
	CUmemGenericAllocationHandle handle = 0;
	size_t size = 0;

	shareable.requested_handle_types = 1;
	OK(cu.cuMemGetAllocationGranularity(&size, &shareable, 0));
	OK(cu.cuMemCreate(&handle, PIECE, &shareable, 0));
	OK(cu.cuMemRelease(handle));
}

const struct check vmm_checks[] = {
	{"granularity", vmm_granularity, false},
	{"reserving addresses", vmm_reserve, false},
	{"making memory", vmm_create, false},
	{"mapped and used", vmm_use, false},
	{"no access before it is set", vmm_no_access, true},
	{"read only", vmm_read_only, true},
	{"access of an address", vmm_get_access, false},
	{"mapping wrongly", vmm_map_errors, false},
	{"unmapping a part", vmm_unmap_errors, false},
	{"the handle of an address", vmm_retain, false},
	{"mapped elsewhere it is the same memory", vmm_remap, false},
	{"what is free", vmm_info, false},
	{"exporting what was not made for it", vmm_export, false},
	{"made to be shared", vmm_shareable, false},
	{"granularity of memory of the host", vmm_host_granularity, false},
	{"what is known of an address", vmm_pointer, false},
	{"the range of an address", vmm_range, true},
	END,
};
