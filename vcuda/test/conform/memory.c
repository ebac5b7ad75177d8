/* SPDX-License-Identifier: Apache-2.0 */

/* Memory of the device, and locked memory of the host. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

static void memory_zero(void)
{
	CUdeviceptr pointer = 9;

	IS(1, cu.cuMemAlloc_v2(&pointer, 0));
	IS(1, cu.cuMemAlloc_v2(NULL, 16));
}

static void memory_alignment(void)
{
	CUdeviceptr pointers[8];
	int bad = 0;

	for (int i = 0; i < 8; i++) {
		OK(cu.cuMemAlloc_v2(&pointers[i], (size_t)1 << i));
		bad += pointers[i] % 256 != 0;
	}
	IS(0, bad);
	for (int i = 0; i < 8; i++)
		OK(cu.cuMemFree_v2(pointers[i]));
}

static void memory_twice(void)
{
	CUdeviceptr pointer = check_alloc(1 << 20);

	OK(cu.cuMemFree_v2(pointer));
	IS(1, cu.cuMemFree_v2(pointer));
	OK(cu.cuMemFree_v2(0));
}

static void memory_interior(void)
{
	CUdeviceptr pointer = check_alloc(1 << 20);

	IS(1, cu.cuMemFree_v2(pointer + 256));
	IS(1, cu.cuMemFree_v2(pointer + 1));
	OK(cu.cuMemFree_v2(pointer));
}

static void memory_too_much(void)
{
	size_t before = 0, after = 0, total = 0;
	CUdeviceptr pointer = 0;

	OK(cu.cuMemGetInfo_v2(&before, &total));
	IS(2, cu.cuMemAlloc_v2(&pointer, total + (1 << 20)));
	IS(2, cu.cuMemAlloc_v2(&pointer, (size_t)1 << 60));
	IS(2, cu.cuMemAlloc_v2(&pointer, SIZE_MAX));
	OK(cu.cuMemGetInfo_v2(&after, &total));
	TRUE(before == after);
	OK(cu.cuMemAlloc_v2(&pointer, 4096));
	OK(cu.cuMemFree_v2(pointer));
}

static void memory_info(void)
{
	size_t before = 0, after = 0, total = 0, again = 0;
	CUdeviceptr pointer;

	OK(cu.cuMemGetInfo_v2(&before, &total));
	OK(cu.cuMemAlloc_v2(&pointer, 64 << 20));
	OK(cu.cuMemGetInfo_v2(&after, &again));
	NOTE((before - after) >> 20);
	TRUE(again == total);
	OK(cu.cuMemFree_v2(pointer));
	OK(cu.cuMemGetInfo_v2(&after, &again));
	TRUE(after == before);
	NOTE(cu.cuMemGetInfo_v2(NULL, &total));
}

static void memory_range(void)
{
	CUdeviceptr pointer = check_alloc(10000), base = 0;
	size_t size = 0;

	OK(cu.cuMemGetAddressRange_v2(&base, &size, pointer + 5000));
	TRUE(base == pointer);
	NOTE(size);
	OK(cu.cuMemGetAddressRange_v2(NULL, &size, pointer));
	OK(cu.cuMemGetAddressRange_v2(&base, NULL, pointer));
	OK(cu.cuMemFree_v2(pointer));
	NOTE(cu.cuMemGetAddressRange_v2(&base, &size, 4096));
}

static void memory_pitch(void)
{
	CUdeviceptr pointer = 0;
	size_t pitch = 0;

	OK(cu.cuMemAllocPitch_v2(&pointer, &pitch, 100, 10, 4));
	NOTE(pitch);
	OK(cu.cuMemFree_v2(pointer));
	OK(cu.cuMemAllocPitch_v2(&pointer, &pitch, 513, 3, 16));
	NOTE(pitch);
	OK(cu.cuMemFree_v2(pointer));
	IS(1, cu.cuMemAllocPitch_v2(&pointer, &pitch, 0, 10, 4));
	IS(1, cu.cuMemAllocPitch_v2(&pointer, &pitch, 10, 0, 4));
	IS(1, cu.cuMemAllocPitch_v2(&pointer, &pitch, 100, 10, 3));
}

static void memory_many(void)
{
	CUdeviceptr pointers[256];
	int failed = 0, wrong = 0;

	for (unsigned i = 0; i < 256; i++) {
		failed += cu.cuMemAlloc_v2(&pointers[i], 1000 + 16 * i) != 0;
		failed += cu.cuMemsetD32_v2(pointers[i], i, 250) != 0;
	}
	for (unsigned i = 0; i < 256; i++)
		wrong += check_word(pointers[i] + 996) != i;
	for (int i = 255; i >= 0; i--)
		failed += cu.cuMemFree_v2(pointers[i]) != 0;
	IS(0, failed);
	IS(0, wrong);
}

static void memory_host(void)
{
	void *pointer = NULL;
	unsigned flags = 99;

	OK(cu.cuMemHostAlloc(&pointer, 10000, 0));
	TRUE(pointer && (uintptr_t)pointer % 256 == 0);
	memset(pointer, 7, 10000);
	OK(cu.cuMemHostGetFlags(&flags, pointer));
	NOTE(flags);
	OK(cu.cuMemFreeHost(pointer));
	OK(cu.cuMemHostAlloc(&pointer, 0, 0));
	IS(1, cu.cuMemHostAlloc(NULL, 16, 0));
	NOTE(cu.cuMemHostAlloc(&pointer, 16, 0x100));
	OK(cu.cuMemAllocHost_v2(&pointer, 4096));
	OK(cu.cuMemHostGetFlags(&flags, pointer));
	NOTE(flags);
	OK(cu.cuMemFreeHost(pointer));
	NOTE(cu.cuMemAllocHost_v2(&pointer, 0));
}

static void memory_host_free(void)
{
	void *pointer = NULL;
	char local[64];

	OK(cu.cuMemHostAlloc(&pointer, 1 << 20, 1));
	NOTE(cu.cuMemFreeHost((char *)pointer + 4096));
	OK(cu.cuMemFreeHost(pointer));
	NOTE(cu.cuMemFreeHost(pointer));
	NOTE(cu.cuMemFreeHost(local));
	NOTE(cu.cuMemFreeHost(NULL));
}

static void memory_host_device(void)
{
	CUdeviceptr device = 0, result = check_alloc(4);
	uint32_t *pointer = check_pinned(4096);

	OK(cu.cuMemHostGetDevicePointer_v2(&device, pointer, 0));
	TRUE(device == (uintptr_t)pointer);
	pointer[3] = 4711;
	device = (uintptr_t)&pointer[3];
	OK(check_launch("load", 1, NULL, PARAMETERS(&device, &result)));
	IS(4711, check_word(result));
	IS(1, cu.cuMemHostGetDevicePointer_v2(&device, &device, 0));
	IS(1, cu.cuMemHostGetDevicePointer_v2(&device, pointer, 5));
	OK(cu.cuMemFreeHost(pointer));
}

/* A kernel writes where the host reads. */
static void memory_host_written(void)
{
	uint32_t *pointer = check_pinned(4096), value = 99, count = 16;

	OK(check_launch("fill", 32, NULL, PARAMETERS(&pointer, &value, &count)));
	OK(cu.cuCtxSynchronize());
	IS(99, pointer[0]);
	IS(99, pointer[15]);
	IS(0, pointer[16]);
	OK(cu.cuMemFreeHost(pointer));
}

