/* SPDX-License-Identifier: Apache-2.0 */

/* cuMemset*. */

#include "check.h"

static void fill_bytes(void)
{
	CUdeviceptr pointer = check_alloc(4096);

	OK(cu.cuMemsetD8_v2(pointer, 0x11, 4096));
	IS(0x11111111, check_word(pointer + 4092));
	OK(cu.cuMemsetD8_v2(pointer + 1, 0x22, 2));
	IS(0x11222211, check_word(pointer));
	OK(cu.cuMemsetD8Async(pointer + 3, 0x33, 1, NULL));
	IS(0x33222211, check_word(pointer));
	OK(cu.cuMemFree_v2(pointer));
}

static void fill_halves(void)
{
	CUdeviceptr pointer = check_alloc(4096);

	OK(cu.cuMemsetD16_v2(pointer, 0x1234, 2048));
	IS(0x12341234, check_word(pointer + 4092));
	OK(cu.cuMemsetD16Async(pointer + 2, 0x5678, 1, NULL));
	IS(0x56781234, check_word(pointer));
	IS(1, cu.cuMemsetD16_v2(pointer + 1, 0, 1));
	OK(cu.cuMemFree_v2(pointer));
}

static void fill_words(void)
{
	CUdeviceptr pointer = check_alloc(4096);

	OK(cu.cuMemsetD32_v2(pointer, 0x12345678, 1024));
	IS(0x12345678, check_word(pointer + 4092));
	OK(cu.cuMemsetD32Async(pointer + 4, 1, 1, NULL));
	IS(1, check_word(pointer + 4));
	IS(1, cu.cuMemsetD32_v2(pointer + 2, 0, 1));
	IS(1, cu.cuMemsetD32_v2(pointer + 1, 0, 1));
	IS(1, cu.cuMemsetD32Async(pointer + 2, 0, 1, NULL));
	OK(cu.cuMemFree_v2(pointer));
}

static void fill_past_end(void)
{
	CUdeviceptr pointer = check_alloc(2 << 20);

	IS(1, cu.cuMemsetD8_v2(pointer, 0, (2 << 20) + 1));
	IS(1, cu.cuMemsetD32_v2(pointer, 0, (2 << 18) + 1));
	IS(1, cu.cuMemsetD8_v2(16, 0, 4));
	OK(cu.cuMemsetD8_v2(pointer, 0, 0));
	OK(cu.cuMemFree_v2(pointer));
}

static void fill_planes(void)
{
	CUdeviceptr pointer = check_alloc(256 * 8);

	OK(cu.cuMemsetD8_v2(pointer, 0, 256 * 8));
	OK(cu.cuMemsetD2D8_v2(pointer, 256, 0x11, 4, 8));
	IS(0x11111111, check_word(pointer + 7 * 256));
	IS(0, check_word(pointer + 4));
	OK(cu.cuMemsetD2D16_v2(pointer + 4, 256, 0x2222, 2, 4));
	IS(0x22222222, check_word(pointer + 3 * 256 + 4));
	IS(0, check_word(pointer + 4 * 256 + 4));
	OK(cu.cuMemsetD2D32_v2(pointer + 8, 256, 0x33333333, 3, 2));
	IS(0x33333333, check_word(pointer + 256 + 16));
	OK(cu.cuMemsetD2D8Async(pointer, 256, 0x44, 4, 1, NULL));
	OK(cu.cuMemsetD2D16Async(pointer, 256, 0x5555, 1, 1, NULL));
	OK(cu.cuMemsetD2D32Async(pointer + 256, 256, 0x66, 1, 1, NULL));
	IS(0x44445555, check_word(pointer));
	IS(0x66, check_word(pointer + 256));
	IS(1, cu.cuMemsetD2D32_v2(pointer, 8, 0, 4, 2));
	OK(cu.cuMemsetD2D32_v2(pointer, 256, 0, 0, 2));
	OK(cu.cuMemFree_v2(pointer));
}

static void fill_host(void)
{
	uint32_t *pinned = check_pinned(4096);

	OK(cu.cuMemsetD32_v2((uintptr_t)pinned, 7, 10));
	OK(cu.cuCtxSynchronize());
	IS(7, pinned[9]);
	IS(0, pinned[10]);
	OK(cu.cuMemFreeHost(pinned));
}

const struct check fill_checks[] = {
	{"bytes", fill_bytes, false},
	{"halves", fill_halves, false},
	{"words", fill_words, false},
	{"past the end", fill_past_end, false},
	{"planes", fill_planes, false},
	{"locked memory of the host", fill_host, false},
	END,
};
