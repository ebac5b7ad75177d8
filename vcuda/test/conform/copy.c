/* SPDX-License-Identifier: Apache-2.0 */

/* Copies. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { HOST = 1, DEVICE = 2, UNIFIED = 4, BIG = 5 << 20 };

static const uint32_t four[] = {1, 2, 3, 4};

static void copy_there_and_back(void)
{
	CUdeviceptr pointer = check_alloc(BIG);
	unsigned char *from = malloc(BIG), *to = calloc(1, BIG);

	for (unsigned i = 0; i < BIG; i++)
		from[i] = (unsigned char)(i * 7 + i / 256);
	OK(cu.cuMemcpyHtoD_v2(pointer, from, BIG));
	OK(cu.cuMemcpyDtoH_v2(to, pointer, BIG));
	TRUE(memcmp(from, to, BIG) == 0);
	memset(to, 0, BIG);
	OK(cu.cuMemcpyHtoD_v2(pointer + 1, from, 1000001));
	OK(cu.cuMemcpyDtoH_v2(to, pointer + 1, 1000001));
	TRUE(memcmp(from, to, 1000001) == 0);
	OK(cu.cuMemFree_v2(pointer));
	free(from);
	free(to);
}

static void copy_past_end(void)
{
	CUdeviceptr pointer = check_alloc(2 << 20);
	char *memory = calloc(1, 3 << 20);

	IS(1, cu.cuMemcpyHtoD_v2(pointer, memory, (2 << 20) + 1));
	IS(1, cu.cuMemcpyDtoH_v2(memory, pointer, (2 << 20) + 1));
	IS(1, cu.cuMemcpyHtoD_v2(pointer + (2 << 20) - 4, memory, 8));
	IS(1, cu.cuMemcpyDtoD_v2(pointer, pointer + 4, 2 << 20));
	IS(1, cu.cuMemcpyHtoD_v2(16, memory, 4));
	IS(1, cu.cuMemcpyDtoH_v2(memory, 16, 4));
	OK(cu.cuMemFree_v2(pointer));
	free(memory);
}

static void copy_nothing(void)
{
	CUdeviceptr pointer = check_alloc(16);
	char byte = 0;

	OK(cu.cuMemcpyHtoD_v2(pointer, &byte, 0));
	OK(cu.cuMemcpyDtoH_v2(&byte, pointer, 0));
	NOTE(cu.cuMemcpyHtoD_v2(0, NULL, 0));
	OK(cu.cuMemcpyDtoDAsync_v2(pointer, pointer, 0, NULL));
	OK(cu.cuMemFree_v2(pointer));
}

static void copy_reused(void)
{
	CUdeviceptr pointer = check_alloc(1 << 20);
	unsigned char *memory = malloc(1 << 20);

	memset(memory, 1, 1 << 20);
	OK(cu.cuMemcpyHtoD_v2(pointer, memory, 1 << 20));
	memset(memory, 2, 1 << 20);
	IS(0x01010101, check_word(pointer + (1 << 20) - 4));
	memset(memory, 3, 1 << 20);
	OK(cu.cuMemcpyHtoDAsync_v2(pointer, memory, 1 << 20, NULL));
	memset(memory, 4, 1 << 20);
	OK(cu.cuStreamSynchronize(NULL));
	IS(0x03030303, check_word(pointer + (1 << 20) - 4));
	OK(cu.cuMemFree_v2(pointer));
	free(memory);
}

/* From locked memory it is copied when the stream comes there. */
static void copy_pinned_late(void)
{
	uint32_t *pinned = check_pinned(4096);
	CUdeviceptr pointer = check_alloc(4096);
	CUstream stream = NULL;

	OK(cu.cuStreamCreate(&stream, 1));
	pinned[16] = 1;
	check_gate(pinned, stream);
	OK(cu.cuMemcpyHtoDAsync_v2(pointer, &pinned[16], 4, stream));
	pinned[16] = 2;
	*(volatile uint32_t *)pinned = 1;
	OK(cu.cuStreamSynchronize(stream));
	IS(2, check_word(pointer));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuMemFreeHost(pinned));
	OK(cu.cuMemFree_v2(pointer));
}

