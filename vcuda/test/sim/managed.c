/* SPDX-License-Identifier: Apache-2.0 */

/* Memory that the host and all devices have at one address, and where its pages should be. They move nowhere here. */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim.h"

enum { PAGE = 4096, GLOBAL = 1, HOST = 2, SINGLE = 4 };
enum { READ_MOSTLY = 1, UNSET_READ_MOSTLY, PREFER, UNSET_PREFER, ACCESSED, UNSET_ACCESSED };
enum { CPU = -1, NO_DEVICE = -2 };
enum { LOCATION_NONE, LOCATION_DEVICE, LOCATION_HOST, LOCATION_NUMA, LOCATION_NUMA_CURRENT };
enum {
	OF_READ_MOSTLY = 1,
	OF_PREFERRED,
	OF_ACCESSED,
	OF_LAST,
	OF_PREFERRED_TYPE,
	OF_PREFERRED_ID,
	OF_LAST_TYPE,
	OF_LAST_ID
};

/* Of each page. accessed: a bit for the host, and one for each device above it. */
struct advice {
	CUmemLocation preferred, last;
	unsigned accessed;
	bool read_mostly;
};

CUresult managed_alloc(CUcontext context, size_t bytes, CUdeviceptr *ret)
{
	void *memory = memory_map((bytes + PAGE - 1) & ~(size_t)(PAGE - 1));
	struct range *range;

	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range = address_map_add(RANGE_MANAGED, memory, bytes, context);
	range->advice = calloc(bytes / PAGE + 1, sizeof(*range->advice));
	if (!range->advice)
		abort();
	*ret = (CUdeviceptr)(uintptr_t)memory;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr *ret, size_t bytes, unsigned flags)
{
	CUcontext context;
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || !bytes || (flags != GLOBAL && flags != HOST), CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(!config_number("MANAGED", 1), CUDA_ERROR_NOT_SUPPORTED);
	r = capture_forbids_any();
	LEAVE_IF(r, r);
	LEAVE(managed_alloc(context, bytes, ret));
}

/* Whether all of it is managed memory, and which pages of it. */
static bool managed_find(CUdeviceptr pointer, size_t bytes, struct advice **ret, size_t *ret_pages)
{
	struct range *range = address_map_find(pointer);
	size_t offset, end;

	if (!range || range->kind != RANGE_MANAGED || bytes == 0)
		return false;
	offset = pointer - range->start;
	end = ((range->size + PAGE - 1) & ~(size_t)(PAGE - 1));
	if (bytes > end - offset)
		return false;
	*ret = &range->advice[offset / PAGE];
	*ret_pages = (offset % PAGE + bytes + PAGE - 1) / PAGE;
	return true;
}

static unsigned managed_bit(CUmemLocation location)
{
	return location.type == LOCATION_DEVICE ? 2U << location.id : 1;
}

static void managed_advise(struct advice *advice, int what, CUmemLocation location)
{
	const CUmemLocation nowhere = {LOCATION_NONE, 0};

	if (what == READ_MOSTLY || what == UNSET_READ_MOSTLY)
		advice->read_mostly = what == READ_MOSTLY;
	else if (what == PREFER || what == UNSET_PREFER)
		advice->preferred = what == PREFER ? location : nowhere;
	else if (what == ACCESSED)
		advice->accessed |= managed_bit(location);
	else
		advice->accessed &= ~managed_bit(location);
}

static bool managed_is_host(CUmemLocation location)
{
	return location.type >= LOCATION_HOST && location.type <= LOCATION_NUMA_CURRENT;
}

static CUmemLocation managed_location(CUdevice device)
{
	return device == CPU ? (CUmemLocation){LOCATION_HOST, CPU} : (CUmemLocation){LOCATION_DEVICE, device};
}

static CUresult managed_advise_all(CUdeviceptr pointer, size_t bytes, int what, CUmemLocation location)
{
	struct advice *advice;
	size_t pages;

	if (what < READ_MOSTLY || what > UNSET_ACCESSED || !managed_find(pointer, bytes, &advice, &pages))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < pages; i++)
		managed_advise(&advice[i], what, location);
	return CUDA_SUCCESS;
}

CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t bytes, int what, CUmemLocation location)
{
	bool device = location.type == LOCATION_DEVICE && device_get(location.id);
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF((!device && !managed_is_host(location)) || (what >= ACCESSED && location.type > LOCATION_HOST),
		 CUDA_ERROR_INVALID_VALUE);
	LEAVE(managed_advise_all(pointer, bytes, what, device ? location : managed_location(CPU)));
}

