/* SPDX-License-Identifier: Apache-2.0 */

/* Memory that the host and the device have at one address. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { GLOBAL = 1, HOST = 2, SINGLE = 4, BYTES = 1 << 20, PAGE = 65536 };
enum { READ_MOSTLY = 1, UNSET_READ_MOSTLY, PREFER, UNSET_PREFER, ACCESSED, UNSET_ACCESSED };
enum { CPU = -1, NO_DEVICE = -2, LOCATION_DEVICE = 1, LOCATION_HOST, LOCATION_NUMA, LOCATION_NUMA_CURRENT };
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

static CUdeviceptr managed_alloc(size_t bytes)
{
	CUdeviceptr pointer = 0;

	if (cu.cuMemAllocManaged(&pointer, bytes, GLOBAL) == CUDA_SUCCESS)
		return pointer;
	got_text("(no managed memory)");
	return (uintptr_t)calloc(1, bytes);
}

static int managed_attribute(int attribute, CUdeviceptr pointer, size_t bytes)
{
	int value = 77;
	CUresult r = cu.cuMemRangeGetAttribute(&value, sizeof(value), attribute, pointer, bytes);

	return r ? 1000 + (int)r : value;
}

static void managed_alloc_errors(void)
{
	CUdeviceptr pointer = 0;

	IS(1, cu.cuMemAllocManaged(&pointer, 0, GLOBAL));
	IS(1, cu.cuMemAllocManaged(NULL, BYTES, GLOBAL));
	NOTE(cu.cuMemAllocManaged(&pointer, BYTES, 0));
	NOTE(cu.cuMemAllocManaged(&pointer, BYTES, GLOBAL | HOST));
	NOTE(cu.cuMemAllocManaged(&pointer, BYTES, SINGLE));
	OK(cu.cuMemAllocManaged(&pointer, BYTES, HOST));
	if (pointer == 0)
		return;
	TRUE(pointer % 512 == 0);
	OK(cu.cuMemFree_v2(pointer));
	OK(cu.cuMemAllocManaged(&pointer, 1, GLOBAL));
	*(volatile char *)(uintptr_t)pointer = 1;
	OK(cu.cuMemFree_v2(pointer));
}

static void managed_shared(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES), result = check_alloc(4), at;
	volatile uint32_t *words = (uint32_t *)(uintptr_t)pointer;
	uint32_t value = 99, count = 16;

	IS(0, words[5]);
	words[3] = 4711;
	at = pointer + 12;
	OK(check_launch("load", 1, NULL, PARAMETERS(&at, &result)));
	IS(4711, check_word(result));
	OK(check_launch("fill", 32, NULL, PARAMETERS(&pointer, &value, &count)));
	OK(cu.cuCtxSynchronize());
	IS(99, words[0]);
	IS(99, words[15]);
	IS(0, words[16]);
	OK(cu.cuMemFree_v2(pointer));
	OK(cu.cuMemFree_v2(result));
}

static void managed_concurrent(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES);
	volatile uint32_t *gate = (uint32_t *)(uintptr_t)pointer;

	*gate = 0;
	OK(check_launch("gate", 1, NULL, PARAMETERS(&pointer)));
	IS(600, cu.cuStreamQuery(NULL));
	*gate = 1;
	OK(cu.cuStreamSynchronize(NULL));
	OK(cu.cuMemFree_v2(pointer));
}

static void managed_copies(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES), other = managed_alloc(BYTES), device = check_alloc(BYTES);
	uint32_t *words = (uint32_t *)(uintptr_t)pointer, *others = (uint32_t *)(uintptr_t)other;
	uint32_t local[256];

	for (uint32_t i = 0; i < 256; i++)
		local[i] = 7 * i;
	OK(cu.cuMemcpyHtoD_v2(pointer, local, sizeof(local)));
	OK(cu.cuCtxSynchronize());
	IS(1785, words[255]);
	OK(cu.cuMemcpyDtoD_v2(device, pointer, BYTES));
	OK(cu.cuMemcpyDtoD_v2(other, device, BYTES));
	OK(cu.cuCtxSynchronize());
	IS(1785, others[255]);
	words[1] = 5;
	OK(cu.cuMemcpy(other, pointer, 1024));
	OK(cu.cuCtxSynchronize());
	IS(5, others[1]);
	OK(cu.cuMemcpyHtoDAsync_v2(device, words, BYTES, NULL));
	OK(cu.cuMemcpyDtoHAsync_v2(others + 1024, device, 4096, NULL));
	OK(cu.cuCtxSynchronize());
	IS(5, others[1025]);
	OK(cu.cuMemcpyDtoH_v2(local, pointer, sizeof(local)));
	IS(5, local[1]);
	OK(cu.cuMemcpy((uintptr_t)local, other + 4, 4));
	IS(5, local[0]);
	OK(cu.cuMemcpyAsync(pointer + 64, (uintptr_t)local, 4, NULL));
	OK(cu.cuCtxSynchronize());
	IS(5, words[16]);
	IS(1, cu.cuMemcpyDtoD_v2(device, pointer + 4096, BYTES));
	OK(cu.cuMemFree_v2(pointer));
	OK(cu.cuMemFree_v2(other));
	OK(cu.cuMemFree_v2(device));
}

static void managed_fills(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES);
	const uint32_t *words = (uint32_t *)(uintptr_t)pointer;

	OK(cu.cuMemsetD32_v2(pointer, 3, 100));
	OK(cu.cuMemsetD8Async(pointer + 400, 1, 4, NULL));
	OK(cu.cuCtxSynchronize());
	IS(3, words[99]);
	IS(0x01010101, words[100]);
	OK(cu.cuMemFree_v2(pointer));
}

static void managed_words(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES);

	NOTE(cu.cuStreamWriteValue32_v2(NULL, pointer, 17, 0));
	OK(cu.cuCtxSynchronize());
	NOTE(*(volatile uint32_t *)(uintptr_t)pointer);
	OK(cu.cuMemFree_v2(pointer));
}

/* What the attributes of a pointer say, from the first on; those that have none say what the call returned. */
static void managed_say_pointer(CUdeviceptr pointer, CUdeviceptr start)
{
	static const int numbers[] = {2, 8, 9, 10, 12, 13, 14, 16, 17};
	CUdeviceptr value = 0;
	CUcontext of = NULL;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t answer = 0;
		CUresult r = cu.cuPointerGetAttribute(&answer, numbers[i], pointer);

		NOTE(r ? 1000 + r
		       : (long long)(numbers[i] == 8 || numbers[i] == 10 || numbers[i] == 13 ? answer & 0xff : answer));
	}
	OK(cu.cuPointerGetAttribute(&of, 1, pointer));
	TRUE(of == context);
	OK(cu.cuPointerGetAttribute(&value, 3, pointer));
	TRUE(value == pointer);
	OK(cu.cuPointerGetAttribute(&value, 4, pointer));
	TRUE(value == pointer);
	OK(cu.cuPointerGetAttribute(&value, 11, pointer));
	TRUE(value == start);
}

