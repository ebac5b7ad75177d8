/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Page-locked memory: a memfd that the server makes and registers with the driver, at the same address on both sides,
 * so that a kernel can use the pointers as it does natively and copies go at the speed of the bus.
 */

#include <string.h>
#include <sys/mman.h>

#include "vcuda/client/address_map.h"
#include "vcuda/client/call.h"
#include "vcuda/client/context.h"
#include "vcuda/client_api.h"

enum { HOST_STEP = 65536, HOST_FLAGS = 7, HOST_HOLES = 4096 };

static struct lock host_lock;    /* of what is given out */
static struct lock host_receive; /* while a descriptor comes for what one thread asked for */
static uint64_t host_next; /* offset in the arena of what was never given out, which comes first: 1 TiB lasts long */
static struct {
	uint64_t offset, bytes;
} host_holes[HOST_HOLES]; /* what was given back, by offset */
static unsigned host_hole_count;

static void host_close_hole(unsigned i)
{
	memmove(&host_holes[i], &host_holes[i + 1], (--host_hole_count - i) * sizeof(host_holes[0]));
}

static bool host_take_new(uint64_t bytes, uint64_t *ret)
{
	if (bytes > WIRE_ARENA_BYTES - host_next)
		return false;
	*ret = host_next;
	host_next += bytes;
	return true;
}

/* Return: whether there is a place of so many bytes. */
static bool host_take(uint64_t bytes, uint64_t *ret)
{
	const unsigned last = host_hole_count - 1;
	unsigned i = 0;

	if (host_take_new(bytes, ret))
		return true;
	while (i < host_hole_count && host_holes[i].bytes < bytes)
		i++;
	if (i == host_hole_count) {
		if (i == 0 || host_holes[last].offset + host_holes[last].bytes != host_next)
			return false;
		/* With what is behind it, it may suffice. */
		host_next = host_holes[last].offset;
		host_close_hole(last);
		return host_take_new(bytes, ret);
	}
	*ret = host_holes[i].offset;
	host_holes[i].offset += bytes;
	host_holes[i].bytes -= bytes;
	if (host_holes[i].bytes == 0)
		host_close_hole(i);
	return true;
}

/* Holes that touch become one. One too many is forgotten. */
static void host_give_back(uint64_t offset, uint64_t bytes)
{
	unsigned i = 0;

	while (i < host_hole_count && host_holes[i].offset < offset)
		i++;
	if (i < host_hole_count && offset + bytes == host_holes[i].offset) {
		bytes += host_holes[i].bytes;
		host_close_hole(i);
	}
	if (i > 0 && host_holes[i - 1].offset + host_holes[i - 1].bytes == offset) {
		host_holes[i - 1].bytes += bytes;
		return;
	}
	if (host_hole_count == HOST_HOLES)
		return;
	memmove(&host_holes[i + 1], &host_holes[i], (host_hole_count++ - i) * sizeof(host_holes[0]));
	host_holes[i].offset = offset;
	host_holes[i].bytes = bytes;
}

static void host_leave(uint64_t offset, uint64_t bytes)
{
	LOCK_HOLD(&host_lock);
	host_give_back(offset, bytes);
}

/* The server has sent it before it answered. */
static CUresult host_map(uint64_t offset, size_t bytes)
{
	char byte;
	int fd;

	if (!client_receive(&byte, sizeof(byte), &fd, 1, false) || fd < 0 ||
	    !client_map(fd, (void *)(client.arena + offset), bytes))
		return CUDA_ERROR_UNKNOWN;
	return CUDA_SUCCESS;
}

/* Without a place in both address spaces it is ordinary memory, which copies stage. */
static CUresult host_alloc_plain(void **pointer, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*pointer = memory;
	return CUDA_SUCCESS;
}

static CUresult host_alloc_shared(void **pointer, size_t bytes, unsigned flags)
{
	uint64_t words[] = {0, bytes, flags};
	bool taken;
	CUresult r;

	lock_take(&host_lock);
	taken = host_take(bytes, &words[0]);
	lock_release(&host_lock);
	if (!taken)
		return CUDA_ERROR_OUT_OF_MEMORY;
	LOCK_HOLD(&host_receive);
	r = call_sync(WIRE_ARENA_ADD, words, 3, NULL, 0, NULL, 0);
	if (!r) {
		r = host_map(words[0], bytes);
		if (r && call_sync(WIRE_ARENA_DROP, words, 1, NULL, 0, NULL, 0))
			return r;
	}
	if (r)
		host_leave(words[0], bytes);
	else
		*pointer = (void *)(client.arena + words[0]);
	return r;
}