CUresult cuMemAdvise(CUdeviceptr pointer, size_t bytes, int what, CUdevice device)
{
	bool placed = what == PREFER || what == ACCESSED || what == UNSET_ACCESSED;
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(placed && device != CPU && !device_get(device), CUDA_ERROR_INVALID_DEVICE);
	LEAVE(managed_advise_all(pointer, bytes, what, managed_location(device)));
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned flags,
			       CUstream handle)
{
	struct advice *advice;
	CUcontext context;
	CUstream stream;
	size_t pages;
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(stream_find(context, handle, &stream), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(location.type == LOCATION_DEVICE && !device_get(location.id), CUDA_ERROR_INVALID_DEVICE);
	if (managed_is_host(location))
		location = managed_location(CPU);
	LEAVE_IF(flags || location.type == LOCATION_NONE || !managed_find(pointer, bytes, &advice, &pages),
		 CUDA_ERROR_INVALID_VALUE);
	r = capture_forbids(stream);
	LEAVE_IF(r, r);
	for (size_t i = 0; i < pages; i++)
		advice[i].last = location;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemPrefetchAsync(CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream)
{
	return cuMemPrefetchAsync_v2(pointer, bytes, managed_location(device), 0, stream);
}

/* ---- asking ---- */

static bool managed_is_same(CUmemLocation a, CUmemLocation b)
{
	return a.type == b.type && a.id == b.id;
}

/* Where all of them are; nowhere if not all are at one place. */
static CUmemLocation managed_place(const struct advice *advice, size_t pages, bool last)
{
	const CUmemLocation first = last ? advice->last : advice->preferred;

	for (size_t i = 1; i < pages; i++)
		if (!managed_is_same(first, last ? advice[i].last : advice[i].preferred))
			return (CUmemLocation){LOCATION_NONE, 0};
	return first;
}

static int managed_number(CUmemLocation location)
{
	if (location.type == LOCATION_DEVICE)
		return location.id;
	return location.type == LOCATION_NONE ? NO_DEVICE : CPU;
}

static void managed_list(const struct advice *advice, size_t pages, int *ret, size_t count)
{
	unsigned all = UINT32_MAX;
	size_t used = 0;

	for (size_t i = 0; i < pages; i++)
		all &= advice[i].accessed;
	for (int i = 0; i < SIM_GPUS_MAX && used < count; i++)
		if (all >> (i + 1) & 1)
			ret[used++] = i;
	if (all & 1 && used < count)
		ret[used++] = CPU;
	while (used < count)
		ret[used++] = NO_DEVICE;
}

static CUresult managed_attribute(void *ret, size_t size, int attribute, CUdeviceptr pointer, size_t bytes)
{
	const bool last = attribute == OF_LAST || attribute >= OF_LAST_TYPE;
	bool read_mostly = true;
	struct advice *advice;
	CUmemLocation place;
	size_t pages;

	if (!ret || attribute < OF_READ_MOSTLY || attribute > OF_LAST_ID || !size || size % 4 ||
	    (attribute != OF_ACCESSED && size != 4) || !managed_find(pointer, bytes, &advice, &pages))
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == OF_ACCESSED) {
		managed_list(advice, pages, ret, size / 4);
		return CUDA_SUCCESS;
	}
	for (size_t i = 0; i < pages; i++)
		read_mostly &= advice[i].read_mostly;
	place = managed_place(advice, pages, last);
	*(int *)ret = attribute == OF_READ_MOSTLY                                   ? read_mostly
		      : attribute == OF_PREFERRED || attribute == OF_LAST           ? managed_number(place)
		      : attribute == OF_PREFERRED_TYPE || attribute == OF_LAST_TYPE ? place.type
										    : managed_number(place);
	return CUDA_SUCCESS;
}

CUresult cuMemRangeGetAttribute(void *ret, size_t size, int attribute, CUdeviceptr pointer, size_t bytes)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE(managed_attribute(ret, size, attribute, pointer, bytes));
}

CUresult cuMemRangeGetAttributes(void **ret, size_t *sizes, int *attributes, size_t count, CUdeviceptr pointer,
				 size_t bytes)
{
	CUresult r = CUDA_SUCCESS;
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || !sizes || !attributes || !count, CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < count && !r; i++)
		r = managed_attribute(ret[i], sizes[i], attributes[i], pointer, bytes);
	LEAVE(r);
}

CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr pointer, size_t bytes, unsigned flags)
{
	const struct range *range;
	CUcontext context;
	CUstream stream;
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(stream_find(context, handle, &stream), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF((flags != GLOBAL && flags != HOST && flags != SINGLE) || (!handle && flags == SINGLE),
		 CUDA_ERROR_INVALID_VALUE);
	range = address_map_find(pointer);
	LEAVE_IF(!range || range->kind != RANGE_MANAGED || range->start != pointer || (bytes && bytes != range->size),
		 CUDA_ERROR_INVALID_VALUE);
	r = capture_forbids(stream);
	LEAVE(r);
}
