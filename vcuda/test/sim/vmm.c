/* SPDX-License-Identifier: Apache-2.0 */

/* Virtual memory management: reserved addresses, memory behind handles (a memfd each), and what is mapped where. */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim.h"

enum { GRANULARITY = 2 << 20 };

struct allocation {
	struct object object;
	struct device *device;
	size_t size;
	int fd;
	unsigned references, mappings;
	bool taken; /* of another process */
	CUmemAllocationProp properties;
};

static struct mapping {
	struct mapping *next;
	uintptr_t start;
	size_t size;
	struct allocation *allocation;
	int access;
} * mappings;

static struct allocation *vmm_allocation(CUmemGenericAllocationHandle handle)
{
	struct allocation *allocation = (struct allocation *)(uintptr_t)handle;

	return object_is(allocation, OBJECT_ALLOCATION) && allocation->references ? allocation : NULL;
}

static void vmm_drop(struct allocation *allocation)
{
	if (allocation->references || allocation->mappings)
		return;
	if (!allocation->taken)
		device_refund(allocation->device, allocation->size);
	(void)close(allocation->fd);
	object_free(allocation);
}

static struct mapping *vmm_at(uintptr_t address)
{
	for (struct mapping *mapping = mappings; mapping; mapping = mapping->next)
		if (address >= mapping->start && address - mapping->start < mapping->size)
			return mapping;
	return NULL;
}

/* Whether mappings without a hole cover it, of which each one gives this access (bits: 1 read, 2 write). */
static bool vmm_covers(uintptr_t address, size_t size, int access)
{
	uintptr_t end = address + size;

	while (address < end) {
		const struct mapping *mapping = vmm_at(address);

		if (!mapping || (mapping->access & access) != access)
			return false;
		address = mapping->start + mapping->size;
	}
	return true;
}

bool vmm_reaches(uintptr_t address, size_t size, bool write)
{
	return vmm_covers(address, size, write ? 3 : 1);
}

bool vmm_holds(uintptr_t address, size_t size, struct device **ret)
{
	const struct mapping *mapping = vmm_at(address);

	if (!mapping || !vmm_covers(address, size, 0))
		return false;
	if (ret)
		*ret = mapping->allocation->device;
	return true;
}

size_t vmm_range(uintptr_t address, uintptr_t *ret_start)
{
	const struct mapping *mapping = vmm_at(address);

	if (!mapping)
		return 0;
	*ret_start = mapping->start;
	return mapping->size;
}

