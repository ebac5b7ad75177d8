/* SPDX-License-Identifier: Apache-2.0 */

/* Device memory: the server has it, the client knows the addresses. */

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "vcuda/client/address_map.h"
#include "vcuda/client/call.h"
#include "vcuda/client/context.h"
#include "vcuda/client/host.h"
#include "vcuda/client/variable.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

static CUresult memory_keep(enum address_map_kind kind, uint64_t at, uint64_t bytes, struct context *context)
{
	const struct range range = {.at = at, .bytes = bytes, .kind = kind, .context = context};

	return address_map_add(&range);
}

CUresult on_cuMemAlloc_v2(struct context *context, CUdeviceptr *pointer, size_t bytes)
{
	const uint64_t word = bytes;
	CUresult r;

	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	r = call_sync(OP_cuMemAlloc_v2, &word, 1, NULL, 0, pointer, sizeof(*pointer));
	return r ? r : memory_keep(ADDRESS_MAP_DEVICE, *pointer, bytes, context);
}

CUresult on_cuMemAllocPitch_v2(struct context *context, CUdeviceptr *pointer, size_t *pitch, size_t width,
			       size_t height, unsigned element)
{
	const uint64_t words[] = {width, height, element};
	uint64_t out[2];
	CUresult r = call_sync(OP_cuMemAllocPitch_v2, words, 3, NULL, 0, out, sizeof(out));

	if (r)
		return r;
	*pointer = out[0];
	*pitch = out[1];
	return memory_keep(ADDRESS_MAP_DEVICE, out[0], out[1] * height, context);
}

/* Return: whether it was the process's to free. What is a graph's is there again when the graph runs. */
static bool memory_forget(CUdeviceptr pointer, struct range *ret)
{
	if (address_map_find(pointer, ret) && ret->at == pointer && ret->kind == ADDRESS_MAP_GRAPH)
		return true;
	return address_map_remove(pointer, 1U << ADDRESS_MAP_DEVICE | 1U << ADDRESS_MAP_ASYNC, ret);
}

/* It is forgotten first, since another thread may be given its place at once. What is not freed is remembered. */
static CUresult memory_free(unsigned op, const uint64_t *words, unsigned count)
{
	struct range range;
	CUresult r;

	if (!memory_forget(words[0], &range))
		return CUDA_ERROR_INVALID_VALUE;
	r = call_sync(op, words, count, NULL, 0, NULL, 0);
	if (r && range.kind != ADDRESS_MAP_GRAPH)
		address_map_put_back(&range);
	return r;
}

CUresult on_cuMemFree_v2(CUdeviceptr pointer)
{
	struct range range;
	CUresult r;

	if (pointer == 0)
		return CUDA_SUCCESS;
	if (!address_map_remove(pointer, 1U << ADDRESS_MAP_MANAGED, &range))
		return memory_free(OP_cuMemFree_v2, &pointer, 1);
	r = managed_give(&range);
	if (r)
		address_map_put_back(&range);
	return r;
}

CUresult on_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer)
{
	struct range range;

	if (!address_map_find(pointer, &range))
		return CUDA_ERROR_NOT_FOUND;
	if (range.kind == ADDRESS_MAP_RESERVED && !address_map_find_mapping(pointer, &range))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = range.at;
	if (bytes)
		*bytes = range.bytes;
	return CUDA_SUCCESS;
}

/* ---- pools ---- */

/* Those that memory may come from, and of which device they are. */
struct memory_pool {
	struct memory_pool *next;
	CUmemoryPool pool;
	CUdevice device;
};

static struct lock memory_pool_lock;
static struct memory_pool *memory_pools;
static CUmemoryPool memory_pool_of[START_GPUS]; /* which one a device takes memory from; 0: its own */

static void memory_add_pool(struct memory_pool *one)
{
	LOCK_HOLD(&memory_pool_lock);
	one->next = memory_pools;
	memory_pools = one;
}

static const struct memory_pool *memory_find_pool(CUmemoryPool pool)
{
	const struct memory_pool *one = memory_pools;

	while (one && one->pool != pool)
		one = one->next;
	return one;
}