static void managed_pointer(void)
{
	CUdeviceptr pointer = managed_alloc(5000), host = 0;

	managed_say_pointer(pointer + 8, pointer);
	OK(cu.cuMemFree_v2(pointer));
	OK(cu.cuMemAllocManaged(&host, 5000, HOST));
	managed_say_pointer(host, host);
	OK(cu.cuMemFree_v2(host));
	IS(1, cu.cuPointerGetAttribute(&host, 3, pointer));
}

static void managed_range(void)
{
	CUdeviceptr pointer = managed_alloc(5000), base = 0;
	size_t bytes = 0;

	NOTE(cu.cuMemGetAddressRange_v2(&base, &bytes, pointer + 77));
	NOTE(base == pointer);
	NOTE(bytes);
	OK(cu.cuMemFree_v2(pointer));
}

static void managed_as_host(void)
{
	void *pointer = (void *)(uintptr_t)managed_alloc(BYTES);
	CUdeviceptr device = 0;
	unsigned flags = 99;
	CUresult r;

	NOTE(cu.cuMemHostGetDevicePointer_v2(&device, pointer, 0));
	NOTE(cu.cuMemHostGetFlags(&flags, pointer));
	NOTE(flags);
	r = cu.cuMemHostRegister_v2(pointer, BYTES, 0);
	NOTE(r);
	NOTE(r ? -1 : cu.cuMemHostUnregister(pointer));
	NOTE(cu.cuMemFreeHost(pointer));
	NOTE(cu.cuMemFree_v2((uintptr_t)pointer));
}