static void copy_fill_late(void *data)
{
	(void)usleep(50000);
	memcpy(data, four, sizeof(four));
}

/* So it is from memory that was registered, which the stream has filled before. */
static void copy_registered_late(void)
{
	uint32_t *memory = aligned_alloc(4096, 65536);
	CUdeviceptr pointer = check_alloc(65536);

	for (size_t bytes = 16; bytes <= 65536; bytes += 65520) {
		memset(memory, 0, 65536);
		OK(cu.cuMemHostRegister_v2(memory, 65536, 0));
		OK(cu.cuLaunchHostFunc(NULL, copy_fill_late, memory));
		OK(cu.cuMemcpyHtoDAsync_v2(pointer, memory, bytes, NULL));
		OK(cu.cuCtxSynchronize());
		IS(4, check_word(pointer + 12));
		OK(cu.cuMemHostUnregister(memory));
	}
	OK(cu.cuMemFree_v2(pointer));
	free(memory);
}

/* And planes and boxes of it, whose rows are not side by side, on either side. */
static void copy_planes_registered_late(void)
{
	uint32_t *memory = aligned_alloc(4096, 65536);
	CUdeviceptr pointer = check_alloc(65536);
	const CUDA_MEMCPY2D plane = {.src_type = HOST,
				     .src_host = memory,
				     .src_pitch = 8,
				     .dst_type = DEVICE,
				     .dst_device = pointer,
				     .dst_pitch = 512,
				     .width = 4,
				     .height = 2};
	const CUDA_MEMCPY3D box = {.src_type = HOST,
				   .src_host = memory,
				   .src_pitch = 8,
				   .src_height = 1,
				   .dst_type = DEVICE,
				   .dst_device = pointer,
				   .dst_pitch = 512,
				   .dst_height = 1,
				   .width = 4,
				   .height = 1,
				   .depth = 2};

	OK(cu.cuMemHostRegister_v2(memory, 65536, 0));
	for (int i = 0; i < 2; i++) {
		memset(memory, 0, 65536);
		OK(cu.cuMemsetD8_v2(pointer, 0, 65536));
		OK(cu.cuLaunchHostFunc(NULL, copy_fill_late, memory));
		OK(i ? cu.cuMemcpy3DAsync_v2(&box, NULL) : cu.cuMemcpy2DAsync_v2(&plane, NULL));
		OK(cu.cuCtxSynchronize());
		IS(1, check_word(pointer));
		IS(3, check_word(pointer + 512));
	}
	OK(cu.cuMemHostUnregister(memory));
	OK(cu.cuMemFree_v2(pointer));
	free(memory);
}

static void copy_pinned_event(void)
{
	uint32_t *pinned = check_pinned(4096);
	CUdeviceptr pointer = check_words(four, 4);
	CUevent event = NULL;

	OK(cu.cuEventCreate(&event, 2));
	OK(cu.cuMemcpyDtoHAsync_v2(pinned, pointer, 16, NULL));
	OK(cu.cuEventRecord(event, NULL));
	OK(cu.cuEventSynchronize(event));
	IS(4, pinned[3]);
	OK(cu.cuEventDestroy_v2(event));
	OK(cu.cuMemFreeHost(pinned));
	OK(cu.cuMemFree_v2(pointer));
}

static void copy_device(void)
{
	CUdeviceptr from = check_words(four, 4), to = check_alloc(16);

	OK(cu.cuMemcpyDtoD_v2(to, from, 16));
	IS(3, check_word(to + 8));
	OK(cu.cuMemsetD32_v2(to, 0, 4));
	OK(cu.cuMemcpyDtoDAsync_v2(to + 4, from, 8, NULL));
	IS(0, check_word(to));
	IS(2, check_word(to + 8));
	IS(0, check_word(to + 12));
	OK(cu.cuMemFree_v2(from));
	OK(cu.cuMemFree_v2(to));
}