/* What the program has not made is a device's own. */
static CUdevice memory_ask_pool_device(CUmemoryPool pool)
{
	struct memory_pool *one;
	CUmemoryPool own;
	CUdevice device = 0;

	while (device < client.host.device_count && (cuDeviceGetDefaultMemPool(&own, device) || own != pool))
		device++;
	if (device == client.host.device_count)
		return 0;
	one = malloc(sizeof(*one));
	if (one) {
		*one = (struct memory_pool){NULL, pool, device};
		memory_add_pool(one);
	}
	return device;
}

static CUdevice memory_pool_device(CUmemoryPool pool)
{
	const struct memory_pool *one;
	CUdevice device;

	lock_take(&memory_pool_lock);
	one = memory_find_pool(pool);
	device = one ? one->device : -1;
	lock_release(&memory_pool_lock);
	return device < 0 ? memory_ask_pool_device(pool) : device;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
	const uint64_t word = sizeof(*properties);
	const struct call_part part = {properties, sizeof(*properties)};
	struct memory_pool *one;
	CUresult r;

	if (!pool || !properties)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	one = malloc(sizeof(*one));
	if (!one)
		return call_fail(CUDA_ERROR_OUT_OF_MEMORY);
	r = call_sync(OP_cuMemPoolCreate, &word, 1, &part, 1, pool, sizeof(*pool));
	if (r) {
		free(one);
		return r;
	}
	*one = (struct memory_pool){NULL, *pool, properties->location.id};
	memory_add_pool(one);
	return CUDA_SUCCESS;
}

/* A device that took memory from it takes it from its own pool again. */
static void memory_forget_pool(CUmemoryPool pool)
{
	struct memory_pool **at = &memory_pools, *found;

	LOCK_HOLD(&memory_pool_lock);
	for (int i = 0; i < START_GPUS; i++)
		if (memory_pool_of[i] == pool)
			memory_pool_of[i] = 0;
	while (*at && (*at)->pool != pool)
		at = &(*at)->next;
	found = *at;
	if (found)
		*at = found->next;
	free(found);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	const CUresult r = call_sync(OP_cuMemPoolDestroy, &pool, 1, NULL, 0, NULL, 0);

	if (!r)
		memory_forget_pool(pool);
	return r;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	const uint64_t words[] = {(uint64_t)device, pool};
	const CUresult r = call_sync(OP_cuDeviceSetMemPool, words, 2, NULL, 0, NULL, 0);

	if (r || !client_device(device))
		return r;
	LOCK_HOLD(&memory_pool_lock);
	memory_pool_of[device] = pool;
	return CUDA_SUCCESS;
}

/* Such memory is of a device, and of no context. */
static CUresult memory_alloc_async(unsigned op, CUdeviceptr *pointer, const uint64_t *words, unsigned count,
				   CUdevice device, CUmemoryPool pool)
{
	uint64_t out[2]; /* where, and whether the graph of a capture has it */
	struct range range = {.bytes = words[0], .ordinal = device};
	CUresult r = call_sync(op, words, count, NULL, 0, out, sizeof(out));

	if (r)
		return r;
	*pointer = range.at = out[0];
	range.kind = out[1] ? ADDRESS_MAP_GRAPH : ADDRESS_MAP_ASYNC;
	range.pool = out[1] ? 0 : pool;
	return address_map_add(&range);
}

/* The stream says of which device it is, whatever context is current. */
CUresult on_cuMemAllocAsync(struct context *context, CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
	const uint64_t words[] = {bytes, stream};
	CUdevice device = context->device;

	if (stream >= WIRE_STREAM_NAMES && wire_handle_tag(stream) != wire_handle_tag_of(context->handle) &&
	    (cuStreamGetDevice(stream, &device) || !client_device(device)))
		device = context->device;
	return memory_alloc_async(OP_cuMemAllocAsync, pointer, words, 2, device, memory_pool_of[device]);
}

CUresult on_cuMemAllocFromPoolAsync(struct context *context, CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
				    CUstream stream)
{
	const uint64_t words[] = {bytes, pool, stream};

	(void)context;
	return memory_alloc_async(OP_cuMemAllocFromPoolAsync, pointer, words, 3, memory_pool_device(pool), pool);
}