static void managed_free(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES);
	CUresult r;

	IS(1, cu.cuMemFree_v2(pointer + 4096));
	OK(cu.cuMemFree_v2(pointer));
	IS(1, cu.cuMemFree_v2(pointer));
	pointer = managed_alloc(BYTES);
	r = cu.cuMemFreeAsync(pointer, NULL);
	NOTE(r);
	NOTE(r ? cu.cuMemFree_v2(pointer) : cu.cuCtxSynchronize());
}

static void managed_many(void)
{
	enum { COUNT = 2000 };
	static CUdeviceptr pointers[COUNT];
	int failed = 0, wrong = 0;

	for (unsigned i = 0; i < COUNT; i++) {
		failed += cu.cuMemAllocManaged(&pointers[i], 64 + i, GLOBAL) != CUDA_SUCCESS;
		*(uint32_t *)(uintptr_t)pointers[i] = i;
	}
	IS(0, failed);
	OK(cu.cuMemsetD8_v2(pointers[7], 0xff, 71));
	OK(cu.cuCtxSynchronize());
	for (unsigned i = 0; i < COUNT; i++)
		wrong += *(uint32_t *)(uintptr_t)pointers[i] != (i == 7 ? UINT32_MAX : i);
	IS(0, wrong);
	for (unsigned i = 0; i < COUNT; i++)
		failed += cu.cuMemFree_v2(pointers[i * 7 % COUNT]) != CUDA_SUCCESS;
	IS(0, failed);
}

static void managed_advice(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES);
	int devices[2] = {77, 77};

	NOTE(managed_attribute(OF_READ_MOSTLY, pointer, BYTES));
	NOTE(managed_attribute(OF_PREFERRED, pointer, BYTES));
	NOTE(managed_attribute(OF_LAST, pointer, BYTES));
	OK(cu.cuMemRangeGetAttribute(devices, sizeof(devices), OF_ACCESSED, pointer, BYTES));
	NOTE(devices[0]);
	NOTE(devices[1]);
	OK(cu.cuMemAdvise(pointer, BYTES, READ_MOSTLY, 0));
	NOTE(managed_attribute(OF_READ_MOSTLY, pointer, BYTES));
	OK(cu.cuMemAdvise(pointer, BYTES, UNSET_READ_MOSTLY, 0));
	NOTE(managed_attribute(OF_READ_MOSTLY, pointer, BYTES));
	OK(cu.cuMemAdvise(pointer, BYTES, PREFER, 0));
	NOTE(managed_attribute(OF_PREFERRED, pointer, BYTES));
	OK(cu.cuMemAdvise(pointer, BYTES, PREFER, CPU));
	NOTE(managed_attribute(OF_PREFERRED, pointer, BYTES));
	OK(cu.cuMemAdvise(pointer, BYTES, UNSET_PREFER, 0));
	NOTE(managed_attribute(OF_PREFERRED, pointer, BYTES));
	OK(cu.cuMemAdvise(pointer, BYTES, ACCESSED, 0));
	OK(cu.cuMemAdvise(pointer, BYTES, ACCESSED, CPU));
	OK(cu.cuMemRangeGetAttribute(devices, sizeof(devices), OF_ACCESSED, pointer, BYTES));
	NOTE(devices[0]);
	NOTE(devices[1]);
	OK(cu.cuMemAdvise(pointer, BYTES, UNSET_ACCESSED, CPU));
	OK(cu.cuMemRangeGetAttribute(devices, sizeof(devices), OF_ACCESSED, pointer, BYTES));
	NOTE(devices[0]);
	NOTE(devices[1]);
	OK(cu.cuMemFree_v2(pointer));
}

