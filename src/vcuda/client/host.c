/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Page-locked memory: a memfd that the server makes and registers with the driver, at the same address on both sides,
 * so that a kernel can use the pointers as it does natively and copies go at the speed of the bus.
 */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "vcuda/client/call.h"
#include "vcuda/client/context.h"
#include "vcuda/client/range.h"
#include "vcuda/client_api.h"

enum { HOST_STEP = 65536, HOST_FLAGS = 7 };

static struct lock host_lock;
static uint64_t host_next; /* offset in the arena; what was given back is not given out again, 1 TiB lasts */

static int host_receive(void)
{
	char byte;
	struct iovec data = {&byte, 1};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	const struct cmsghdr *header;
	ssize_t r;
	int fd;

	do
		r = recvmsg(client.socket, &message, MSG_CMSG_CLOEXEC);
	while (r < 0 && errno == EINTR);
	header = r == 1 ? CMSG_FIRSTHDR(&message) : NULL;
	if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

static CUresult host_map(uint64_t offset, size_t bytes)
{
	const int fd = host_receive();
	void *memory;

	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memory = mmap((void *)(client.arena + offset), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	(void)close(fd);
	return memory == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
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
	const uint64_t offset = host_next, words[] = {offset, bytes, flags};
	CUresult r;

	if (bytes > WIRE_ARENA_BYTES - offset)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = call_sync(WIRE_ARENA_ADD, words, 3, NULL, 0, NULL, 0);
	if (r)
		return r;
	host_next += bytes;
	r = host_map(offset, bytes);
	if (!r)
		*pointer = (void *)(client.arena + offset);
	return r;
}

CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
	const size_t whole = (bytes + HOST_STEP - 1) & ~(size_t)(HOST_STEP - 1);
	struct range range = {.bytes = bytes, .kind = RANGE_HOST, .flags = flags};
	CUresult r = context_current(&range.context);

	if (r)
		return r;
	if (pointer && bytes == 0) {
		*pointer = NULL;
		return CUDA_SUCCESS;
	}
	if (!pointer || flags & ~(unsigned)HOST_FLAGS || whole < bytes)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_HOLD(&host_lock);
	r = client.arena ? host_alloc_shared(pointer, whole, flags) : host_alloc_plain(pointer, whole);
	if (r)
		return r;
	range.at = (uint64_t)*pointer;
	return range_add(&range);
}

CUresult cuMemAllocHost_v2(void **pointer, size_t bytes)
{
	return cuMemHostAlloc(pointer, bytes, 0);
}

CUresult cuMemFreeHost(void *pointer)
{
	uint64_t offset = (uint64_t)pointer - client.arena;
	struct context *context;
	CUresult r = context_current(&context);
	struct range range;
	size_t whole;

	if (r)
		return r;
	if (!pointer)
		return CUDA_SUCCESS;
	if (!range_remove((uint64_t)pointer, 1U << RANGE_HOST, &range))
		return CUDA_ERROR_INVALID_VALUE;
	whole = (range.bytes + HOST_STEP - 1) & ~(size_t)(HOST_STEP - 1);
	if (!client.arena)
		return munmap(pointer, whole) < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	/* Behind all that uses it. */
	r = call_sync(WIRE_ARENA_DROP, &offset, 1, NULL, 0, NULL, 0);
	if (mmap(pointer, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return r;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned flags)
{
	struct context *context;
	CUresult r = context_current(&context);
	struct range range;

	if (r)
		return r;
	if (!device || flags || !range_find((uint64_t)host, &range) || range.kind != RANGE_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	if (!client.arena)
		return CUDA_ERROR_NOT_SUPPORTED;
	*device = (CUdeviceptr)host;
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned *flags, void *host)
{
	struct context *context;
	CUresult r = context_current(&context);
	struct range range;

	if (r)
		return r;
	if (!flags || !range_find((uint64_t)host, &range) || range.kind != RANGE_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	/* CU_MEMHOSTALLOC_DEVICEMAP: with one address space for all, everything is. */
	*flags = range.flags | 2;
	return CUDA_SUCCESS;
}