CUresult on_cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
	const uint64_t words[] = {pointer, stream};
	struct range range;

	if (address_map_find(pointer, &range) && range.kind == ADDRESS_MAP_MANAGED)
		return CUDA_ERROR_NOT_SUPPORTED;
	return memory_free(OP_cuMemFreeAsync, words, 2);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	const uint64_t word = (uint64_t)device;

	/* Not the error of other functions for a device that is none. */
	if (!pool || !client_device(device))
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	return call_sync(OP_cuDeviceGetMemPool, &word, 1, NULL, 0, pool, sizeof(*pool));
}

/* The first three are ints, the others numbers of 8 bytes. */
static size_t memory_pool_value_bytes(CUmemPool_attribute attribute)
{
	return attribute <= 3 ? sizeof(int) : sizeof(uint64_t);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	uint64_t words[] = {pool, (uint64_t)attribute, 0};

	if (!value)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	memcpy(&words[2], value, memory_pool_value_bytes(attribute));
	return call_sync(OP_cuMemPoolSetAttribute, words, 3, NULL, 0, NULL, 0);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	const uint64_t words[] = {pool, (uint64_t)attribute};
	uint64_t out;
	CUresult r;

	if (!value)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = call_sync(OP_cuMemPoolGetAttribute, words, 2, NULL, 0, &out, sizeof(out));
	if (!r)
		memcpy(value, &out, memory_pool_value_bytes(attribute));
	return r;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
	const uint64_t words[] = {pool, count};
	const struct call_part part = {access, count * sizeof(*access)};

	if (!access || count == 0 || count > START_GPUS)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	return call_sync(OP_cuMemPoolSetAccess, words, 2, &part, 1, NULL, 0);
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	uint64_t words[] = {(uint64_t)attribute, pointer, 0};
	CUresult r;

	if (!value)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	memcpy(&words[2], value, sizeof(unsigned));
	r = call_sync(OP_cuPointerSetAttribute, words, 3, NULL, 0, NULL, 0);
	/* There is but one that can be set. */
	if (!r)
		address_map_set_waits(pointer, (uint32_t)words[2] != 0);
	return r;
}

static CUresult memory_operate(unsigned op, CUstream stream, unsigned count, CUstreamBatchMemOpParams *operations,
			       unsigned flags)
{
	const uint64_t words[] = {stream, count, flags};
	const struct call_part part = {operations, count * sizeof(*operations)};

	if (!operations || count == 0 || count > 256)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	return call_sync(op, words, 3, &part, 1, NULL, 0);
}

CUresult on_cuStreamBatchMemOp_v2(CUstream stream, unsigned count, CUstreamBatchMemOpParams *operations, unsigned flags)
{
	return memory_operate(OP_cuStreamBatchMemOp_v2, stream, count, operations, flags);
}

CUresult on_cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams *operations, unsigned flags)
{
	return memory_operate(OP_cuStreamBatchMemOp, stream, count, operations, flags);
}

/* ---- addresses ---- */

CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t bytes, size_t alignment, CUdeviceptr at,
			     unsigned long long flags)
{
	const uint64_t words[] = {bytes, alignment, at, flags};
	CUresult r;

	if (!pointer)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = call_sync(OP_cuMemAddressReserve, words, 4, NULL, 0, pointer, sizeof(*pointer));
	return r ? r : memory_keep(ADDRESS_MAP_RESERVED, *pointer, bytes, NULL);
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t bytes)
{
	const uint64_t words[] = {pointer, bytes};
	CUresult r = call_sync(OP_cuMemAddressFree, words, 2, NULL, 0, NULL, 0);

	if (!r)
		(void)address_map_remove(pointer, 1U << ADDRESS_MAP_RESERVED, NULL);
	return r;
}

CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle memory,
		  unsigned long long flags)
{
	const uint64_t words[] = {pointer, bytes, offset, memory, flags};
	const CUresult r = call_sync(OP_cuMemMap, words, 5, NULL, 0, NULL, 0);

	if (!r)
		address_map_add_mapping(pointer, bytes);
	return r;
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes)
{
	const uint64_t words[] = {pointer, bytes};
	const CUresult r = call_sync(OP_cuMemUnmap, words, 2, NULL, 0, NULL, 0);

	if (!r)
		address_map_remove_mappings(pointer, bytes);
	return r;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *memory, void *at)
{
	const uint64_t word = (uint64_t)at;
	uint64_t handle;
	CUresult r;

	if (!memory)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = call_sync(OP_cuMemRetainAllocationHandle, &word, 1, NULL, 0, &handle, sizeof(handle));
	if (!r)
		*memory = handle;
	return r;
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
	const uint64_t words[] = {pointer, bytes, count};
	const struct call_part part = {access, count * sizeof(*access)};

	if (!access || count == 0 || count > START_GPUS)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	return call_sync(OP_cuMemSetAccess, words, 3, &part, 1, NULL, 0);
}

/* ---- descriptors of memory of a GPU ---- */

/*
 * The driver's are open devices and stay with the servers. The program has one end of a pair of sockets instead, in
 * which the server's token lies, to be looked at and not to be taken. It may send it to other processes, as it would
 * the driver's. We keep the other end, which says when all are closed, wherever they are: until then the memory is
 * there, even if it was released.
 */

enum { DESCRIPTOR_TYPE = 1 }; /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */

/* As the server makes it. */
struct memory_token {
	uint64_t magic, token[2], rest[5];
};

struct memory_descriptor {
	struct memory_descriptor *next;
	struct memory_token token;
	int end;
	uint64_t device, inode; /* a program may close it, and have something of its own there */
};

static struct lock memory_descriptor_lock;
static struct memory_descriptor *_Atomic memory_descriptors;

static bool memory_descriptor_is_whole(const struct memory_descriptor *one)
{
	struct stat now;

	return syscall(SYS_fstat, one->end, &now) == 0 && now.st_dev == one->device && now.st_ino == one->inode;
}

static bool memory_descriptor_is_closed(const struct memory_descriptor *one)
{
	struct pollfd end = {.fd = one->end};

	return !memory_descriptor_is_whole(one) || (poll(&end, 1, 0) == 1 && end.revents & POLLHUP);
}

static void memory_end_descriptor(struct memory_descriptor *one)
{
	if (memory_descriptor_is_whole(one))
		(void)close(one->end);
	free(one);
}

/* Return: one that is closed, which is no more in the list; NULL. */
static struct memory_descriptor *memory_take_closed_descriptor(void)
{
	struct memory_descriptor *before = NULL, *one;

	LOCK_HOLD(&memory_descriptor_lock);
	for (one = memory_descriptors; one && !memory_descriptor_is_closed(one); one = one->next)
		before = one;
	if (one && before)
		before->next = one->next;
	else if (one)
		memory_descriptors = one->next;
	return one;
}

/* The parent's, a child leaves alone: several threads of it may look at them at once. */
static void memory_sweep_descriptors(void)
{
	struct memory_descriptor *one;

	while (memory_descriptors && !client_is_child() && (one = memory_take_closed_descriptor())) {
		(void)call_sync(WIRE_SHARE_END, one->token.token, 2, NULL, 0, NULL, 0);
		memory_end_descriptor(one);
	}
}