static void managed_advice_parts(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES);

	OK(cu.cuMemAdvise(pointer, BYTES / 2, READ_MOSTLY, 0));
	NOTE(managed_attribute(OF_READ_MOSTLY, pointer, BYTES));
	NOTE(managed_attribute(OF_READ_MOSTLY, pointer, BYTES / 2));
	NOTE(managed_attribute(OF_READ_MOSTLY, pointer + BYTES / 2, BYTES / 2));
	OK(cu.cuMemAdvise(pointer + BYTES / 4, BYTES / 4, PREFER, CPU));
	NOTE(managed_attribute(OF_PREFERRED, pointer, BYTES));
	NOTE(managed_attribute(OF_PREFERRED, pointer + BYTES / 4, BYTES / 4));
	NOTE(managed_attribute(OF_READ_MOSTLY, pointer + BYTES / 4, BYTES / 4));
	OK(cu.cuMemAdvise(pointer + 8 * PAGE, 100, PREFER, CPU));
	NOTE(managed_attribute(OF_PREFERRED, pointer + 8 * PAGE, 4096));
	NOTE(managed_attribute(OF_PREFERRED, pointer + 8 * PAGE, 4097));
	OK(cu.cuMemFree_v2(pointer));
	pointer = managed_alloc(BYTES);
	NOTE(managed_attribute(OF_READ_MOSTLY, pointer, BYTES));
	OK(cu.cuMemFree_v2(pointer));
}

static void managed_advice_errors(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES), device = check_alloc(BYTES);

	NOTE(cu.cuMemAdvise(pointer, 0, READ_MOSTLY, 0));
	NOTE(cu.cuMemAdvise(pointer, BYTES, 0, 0));
	NOTE(cu.cuMemAdvise(pointer, BYTES, 99, 0));
	NOTE(cu.cuMemAdvise(pointer, BYTES, PREFER, 99));
	NOTE(cu.cuMemAdvise(pointer, BYTES, PREFER, -5));
	NOTE(cu.cuMemAdvise(pointer, BYTES, READ_MOSTLY, 99));
	NOTE(cu.cuMemAdvise(pointer, BYTES, ACCESSED, 99));
	NOTE(cu.cuMemAdvise(pointer + BYTES / 2, BYTES, READ_MOSTLY, 0));
	NOTE(cu.cuMemAdvise(device, BYTES, READ_MOSTLY, 0));
	NOTE(cu.cuMemAdvise(0, BYTES, READ_MOSTLY, 0));
	NOTE(cu.cuMemAdvise((uintptr_t)&pointer, 8, READ_MOSTLY, 0));
	OK(cu.cuMemFree_v2(pointer));
	OK(cu.cuMemFree_v2(device));
}

static void managed_prefetch(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES), device = check_alloc(BYTES);
	CUstream stream = NULL;

	*(volatile uint32_t *)(uintptr_t)pointer = 5;
	OK(cu.cuStreamCreate(&stream, 1));
	OK(cu.cuMemPrefetchAsync(pointer, BYTES, 0, stream));
	NOTE(managed_attribute(OF_LAST, pointer, BYTES));
	OK(cu.cuStreamSynchronize(stream));
	IS(5, check_word(pointer));
	OK(cu.cuMemPrefetchAsync(pointer, BYTES / 2, CPU, NULL));
	OK(cu.cuCtxSynchronize());
	NOTE(managed_attribute(OF_LAST, pointer, BYTES));
	NOTE(managed_attribute(OF_LAST, pointer, BYTES / 2));
	NOTE(cu.cuMemPrefetchAsync(pointer, 0, 0, NULL));
	NOTE(cu.cuMemPrefetchAsync(pointer, BYTES, 99, NULL));
	NOTE(cu.cuMemPrefetchAsync(pointer + BYTES / 2, BYTES, 0, NULL));
	NOTE(cu.cuMemPrefetchAsync(device, BYTES, 0, NULL));
	NOTE(cu.cuMemPrefetchAsync((uintptr_t)&pointer, 8, 0, NULL));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuMemFree_v2(pointer));
	OK(cu.cuMemFree_v2(device));
}

