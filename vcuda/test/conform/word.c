/* SPDX-License-Identifier: Apache-2.0 */

/* Words that a stream writes and waits for; tensor maps. */

#include <string.h>

#include "check.h"

enum { WAIT_32 = 1, WRITE_32 = 2, WAIT_64 = 4, WRITE_64 = 5 };

static void word_write(void)
{
	CUdeviceptr pointer = check_alloc(64);

	OK(cu.cuMemsetD8_v2(pointer, 0, 64));
	OK(cu.cuStreamWriteValue32_v2(NULL, pointer, 4711, 0));
	OK(cu.cuStreamWriteValue64_v2(NULL, pointer + 8, 0x500000007, 0));
	IS(4711, check_word(pointer));
	IS(7, check_word(pointer + 8));
	IS(5, check_word(pointer + 12));
	NOTE(cu.cuStreamWriteValue32_v2(NULL, pointer + 1, 1, 0));
	OK(cu.cuMemFree_v2(pointer));
}

/* Where the driver has the first forms, they do the same. */
static void word_first_forms(void)
{
	CUdeviceptr pointer = check_alloc(64);
	CUstreamBatchMemOpParams operation = {.operation = WRITE_32, .address = pointer, .value = 4712};
	int r;

	OK(cu.cuMemsetD8_v2(pointer, 0, 64));
	r = cu.cuStreamWriteValue32(NULL, pointer, 4711, 0);
	NOTE(r);
	IS(r, cu.cuStreamWriteValue64(NULL, pointer + 8, 0x500000007, 0));
	IS(r, cu.cuStreamWaitValue32(NULL, pointer, r ? 0 : 4711, 1));
	IS(r, cu.cuStreamWaitValue64(NULL, pointer + 8, r ? 0 : 0x500000007, 1));
	IS(r, cu.cuStreamBatchMemOp(NULL, 1, &operation, 0));
	IS(r ? 0 : 4712, check_word(pointer));
	IS(r ? 0 : 5, check_word(pointer + 12));
	OK(cu.cuMemFree_v2(pointer));
}

static void word_wait(void)
{
	CUdeviceptr pointer = check_alloc(64);
	CUstream first = NULL, second = NULL;

	OK(cu.cuMemsetD8_v2(pointer, 0, 64));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuStreamCreate(&first, 1));
	OK(cu.cuStreamCreate(&second, 1));
	OK(cu.cuStreamWaitValue32_v2(first, pointer, 3, 0));
	OK(cu.cuStreamWaitValue64_v2(first, pointer + 8, 9, 1));
	IS(600, cu.cuStreamQuery(first));
	OK(cu.cuStreamWriteValue32_v2(second, pointer, 4, 0));
	OK(cu.cuStreamWriteValue64_v2(second, pointer + 8, 9, 0));
	OK(cu.cuStreamSynchronize(first));
	OK(cu.cuStreamDestroy_v2(first));
	OK(cu.cuStreamDestroy_v2(second));
	OK(cu.cuMemFree_v2(pointer));
}

static void word_batch(void)
{
	CUdeviceptr pointer = check_alloc(64);
	CUstreamBatchMemOpParams operations[3];

	memset(operations, 0, sizeof(operations));
	OK(cu.cuMemsetD8_v2(pointer, 0, 64));
	operations[0].operation = WRITE_32;
	operations[0].address = pointer;
	operations[0].value = 12;
	operations[1].operation = WAIT_32;
	operations[1].address = pointer;
	operations[1].value = 12;
	operations[1].flags = 1;
	operations[2].operation = WRITE_64;
	operations[2].address = pointer + 8;
	operations[2].value = 34;
	OK(cu.cuStreamBatchMemOp_v2(NULL, 3, operations, 0));
	IS(34, check_word(pointer + 8));
	OK(cu.cuMemFree_v2(pointer));
}

static void word_tensor_map(void)
{
	static const cuuint64_t dimensions[2] = {256, 128}, strides[1] = {1024};
	static const cuuint32_t box[2] = {32, 32}, steps[2] = {1, 1};
	_Alignas(64) CUtensorMap map, other;
	CUdeviceptr pointer = check_alloc(1 << 20);
	void *address = (void *)(uintptr_t)pointer;

	memset(&map, 0, sizeof(map));
	OK(cu.cuTensorMapEncodeTiled(&map, 7, 2, address, dimensions, strides, box, steps, 0, 0, 0, 0));
	other = map;
	OK(cu.cuTensorMapReplaceAddress(&other, (char *)address + 4096));
	TRUE(memcmp(&map, &other, sizeof(map)) != 0);
	OK(cu.cuTensorMapReplaceAddress(&other, address));
	TRUE(memcmp(&map, &other, sizeof(map)) == 0);
	IS(1, cu.cuTensorMapEncodeTiled(&map, 7, 9, address, dimensions, strides, box, steps, 0, 0, 0, 0));
	IS(1, cu.cuTensorMapEncodeTiled(&map, 7, 2, (char *)address + 1, dimensions, strides, box, steps, 0, 0, 0, 0));
	IS(1, cu.cuTensorMapEncodeTiled(NULL, 7, 2, address, dimensions, strides, box, steps, 0, 0, 0, 0));
	OK(cu.cuMemFree_v2(pointer));
}

/* Of images, of which a kernel wants columns. */
static void word_tensor_columns(void)
{
	static const cuuint64_t dimensions[4] = {64, 32, 32, 8}, strides[3] = {128, 4096, 131072};
	static const cuuint32_t steps[4] = {1, 1, 1, 1};
	static const int lower[2] = {0, 0}, upper[2] = {0, 0};
	_Alignas(64) CUtensorMap map;
	CUdeviceptr pointer = check_alloc(1 << 20);
	void *address = (void *)(uintptr_t)pointer;

	memset(&map, 0, sizeof(map));
	NOTE(cu.cuTensorMapEncodeIm2col(&map, 6, 4, address, dimensions, strides, lower, upper, 64, 64, steps, 0, 0, 0,
					0));
	NOTE(map.opaque[0] != 0);
	NOTE(cu.cuTensorMapEncodeIm2col(&map, 6, 2, address, dimensions, strides, lower, upper, 64, 64, steps, 0, 0, 0,
					0));
	NOTE(cu.cuTensorMapEncodeIm2colWide(&map, 6, 4, address, dimensions, strides, 0, 0, 64, 64, steps, 0, 0, 1, 0,
					    0));
	OK(cu.cuMemFree_v2(pointer));
}

const struct check word_checks[] = {
	{"written", word_write, false},
	{"the first forms of both", word_first_forms, false},
	{"waited for", word_wait, false},
	{"several operations at once", word_batch, true},
	{"tensor maps", word_tensor_map, false},
	{"tensor maps of columns", word_tensor_columns, false},
	END,
};