/* Return: the program's end, which has the token; -1. */
static int memory_make_descriptor(struct memory_descriptor *one)
{
	struct stat made;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	one->end = ends[0];
	if (syscall(SYS_fstat, ends[0], &made) == 0 &&
	    send(ends[0], &one->token, sizeof(one->token), MSG_NOSIGNAL) == sizeof(one->token)) {
		one->device = made.st_dev;
		one->inode = made.st_ino;
		return ends[1];
	}
	(void)close(ends[0]);
	(void)close(ends[1]);
	return -1;
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle memory,
				      CUmemAllocationHandleType type, unsigned long long flags)
{
	const uint64_t words[] = {memory, (uint64_t)type, flags};
	struct memory_descriptor *one = shareable ? calloc(1, sizeof(*one)) : NULL;
	CUresult r;
	int fd;

	if (!one)
		return call_fail(shareable ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE);
	memory_sweep_descriptors();
	r = call_sync(OP_cuMemExportToShareableHandle, words, 3, NULL, 0, &one->token, sizeof(one->token));
	if (r) {
		free(one);
		return r;
	}
	fd = memory_make_descriptor(one);
	if (fd < 0) {
		(void)call_sync(WIRE_SHARE_END, one->token.token, 2, NULL, 0, NULL, 0);
		free(one);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	*(int *)shareable = fd;
	LOCK_HOLD(&memory_descriptor_lock);
	one->next = memory_descriptors;
	memory_descriptors = one;
	return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *memory, void *shareable,
					CUmemAllocationHandleType type)
{
	struct memory_token token;
	const uint64_t words[] = {sizeof(token), (uint64_t)type};
	const struct call_part part = {&token, sizeof(token)};

	if (!memory)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	if (type != DESCRIPTOR_TYPE)
		return call_fail(CUDA_ERROR_NOT_SUPPORTED);
	if (recv((int)(intptr_t)shareable, &token, sizeof(token), MSG_PEEK | MSG_DONTWAIT) != sizeof(token))
		return call_fail(CUDA_ERROR_UNKNOWN);
	return call_sync(OP_cuMemImportFromShareableHandle, words, 2, &part, 1, memory, sizeof(*memory));
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *memory, size_t bytes, const CUmemAllocationProp *properties,
		     unsigned long long flags)
{
	const uint64_t words[] = {bytes, sizeof(*properties), flags};
	const struct call_part part = {properties, sizeof(*properties)};

	if (!memory || !properties)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	memory_sweep_descriptors();
	return call_sync(OP_cuMemCreate, words, 3, &part, 1, memory, sizeof(*memory));
}

CUresult cuMemRelease(CUmemGenericAllocationHandle memory)
{
	const uint64_t word = memory;
	const CUresult r = call_sync(OP_cuMemRelease, &word, 1, NULL, 0, NULL, 0);

	memory_sweep_descriptors();
	return r;
}

/* ---- variables of modules ---- */

static CUresult memory_get_global(unsigned op, CUdeviceptr *pointer, size_t *bytes, uint64_t owner, const char *name)
{
	enum { AT, BYTES, IS_MANAGED, ANSWERS };
	struct context *context;
	CUresult r = context_current(&context);
	uint64_t out[ANSWERS];

	if (r)
		return r;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	const uint64_t words[] = {owner, strlen(name)};
	const struct call_part part = {name, strlen(name)};

	r = call_sync(op, words, 2, &part, 1, out, sizeof(out));
	if (!r && out[IS_MANAGED])
		r = variable_add(out[AT], out[BYTES], owner, context);
	if (r)
		return r;
	if (pointer)
		*pointer = out[AT];
	if (bytes)
		*bytes = out[BYTES];
	return address_map_add(&(struct range){.at = out[AT],
					       .bytes = out[BYTES],
					       .kind = out[IS_MANAGED] ? ADDRESS_MAP_VARIABLE : ADDRESS_MAP_GLOBAL,
					       .context = context,
					       .owner = owner});
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule module, const char *name)
{
	return memory_get_global(OP_cuModuleGetGlobal_v2, pointer, bytes, module, name);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *pointer, size_t *bytes, CUlibrary library, const char *name)
{
	return memory_get_global(OP_cuLibraryGetGlobal, pointer, bytes, library, name);
}

/* The CUDA runtime asks before any context is current. */
CUresult cuLibraryGetManaged(CUdeviceptr *pointer, size_t *bytes, CUlibrary library, const char *name)
{
	bool borrowed;
	CUresult r;

	if (!pointer && !bytes)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = context_borrow(&borrowed);
	if (!r)
		r = memory_get_global(OP_cuLibraryGetManaged, pointer, bytes, library, name);
	if (borrowed)
		context_give_back();
	return r;
}

/* ---- between processes, by handles that their servers know ---- */

CUresult on_cuIpcOpenMemHandle_v2(struct context *context, CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags)
{
	const uint64_t words[] = {sizeof(handle), flags};
	const struct call_part part = {&handle, sizeof(handle)};
	struct range there;
	uint64_t out[2];
	CUresult r = call_sync(OP_cuIpcOpenMemHandle_v2, words, 2, &part, 1, out, sizeof(out));

	if (r)
		return r;
	*pointer = out[0];
	/* What is opened again has its place already. */
	if (address_map_find(out[0], &there) && there.at == out[0] && there.kind == ADDRESS_MAP_TAKEN)
		return CUDA_SUCCESS;
	return address_map_add(
		&(struct range){.at = out[0], .bytes = out[1], .kind = ADDRESS_MAP_TAKEN, .context = context});
}

CUresult on_cuIpcCloseMemHandle(CUdeviceptr pointer)
{
	uint64_t last;
	CUresult r = call_sync(OP_cuIpcCloseMemHandle, &pointer, 1, NULL, 0, &last, sizeof(last));

	if (!r && last)
		(void)address_map_remove(pointer, 1U << ADDRESS_MAP_TAKEN, NULL);
	return r;
}

CUresult on_cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	const uint64_t word = sizeof(handle);
	const struct call_part part = {&handle, sizeof(handle)};

	return call_sync(OP_cuIpcOpenEventHandle, &word, 1, &part, 1, event, sizeof(*event));
}