static void managed_locations(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES);
	const CUmemLocation gpu = {LOCATION_DEVICE, 0}, host = {LOCATION_HOST, 0}, none = {0, 0},
			    no_gpu = {LOCATION_DEVICE, 99}, node = {LOCATION_NUMA, 0},
			    near = {LOCATION_NUMA_CURRENT, 0};

	OK(cu.cuMemAdvise_v2(pointer, BYTES, PREFER, gpu));
	NOTE(managed_attribute(OF_PREFERRED_TYPE, pointer, BYTES));
	NOTE(managed_attribute(OF_PREFERRED_ID, pointer, BYTES));
	OK(cu.cuMemAdvise_v2(pointer, BYTES, PREFER, host));
	NOTE(managed_attribute(OF_PREFERRED, pointer, BYTES));
	NOTE(managed_attribute(OF_PREFERRED_TYPE, pointer, BYTES));
	NOTE(cu.cuMemAdvise_v2(pointer, BYTES, PREFER, node));
	NOTE(managed_attribute(OF_PREFERRED, pointer, BYTES));
	NOTE(managed_attribute(OF_PREFERRED_TYPE, pointer, BYTES));
	NOTE(managed_attribute(OF_PREFERRED_ID, pointer, BYTES));
	NOTE(cu.cuMemAdvise_v2(pointer, BYTES, PREFER, near));
	NOTE(cu.cuMemAdvise_v2(pointer, BYTES, PREFER, none));
	NOTE(cu.cuMemAdvise_v2(pointer, BYTES, PREFER, no_gpu));
	NOTE(cu.cuMemAdvise_v2(pointer, BYTES, READ_MOSTLY, none));
	NOTE(cu.cuMemAdvise_v2(pointer, BYTES, ACCESSED, node));
	NOTE(managed_attribute(OF_LAST_TYPE, pointer, BYTES));
	NOTE(managed_attribute(OF_LAST_ID, pointer, BYTES));
	OK(cu.cuMemPrefetchAsync_v2(pointer, BYTES, gpu, 0, NULL));
	NOTE(managed_attribute(OF_LAST_TYPE, pointer, BYTES));
	NOTE(managed_attribute(OF_LAST_ID, pointer, BYTES));
	OK(cu.cuMemPrefetchAsync_v2(pointer, BYTES, host, 0, NULL));
	NOTE(managed_attribute(OF_LAST_TYPE, pointer, BYTES));
	NOTE(managed_attribute(OF_LAST_ID, pointer, BYTES));
	NOTE(cu.cuMemPrefetchAsync_v2(pointer, BYTES, near, 0, NULL));
	NOTE(cu.cuMemPrefetchAsync_v2(pointer, BYTES, none, 0, NULL));
	NOTE(cu.cuMemPrefetchAsync_v2(pointer, BYTES, no_gpu, 0, NULL));
	NOTE(cu.cuMemPrefetchAsync_v2(pointer, BYTES, gpu, 1, NULL));
	OK(cu.cuMemFree_v2(pointer));
}

static void managed_attributes(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES), device = check_alloc(BYTES);
	int attributes[] = {OF_READ_MOSTLY, OF_ACCESSED}, value = 77, list[3] = {77, 77, 77};
	void *data[] = {&value, list};
	size_t sizes[] = {sizeof(value), sizeof(list)};

	OK(cu.cuMemRangeGetAttributes(data, sizes, attributes, 2, pointer, BYTES));
	NOTE(value);
	NOTE(list[2]);
	NOTE(cu.cuMemRangeGetAttributes(data, sizes, attributes, 0, pointer, BYTES));
	NOTE(cu.cuMemRangeGetAttribute(&value, 2, OF_READ_MOSTLY, pointer, BYTES));
	NOTE(cu.cuMemRangeGetAttribute(list, 8, OF_READ_MOSTLY, pointer, BYTES));
	NOTE(cu.cuMemRangeGetAttribute(list, 6, OF_ACCESSED, pointer, BYTES));
	NOTE(cu.cuMemRangeGetAttribute(&value, 4, 0, pointer, BYTES));
	NOTE(cu.cuMemRangeGetAttribute(&value, 4, 99, pointer, BYTES));
	NOTE(cu.cuMemRangeGetAttribute(NULL, 4, OF_READ_MOSTLY, pointer, BYTES));
	NOTE(managed_attribute(OF_READ_MOSTLY, pointer, 0));
	NOTE(managed_attribute(OF_READ_MOSTLY, pointer + 8, 8));
	NOTE(managed_attribute(OF_READ_MOSTLY, pointer, 2 * BYTES));
	NOTE(managed_attribute(OF_READ_MOSTLY, device, BYTES));
	NOTE(managed_attribute(OF_READ_MOSTLY, (uintptr_t)&pointer, 8));
	OK(cu.cuMemFree_v2(pointer));
	OK(cu.cuMemFree_v2(device));
}