static CUresult vmm_check(const CUmemAllocationProp *properties)
{
	if (!properties || properties->type != 1 || properties->location.type != 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_get(properties->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *ret, const CUmemAllocationProp *properties, int option)
{
	CUresult r;

	CALL(__func__);
	r = properties && properties->location.type > 1 && properties->location.type < 5 ? CUDA_SUCCESS
										       : vmm_check(properties);
	LEAVE_IF(r && r != CUDA_ERROR_INVALID_DEVICE, r);
	LEAVE_IF(!ret || option < 0 || option > 1, CUDA_ERROR_INVALID_VALUE);
	*ret = GRANULARITY;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemAddressReserve(CUdeviceptr *ret, size_t bytes, size_t alignment, CUdeviceptr wanted,
			     unsigned long long flags)
{
	size_t extra = alignment > GRANULARITY ? alignment : GRANULARITY;
	uintptr_t start, aligned;
	void *memory;

	CALL(__func__);
	(void)wanted;
	LEAVE_IF(!ret || !bytes || bytes % GRANULARITY || flags || (alignment & (alignment - 1)),
		 CUDA_ERROR_INVALID_VALUE);
	memory = mmap(NULL, bytes + extra, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	LEAVE_IF(memory == MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
	start = (uintptr_t)memory;
	aligned = (start + extra - 1) & ~(extra - 1);
	if (aligned > start)
		(void)munmap(memory, aligned - start);
	if (start + extra > aligned)
		(void)munmap((void *)(aligned + bytes), start + extra - aligned);
	(void)address_map_add(ADDRESS_MAP_RESERVED, (void *)aligned, bytes, NULL);
	*ret = aligned;
	LEAVE(CUDA_SUCCESS);
}

static bool vmm_overlaps(uintptr_t start, size_t size)
{
	for (const struct mapping *mapping = mappings; mapping; mapping = mapping->next)
		if (start < mapping->start + mapping->size && mapping->start < start + size)
			return true;
	return false;
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t bytes)
{
	struct range *range;

	CALL(__func__);
	range = address_map_find(pointer);
	LEAVE_IF(!range || range->kind != ADDRESS_MAP_RESERVED || range->start != pointer || range->size != bytes ||
			 vmm_overlaps(pointer, bytes),
		 CUDA_ERROR_INVALID_VALUE);
	(void)munmap((void *)range->start, range->size);
	address_map_remove(range);
	LEAVE(CUDA_SUCCESS);
}

static CUmemGenericAllocationHandle vmm_new(struct device *device, size_t bytes, int fd,
					    const CUmemAllocationProp *properties)
{
	struct allocation *allocation = object_new(OBJECT_ALLOCATION, sizeof(*allocation), NULL);

	allocation->device = device;
	allocation->size = bytes;
	allocation->fd = fd;
	allocation->references = 1;
	allocation->properties = *properties;
	return (CUmemGenericAllocationHandle)(uintptr_t)allocation;
}

/* What it is stands behind the memory, for those who get a descriptor of it. */
CUresult cuMemCreate(CUmemGenericAllocationHandle *ret, size_t bytes, const CUmemAllocationProp *properties,
		     unsigned long long flags)
{
	struct device *device;
	CUresult r;
	int fd;

	CALL(__func__);
	r = vmm_check(properties);
	LEAVE_IF(r, r);
	LEAVE_IF(!ret || !bytes || bytes % GRANULARITY || flags, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(properties->requested_handle_types & ~1, CUDA_ERROR_NOT_SUPPORTED);
	device = device_get(properties->location.id);
	LEAVE_IF(device_charge(device, bytes), CUDA_ERROR_OUT_OF_MEMORY);
	fd = memfd_create("sim-allocation", MFD_CLOEXEC);
	/* A server may not call pwrite(2). */
	if (fd < 0 || lseek(fd, (off_t)bytes, SEEK_SET) < 0 ||
	    write(fd, properties, sizeof(*properties)) != sizeof(*properties)) {
		device_refund(device, bytes);
		LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
	}
	*ret = vmm_new(device, bytes, fd, properties);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct allocation *allocation;

	CALL(__func__);
	allocation = vmm_allocation(handle);
	LEAVE_IF(!allocation, CUDA_ERROR_INVALID_VALUE);
	allocation->references--;
	vmm_drop(allocation);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags)
{
	struct allocation *allocation;
	struct mapping *mapping;
	struct range *range;

	CALL(__func__);
	allocation = vmm_allocation(handle);
	range = address_map_find(pointer);
	LEAVE_IF(allocation && !flags && (offset || bytes > allocation->size), CUDA_ERROR_NOT_SUPPORTED);
	LEAVE_IF(!allocation || flags || !bytes || bytes % GRANULARITY || pointer % GRANULARITY ||
			 bytes > allocation->size,
		 CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(!range || range->kind != ADDRESS_MAP_RESERVED || bytes > range->size - (pointer - range->start) ||
			 vmm_overlaps(pointer, bytes),
		 CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(mmap((void *)(uintptr_t)pointer, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, allocation->fd,
		      0) == MAP_FAILED,
		 CUDA_ERROR_OUT_OF_MEMORY);
	mapping = calloc(1, sizeof(*mapping));
	LEAVE_IF(!mapping, CUDA_ERROR_OUT_OF_MEMORY);
	*mapping = (struct mapping){.next = mappings, .start = pointer, .size = bytes, .allocation = allocation};
	allocation->mappings++;
	mappings = mapping;
	LEAVE(CUDA_SUCCESS);
}

/* Whether mappings begin at its start, end at its end, and leave no hole. */
static bool vmm_is_whole(uintptr_t start, size_t size)
{
	const struct mapping *first = vmm_at(start), *last = size ? vmm_at(start + size - 1) : NULL;

	return first && last && first->start == start && last->start + last->size == start + size &&
	       vmm_covers(start, size, 0);
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes)
{
	struct range *range;

	CALL(__func__);
	range = address_map_find(pointer);
	/* Where nothing is, there is nothing to be done. */
	LEAVE_IF(range && range->kind == ADDRESS_MAP_RESERVED && bytes &&
			 bytes <= range->size - (pointer - range->start) && pointer % GRANULARITY == 0 &&
			 !vmm_overlaps(pointer, bytes),
		 CUDA_SUCCESS);
	LEAVE_IF(!vmm_is_whole(pointer, bytes), CUDA_ERROR_INVALID_VALUE);
	for (struct mapping **place = &mappings; *place;) {
		struct mapping *mapping = *place;

		if (mapping->start < pointer || mapping->start >= pointer + bytes) {
			place = &mapping->next;
			continue;
		}
		*place = mapping->next;
		(void)mmap((void *)mapping->start, mapping->size, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		mapping->allocation->mappings--;
		vmm_drop(mapping->allocation);
		free(mapping);
	}
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
	CALL(__func__);
	LEAVE_IF(!access || !count || !bytes, CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < count; i++) {
		LEAVE_IF(access[i].location.type != 1 || access[i].flags < 0 || access[i].flags == 2 ||
				 access[i].flags > 3,
			 CUDA_ERROR_INVALID_VALUE);
		LEAVE_IF(!device_get(access[i].location.id), CUDA_ERROR_INVALID_DEVICE);
	}
	LEAVE_IF(!vmm_is_whole(pointer, bytes), CUDA_ERROR_INVALID_VALUE);
	for (struct mapping *mapping = mappings; mapping; mapping = mapping->next)
		if (mapping->start >= pointer && mapping->start < pointer + bytes)
			mapping->access = access[0].flags;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemGetAccess(unsigned long long *ret, const CUmemLocation *location, CUdeviceptr pointer)
{
	const struct mapping *mapping;

	CALL(__func__);
	mapping = vmm_at(pointer);
	LEAVE_IF(!ret || !location || location->type != 1 || !device_get(location->id) || !mapping,
		 CUDA_ERROR_INVALID_VALUE);
	*ret = mapping->allocation->device->ordinal == location->id ? (unsigned long long)mapping->access : 0;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *ret, CUmemGenericAllocationHandle handle)
{
	struct allocation *allocation;

	CALL(__func__);
	allocation = vmm_allocation(handle);
	LEAVE_IF(!ret || !allocation, CUDA_ERROR_INVALID_VALUE);
	*ret = allocation->properties;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *ret, void *pointer)
{
	struct mapping *mapping;

	CALL(__func__);
	mapping = vmm_at((uintptr_t)pointer);
	LEAVE_IF(!ret || !mapping, CUDA_ERROR_INVALID_VALUE);
	mapping->allocation->references++;
	*ret = (CUmemGenericAllocationHandle)(uintptr_t)mapping->allocation;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemExportToShareableHandle(void *ret, CUmemGenericAllocationHandle handle, int type,
				      unsigned long long flags)
{
	const struct allocation *allocation;
	int fd;

	CALL(__func__);
	allocation = vmm_allocation(handle);
	LEAVE_IF(!ret || !allocation || flags || type != 1 || !(allocation->properties.requested_handle_types & 1),
		 CUDA_ERROR_INVALID_VALUE);
	fd = dup(allocation->fd);
	LEAVE_IF(fd < 0, CUDA_ERROR_OUT_OF_MEMORY);
	memcpy(ret, &fd, sizeof(fd));
	LEAVE(CUDA_SUCCESS);
}

/* Of the device's memory nothing is taken by who has it besides. */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *ret, void *handle, int type)
{
	CUmemAllocationProp properties;
	struct device *device;
	struct stat st;
	int fd;

	CALL(__func__);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(type != 1, CUDA_ERROR_NOT_SUPPORTED);
	LEAVE_IF(fstat((int)(intptr_t)handle, &st) < 0 || st.st_size % GRANULARITY != sizeof(properties) ||
			 pread((int)(intptr_t)handle, &properties, sizeof(properties),
			       st.st_size - (off_t)sizeof(properties)) != sizeof(properties),
		 CUDA_ERROR_UNKNOWN);
	device = device_get(properties.location.id);
	fd = device ? dup((int)(intptr_t)handle) : -1;
	LEAVE_IF(fd < 0, CUDA_ERROR_UNKNOWN);
	properties.requested_handle_types = 0;
	*ret = vmm_new(device, (size_t)st.st_size - sizeof(properties), fd, &properties);
	((struct allocation *)(uintptr_t)*ret)->taken = true;
	LEAVE(CUDA_SUCCESS);
}