/* ---- what an address is: numbers as in CUpointer_attribute ---- */

enum { POINTER_HOST = 1, POINTER_DEVICE = 2, POINTER_OF_DEVICE = 3, POINTER_OF_HOST = 4, POINTER_ORDINAL = 9 };

#define POINTER_NO_DEVICE ((uint64_t)-2) /* CU_DEVICE_INVALID */

static uint64_t pointer_context(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return range->context ? range->context->name : 0;
}

static uint64_t pointer_memory_type(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return address_map_is_host(range) ? POINTER_HOST : POINTER_DEVICE;
}

static uint64_t pointer_itself(const struct range *range, CUdeviceptr pointer)
{
	(void)range;
	return pointer;
}

static uint64_t pointer_on_device(const struct range *range, CUdeviceptr pointer)
{
	return address_map_on_device(range, pointer);
}

static uint64_t pointer_nothing(const struct range *range, CUdeviceptr pointer)
{
	(void)range, (void)pointer;
	return 0;
}

static uint64_t pointer_managed(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return address_map_is_managed(range);
}

static uint64_t pointer_can_be_given(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return range->kind == ADDRESS_MAP_DEVICE;
}

static uint64_t pointer_waits(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return range->waits;
}

static uint64_t pointer_number(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return range->number;
}

/* Of what is mapped at an address. Return: whether anything is. */
static bool pointer_read_properties(CUdeviceptr pointer, CUmemAllocationProp *ret)
{
	CUmemGenericAllocationHandle memory;
	struct range mapping;
	CUresult r;

	if (!address_map_find_mapping(pointer, &mapping) || cuMemRetainAllocationHandle(&memory, (void *)pointer))
		return false;
	r = cuMemGetAllocationPropertiesFromHandle(ret, memory);
	(void)cuMemRelease(memory);
	return !r;
}

static uint64_t pointer_device(const struct range *range, CUdeviceptr pointer)
{
	enum { ON_DEVICE = 1 };
	CUmemAllocationProp properties;

	if (range->kind != ADDRESS_MAP_RESERVED)
		return (uint64_t)(range->context ? range->context->device : range->ordinal);
	return pointer_read_properties(pointer, &properties) && properties.location.type == ON_DEVICE
		       ? (uint64_t)properties.location.id
		       : POINTER_NO_DEVICE;
}

static uint64_t pointer_handle_types(const struct range *range, CUdeviceptr pointer)
{
	CUmemAllocationProp properties;

	return range->kind == ADDRESS_MAP_RESERVED && pointer_read_properties(pointer, &properties)
		       ? (uint64_t)properties.requestedHandleTypes
		       : 0;
}

static uint64_t pointer_pool(const struct range *range, CUdeviceptr pointer)
{
	CUmemoryPool pool = range->pool;

	(void)pointer;
	if (range->kind != ADDRESS_MAP_ASYNC)
		return 0;
	if (!pool)
		(void)cuDeviceGetDefaultMemPool(&pool, range->ordinal);
	return pool;
}

static uint64_t pointer_start(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return range->at;
}

static uint64_t pointer_bytes(const struct range *range, CUdeviceptr pointer)
{
	(void)pointer;
	return range->bytes;
}