static void managed_attach(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES);
	CUstream stream = NULL;

	OK(cu.cuStreamCreate(&stream, 0));
	NOTE(cu.cuStreamAttachMemAsync(stream, pointer, 0, SINGLE));
	NOTE(cu.cuStreamAttachMemAsync(stream, pointer, BYTES, HOST));
	NOTE(cu.cuStreamAttachMemAsync(stream, pointer, 0, GLOBAL));
	OK(cu.cuStreamSynchronize(stream));
	*(volatile uint32_t *)(uintptr_t)pointer = 6;
	IS(6, check_word(pointer));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuMemFree_v2(pointer));
}

static void managed_attach_host(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES);
	CUstream stream = NULL;

	OK(cu.cuStreamCreate(&stream, 0));
	OK(cu.cuStreamAttachMemAsync(stream, pointer, 0, HOST));
	OK(cu.cuStreamSynchronize(stream));
	*(volatile uint32_t *)(uintptr_t)pointer = 6;
	IS(6, *(volatile uint32_t *)(uintptr_t)pointer);
}

static void managed_attach_errors(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES);
	CUstream stream = NULL;

	OK(cu.cuStreamCreate(&stream, 0));
	NOTE(cu.cuStreamAttachMemAsync(NULL, pointer, 0, SINGLE));
	NOTE(cu.cuStreamAttachMemAsync(NULL, pointer, 0, GLOBAL));
	NOTE(cu.cuStreamAttachMemAsync(stream, pointer, BYTES / 2, GLOBAL));
	NOTE(cu.cuStreamAttachMemAsync(stream, pointer + 4096, 0, GLOBAL));
	NOTE(cu.cuStreamAttachMemAsync(stream, pointer, 0, 0));
	NOTE(cu.cuStreamAttachMemAsync(stream, pointer, 0, 8));
}

static void managed_attach_unknown(void)
{
	CUdeviceptr pointer = 0;
	CUstream stream = NULL;

	OK(cu.cuStreamCreate(&stream, 0));
	NOTE(cu.cuStreamAttachMemAsync(stream, (uintptr_t)&pointer, 0, GLOBAL));
}

static void managed_of_context(void)
{
	CUdeviceptr pointer = 0, base = 0;
	CUcontext own = NULL;

	OK(cu.cuCtxCreate_v2(&own, 0, 0));
	OK(cu.cuMemAllocManaged(&pointer, BYTES, GLOBAL));
	*(volatile uint32_t *)(uintptr_t)pointer = 6;
	OK(cu.cuCtxDestroy_v2(own));
	OK(cu.cuCtxSetCurrent(context));
	NOTE(cu.cuPointerGetAttribute(&base, 11, pointer));
	NOTE(cu.cuMemFree_v2(pointer));
}

static void managed_captured(void)
{
	CUdeviceptr pointer = managed_alloc(BYTES), other = 0;
	CUstream stream = NULL;
	CUgraph graph = NULL;

	OK(cu.cuStreamCreate(&stream, 0));
	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	NOTE(cu.cuMemAllocManaged(&other, BYTES, GLOBAL));
	NOTE(cu.cuMemAdvise(pointer, BYTES, READ_MOSTLY, 0));
	NOTE(managed_attribute(OF_READ_MOSTLY, pointer, BYTES));
	OK(cu.cuMemsetD32Async(pointer, 9, 4, stream));
	OK(cu.cuMemcpyHtoDAsync_v2(pointer + 64, (void *)(uintptr_t)pointer, 16, stream));
	OK(cu.cuStreamEndCapture(stream, &graph));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	NOTE(cu.cuMemPrefetchAsync(pointer, BYTES, 0, stream));
	NOTE(cu.cuStreamEndCapture(stream, &graph));
	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	NOTE(cu.cuStreamAttachMemAsync(stream, pointer, 0, GLOBAL));
	NOTE(cu.cuStreamEndCapture(stream, &graph));
}