CUresult on_cuMemHostAlloc(struct context *context, void **pointer, size_t bytes, unsigned flags)
{
	const size_t whole = (bytes + HOST_STEP - 1) & ~(size_t)(HOST_STEP - 1);
	struct range range = {.bytes = bytes, .kind = ADDRESS_MAP_HOST, .flags = flags, .context = context};
	CUresult r;

	if (bytes == 0) {
		*pointer = NULL;
		return CUDA_SUCCESS;
	}
	if (flags & ~(unsigned)HOST_FLAGS || whole < bytes)
		return CUDA_ERROR_INVALID_VALUE;
	r = client.arena ? host_alloc_shared(pointer, whole, flags) : host_alloc_plain(pointer, whole);
	if (r)
		return r;
	range.at = (uint64_t)*pointer;
	return address_map_add(&range);
}

CUresult cuMemAllocHost_v2(void **pointer, size_t bytes)
{
	return cuMemHostAlloc(pointer, bytes, 0);
}

CUresult on_cuMemFreeHost(void *pointer)
{
	uint64_t offset = (uint64_t)pointer - client.arena;
	struct range range;
	size_t whole;
	CUresult r;

	if (!pointer)
		return CUDA_SUCCESS;
	if (!address_map_remove((uint64_t)pointer, 1U << ADDRESS_MAP_HOST, &range))
		return CUDA_ERROR_INVALID_VALUE;
	whole = (range.bytes + HOST_STEP - 1) & ~(size_t)(HOST_STEP - 1);
	if (!client.arena)
		return munmap(pointer, whole) < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	/* Behind all that uses it. */
	r = call_sync(WIRE_ARENA_DROP, &offset, 1, NULL, 0, NULL, 0);
	if (mmap(pointer, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!r)
		host_leave(offset, whole);
	return r;
}

CUresult on_cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned flags)
{
	struct range range;

	if (flags || !address_map_find((uint64_t)host, &range) || !address_map_is_host(&range))
		return CUDA_ERROR_INVALID_VALUE;
	if (!client.arena || range.kind == ADDRESS_MAP_REGISTERED)
		return CUDA_ERROR_NOT_SUPPORTED;
	*device = (CUdeviceptr)host;
	return CUDA_SUCCESS;
}

CUresult on_cuMemHostGetFlags(unsigned *flags, void *host)
{
	struct range range;

	if (!address_map_find((uint64_t)host, &range) || !address_map_is_host(&range))
		return CUDA_ERROR_INVALID_VALUE;
	/* CU_MEMHOSTALLOC_DEVICEMAP: with one address space for all, everything is. */
	*flags = range.flags | 2;
	return CUDA_SUCCESS;
}

/*
 * The pages of the program's own memory cannot become the server's after the fact. So this is page-locked in name:
 * copies go the way of ordinary memory, and the device has no address of it.
 */
CUresult on_cuMemHostRegister_v2(struct context *context, void *pointer, size_t bytes, unsigned flags)
{
	enum { REGISTER_IO_MEMORY = 4, REGISTER_FLAGS = 15 };
	const struct range range = {.at = (uint64_t)pointer,
				    .bytes = bytes,
				    .kind = ADDRESS_MAP_REGISTERED,
				    .flags = flags,
				    .context = context};
	struct range there;

	if (!pointer || bytes == 0 || flags & ~(unsigned)REGISTER_FLAGS || range.at + bytes < range.at)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & REGISTER_IO_MEMORY)
		return call_refuse("cuMemHostRegister of memory of a device");
	if (address_map_find(range.at, &there) || address_map_find(range.at + bytes - 1, &there))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	return address_map_add(&range);
}

CUresult on_cuMemHostUnregister(void *pointer)
{
	struct range range;

	if (!pointer)
		return CUDA_ERROR_INVALID_VALUE;
	return address_map_remove((uint64_t)pointer, 1U << ADDRESS_MAP_REGISTERED, &range)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