static uint64_t pointer_mapped(const struct range *range, CUdeviceptr pointer)
{
	struct range mapping;

	return range->kind != ADDRESS_MAP_RESERVED || address_map_find_mapping(pointer, &mapping);
}

static uint64_t pointer_access(const struct range *range, CUdeviceptr pointer)
{
	enum { READ_AND_WRITE = 3 };

	(void)range, (void)pointer;
	return READ_AND_WRITE;
}

/* By the numbers of CUpointer_attribute: how large the value is, and what. */
static const struct {
	size_t bytes;
	uint64_t (*value)(const struct range *range, CUdeviceptr pointer);
} pointer_attributes[] = {
	[1] = {sizeof(CUcontext), pointer_context},
	[2] = {sizeof(int), pointer_memory_type},
	[POINTER_OF_DEVICE] = {sizeof(CUdeviceptr), pointer_on_device},
	[POINTER_OF_HOST] = {sizeof(void *), pointer_itself},
	[6] = {sizeof(int), pointer_waits},       /* SYNC_MEMOPS */
	[7] = {sizeof(uint64_t), pointer_number}, /* BUFFER_ID */
	[8] = {sizeof(int), pointer_managed},     /* IS_MANAGED */
	[POINTER_ORDINAL] = {sizeof(int), pointer_device},
	[10] = {sizeof(int), pointer_can_be_given}, /* IS_LEGACY_CUDA_IPC_CAPABLE */
	[11] = {sizeof(uint64_t), pointer_start},
	[12] = {sizeof(uint64_t), pointer_bytes},
	[13] = {sizeof(int), pointer_mapped},
	[14] = {sizeof(uint64_t), pointer_handle_types}, /* ALLOWED_HANDLE_TYPES */
	[15] = {sizeof(int), pointer_nothing},           /* IS_GPU_DIRECT_RDMA_CAPABLE */
	[16] = {sizeof(int), pointer_access},
	[17] = {sizeof(CUmemoryPool), pointer_pool}, /* MEMPOOL_HANDLE */
};

/* Return: the size of the value; 0 if there is no such attribute. */
static size_t pointer_value(CUpointer_attribute attribute, const struct range *range, CUdeviceptr pointer,
			    uint64_t *value)
{
	if (attribute < 0 || (size_t)attribute >= sizeof(pointer_attributes) / sizeof(pointer_attributes[0]) ||
	    !pointer_attributes[attribute].value)
		return 0;
	*value = pointer_attributes[attribute].value(range, pointer);
	return pointer_attributes[attribute].bytes;
}

/* Whether this is of the kind that the attribute is about. */
static bool pointer_has(CUpointer_attribute attribute, const struct range *range)
{
	if (attribute == POINTER_OF_DEVICE)
		return range->kind != ADDRESS_MAP_REGISTERED || range->device;
	return attribute != POINTER_OF_HOST || address_map_is_host(range) || address_map_is_managed(range);
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	struct thread *thread;
	CUresult r = call_enter(&thread);
	uint64_t answer = 0;
	struct range range;
	size_t bytes;

	if (r)
		return r;
	if (!value || !address_map_find(pointer, &range) || !pointer_has(attribute, &range))
		return CUDA_ERROR_INVALID_VALUE;
	bytes = pointer_value(attribute, &range, pointer, &answer);
	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(value, &answer, bytes);
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr pointer)
{
	static const struct range nothing;
	struct thread *thread;
	CUresult r = call_enter(&thread);
	struct range range;
	bool known;

	if (r)
		return r;
	if (!attributes || !values || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	known = address_map_find(pointer, &range);
	for (unsigned i = 0; i < count; i++) {
		uint64_t answer = 0;
		const size_t bytes = pointer_value(attributes[i], known ? &range : &nothing, pointer, &answer);

		if (bytes == 0 || !values[i])
			return CUDA_ERROR_INVALID_VALUE;
		if (!known || !pointer_has(attributes[i], &range))
			answer = !known && attributes[i] == POINTER_ORDINAL ? POINTER_NO_DEVICE : 0;
		memcpy(values[i], &answer, bytes);
	}
	return CUDA_SUCCESS;
}