static void memory_register(void)
{
	char *memory = aligned_alloc(4096, 1 << 16);
	CUdeviceptr device = 0;
	unsigned flags = 99;

	memset(memory, 1, 1 << 16);
	NOTE(cu.cuMemHostRegister_v2(memory, 1 << 16, 0));
	NOTE(cu.cuMemHostRegister_v2(memory, 4096, 0));
	NOTE(cu.cuMemHostGetDevicePointer_v2(&device, memory, 0));
	NOTE(device == (uintptr_t)memory);
	NOTE(cu.cuMemHostGetFlags(&flags, memory));
	NOTE(cu.cuMemHostUnregister(memory));
	NOTE(cu.cuMemHostUnregister(memory));
	NOTE(cu.cuMemHostRegister_v2(NULL, 4096, 0));
	NOTE(cu.cuMemHostRegister_v2(memory, 0, 0));
	free(memory);
}

static void memory_register_around(void)
{
	char *memory = aligned_alloc(4096, 1 << 16);

	memset(memory, 1, 1 << 16);
	OK(cu.cuMemHostRegister_v2(memory + 4096, 4096, 0));
	IS(712, cu.cuMemHostRegister_v2(memory, 1 << 16, 0));
	OK(cu.cuMemHostUnregister(memory + 4096));
	OK(cu.cuMemHostRegister_v2(memory, 1 << 16, 0));
	OK(cu.cuMemHostUnregister(memory));
	free(memory);
}