static void copy_unified(void)
{
	CUdeviceptr device = check_alloc(16);
	uint32_t *pinned = check_pinned(64), words[4] = {0};

	memcpy(pinned, four, sizeof(four));
	OK(cu.cuMemcpy(device, (uintptr_t)pinned, 16));
	OK(cu.cuMemcpy((uintptr_t)words, device, 16));
	IS(4, words[3]);
	OK(cu.cuMemcpyAsync((uintptr_t)(pinned + 8), device, 16, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	IS(3, pinned[10]);
	OK(cu.cuMemcpy((uintptr_t)words, (uintptr_t)(pinned + 1), 4));
	IS(2, words[0]);
	OK(cu.cuMemcpyPeer(device, context, device + 8, context, 8));
	IS(3, check_word(device));
	OK(cu.cuMemcpyPeerAsync(device + 4, context, device, context, 4, NULL));
	IS(3, check_word(device + 4));
	OK(cu.cuMemFreeHost(pinned));
	OK(cu.cuMemFree_v2(device));
}

static void copy_own_default(void)
{
	CUdeviceptr device = check_alloc(16), other = check_alloc(16);
	uint32_t words[4] = {0};

	OK(cu.cuMemcpyHtoD_v2_ptds(device, four, 16));
	OK(cu.cuMemcpyDtoDAsync_v2_ptsz(other, device, 16, NULL));
	OK(cu.cuStreamSynchronize_ptsz(NULL));
	OK(cu.cuMemcpyDtoH_v2_ptds(words, other, 16));
	IS(4, words[3]);
	OK(cu.cuMemsetD32_v2_ptds(other, 9, 4));
	OK(cu.cuMemcpyDtoH_v2_ptds(words, other, 16));
	IS(9, words[0]);
	OK(cu.cuMemFree_v2(device));
	OK(cu.cuMemFree_v2(other));
}

static CUDA_MEMCPY2D copy_plane(CUdeviceptr device, const unsigned char *host)
{
	return (CUDA_MEMCPY2D){.src_type = HOST,
			       .src_host = host,
			       .src_pitch = 20,
			       .src_x = 3,
			       .src_y = 1,
			       .dst_type = DEVICE,
			       .dst_device = device,
			       .dst_pitch = 512,
			       .dst_x = 2,
			       .dst_y = 2,
			       .width = 10,
			       .height = 4};
}

static void copy_2d(void)
{
	CUdeviceptr device = check_alloc(512 * 8), other = check_alloc(512 * 8);
	unsigned char host[200], back[512 * 8];
	CUDA_MEMCPY2D copy = copy_plane(device, host);
	CUDA_MEMCPY2D between = {.src_type = DEVICE,
				 .src_device = device,
				 .src_pitch = 512,
				 .dst_type = DEVICE,
				 .dst_device = other,
				 .dst_pitch = 512,
				 .width = 100,
				 .height = 8};

	for (unsigned i = 0; i < 200; i++)
		host[i] = (unsigned char)i;
	OK(cu.cuMemsetD8_v2(device, 255, 512 * 8));
	OK(cu.cuMemcpy2D_v2(&copy));
	OK(cu.cuMemcpyDtoH_v2(back, device, sizeof(back)));
	IS(255, back[2 * 512 + 1]);
	IS(23, back[2 * 512 + 2]);
	IS(32, back[2 * 512 + 11]);
	IS(255, back[2 * 512 + 12]);
	IS(92, back[5 * 512 + 11]);
	IS(255, back[6 * 512 + 2]);
	OK(cu.cuMemcpy2DUnaligned_v2(&copy));
	OK(cu.cuMemcpy2DAsync_v2(&between, NULL));
	OK(cu.cuMemcpyDtoH_v2(back, other, sizeof(back)));
	IS(92, back[5 * 512 + 11]);
	copy.src_type = DEVICE;
	copy.src_device = device;
	copy.src_pitch = 512;
	copy.src_x = 2;
	copy.src_y = 2;
	copy.dst_type = HOST;
	copy.dst_host = back;
	copy.dst_pitch = 30;
	copy.dst_x = 0;
	copy.dst_y = 0;
	OK(cu.cuMemcpy2D_v2(&copy));
	IS(32, back[9]);
	IS(83, back[3 * 30]);
	OK(cu.cuMemFree_v2(device));
	OK(cu.cuMemFree_v2(other));
}

static void copy_2d_errors(void)
{
	CUdeviceptr device = check_alloc(512 * 8);
	unsigned char host[200];
	CUDA_MEMCPY2D copy = copy_plane(device, host);

	copy.src_pitch = 8;
	IS(1, cu.cuMemcpy2D_v2(&copy));
	copy = copy_plane(device, host);
	copy.dst_pitch = 5;
	IS(1, cu.cuMemcpy2D_v2(&copy));
	copy = copy_plane(device, host);
	copy.src_type = 99;
	IS(1, cu.cuMemcpy2D_v2(&copy));
	copy = copy_plane(device, host);
	copy.width = 0;
	OK(cu.cuMemcpy2D_v2(&copy));
	copy = copy_plane(device, host);
	copy.height = 0;
	OK(cu.cuMemcpy2D_v2(&copy));
	IS(1, cu.cuMemcpy2D_v2(NULL));
	OK(cu.cuMemFree_v2(device));
}

static void copy_3d(void)
{
	CUdeviceptr device = check_alloc(64 * 4 * 3), other = check_alloc(64 * 4 * 3);
	unsigned char host[1000], back[64 * 4 * 3];
	CUDA_MEMCPY3D copy = {.src_type = HOST,
			      .src_host = host,
			      .src_pitch = 10,
			      .src_height = 10,
			      .src_x = 1,
			      .src_y = 2,
			      .src_z = 3,
			      .dst_type = DEVICE,
			      .dst_device = device,
			      .dst_pitch = 64,
			      .dst_height = 4,
			      .dst_x = 4,
			      .dst_y = 1,
			      .dst_z = 1,
			      .width = 5,
			      .height = 3,
			      .depth = 2};
	CUDA_MEMCPY3D peer = {.src_type = DEVICE,
			      .src_device = device,
			      .src_pitch = 64,
			      .src_height = 4,
			      .dst_type = DEVICE,
			      .dst_device = other,
			      .dst_pitch = 64,
			      .dst_height = 4,
			      .width = 64,
			      .height = 4,
			      .depth = 3};

	for (unsigned i = 0; i < 1000; i++)
		host[i] = (unsigned char)(i % 251);
	OK(cu.cuMemsetD8_v2(device, 255, sizeof(back)));
	OK(cu.cuMemcpy3D_v2(&copy));
	OK(cu.cuMemcpyDtoH_v2(back, device, sizeof(back)));
	IS(321 % 251, back[256 + 64 + 4]);
	IS(445 % 251, back[512 + 3 * 64 + 8]);
	IS(255, back[512 + 3 * 64 + 9]);
	IS(255, back[0]);
	peer.src_context = context;
	peer.dst_context = context;
	OK(cu.cuMemcpy3DPeer(&peer));
	OK(cu.cuMemcpyDtoH_v2(back, other, sizeof(back)));
	IS(445 % 251, back[512 + 3 * 64 + 8]);
	OK(cu.cuMemsetD8_v2(other, 0, sizeof(back)));
	OK(cu.cuMemcpy3DPeerAsync(&peer, NULL));
	IS(-1, (int)check_word(other));
	peer.src_context = NULL;
	peer.dst_context = NULL;
	OK(cu.cuMemcpy3DAsync_v2(&peer, NULL));
	OK(cu.cuCtxSynchronize());
	copy.depth = 0;
	OK(cu.cuMemcpy3D_v2(&copy));
	copy.depth = 1;
	copy.src_pitch = 2;
	IS(1, cu.cuMemcpy3D_v2(&copy));
	OK(cu.cuMemFree_v2(device));
	OK(cu.cuMemFree_v2(other));
}

/* How high a plane is says where the next one is; 0 where there is none. */
static void copy_heights(void)
{
	CUdeviceptr device = check_alloc(4096);
	unsigned char host[1000], back[4096];
	CUDA_MEMCPY3D copy = {.src_type = HOST,
			      .src_host = host,
			      .src_pitch = 10,
			      .dst_type = DEVICE,
			      .dst_device = device,
			      .dst_pitch = 64,
			      .width = 5,
			      .height = 2,
			      .depth = 1};

	for (unsigned i = 0; i < 1000; i++)
		host[i] = (unsigned char)(i % 251);
	OK(cu.cuMemsetD8_v2(device, 255, sizeof(back)));
	OK(cu.cuMemcpy3D_v2(&copy));
	copy.depth = 2;
	for (int i = 0; i < 9; i++) {
		copy.src_height = (size_t)(i / 3);
		copy.dst_height = (size_t)(i % 3);
		NOTE(cu.cuMemcpy3D_v2(&copy));
	}
	OK(cu.cuMemcpyDtoH_v2(back, device, sizeof(back)));
	NOTE(back[0]);
	NOTE(back[64]);
	NOTE(back[128]);
	NOTE(back[192]);
	copy.src_type = DEVICE;
	copy.src_device = device + 2048;
	copy.src_pitch = 64;
	for (int i = 0; i < 9; i++) {
		copy.src_height = (size_t)(i / 3);
		copy.dst_height = (size_t)(i % 3);
		NOTE(cu.cuMemcpy3D_v2(&copy));
	}
	OK(cu.cuMemFree_v2(device));
}

/* A plane or a box, behind a kernel that writes into @from at last. */
static void copy_plane_late(CUdeviceptr to, int to_type, CUdeviceptr from, int from_type, bool box)
{
	const CUDA_MEMCPY2D plane = {.src_type = from_type,
				     .src_host = (const void *)from,
				     .src_device = from,
				     .src_pitch = 64,
				     .dst_type = to_type,
				     .dst_host = (void *)to,
				     .dst_device = to,
				     .dst_pitch = 64,
				     .width = 16,
				     .height = 2};
	const CUDA_MEMCPY3D whole = {.src_type = from_type,
				     .src_host = (const void *)from,
				     .src_device = from,
				     .src_pitch = 64,
				     .src_height = 2,
				     .dst_type = to_type,
				     .dst_host = (void *)to,
				     .dst_device = to,
				     .dst_pitch = 64,
				     .dst_height = 2,
				     .width = 16,
				     .height = 2,
				     .depth = 2};
	uint32_t value = box ? 6 : 5, count = 64;
	uint64_t clocks = 20000000;

	OK(check_launch("spin", 1, NULL, PARAMETERS(&clocks)));
	OK(check_launch("fill", 64, NULL, PARAMETERS(&from, &value, &count)));
	OK(box ? cu.cuMemcpy3D_v2(&whole) : cu.cuMemcpy2D_v2(&plane));
	IS(value, *(volatile uint32_t *)(uintptr_t)to);
	IS(value, ((volatile uint32_t *)(uintptr_t)to)[16]);
}

/* Both memory of the host, which a kernel writes before the copy's turn. */
static void copy_planes_of_host(void)
{
	uint32_t *pinned = check_pinned(4096), words[64] = {0};

	copy_plane_late((uintptr_t)words, HOST, (uintptr_t)pinned, HOST, false);
	copy_plane_late((uintptr_t)words, HOST, (uintptr_t)pinned, UNIFIED, true);
	IS(6, words[48]);
	OK(cu.cuMemFreeHost(pinned));
}

/* The host may read it once the call has returned. */
static void copy_planes_managed(void)
{
	CUdeviceptr managed = 0, from = check_alloc(4096);

	OK(cu.cuMemAllocManaged(&managed, 4096, 1));
	copy_plane_late(managed, DEVICE, from, DEVICE, false);
	copy_plane_late(managed, UNIFIED, from, UNIFIED, true);
	OK(cu.cuMemFree_v2(managed));
	OK(cu.cuMemFree_v2(from));
}

/* From and to all kinds of memory; of what may be read later, it is read in the stream's order. */
static void copy_batch(void)
{
	CUdeviceptr device = check_alloc(64), other = check_alloc(64), to[3], from[3];
	uint32_t *pinned = check_pinned(64);
	CUmemcpyAttributes how = {.order = 1};
	size_t bytes[] = {16, 8, 4}, begin = 0, failed = 7;
	CUstream stream = NULL;

	OK(cu.cuStreamCreate(&stream, 1));
	memcpy(pinned, four, sizeof(four));
	to[0] = device;
	from[0] = (uintptr_t)pinned;
	to[1] = other;
	from[1] = device + 8;
	to[2] = (uintptr_t)(pinned + 8);
	from[2] = device + 4;
	OK(cu.cuMemcpyBatchAsync(to, from, bytes, 1, &how, &begin, 1, &failed, stream));
	OK(cu.cuStreamSynchronize(stream));
	OK(cu.cuMemcpyBatchAsync_v2(to + 1, from + 1, bytes + 1, 2, &how, &begin, 1, stream));
	OK(cu.cuStreamSynchronize(stream));
	IS(3, check_word(other));
	IS(4, check_word(other + 4));
	IS(2, pinned[8]);
	IS(1, cu.cuMemcpyBatchAsync_v2(to, from, bytes, 0, &how, &begin, 1, stream));
	IS(1, cu.cuMemcpyBatchAsync_v2(NULL, from, bytes, 1, &how, &begin, 1, stream));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuMemFreeHost(pinned));
	OK(cu.cuMemFree_v2(device));
	OK(cu.cuMemFree_v2(other));
}

/* A copy waits for the kernels before it in the default stream. */
static void copy_after_kernel(void)
{
	CUdeviceptr pointer = check_alloc(4096);
	uint32_t value = 5, count = 1024;
	uint64_t clocks = 20000000;

	OK(cu.cuMemsetD32_v2(pointer, 0, 1024));
	OK(check_launch("spin", 1, NULL, PARAMETERS(&clocks)));
	OK(check_launch("fill", 1024, NULL, PARAMETERS(&pointer, &value, &count)));
	IS(5, check_word(pointer + 4092));
	OK(cu.cuMemFree_v2(pointer));
}

const struct check copy_checks[] = {
	{"there and back", copy_there_and_back, false},
	{"past the end", copy_past_end, false},
	{"nothing", copy_nothing, false},
	{"what was copied from may change", copy_reused, false},
	{"from locked memory not before its turn", copy_pinned_late, false},
	{"to locked memory, seen after an event", copy_pinned_event, false},
	{"from registered memory that is filled before", copy_registered_late, false},
	{"of planes of registered memory that is filled before", copy_planes_registered_late, false},
	{"within the device", copy_device, false},
	{"by unified addresses", copy_unified, false},
	{"in the thread's own default stream", copy_own_default, false},
	{"of a plane", copy_2d, false},
	{"of a plane, wrongly", copy_2d_errors, false},
	{"of a box", copy_3d, false},
	{"of a box, and the heights of planes", copy_heights, false},
	{"of planes of the host, after a kernel", copy_planes_of_host, false},
	{"of planes into managed memory, after a kernel", copy_planes_managed, false},
	{"after a kernel", copy_after_kernel, false},
	{"many at once", copy_batch, false},
	END,
};