static void managed_device(void)
{
	static const int numbers[] = {83, 89, 101};
	int value = 77;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		OK(cu.cuDeviceGetAttribute(&value, numbers[i], 0));
		NOTE(value);
	}
}

static void managed_comes_late(void *milliseconds)
{
	(void)usleep((unsigned)(uintptr_t)milliseconds * 1000);
}

/* What the stream does before it takes a while. */
#define LATE OK(cu.cuLaunchHostFunc(NULL, managed_comes_late, (void *)(uintptr_t)50))

/* A copy that waits is done when it returns, whatever its sides are called. */
static void managed_is_waited_for(void)
{
	const CUDA_ARRAY_DESCRIPTOR what = {16, 1, CU_ARRAY_U32, 1};
	const CUdeviceptr pointer = managed_alloc(BYTES), device = check_alloc(64);
	volatile uint32_t *words = (uint32_t *)(uintptr_t)pointer;
	CUDA_MEMCPY3D box = {
		.src_type = 2, .src_device = device, .src_pitch = 64, .src_height = 1, .src_context = context};
	CUarray array = NULL;

	box.dst_type = 2;
	box.dst_device = pointer;
	box.dst_pitch = 64;
	box.dst_height = 1;
	box.dst_context = context;
	box.width = 64;
	box.height = box.depth = 1;
	OK(cu.cuArrayCreate_v2(&array, &what));
	OK(cu.cuMemsetD32_v2(device, 7, 16));
	OK(cu.cuMemcpyDtoA_v2(array, 0, device, 64));
	LATE;
	OK(cu.cuMemcpyAtoD_v2(pointer, array, 0, 64));
	IS(7, words[15]);
	words[15] = 0;
	LATE;
	OK(cu.cuMemcpyPeer(pointer, context, device, context, 64));
	IS(7, words[15]);
	words[15] = 0;
	LATE;
	OK(cu.cuMemcpy3DPeer(&box));
	IS(7, words[15]);
	words[0] = 8;
	LATE;
	OK(cu.cuMemcpy(device, pointer, 4));
	words[0] = 9;
	IS(8, check_word(device));
	OK(cu.cuArrayDestroy(array));
	OK(cu.cuMemFree_v2(pointer));
	OK(cu.cuMemFree_v2(device));
}

const struct check managed_checks[] = {
	{"what devices say of it", managed_device, false},
	{"allocating", managed_alloc_errors, false},
	{"read and written by both", managed_shared, false},
	{"written while a kernel reads it", managed_concurrent, false},
	{"copies", managed_copies, false},
	{"copies that are waited for", managed_is_waited_for, false},
	{"filling", managed_fills, false},
	{"words (declared)", managed_words, false},
	{"attributes of a pointer", managed_pointer, false},
	{"range of an address", managed_range, false},
	{"as memory of the host", managed_as_host, true},
	{"freeing", managed_free, true},
	{"2000 pieces", managed_many, false},
	{"advice", managed_advice, false},
	{"advice for parts", managed_advice_parts, false},
	{"wrong advice", managed_advice_errors, false},
	{"prefetching", managed_prefetch, false},
	{"places", managed_locations, false},
	{"attributes of ranges", managed_attributes, false},
	{"attaching to a stream", managed_attach, true},
	{"attaching to the host", managed_attach_host, true},
	{"attaching wrongly", managed_attach_errors, true},
	{"attaching what is not managed", managed_attach_unknown, true},
	{"of a context that ends", managed_of_context, true},
	{"while a stream is captured", managed_captured, true},
	END,
};