static void memory_registered_copies(void)
{
	enum { WORDS = 1 << 14, TYPE = 2 };
	CUdeviceptr pointer = check_alloc(WORDS * sizeof(uint32_t));
	uint32_t *memory = aligned_alloc(4096, WORDS * sizeof(*memory));
	unsigned type = 99, wrong = 0;

	for (uint32_t i = 0; i < WORDS; i++)
		memory[i] = i;
	OK(cu.cuMemHostRegister_v2(memory, WORDS * sizeof(*memory), 1));
	OK(cu.cuPointerGetAttribute(&type, TYPE, (uintptr_t)memory + 4));
	IS(1, type);
	OK(cu.cuMemcpyHtoDAsync_v2(pointer, memory, WORDS * sizeof(*memory), NULL));
	OK(cu.cuStreamSynchronize(NULL));
	memset(memory, 0, WORDS * sizeof(*memory));
	OK(cu.cuMemcpyDtoHAsync_v2(memory, pointer, WORDS * sizeof(*memory), NULL));
	OK(cu.cuStreamSynchronize(NULL));
	for (uint32_t i = 0; i < WORDS; i++)
		wrong += memory[i] != i;
	IS(0, wrong);
	OK(cu.cuMemHostUnregister(memory));
	IS(1, cu.cuPointerGetAttribute(&type, TYPE, (uintptr_t)memory));
	free(memory);
	OK(cu.cuMemFree_v2(pointer));
}

/* A file in memory, as processes share it; @unlinked: it has no name any more. */
static void memory_register_file(bool unlinked)
{
	enum { BYTES = 1 << 20 };
	char name[64];
	uint32_t *memory, *again, value = 4711, count = 1000;
	CUdeviceptr device = 0, other = 0;
	int fd;

	(void)snprintf(name, sizeof(name), "/conform.%d", (int)getpid());
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	TRUE(fd >= 0 && ftruncate(fd, BYTES) == 0);
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	again = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TRUE(memory != MAP_FAILED && again != MAP_FAILED);
	if (unlinked)
		(void)shm_unlink(name);
	memset(memory, 1, BYTES);
	OK(cu.cuMemHostRegister_v2(memory, BYTES - 100, 3));
	OK(cu.cuMemHostGetDevicePointer_v2(&device, memory, 0));
	OK(cu.cuMemHostGetDevicePointer_v2(&other, memory + 2000, 0));
	TRUE(other - device == 8000);
	OK(check_launch("fill", 1000, NULL, PARAMETERS(&other, &value, &count)));
	OK(cu.cuCtxSynchronize());
	IS(4711, again[2000]);
	IS(4711, memory[2999]);
	IS(0x01010101, again[3000]);
	OK(cu.cuMemHostUnregister(memory));
	NOTE(cu.cuMemHostGetDevicePointer_v2(&device, memory, 0));
	OK(cu.cuMemHostRegister_v2(memory, BYTES, 3));
	OK(cu.cuMemHostUnregister(memory));
	if (!unlinked)
		(void)shm_unlink(name);
	(void)close(fd);
	(void)munmap(memory, BYTES);
	(void)munmap(again, BYTES);
}

static void memory_register_named(void)
{
	memory_register_file(false);
}

static void memory_register_unlinked(void)
{
	memory_register_file(true);
}

const struct check memory_checks[] = {
	{"none at all", memory_zero, false},
	{"alignment", memory_alignment, false},
	{"freed twice", memory_twice, false},
	{"freed in the middle", memory_interior, false},
	{"more than there is", memory_too_much, false},
	{"what is free", memory_info, false},
	{"range of an address", memory_range, false},
	{"pitch", memory_pitch, false},
	{"256 pieces", memory_many, false},
	{"of the host", memory_host, false},
	{"of the host, freed wrongly", memory_host_free, true},
	{"of the host, read by a kernel at its own address", memory_host_device, false},
	{"of the host, written by a kernel", memory_host_written, false},
	{"registering (declared)", memory_register, true},
	{"registering around what is registered", memory_register_around, true},
	{"copies of what is registered", memory_registered_copies, true},
	{"registering a file in memory", memory_register_named, true},
	{"registering one without a name", memory_register_unlinked, true},
	END,
};
